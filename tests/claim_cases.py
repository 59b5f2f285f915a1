"""Cases of device claims: nodes, their slices, classes, claims and pods, as plain data.

Slices are as NVIDIA's DRA driver writes them. What becomes of the pods is not written here: a real kube-scheduler
decides it (tests/wire/cluster/test_real_claims.py), and everything that predicts it is compared with that.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Json = dict[str, Any]

DRIVER: Final = "gpu.nvidia.com"
WHOLE, MIG = "gpu.nvidia.com", "mig.nvidia.com"
PARENT: Final = "gpu.nvidia.com/parentUUID"
ROOT: Final = "resource.kubernetes.io/pcieRoot"
HOST: Final = "kubernetes.io/hostname"
FAMILIES: Final = ("count", "profile", "attribute", "match", "first", "impossible")
GPU_TAINT: Final = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
XID: Final = {"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule"}
GPU: Final = "device.attributes['gpu.nvidia.com']"
MEMORY: Final = "device.capacity['gpu.nvidia.com'].memory"


@dataclass(frozen=True)
class ClaimCase:
    """Pods that are created one after the other in a cluster.

    Attributes:
        name: Unique.
        family: One of FAMILIES, "extended" or "generated".
        nodes: Node objects.
        slices: ResourceSlices.
        classes: DeviceClasses.
        claims: ResourceClaims and ResourceClaimTemplates, by their kind.
        pods: Pods, in their order.
    """

    name: str
    family: str
    nodes: tuple[Json, ...]
    slices: tuple[Json, ...]
    classes: tuple[Json, ...]
    claims: tuple[Json, ...]
    pods: tuple[Json, ...]


# hardware


@dataclass(frozen=True)
class Model:
    """A GPU: how the driver describes it, and the MIG profiles that the cases use."""

    product: str
    architecture: str
    compute: str
    memory: str
    profiles: tuple[str, ...] = ()


A100: Final = Model("NVIDIA A100-SXM4-40GB", "Ampere", "8.0.0", "40Gi", ("1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb"))
H100: Final = Model("NVIDIA H100 80GB HBM3", "Hopper", "9.0.0", "81559Mi", ("1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb"))
L4: Final = Model("NVIDIA L4", "Ada Lovelace", "8.9.0", "23034Mi")
T4: Final = Model("Tesla T4", "Turing", "7.5.0", "15360Mi")

_PARTS: Final = {  # slices of compute -> GPU instance profile, memory slices, multiprocessors
    "1g": ("19", 1, 14), "2g": ("14", 2, 28), "3g": ("9", 4, 42), "7g": ("0", 8, 98),
}  # fmt: skip
_PART_MEMORY: Final = {
    "1g.5gb": "4864Mi", "2g.10gb": "9984Mi", "3g.20gb": "19968Mi", "7g.40gb": "40192Mi",
    "1g.10gb": "9856Mi", "2g.20gb": "20096Mi", "3g.40gb": "40448Mi", "7g.80gb": "81152Mi",
}  # fmt: skip


def _attributes(model: Model, node: str, minor: int) -> Json:
    strings = {"productName": model.product, "brand": "Nvidia", "architecture": model.architecture}
    versions = {"cudaComputeCapability": model.compute, "driverVersion": "580.126.20", "cudaDriverVersion": "13.0.0"}
    bus = {
        "resource.kubernetes.io/pciBusID": f"0000:{minor + 7:02x}:00.0",
        ROOT: f"pci0000:{node[-1]}{minor // 2}",
    }
    return {
        **{name: {"string": value} for name, value in (strings | bus).items()},
        **{name: {"version": value} for name, value in versions.items()},
    }


def uuid_of(node: str, minor: int) -> str:
    """The UUID of a GPU."""
    return f"GPU-{node}-{minor}"


def whole(model: Model, node: str, minor: int, **more: Any) -> Json:  # noqa: ANN401 - fields of a device
    """A GPU that is not partitioned."""
    named = {"type": {"string": "gpu"}, "uuid": {"string": uuid_of(node, minor)}}
    return {
        "name": f"gpu-{minor}",
        "attributes": {**named, **_attributes(model, node, minor)},
        "capacity": {"memory": {"value": model.memory}},
        **more,
    }


def parts(model: Model, node: str, minor: int, profiles: Sequence[str], **more: Any) -> list[Json]:  # noqa: ANN401 - fields of a device
    """The MIG devices of one GPU."""
    found, start = [], 0
    for profile in profiles:
        number, size, processors = _PARTS[profile.partition(".")[0]]
        own = {
            "type": "mig",
            "profile": profile,
            "uuid": f"MIG-{node}-{minor}-{start}",
            "parentUUID": uuid_of(node, minor),
        }
        slots = {f"memorySlice{slot}": {"value": "1"} for slot in range(start, start + size)}
        amounts = {"memory": {"value": _PART_MEMORY[profile]}, "multiprocessors": {"value": str(processors)}}
        found.append(
            {
                "name": f"gpu-{minor}-mig-{profile.replace('.', '')}-{number}-{start}",
                "attributes": {
                    **{name: {"string": value} for name, value in own.items()},
                    **_attributes(model, node, minor),
                },
                "capacity": amounts | slots,
                **more,
            }
        )
        start += size
    return found


def node_of(name: str) -> Json:
    """A node with room for many pods."""
    room = {"cpu": "96", "memory": "960Gi", "pods": "110", "ephemeral-storage": "500Gi"}
    status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    marks = {HOST: name, "nvidia.com/gpu.present": "true"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": marks},
        "spec": {"taints": [GPU_TAINT]},
        "status": status,
    }


def slice_of(  # noqa: PLR0913 -- what the pool of a slice says, by name
    node: str,
    devices: Iterable[Json],
    *,
    driver: str = DRIVER,
    generation: int = 1,
    of: int = 1,
    number: int = 0,
) -> Json:
    """A slice of a node's pool; `of` slices make it complete."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{driver}-{generation}{number}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": generation, "resourceSliceCount": of},
            "devices": list(devices),
        },
    }


