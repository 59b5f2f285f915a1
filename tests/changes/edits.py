"""Edits of one field of a spec, and what must come of each: the fields that change, and the class of each change.

In scope: the tables, per cloud, and which rows of a provider's own tables they cover. Out of scope: runs.

Most edits change one native field. Where one field of a spec is several, all are named: on EKS the devices of a node
that is not there yet stand in a tag for the autoscaler, so a sharing is a label (or user data) and that tag; who
advertises is three labels; from a fixed size to bounds three numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from gpukube.core.fields import FieldPath
from gpukube.core.values import Change
from gpukube_aks.pool import updates as aks
from gpukube_eks.pool import updates as eks
from gpukube_eks.pool.native import LAUNCH
from gpukube_eks.pool.native import field_of as eks_field
from gpukube_gke.pool import updates as gke
from tests.changes.generator import BESIDES, NATIVE_OF, SHAPES, SKIPPED_NATIVE, WITH, merge, native_paths, nested

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.core.values import UpdateKind
    from tests.changes.world import Pool

Class = Literal["nothing", "in-place", "disruptive", "replace", "refused"]
ORDER: tuple[Class, ...] = ("nothing", "in-place", "disruptive", "replace", "refused")
I: UpdateKind = "in-place"  # noqa: E741 - columns of the tables
D: UpdateKind = "disruptive"
R: UpdateKind = "replace"

CONFIG = "labels[nvidia.com/device-plugin.config]"
ADVERTISER = "labels[gpukube.io/advertiser]"
PRESENT = "labels[nvidia.com/gpu.present]"
SCALERS = "labels[k8s.amazonaws.com/accelerator]"
CLAIMS = "labels[cloud.google.com/gke-nvidia-gpu-dra-driver]"
CUT = "labels[nvidia.com/mig.config]"
OPERANDS = "labels[nvidia.com/gpu.deploy.operands]"
SEEN = "nodes.autoscaling.resources[nvidia.com/gpu]"
SEEN_SHARED = "nodes.autoscaling.resources[nvidia.com/gpu.shared]"


@dataclass(frozen=True)
class Edit:
    """A pool, the keys that are written otherwise (None: no longer), and what changes by that."""

    pool: Pool
    change: Pool
    fields: Mapping[str, UpdateKind]

    @property
    def edited(self) -> Pool:
        """The pool as it is written afterwards."""
        return {key: value for key, value in {**self.pool, **self.change}.items() if value is not None}


def class_of(edit: Edit) -> Class:
    """Describe what the worst of its changes needs."""
    return max(("nothing", *edit.fields.values()), key=ORDER.index)


def covers(row: str, field: str) -> bool:
    """Return whether a row of a provider's tables is about a field."""
    if row.endswith(("[*]", ".*")):
        return field.startswith(row.removesuffix("*]").removesuffix("*"))
    return field == row or field.startswith(f"{row}.")


def _slices(replicas: int, **more: bool) -> Pool:
    return {"timeSlicing": {"replicas": replicas, **more}}


def _taint(key: str, effect: str = "NoSchedule") -> Pool:
    return {"key": key, "value": "x", "effect": effect}


_OWN: Pool = {"driver": {"owner": "none"}, "devicePlugin": {"owner": "none"}}
"""Nodes on which gpukube runs nothing, so that NVIDIA's labels are the user's."""


def _portable(plain: Pool, size: Mapping[str, UpdateKind], *, scoped: bool = False, tag: UpdateKind = I) -> list[Edit]:
    """What is alike on all clouds.

    Args:
        plain: A pool of one node.
        size: Classes that differ: of a smaller largest size, and of its end.
        scoped: Whether the cloud tells bounds of the pool from bounds of each zone.
        tag: Class of a tag that goes.
    """
    scope: dict[str, UpdateKind] = {"nodes.autoscaling.scope": I} if scoped else {}
    two = {**plain, "nodes": {"count": 2}}
    bounds = {**plain, "nodes": {"autoscaling": {"min": 1, "max": 3}}}
    named = {**plain, "labels": {"team": "vision", "x.example.com/A_b": "1"}}
    tainted = {**plain, "taints": [_taint("dedicated"), _taint("sku")]}
    low, high = "nodes.autoscaling.min", "nodes.autoscaling.max"
    return [
        Edit(plain, {"nodes": {"count": 2}}, {"nodes.count": I}),
        Edit(two, {"nodes": {"count": 1}}, {"nodes.count": D}),
        Edit(bounds, {"nodes": {"autoscaling": {"min": 0, "max": 3}}}, {low: I}),
        Edit(bounds, {"nodes": {"autoscaling": {"min": 2, "max": 3}}}, {low: I}),
        Edit(bounds, {"nodes": {"autoscaling": {"min": 1, "max": 5}}}, {high: I}),
        Edit(bounds, {"nodes": {"autoscaling": {"min": 1, "max": 2}}}, {high: size["shrunk"]}),
        Edit(bounds, {"nodes": {"autoscaling": {"min": 1, "max": 3, "initial": 3}}}, {}),
        Edit(two, {"nodes": {"autoscaling": {"min": 1, "max": 3}}}, {"nodes.count": I, low: I, high: I, **scope}),
        Edit(bounds, {"nodes": {"count": 2}}, {"nodes.count": size["fixed"], low: I, high: size["ended"], **scope}),
        Edit(named, {"labels": {"team": "Audio_2.x", "x.example.com/A_b": "1"}}, {"labels[team]": I}),
        Edit(named, {"labels": {"team": "vision"}}, {"labels[x.example.com/A_b]": I}),
        Edit(named, {"labels": None}, {"labels[team]": I, "labels[x.example.com/A_b]": I}),
        Edit(plain, {"labels": {"tier": "v" * 63}}, {"labels[tier]": I}),
        Edit(plain, {"taints": [_taint("dedicated")]}, {"taints": I}),
        Edit(tainted, {"taints": [_taint("sku")]}, {"taints": I}),
        Edit(tainted, {"taints": [_taint("sku"), _taint("dedicated")]}, {}),
        Edit(tainted, {"taints": None}, {"taints": I}),
        Edit(tainted, {"taints": [_taint("dedicated", "NoExecute"), _taint("sku")]}, {"taints": D}),
        Edit(tainted, {"taints": [{**_taint("dedicated"), "value": "y"}, _taint("sku")]}, {"taints": I}),
        Edit(tainted, {"taints": [_taint("dedicated", "PreferNoSchedule"), _taint("sku")]}, {"taints": I}),
        Edit(plain, {"deletionProtection": True}, {"deletionProtection": I}),
        Edit({**plain, "deletionProtection": True}, {"deletionProtection": None}, {"deletionProtection": I}),
        # A tag that gpukube wrote goes with its declaration. What the cloud fills in is open: no longer declared is no
        # change.
        Edit({**plain, "tags": {"cost": "1", "team": "x"}}, {"tags": {"cost": "1"}}, {"tags[team]": tag}),
        Edit({**plain, "disk": {"sizeGiB": 200}}, {"disk": None}, {}),
        # The same in other words.
        Edit(plain, {"capacity": {"type": "on-demand"}, "gpuTaint": True, "sharing": {}}, {}),
    ]


