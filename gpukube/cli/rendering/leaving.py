"""What is foreseen of a drain, in lines for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cli.rendering.lines import fact

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.cli.rendering.text import Line
    from gpukube.engine.documents.shapes.leaving import LeavingPart

_SHOWN: Final = 5
"""Lines of a kind, unless all are asked for."""


def leaving_lines(part: LeavingPart, *, indent: str, whole: bool) -> Iterator[Line]:
    """Show what the drain of a pool's nodes would meet.

    Args:
        part: What is foreseen.
        indent: Of each line.
        whole: Whether nothing is left out.
    """
    if not part["pods"]:
        return
    minutes = round(part["seconds"] / 60)
    budgets = f"; budgets make that take about {minutes} min" if minutes else ""
    yield fact("drain", f"{part['pods']} pod{'' if part['pods'] == 1 else 's'} leave{budgets}", indent=indent)
    blocked = [f"{pod['pod']} on {pod['node']} never leaves: {pod['why']}; {pod['fix']}" for pod in part["blocked"]]
    homeless = [f"{pod['pod']} cannot run on the new pool: {pod['why']}" for pod in part["homeless"]]
    needing = [f"{pod['pod']} leaves only with --allow-disruption: {pod['why']}" for pod in part["needing"]]
    pins = [
        f"{pin['object']}: {pin['field']} {pin['label']} names the old pool; use gpukube.io/pool"
        for pin in part["pins"]
    ]
    waiting = [f"{pod['pod']} waits: {pod['why']}" for pod in part["waiting"]]
    turns = [f"budget {turn['budget']}: {turn['pods']} pods, {turn['allowed']} at a time" for turn in part["turns"]]
    gangs = [
        f"{gang['name']} leaves together, {gang['pods']} pods{f': {note}' if (note := gang['note']) else ''}"
        for gang in part["gangs"]
    ]
    queues = [
        f"queue {queue['name']}: hold it before with {queue['hold']}; resume with {queue['resume']}"
        for queue in part["queues"]
    ]
    unread = [f"not read, something may be missing: {what}" for what in part["unread"]]
    for lines, style in (
        (blocked, "bold red"), (homeless, "bold red"), (needing, "yellow"), (pins, "yellow"), (waiting, "yellow"),
        (turns, ""), (gangs, ""), (queues, ""), (unread, "yellow"),
    ):  # fmt: skip
        yield from _few(lines, style, indent=indent, whole=whole)


def _few(lines: Sequence[str], style: str, *, indent: str, whole: bool) -> Iterator[Line]:
    shown = lines if whole else lines[:_SHOWN]
    yield from (fact("", line, style, indent=indent) for line in shown)
    if len(lines) > len(shown):
        yield fact("", f"... and {len(lines) - len(shown)} more like it (--verbose)", style, indent=indent)
