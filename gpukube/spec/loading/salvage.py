"""Extracts the checkable part of a pool or cluster that does not match its model.

In scope: removing invalid values, or replacing them with harmless ones, until the rest is valid. Out of scope: messages
about them (messages), rules (rules.fields).

An invalid value is unknown, but the others are checked anyway, so that one run finds all mistakes. Removed values are
listed by path, and no rule may conclude anything from their absence. List items keep their positions, because later
messages name them by index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import ValidationError

from gpukube.spec.clusters import CLOUDS
from gpukube.spec.loading.messages import path_of
from gpukube.spec.model import Pool, SpecModel

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gpukube.spec.source.positions import Path, Positions

M = TypeVar("M", bound=SpecModel)

_MOST_ROUNDS: Final = 30
_STAND_INS: Final[Mapping[type[SpecModel], Mapping[Path, object]]] = {
    Pool: {
        ("name",): "unknown",
        ("gpu", "model"): "unknown",
        ("gpu", "count"): 1,
        ("disk", "sizeGiB"): 256,
        ("sharing", "timeSlicing", "replicas"): 2,
        ("sharing", "mps", "replicas"): 2,
        ("taints",): {"key": "unknown", "effect": "NoSchedule"},
        ("taints", "key"): "unknown",
        ("taints", "effect"): "NoSchedule",
        ("silence", "reason"): "unknown",
    },
    **{cloud.cluster: {(key,): text for key, text in cloud.stand_ins.items()} for cloud in CLOUDS.values()},
}
"""Model -> path without indices -> placeholder for a required value that is unknown."""


def salvage(model: type[M], data: object, positions: Positions) -> tuple[M | None, frozenset[Path]]:
    """Return a model of the valid part of some data.

    Args:
        model: The model.
        data: Data that does not match it.
        positions: Positions of the data.

    Returns:
        The model, and the paths of invalid values; None if too little is left.
    """
    rest = _copied(data)
    unknown: set[Path] = set()
    for _ in range(_MOST_ROUNDS):
        try:
            return model.model_validate(rest), frozenset(unknown)
        except ValidationError as error:
            details = error.errors(include_url=False)
        for detail in details:
            path = path_of(detail, positions)[0]
            if not path or not isinstance(rest, dict):
                return None, frozenset(unknown)
            unknown.add(path)
            _take_out(rest, path, _STAND_INS.get(model, {}))
    return None, frozenset(unknown)


def _take_out(rest: object, path: Path, stand_ins: Mapping[Path, object]) -> None:
    """Remove the value at a path, or its parent if the value is missing; required values get a placeholder."""
    plain = tuple(step for step in path if isinstance(step, str))
    holder, last = _follow(rest, path[:-1]), path[-1]
    if isinstance(holder, dict) and plain in stand_ins:
        holder[str(last)] = stand_ins[plain]
    elif isinstance(holder, list) and isinstance(last, int) and last < len(holder):
        value = holder[last]
        holder[last] = stand_ins.get(plain, str(value) if isinstance(value, str | int | float) else "unknown")
    elif isinstance(holder, dict) and last in holder:
        del holder[str(last)]
    elif len(path) > 1:
        _take_out(rest, path[:-1], stand_ins)


def _follow(node: object, path: Collection[str | int]) -> object:
    for step in path:
        if isinstance(node, dict):
            node = node.get(step)
        elif isinstance(node, list) and isinstance(step, int) and step < len(node):
            node = node[step]
        else:
            return None
    return node


def _copied(node: object) -> object:
    if isinstance(node, dict):
        return {key: _copied(value) for key, value in node.items()}
    return [_copied(item) for item in node] if isinstance(node, list) else node
