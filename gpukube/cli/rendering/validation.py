"""Human-readable summary of findings in specs and manifests: one line; the findings themselves go to stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.engine.documents.summary import validation_summary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.cli.rendering.view import View
    from gpukube.engine.documents.shapes.report import LintDocument, ValidationDocument


def render_validation(document: ValidationDocument | LintDocument, view: View) -> Iterator[str]:  # noqa: ARG001 - one line
    """Count the findings."""
    yield validation_summary(document)
