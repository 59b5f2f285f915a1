"""Devices that drivers of Dynamic Resource Allocation publish: those of live slices, and those that a pool will have.

Pure. In scope: a device as selectors and constraints see it, the pools of devices of a node. Out of scope: which are
free (`fit.nodes`), claims (`claims`).

Source: kubernetes/api resource/v1 types.go; kubernetes/dynamic-resource-allocation cel/compile.go and
structured/internal/stable/pools_stable.go; kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1
cmd/gpu-kubelet-plugin/deviceinfo.go.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import at, number, text, texts, tree, trees
from gpukube.gpu.claims import DRIVER, GPU_CLASS, mig_devices
from gpukube.gpu.sharing import cut_instances
from gpukube.workload.cel.evaluation import evaluate
from gpukube.workload.cel.syntax import CelSyntaxError, parse_cel
from gpukube.workload.cel.values import (
    UNKNOWN,
    BeyondSubset,
    CelError,
    Domains,
    Partial,
    Quantity,
    Semver,
    Unnamed,
    parse_semver,
    quantity,
)
from gpukube.workload.selectors import matches_term

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from gpukube.core.jsontree import Tree
    from gpukube.core.values import Desired

_OF_BUS: Final = "resource.kubernetes.io"
_ONLY_MIG: Final = frozenset({"profile", "parentUUID"})
_ARCHITECTURES: Final = {
    (3, 7): "Kepler", (6, 0): "Pascal", (6, 1): "Pascal", (7, 0): "Volta", (7, 5): "Turing", (8, 0): "Ampere",
    (8, 6): "Ampere", (8, 9): "Ada Lovelace", (9, 0): "Hopper", (10, 0): "Blackwell", (10, 3): "Blackwell",
    (12, 0): "Blackwell",
}  # fmt: skip
"""Compute capability -> architecture (developer.nvidia.com/cuda-gpus; names of NVML in NVIDIA/go-nvlib device.go)."""
_LEAST_VISIBLE: Final = Fraction(9, 10)
"""Share of the nominal memory that NVML shows at least: ECC takes a sixteenth on some models."""


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """A device; two are the same only if they are the same object.

    Attributes:
        key: Driver, pool, and name.
        attributes: Full name -> value; UNKNOWN for one that only the node shows.
        capacity: Full name -> quantity.
        taints: Taints, of all effects.
        is_open: Whether it may have attributes and capacity that are not known.
        absent: Names that its driver does not use for it.
        beyond: Why nobody can say what becomes of it, "partitions"; "" for an ordinary device.
    """

    key: tuple[str, str, str]
    attributes: Mapping[str, object]
    capacity: Mapping[str, Quantity] = field(default_factory=dict)
    taints: tuple[Tree, ...] = ()
    is_open: bool = False
    absent: frozenset[str] = frozenset()
    beyond: str = ""
    _seen: dict[str, bool | Exception] = field(default_factory=dict)

    @property
    def driver(self) -> str:
        """Name of its driver."""
        return self.key[0]

    def attribute(self, name: str) -> object:
        """Return an attribute by its full name; None if it has none.

        Raises:
            BeyondSubset: Only the node shows it.
        """
        domain, _, short = name.partition("/")
        if name not in self.attributes and self.is_open and domain in (DRIVER, _OF_BUS) and short not in self.absent:
            raise BeyondSubset(f"{name}, which only the node shows")
        value = self.attributes.get(name)
        if value is UNKNOWN:
            raise BeyondSubset(f"{name}, which only the node shows")
        return value

    def matches(self, expression: str) -> bool:
        """Evaluate the expression of a selector.

        Raises:
            CelError: It fails, or is none.
            BeyondSubset: The result is unknown.
        """
        if expression not in self._seen:
            try:
                self._seen[expression] = self._evaluate(expression)
            except (CelError, BeyondSubset) as problem:
                self._seen[expression] = problem
        seen = self._seen[expression]
        if isinstance(seen, Exception):
            raise seen
        return seen

    def _evaluate(self, expression: str) -> bool:
        try:
            parsed = parse_cel(expression)
        except CelSyntaxError as problem:
            raise CelError(str(problem)) from None
        device = Partial(
            {
                "driver": self.driver,
                "attributes": self._domains(self.attributes),
                "capacity": self._domains(self.capacity),
                "allowMultipleAllocations": False,
            }
        )
        value = evaluate(parsed, {"device": device})
        if not isinstance(value, bool):
            raise CelError("the result is not a boolean")
        return value

    def _domains(self, values: Mapping[str, object]) -> Domains:
        found: dict[str, dict[str, object]] = {DRIVER: {}, _OF_BUS: {}} if self.is_open else {}
        for name, value in values.items():
            domain, _, short = name.partition("/")
            found.setdefault(domain, {})[short] = value
        return Domains({name: Partial(part, self.is_open, self.absent) for name, part in found.items()})


@dataclass(frozen=True, slots=True)
class Published:
    """What drivers publish for one node.

    Attributes:
        devices: Devices of complete pools, in the order in which the scheduler tries them.
        incomplete: Pools with missing slices: the scheduler waits for the rest.
        wrong: Pools with two devices of one name.
    """

    devices: tuple[Device, ...] = ()
    incomplete: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    def free(self, taken: Collection[tuple[str, str, str]]) -> dict[str, int]:
        """Count GPUs and MIG devices that are not taken, by the names that plans use."""
        named = [(name, device.key in taken) for device in self.devices if (name := _plan_name(device))]
        free = Counter(name for name, gone in named if not gone)
        return {name: free[name] for name in sorted({name for name, _ in named})}


def _plan_name(device: Device) -> str:
    kind, profile = (device.attributes.get(f"{DRIVER}/{name}") for name in ("type", "profile"))
    if device.driver != DRIVER:
        return ""
    return {"gpu": GPU_CLASS, "mig": mig_devices(str(profile))}.get(str(kind), "")


NOTHING: Final = Published()


def published_by_node(nodes: Mapping[str, Mapping[str, str]], slices: Iterable[Tree]) -> dict[str, Published]:
    """Return what the slices of a cluster publish for each node.

    Args:
        nodes: Name -> labels.
        slices: ResourceSlices of all drivers.
    """
    by_pool: dict[tuple[str, str], list[Tree]] = {}
    for item in slices:
        named = text(item, "spec", "driver"), text(item, "spec", "pool", "name")
        by_pool.setdefault(named, []).append(item)
    found: dict[str, _Found] = defaultdict(_Found)
    for (driver, name), members in sorted(by_pool.items()):
        newest = max(number(item, "spec", "pool", "generation") for item in members)
        current = [item for item in members if number(item, "spec", "pool", "generation") == newest]
        for node in _candidates(current, nodes):
            labels = nodes[node]
            near = [item for item in current if _reaches(tree(item, "spec"), node, labels)]
            bodies = [
                (body, bool(at(item, "spec", "perDeviceNodeSelection")))
                for item in sorted(near, key=lambda one: text(one, "metadata", "name"))
                for body in trees(item, "spec", "devices")
            ]
            if near and len(current) != number(near[0], "spec", "pool", "resourceSliceCount"):
                found[node].incomplete.append(name)
            elif len({text(body, "name") for body, _ in bodies}) < len(bodies):
                found[node].wrong.append(name)
            else:
                found[node].devices += [
                    _read_device(body, driver, name) for body, own in bodies if not own or _selects(body, node, labels)
                ]
    return {
        node: Published(tuple(its.devices), tuple(its.incomplete), tuple(its.wrong))
        for node, its in ((node, found[node]) for node in nodes)
    }


@dataclass(slots=True)
class _Found:
    """What is found for a node, pool by pool; see Published."""

    devices: list[Device] = field(default_factory=list)
    incomplete: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def _candidates(slices: Sequence[Tree], nodes: Mapping[str, object]) -> Iterable[str]:
    """Return the nodes that slices of one pool may reach: mostly the one that they name."""
    named = [text(item, "spec", "nodeName") for item in slices]
    return [node for node in dict.fromkeys(named) if node in nodes] if all(named) else nodes


def _reaches(spec: Tree, node: str, labels: Mapping[str, str]) -> bool:
    if at(spec, "perDeviceNodeSelection"):
        return any(_selects(device, node, labels) for device in trees(spec, "devices"))
    return _selects(spec, node, labels)


def _selects(place: Tree, node: str, labels: Mapping[str, str]) -> bool:
    if named := text(place, "nodeName"):
        return named == node
    terms = trees(place, "nodeSelector", "nodeSelectorTerms")
    return bool(at(place, "allNodes")) or any(matches_term(term, labels, node) for term in terms)


def _read_device(body: Tree, driver: str, pool: str) -> Device:
    beyond = ""
    if at(body, "consumesCounters"):
        beyond = "partitions that are made when a pod starts"
    elif at(body, "allowMultipleAllocations"):
        beyond = "a device that several claims share"
    elif at(body, "bindingConditions"):
        beyond = "a device that is attached to the node later"
    return Device(
        key=(driver, pool, text(body, "name")),
        attributes={_full(name, driver): _value(value) for name, value in tree(body, "attributes").items()},
        capacity={
            _full(name, driver): quantity(text(value, "value")) for name, value in tree(body, "capacity").items()
        },
        taints=tuple(trees(body, "taints")),
        beyond=beyond,
    )


def _full(name: str, driver: str) -> str:
    return name if "/" in name else f"{driver}/{name}"


def _value(value: object) -> object:
    found = tree(value)
    if "version" in found:
        return parse_semver(text(found, "version"))
    return next((found[kind] for kind in ("string", "int", "bool") if kind in found), UNKNOWN)


def devices_of(desired: Desired) -> tuple[Device, ...]:
    """Return the devices that a node of a DRA pool will publish, with what the catalog knows of them.

    Raises:
        CatalogError: The model does not support MIG, or not this profile.
    """
    return tuple(_devices(desired))


def _devices(desired: Desired) -> Iterator[Device]:
    target = desired.target
    model, cut = target.machine.model, target.sharing.mig
    instances = cut_instances(model, cut) if cut else {}
    common: dict[str, object] = {
        "productName": UNKNOWN,
        "cudaComputeCapability": Semver((*model.compute_capability, 0)),
        **({"architecture": known} if (known := _ARCHITECTURES.get(model.compute_capability)) else {}),
    }
    whole = Quantity(model.memory_gb * 10**9 * _LEAST_VISIBLE, Fraction(model.memory_gb * 2**30))
    serial = 0
    for minor in range(target.machine.devices):
        if not instances:
            own: dict[str, object] = {"type": "gpu", "uuid": Unnamed(minor)}
            yield _made(f"gpu-{minor}", {**own, **common}, {"memory": whole}, _ONLY_MIG)
        for profile, count in instances.items():
            size = Quantity(profile.memory_gb * 10**9 * _LEAST_VISIBLE, Fraction(profile.memory_gb * 2**30))
            for _ in range(count):
                serial += 1
                own = {
                    "type": "mig",
                    "profile": profile.name,
                    "uuid": Unnamed(-serial),
                    "parentUUID": Unnamed(minor),
                }
                yield _made(f"gpu-{minor}-mig-{serial}", {**own, **common}, {"memory": size}, frozenset())


def _made(
    name: str, attributes: Mapping[str, object], capacity: Mapping[str, Quantity], absent: frozenset[str]
) -> Device:
    return Device(
        key=(DRIVER, "", name),
        attributes={f"{DRIVER}/{key}": value for key, value in attributes.items()},
        capacity={f"{DRIVER}/{key}": value for key, value in capacity.items()},
        is_open=True,
        absent=absent,
    )


def keeps_off(taint: Tree, tolerations: Sequence[Tree]) -> bool:
    """Return whether a device's taint keeps off a request with these tolerations."""
    if text(taint, "effect") not in {"NoSchedule", "NoExecute"}:
        return False
    return not any(_tolerates(texts(one), texts(taint)) for one in tolerations)


def _tolerates(toleration: Mapping[str, str], taint: Mapping[str, str]) -> bool:
    if any(toleration.get(part) and toleration[part] != taint.get(part) for part in ("effect", "key")):
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")
