"""Human-readable report: every pool with its outcome, cause, fix, and the command that resumes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cli.rendering.lines import change_lines, device_words, finding_lines
from gpukube.cli.rendering.text import Hung, Text
from gpukube.cli.rendering.words import toleration_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.cli.rendering.text import Line
    from gpukube.cli.rendering.view import View
    from gpukube.engine.documents.shapes.report import (
        Check,
        PoolOutcome,
        Probe,
        Proof,
        ReportDocument,
    )

OUTCOME_STYLES: Final = {
    "done": "green",
    "unchanged": "green",
    "started": "cyan",
    "unknown": "yellow",
    "differs": "yellow",
    "failed": "red",
    "not-attempted": "yellow",
}


PROBE_STYLES: Final = {"passed": ("=", "green"), "failed": ("!", "red"), "skipped": ("-", "yellow")}


def render_report(document: ReportDocument, view: View) -> Iterator[Line]:
    """Show the outcome of every pool: done, failed with cause and fix, not attempted; then the counts."""
    for cluster in document["clusters"]:
        if cluster["error"]:
            yield from finding_lines(cluster["error"])
        if cluster["release"]:
            yield Hung(Text(f"{cluster['cluster']}  "), Text(cluster["release"], style="dim"))
        for pool in cluster["pools"]:
            yield from _pool(cluster["cluster"], pool, view)
    # Usually one command resumes all of them.
    for command in dict.fromkeys(pool["resume"] for cluster in document["clusters"] for pool in cluster["pools"]):
        if command:
            yield Hung(Text("to resume: "), Text(command))
    if sum(document["summary"].values()) > 1:
        yield Hung(Text(""), Text(f"{document['kind'].lower()}: {outcome_words(document)}", style="bold"))


def outcome_words(document: ReportDocument) -> str:
    """Count the outcomes."""
    counts = (f"{count} {outcome.replace('-', ' ')}" for outcome, count in document["summary"].items())
    return ", ".join(counts) or "nothing to do"


def _pool(cluster: str, pool: PoolOutcome, view: View) -> Iterator[Line]:
    outcome = pool["outcome"]
    head = Text.assemble((f"{outcome:<13}", OUTCOME_STYLES[outcome]), " ")
    yield Hung(head, Text(f"{cluster}/{pool['pool']}  {pool['message']}"))
    for change in pool["changes"]:
        yield from change_lines(change, indent="    ")
    if pool["proof"]:
        yield from _proof(pool["proof"], view, told=bool(pool["error"]))
    if pool["tolerations"]:
        yield Hung(Text("    "), Text("pods need these in their spec; nothing adds them:"))
        yield from (Hung(Text("      "), Text(line)) for line in toleration_lines(pool["tolerations"]))
    if pool["error"]:
        yield from finding_lines(pool["error"], indent="    ")


def _proof(proof: Proof, view: View, *, told: bool) -> Iterator[Line]:
    """Show what the nodes have; the error of the pool may already tell what its fast network lacks."""
    if proof["status"] in ("proven", "empty", "unmanaged", "no-fabric"):
        yield Hung(Text("    "), Text(proof["summary"]))
    for finding in proof["findings"]:
        if finding["weight"] == "note" and not (told and finding["step"] == "fabric"):
            yield Hung(Text("    "), Text(f"note: {finding['seen']}"))
            yield from (
                Hung(Text(f"        {word}: "), Text(text))
                for word, text in (("why", finding["means"]), ("fix", finding["fix"]))
                if text
            )
    for node in proof["nodes"]:
        right = all(node["allocatable"].get(name) == count for name, count in node["expected"].items())
        sign, style = ("=", "green") if right else ("!", "red")
        yield Hung(
            Text.assemble("    ", (sign, style), " "), Text(f"node {node['node']}  {device_words(node['allocatable'])}")
        )
        if not right:
            yield Hung(Text("      "), Text(f"expected {device_words(node['expected'])}"))
        for finding in node["findings"]:
            short = finding["step"] == "fabric" and not right  # the line above shows it
            if view.verbose or (finding["weight"] == "note" and not short):
                yield Hung(Text("      "), Text(f"{finding['weight']}: {finding['seen']}"))
        for check in node["checks"]:
            if view.verbose or not check["holds"]:
                yield Hung(Text("      "), Text(check_words(check)))
    if proof["probe"]:
        yield from _probe(proof["probe"])


def check_words(check: Check) -> str:
    """Describe what was compared and its value, and the expected value if that differs."""
    seen = f"{check['what']}: {check['seen'] or 'absent'}"
    return seen if check["holds"] else f"{seen}, not {check['expected'] or 'absent'}"


def _probe(probe: Probe) -> Iterator[Line]:
    sign, style = PROBE_STYLES[probe["status"]]
    yield Hung(Text.assemble("    ", (sign, style), " "), Text(f"probe {probe['status']}: {probe['says']}"))
    for line in probe["output"]:
        yield Hung(Text("      | "), Text(line, style="dim"))