def _to_and_from_zero(plain: Pool) -> list[Edit]:
    """Where an empty pool has a fixed size too: EKS makes bounds of it, from none to one."""
    two, none = {**plain, "nodes": {"count": 2}}, {**plain, "nodes": {"count": 0}}
    return [
        Edit(two, {"nodes": {"count": 0}}, {"nodes.count": D}),
        Edit(none, {"nodes": {"count": 1}}, {"nodes.count": I}),
    ]


def _with_count(plain: Pool, count: int) -> Pool:
    return {**plain, "nodes": {"count": count}}


def _natives(cloud: str, plain: Pool, kinds: Mapping[str, UpdateKind]) -> Iterator[Edit]:
    """Every field of the escape hatch: to another value, or where there is but one, from the default to that."""
    for path in NATIVE_OF[cloud]:
        if path in kinds:
            values = _two(cloud, path)
            old, new = (_with_native(cloud, plain, path, value) for value in values)
            yield Edit(
                old,
                {key: value for key, value in new.items() if old.get(key) != value},
                {str(eks_field(path)) if cloud == "eks" else f"{cloud}.{path}": kinds[path]},
            )


def _two(cloud: str, path: str) -> tuple[object, object]:
    """Two values; None: not written."""
    values = native_paths(cloud)[path]
    if len(values) > 1:
        return values[0], values[1]
    shape = NATIVE_OF[cloud][path]
    other = {"str": "y", "strings": ["y"]}.get(str(shape)) if values == SHAPES.get(str(shape)) else None
    return other, values[0]


def _with_native(cloud: str, plain: Pool, path: str, value: object) -> Pool:
    found: dict[str, Any] = {}
    for other, companion in WITH.get(f"{cloud}:{path}", {}).items():
        merge(found, nested(other, companion))
    if value is not None:
        merge(found, nested(path, value))
    return {**plain, **BESIDES.get(f"{cloud}.{path}", {}), **({cloud: found} if found else {})}


# EKS

_G4: Pool = {"instanceType": "g4dn.xlarge", "nodes": {"count": 1}}
_FAST: Pool = {
    "instanceType": "g6e.8xlarge",
    "nodes": {"count": 1},
    "zones": ["us-east-1a"],
    "network": {"highSpeed": True},
}
_TYPES: Pool = {"instanceTypes": ["g4dn.xlarge", "g4dn.2xlarge"], "nodes": {"count": 1}}
_ROCKET: Pool = {**_G4, "image": "bottlerocket"}
_ROCKET_CUT: Pool = {
    "instanceType": "p5.4xlarge",
    "nodes": {"count": 1},
    "image": "bottlerocket",
    "sharing": {"mig": {"profile": "1g.10gb"}},
}
_CUT: Pool = {"instanceType": "p5.4xlarge", "nodes": {"count": 1}, "sharing": {"mig": {"profile": "1g.10gb"}}}
_ROLE = "arn:aws:iam::111122223333:role/other-nodes"
_TS = "sharing.timeSlicing"
_NOW_THREE: Mapping[str, UpdateKind] = {f"{_TS}.{n}": D for n in ("failRequestsGreaterThanOne", "renameByDefault")}

