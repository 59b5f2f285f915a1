"""Human-readable parts of a plan: durations, quotas, drains, replacements, upgrades."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cli.rendering.lines import INDENT, fact, number
from gpukube.cli.rendering.prices import usd_range
from gpukube.cli.rendering.text import Hung, Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpukube.cli.rendering.text import Line
    from gpukube.engine.documents.shapes.plan import PoolPart
    from gpukube.engine.documents.shapes.plan_parts import (
        Duration,
        LeavingPart,
        Newer,
        Quota,
        ReplacementPart,
        Upgrades,
    )
    from gpukube.engine.documents.shapes.prices import PoolPricePart

_SHOWN: Final = 5
"""Lines of a kind that are shown without -v."""
_LEFT: Final = {
    "create": "{new} is created and its GPUs are verified; then {old} is drained and deleted",
    "prove": "next: verify the GPUs of {new}; then drain and delete {old}",
    "drain": "next: drain {old}; then delete it",
    "delete": "next: delete {old}, which is empty",
}


def duration_words(duration: Duration) -> str:
    """Return the approximate duration, its minimum and maximum, and the longest part."""
    least, most = duration["leastSeconds"], duration["mostSeconds"]
    between = f"{_minutes(least)} to {_minutes(most)} min"
    return f"about {_minutes((least + most) / 2)} min ({between}); most of it: {duration['longest']}"


def _minutes(seconds: float) -> int:
    return max(1, round(seconds / 60))


def quota_lines(quotas: Iterable[Quota]) -> Iterator[Line]:
    """Show needed, used, and limit of each quota, and why a figure is unknown."""
    for quota in quotas:
        known = [
            f"{name} {number(value)}"
            for name, value in (("used", quota["used"]), ("limit", quota["limit"]))
            if value is not None
        ]
        figures = ", ".join([f"needs {number(quota['needed'])}", *known])
        summary = f"{quota['name']}: {figures} {quota['unit']}"
        missing = "not checked" if not known else "used not checked" if quota["used"] is None else "limit not checked"
        why = f"; {missing}: {quota['unknown']}" if quota["unknown"] else ""
        yield Hung(Text("  quota      "), Text(f"{summary}{why}", style="yellow" if quota["short"] or why else ""))


def leaving_lines(part: LeavingPart, *, indent: str, whole: bool) -> Iterator[Line]:
    """Show the forecast for draining a pool's nodes.

    Args:
        part: The forecast.
        indent: Indent of each line.
        whole: Whether to show every line.
    """
    if not part["pods"]:
        return
    yield fact("drain", leaving_words(part), indent=indent)
    for lines, style in leaving_facts(part):
        yield from (fact("", line, style, indent=indent) for line in few(lines, whole=whole, more="(--verbose)"))


def leaving_words(part: LeavingPart) -> str:
    """Return how many pods leave, and how long disruption budgets delay that, or that it never ends."""
    minutes, blocked = round(part["seconds"] / 60), len(part["blocked"])
    budgets = f"; disruption budgets stretch this to about {minutes} min" if minutes else ""
    if blocked:
        budgets = f"; {blocked} of them never {'do so on their own' if blocked > 1 else 'does so on its own'}"
    return f"{part['pods']} pod{'' if part['pods'] == 1 else 's'} leave{budgets}"


def endless_words(name: str, part: LeavingPart | None, price: PoolPricePart | None = None) -> str:
    """Return what would end a drain that never ends on its own, and what two pools cost meanwhile; "" for others.

    Args:
        name: Name of the pool.
        part: The forecast.
        price: Price of the pool, if both pools run until the drain ends.
    """
    if part is None or not part["blocked"]:
        return ""
    fixes = dict.fromkeys(pod["fix"] for pod in part["blocked"])
    both = price["whileBothRun"] if price else None
    cost = f"; meanwhile both pools cost {usd_range(both)} USD/h" if both else ""
    return f"the drain of {name} will not end on its own; to end it, {'; '.join(few(list(fixes), more=''))}{cost}"


def leaving_facts(part: LeavingPart) -> list[tuple[list[str], str]]:
    """Return what keeps pods from leaving, by kind, most severe first, each kind with its style."""
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
        f"queue {queue['name']}: hold it first with {queue['hold']}; resume with {queue['resume']}"
        for queue in part["queues"]
    ]
    unread = [f"not read, so this list may be incomplete: {what}" for what in part["unread"]]
    return [
        (blocked, "bold red"), (homeless, "bold red"), (needing, "yellow"), (pins, "yellow"), (waiting, "yellow"),
        (turns, ""), (gangs, ""), (queues, ""), (unread, "yellow"),
    ]  # fmt: skip


def few(lines: Sequence[str], *, whole: bool = False, more: str) -> Iterator[str]:
    """Return the first lines of a kind, and count the rest and where they are."""
    shown = lines if whole else lines[:_SHOWN]
    yield from shown
    if len(lines) > len(shown):
        yield f"... and {len(lines) - len(shown)} more like it {more}"


def needs_words(pool: PoolPart) -> str:
    """Return the flags that apply needs; for a replacement both ways, if both are possible."""
    text = ", ".join(pool["needs"])
    found = pool["replacement"]
    return f"{text} or --replace recreate" if found and found["surge"] and not found["underWay"] else text


def replacement_lines(pool: PoolPart, *, indent: str) -> Iterator[Line]:
    """Describe the steps of a surge, or why it is impossible."""
    if found := pool["replacement"]:
        style = "yellow" if found["obstacles"] else ""
        yield from (fact("surge", text, style, indent=indent) for text in surge_facts(found))
        yield from (fact("", f"unknown: {text}", indent=indent) for text in found["unknown"])


def surge_facts(found: ReplacementPart) -> list[str]:
    """Describe the remaining steps of a surge, or everything that makes it impossible."""
    return [f"impossible: {obstacle['message']}" for obstacle in found["obstacles"]] or [surge_words(found)]


def surge_words(found: ReplacementPart) -> str:
    """Describe the remaining steps, and that two pools cost more than one."""
    left = _LEFT[found["step"]].format(new=found["newPool"], old=found["oldPool"])
    return f"{left} (you pay for both pools meanwhile)" if found["step"] != "delete" else left


def upgrade_lines(part: Upgrades, *, indent: str = INDENT) -> Iterator[Line]:
    """Show newer versions, and what an upgrade does to the nodes and their pods."""
    named = (("Kubernetes", part["kubernetes"]), ("image", part["image"]))
    newer = [f"{name} {one['live']} -> {one['available']}" for name, one in named if _is_newer(one)]
    how = "" if part["planned"] or part["obstacle"] else " (--upgrade)"
    if not newer:
        return
    yield fact("newer", ", ".join(newer) + how, indent=indent)
    if part["automatic"]:
        yield fact("", part["automatic"], indent=indent)
    if part["planned"]:
        yield fact("nodes", part["nodes"], indent=indent)
        unread = "; disruption budgets were not read" if part["blocked"] is None else ""
        yield fact("drain", f"{part['pods']}{unread}", indent=indent)


def _is_newer(one: Newer) -> bool:
    available = one["available"]
    return bool(available) and not f"{one['live']}.".startswith((f"{available}.", f"{available}-"))
