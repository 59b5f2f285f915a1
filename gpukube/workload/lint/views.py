"""The inputs of rules: a pod with its containers, a Ray cluster with its groups.

Pure. In scope: reading manifests of any shape. Out of scope: finding problems in them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import at
from gpukube.spec.source.positions import PositionedDict, PositionedList
from gpukube.workload.fit.pods import REQUIRED
from gpukube.workload.quantity import parse_quantity
from gpukube.workload.requests import is_extended, pod_request, requested_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.errors import Where
    from gpukube.spec.source.positions import Data, Path, Positions
    from gpukube.workload.manifests import Manifest
    from gpukube.workload.requests import Request
    from gpukube.workload.templates import PodTemplate, Requirements

GPU: Final = "nvidia.com/gpu"
MIG: Final = "nvidia.com/mig-"
SHARED: Final = ".shared"
NOTHING: Final = Fraction()

_GPU_NAME: Final = re.compile(r"nvidia\.com/(gpus?|mig).*|[^/]+/[^/]*gpu", re.IGNORECASE)
_EMPTY: Final[Mapping[str, Data]] = {}


@lru_cache(maxsize=1024)
def is_gpu(name: str) -> bool:
    """Return whether a resource is a GPU, a part of one, or meant as one."""
    return is_extended(name) and _GPU_NAME.fullmatch(name) is not None


def mapping(value: object) -> Mapping[str, Data]:
    """Return a mapping; an empty one for anything else."""
    return value if isinstance(value, PositionedDict) else _EMPTY


def sequence(value: object) -> Sequence[Data]:
    """Return a list; an empty one for anything else."""
    return value if isinstance(value, PositionedList) else ()


def text(value: object) -> str:
    """Return a string; an empty one for anything else."""
    return value if isinstance(value, str) else ""


def amount(value: object) -> Fraction | None:
    """Return a quantity; None for anything else."""
    try:
        return parse_quantity(value)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Container:
    """A container of a pod.

    Attributes:
        path: Path in the pod's spec.
        data: Content, as written.
        order: Index in its list.
        is_init: Whether it is one of the initContainers.
        is_sidecar: Whether it is an init container that keeps running.
        field: Its field with limits and requests; differs only outside of pods.
    """

    path: Path
    data: PositionedDict
    order: int
    is_init: bool = False
    is_sidecar: bool = False
    field: str = "resources"

    def __str__(self) -> str:
        """Return the name for messages; outside of pods the field."""
        return f"container {self.name}" if self.path else self.field

    @property
    def name(self) -> str:
        """Its name; if missing, its path."""
        return text(self.data.get("name")) or f"{self.path[0]}[{self.order}]"

    @property
    def image(self) -> str:
        """Its image; "" if missing."""
        return text(self.data.get("image"))

    @property
    def resources(self) -> Mapping[str, Data]:
        """Resources, as written."""
        return mapping(self.data.get(self.field))

    @property
    def limits(self) -> Mapping[str, Data]:
        """Limits, as written."""
        return mapping(self.resources.get("limits"))

    @property
    def requests(self) -> Mapping[str, Data]:
        """Requests, as written."""
        return mapping(self.resources.get("requests"))

    @property
    def is_misplaced(self) -> bool:
        """Whether it has resources where the API server ignores them (gpu-misplaced)."""
        return any(name in self.data for name in ("limits", "requests")) or any(
            is_extended(name) or name in ("cpu", "memory") for name in self.resources
        )

    @property
    def mentions_gpu(self) -> bool:
        """Whether it names a GPU anywhere in its resources, correctly or not, or claims DRA devices."""
        return (
            self.is_misplaced
            or "claims" in self.resources
            or any("gpu" in name.lower() for name in (*self.limits, *self.requests))
        )

    @property
    def gpus(self) -> dict[str, Fraction]:
        """Requested GPU resources with their amounts, none of them 0."""
        found = {name: amount(value) or NOTHING for name, value in {**self.limits, **self.requests}.items()}
        return {name: count for name, count in sorted(found.items()) if count > 0 and is_gpu(name)}

    def has(self, resource: str) -> bool:
        """Return whether it requests a resource, possibly by its limit."""
        return resource in self.limits or resource in self.requests

    def environment(self) -> Iterator[tuple[int, str, Data]]:
        """Yield its environment variables: index, name, value."""
        for index, variable in enumerate(sequence(self.data.get("env"))):
            if name := text(mapping(variable).get("name")):
                yield index, name, mapping(variable).get("value")


class Pod:
    """A pod template as the rules see it.

    Args:
        template: Template of any role.
    """

    def __init__(self, template: PodTemplate) -> None:
        self.template = template
        self.manifest = template.manifest
        self.spec = template.spec
        self.base: Path = template.base

    def __str__(self) -> str:
        """Return the name for messages."""
        return str(self.template)

    def at(self, *path: str | int) -> Where:
        """Return the position of a value in its spec, or of the nearest enclosing one that exists."""
        return self.manifest.positions.at((*self.base, *path))

    def key_at(self, *path: str | int) -> Where:
        """Return the position of a key in its spec."""
        return self.manifest.positions.key_at((*self.base, *path))

    @cached_property
    def containers(self) -> tuple[Container, ...]:
        """All containers, init containers first."""
        return tuple(self._containers())

    @property
    def apps(self) -> tuple[Container, ...]:
        """Containers that run together: main containers and sidecars."""
        return tuple(one for one in self.containers if one.is_sidecar or not one.is_init)

    @cached_property
    def request(self) -> Request:
        """Total requests."""
        return pod_request(self.spec)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Extended resources that it names."""
        return requested_names(self.spec)

    @cached_property
    def gpus(self) -> dict[str, int]:
        """Total requested GPU resources."""
        return {name: count for name, count in self.request.devices.items() if is_gpu(name)}

    @cached_property
    def required_labels(self) -> tuple[tuple[str, str, Path], ...]:
        """Required node labels: label, value ("" for several or any), and path in the spec."""
        selector = mapping(self.spec.get("nodeSelector"))
        found: list[tuple[str, str, Path]] = [
            (key, text(value), ("nodeSelector", key)) for key, value in selector.items()
        ]
        above: Path = ("affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")
        terms = at(self.spec, *above) if "affinity" in self.spec else ()
        for number, term in enumerate(sequence(terms)):
            for index, item in enumerate(sequence(mapping(term).get("matchExpressions"))):
                requirement = mapping(item)
                key, values = text(requirement.get("key")), sequence(requirement.get("values"))
                if key and requirement.get("operator") in ("In", "Exists"):
                    only = text(values[0]) if len(values) == 1 else ""
                    found.append((key, only, (*above, number, "matchExpressions", index, "key")))
        return tuple(found)

    def label_at(self, path: Path) -> Where:
        """Return the position of a required label, by its path in `required_labels`."""
        return self.key_at(*path) if path[0] == "nodeSelector" else self.at(*path)

    def place_of(self, resource: str) -> Where:
        """Return the position of the first key that names a resource."""
        for container in self.containers:
            for part, named in (("limits", container.limits), ("requests", container.requests)):
                if resource in named:
                    return self.key_at(*container.path, "resources", part, resource)
        return self.at()

    def _containers(self) -> Iterator[Container]:
        for part in ("initContainers", "containers"):
            for index, data in enumerate(sequence(self.spec.get(part))):
                if isinstance(data, PositionedDict):
                    init = part == "initContainers"
                    yield Container((part, index), data, index, init, init and data.get("restartPolicy") == "Always")