_EC2 = "capacity.reserved.eks"
_RESERVED: Pool = {
    "instanceType": "p4d.24xlarge",
    "nodes": {"count": 1},
    "zones": ["us-east-1b"],
    "capacity": {"type": "reserved", "reserved": {"eks": {"capacityReservation": "cr-0fedcba9876543210"}}},
}
_BLOCKED: Pool = {
    "instanceType": "p5.48xlarge",
    "nodes": {"autoscaling": {"min": 0, "max": 2}},
    "zones": ["us-east-1a"],
    "capacity": {"type": "reserved", "reserved": {"eks": {"capacityBlock": "cr-0123456789abcdef0"}}},
}
_LOW, _HIGH = "nodes.autoscaling.min", "nodes.autoscaling.max"

_EKS = [
    *_portable(_G4, {"shrunk": D, "fixed": I, "ended": D}),
    # The smallest "largest size" of a group is 1, so an empty one has bounds, and may have been given a node.
    Edit(_with_count(_G4, 0), {"nodes": {"count": 1}}, {"nodes.count": I, _LOW: I, _HIGH: D}),
    Edit(_with_count(_G4, 2), {"nodes": {"count": 0}}, {"nodes.count": D, _LOW: I, _HIGH: I}),
    Edit(
        _with_count(_G4, 3),
        {"nodes": {"autoscaling": {"min": 1, "max": 2}}},
        {"nodes.count": D, _LOW: I, _HIGH: I},
    ),
    Edit({**_G4, "zones": ["us-east-1a"]}, {"zones": ["us-east-1b"]}, {"zones": R}),
    Edit(
        _ROCKET,
        {"image": "al2023", "eks": {"releaseVersion": "1.34.2-20260714"}},
        {"image": R, "eks.releaseVersion": D, ADVERTISER: I, CONFIG: D, PRESENT: I, OPERANDS: I},
    ),
    Edit(_G4, {"instanceType": "g4dn.2xlarge"}, {"instanceType": R}),
    Edit(_G4, {"instanceType": None, "gpu": {"model": "T4", "count": 1}}, {}),
    Edit(_TYPES, {"instanceTypes": ["g4dn.xlarge", "g4dn.4xlarge"]}, {"instanceTypes": R}),
    Edit(_TYPES, {"instanceTypes": None, "instanceType": "g4dn.xlarge"}, {"instanceTypes": R}),
    Edit(_G4, {"image": "al2023"}, {}),
    Edit(_G4, {"image": "bottlerocket"}, {"image": R, ADVERTISER: D, CONFIG: D, PRESENT: I, OPERANDS: I}),
    Edit(_ROCKET, {"image": None}, {"image": R, ADVERTISER: I, CONFIG: D, PRESENT: I, OPERANDS: I}),
    Edit(_G4, {"capacity": {"type": "spot"}}, {"capacity.type": R}),
    Edit({**_G4, "zones": ["us-east-1a", "us-east-1b"]}, {"zones": ["us-east-1b", "us-east-1a"]}, {}),
    Edit({**_G4, "disk": {"sizeGiB": 100}}, {"disk": {"sizeGiB": 200}}, {"disk.sizeGiB": D}),
    Edit({**_G4, "disk": {"sizeGiB": 100, "type": "gp3"}}, {"disk": {"sizeGiB": 100, "type": "gp2"}}, {"disk.type": D}),
    *(
        Edit({**_G4, "disk": {name: old}}, {"disk": {name: new}}, {f"disk.{name}": D})
        for name, old, new in (("iops", 6000, 4000), ("throughput", 500, 250), ("encrypted", True, False))
    ),
    Edit(_G4, {"localStorage": "ephemeral"}, {"localStorage": D}),
    Edit(_G4, {"kubelet": {"podPidsLimit": 4096}}, {"kubelet.podPidsLimit": D}),
    Edit(_ROCKET, {"sysctls": {"net.core.somaxconn": "4096"}}, {"sysctls[net.core.somaxconn]": D}),
    Edit(_G4, {"hugepages": {"2Mi": 512}}, {"hugepages.2Mi": D}),
    Edit(_G4, {"disk": {"kmsKey": "alias/ml"}}, {"disk.kmsKey": D, "disk.encrypted": D}),
    Edit({**_ROCKET, "disk": {"encrypted": True}}, {"disk": {"encrypted": False}}, {"disk.encrypted": D}),
    Edit(
        {**_G4, "disk": {"sizeGiB": 100, "type": "io2", "iops": 5000}},
        {"disk": {"sizeGiB": 100, "type": "gp3"}},
        {"disk.type": D},
    ),
    Edit(_ROCKET, {"sharing": _slices(4)}, {f"{_TS}.replicas": D, **_NOW_THREE, SEEN: I}),
    Edit({**_ROCKET, "sharing": _slices(4)}, {"sharing": _slices(6)}, {f"{_TS}.replicas": D, SEEN: I}),
    Edit({**_ROCKET, "sharing": _slices(4)}, {"sharing": None}, {f"{_TS}.replicas": D, **_NOW_THREE, SEEN: I}),
    Edit(
        {**_ROCKET, "sharing": _slices(4)},
        {"sharing": _slices(4, failRequestsGreaterThanOne=True)},
        {f"{_TS}.failRequestsGreaterThanOne": D},
    ),
    Edit(
        {**_ROCKET, "sharing": _slices(4)},
        {"sharing": _slices(4, renameByDefault=True)},
        {f"{_TS}.renameByDefault": D, SEEN: I, SEEN_SHARED: I},
    ),
    Edit(_ROCKET_CUT, {"sharing": {"mig": {"profile": "2g.20gb"}}}, {"sharing.mig.profile": D, SEEN: I}),
    Edit(_G4, {"sharing": _slices(4)}, {CONFIG: D, SEEN: I}),
    Edit({**_G4, "sharing": _slices(4)}, {"sharing": _slices(6)}, {CONFIG: D, SEEN: I}),
    Edit({**_G4, "sharing": _slices(4)}, {"sharing": {"mps": {"replicas": 4}}}, {CONFIG: D}),
    Edit({**_G4, "sharing": _slices(4)}, {"sharing": _slices(4, failRequestsGreaterThanOne=True)}, {CONFIG: D}),
    Edit({**_G4, "sharing": _slices(4)}, {"sharing": None}, {CONFIG: D, SEEN: I}),
    Edit(_with_count(_G4, 0), {"devicePlugin": {"owner": "none"}}, {ADVERTISER: D, CONFIG: D, PRESENT: I}),
    Edit(
        {**_with_count(_G4, 0), "devicePlugin": {"owner": "none"}},
        {"devicePlugin": None},
        {ADVERTISER: I, CONFIG: D, PRESENT: I},
    ),
    Edit(_G4, {"devicePlugin": {"owner": "dra"}}, {ADVERTISER: R, CONFIG: D, SCALERS: I}),
    Edit({**_G4, "devicePlugin": {"owner": "dra"}}, {"devicePlugin": None}, {ADVERTISER: R, CONFIG: D, SCALERS: I}),
    Edit(
        {**_G4, "image": "bottlerocket", "devicePlugin": {"owner": "dra"}},
        {"devicePlugin": None},
        {"devicePlugin": R, ADVERTISER: R, SCALERS: I, PRESENT: I},
    ),
    Edit(_G4, {"devicePlugin": {"owner": "helm"}, "driver": {"owner": "cloud"}}, {}),
    Edit(_G4, {"gpuTaint": False}, {"taints": I}),
    Edit({**_G4, "gpuTaint": False}, {"gpuTaint": True}, {"taints": I}),
    Edit(
        {**_G4, "taints": [_taint("k"), _taint("k", "NoExecute")]},
        {"taints": [_taint("k", "NoExecute")]},
        {"taints": I},
    ),
    Edit({**_G4, "tags": {"cost": "1"}}, {"tags": {"cost": "2"}}, {"tags[cost]": I}),
    Edit(_G4, {"tags": {"a b": "c d"}}, {"tags[a b]": I}),
    Edit(_G4, {"eks": {"nodeRole": _ROLE}}, {"eks.nodeRole": R}),
    Edit(
        {**_G4, "eks": {"subnets": ["subnet-0000000a"]}}, {"eks": {"subnets": ["subnet-0000000b"]}}, {"eks.subnets": R}
    ),
    Edit(
        {**_G4, "eks": {"releaseVersion": "1.34.1-20260601"}},
        {"eks": {"releaseVersion": "1.34.2-20260714"}},
        {"eks.releaseVersion": D},
    ),
    Edit(
        {**_G4, "eks": {"releaseVersion": "1.34.2-20260714"}},
        {"eks": {"releaseVersion": "1.34.1-20260601"}},
        {"eks.releaseVersion": R},
    ),
    Edit({**_G4, "upgrade": {"maxSurge": 0}}, {"upgrade": {"maxSurge": 1}}, {"upgrade.maxSurge": I}),
    Edit(
        {**_G4, "upgrade": {"maxUnavailable": 1}}, {"upgrade": {"maxUnavailable": "33%"}}, {"upgrade.maxUnavailable": I}
    ),
    Edit(
        {**_G4, "eks": {"updateConfig": {"maxUnavailablePercentage": 33, "updateStrategy": "MINIMAL"}}},
        {"eks": None, "upgrade": {"maxSurge": 0, "maxUnavailable": "33%"}},
        {},
    ),
    Edit(_G4, {"kubernetesVersion": "1.34"}, {}),
    Edit({**_G4, "kubernetesVersion": "1.34"}, {"kubernetesVersion": None}, {}),
    Edit(_G4, {"maxPodsPerNode": 60}, {"maxPodsPerNode": D}),
    Edit({**_ROCKET, "maxPodsPerNode": 60}, {"maxPodsPerNode": 100}, {"maxPodsPerNode": D}),
    Edit(_RESERVED, {"capacity": None}, {"capacity.type": D, f"{_EC2}.capacityReservation": D}),
    Edit(_BLOCKED, {"capacity": None}, {"capacity.type": R, f"{_EC2}.capacityBlock": R}),
    Edit({**_FAST, "network": {}}, {"network": {"highSpeed": True}}, {"network.highSpeed": D}),
    Edit({**_FAST, "placement": "compact"}, {"placement": "none"}, {"placement": D}),
    Edit({**_FAST, "placement": "compact"}, {"placement": None}, {}),
    *_natives("eks", _G4, {path: D for path in LAUNCH if path not in ("imageId", "keyName", "securityGroups")}),
    *_natives(
        "eks", _G4, {path: I for path in NATIVE_OF["eks"] if path.startswith(("updateConfig.", "nodeRepairConfig."))}
    ),
]

