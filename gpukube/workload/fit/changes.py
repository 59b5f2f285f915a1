"""Pod specs with one change; the original is not modified.

Pure. In scope: changing a spec of any shape. Out of scope: which change to try (`edits`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from gpukube.core.jsontree import at, text, tree, trees
from gpukube.workload.fit.pods import REQUIRED
from gpukube.workload.quantity import cpu_text, memory_text, parse_quantity
from gpukube.workload.requests import pod_request

if TYPE_CHECKING:
    from fractions import Fraction

    from gpukube.core.jsontree import Tree
    from gpukube.core.values import Toleration

Change: TypeAlias = "Callable[[Tree], dict[str, object]]"

_PARTS: Final = ("containers", "initContainers")
_AMOUNTS: Final = ("requests", "limits")


def with_toleration(toleration: Toleration) -> Change:
    """Add a toleration."""
    written = {name: getattr(toleration, name) for name in ("key", "operator", "value", "effect")}
    return lambda spec: {**spec, "tolerations": [*trees(spec, "tolerations"), written]}


def with_label(key: str, value: str | None) -> Change:
    """Set a label in the nodeSelector; None removes it."""

    def change(spec: Tree) -> dict[str, object]:
        selector = tree(spec, "nodeSelector")
        selector.pop(key, None)
        return {**spec, "nodeSelector": selector if value is None else {**selector, key: value}}

    return change


def without_required(kind: str) -> Change:
    """Remove the required terms of an affinity: nodeAffinity, podAffinity, podAntiAffinity."""

    def change(spec: Tree) -> dict[str, object]:
        affinity = tree(spec, "affinity")
        one = {name: value for name, value in tree(affinity, kind).items() if name != REQUIRED}
        return {**spec, "affinity": {**affinity, kind: one}}

    return change


def with_soft_spread(key: str) -> Change:
    """Make a topology spread constraint soft."""

    def change(spec: Tree) -> dict[str, object]:
        constraints = trees(spec, "topologySpreadConstraints")
        soft = [
            {**item, "whenUnsatisfiable": "ScheduleAnyway"} if text(item, "topologyKey") == key else item
            for item in constraints
        ]
        return {**spec, "topologySpreadConstraints": soft}

    return change


def with_other_device(old: str, new: str) -> Change:
    """Request the same number of another device."""

    def change(spec: Tree) -> dict[str, object]:
        return _with_amounts(
            spec, lambda amounts: {new if name == old else name: value for name, value in amounts.items()}
        )

    return change


def lowered(spec: Tree, name: str, most: int) -> tuple[str, str, Change] | None:
    """Lower the largest request of a resource, so that the pod requests at most a given amount.

    Args:
        spec: Spec of a pod.
        name: Name of the resource.
        most: Maximum that the pod may request in total: millicores of CPU, bytes, devices.

    Returns:
        Container, new amount, and change; None if no single container can give up that much.
    """
    total, factor = _total(spec, name), 1000 if name == "cpu" else 1
    containers = trees(spec, "containers")
    own = [(_requested(item, name) * factor, index) for index, item in enumerate(containers)]
    largest, index = max(own, default=(0, 0))
    amount = int(largest) - max(total - most, 0)
    if amount <= 0 or total <= most:
        return None
    written = cpu_text(amount) if name == "cpu" else memory_text(amount) if name == "memory" else str(amount)

    def change(before: Tree) -> dict[str, object]:
        changed = trees(before, "containers")
        container = changed[index]
        resources = tree(container, "resources")
        for part in _AMOUNTS:
            # A limit above its own request may stay, but not one that serves as the request.
            alone = part == "limits" and at(resources, "requests", name) is not None and name in {"cpu", "memory"}
            if at(resources, part, name) is not None and not alone:
                resources[part] = {**tree(resources, part), name: written}
        changed[index] = {**container, "resources": resources}
        return {**before, "containers": changed}

    return text(containers[index], "name"), written, change


def _with_amounts(spec: Tree, change: Callable[[Mapping[str, object]], dict[str, object]]) -> dict[str, object]:
    changed = dict(spec)
    for part in _PARTS:
        if found := trees(spec, part):
            changed[part] = [
                {
                    **item,
                    "resources": {
                        name: change(value) if name in _AMOUNTS and isinstance(value, Mapping) else value
                        for name, value in tree(item, "resources").items()
                    },
                }
                for item in found
            ]
    return changed


def _total(spec: Tree, name: str) -> int:
    request = pod_request(spec)
    if name in {"cpu", "memory"}:
        return request.cpu if name == "cpu" else request.memory
    return request.devices.get(name, 0)


def _requested(container: Tree, name: str) -> Fraction | int:
    for part in _AMOUNTS:
        value = at(container, "resources", part, name)
        try:
            return parse_quantity(value)
        except ValueError:
            continue
    return 0