class Loose:
    """Limits and requests outside of pods, presented to container rules as one container.

    Args:
        found: The limits and requests.
    """

    def __init__(self, found: Requirements) -> None:
        self.manifest = found.manifest
        self.base = found.path
        self.containers = (Container((), found.holder, 0, field=found.field),)

    def at(self, *path: str | int) -> Where:
        """Return the position of a value, or of the nearest enclosing one that exists."""
        return self.manifest.positions.at((*self.base, *path))

    def key_at(self, *path: str | int) -> Where:
        """Return the position of a key."""
        return self.manifest.positions.key_at((*self.base, *path))


@dataclass(frozen=True, slots=True)
class RayGroup:
    """The head or a worker group.

    Attributes:
        cluster: Cluster of the group.
        path: Path in the object.
        data: Content, as written.
        is_head: Whether it is the head.
        pod: Its pod template; None if missing.
    """

    cluster: RayCluster
    path: Path
    data: PositionedDict
    is_head: bool
    pod: Pod | None

    def __str__(self) -> str:
        """Return the name for messages."""
        return "the head group" if self.is_head else f"group {self.name or self.path[-1]}"

    @property
    def name(self) -> str:
        """Name of a worker group."""
        return text(self.data.get("groupName"))

    @property
    def parameters(self) -> Mapping[str, Data]:
        """Its rayStartParams."""
        return mapping(self.data.get("rayStartParams"))

    @property
    def resources(self) -> Mapping[str, Data]:
        """Its logical resources."""
        return mapping(self.data.get("resources"))

    @property
    def container(self) -> Container | None:
        """The container that runs Ray: the first (RayContainerIndex in KubeRay's utils/constant.go)."""
        apps = [one for one in self.pod.containers if not one.is_init] if self.pod else []
        return apps[0] if apps and apps[0].order == 0 else None

    @property
    def gpus(self) -> dict[str, Fraction]:
        """GPU resources of its Ray container."""
        return self.container.gpus if self.container else {}

    def at(self, *path: str | int) -> Where:
        """Return the position of a value, or of the nearest enclosing one that exists."""
        return self.cluster.manifest.positions.at((*self.path, *path))

    def key_at(self, *path: str | int) -> Where:
        """Return the position of a key."""
        return self.cluster.manifest.positions.key_at((*self.path, *path))

    def count(self, field: str) -> int | None:
        """Return an integer field; None for anything else."""
        found = self.data.get(field)
        return found if type(found) is int else None