OPERATED = [
    Edit(_CUT, {"sharing": {"mig": {"profile": "2g.20gb"}}}, {CUT: D, SEEN: I}),
    Edit(_CUT, {"sharing": {"mig": {"profile": "1g.10gb"}, **_slices(2)}}, {CONFIG: D, SEEN: I}),
    Edit(_G4, {"sharing": _slices(4)}, {CONFIG: D, SEEN: I}),
    Edit({**_G4, "sharing": _slices(4)}, {"sharing": None}, {CONFIG: D, SEEN: I}),
    Edit({**_CUT, "sharing": {}}, {"sharing": {"mig": {"profile": "1g.10gb"}}}, {CUT: D, CONFIG: D, SEEN: I}),
    Edit(_CUT, {"sharing": {}}, {CUT: D, CONFIG: D, SEEN: I}),
    Edit(_G4, {"labels": {"tier": "a"}}, {"labels[tier]": I}),
]
"""On a cluster of the GPU Operator: EKS only."""

# AKS

_NC4: Pool = {"instanceType": "Standard_NC4as_T4_v3", "nodes": {"count": 1}}
_NC24: Pool = {
    "instanceType": "Standard_NC24ads_A100_v4",
    "nodes": {"count": 1},
    "sharing": {"mig": {"profile": "1g.10gb"}},
}


