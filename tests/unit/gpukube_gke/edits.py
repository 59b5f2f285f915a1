"""One edit of a live pool for every row of the updatability tables, and more where the class depends on the values.

Whoever adds a row adds its edit here: the tests of shapes, of calls and of the emulated service all run over this
table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpukube.core.diff import diff_fields
from gpukube.core.resolve import GPU_TAINT
from gpukube.core.values import Capacity, Disk, Nodes, Reservation, Taint, Upgrade
from gpukube.gpu.catalog import require_machine
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube_gke.pool.observe import observe_pool
from tests.unit.gpukube_gke.targets import desire, gke_target, reserved

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Change, Observed, Target, UpdateKind

A, B = "us-central1-a", "us-central1-b"
OLD, NEW = "1.34.1-gke.1500000", "1.34.1-gke.1829001"
BUILDS = {"1.33": "1.33.5-gke.1000000", "1.34": NEW}
"""What GKE makes of a minor version."""
ON, OFF = True, False
TAINTS = "config.taints"
LABELS = "config.labels"
GPUS = "config.accelerators"
OWN = Taint("dedicated", "ml", "NoSchedule")
EVICTING = Taint("dedicated", "ml", "NoExecute")


@dataclass(frozen=True)
class Edit:
    """A pool, and what it is to become.

    Attributes:
        base, target: Before and after, on the same cluster under the same name.
        row: Key of the table.
        field: The one field that differs.
        kind: Class of the change.
        moves: Paths of the pool as the API shows it that the change may move.
    """

    base: Target
    target: Target
    row: str
    field: str
    kind: UpdateKind
    moves: tuple[str, ...]


def nodes(count: int) -> Nodes:
    return Nodes(count, count, count, autoscaled=False)


def scaled(low: int, high: int) -> Nodes:
    return Nodes(low, low, high, autoscaled=True)


def shared(mode: str, clients: int) -> Sharing:
    return Sharing(None, Slicing(mode, clients))  # type: ignore[arg-type]  # one of the modes


def flexible(run_s: int | None = None) -> Capacity:
    return Capacity("reserved", None, Reservation("flexStart", max_run_s=run_s))


BASE = replace(gke_target("g2-standard-8", zones=(A,), name="edited", pool="edited"), labels={"team": "vision"})


def edit(field: str, kind: UpdateKind, *moves: str, before: object = None, row: str = "", **after: object) -> Edit:
    """Make an edit; `before` are the fields in which the base differs, and both have."""
    base = replace(BASE, **(before or {}))  # type: ignore[arg-type]  # test data
    return Edit(base, replace(base, **after), row or field, field, kind, moves)  # type: ignore[arg-type]  # as above


INTENT: dict[str, Edit] = {
    "instanceType": edit(
        "instanceType",
        "replace",
        before={"machine": require_machine("gke", "g4-standard-6")},
        machine=require_machine("gke", "g4-standard-12"),
    ),
    "instanceType, the same GPUs": edit(
        "instanceType",
        "disruptive",
        "config.machineType",
        "config.resourceLabels",
        machine=require_machine("gke", "g2-standard-12"),
    ),
    "gpu": edit(
        "gpu",
        "replace",
        before={"machine": gke_target("n1-standard-8", ("T4", 1)).machine},
        machine=gke_target("n1-standard-8", ("T4", 2)).machine,
    ),
    "nodes.count": edit("nodes.count", "in-place", "initialNodeCount", nodes=nodes(2)),
    "nodes.count, fewer": edit(
        "nodes.count", "disruptive", "initialNodeCount", before={"nodes": nodes(2)}, nodes=nodes(1)
    ),
    "nodes.autoscaling.min": edit(
        "nodes.autoscaling.min",
        "in-place",
        "autoscaling.totalMinNodeCount",
        before={"nodes": scaled(0, 3)},
        nodes=replace(scaled(0, 3), minimum=1),
    ),
    "nodes.autoscaling.max": edit(
        "nodes.autoscaling.max",
        "in-place",
        "autoscaling.totalMaxNodeCount",
        before={"nodes": scaled(0, 3)},
        nodes=scaled(0, 5),
    ),
    "nodes.autoscaling.scope": edit(
        "nodes.autoscaling.scope",
        "in-place",
        "autoscaling.maxNodeCount",
        "autoscaling.totalMaxNodeCount",
        before={"nodes": replace(scaled(0, 4), scope="zone"), "zones": (A, B)},
        nodes=scaled(0, 4),
    ),
    "nodes.autoscaling.scope, each zone": edit(
        "nodes.autoscaling.scope",
        "in-place",
        "autoscaling.maxNodeCount",
        "autoscaling.totalMaxNodeCount",
        before={"nodes": scaled(0, 4), "zones": (A, B)},
        nodes=replace(scaled(0, 4), scope="zone"),
    ),
    "capacity.type": edit("capacity.type", "replace", capacity=Capacity("spot")),
    "capacity.reserved.gke": edit(
        "capacity.reserved.gke",
        "replace",
        before={"nodes": scaled(0, 3), "capacity": flexible()},
        capacity=Capacity("reserved", None, Reservation("queued")),
    ),
    "capacity.reserved.gke, another reservation": edit(
        "capacity.reserved.gke",
        "replace",
        before={"capacity": Capacity("reserved", None, Reservation("reservation", "ours"))},
        capacity=Capacity("reserved", None, Reservation("reservation", "projects/lender/reservations/theirs")),
    ),
    "capacity.reserved.gke.maxRunDuration": edit(
        "capacity.reserved.gke.maxRunDuration",
        "replace",
        before={"nodes": scaled(0, 3), "capacity": flexible(3600)},
        capacity=flexible(7200),
    ),
    "capacity.reserved.gke.maxRunDuration, as long as can be": edit(
        "capacity.reserved.gke.maxRunDuration",
        "replace",
        before={"nodes": scaled(0, 3), "capacity": flexible(3600)},
        capacity=flexible(604800),
    ),
    "zones, one more": edit(
        "zones", "disruptive", "locations", "initialNodeCount", before={"nodes": nodes(2)}, zones=(A, B)
    ),
    "zones, one less": edit(
        "zones", "disruptive", "locations", "initialNodeCount", before={"nodes": nodes(2), "zones": (A, B)}, zones=(A,)
    ),
    "zones, another": edit("zones", "disruptive", "locations", zones=(B,)),
    "zones, of an autoscaled pool": edit(
        "zones", "disruptive", "locations", before={"nodes": scaled(0, 4)}, zones=(A, B)
    ),
    "zones, of one autoscaled by zone": edit(
        "zones",
        "disruptive",
        "locations",
        "autoscaling.maxNodeCount",
        before={"nodes": replace(scaled(0, 4), scope="zone")},
        zones=(A, B),
    ),
    "disk.sizeGiB": edit(
        "disk.sizeGiB", "disruptive", "config.diskSizeGb", "config.bootDisk.sizeGb", disk=Disk(200, None)
    ),
    "disk.type": edit(
        "disk.type", "disruptive", "config.diskType", "config.bootDisk.diskType", disk=Disk(None, "pd-ssd")
    ),
    "image": edit("image", "disruptive", "config.imageType", image="UBUNTU_CONTAINERD"),
    "kubernetesVersion": edit(
        "kubernetesVersion", "disruptive", "version", before={"kubernetes_version": OLD}, kubernetes_version=NEW
    ),
    "kubernetesVersion, a minor one": edit(
        "kubernetesVersion", "disruptive", "version", before={"kubernetes_version": "1.33"}, kubernetes_version="1.34"
    ),
    "upgrade.maxSurge": edit("upgrade.maxSurge", "in-place", "upgradeSettings.maxSurge", upgrade=Upgrade("2")),
    "upgrade.maxUnavailable": edit(
        "upgrade.maxUnavailable", "in-place", "upgradeSettings.maxUnavailable", upgrade=Upgrade(None, "1")
    ),
    "maxPodsPerNode": edit("maxPodsPerNode", "replace", max_pods=32),
    "sharing.mig.profile": edit(
        "sharing.mig.profile",
        "replace",
        before={"machine": require_machine("gke", "a2-highgpu-1g"), "sharing": Sharing(MigCut("1g.5gb", "single"))},
        sharing=Sharing(MigCut("2g.10gb", "single")),
    ),
    "sharing.timeSlicing.replicas": edit(
        "sharing.timeSlicing.replicas",
        "disruptive",
        GPUS,
        before={"sharing": shared("time-slicing", 2)},
        sharing=shared("time-slicing", 4),
    ),
    "sharing.timeSlicing.replicas, new": edit(
        "sharing.timeSlicing.replicas", "disruptive", GPUS, sharing=shared("time-slicing", 4)
    ),
    "sharing.timeSlicing.replicas, gone": edit(
        "sharing.timeSlicing.replicas",
        "disruptive",
        GPUS,
        before={"sharing": shared("time-slicing", 4)},
        sharing=Sharing(),
    ),
    "sharing.timeSlicing.replicas, on MIG": edit(
        "sharing.timeSlicing.replicas",
        "disruptive",
        GPUS,
        before={"machine": require_machine("gke", "a2-highgpu-1g"), "sharing": Sharing(MigCut("1g.5gb", "single"))},
        sharing=Sharing(MigCut("1g.5gb", "single"), Slicing("time-slicing", 3)),
    ),
    "sharing.mps.replicas": edit(
        "sharing.mps.replicas", "disruptive", GPUS, before={"sharing": shared("mps", 2)}, sharing=shared("mps", 8)
    ),
    "labels, new": edit(
        "labels[tier]", "in-place", f"{LABELS}.tier", row="labels[*]", labels={"team": "vision", "tier": "gold"}
    ),
    "labels, another": edit("labels[team]", "in-place", f"{LABELS}.team", row="labels[*]", labels={"team": "speech"}),
    "labels[nvidia.com/device-plugin.config]": edit(
        "labels[nvidia.com/device-plugin.config]",
        "disruptive",
        f"{LABELS}.nvidia.com/device-plugin.config",
        before={"labels": {}, "plugin_owner": "none", "driver_owner": "none"},
        labels={"nvidia.com/device-plugin.config": "shared"},
    ),
    "labels[nvidia.com/mig.config]": edit(
        "labels[nvidia.com/mig.config]",
        "disruptive",
        f"{LABELS}.nvidia.com/mig.config",
        before={"labels": {}, "plugin_owner": "none", "driver_owner": "none"},
        labels={"nvidia.com/mig.config": "all-1g.10gb"},
    ),
    "labels, gone": edit("labels[team]", "in-place", f"{LABELS}.team", row="labels[*]", labels={}),
    "taints": edit("taints", "in-place", TAINTS, taints=(GPU_TAINT, OWN)),
    "taints, gone": edit("taints", "in-place", TAINTS, before={"taints": (GPU_TAINT, EVICTING)}, taints=(GPU_TAINT,)),
    "taints, another value": edit(
        "taints",
        "in-place",
        TAINTS,
        before={"taints": (GPU_TAINT, OWN)},
        taints=(GPU_TAINT, replace(OWN, value="research")),
    ),
    "taints, evicting": edit("taints", "disruptive", TAINTS, taints=(GPU_TAINT, EVICTING)),
    "tags": edit(
        "tags[env]",
        "disruptive",
        "config.resourceLabels.env",
        "config.resourceLabels.gpukube_tags",  # the record of the names
        row="tags[*]",
        tags={"env": "dev"},
    ),
    "tags, another": edit(
        "tags[env]",
        "disruptive",
        "config.resourceLabels.env",
        row="tags[*]",
        before={"tags": {"env": "dev", "team": "ml"}},
        tags={"env": "prod", "team": "ml"},
    ),
    "deletionProtection": edit("deletionProtection", "in-place", f"{LABELS}.gpukube.io/protect", protect=True),
    "deletionProtection, off": edit(
        "deletionProtection", "in-place", f"{LABELS}.gpukube.io/protect", before={"protect": True}, protect=False
    ),
    "driver": edit("driver", "disruptive", GPUS, driver_owner="none"),
    "driver, installed": edit("driver", "disruptive", GPUS, before={"driver_owner": "none"}, driver_owner="auto"),
    "driver.version": edit("driver.version", "disruptive", GPUS, driver_version="latest"),
    "driver.version, GKE's again": edit(
        "driver.version", "disruptive", GPUS, before={"driver_version": "latest"}, driver_version=""
    ),
    "devicePlugin": edit("devicePlugin", "replace", before={"driver_owner": "none"}, plugin_owner="none"),
}


def nested(path: str, value: object) -> dict[str, object]:
    """A native field as a spec writes it."""
    for name in reversed(path.split(".")):
        value = {name: [value] if name == "accelerators" else value}
    assert isinstance(value, dict)
    return value


def merged(*parts: Mapping[str, object]) -> dict[str, object]:
    found: dict[str, object] = {}
    for part in parts:
        for name, value in part.items():
            old = found.get(name)
            found[name] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return found


def native_edit(path: str, kind: UpdateKind, value: object, *moves: str, old: object = None, **before: object) -> Edit:
    """Change one native field; `before` are fields of the base, whose native ones both have."""
    given = before.pop("native", {})
    assert isinstance(given, dict)
    first = merged(given, nested(path, old)) if old is not None else given
    base = replace(BASE, **before, native=first)  # type: ignore[arg-type]  # test data
    target = replace(base, native=merged(given, nested(path, value)))
    return Edit(base, target, f"gke.{path}", f"gke.{path}", kind, moves or (path,))


GVNIC: dict[str, object] = {"config": {"gvnic": {"enabled": True}}}
OWN_RANGE: dict[str, object] = {"networkConfig": {"createPodRange": True}}
BEST_EFFORT: dict[str, object] = {"bestEffortProvisioning": {"enabled": True}}
PATIENT: dict[str, object] = {"nodeDrainConfig": {"respectPdbDuringNodePoolDeletion": True}}
CACHE = {"diskImage": "projects/p/global/images/models", "mode": "CONTAINER_IMAGE_CACHE"}
NATIVE_EDITS: tuple[Edit, ...] = (
    native_edit("management.autoUpgrade", "in-place", OFF),
    native_edit("management.autoRepair", "in-place", OFF),
    native_edit("upgradeSettings.strategy", "in-place", "BLUE_GREEN"),
    native_edit("autoscaling.locationPolicy", "in-place", "ANY", nodes=scaled(0, 3)),
    native_edit("config.gvnic.enabled", "disruptive", ON, "config.gvnic"),
    native_edit("config.fastSocket.enabled", "disruptive", ON, "config.fastSocket", native=GVNIC),
    native_edit("config.tags", "in-place", ["gpu"]),
    native_edit("config.consolidationDelay", "in-place", "600s", nodes=scaled(0, 3)),
    native_edit(
        "config.taintConfig.architectureTaintBehavior",
        "in-place",
        "NONE",
        machine=require_machine("gke", "a4x-highgpu-4g"),
        capacity=reserved("reservation", "ours"),
    ),
    native_edit("networkConfig.enablePrivateNodes", "disruptive", ON),
    native_edit("config.workloadMetadataConfig.mode", "disruptive", "GKE_METADATA"),
    native_edit("config.gcfsConfig.enabled", "disruptive", ON, "config.gcfsConfig"),
    native_edit("config.loggingConfig.variantConfig.variant", "disruptive", "MAX_THROUGHPUT"),
    native_edit("nodeDrainConfig.respectPdbDuringNodePoolDeletion", "in-place", ON),
    native_edit("nodeDrainConfig.pdbTimeoutDuration", "in-place", "600s", native=PATIENT),
    native_edit("nodeDrainConfig.graceTerminationDuration", "in-place", "60s"),
    native_edit("networkConfig.additionalNodeNetworkConfigs", "replace", [{"network": "gpu-net", "subnetwork": "gpu"}]),
    native_edit("networkConfig.acceleratorNetworkProfile", "replace", "auto"),
    native_edit("config.advancedMachineFeatures.threadsPerCore", "replace", 1),
    native_edit("config.secondaryBootDisks", "replace", [CACHE]),
    native_edit("networkConfig.createPodRange", "replace", ON),
    native_edit("networkConfig.podRange", "replace", "pods"),
    native_edit("networkConfig.podIpv4CidrBlock", "replace", "10.0.0.0/20", native=OWN_RANGE),
    native_edit("placementPolicy.type", "replace", "COMPACT"),
    native_edit("placementPolicy.policyName", "replace", "near"),
    native_edit("bestEffortProvisioning.enabled", "replace", ON),
    native_edit("bestEffortProvisioning.minProvisionNodes", "replace", 1, native=BEST_EFFORT),
    native_edit("config.serviceAccount", "replace", "sa@ml-prod.iam.gserviceaccount.com"),
    native_edit("config.oauthScopes", "replace", ["https://www.googleapis.com/auth/cloud-platform"]),
    native_edit("config.minCpuPlatform", "replace", "Intel Ice Lake"),
    native_edit("config.maxRunDuration", "replace", "604800s"),
    native_edit("config.reservationAffinity.consumeReservationType", "replace", "NO_RESERVATION"),
    native_edit("config.ephemeralStorageLocalSsdConfig.localSsdCount", "replace", 1),
    native_edit("config.localNvmeSsdBlockConfig.localSsdCount", "replace", 1),
    native_edit("config.shieldedInstanceConfig.enableSecureBoot", "replace", ON),
    native_edit("config.shieldedInstanceConfig.enableIntegrityMonitoring", "replace", ON),
    native_edit("config.gpuDirectConfig.gpuDirectStrategy", "replace", "RDMA"),
    native_edit("config.bootDiskKmsKey", "replace", "projects/p/locations/l/keyRings/r/cryptoKeys/k"),
)
EDITS: dict[str, Edit] = INTENT | {one.row: one for one in NATIVE_EDITS}
"""Name -> edit. The names begin with the row."""


def live_of(target: Target, etag: str = "e1") -> Observed:
    """The pool that GKE would show for a target, where other nodes are in the cluster."""
    sent = desire(target).create.params["nodePool"]
    assert isinstance(sent, dict)
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}
    config = {**sent["config"], "taints": [*sent["config"].get("taints", ()), taint]}
    filled = {"imageType": "COS_CONTAINERD", "diskType": "pd-balanced", "diskSizeGb": 100}
    version = BUILDS.get(str(sent.get("version")), sent.get("version", NEW))
    defaults: dict[str, object] = {"status": "RUNNING", "etag": etag, "upgradeSettings": {"maxSurge": 1}}
    return observe_pool({**defaults, **sent, "version": version, "config": {**filled, **config}})


def changes_of(one: Edit) -> tuple[Change, ...]:
    return diff_fields(desire(one.target).fields, live_of(one.base).fields)


def native_fields(value: object, prefix: str = "") -> dict[str, object]:
    """Every leaf of a pool as the API shows it, by its path; lists are leaves."""
    if not isinstance(value, dict):
        return {prefix.rstrip("."): value}
    found: dict[str, object] = {}
    for name, inner in value.items():
        found |= native_fields(inner, f"{prefix}{name}.")
    return found
