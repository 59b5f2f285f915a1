"""What is newer for a live pool, for people: a line where nothing is done about it, the consequences where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.cli.rendering.lines import INDENT, fact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.cli.rendering.text import Line
    from gpukube.engine.documents.shapes.upgrades import Newer, Upgrades


def upgrade_lines(part: Upgrades, *, indent: str = INDENT) -> Iterator[Line]:
    """Show what is newer, and of an upgrade what it does to the nodes and to the pods on them."""
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
        unread = "; budgets were not read" if part["blocked"] is None else ""
        yield fact("drain", f"{part['pods']}{unread}", indent=indent)


def _is_newer(one: Newer) -> bool:
    available = one["available"]
    return bool(available) and not f"{one['live']}.".startswith((f"{available}.", f"{available}-"))
