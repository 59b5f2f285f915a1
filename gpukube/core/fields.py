"""Paths of the comparable fields of a pool: ("nodes", "count"), ("labels", "team"), ("gke", "config", "tags").

In scope: the path, its text, and the paths that more than one room needs. Out of scope: what a field means on a
cloud (its provider), places in a file (spec.positions).

A path is compared and looked into as a tuple. Its text stands in messages and documents, and is read back only from
documents: keys of labels and tags have dots and slashes of their own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

_MAPS: Final = (("labels",), ("tags",), ("nodes", "autoscaling", "resources"))
"""Paths whose next step is a key that somebody chose, written in brackets: labels[team]."""


class FieldPath(tuple[str, ...]):
    """A path by its steps: `FieldPath("disk", "type")`; `str()` is the text for people and documents."""

    __slots__ = ()

    def __new__(cls, *steps: str) -> Self:
        """Make a path of its steps."""
        return super().__new__(cls, steps)

    def __getnewargs__(self) -> tuple[str, ...]:
        """Return what a copy is made with: steps, as `__new__` takes them."""
        return tuple(self)

    def __str__(self) -> str:
        """Render as disk.type or labels[team]."""
        return text_of(self)

    def __repr__(self) -> str:
        """Render the text, for failures of tests."""
        return f"<{self}>"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str()` writes."""
        head, bracket, key = text.partition("[")
        return cls(*head.split("."), *([key.removesuffix("]")] if bracket else []))

    def is_below(self, *above: str) -> bool:
        """Whether a path begins with these steps; a path is below itself."""
        return self[: len(above)] == above

    @property
    def key(self) -> str:
        """The last step: of labels[team] the label."""
        return self[-1]


@lru_cache(maxsize=1024)  # fields are sorted by their texts in every pool, and most are those of the pool before
def text_of(path: tuple[str, ...]) -> str:
    """Return the text of a path: what `str()` gives, and a key to sort by that needs no call of Python's."""
    above = path[:-1]
    return f"{'.'.join(above)}[{path[-1]}]" if above in _MAPS else ".".join(path)


INSTANCE_TYPE: Final = FieldPath("instanceType")
GPU: Final = FieldPath("gpu")
"""Attached GPUs and their number, "1 x nvidia-tesla-t4"."""
COUNT: Final = FieldPath("nodes", "count")
LEAST: Final = FieldPath("nodes", "autoscaling", "min")
MOST: Final = FieldPath("nodes", "autoscaling", "max")
SCOPE: Final = FieldPath("nodes", "autoscaling", "scope")
CAPACITY_TYPE: Final = FieldPath("capacity", "type")
ZONES: Final = FieldPath("zones")
DISK_SIZE: Final = FieldPath("disk", "sizeGiB")
DISK_TYPE: Final = FieldPath("disk", "type")
IMAGE: Final = FieldPath("image")
KUBERNETES_VERSION: Final = FieldPath("kubernetesVersion")
"""Field of the nodes' version. All clouds patch nodes of a minor version by themselves, and AKS does not upgrade where
the minor version alone is asked for (SDK, AgentPool.orchestratorVersion)."""
MAX_SURGE: Final = FieldPath("upgrade", "maxSurge")
MAX_UNAVAILABLE: Final = FieldPath("upgrade", "maxUnavailable")
MAX_PODS: Final = FieldPath("maxPodsPerNode")
MIG_PROFILE: Final = FieldPath("sharing", "mig", "profile")
TAINTS: Final = FieldPath("taints")
PROTECTION: Final = FieldPath("deletionProtection")
DRIVER: Final = FieldPath("driver")
"""Who installs the driver: "cloud" or "none"."""
DRIVER_VERSION: Final = FieldPath("driver", "version")
PLUGIN: Final = FieldPath("devicePlugin")
"""Who runs the device plugin: "cloud" or "none"."""


def label(key: str) -> FieldPath:
    """Return the path of a node label."""
    return FieldPath("labels", key)


def tag(key: str) -> FieldPath:
    """Return the path of a tag."""
    return FieldPath("tags", key)


def known(fields: Mapping[FieldPath, object]) -> dict[FieldPath, object]:
    """Return the fields that have a value, in the order of their texts."""
    return {path: fields[path] for path in sorted(fields, key=text_of) if fields[path] is not None}