def class_of(name: str, *expressions: str, **more: Any) -> Json:  # noqa: ANN401 - fields of a class
    """A DeviceClass."""
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": selectors, **more},
    }


CLASSES: Final = (
    class_of(WHOLE, f"device.driver == '{DRIVER}' && {GPU}.type == 'gpu'"),
    class_of(MIG, f"device.driver == '{DRIVER}' && {GPU}.type == 'mig'"),
    class_of("all.example.com"),
    class_of("dra.net", "device.driver == 'dra.net'"),
)

Cluster = tuple[tuple[Json, ...], tuple[Json, ...]]
"""Nodes and their slices."""


def gpus(name: str, model: Model, count: int) -> Cluster:
    """A node of whole GPUs."""
    devices = [whole(model, name, minor) for minor in range(count)]
    return (node_of(name),), (slice_of(name, devices),)


def partitioned(name: str, model: Model, *layouts: Sequence[str]) -> Cluster:
    """A node whose GPUs are partitioned; a GPU with an empty layout is whole."""
    devices: list[Json] = []
    for minor, layout in enumerate(layouts):
        devices += parts(model, name, minor, layout) if layout else [whole(model, name, minor)]
    return (node_of(name),), (slice_of(name, devices),)


def together(*clusters: Cluster) -> Cluster:
    """The nodes of several clusters in one."""
    return tuple(node for nodes, _ in clusters for node in nodes), tuple(
        found for _, slices in clusters for found in slices
    )


# claims


def ask(name: str = "gpu", kind: str = WHOLE, count: int | str = 1, *, where: str | Sequence[str] = (),
        **more: Any) -> Json:  # noqa: ANN401 - fields of a request  # fmt: skip
    """A request for devices of a class; a count of "All" asks for all of them."""
    return {"name": name, "exactly": _devices(kind, count, where, more)}


def either(name: str, *choices: Json) -> Json:
    """A request for the first of several choices that there is."""
    return {"name": name, "firstAvailable": list(choices)}


def choice(name: str, kind: str = WHOLE, count: int | str = 1, *, where: str | Sequence[str] = (),
           **more: Any) -> Json:  # noqa: ANN401 - fields of a request  # fmt: skip
    """One of the choices of a request."""
    return {"name": name, **_devices(kind, count, where, more)}


def _devices(kind: str, count: int | str, where: str | Sequence[str], more: Json) -> Json:
    expressions = [where] if isinstance(where, str) else where
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    amount = {"allocationMode": "All"} if count == "All" else {"allocationMode": "ExactCount", "count": count}
    return {"deviceClassName": kind, **amount, **({"selectors": selectors} if selectors else {}), **more}


def slices_of_profile(profile: str, count: int | str = 1, name: str = "mig", **more: Any) -> Json:  # noqa: ANN401 - fields of a request
    """A request for MIG devices of a profile."""
    return ask(name, MIG, count, where=f"{GPU}.profile == '{profile}'", **more)


def devices(*requests: Json, same: str = "", distinct: str = "", among: Sequence[str] = ()) -> Json:
    """The spec of a claim; all devices, or those of the requests `among`, share an attribute's value, or none does."""
    rules = [{"matchAttribute": same}] if same else []
    rules += [{"distinctAttribute": distinct}] if distinct else []
    constraints = [{**rule, **({"requests": list(among)} if among else {})} for rule in rules]
    return {"devices": {"requests": list(requests), **({"constraints": constraints} if constraints else {})}}


def case(
    family: str, name: str, cluster: Cluster, *specs: Json, classes: Sequence[Json] = CLASSES, copies: int = 1
) -> ClaimCase:
    """A case with a template and `copies` pods for each spec of a claim."""
    templates, pods = [], []
    for number, spec in enumerate(specs):
        template = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": f"template-{number}"},
            "spec": {"spec": spec},
        }
        templates.append(template)
        pods += [pod(f"pod-{number}-{copy}", gpu=template) for copy in range(copies)]
    return ClaimCase(name, family, *cluster, tuple(classes), tuple(templates), tuple(pods))


def claim_of(name: str, spec: Json) -> Json:
    """A claim that several pods may share."""
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}, "spec": spec}


