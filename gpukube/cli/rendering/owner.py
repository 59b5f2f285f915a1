"""Human-readable explanation of who owns driver and device plugin."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from gpukube.cli.rendering.text import Hung, Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.cli.rendering.text import Line
    from gpukube.engine.documents.shapes.explanation import Alternative, OwnerDocument, OwnerPart

_NAMES: Final = {
    "chart": "the device-plugin chart",
    "operator": "the GPU Operator",
    "cloud": "the cloud",
    "dra": "NVIDIA's DRA driver",
    "none": "neither gpukube nor the cloud",
}
_DRIVERS: Final = {
    "cloud": "the nodes have the driver",
    "operator": "the GPU Operator installs the driver too",
    "none": "you install the driver",
}


def render_owners(document: OwnerDocument, *, sources: bool) -> Iterator[Line]:
    """Show the answer, then its reasons, the settings it leads to, and the alternatives.

    Args:
        document: The explanation.
        sources: Add the public source of each fact and row.
    """
    for part in document["pools"]:
        yield Text.assemble((f"{part['cluster']}/{part['pool']}", "bold"), "  ", (_answer(part), ""))
        yield from _reasons(part, sources=sources)
        yield from _settings(part)
        yield from _refusals(part)
        yield Text("  with another devicePlugin.owner", style="bold")
        for other in part["alternatives"]:
            yield from _alternative(other)
        yield ""


def _answer(part: OwnerPart) -> str:
    if part["devicePlugin"] is None:
        return "refused"
    return f"advertised by {_NAMES[part['devicePlugin']]}; {_DRIVERS[part['driver'] or 'none']}"


def _reasons(part: OwnerPart, *, sources: bool) -> Iterator[Line]:
    yield _line("why", part["reason"])
    yield Text("  facts", style="bold")
    for fact in part["facts"]:
        yield _line(fact["fact"], fact["value"] + (f" [{fact['source']}]" if sources else ""))
    yield Text("  rules", style="bold")
    for row in part["rows"]:
        yield _line(row["table"], f"{row['row']}: {row['says']}" + (f" [{row['source']}]" if sources else ""))


def _settings(part: OwnerPart) -> Iterator[Line]:
    if part["settings"]:
        yield Text("  sets", style="bold")
    for setting in part["settings"]:
        why = f"  ({setting['why']})" if setting["kind"] == "label" else ""
        value = setting["value"]
        shown = value if isinstance(value, str) and "\n" not in value else json.dumps(value)
        yield _line(setting["kind"], f"{setting['name']} = {shown}{why}")


def _refusals(part: OwnerPart) -> Iterator[Line]:
    if part["refusals"]:
        yield Text("  refused", style="bold red")
    for refusal in part["refusals"]:
        yield _line(refusal["code"], refusal["message"])
        if refusal["why"]:
            yield _line("", f"why: {refusal['why']}")
        yield _line("", f"fix: {refusal['fix']}")


def _alternative(other: Alternative) -> Iterator[Line]:
    if other["devicePlugin"] is None:
        yield _line(other["asked"], f"refused: {other['says']}")
        yield _line("", f"fix: {other['fix']}")
    else:
        yield _line(other["asked"], f"{_NAMES[other['devicePlugin']]}: {other['says']}")


def _line(name: str, value: str) -> Line:
    return Hung(Text(f"    {name:<10}  "), Text(value))
