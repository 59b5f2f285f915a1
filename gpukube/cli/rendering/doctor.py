"""Human-readable results of the doctor: every finding with its evidence, consequence, and fix."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from gpukube.cli.rendering.lines import finding_lines, plural
from gpukube.cli.rendering.text import Hung, Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.cli.rendering.text import Line
    from gpukube.cli.rendering.view import View
    from gpukube.engine.documents.shapes.doctor import AilmentPart, DoctorDocument, PatientPart

MOST_OF_A_CHECK: Final = 5
"""Findings of one check that are shown per cluster without -v."""
_STYLES: Final = {"error": "red", "warning": "yellow"}


def render_doctor(document: DoctorDocument, view: View) -> Iterator[Line]:
    """Show the findings of every cluster, then the counts."""
    for cluster in document["clusters"]:
        yield Hung(Text(f"{cluster['cluster']}  "), Text(f"{plural(cluster['made'], 'check')} run", style="dim"))
        for line in cluster["mended"]:
            yield Hung(Text.assemble("  ", ("fixed", "green"), "  "), Text(line))
        yield from finding_lines(cluster["unmended"])
        yield from _findings(cluster["ailments"], view)
        yield from _unread(cluster, view)
    yield Hung(Text(""), Text(f"doctor: {doctor_words(document)}", style="bold"))


def doctor_words(document: DoctorDocument) -> str:
    """Count the findings, and note if something could not be read."""
    counts = ", ".join(plural(count, severity) for severity, count in document["summary"].items())
    unread = any(cluster["errors"] for cluster in document["clusters"])
    return (counts or "no problems found") + (", but not everything could be read" if unread else "")


def _findings(findings: Sequence[AilmentPart], view: View) -> Iterator[Line]:
    """Show the first findings of each check, and count the rest: often a whole pool has the same problem."""
    shown = Counter[str]()
    for finding in findings:
        shown[finding["check"]] += 1
        if view.verbose or shown[finding["check"]] <= MOST_OF_A_CHECK:
            yield from _finding(finding, view)
    for check, count in shown.items():
        if count > MOST_OF_A_CHECK and not view.verbose:
            yield Hung(Text("  "), Text(f"and {count - MOST_OF_A_CHECK} more of {check} (-v shows all)", style="dim"))


def _finding(finding: AilmentPart, view: View) -> Iterator[Line]:
    label = (f"{finding['severity']}[{finding['check']}]", _STYLES[finding["severity"]])
    yield Hung(Text("  "), Text.assemble(f"{finding['where']}: ", label, f": {finding['seen']}"))
    for line in finding["evidence"]:
        yield Hung(Text("      observed: "), Text(line, style="dim"))
    facts = [("why", finding["consequence"]), ("fix", finding["remedy"]), ("--fix", finding["fix"] or "")]
    if finding["rule"]:
        facts.append(("rule", f"{finding['rule']} of gpukube workload lint, which reports it in manifests"))
    if view.verbose:
        facts.append(("see", finding["link"]))
    for name, text in facts:
        if text:
            yield Hung(Text(f"      {name}: "), Text(text))


def _unread(cluster: PatientPart, view: View) -> Iterator[Line]:
    if not cluster["made"] or view.verbose:  # otherwise the checks of access report them
        yield from finding_lines(cluster["errors"])
    if cluster["skipped"]:
        names = ", ".join(item["check"] for item in cluster["skipped"])
        text = f"{plural(len(cluster['skipped']), 'check')} skipped as a result"
        yield Hung(Text("  "), Text(text + (f": {names}" if view.verbose else " (-v lists them)"), style="yellow"))