def pod(pod_name: str, *, on: str = "", tolerated: bool = True, **claims: Json) -> Json:
    """A pod whose one container uses all its claims: objects of ResourceClaims or ResourceClaimTemplates."""
    references = []
    for name, held in claims.items():
        key = "resourceClaimName" if held["kind"] == "ResourceClaim" else "resourceClaimTemplateName"
        references.append({"name": name, key: held["metadata"]["name"]})
    container = {
        "name": "main",
        "image": "ubuntu:24.04",
        "resources": {"claims": [{"name": name} for name in claims], "requests": {"cpu": "100m"}},
    }
    tolerations = [{"key": GPU_TAINT["key"], "operator": "Exists", "effect": "NoSchedule"}] if tolerated else []
    spec = {
        "containers": [container],
        "resourceClaims": references,
        "tolerations": tolerations,
        **({"nodeSelector": {HOST: on}} if on else {}),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod_name}, "spec": spec}


# the families

ONE_A100: Final = gpus("node-1", A100, 1)
EIGHT: Final = gpus("node-1", H100, 8)
SEVENTHS: Final = ("1g.5gb",) * 7
MIXED: Final = partitioned("node-1", A100, ("3g.20gb", "2g.10gb", "1g.5gb"), ("3g.20gb", "2g.10gb", "1g.5gb"))
TWO_KINDS: Final = together(gpus("node-1", A100, 2), gpus("node-2", H100, 2))
FOUR_KINDS: Final = together(
    gpus("node-1", A100, 1), gpus("node-2", H100, 1), gpus("node-3", L4, 1), gpus("node-4", T4, 1)
)


def _counts() -> list[ClaimCase]:
    half = devices(ask(count=4))
    shared = claim_of("shared", devices(ask()))
    sharing = {
        "opaque": {"driver": DRIVER, "parameters": {"kind": "GpuConfig", "sharing": {"strategy": "TimeSlicing"}}}
    }
    tuned = class_of("tuned.example.com", f"device.driver == '{DRIVER}'", config=[sharing])
    configured = devices(ask("a", "tuned.example.com"), ask("b"), either("c", choice("d", "tuned.example.com")))
    configured["devices"]["config"] = [sharing, {"requests": ["b"], **sharing}, {"requests": ["c/d"], **sharing}]
    split = (
        (node_of("node-1"),),
        (
            slice_of("node-1", [whole(H100, "node-1", 0)], of=2, number=0),
            slice_of("node-1", [whole(H100, "node-1", 1)], of=2, number=1),
        ),
    )
    newer = (
        (node_of("node-1"),),
        (
            slice_of("node-1", [whole(H100, "node-1", minor) for minor in range(4)], generation=1),
            slice_of("node-1", [whole(H100, "node-1", minor) for minor in range(2)], generation=2),
        ),
    )
    two = together(gpus("node-1", H100, 1), gpus("node-2", H100, 4))
    tolerated = [{"key": XID["key"], "operator": "Exists", "effect": "NoSchedule"}]
    sick = ((node_of("node-1"),), (slice_of("node-1", [whole(H100, "node-1", 0, taints=[XID])]),))
    warned = (
        (node_of("node-1"),),
        (slice_of("node-1", [whole(H100, "node-1", 0, taints=[{**XID, "effect": "None"}])]),),
    )
    return [
        case("count", "one of one", ONE_A100, devices(ask())),
        case("count", "two pods for one", ONE_A100, devices(ask()), copies=2),
        case("count", "eight of eight", EIGHT, devices(ask(count=8))),
        case("count", "nine pods for eight", EIGHT, devices(ask()), copies=9),
        case("count", "four, four and one more", EIGHT, half, half, devices(ask())),
        case("count", "all", EIGHT, devices(ask(count="All"))),
        case("count", "all when one is taken", EIGHT, devices(ask()), devices(ask(count="All"))),
        case("count", "two requests of one claim", EIGHT, devices(ask("a", count=3), ask("b", count=5))),
        case("count", "two requests of one claim, one too many", EIGHT, devices(ask("a", count=4), ask("b", count=5))),
        case("count", "the larger of two nodes", two, devices(ask(count=2)), copies=3),
        case("count", "slices of one pool", split, devices(ask(count=2))),
        case("count", "the newest generation", newer, devices(ask(count=2)), devices(ask())),
        ClaimCase(
            "two claims of one pod",
            "count",
            *EIGHT,
            CLASSES,
            (first := claim_of("first", devices(ask(count=4))), other := claim_of("other", devices(ask(count=4)))),
            (pod("both", a=first, b=other), pod("late", a=claim_of("first", {}))),
        ),
        ClaimCase(
            "three pods of one claim",
            "count",
            *ONE_A100,
            CLASSES,
            (shared,),
            tuple(pod(f"pod-{number}", gpu=shared) for number in range(3)),
        ),
        ClaimCase(
            "shared on its node only",
            "count",
            *together(gpus("node-1", A100, 1), gpus("node-2", A100, 1)),
            CLASSES,
            (shared,),
            (pod("here", on="node-1", gpu=shared), pod("there", on="node-2", gpu=shared)),
        ),
        case("count", "a tolerated taint of the device", sick, devices(ask(tolerations=tolerated))),
        case("count", "a taint without effect", warned, devices(ask())),
        case(
            "count",
            "administrative access to a device in use",
            ONE_A100,
            devices(ask()),
            devices(ask(adminAccess=True)),
        ),
        case(
            "count", "administrative access takes no device", ONE_A100, devices(ask(adminAccess=True)), devices(ask())
        ),
        case("count", "administrative access to all", EIGHT, half, devices(ask(count="All", adminAccess=True))),
        case("count", "configuration of class and claim", EIGHT, configured, classes=(*CLASSES, tuned)),
        case("count", "any class", MIXED, devices(ask(kind="all.example.com", count=6))),
    ]