def _group(name: str) -> Pool:
    group = f"/subscriptions/{'1' * 8}-2222-3333-4444-{'5' * 12}/resourceGroups/ml/providers/Microsoft.Compute"
    form = {"capacityReservationGroup": f"{group}/capacityReservationGroups/{name}"}
    return {"type": "reserved", "reserved": {"aks": form}}


_PLACED = (
    f"/subscriptions/{'1' * 8}-2222-3333-4444-{'5' * 12}/resourceGroups/ml/providers/Microsoft.Compute"
    "/proximityPlacementGroups/near"
)
_AKS_KINDS: dict[str, UpdateKind] = {
    path: aks.find_row(Change(FieldPath("aks", *path.split(".")), None, None)).kind for path in NATIVE_OF["aks"]
}
_FIRST_OF = {path.partition(".")[0]: path for path in [*NATIVE_OF["aks"]][::-1]}
"""Row -> one of its fields: those that replace the pool are replaced once per row; tests/wire/aks has each."""

_AKS = [
    *_to_and_from_zero(_NC4),
    *_portable(_NC4, {"shrunk": I, "fixed": D, "ended": I}),
    Edit(_NC4, {"instanceType": "Standard_NC8as_T4_v3"}, {"instanceType": R}),
    Edit(_NC4, {"capacity": {"type": "spot"}}, {"capacity.type": R}),
    Edit(
        {**_NC4, "capacity": {"type": "spot", "maxPrice": 0.5}},
        {"capacity": {"type": "spot", "maxPrice": 0.25}},
        {"capacity.maxPrice": R},
    ),
    Edit(
        {**_NC4, "capacity": {"type": "spot", "maxPrice": 0.5}},
        {"capacity": {"type": "spot"}},
        {"capacity.maxPrice": R},
    ),
    Edit({**_NC4, "capacity": {"type": "spot"}}, {"labels": {"tier": "a"}}, {"labels[tier]": I}),
    Edit({**_NC4, "capacity": {"type": "spot"}}, {"taints": [_taint("sku")]}, {"taints": I}),
    Edit({**_NC4, "zones": ["1"]}, {"zones": ["2"]}, {"zones": R}),
    Edit({**_NC4, "disk": {"sizeGiB": 100}}, {"disk": {"sizeGiB": 200}}, {"disk.sizeGiB": R}),
    Edit(
        {**_NC4, "disk": {"sizeGiB": 100, "type": "Managed"}},
        {"disk": {"sizeGiB": 100, "type": "Ephemeral"}},
        {"disk.type": R},
    ),
    Edit(_NC24, {"sharing": {"mig": {"profile": "2g.20gb"}}}, {"sharing.mig.profile": R}),
    Edit(_NC24, {"sharing": None}, {"sharing.mig.profile": R, CONFIG: D}),
    Edit(_NC24, {"sharing": {"mig": {"profile": "1g.10gb", "strategy": "mixed"}}}, {CONFIG: D}),
    Edit(_NC24, {"sharing": {"mig": {"profile": "1g.10gb"}, **_slices(2)}}, {CONFIG: D}),
    Edit(_NC4, {"sharing": _slices(4)}, {CONFIG: D}),
    Edit({**_NC4, "sharing": _slices(4)}, {"sharing": _slices(6)}, {CONFIG: D}),
    Edit({**_NC4, "sharing": _slices(4)}, {"sharing": {"mps": {"replicas": 4}}}, {CONFIG: D}),
    Edit({**_NC4, "sharing": _slices(4)}, {"sharing": None}, {CONFIG: D}),
    Edit({**_NC4, "nodes": {"count": 0}}, {"devicePlugin": {"owner": "none"}}, {ADVERTISER: D, CONFIG: D, PRESENT: I}),
    Edit(
        {**_NC4, "nodes": {"count": 0}, "devicePlugin": {"owner": "none"}},
        {"devicePlugin": None},
        {ADVERTISER: I, CONFIG: D, PRESENT: I},
    ),
    Edit(_NC4, {"devicePlugin": {"owner": "dra"}}, {ADVERTISER: R, CONFIG: D}),
    Edit({**_NC4, "devicePlugin": {"owner": "dra"}}, {"devicePlugin": None}, {ADVERTISER: R, CONFIG: D}),
    Edit(_NC4, {"devicePlugin": {"owner": "cloud"}}, {"devicePlugin": R, ADVERTISER: D, CONFIG: D, PRESENT: I}),
    Edit(
        {**_NC4, "devicePlugin": {"owner": "cloud"}},
        {"devicePlugin": None},
        {"devicePlugin": R, ADVERTISER: I, CONFIG: D, PRESENT: I},
    ),
    Edit(_NC4, {"gpuTaint": False}, {"taints": I}),
    Edit({**_NC4, "gpuTaint": False}, {"gpuTaint": True}, {"taints": I}),
    Edit({**_NC4, "tags": {"cost": "1"}}, {"tags": {"cost": "2"}}, {"tags[cost]": I}),
    Edit(_NC4, {"tags": {"a b": "c d"}}, {"tags[a b]": I}),
    Edit(
        {**_NC4, "capacity": _group("a")},
        {"capacity": _group("b")},
        {"capacity.reserved.aks.capacityReservationGroup": R},
    ),
    Edit({**_NC4, **_OWN}, {"labels": {"nvidia.com/mig.config": "all-disabled"}}, {"labels[nvidia.com/mig.config]": D}),
    Edit({**_NC4, "image": "Ubuntu2204"}, {"image": "Ubuntu2404"}, {"image": D}),
    Edit({**_NC4, "image": "Ubuntu2204"}, {"image": "AzureLinux"}, {"image": D}),
    Edit({**_NC4, "kubernetesVersion": "1.33.5"}, {"kubernetesVersion": "1.34.2"}, {"kubernetesVersion": D}),
    Edit({**_NC4, "kubernetesVersion": "1.34.2"}, {"kubernetesVersion": "1.33.5"}, {"kubernetesVersion": R}),
    Edit({**_NC4, "kubernetesVersion": "1.34.2"}, {"kubernetesVersion": "1.34"}, {}),
    Edit({**_NC4, "upgrade": {"maxSurge": 1}}, {"upgrade": {"maxSurge": "33%"}}, {"upgrade.maxSurge": I}),
    Edit(
        {**_NC4, "upgrade": {"maxSurge": 0, "maxUnavailable": 1}},
        {"upgrade": {"maxSurge": 0, "maxUnavailable": 2}},
        {"upgrade.maxUnavailable": I},
    ),
    Edit({**_NC4, "maxPodsPerNode": 60}, {"maxPodsPerNode": 110}, {"maxPodsPerNode": R}),
    Edit({**_NC4, "placement": "none"}, {"placement": _PLACED}, {"placement": R}),
    Edit(
        {**_NC4, "sysctls": {"vm.swappiness": "10"}},
        {"sysctls": {"vm/swappiness": "20"}},
        {"sysctls[vm.swappiness]": R},
    ),
    *(
        Edit(_NC4, {"kubelet": {name: value}}, {f"kubelet.{name}": R})
        for name, value in {
            "cpuManagerPolicy": "static",
            "topologyManagerPolicy": "best-effort",
            "podPidsLimit": 4096,
            "cpuCFSQuota": False,
            "cpuCFSQuotaPeriod": "50ms",
            "imageGCHighThresholdPercent": 90,
            "imageGCLowThresholdPercent": 70,
            "containerLogMaxSize": "1Gi",
            "containerLogMaxFiles": 3,
            "allowedUnsafeSysctls": ["net.core.somaxconn"],
        }.items()
    ),
    *_natives(
        "aks",
        _NC4,
        {path: kind for path, kind in _AKS_KINDS.items() if kind != "replace" or path in _FIRST_OF.values()},
    ),
]

