"""What is foreseen of a drain, in lines for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cli.rendering.lines import fact
from gpukube.cli.rendering.prices import usd_range

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.cli.rendering.text import Line
    from gpukube.engine.documents.shapes.drain_forecast import LeavingPart
    from gpukube.engine.documents.shapes.prices import PoolPricePart

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
    yield fact("drain", leaving_words(part), indent=indent)
    for lines, style in leaving_facts(part):
        yield from (fact("", line, style, indent=indent) for line in few(lines, whole=whole, more="(--verbose)"))


def leaving_words(part: LeavingPart) -> str:
    """Say how many pods leave, and how long disruption budgets make that; nothing of that where there is no end."""
    minutes, blocked = round(part["seconds"] / 60), len(part["blocked"])
    budgets = f"; budgets make that take about {minutes} min" if minutes else ""
    if blocked:
        budgets = f"; {blocked} of them never {'does by itself' if blocked == 1 else 'do by themselves'}"
    return f"{part['pods']} pod{'' if part['pods'] == 1 else 's'} leave{budgets}"


def endless_words(name: str, part: LeavingPart | None, price: PoolPricePart | None = None) -> str:
    """Say of a drain that does not end by itself what would end it, and what two pools cost meanwhile; "" of others.

    Args:
        name: The pool's.
        part: What is foreseen.
        price: Where both pools run until it ends.
    """
    if part is None or not part["blocked"]:
        return ""
    fixes = dict.fromkeys(pod["fix"] for pod in part["blocked"])
    both = price["whileBothRun"] if price else None
    cost = f"; meanwhile both pools cost {usd_range(both)} USD/h" if both else ""
    return f"the drain of {name} will not end by itself; to end it, {'; '.join(few(list(fixes), more=''))}{cost}"


def leaving_facts(part: LeavingPart) -> list[tuple[list[str], str]]:
    """List what keeps pods, by kind, the worst first, each kind with its style."""
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
    return [
        (blocked, "bold red"), (homeless, "bold red"), (needing, "yellow"), (pins, "yellow"), (waiting, "yellow"),
        (turns, ""), (gangs, ""), (queues, ""), (unread, "yellow"),
    ]  # fmt: skip


def few(lines: Sequence[str], *, whole: bool = False, more: str) -> Iterator[str]:
    """Give the first lines of a kind, and say how many more there are, and where."""
    shown = lines if whole else lines[:_SHOWN]
    yield from shown
    if len(lines) > len(shown):
        yield f"... and {len(lines) - len(shown)} more like it {more}"