def _profiles() -> list[ClaimCase]:
    seven = partitioned("node-1", A100, SEVENTHS)
    both = together(
        partitioned("node-1", A100, SEVENTHS), partitioned("node-2", H100, ("3g.40gb", "3g.40gb"), ("1g.10gb",) * 7)
    )
    beside = partitioned("node-1", H100, ("1g.10gb",) * 7, ())
    one = slices_of_profile("1g.5gb")
    return [
        case("profile", "one slice", seven, devices(one)),
        case("profile", "eight pods for seven slices", seven, devices(one), copies=8),
        case("profile", "seven at once", seven, devices(slices_of_profile("1g.5gb", 7))),
        case("profile", "another profile", seven, devices(slices_of_profile("2g.10gb"))),
        case(
            "profile",
            "each of a mixed layout",
            MIXED,
            devices(slices_of_profile("3g.20gb")),
            devices(slices_of_profile("2g.10gb")),
            devices(one),
            copies=3,
        ),
        case(
            "profile",
            "a large and a small one in one claim",
            MIXED,
            devices(slices_of_profile("3g.20gb", name="large"), slices_of_profile("1g.5gb", 2, name="small")),
        ),
        case(
            "profile",
            "either of two profiles",
            MIXED,
            devices(ask("mig", MIG, 4, where=f"{GPU}.profile in ['1g.5gb', '2g.10gb']")),
        ),
        case(
            "profile",
            "all of a profile",
            MIXED,
            devices(slices_of_profile("2g.10gb", "All")),
            devices(slices_of_profile("2g.10gb")),
        ),
        case("profile", "any slice", MIXED, devices(ask("mig", MIG, 6)), devices(ask("mig", MIG))),
        case("profile", "the node that has it", both, devices(slices_of_profile("3g.40gb")), copies=3),
        case(
            "profile",
            "slices of two nodes",
            both,
            devices(slices_of_profile("1g.10gb", 7)),
            devices(slices_of_profile("1g.5gb", 7)),
        ),
        case("profile", "whole GPUs are no slices", beside, devices(ask("mig", MIG, 8)), devices(ask())),
        case("profile", "a slice and a whole GPU", beside, devices(slices_of_profile("1g.10gb"), ask())),
        case("profile", "whole GPUs where all are partitioned", seven, devices(ask())),
        case(
            "profile",
            "by its memory",
            MIXED,
            devices(ask("mig", MIG, 2, where=f"{MEMORY}.compareTo(quantity('19Gi')) >= 0")),
            copies=2,
        ),
        case(
            "profile",
            "by its multiprocessors",
            MIXED,
            devices(
                ask("mig", MIG, where="device.capacity['gpu.nvidia.com'].multiprocessors.isGreaterThan(quantity('30'))")
            ),
            copies=3,
        ),
        case(
            "profile",
            "a class of its own",
            seven,
            devices(ask("mig", "mig-1g-5gb.example.com", 7)),
            classes=(
                *CLASSES,
                class_of(
                    "mig-1g-5gb.example.com",
                    f"device.driver == '{DRIVER}'",
                    f"{GPU}.type == 'mig'",
                    f"{GPU}.profile == '1g.5gb'",
                ),
            ),
        ),
        case(
            "profile",
            "by where it begins",
            seven,
            devices(ask("mig", MIG, where="has(device.capacity['gpu.nvidia.com'].memorySlice3)")),
            copies=2,
        ),
    ]


_SELECTORS: Final = {
    "product": f"{GPU}.productName == 'NVIDIA H100 80GB HBM3'",
    "part of the product": f"{GPU}.productName.lowerAscii().matches('^.*h100.*$')",
    "product contains": f"{GPU}.productName.contains('L4')",
    "product begins": f"{GPU}.productName.startsWith('Tesla')",
    "architecture": f"{GPU}.architecture == 'Ampere'",
    "either architecture": f"{GPU}.architecture in ['Ampere', 'Turing']",
    "not this architecture": f"{GPU}.architecture != 'Hopper' && !({GPU}.architecture in ['Turing'])",
    "much memory": f"{MEMORY}.compareTo(quantity('40Gi')) >= 0",
    "little memory": f"{MEMORY}.isLessThan(quantity('20Gi'))",
    "exact memory": f"{MEMORY} == quantity('40960Mi')",
    "compute capability": f"{GPU}.cudaComputeCapability.isGreaterThan(semver('8.5.0'))",
    "compute capability at most": f"{GPU}.cudaComputeCapability.compareTo(semver('8.0.0')) <= 0",
    "driver version": f"{GPU}.driverVersion.major() >= 580 && {GPU}.driverVersion.minor() < 200",
    "a missing attribute with a default": f"{GPU}.?addressingMode.orValue('None') == 'None'",
    "an attribute that is tested first": f"has({GPU}.addressingMode) && {GPU}.addressingMode == 'ATS'",
    "an attribute that some may have": f"'uuid' in {GPU} && {GPU}.uuid == 'GPU-node-3-0'",
    "bound name": f"cel.bind(gpu, {GPU}, gpu.type == 'gpu' && gpu.brand == 'Nvidia' && gpu.architecture != 'Hopper')",
    "address": "device.attributes['resource.kubernetes.io'].pciBusID == '0000:07:00.0'",
    "any of a list": f"['A100', 'T4'].exists(name, {GPU}.productName.contains(name))",
    "an error that the other side decides": f"{GPU}.architecture == 'Turing' || {GPU}.nothing == 'a' || true",
    "another domain": "device.attributes[?'other.example.com'].?rack.orValue('none') == 'none'",
}