# GKE

_L4: Pool = {"instanceType": "g2-standard-4", "nodes": {"count": 1}, "zones": ["us-central1-a"]}
_N1: Pool = {"instanceType": "n1-standard-8", "gpu": {"model": "T4", "count": 1}, "nodes": {"count": 1}}
_A2: Pool = {"instanceType": "a2-highgpu-1g", "nodes": {"count": 1}, "sharing": {"mig": {"profile": "1g.5gb"}}}
_FLEX: Pool = {"instanceType": "g2-standard-4", "nodes": {"autoscaling": {"min": 0, "max": 2}}}
_BOTH = ["us-central1-a", "us-central1-b"]
_CLIENTS, _MPS = "sharing.timeSlicing.replicas", "sharing.mps.replicas"


_ULTRA: Pool = {"instanceType": "a3-ultragpu-8g", "nodes": {"count": 1}, "capacity": {"type": "spot"}}
_KUBELET: Mapping[str, object] = {
    "cpuManagerPolicy": "static",
    "topologyManagerPolicy": "restricted",
    "topologyManagerScope": "pod",
    "memoryManagerPolicy": "Static",
    "podPidsLimit": 4096,
    "cpuCFSQuota": False,
    "cpuCFSQuotaPeriod": "10ms",
    "imageGCHighThresholdPercent": 80,
    "imageGCLowThresholdPercent": 60,
    "containerLogMaxSize": "20Mi",
    "containerLogMaxFiles": 3,
    "allowedUnsafeSysctls": ["net.core.somaxconn"],
}
_GKE_KINDS: Mapping[str, UpdateKind] = {
    path: gke.find_row(Change(FieldPath.parse(f"gke.{path}"), None, None)).kind
    for path in NATIVE_OF["gke"]
    if path != "config.metadata"
}
_OF_MANY = ("config.kubeletConfig.", "config.linuxNodeConfig.", "config.containerdConfig.", "config.soleTenantConfig.")
_GKE_BY_WIRE: Mapping[str, str] = {
    **SKIPPED_NATIVE["gke"],
    **{
        path: f"one of many of a message; tests/wire/gke has each, this table {first}"
        for prefix in _OF_MANY
        for first, *others in [[path for path in NATIVE_OF["gke"] if path.startswith(prefix)]]
        for path in others
    },
}


