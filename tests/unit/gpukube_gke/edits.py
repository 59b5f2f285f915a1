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


FAST = Disk(200, "hyperdisk-balanced", 6000, 500)
KEY = "projects/p/locations/l/keyRings/r/cryptoKeys/k"
KUBELET: dict[str, object] = {
    "cpuManagerPolicy": "static",
    "topologyManagerPolicy": "restricted",
    "topologyManagerScope": "pod",
    "memoryManagerPolicy": "Static",
    "podPidsLimit": 4096,
    "cpuCFSQuota": OFF,
    "cpuCFSQuotaPeriod": "10ms",
    "imageGCHighThresholdPercent": 70,
    "imageGCLowThresholdPercent": 60,
    "containerLogMaxSize": "50Mi",
    "containerLogMaxFiles": 3,
    "allowedUnsafeSysctls": ("net.core.somaxconn", "kernel.msg*"),
}
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
    "network.highSpeed": edit(
        "network.highSpeed",
        "replace",
        before={"machine": require_machine("gke", "a3-ultragpu-8g"), "capacity": reserved("reservation", "ours")},
        high_speed=True,
    ),
    "placement": edit("placement", "replace", placement="compact"),
    "placement, a policy": edit("placement", "replace", before={"placement": "compact"}, placement="near"),
    "disk.iops": edit(
        "disk.iops", "disruptive", "config.bootDisk", before={"disk": FAST}, disk=replace(FAST, iops=9000)
    ),
    "disk.throughput": edit(
        "disk.throughput", "disruptive", "config.bootDisk", before={"disk": FAST}, disk=replace(FAST, throughput=700)
    ),
    "disk.kmsKey": edit("disk.kmsKey", "replace", disk=Disk(None, None, kms_key=KEY)),
    "localStorage": edit("localStorage", "replace", local_storage="ephemeral"),
    "localStorage, raw": edit("localStorage", "replace", before={"local_storage": "ephemeral"}, local_storage="raw"),
    "confidential": edit(
        "confidential",
        "replace",
        before={"machine": require_machine("gke", "a3-highgpu-1g"), "capacity": Capacity("spot")},
        confidential=True,
    ),
    **{
        f"kubelet.{name}": edit(f"kubelet.{name}", "disruptive", "config.kubeletConfig", kubelet={name: value})
        for name, value in KUBELET.items()
    },
    "kubelet, beside others": edit(
        "kubelet.podPidsLimit",
        "disruptive",
        "config.kubeletConfig.podPidsLimit",
        before={"kubelet": {"cpuManagerPolicy": "static", "podPidsLimit": 2048}},
        kubelet={"cpuManagerPolicy": "static", "podPidsLimit": 4096},
    ),
    "sysctls": edit(
        "sysctls[net.core.somaxconn]",
        "disruptive",
        "config.linuxNodeConfig.sysctls.net.core.somaxconn",
        row="sysctls[*]",
        before={"sysctls": {"vm.max_map_count": "262144"}},
        sysctls={"vm.max_map_count": "262144", "net.core.somaxconn": "4096"},
    ),
    "hugepages.2Mi": edit("hugepages.2Mi", "disruptive", "config.linuxNodeConfig", hugepages={"2Mi": 512}),
    "hugepages.1Gi": edit(
        "hugepages.1Gi",
        "disruptive",
        "config.linuxNodeConfig.hugepages.hugepageSize1g",
        before={"hugepages": {"2Mi": 512}},
        hugepages={"2Mi": 512, "1Gi": 2},
    ),
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
STREAMED: dict[str, object] = {"config": {"gcfsConfig": {"enabled": True}}}
CACHE = {"diskImage": "projects/p/global/images/models", "mode": "CONTAINER_IMAGE_CACHE"}
CONTAINERD = "config.containerdConfig"
SECRET = "projects/p/secrets/ca/versions/1"
BLUE_GREEN = "upgradeSettings.blueGreenSettings"
GREEN: dict[str, object] = {"upgradeSettings": {"strategy": "BLUE_GREEN"}}
AT_CREATION: dict[str, object] = {
    "networkConfig.subnetwork": "projects/p/regions/us-central1/subnetworks/nodes",
    "networkConfig.podCidrOverprovisionConfig.disable": ON,
    "networkConfig.additionalPodNetworkConfigs": [{"subnetwork": "s", "secondaryPodRange": "r"}],
    "config.enableConfidentialStorage": ON,
    "config.ephemeralStorageLocalSsdConfig.dataCacheCount": 1,
    "config.localSsdEncryptionMode": "EPHEMERAL_KEY_ENCRYPTION",
    "config.nodeGroup": "g",
    "config.soleTenantConfig.nodeAffinities": [{"key": "k", "operator": "IN", "values": ["v"]}],
    "config.soleTenantConfig.minNodeCpus": 4,
    "config.advancedMachineFeatures.enableNestedVirtualization": ON,
    "config.advancedMachineFeatures.performanceMonitoringUnit": "STANDARD",
}
SPOT: dict[str, object] = {"capacity": Capacity("spot")}
SHUTDOWN: dict[str, object] = {**SPOT, "native": nested("config.kubeletConfig.shutdownGracePeriodSeconds", 120)}
OF_KUBELET: tuple[tuple[str, object, dict[str, object]], ...] = (
    ("insecureKubeletReadonlyPortEnabled", ON, {}),
    ("imageMinimumGcAge", "1m", {}),
    ("imageMaximumGcAge", "10m", {}),
    *(
        (f"{message}.{signal}", value, {})
        for message, value in (
            ("evictionSoft", "10%"), ("evictionSoftGracePeriod", "1m"), ("evictionMinimumReclaim", "5%"),
        )
        for signal in (
            "memoryAvailable", "nodefsAvailable", "nodefsInodesFree", "imagefsAvailable", "imagefsInodesFree",
            "pidAvailable",
        )
    ),
    ("evictionMaxPodGracePeriodSeconds", 60, {}),
    ("maxParallelImagePulls", 5, {}),
    ("singleProcessOomKill", ON, {}),
    ("crashLoopBackOff.maxContainerRestartPeriod", "60s", {}),
    ("shutdownGracePeriodSeconds", 30, SPOT),
    ("shutdownGracePeriodCriticalPodsSeconds", 30, SHUTDOWN),
)  # fmt: skip
OF_LINUX: dict[str, object] = {
    "cgroupMode": "CGROUP_MODE_V2",
    "transparentHugepageEnabled": "TRANSPARENT_HUGEPAGE_ENABLED_ALWAYS",
    "transparentHugepageDefrag": "TRANSPARENT_HUGEPAGE_DEFRAG_DEFER",
    "customNodeInit.initScript.gcsUri": "gs://scripts/init.sh",
    "customNodeInit.initScript.gcsGeneration": 7,
    "customNodeInit.initScript.args": ["--fast"],
    "customNodeInit.initScript.gcpSecretManagerSecretUri": SECRET,
    "swapConfig.enabled": ON,
    "swapConfig.encryptionConfig.disabled": ON,
    "swapConfig.bootDiskProfile.swapSizeGib": 8,
    "swapConfig.bootDiskProfile.swapSizePercent": 10,
    "swapConfig.ephemeralLocalSsdProfile.swapSizeGib": 8,
    "swapConfig.ephemeralLocalSsdProfile.swapSizePercent": 10,
    "swapConfig.dedicatedLocalSsdProfile.diskCount": 1,
    "nodeKernelModuleLoading.policy": "ENFORCE_SIGNED_MODULES",
    "accurateTimeConfig.enablePtpKvmTimeSync": ON,
    "nodeVfioConfig.dmaEntryLimit": 65535,
    "diskIoScheduler.nodeSystemIoScheduler": "none",
    "diskIoScheduler.nodeAttachedDiskIoScheduler": "mq-deadline",
}
SOAKS: dict[str, object] = {
    "standardRolloutPolicy.batchPercentage": 0.5,
    "standardRolloutPolicy.batchNodeCount": 2,
    "standardRolloutPolicy.batchSoakDuration": "60s",
    "autoscaledRolloutPolicy.waitForDrainDuration": "3600s",
    "nodePoolSoakDuration": "600s",
}
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
    native_edit("config.advancedMachineFeatures.threadsPerCore", "replace", 1),
    native_edit("config.secondaryBootDisks", "replace", [CACHE], native=STREAMED),
    native_edit("networkConfig.createPodRange", "replace", ON),
    native_edit("networkConfig.podRange", "replace", "pods"),
    native_edit("networkConfig.podIpv4CidrBlock", "replace", "10.0.0.0/20", native=OWN_RANGE),
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
    native_edit("config.shieldedInstanceConfig.enableIntegrityMonitoring", "replace", OFF),
    native_edit("config.gpuDirectConfig.gpuDirectStrategy", "replace", "RDMA"),
    *(native_edit(path, "replace", value) for path, value in AT_CREATION.items()),
    Edit(
        BASE,
        replace(BASE, native={"config": {"metadata": {"owner": "me"}}}),
        "gke.config.metadata.*",
        "gke.config.metadata.owner",
        "replace",
        (),
    ),
    *(
        native_edit(f"config.kubeletConfig.{path}", "disruptive", value, "config.kubeletConfig", **more)
        for path, value, more in OF_KUBELET
    ),
    *(
        native_edit(f"config.linuxNodeConfig.{path}", "disruptive", value, "config.linuxNodeConfig")
        for path, value in OF_LINUX.items()
    ),
    native_edit("config.containerdConfig.privateRegistryAccessConfig.enabled", "disruptive", ON, CONTAINERD),
    native_edit(
        "config.containerdConfig.privateRegistryAccessConfig.certificateAuthorityDomainConfig",
        "disruptive",
        [{"fqdns": ["r.example.com"], "gcpSecretManagerCertificateConfig": {"secretUri": SECRET}}],
        CONTAINERD,
        native=nested("config.containerdConfig.privateRegistryAccessConfig.enabled", value=True),
    ),
    native_edit("config.containerdConfig.writableCgroups.enabled", "disruptive", ON, CONTAINERD),
    native_edit(
        "config.containerdConfig.registryHosts",
        "disruptive",
        [{"server": "r.example.com", "hosts": [{"host": "m.example.com", "overridePath": True}]}],
        CONTAINERD,
    ),
    native_edit("config.resourceManagerTags.tags", "disruptive", {"tagKeys/1": "tagValues/2"}),
    native_edit("config.storagePools", "disruptive", ["projects/p/zones/us-central1-a/storagePools/s"]),
    native_edit("networkConfig.networkPerformanceConfig.totalEgressBandwidthTier", "disruptive", "TIER_1"),
    native_edit("maintenancePolicy.exclusionUntilEndOfSupport.enabled", "in-place", ON, "maintenancePolicy"),
    *(
        native_edit(f"{BLUE_GREEN}.{path}", "in-place", value, BLUE_GREEN, native=GREEN, nodes=scaled(0, 3))
        for path, value in SOAKS.items()
    ),
)
EDITS: dict[str, Edit] = INTENT | {one.row: one for one in NATIVE_EDITS}
"""Name -> edit. The names begin with the row."""


def live_of(target: Target, etag: str = "e1") -> Observed:
    """The pool that GKE would show for a target, where other nodes are in the cluster."""
    sent = desire(target).create.params["nodePool"]
    assert isinstance(sent, dict)
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}
    config = {**sent["config"], "taints": [*sent["config"].get("taints", ()), taint]}
    filled = {
        "imageType": "COS_CONTAINERD",
        "diskType": "pd-balanced",
        "diskSizeGb": 100,
        "shieldedInstanceConfig": {"enableIntegrityMonitoring": True},
    }
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