def _attribute_cases() -> list[ClaimCase]:
    found = [
        case("attribute", name, FOUR_KINDS, devices(ask(where=expression)), copies=2)
        for name, expression in _SELECTORS.items()
    ]
    several = (f"{GPU}.architecture != 'Turing'", f"{MEMORY}.isGreaterThan(quantity('30Gi'))")
    found.append(case("attribute", "two selectors", FOUR_KINDS, devices(ask(where=several)), copies=3))
    mixed = devices(ask("big", where=_SELECTORS["much memory"]), ask("any", kind=WHOLE))
    found.append(case("attribute", "two requests on one node", TWO_KINDS, mixed, mixed))
    return found


def _matches() -> list[ClaimCase]:
    pairs = partitioned("node-1", A100, ("1g.5gb",) * 2, ("1g.5gb",) * 2)
    lone = partitioned("node-1", A100, ("1g.5gb",), ("1g.5gb",), ("1g.5gb",))
    beside = partitioned("node-1", H100, ("1g.10gb",) * 2, ())
    uneven = partitioned("node-1", A100, ("1g.5gb",), ("1g.5gb",) * 3)
    net = [
        {"name": f"nic-{index}", "attributes": {ROOT: {"string": f"pci0000:1{root}"}, "dra.net/rdma": {"bool": True}}}
        for index, root in enumerate((1, 1, 3))
    ]
    aligned = (EIGHT[0], (*EIGHT[1], slice_of("node-1", net, driver="dra.net")))
    two = slices_of_profile("1g.5gb", 2)
    near = devices(ask(), ask("nic", "dra.net"), same=ROOT)
    return [
        case("match", "two slices of one GPU", pairs, devices(two, same=PARENT), copies=3),
        case("match", "two slices that no GPU has", lone, devices(two, same=PARENT)),
        case("match", "without a constraint they may be apart", lone, devices(two)),
        case(
            "match",
            "three where one GPU has them",
            uneven,
            devices(slices_of_profile("1g.5gb", 3), same=PARENT),
            copies=2,
        ),
        case(
            "match",
            "two after one is taken",
            pairs,
            devices(slices_of_profile("1g.5gb")),
            devices(two, same=PARENT),
            devices(two, same=PARENT),
        ),
        case(
            "match",
            "large and small of one GPU",
            MIXED,
            devices(slices_of_profile("3g.20gb", name="large"), slices_of_profile("1g.5gb", name="small"), same=PARENT),
            copies=3,
        ),
        case("match", "all slices of a GPU", MIXED, devices(ask("mig", MIG, 3), same=PARENT), copies=3),
        case(
            "match",
            "one request of two",
            beside,
            devices(slices_of_profile("1g.10gb", 2), ask(), same=PARENT, among=["mig"]),
        ),
        case(
            "match",
            "an attribute that whole GPUs lack",
            beside,
            devices(slices_of_profile("1g.10gb"), ask(), same=PARENT),
        ),
        case("match", "two GPUs below one root", EIGHT, devices(ask(count=2), same=ROOT), copies=5),
        case("match", "three GPUs below one root", EIGHT, devices(ask(count=3), same=ROOT)),
        case("match", "a GPU and its network card", aligned, near, near, near, near),
        case("match", "each of its own GPU", pairs, devices(two, distinct=PARENT), copies=3),
        case("match", "three of their own GPUs", pairs, devices(slices_of_profile("1g.5gb", 3), distinct=PARENT)),
        case(
            "match",
            "one product on the node that has two",
            together(gpus("node-1", A100, 1), gpus("node-2", A100, 2)),
            devices(ask(count=2), same="gpu.nvidia.com/productName"),
            copies=2,
        ),
        case("match", "one version", EIGHT, devices(ask(count=4), same="gpu.nvidia.com/driverVersion"), copies=3),
        case("match", "all, of different GPUs", pairs, devices(ask("mig", MIG, "All"), same=PARENT)),
        case(
            "match",
            "the first choice is a dead end",
            uneven,
            devices(slices_of_profile("1g.5gb", name="a"), slices_of_profile("1g.5gb", 2, name="b"), same=PARENT),
        ),
    ]


