"""The tables of checks in the clouds' pages are those of their diagnoses: --update writes them anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpukube.doctor.checks.clouds import cloud_checks
from gpukube.provider import load_provider

DOCS = Path(__file__).parents[3] / "docs"
START, END = "<!-- doctor -->\n", "<!-- doctor: end -->"


def table(provider: str) -> str:
    lines = ["| Check | Looks for | Consequence |", "| --- | --- | --- |"]
    lines += [
        f"| [`{check.id}`]({check.link}) | {check.title} | {check.consequence} |"
        for check in cloud_checks(load_provider(provider))
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("provider", ["aks", "eks", "gke"])
def test_table_when_read_is_that_of_the_checks(provider: str, request: pytest.FixtureRequest) -> None:
    file = DOCS / f"{provider}.md"
    before, _, rest = file.read_text("utf-8").partition(START)
    shown, _, after = rest.partition(END)
    if request.config.getoption("--update", default=False):
        file.write_text(f"{before}{START}{table(provider)}{END}{after}", "utf-8")

    assert shown == table(provider)
