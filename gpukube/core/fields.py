"""Paths of the comparable fields of a pool: ("nodes", "count"), ("labels", "team"), ("gke", "config", "tags").

In scope: the path, its text, and the paths that several packages need. Out of scope: what a field means on a cloud
(its provider), positions in a file (spec.positions).

Code compares and inspects a path as a tuple. Messages and documents contain its text, which is parsed only from
documents, because keys of labels and tags may contain dots and slashes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

_MAPS: Final = (("labels",), ("tags",), ("sysctls",), ("nodes", "autoscaling", "resources"))
"""Paths whose next step is a user-defined key, written in brackets: labels[team]."""


class FieldPath(tuple[str, ...]):
    """A path as its steps: `FieldPath("disk", "type")`; `str()` returns the text for messages and documents."""

    __slots__ = ()

    def __new__(cls, *steps: str) -> Self:
        """Create a path from its steps."""
        return super().__new__(cls, steps)

    def __getnewargs__(self) -> tuple[str, ...]:
        """Return the arguments of `__new__` for copies: the steps."""
        return tuple(self)

    def __str__(self) -> str:
        """Return the text: disk.type or labels[team]."""
        return text_of(self)

    def __repr__(self) -> str:
        """Return the text, for test failures."""
        return f"<{self}>"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the output of `str()`."""
        head, bracket, key = text.partition("[")
        return cls(*head.split("."), *([key.removesuffix("]")] if bracket else []))

    def is_below(self, *above: str) -> bool:
        """Return whether the path starts with these steps; a path is below itself."""
        return self[: len(above)] == above

    @property
    def key(self) -> str:
        """Last step: the label key of labels[team]."""
        return self[-1]


@lru_cache(maxsize=1024)  # every pool sorts its fields by text, and most pools have the same fields
def text_of(path: tuple[str, ...]) -> str:
    """Return the text of a path, the same as `str()`; a faster sort key, because it avoids a Python-level call."""
    above = path[:-1]
    return f"{'.'.join(above)}[{path[-1]}]" if above in _MAPS else ".".join(path)


INSTANCE_TYPE: Final = FieldPath("instanceType")
INSTANCE_TYPES: Final = FieldPath("instanceTypes")
"""Instance types after the first, of a pool that has several."""
GPU: Final = FieldPath("gpu")
"""Number and model of attached GPUs, "1 x nvidia-tesla-t4"."""
COUNT: Final = FieldPath("nodes", "count")
LEAST: Final = FieldPath("nodes", "autoscaling", "min")
MOST: Final = FieldPath("nodes", "autoscaling", "max")
SCOPE: Final = FieldPath("nodes", "autoscaling", "scope")
CAPACITY_TYPE: Final = FieldPath("capacity", "type")
ZONES: Final = FieldPath("zones")
DISK_SIZE: Final = FieldPath("disk", "sizeGiB")
DISK_TYPE: Final = FieldPath("disk", "type")
DISK_IOPS: Final = FieldPath("disk", "iops")
DISK_THROUGHPUT: Final = FieldPath("disk", "throughput")
DISK_ENCRYPTED: Final = FieldPath("disk", "encrypted")
DISK_KMS_KEY: Final = FieldPath("disk", "kmsKey")
HIGH_SPEED: Final = FieldPath("network", "highSpeed")
PLACEMENT: Final = FieldPath("placement")
LOCAL_STORAGE: Final = FieldPath("localStorage")
CONFIDENTIAL: Final = FieldPath("confidential")
IMAGE: Final = FieldPath("image")
KUBERNETES_VERSION: Final = FieldPath("kubernetesVersion")
"""Kubernetes version of the nodes. All clouds patch nodes within a minor version automatically, and AKS does not
upgrade if only the minor version is requested (SDK, AgentPool.orchestratorVersion)."""
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


def kubelet(name: str) -> FieldPath:
    """Return the path of a setting of the kubelet."""
    return FieldPath("kubelet", name)


def sysctl(name: str) -> FieldPath:
    """Return the path of a kernel parameter."""
    return FieldPath("sysctls", name)


def hugepages(size: str) -> FieldPath:
    """Return the path of the number of huge pages of a size: 2Mi or 1Gi."""
    return FieldPath("hugepages", size)


def tag(key: str) -> FieldPath:
    """Return the path of a tag."""
    return FieldPath("tags", key)


def known(fields: Mapping[FieldPath, object]) -> dict[FieldPath, object]:
    """Return the fields that have a value, sorted by their texts."""
    return {path: fields[path] for path in sorted(fields, key=text_of) if fields[path] is not None}