def _firsts() -> list[ClaimCase]:
    hopper = choice("hopper", where=f"{GPU}.architecture == 'Hopper'")
    ampere = choice("ampere", where=f"{GPU}.architecture == 'Ampere'")
    one_of = devices(either("gpu", hopper, ampere))
    whole_or_parts = devices(
        either("gpu", choice("whole"), choice("parts", MIG, 2, where=f"{GPU}.profile == '3g.20gb'"))
    )
    sizes = [choice(f"of-{count}", count=count) for count in (4, 2, 1)]
    beside = partitioned("node-1", A100, (), ("3g.20gb", "3g.20gb"), ("2g.10gb", "1g.5gb"))
    profiles = [
        choice(name, MIG, where=f"{GPU}.profile == '{profile}'")
        for name, profile in (("large", "3g.20gb"), ("medium", "2g.10gb"), ("small", "1g.5gb"))
    ]
    missing = choice("missing", where=f"{GPU}.architecture == 'Blackwell'")
    return [
        case("first", "the first of two", gpus("node-1", H100, 1), one_of),
        case("first", "the second of two", gpus("node-1", A100, 1), one_of),
        case("first", "neither of two", gpus("node-1", T4, 1), one_of),
        case(
            "first",
            "the first until it is used up",
            together(gpus("node-1", H100, 2), gpus("node-2", A100, 2)),
            one_of,
            copies=5,
        ),
        case("first", "whole, then parts", beside, whole_or_parts, copies=3),
        case("first", "four, two or one", gpus("node-1", H100, 7), devices(either("gpu", *sizes)), copies=4),
        case("first", "large, medium or small", MIXED, devices(either("mig", *profiles)), copies=7),
        case("first", "a choice that is not there", gpus("node-1", A100, 1), devices(either("gpu", missing, ampere))),
        case("first", "no choice is there", gpus("node-1", A100, 1), devices(either("gpu", missing))),
        case(
            "first",
            "beside another request",
            gpus("node-1", H100, 3),
            devices(ask("fixed", count=2), either("gpu", choice("two", count=2), choice("one"))),
        ),
        case(
            "first",
            "two requests of choices",
            gpus("node-1", H100, 3),
            devices(either("a", *sizes[1:]), either("b", *sizes[1:])),
        ),
        case(
            "first",
            "a choice of one GPU",
            beside,
            devices(
                either("mig", choice("large", MIG, 2, where=f"{GPU}.profile == '3g.20gb'"), choice("any", MIG, 2)),
                same=PARENT,
            ),
            copies=2,
        ),
        case(
            "first",
            "all, or else one",
            gpus("node-1", H100, 4),
            devices(either("gpu", choice("all", count="All"), choice("one"))),
            devices(either("gpu", choice("all", count="All"), choice("one"))),
        ),
        case(
            "first",
            "one when another has taken some",
            gpus("node-1", H100, 4),
            devices(ask(count=3)),
            devices(either("gpu", *sizes)),
        ),
        case(
            "first",
            "a tolerated taint last",
            ((node_of("node-1"),), (slice_of("node-1", [whole(H100, "node-1", 0, taints=[XID])]),)),
            devices(
                either("gpu", choice("well"), choice("sick", tolerations=[{"key": XID["key"], "operator": "Exists"}]))
            ),
        ),
        case(
            "first",
            "a constraint on one choice",
            beside,
            devices(either("mig", choice("pair", MIG, 3), choice("one", MIG)), same=PARENT, among=["mig/pair"]),
        ),
        case(
            "first",
            "eight choices",
            gpus("node-1", T4, 1),
            devices(
                either(
                    "gpu",
                    *(choice(f"c{number}", where=f"{GPU}.architecture == 'None{number}'") for number in range(7)),
                    choice("last"),
                )
            ),
        ),
    ]


