"""Every member of GKE's node pools: what gpukube does with it, its form, the effect of a change, and GKE's default.

In scope: the one table, and which members of a live pool a person chose. Out of scope: checking the `gke:` fields of a
spec against it (`native`), rows of portable fields (`fields`).

Names and forms are those of google.container.v1 (google-cloud-container 2.67.0, messages NodePool and NodeConfig).
Defaults are what a GET shows of a pool that was created without the member (google.container.v1; a pool of GKE 1.33
that cloud-barista recorded in 2026; GoogleCloudPlatform/magic-modules#12027), or what it means if it is absent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from gpukube.core.binding import Effect
from gpukube.core.diff import diff_fields
from gpukube.core.fields import CAPACITY_TYPE
from gpukube.core.jsontree import at, merged, text, tree, trees
from gpukube.core.members import Member, chosen_members, lost_members
from gpukube.core.resolve import GPU_TAINT
from gpukube_gke.facts.boot_disks import default_disk_type
from gpukube_gke.facts.labels import SYSTEM_LABELS
from gpukube_gke.pool.effects import (
    AT_CREATION,
    FROM_NOW_ON,
    MAYBE_RECREATED,
    NEXT_DRAIN,
    NEXT_UPGRADE,
    NO_CALL,
    PROTO,
    RECREATED,
    RUN_DURATION,
    SET_MANAGEMENT,
    SET_SCALING,
    TERRAFORM,
    UPDATE,
)
from gpukube_gke.pool.fields import OPT_OUT_LABEL, SYSTEM_TAINTS
from gpukube_gke.pool.marks import FORM
from gpukube_gke.pool.purchase import observe_buying

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.core.members import Chosen
    from gpukube.core.provider_parts import PoolMembers
    from gpukube.core.values import Desired, Observed

Leaf: TypeAlias = (
    "Literal['bool', 'int', 'share', 'str', 'strs', 'map', 'metadata', 'scopes', 'tags', 'seconds', 'range', "
    "'subnetwork', 'networks', 'pods', 'disks', 'affinities', 'domains', 'registries'] | tuple[str, ...]"
)
"""The form of a native field: a JSON type, a form of texts, a list of strings or messages, or its enum values."""


@dataclass(frozen=True, slots=True)
class GkeMember(Member):
    """A member of the messages.

    Attributes:
        write: What to write in the spec instead of the member, if that is not just the field in `spec`.
        leaf: Form of a native field.
        effect: What a change of a native field does.
    """

    write: str = ""
    leaf: Leaf | None = None
    effect: Effect | None = None


def _field(spec: str, *defaults: object, write: str = "") -> GkeMember:
    return GkeMember("field", spec, defaults=defaults, write=write)


def _native(leaf: Leaf, effect: Effect, *defaults: object) -> GkeMember:
    return GkeMember("native", defaults=defaults, leaf=leaf, effect=effect)


def _server(write: str = "") -> GkeMember:
    """A member that GKE makes, or that identifies the pool."""
    return GkeMember("server", write=write, reason="" if write else "read-only")


def _unsupported(reason: str) -> GkeMember:
    return GkeMember("unsupported", reason=reason)


def _rolls(member: str, sentence: str = MAYBE_RECREATED) -> Effect:
    return Effect("disruptive", sentence, f"{PROTO}{member}", UPDATE)


def _later(member: str, sentence: str) -> Effect:
    return Effect("in-place", sentence, f"{PROTO}{member}", UPDATE)


_AT_CREATION: Final = Effect("replace", AT_CREATION, TERRAFORM)
_NEVER: Final = Effect("replace", AT_CREATION, NO_CALL)
_MANAGEMENT: Final = Effect(
    "in-place", FROM_NOW_ON, "google.container.v1 SetNodePoolManagementRequest.management", SET_MANAGEMENT
)
_UPGRADE: Final = _later("upgrade_settings", NEXT_UPGRADE)
_DRAIN: Final = _later("node_drain_config", NEXT_DRAIN)
_KUBELET: Final = _rolls("kubelet_config")
_LINUX: Final = _rolls("linux_node_config")
_CONTAINERD: Final = _rolls("containerd_config", RECREATED)

_ON: Final = True
_GCLOUD_SCOPES: Final = [
    f"https://www.googleapis.com/auth/{name}"
    for name in (
        "devstorage.read_only",
        "logging.write",
        "monitoring",
        "service.management.readonly",
        "servicecontrol",
        "trace.append",
    )
]
"""The scopes of `gcloud container node-pools create`, and of gpukube."""
_LOGGING_SCOPES: Final = [f"https://www.googleapis.com/auth/{name}" for name in ("logging.write", "monitoring")]
"""The scopes that GKE adds if a request has none (google.container.v1 NodeConfig.oauth_scopes)."""
_SIGNALS: Final = (
    "memoryAvailable",
    "nodefsAvailable",
    "nodefsInodesFree",
    "imagefsAvailable",
    "imagefsInodesFree",
    "pidAvailable",
)
_THP: Final = "TRANSPARENT_HUGEPAGE"
_TPU: Final = "it is for TPUs"

_POOL: Final[dict[str, GkeMember]] = {
    "name": _server("names.gke"),
    "initialNodeCount": _field("nodes.count"),
    "locations": _field("zones"),
    "version": _server("kubernetesVersion"),  # a new pool has the control plane's, unless the spec names another
    "selfLink": _server(),
    "instanceGroupUrls": _server(),
    "status": _server(),
    "statusMessage": _server(),
    "conditions": _server(),
    "podIpv4CidrSize": _server(),
    "updateInfo": _server(),
    "etag": _server(),
    "kubeletCertInfo": _server(),
    "autoscaling.enabled": _field("nodes.autoscaling"),
    "autoscaling.minNodeCount": _field("nodes.autoscaling.min", write="nodes.autoscaling.min with scope: zone"),
    "autoscaling.maxNodeCount": _field("nodes.autoscaling.max", write="nodes.autoscaling.max with scope: zone"),
    "autoscaling.totalMinNodeCount": _field("nodes.autoscaling.min"),
    "autoscaling.totalMaxNodeCount": _field("nodes.autoscaling.max"),
    "autoscaling.locationPolicy": _native(
        ("BALANCED", "ANY"),
        Effect("in-place", FROM_NOW_ON, "google.container.v1 NodePoolAutoscaling.location_policy", SET_SCALING),
        "BALANCED",
    ),
    "autoscaling.autoprovisioned": _unsupported("the autoscaler creates and deletes such pools"),
    "management.autoUpgrade": _native("bool", _MANAGEMENT, _ON),
    "management.autoRepair": _native("bool", _MANAGEMENT, _ON),
    "management.upgradeOptions": _server(),
    "maxPodsConstraint.maxPodsPerNode": _field("maxPodsPerNode", "110", 110),
    "upgradeSettings.maxSurge": _field("upgrade.maxSurge", 1),
    "upgradeSettings.maxUnavailable": _field("upgrade.maxUnavailable", 0),
    "upgradeSettings.strategy": _native(("SURGE", "BLUE_GREEN", "SHORT_LIVED"), _UPGRADE, "SURGE", "SHORT_LIVED"),
    "upgradeSettings.blueGreenSettings.standardRolloutPolicy.batchPercentage": _native("share", _UPGRADE),
    "upgradeSettings.blueGreenSettings.standardRolloutPolicy.batchNodeCount": _native("int", _UPGRADE),
    "upgradeSettings.blueGreenSettings.standardRolloutPolicy.batchSoakDuration": _native("seconds", _UPGRADE, "0s"),
    "upgradeSettings.blueGreenSettings.autoscaledRolloutPolicy.waitForDrainDuration": _native("seconds", _UPGRADE),
    "upgradeSettings.blueGreenSettings.nodePoolSoakDuration": _native("seconds", _UPGRADE),
    "placementPolicy.type": _field("placement"),
    "placementPolicy.policyName": _field("placement"),
    "placementPolicy.tpuTopology": _unsupported(_TPU),
    "queuedProvisioning.enabled": _field(
        "capacity.reserved.gke.queued", write="capacity.type: reserved and capacity.reserved.gke.queued"
    ),
    "bestEffortProvisioning.enabled": _native("bool", _NEVER),
    "bestEffortProvisioning.minProvisionNodes": _native("int", _NEVER),
    "nodeDrainConfig.respectPdbDuringNodePoolDeletion": _native("bool", _DRAIN),
    "nodeDrainConfig.pdbTimeoutDuration": _native("seconds", _DRAIN),
    "nodeDrainConfig.graceTerminationDuration": _native("seconds", _DRAIN),
    "maintenancePolicy.exclusionUntilEndOfSupport.enabled": _native("bool", _later("maintenance_policy", FROM_NOW_ON)),
    "maintenancePolicy.exclusionUntilEndOfSupport.startTime": _server(),
    "maintenancePolicy.exclusionUntilEndOfSupport.endTime": _server(),
    "networkConfig.createPodRange": _native("bool", _AT_CREATION),
    "networkConfig.podRange": _native("str", _AT_CREATION),
    "networkConfig.podIpv4CidrBlock": _native("range", _AT_CREATION),
    "networkConfig.enablePrivateNodes": _native("bool", _rolls("node_network_config")),
    "networkConfig.networkPerformanceConfig.totalEgressBandwidthTier": _native(
        ("TIER_1",), _rolls("node_network_config")
    ),
    "networkConfig.podCidrOverprovisionConfig.disable": _native("bool", _AT_CREATION),
    "networkConfig.additionalNodeNetworkConfigs": _native("networks", _AT_CREATION),
    "networkConfig.additionalPodNetworkConfigs": _native("pods", _AT_CREATION),
    "networkConfig.acceleratorNetworkProfile": _field("network.highSpeed"),
    "networkConfig.podIpv4RangeUtilization": _server(),
    "networkConfig.subnetwork": _native("subnetwork", _NEVER),
    "networkConfig.networkTierConfig": _server(),
}
_CONFIG: Final[dict[str, GkeMember]] = {
    "machineType": _field("instanceType"),
    "accelerators.acceleratorType": _field("gpu.model"),
    "accelerators.acceleratorCount": _field("gpu.count"),
    "accelerators.gpuPartitionSize": _field("sharing.mig.profile"),
    "accelerators.gpuSharingConfig": _field("sharing", write="sharing.timeSlicing or sharing.mps"),
    "accelerators.gpuDriverInstallationConfig.gpuDriverVersion": _field("driver.version", "DEFAULT"),
    "labels.*": _field("labels[*]"),
    "resourceLabels.*": _field("tags[*]"),
    "taints": _field("taints"),
    "tags": _native("tags", _later("tags", "GKE changes the network tags of the nodes")),
    "metadata.*": _native("metadata", _AT_CREATION),
    "metadata.disable-legacy-endpoints": GkeMember("native", defaults=("true",)),
    "diskSizeGb": _field("disk.sizeGiB", 100),
    "diskType": _field("disk.type", "pd-balanced"),
    "bootDisk.diskType": _server("disk.type"),  # GKE repeats diskType and diskSizeGb
    "bootDisk.sizeGb": _server("disk.sizeGiB"),
    "bootDisk.provisionedIops": _field("disk.iops"),
    "bootDisk.provisionedThroughput": _field("disk.throughput"),
    "bootDiskKmsKey": _field("disk.kmsKey"),
    "enableConfidentialStorage": _native("bool", _AT_CREATION),
    "storagePools": _native("strs", _rolls("storage_pools", RECREATED)),
    "secondaryBootDisks": _native("disks", _AT_CREATION),
    "secondaryBootDiskUpdateStrategy": _unsupported("the API defines no settings for it"),
    "ephemeralStorageLocalSsdConfig.localSsdCount": _native("int", _AT_CREATION),
    "ephemeralStorageLocalSsdConfig.dataCacheCount": _native("int", _AT_CREATION),
    "localNvmeSsdBlockConfig.localSsdCount": _native("int", _AT_CREATION),
    "localSsdCount": _unsupported(
        "config.ephemeralStorageLocalSsdConfig and config.localNvmeSsdBlockConfig replace it"
    ),
    "localSsdEncryptionMode": _native(
        ("STANDARD_ENCRYPTION", "EPHEMERAL_KEY_ENCRYPTION"), _AT_CREATION, "STANDARD_ENCRYPTION"
    ),
    "imageType": _field("image", "COS_CONTAINERD"),
    "nodeImageConfig": _unsupported("gpukube supports no custom node images of GKE"),
    "spot": _field("capacity.type"),
    "preemptible": _field("capacity.type", write="capacity.type: spot"),
    "flexStart": _field(
        "capacity.reserved.gke.flexStart", write="capacity.type: reserved and capacity.reserved.gke.flexStart"
    ),
    "maxRunDuration": _native("seconds", Effect("replace", RUN_DURATION, TERRAFORM)),
    "reservationAffinity.consumeReservationType": _native(
        ("NO_RESERVATION", "ANY_RESERVATION", "SPECIFIC_RESERVATION", "ANY_RESERVATION_THEN_FAIL"), _AT_CREATION
    ),
    "reservationAffinity.key": _field(
        "capacity.reserved.gke.reservation",
        write="capacity.type: reserved and capacity.reserved.gke.reservation",
    ),
    "reservationAffinity.values": _field(
        "capacity.reserved.gke.reservation",
        write="capacity.type: reserved and capacity.reserved.gke.reservation",
    ),
    "nodeGroup": _native("str", _AT_CREATION),
    "soleTenantConfig.nodeAffinities": _native("affinities", _AT_CREATION),
    "soleTenantConfig.minNodeCpus": _native("int", _AT_CREATION),
    "serviceAccount": _native("str", _AT_CREATION, "default"),
    "oauthScopes": _native("scopes", _AT_CREATION, _GCLOUD_SCOPES, _LOGGING_SCOPES),
    "minCpuPlatform": _native("str", _AT_CREATION),
    "advancedMachineFeatures.threadsPerCore": _native("int", _AT_CREATION),
    "advancedMachineFeatures.enableNestedVirtualization": _native("bool", _AT_CREATION),
    "advancedMachineFeatures.performanceMonitoringUnit": _native(
        ("ARCHITECTURAL", "STANDARD", "ENHANCED"), _AT_CREATION
    ),
    "shieldedInstanceConfig.enableSecureBoot": _native("bool", _AT_CREATION),
    "shieldedInstanceConfig.enableIntegrityMonitoring": _native("bool", _AT_CREATION, _ON),
    "confidentialNodes.enabled": _field("confidential"),
    "confidentialNodes.confidentialInstanceType": _field("confidential"),
    "sandboxConfig": _unsupported("gpukube does not support GKE Sandbox on GPU pools"),
    "windowsNodeConfig": _unsupported("GPU pools of gpukube are Linux"),
    "gpuDirectConfig.gpuDirectStrategy": _native(("RDMA",), _NEVER),
    "gvnic.enabled": _native("bool", _rolls("gvnic")),
    "fastSocket.enabled": _native("bool", _rolls("fast_socket")),
    "gcfsConfig.enabled": _native("bool", _rolls("gcfs_config")),
    "workloadMetadataConfig.mode": _native(("GCE_METADATA", "GKE_METADATA"), _rolls("workload_metadata_config")),
    "loggingConfig.variantConfig.variant": _native(("DEFAULT", "MAX_THROUGHPUT"), _rolls("logging_config"), "DEFAULT"),
    "consolidationDelay": _native("seconds", _later("consolidation_delay", FROM_NOW_ON)),
    "taintConfig.architectureTaintBehavior": _native(
        ("NONE", "ARM"), _later("taint_config", "GKE changes the taints of arm64 nodes")
    ),
    "resourceManagerTags.tags": _native("map", _rolls("resource_manager_tags")),
    "effectiveCgroupMode": _server(),
    "containerdConfig.privateRegistryAccessConfig.enabled": _native("bool", _CONTAINERD),
    "containerdConfig.privateRegistryAccessConfig.certificateAuthorityDomainConfig": _native("domains", _CONTAINERD),
    "containerdConfig.writableCgroups.enabled": _native("bool", _CONTAINERD),
    "containerdConfig.registryHosts": _native("registries", _CONTAINERD),
}
_OF_KUBELET: Final[dict[str, GkeMember]] = {
    "cpuManagerPolicy": _field("kubelet.cpuManagerPolicy", "none"),
    "topologyManager.policy": _field("kubelet.topologyManagerPolicy", "none"),
    "topologyManager.scope": _field("kubelet.topologyManagerScope", "container"),
    "memoryManager.policy": _field("kubelet.memoryManagerPolicy", "None", "none"),
    "cpuCfsQuota": _field("kubelet.cpuCFSQuota", _ON),
    "cpuCfsQuotaPeriod": _field("kubelet.cpuCFSQuotaPeriod"),
    "podPidsLimit": _field("kubelet.podPidsLimit"),
    "imageGcHighThresholdPercent": _field("kubelet.imageGCHighThresholdPercent", 85),
    "imageGcLowThresholdPercent": _field("kubelet.imageGCLowThresholdPercent", 80),
    "containerLogMaxSize": _field("kubelet.containerLogMaxSize", "10Mi"),
    "containerLogMaxFiles": _field("kubelet.containerLogMaxFiles", 5),
    "allowedUnsafeSysctls": _field("kubelet.allowedUnsafeSysctls"),
    "insecureKubeletReadonlyPortEnabled": _native("bool", _KUBELET),
    "imageMinimumGcAge": _native("str", _KUBELET, "2m0s"),
    "imageMaximumGcAge": _native("str", _KUBELET, "0s"),
    **{
        f"{message}.{signal}": _native("str", _KUBELET)
        for message in ("evictionSoft", "evictionSoftGracePeriod", "evictionMinimumReclaim")
        for signal in _SIGNALS
    },
    "evictionMaxPodGracePeriodSeconds": _native("int", _KUBELET),
    "maxParallelImagePulls": _native("int", _KUBELET, 2, 3),
    "singleProcessOomKill": _native("bool", _KUBELET),
    "crashLoopBackOff.maxContainerRestartPeriod": _native("str", _KUBELET),
    "shutdownGracePeriodSeconds": _native("int", _KUBELET),
    "shutdownGracePeriodCriticalPodsSeconds": _native("int", _KUBELET),
}
_OF_LINUX: Final[dict[str, GkeMember]] = {
    "sysctls.*": _field("sysctls[*]"),
    "hugepages.hugepageSize2m": _field("hugepages.2Mi"),
    "hugepages.hugepageSize1g": _field("hugepages.1Gi"),
    "cgroupMode": _native(("CGROUP_MODE_V1", "CGROUP_MODE_V2"), _LINUX),
    "transparentHugepageEnabled": _native(
        tuple(f"{_THP}_ENABLED_{word}" for word in ("ALWAYS", "MADVISE", "NEVER")), _LINUX
    ),
    "transparentHugepageDefrag": _native(
        tuple(f"{_THP}_DEFRAG_{word}" for word in ("ALWAYS", "DEFER", "DEFER_WITH_MADVISE", "MADVISE", "NEVER")), _LINUX
    ),
    "customNodeInit.initScript.gcsUri": _native("str", _LINUX),
    "customNodeInit.initScript.gcsGeneration": _native("int", _LINUX),
    "customNodeInit.initScript.args": _native("strs", _LINUX),
    "customNodeInit.initScript.gcpSecretManagerSecretUri": _native("str", _LINUX),
    "swapConfig.enabled": _native("bool", _LINUX),
    "swapConfig.encryptionConfig.disabled": _native("bool", _LINUX),
    **{
        f"swapConfig.{profile}.{size}": _native("int", _LINUX)
        for profile in ("bootDiskProfile", "ephemeralLocalSsdProfile")
        for size in ("swapSizeGib", "swapSizePercent")
    },
    "swapConfig.dedicatedLocalSsdProfile.diskCount": _native("int", _LINUX),
    "nodeKernelModuleLoading.policy": _native(("ENFORCE_SIGNED_MODULES", "DO_NOT_ENFORCE_SIGNED_MODULES"), _LINUX),
    "accurateTimeConfig.enablePtpKvmTimeSync": _native("bool", _LINUX),
    "nodeVfioConfig.dmaEntryLimit": _native("int", _LINUX),
    "diskIoScheduler.nodeSystemIoScheduler": _native("str", _LINUX),
    "diskIoScheduler.nodeAttachedDiskIoScheduler": _native("str", _LINUX),
}


def _named(path: str, member: GkeMember) -> GkeMember:
    """Add the name of a native field in a spec."""
    return replace(member, spec=f"gke.{path}") if member.kind == "native" else member


MEMBERS: Final[Mapping[str, GkeMember]] = {
    path: _named(path, member)
    for prefix, members in (
        ("", _POOL),
        ("config.", _CONFIG),
        ("config.kubeletConfig.", _OF_KUBELET),
        ("config.linuxNodeConfig.", _OF_LINUX),
    )
    for path, member in ((f"{prefix}{name}", member) for name, member in members.items())
}
"""Path of each member -> how it is treated. The one accelerator of a pool counts as a message; members of a message may
be classified together; ".*" stands for the keys of a map."""

RIVALS: Final = (
    ("standardRolloutPolicy", "autoscaledRolloutPolicy"),
    ("batchPercentage", "batchNodeCount"),
    ("bootDiskProfile", "ephemeralLocalSsdProfile", "dedicatedLocalSsdProfile"),
    ("swapSizeGib", "swapSizePercent"),
)
"""Members of which a message has only one."""

_ON_BY_DEFAULT: Final[Mapping[tuple[str, ...], tuple[str, ...]]] = {
    ("management",): ("autoUpgrade", "autoRepair"),
    ("config", "shieldedInstanceConfig"): ("enableIntegrityMonitoring",),
}
"""Message -> its switches that are on in a pool made without the message. proto3 omits false: in a message, an absent
switch was turned off."""
_ADDED: Final[Mapping[str, Callable[[str], bool]]] = {
    "labels": lambda key: key.startswith("gpukube.io/") or key in SYSTEM_LABELS or key == OPT_OUT_LABEL,
    "resourceLabels": lambda key: key.startswith("goog-") or FORM.is_own(key),
}
"""Map -> whether GKE or gpukube adds a key; the opt-out label is devicePlugin.owner in a spec."""
_PACE: Final = ("maxSurge", "maxUnavailable")
_OF_BUYING: Final = frozenset(
    {
        "management.autoRepair",
        "autoscaling.locationPolicy",
        "config.reservationAffinity.consumeReservationType",
        "config.maxRunDuration",
    }
)
"""Members that follow from reserved capacity."""


class GkeMembers:
    """Implementation of `gpukube.core.provider_parts.PoolMembers`."""

    def chosen(self, observed: Observed) -> tuple[Chosen, ...]:
        """Return the members that nobody but a person set: not GKE, not the cluster, not gpukube."""
        given = observed.inherited | (_OF_BUYING if _is_reserved(observed.native) else frozenset())
        found = chosen_members(_as_chosen(observed.native), MEMBERS, "gke")
        return tuple(
            one
            for one in found
            if ".".join(one.wire) not in given
            # Their nodes are upgraded when they end, whatever the settings (docs: kubernetes-engine/concepts/dws).
            and not (one.wire[0] == "upgradeSettings" and _is_short_lived(observed.native))
        )

    def lost(self, observed: Observed, desired: Desired) -> tuple[Chosen, ...]:
        """Return the chosen members that a new pool would not have, one for each field of the spec."""
        changed = [change.field for change in diff_fields(desired.fields, observed.fields, observed.written)]
        create = _with_zeros(with_one_accelerator(tree(desired.create.params, "nodePool")))
        lost = lost_members(self.chosen(observed), create, [*desired.fields, *changed])
        return tuple({one.path: one for one in lost}.values())


def _is_short_lived(pool: Mapping[str, object]) -> bool:
    return bool(at(pool, "config", "flexStart") or at(pool, "queuedProvisioning", "enabled"))


def _is_reserved(pool: Mapping[str, object]) -> bool:
    return observe_buying(pool, tree(pool, "config")).get(CAPACITY_TYPE) == "reserved"


def _as_chosen(pool: Mapping[str, object]) -> dict[str, object]:
    """Return a pool without what GKE or gpukube adds, and with the zeros that proto3 omits."""
    found = _with_zeros(with_one_accelerator(pool))
    pace = tree(found, "upgradeSettings")
    if pace and pace.get("strategy") in (None, "SURGE"):
        found["upgradeSettings"] = {**dict.fromkeys(_PACE, 0), **pace}
    # The autoscaler owns the number of nodes; without it, GKE does not use the bounds.
    found.pop("initialNodeCount" if at(found, "autoscaling", "enabled") else "autoscaling", None)
    return {**found, "config": _chosen_config(tree(found, "config"))} if "config" in found else found


def _with_zeros(pool: dict[str, object]) -> dict[str, object]:
    """Return a pool with the switches that are off although they are on by default."""
    for path, names in _ON_BY_DEFAULT.items():
        if isinstance(message := at(pool, *path), Mapping):
            pool = merged(pool, nested(path, {name: message.get(name, False) for name in names}))
    return pool


def _chosen_config(config: Mapping[str, object]) -> dict[str, object]:
    found = dict(config)
    if found.get("diskType") == default_disk_type(text(found, "machineType")):
        del found["diskType"]
    for name, is_added in _ADDED.items():
        if name in found:
            found[name] = {key: value for key, value in tree(found, name).items() if not is_added(key)}
    if "taints" in found:
        found["taints"] = [one for one in trees(found, "taints") if not _is_added_taint(one)]
    return found


def _is_added_taint(taint: Mapping[str, object]) -> bool:
    is_gpu = (taint.get("key"), text(taint, "value")) == (GPU_TAINT.key, GPU_TAINT.value)
    return is_gpu or taint.get("key") in SYSTEM_TAINTS


def with_one_accelerator(pool: Mapping[str, object]) -> dict[str, object]:
    """Return a pool whose one accelerator is a message, not a list of one."""
    accelerators = trees(pool, "config", "accelerators")
    if len(accelerators) != 1:
        return dict(pool)
    return {**pool, "config": {**tree(pool, "config"), "accelerators": accelerators[0]}}


def nested(path: Sequence[str], value: object) -> dict[str, object]:
    """Return an object with a value at a path."""
    return {path[0]: nested(path[1:], value) if path[1:] else value}


POOL_MEMBERS: Final[PoolMembers] = GkeMembers()