def _flex(duration: str | None) -> Pool:
    return {"type": "reserved", "reserved": {"gke": {"flexStart": {"maxRunDuration": duration} if duration else {}}}}


def _ours(name: str) -> Pool:
    return {"type": "reserved", "reserved": {"gke": {"reservation": name}}}


_GKE = [
    *_to_and_from_zero(_L4),
    *_portable(_L4, {"shrunk": I, "fixed": D, "ended": I}, scoped=True, tag=D),
    Edit(
        {**_L4, "nodes": {"autoscaling": {"min": 0, "max": 3, "scope": "zone"}}},
        {"nodes": {"autoscaling": {"min": 0, "max": 3}}},
        {"nodes.autoscaling.scope": I},
    ),
    Edit(
        {**_L4, "nodes": {"autoscaling": {"min": 0, "max": 5}}, "zones": _BOTH},
        {"nodes": {"autoscaling": {"min": 0, "max": 4, "scope": "zone"}}},
        {"nodes.autoscaling.max": I, "nodes.autoscaling.scope": I},
    ),
    *(
        Edit({**_L4, **_OWN}, {"labels": {f"nvidia.com/{key}": "other"}}, {f"labels[nvidia.com/{key}]": D})
        for key in ("mig.config", "device-plugin.config")
    ),
    Edit(_L4, {"instanceType": "g2-standard-8"}, {"instanceType": D}),
    Edit(_L4, {"instanceType": "g2-standard-24"}, {"instanceType": R, "gpu": R}),
    Edit(_N1, {"instanceType": "n1-standard-4"}, {"instanceType": D}),
    Edit(_N1, {"gpu": {"model": "T4", "count": 2}}, {"gpu": R}),
    Edit(_L4, {"capacity": {"type": "spot"}}, {"capacity.type": R}),
    Edit({**_L4, "nodes": {"count": 2}}, {"zones": _BOTH}, {"zones": D}),
    Edit({**_L4, "nodes": {"count": 2}, "zones": _BOTH}, {"zones": _BOTH[:1]}, {"zones": D}),
    Edit({**_L4, "nodes": {"count": 2}, "zones": _BOTH}, {"zones": _BOTH[::-1]}, {}),
    Edit(_L4, {"zones": None}, {}),
    Edit({**_L4, "disk": {"sizeGiB": 100}}, {"disk": {"sizeGiB": 200}}, {"disk.sizeGiB": D}),
    Edit(
        {**_L4, "disk": {"sizeGiB": 100, "type": "pd-ssd"}},
        {"disk": {"sizeGiB": 100, "type": "pd-balanced"}},
        {"disk.type": D},
    ),
    Edit({**_L4, "image": "COS_CONTAINERD"}, {"image": "UBUNTU_CONTAINERD"}, {"image": D}),
    Edit(_A2, {"sharing": {"mig": {"profile": "2g.10gb"}}}, {"sharing.mig.profile": R}),
    Edit(_A2, {"sharing": None}, {"sharing.mig.profile": R}),
    Edit(_A2, {"sharing": {"mig": {"profile": "1g.5gb"}, **_slices(2)}}, {_CLIENTS: D}),
    Edit(_A2, {"sharing": {"mig": {"profile": "1g.5gb"}, "mps": {"replicas": 2}}}, {_MPS: D}),
    Edit(_L4, {"sharing": _slices(4)}, {_CLIENTS: D}),
    Edit({**_L4, "sharing": _slices(4)}, {"sharing": _slices(6)}, {_CLIENTS: D}),
    Edit({**_L4, "sharing": _slices(4)}, {"sharing": None}, {_CLIENTS: D}),
    Edit({**_L4, "sharing": {"mps": {"replicas": 4}}}, {"sharing": {"mps": {"replicas": 8}}}, {_MPS: D}),
    Edit({**_L4, "sharing": _slices(4)}, {"sharing": {"mps": {"replicas": 4}}}, {_CLIENTS: D, _MPS: D}),
    Edit(
        {**_L4, "taints": [_taint("k"), _taint("k", "NoExecute")]},
        {"taints": [_taint("k", "NoExecute")]},
        {"taints": I},
    ),
    Edit(_L4, {"gpuTaint": False}, {}),  # GKE adds it, whoever writes what
    Edit({**_L4, "tags": {"cost": "1"}}, {"tags": {"cost": "2"}}, {"tags[cost]": D}),
    Edit(_L4, {"tags": {"team": "x"}}, {"tags[team]": D}),
    Edit({**_L4, "nodes": {"count": 0}}, {"driver": {"owner": "none"}}, {"driver": D}),
    Edit(
        {**_L4, "nodes": {"count": 0}},
        {"driver": {"owner": "none"}, "devicePlugin": {"owner": "dra"}},
        {"devicePlugin": R, "driver": D, ADVERTISER: R, PRESENT: I, CLAIMS: I},
    ),
    Edit({**_L4, "nodes": {"count": 0}}, {"devicePlugin": {"owner": "none"}}, {"devicePlugin": R, "driver": D}),
    Edit({**_FLEX, "capacity": _flex("1h")}, {"capacity": _flex("2h")}, {"capacity.reserved.gke.maxRunDuration": R}),
    Edit({**_FLEX, "capacity": _flex("7d")}, {"capacity": _flex(None)}, {}),
    Edit({**_L4, "capacity": _ours("a")}, {"capacity": _ours("b")}, {"capacity.reserved.gke": R}),
    Edit({**_L4, "capacity": _ours("a")}, {"capacity": None}, {"capacity.reserved.gke": R, "capacity.type": R}),
    Edit({**_L4, "kubernetesVersion": "1.33"}, {"kubernetesVersion": "1.34"}, {"kubernetesVersion": D}),
    Edit({**_L4, "kubernetesVersion": "1.34.1"}, {"kubernetesVersion": "1.34"}, {}),
    Edit({**_L4, "upgrade": {"maxSurge": 1}}, {"upgrade": {"maxSurge": 2}}, {"upgrade.maxSurge": I}),
    Edit(_L4, {"upgrade": {"maxUnavailable": 1}}, {"upgrade.maxUnavailable": I}),
    Edit({**_L4, "maxPodsPerNode": 32}, {"maxPodsPerNode": 64}, {"maxPodsPerNode": R}),
    Edit({**_L4, "nodes": {"count": 0}}, {"driver": {"version": "latest"}}, {"driver.version": D}),
    Edit(
        {**_L4, "disk": {"type": "hyperdisk-balanced", "iops": 6000, "throughput": 500}},
        {"disk": {"type": "hyperdisk-balanced", "iops": 7000, "throughput": 600}},
        {"disk.iops": D, "disk.throughput": D},
    ),
    Edit(_L4, {"disk": {"kmsKey": "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"}}, {"disk.kmsKey": R}),
    Edit(_L4, {"placement": "compact"}, {"placement": R}),
    Edit(_L4, {"localStorage": "raw"}, {"localStorage": R}),
    Edit(_ULTRA, {"network": {"highSpeed": True}}, {"network.highSpeed": R}),
    Edit({**_ULTRA, "instanceType": "a3-highgpu-1g"}, {"confidential": True}, {"confidential": R}),
    Edit(
        _L4,
        {"kubelet": _KUBELET, "sysctls": {"net.core.somaxconn": "4096"}, "hugepages": {"2Mi": 512, "1Gi": 1}},
        {
            **{f"kubelet.{name}": D for name in _KUBELET},
            "sysctls[net.core.somaxconn]": D,
            "hugepages.2Mi": D,
            "hugepages.1Gi": D,
        },
    ),
    Edit({**_L4, "kubelet": _KUBELET}, {"kubelet": {"podPidsLimit": 2048}}, {"kubelet.podPidsLimit": D}),
    Edit({**_L4, "sysctls": {"net.core.somaxconn": "4096"}}, {"sysctls": None}, {}),
    Edit(_L4, {"gke": {"config": {"metadata": {"owner": "me"}}}}, {"gke.config.metadata.owner": R}),
    *_natives("gke", _L4, {path: kind for path, kind in _GKE_KINDS.items() if path not in _GKE_BY_WIRE}),
]