def _impossible() -> list[ClaimCase]:
    sick = [whole(H100, "node-1", minor, taints=[XID]) for minor in range(2)]
    tainted = ((node_of("node-1"),), (slice_of("node-1", sick),))
    incomplete = ((node_of("node-1"),), (slice_of("node-1", [whole(H100, "node-1", 0)], of=2),))
    updating = (
        (node_of("node-1"),),
        (
            slice_of("node-1", [whole(H100, "node-1", 0)], generation=1),
            slice_of("node-1", [whole(H100, "node-1", 1)], generation=2, of=2),
        ),
    )
    twice = (
        (node_of("node-1"),),
        (
            slice_of("node-1", [whole(H100, "node-1", 0)], of=2, number=0),
            slice_of("node-1", [whole(H100, "node-1", 0)], of=2, number=1),
        ),
    )
    bare = ((node_of("node-1"), node_of("node-2")), ())
    empty = ((node_of("node-1"),), (slice_of("node-1", []),))
    other = ((node_of("node-1"),), (slice_of("node-2", [whole(H100, "node-2", 0)]),))
    plain = claim_of("plain", devices(ask()))
    nowhere = claim_of("nowhere", devices(ask(kind="nowhere.example.com")))
    return [
        case("impossible", "nine of eight", EIGHT, devices(ask(count=9))),
        case(
            "impossible",
            "spread over nodes",
            together(gpus("node-1", H100, 1), gpus("node-2", H100, 1)),
            devices(ask(count=2)),
        ),
        case("impossible", "no such class", ONE_A100, devices(ask(kind="nowhere.example.com"))),
        case(
            "impossible",
            "no such class among choices",
            ONE_A100,
            devices(either("gpu", choice("a", "nowhere.example.com"), choice("b"))),
        ),
        case("impossible", "no such profile", MIXED, devices(slices_of_profile("7g.40gb"))),
        case(
            "impossible", "an attribute that is missing", ONE_A100, devices(ask(where=f"{GPU}.addressingMode == 'ATS'"))
        ),
        case(
            "impossible",
            "a profile of whole GPUs",
            ONE_A100,
            devices(ask(kind="all.example.com", where=f"{GPU}.profile == '1g.5gb'")),
        ),
        case(
            "impossible",
            "a value of another type",
            ONE_A100,
            devices(ask(where=f"{GPU}.cudaComputeCapability == '8.0.0'")),
        ),
        case("impossible", "tainted devices", tainted, devices(ask())),
        case(
            "impossible",
            "a toleration of another taint",
            tainted,
            devices(ask(tolerations=[{"key": "other", "operator": "Exists"}])),
        ),
        case("impossible", "an incomplete pool", incomplete, devices(ask())),
        case("impossible", "all of an incomplete pool", incomplete, devices(ask(count="All"))),
        case("impossible", "an old generation", updating, devices(ask())),
        case("impossible", "a device of two slices", twice, devices(ask())),
        case("impossible", "no slices", bare, devices(ask())),
        case("impossible", "a slice without devices", empty, devices(ask())),
        case("impossible", "all of no devices", empty, devices(ask(count="All"))),
        case("impossible", "a slice of a node that is gone", other, devices(ask())),
        case("impossible", "33 devices", partitioned("node-1", A100, *[SEVENTHS] * 5), devices(ask("mig", MIG, 33))),
        ClaimCase(
            "an untolerated node", "impossible", *ONE_A100, CLASSES, (plain,), (pod("pod", tolerated=False, gpu=plain),)
        ),
        ClaimCase(
            "a node without the devices",
            "impossible",
            *together(ONE_A100, ((node_of("node-2"),), ())),
            CLASSES,
            (plain,),
            (pod("pod", on="node-2", gpu=plain),),
        ),
        ClaimCase(
            "one claim of two is impossible",
            "impossible",
            *ONE_A100,
            CLASSES,
            (plain, nowhere),
            (pod("pod", a=plain, b=nowhere),),
        ),
        ClaimCase(
            "two claims of one device",
            "impossible",
            *ONE_A100,
            CLASSES,
            (plain, claim_of("more", devices(ask()))),
            (pod("pod", a=plain, b=claim_of("more", {})),),
        ),
    ]


def cases() -> tuple[ClaimCase, ...]:
    """All written cases; a family has at least 15."""
    found = [*_counts(), *_profiles(), *_attribute_cases(), *_matches(), *_firsts(), *_impossible()]
    assert min(Counter(one.family for one in found).values()) >= 15
    assert len({one.name for one in found}) == len(found)
    return tuple(found)


# extended resources


def extended_cases() -> tuple[ClaimCase, ...]:
    """Cases of pods that request a resource that a class serves, without naming a claim; Kubernetes 1.36."""
    one = _served("one", gpus("node-1", H100, 1), [_requesting("a", 1), _requesting("b", 1)])
    many = _served("too many", gpus("node-1", H100, 1), [_requesting("a", 2)])
    nobody = _served("no class", gpus("node-1", H100, 1), [_requesting("a", 1, name="example.com/nothing")])
    # Each of the first two pods fits one node only: the scheduler would choose among more by chance.
    both, asked = (gpus("node-1", H100, 2), _plugin("node-2", 1)), {"a": 2, "b": 1, "c": 1}
    beside = _served("beside a plugin", together(*both), [_requesting(name, count) for name, count in asked.items()])
    plugin_first = _served("advertised by a plugin", _plugin("node-1", 2), [_requesting("a", 2), _requesting("b", 1)])
    left = (_plugin("node-1", 0)[0], gpus("node-1", H100, 1)[1])
    gone = _served("a plugin that is gone", left, [_requesting("a", 1)])
    two = [{"name": "first", "count": 1}, {"name": "second", "count": 2}]
    containers = _served("two containers", gpus("node-1", H100, 4), [_requesting("a", 0, containers=two)])
    init = [{"name": "load", "count": 4}, {"name": "warm", "count": 1}, {"name": "side", "count": 1, "stays": True}]
    inits = _served("init containers", gpus("node-1", H100, 5), [_requesting("a", 2, init=init), _requesting("b", 1)])
    claimed = claim_of("claimed", devices(ask(count=2)))
    mixed = _served("beside a claim", gpus("node-1", H100, 3), [_requesting("a", 1, claim=claimed)], claims=(claimed,))
    rival = class_of(
        "rival.example.com", f"{GPU}.architecture == 'Ampere'", extendedResourceName=f"{SERVED}.two-classes"
    )
    rivals = _served(
        "two classes", together(gpus("node-1", A100, 1), gpus("node-2", H100, 1)), [_requesting("a", 1)], rival
    )
    return one, many, nobody, beside, plugin_first, gone, containers, inits, mixed, rivals