class RayCluster:
    """A Ray cluster, in any KubeRay object.

    Args:
        manifest: The object.
        path: Path of the cluster's spec in it.
        pods: Pods of the object.
    """

    def __init__(self, manifest: Manifest, path: Path, pods: Sequence[Pod]) -> None:
        self.manifest = manifest
        self.path = path
        found = manifest.positions.within(path).root
        self.spec = mapping(found)
        of_path = {pod.template.path: pod for pod in pods}
        self.groups = tuple(self._groups(of_path))

    @property
    def positions(self) -> Positions:
        """Positions in its spec."""
        return self.manifest.positions.within(self.path)

    @property
    def workers(self) -> tuple[RayGroup, ...]:
        """Its worker groups."""
        return tuple(group for group in self.groups if not group.is_head)

    @property
    def autoscaled(self) -> bool:
        """Whether Ray's autoscaler runs."""
        return self.spec.get("enableInTreeAutoscaling") is True

    @property
    def is_v2(self) -> bool:
        """Whether the operator recognizes version 2 of the autoscaler."""
        if mapping(self.spec.get("autoscalerOptions")).get("version") == "v2":
            return True
        head = next((group.container for group in self.groups if group.is_head), None)
        found = [value for _, name, value in head.environment() if name == "RAY_enable_autoscaler_v2"] if head else []
        return bool(found) and found[0] in ("1", "true")

    def _groups(self, pods: Mapping[Path, Pod]) -> Iterator[RayGroup]:
        head = self.spec.get("headGroupSpec")
        if isinstance(head, PositionedDict):
            path: Path = (*self.path, "headGroupSpec")
            yield RayGroup(self, path, head, is_head=True, pod=pods.get((*path, "template")))
        for index, group in enumerate(sequence(self.spec.get("workerGroupSpecs"))):
            if isinstance(group, PositionedDict):
                path = (*self.path, "workerGroupSpecs", index)
                yield RayGroup(self, path, group, is_head=False, pod=pods.get((*path, "template")))
