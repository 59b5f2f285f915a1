"""Converts a live pool to its form in a spec, with a comment on everything guessed or impossible to express.

Pure. In scope: which fields a person chose, and their paths in a spec. Out of scope: one cloud's defaults (its
provider's `chosen_fields`), the text of the spec, and whether its plan is empty (the engine).
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gpukube.core import fields as paths
from gpukube.core.owners.labels import ADVERTISER_LABEL, CONFIG_LABEL, MIG_CONFIG_LABEL, PRESENT_LABEL
from gpukube.core.resolve import GPU_TAINT
from gpukube.core.values import MARKS, RELEASED_LABEL, Taint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.fields import FieldPath
    from gpukube.core.values import ClusterFacts, Observed

_OWN_LABELS: Final = (*MARKS, RELEASED_LABEL, ADVERTISER_LABEL)
_OF_SHARING: Final = (CONFIG_LABEL, MIG_CONFIG_LABEL, PRESENT_LABEL)
"""Labels that follow from `sharing` if a release of gpukube serves the pool."""
_GPU_TAINT_KEY: Final = "nvidia.com/gpu"
_SPEC_PATHS: Final[Mapping[FieldPath, tuple[str, ...]]] = {
    paths.DRIVER: ("driver", "owner"),
    paths.PLUGIN: ("devicePlugin", "owner"),
}
"""Fields that have another path in a spec."""


@dataclass(frozen=True, slots=True)
class ImportedPool:
    """A live pool in the form of a spec.

    Attributes:
        data: The pool as in a spec, without its clusters.
        comments: Sentences on what was guessed, omitted, or impossible to express.
    """

    data: Mapping[str, object]
    comments: tuple[str, ...]

    def with_fields(self, fields: Mapping[FieldPath, object]) -> ImportedPool:
        """Return a copy with additional fields."""
        draft = _Draft(deepcopy(dict(self.data)))
        for path, value in fields.items():
            draft.put(_SPEC_PATHS.get(path, path), value)
        return ImportedPool(_ordered(draft.data), self.comments)

    def without(self, key: str) -> ImportedPool:
        """Return a copy without a key."""
        return ImportedPool({name: value for name, value in self.data.items() if name != key}, self.comments)


@dataclass(slots=True)
class _Draft:
    data: dict[str, object]
    comments: list[str] = field(default_factory=list)

    def put(self, path: Sequence[str], value: object) -> None:
        """Set a value at a path of the spec."""
        node = self.data
        for step in path[:-1]:
            below = node.setdefault(step, {})
            node = below if isinstance(below, dict) else node
        node[path[-1]] = list(value) if isinstance(value, tuple) else value


def import_pool(
    observed: Observed, chosen: Mapping[FieldPath, object], facts: ClusterFacts, *, served: bool
) -> ImportedPool:
    """Return a live pool in the form of a spec.

    Args:
        observed: The pool.
        chosen: The fields that a person chose (Provider.chosen_fields).
        facts: Facts about its cluster.
        served: Whether a release of gpukube, or the cloud, advertises the devices of its nodes.
    """
    draft = _Draft({"name": observed.name})
    for path, value in chosen.items():
        if not _is_implied(path, value, facts, served=served):
            draft.put(_SPEC_PATHS.get(path, path), _amount(path, value))
    _write_taints(draft, observed)
    if not served:
        draft.put(("devicePlugin", "owner"), "none")
    return ImportedPool(_ordered(draft.data), tuple(draft.comments))


def _amount(path: FieldPath, value: object) -> object:
    """Return an upgrade amount as in a spec, a number or a percentage; compared fields contain text."""
    is_number = path.is_below("upgrade") and isinstance(value, str) and value.isdecimal()
    return int(str(value)) if is_number else value


def _is_implied(path: FieldPath, value: object, facts: ClusterFacts, *, served: bool) -> bool:
    """Return whether a field is omitted from the spec: marks, defaults, and values that follow from other fields."""
    if path == paths.KUBERNETES_VERSION:
        return _is_same_version(str(value), facts.kubernetes_version)
    if path == paths.PROTECTION:
        return value is False
    if path.is_below("labels"):
        return path.key in _OWN_LABELS or (served and path.key in _OF_SHARING)
    return path in (paths.TAINTS, paths.PLUGIN, paths.GPU) or path.is_below("nodes", "autoscaling", "resources")


def _is_same_version(nodes: str, cluster: str) -> bool:
    """Return whether nodes have the cluster's version; clouds write it with or without patch and build."""
    return f"{cluster}.".startswith(f"{nodes}.") or nodes.startswith((f"{cluster}-", f"{cluster}."))


def _write_taints(draft: _Draft, observed: Observed) -> None:
    """Add the taints in the pool's API; those that the cloud adds automatically are not a field."""
    written = observed.fields.get(paths.TAINTS)
    taints = [Taint.parse(str(text)) for text in written] if isinstance(written, tuple | list) else []
    if GPU_TAINT in taints or GPU_TAINT in observed.effective_taints:
        taints = [taint for taint in taints if taint != GPU_TAINT]
    else:
        draft.put(("gpuTaint",), value=False)
        others = [str(taint) for taint in taints if taint.key == _GPU_TAINT_KEY]
        draft.comments.append(
            f"its GPU taint is {others[0]}, another than gpukube's {GPU_TAINT}"
            if others
            else f"its nodes have no taint {GPU_TAINT}: pods that request no GPU may run on them"
        )
    if taints:
        draft.put(("taints",), [_taint_data(taint) for taint in taints])


def _taint_data(taint: Taint) -> dict[str, str]:
    data = {"key": taint.key, "value": taint.value, "effect": taint.effect}
    return {key: value for key, value in data.items() if value}


_ORDER: Final = (
    "name",
    "clusters",
    "instanceType",
    "instanceTypes",
    "gpu",
    "nodes",
    "capacity",
    "sharing",
    "zones",
    "disk",
    "image",
)


def _ordered(data: Mapping[str, object]) -> dict[str, object]:
    """Return the keys in reading order."""
    return {key: data[key] for key in (*(first for first in _ORDER if first in data), *sorted({*data} - {*_ORDER}))}
