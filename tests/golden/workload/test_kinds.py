"""What lint says of kinds that it does not know by name: the manifests in `kinds`, each with what is said of it.

The shapes are those of the projects' CRDs and examples. --update rewrites what is said.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gpukube.engine.documents.summary import validation_summary
from gpukube.engine.documents.validation import lint_document
from gpukube.errors import render_diagnostics
from gpukube.spec.source.files import Source
from gpukube.workload.lint.check import lint

KINDS = sorted((Path(__file__).parent / "kinds").glob("*.yaml"))


@pytest.mark.parametrize("path", KINDS, ids=lambda path: path.stem)
def test_kind_when_it_is_not_known_by_name_then_its_pods_and_resources_are_judged(
    path: Path, request: pytest.FixtureRequest
) -> None:
    found = lint([Source(path.name, path.read_text())])
    counted = f"{found.templates} pod templates, {found.resources} resources outside of pods"
    said = f"{render_diagnostics(found.findings)}\n{validation_summary(lint_document(found))}\n({counted})\n"
    recorded = path.with_suffix(".txt")
    if request.config.getoption("--update", default=False):
        recorded.write_text(said)
    assert said == recorded.read_text()
    assert not found.is_right
