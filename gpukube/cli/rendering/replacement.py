"""Lines on how a pool is replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cli.rendering.lines import fact

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.cli.rendering.text import Line
    from gpukube.engine.documents.shapes.plan import PoolPart
    from gpukube.engine.documents.shapes.replacement import ReplacementPart

_LEFT: Final = {
    "create": "{new} is created and its GPUs are verified; then {old} is drained and deleted",
    "prove": "next: verify the GPUs of {new}; then drain and delete {old}",
    "drain": "next: drain {old}; then delete it",
    "delete": "next: delete {old}, which is empty",
}


def needs_words(pool: PoolPart) -> str:
    """Name the flags that an apply needs; of a replace both ways, where both are open."""
    text = ", ".join(pool["needs"])
    found = pool["replacement"]
    return f"{text} or --replace recreate" if found and found["surge"] and not found["underWay"] else text


def replacement_lines(pool: PoolPart, *, indent: str) -> Iterator[Line]:
    """Say what a surge would do, in which order, or why there can be none."""
    if found := pool["replacement"]:
        style = "yellow" if found["obstacles"] else ""
        yield from (fact("surge", text, style, indent=indent) for text in surge_facts(found))
        yield from (fact("", f"not known: {text}", indent=indent) for text in found["unknown"])


def surge_facts(found: ReplacementPart) -> list[str]:
    """Say what is left to do of a surge, or everything that makes it impossible."""
    return [f"impossible: {obstacle['message']}" for obstacle in found["obstacles"]] or [surge_words(found)]


def surge_words(found: ReplacementPart) -> str:
    """Say what is left to do, and that two pools cost more than one."""
    left = _LEFT[found["step"]].format(new=found["newPool"], old=found["oldPool"])
    return f"{left} (both pools run, and cost, meanwhile)" if found["step"] != "delete" else left