SERVED: Final = "example.com/gpu"


def _plugin(name: str, count: int) -> Cluster:
    """A node whose device plugin advertises GPUs under all the names of these cases."""
    node = node_of(name)
    for case_name in ("beside-a-plugin", "advertised-by-a-plugin", "a-plugin-that-is-gone"):
        for amounts in (node["status"]["capacity"], node["status"]["allocatable"]):
            amounts[f"{SERVED}.{case_name}"] = str(count)
    return (node,), ()


def _served(
    name: str, cluster: Cluster, pods: Sequence[Json], *classes: Json, claims: Sequence[Json] = ()
) -> ClaimCase:
    """A case with a class that serves a resource of its own: classes stay when a case is over."""
    own = name.replace(" ", "-")
    served = class_of(f"{own}.example.com", f"device.driver == '{DRIVER}'", extendedResourceName=f"{SERVED}.{own}")
    for one in pods:
        for container in (*one["spec"].get("initContainers", ()), *one["spec"]["containers"]):
            amounts = container["resources"]
            for key in ("limits", "requests"):
                amounts[key] = {f"{SERVED}.{own}" if k == SERVED else k: v for k, v in amounts[key].items()}
    return ClaimCase(name, "extended", *cluster, (*CLASSES, served, *classes), tuple(claims), tuple(pods))


def _requesting(  # noqa: PLR0913 -- what a pod's containers request, by name
    pod_name: str,
    count: int,
    *,
    name: str = SERVED,
    containers: Sequence[Json] = (),
    init: Sequence[Json] = (),
    claim: Json | None = None,
) -> Json:
    """A pod that requests devices by the name of a resource."""
    body = pod(pod_name, gpu=claim) if claim else pod(pod_name)

    def made(one: Json) -> Json:
        limits = {name: str(one["count"])}
        stays = {"restartPolicy": "Always"} if one.get("stays") else {}
        named = {"claims": [{"name": "gpu"}]} if claim else {}
        resources: Json = {"limits": limits, "requests": {**limits, "cpu": "100m"}, **named}
        return {"name": one["name"], "image": "ubuntu:24.04", "resources": resources, **stays}

    body["spec"]["containers"] = [made(one) for one in containers or [{"name": "main", "count": count}]]
    if init:
        body["spec"]["initContainers"] = [made(one) for one in init]
    return body


# generated


def generated(seed: int) -> ClaimCase:
    """A case by chance: a few nodes of all kinds, and pods with claims of all kinds."""
    random = Random(seed)  # noqa: S311 -- repeatable
    cluster = together(*(_some_node(random, f"node-{number}") for number in range(1, random.randint(2, 4))))
    specs = [_some_devices(random) for _ in range(random.randint(2, 6))]
    return case("generated", f"seed {seed}", cluster, *specs)


def _some_node(random: Random, name: str) -> Cluster:
    model = random.choice((A100, H100, L4, T4))
    layouts = []
    for _ in range(random.randint(1, 4)):
        one, two, three, seven = model.profiles or ("",) * 4
        layout = random.choice(((one,) * 7, (three, two, one), (three, three), (seven,), (one, one), ()))
        layouts.append(layout if model.profiles else ())
    nodes, (found,) = partitioned(name, model, *layouts)
    for device in found["spec"]["devices"]:
        if random.random() < 0.08:
            device["taints"] = [XID]
    if random.random() < 0.1:
        found["spec"]["pool"]["resourceSliceCount"] = 2
    return nodes, (found,)


def _some_devices(random: Random) -> Json:
    requests = [_some_request(random, f"r{number}") for number in range(random.choice((1, 1, 1, 2)))]
    rule = random.choice(("", "", "", PARENT, ROOT, "gpu.nvidia.com/productName"))
    among = [requests[0]["name"]] if random.random() < 0.3 else []
    if rule and random.random() < 0.2:
        return devices(*requests, distinct=rule, among=among)
    return devices(*requests, same=rule, among=among)


def _some_request(random: Random, name: str) -> Json:
    if random.random() < 0.25:
        return either(name, *(choice(f"c{number}", **_some_of(random)) for number in range(random.randint(1, 3))))
    return ask(name, **_some_of(random))


def _some_of(random: Random) -> Json:
    kind = random.choice((WHOLE, MIG, MIG))
    count: int | str = random.choice((1, 1, 1, 2, 2, 3, 7, "All"))
    profile = random.choice((*A100.profiles, *H100.profiles))
    of_parts = (
        f"{GPU}.profile == '{profile}'",
        f"{GPU}.profile.startsWith('1g')",
        f"{MEMORY}.isGreaterThan(quantity('9Gi'))",
    )
    where = random.choice(of_parts if kind == MIG else tuple(_SELECTORS.values())) if random.random() < 0.7 else ()
    tolerated = {"tolerations": [{"key": XID["key"], "operator": "Exists"}]} if random.random() < 0.1 else {}
    return {"kind": kind, "count": count, "where": where, **tolerated}