STRATEGY = Edit(
    _CUT,
    {"sharing": {"mig": {"profile": "1g.10gb", "strategy": "mixed"}}},
    {CONFIG: D, SEEN: I, "nodes.autoscaling.resources[nvidia.com/mig-1g.10gb]": I},
)
"""The strategy of the only pool that an operator cuts: it has one for the cluster, so it is edited alone."""

EDITS: Mapping[str, list[Edit]] = {"eks": _EKS, "aks": _AKS, "gke": _GKE}
ROWS: Mapping[str, set[str]] = {
    "eks": {*map(str, eks.INTENT_ROWS), *map(str, eks.NATIVE_ROWS)},
    "aks": {*map(str, aks.INTENT_ROWS), *map(str, aks.NATIVE_ROWS)},
    "gke": {*map(str, gke.INTENT_ROWS), *map(str, gke.NATIVE_ROWS)},
}
UNREACHED: Mapping[str, Mapping[str, str]] = {
    "eks": {
        "kubernetesVersion": "EKS takes the cluster's own version only; tests/wire/eks",
        **dict.fromkeys(
            ("eks.imageId", "eks.keyName", "eks.securityGroups"), "they must exist; tests/changes/test_eks_network"
        ),
    },
    "aks": {"driver": "pools without AKS's driver are made by others only; test_state has one"},
    "gke": {f"gke.{path}": why for path, why in _GKE_BY_WIRE.items()},
}
"""Cloud -> row that no edit of a spec leads to -> why."""
