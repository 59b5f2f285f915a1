"""Exports node pools as gcloud commands: the fields of gpukube's create request, option by option.

Options: docs: sdk/gcloud/reference/container/node-pools/create; their meaning: google-cloud-sdk
googlecloudsdk/command_lib/container/flags.py and api_lib/container/api_adapter.py.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Final

from gpukube.core.exporting import shell_command
from gpukube.core.jsontree import merged, number, strings, text, texts, tree, trees
from gpukube_gke.export.request import node_pool_of
from gpukube_gke.pool.members import nested

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpukube.core.exporting import ExportedPool, Losses
    from gpukube.core.values import ClusterRef

Line = tuple[str, ...]

_VALUES: Final[Mapping[str, str]] = {
    "initialNodeCount": "--num-nodes",
    "version": "--node-version",
    "maxPodsConstraint.maxPodsPerNode": "--max-pods-per-node",
    "upgradeSettings.maxSurge": "--max-surge-upgrade",
    "upgradeSettings.maxUnavailable": "--max-unavailable-upgrade",
    "autoscaling.minNodeCount": "--min-nodes",
    "autoscaling.maxNodeCount": "--max-nodes",
    "autoscaling.totalMinNodeCount": "--total-min-nodes",
    "autoscaling.totalMaxNodeCount": "--total-max-nodes",
    "autoscaling.locationPolicy": "--location-policy",
    "placementPolicy.type": "--placement-type",
    "placementPolicy.policyName": "--placement-policy",
    "bestEffortProvisioning.minProvisionNodes": "--min-provision-nodes",
    "config.machineType": "--machine-type",
    "config.diskSizeGb": "--disk-size",
    "config.diskType": "--disk-type",
    "config.imageType": "--image-type",
    "config.serviceAccount": "--service-account",
    "config.minCpuPlatform": "--min-cpu-platform",
    "config.bootDiskKmsKey": "--boot-disk-kms-key",
    "config.maxRunDuration": "--max-run-duration",
    "config.workloadMetadataConfig.mode": "--workload-metadata",
    "config.loggingConfig.variantConfig.variant": "--logging-variant",
    "config.advancedMachineFeatures.threadsPerCore": "--threads-per-core",
    "config.ephemeralStorageLocalSsdConfig.dataCacheCount": "--data-cache-count",
    "config.nodeGroup": "--node-group",
    "upgradeSettings.blueGreenSettings.nodePoolSoakDuration": "--node-pool-soak-duration",
}
_SWITCHES: Final[Mapping[str, str]] = {
    "management.autoUpgrade": "--enable-autoupgrade",
    "management.autoRepair": "--enable-autorepair",
    "autoscaling.enabled": "--enable-autoscaling",
    "queuedProvisioning.enabled": "--enable-queued-provisioning",
    "networkConfig.enablePrivateNodes": "--enable-private-nodes",
    "bestEffortProvisioning.enabled": "--enable-best-effort-provision",
    "config.spot": "--spot",
    "config.flexStart": "--flex-start",
    "config.gcfsConfig.enabled": "--enable-image-streaming",
    "config.gvnic.enabled": "--enable-gvnic",
    "config.confidentialNodes.enabled": "--enable-confidential-nodes",
    "config.enableConfidentialStorage": "--enable-confidential-storage",
    "config.advancedMachineFeatures.enableNestedVirtualization": "--enable-nested-virtualization",
    "config.fastSocket.enabled": "--enable-fast-socket",
    "config.shieldedInstanceConfig.enableSecureBoot": "--shielded-secure-boot",
    "config.shieldedInstanceConfig.enableIntegrityMonitoring": "--shielded-integrity-monitoring",
}
_ON_BY_DEFAULT: Final = (
    "management.autoUpgrade",
    "management.autoRepair",
    "config.shieldedInstanceConfig.enableIntegrityMonitoring",
)
"""Switches with an option to turn them off; the others are off without their option."""
_COUNTED: Final[Mapping[str, str]] = {
    "config.ephemeralStorageLocalSsdConfig.localSsdCount": "--ephemeral-storage-local-ssd",
    "config.localNvmeSsdBlockConfig.localSsdCount": "--local-nvme-ssd-block",
}
_LISTS: Final[Mapping[str, str]] = {
    "locations": "--node-locations",
    "config.oauthScopes": "--scopes",
    "config.tags": "--tags",
    "config.storagePools": "--storage-pools",
    "config.metadata": "--metadata",
    "config.resourceManagerTags.tags": "--resource-manager-tags",
    "config.labels": "--node-labels",
    "config.resourceLabels": "--labels",
}
_SYSTEM: Final[Mapping[str, tuple[str, ...]]] = {
    **{
        f"config.kubeletConfig.{name}": ("kubeletConfig", *name.split("."))
        for name in (
            "cpuManagerPolicy",
            "cpuCfsQuota",
            "cpuCfsQuotaPeriod",
            "podPidsLimit",
            "topologyManager.policy",
            "topologyManager.scope",
            "memoryManager.policy",
            "imageGcHighThresholdPercent",
            "imageGcLowThresholdPercent",
            "imageMinimumGcAge",
            "imageMaximumGcAge",
            "containerLogMaxSize",
            "containerLogMaxFiles",
            "allowedUnsafeSysctls",
            "singleProcessOomKill",
            "insecureKubeletReadonlyPortEnabled",
        )
    },
    "config.kubeletConfig.cpuCfsQuota": ("kubeletConfig", "cpuCFSQuota"),
    "config.kubeletConfig.cpuCfsQuotaPeriod": ("kubeletConfig", "cpuCFSQuotaPeriod"),
    "config.linuxNodeConfig.sysctls": ("linuxConfig", "sysctl"),
    "config.linuxNodeConfig.cgroupMode": ("linuxConfig", "cgroupMode"),
    "config.linuxNodeConfig.hugepages.hugepageSize2m": ("linuxConfig", "hugepageConfig", "hugepage_size2m"),
    "config.linuxNodeConfig.hugepages.hugepageSize1g": ("linuxConfig", "hugepageConfig", "hugepage_size1g"),
}
"""Fields of the node software -> their paths in the file for --system-config-from-file (googlecloudsdk
api_lib/container/util.py, LoadSystemConfigFromYAML)."""
_SURGE: Final = ("maxSurge", "maxUnavailable")
_STRATEGIES: Final = {"SURGE": "--enable-surge-upgrade", "BLUE_GREEN": "--enable-blue-green-upgrade"}
_AFFINITIES: Final = {"NO_RESERVATION": "none", "ANY_RESERVATION": "any", "SPECIFIC_RESERVATION": "specific"}
_DRIVERS: Final = {"DEFAULT": "default", "LATEST": "latest", "INSTALLATION_DISABLED": "disabled"}
_SHARING: Final = {"TIME_SHARING": "time-sharing", "MPS": "mps"}
_POLICY: Final = "upgradeSettings.blueGreenSettings.standardRolloutPolicy"
_SEPARATORS: Final = (";", "|", "#", "@@", "::::", "~~~~~~~~")
_EFFECTS: Final = {"NO_SCHEDULE": "NoSchedule", "PREFER_NO_SCHEDULE": "PreferNoSchedule", "NO_EXECUTE": "NoExecute"}


def write_script(cluster: ClusterRef, pools: Sequence[ExportedPool], losses: Losses) -> str:
    """Return a script that creates the node pools, one after the other: GKE creates one at a time."""
    commands = [_command(cluster, pool, losses) for pool in pools]
    return "set -eu\n\n" + "\n".join(commands)


def _command(cluster: ClusterRef, pool: ExportedPool, losses: Losses) -> str:
    body = node_pool_of(pool)
    lines: list[Line] = [
        ("gcloud", "container", "node-pools", "create", pool.name),
        ("--project", cluster.identity["project"]),
        ("--location", cluster.identity["location"]),
        ("--cluster", cluster.name),
    ]
    surge = tree(body, "upgradeSettings")
    if surge.keys() & {*_SURGE}:  # gcloud requires both or neither; to the API a missing one is 0
        body["upgradeSettings"] = {**dict.fromkeys(_SURGE, 0), **surge}
    system: dict[str, object] = {}
    for path, value in _fields(body):
        found = _line(path, value, body)
        if path in _SYSTEM:
            system = merged(system, nested(_SYSTEM[path], number(value) if path.endswith("podPidsLimit") else value))
        elif found is None:
            losses.note(f"{pool.name}: {path} ({text(value)}): gcloud container node-pools create has no option for it")
        else:
            lines += found
    if not system:
        return shell_command(*lines)
    file = f"{pool.name}-system.json"
    document = f"cat > {shlex.quote(file)} <<'EOF'\n{json.dumps(system, indent=2)}\nEOF\n"
    return document + shell_command(*lines, ("--system-config-from-file", file))


def _fields(value: Mapping[str, object], above: str = "") -> Iterator[tuple[str, object]]:
    """Yield the fields that options set: all labels are one field, whatever their keys."""
    for key, below in value.items():
        path = f"{above}{key}"
        if isinstance(below, dict) and path not in _LISTS and path not in _SYSTEM:
            yield from _fields(below, f"{path}.")
        else:
            yield path, below


def _line(path: str, value: object, body: Mapping[str, object]) -> list[Line] | None:
    """Return the options of a field; None if it has none."""
    if path in _VALUES:
        return [(_VALUES[path], text(value))]
    if path in _SWITCHES:
        off: list[Line] = [(f"--no-{_SWITCHES[path].removeprefix('--')}",)] if path in _ON_BY_DEFAULT else []
        return [(_SWITCHES[path],)] if value else off
    if path in _COUNTED:
        return [(_COUNTED[path], f"count={text(value)}")]
    if path in _LISTS:
        pairs = [f"{key}={one}" for key, one in texts(value).items()] if isinstance(value, dict) else strings(value)
        return [(_LISTS[path], _joined(pairs))] if pairs else []
    if path in _TOGETHER:
        return _TOGETHER[path](body)
    return None


def _joined(items: Sequence[str]) -> str:
    """Return a list for gcloud; with another separator if an item has a comma (gcloud topic escaping)."""
    if not any("," in item for item in items):
        return ",".join(items)
    other = next(mark for mark in _SEPARATORS if not any(mark in item for item in items))
    return f"^{other}^{other.join(items)}"


def _taints(body: Mapping[str, object]) -> list[Line]:
    taints = trees(body, "config", "taints")
    shown = (f"{text(one, 'key')}={text(one, 'value')}:{_EFFECTS[text(one, 'effect')]}" for one in taints)
    return [("--node-taints", ",".join(shown))] if taints else []


def _accelerators(body: Mapping[str, object]) -> list[Line]:
    return [("--accelerator", _accelerator(one)) for one in trees(body, "config", "accelerators")]


def _accelerator(one: Mapping[str, object]) -> str:
    sharing = tree(one, "gpuSharingConfig")
    parts = {
        "type": text(one, "acceleratorType"),
        "count": text(one, "acceleratorCount"),
        "gpu-driver-version": _DRIVERS.get(text(one, "gpuDriverInstallationConfig", "gpuDriverVersion"), ""),
        "gpu-partition-size": text(one, "gpuPartitionSize"),
        "gpu-sharing-strategy": _SHARING.get(text(sharing, "gpuSharingStrategy"), ""),
        "max-shared-clients-per-gpu": text(sharing, "maxSharedClientsPerGpu"),
    }
    return ",".join(f"{key}={value}" for key, value in parts.items() if value)


def _disks(body: Mapping[str, object]) -> list[Line]:
    disks = trees(body, "config", "secondaryBootDisks")
    return [("--secondary-boot-disk", f"disk-image={one['diskImage']},mode={one['mode']}") for one in disks]


def _networks(body: Mapping[str, object]) -> list[Line]:
    networks = trees(body, "networkConfig", "additionalNodeNetworkConfigs")
    option = "--additional-node-network"
    return [(option, f"network={one['network']},subnetwork={one['subnetwork']}") for one in networks]


def _pod_range(body: Mapping[str, object]) -> list[Line]:
    """Return the option for an existing pod range, or with createPodRange for a new one."""
    network = tree(body, "networkConfig")
    name, addresses = text(network, "podRange"), text(network, "podIpv4CidrBlock")
    if not network.get("createPodRange"):
        return [("--pod-ipv4-range", name)] if name else []
    parts = {"name": name, "range": addresses}
    return [("--create-pod-ipv4-range", ",".join(f"{key}={value}" for key, value in parts.items() if value))]


def _strategy(body: Mapping[str, object]) -> list[Line] | None:
    option = _STRATEGIES.get(text(body, "upgradeSettings", "strategy"))
    return [(option,)] if option else None


def _affinity(body: Mapping[str, object]) -> list[Line] | None:
    affinity = tree(body, "config", "reservationAffinity")
    word = _AFFINITIES.get(text(affinity, "consumeReservationType"))
    if word is None:
        return None
    return [("--reservation-affinity", word), *(("--reservation", name) for name in strings(affinity, "values"))]


def _pod_networks(body: Mapping[str, object]) -> list[Line]:
    found: list[Line] = []
    for one in trees(body, "networkConfig", "additionalPodNetworkConfigs"):
        parts = {
            "subnetwork": text(one, "subnetwork"),
            "pod-ipv4-range": text(one, "secondaryPodRange"),
            "max-pods-per-node": text(one, "maxPodsPerNode", "maxPodsPerNode"),
        }
        found.append(("--additional-pod-network", ",".join(f"{key}={value}" for key, value in parts.items() if value)))
    return found


def _rollout(body: Mapping[str, object]) -> list[Line]:
    policy = tree(body, "upgradeSettings", "blueGreenSettings", "standardRolloutPolicy")
    parts = {
        "batch-node-count": text(policy, "batchNodeCount"),
        "batch-percent": text(policy, "batchPercentage"),
        "batch-soak-duration": text(policy, "batchSoakDuration"),
    }
    return [("--standard-rollout-policy", ",".join(f"{key}={value}" for key, value in parts.items() if value))]


def _bandwidth(body: Mapping[str, object]) -> list[Line]:
    tier = text(body, "networkConfig", "networkPerformanceConfig", "totalEgressBandwidthTier")
    return [("--network-performance-configs", f"total-egress-bandwidth-tier={tier}")]


def _lowered(option: str, *path: str) -> Callable[[Mapping[str, object]], list[Line]]:
    """Return an option whose value is the enum in lower case."""
    return lambda body: [(option, text(body, *path).lower())]


def _nothing(_: Mapping[str, object]) -> list[Line]:
    return []


_TOGETHER: Final[Mapping[str, Callable[[Mapping[str, object]], list[Line] | None]]] = {
    "name": _nothing,
    "config.taints": _taints,
    "config.accelerators": _accelerators,
    "config.secondaryBootDisks": _disks,
    "config.reservationAffinity.consumeReservationType": _affinity,
    "config.reservationAffinity.key": _nothing,
    "config.reservationAffinity.values": _nothing,
    "networkConfig.additionalNodeNetworkConfigs": _networks,
    "networkConfig.podRange": lambda body: [] if text(body, "networkConfig", "createPodRange") else _pod_range(body),
    "networkConfig.createPodRange": _pod_range,
    "networkConfig.podIpv4CidrBlock": _nothing,
    "networkConfig.additionalPodNetworkConfigs": _pod_networks,
    "networkConfig.networkPerformanceConfig.totalEgressBandwidthTier": _bandwidth,
    "upgradeSettings.strategy": _strategy,
    "config.confidentialNodes.confidentialInstanceType": _lowered(
        "--confidential-node-type", "config", "confidentialNodes", "confidentialInstanceType"
    ),
    "config.advancedMachineFeatures.performanceMonitoringUnit": _lowered(
        "--performance-monitoring-unit", "config", "advancedMachineFeatures", "performanceMonitoringUnit"
    ),
    **dict.fromkeys((f"{_POLICY}.batchNodeCount", f"{_POLICY}.batchPercentage"), _rollout),
    f"{_POLICY}.batchSoakDuration": lambda body: (
        [] if tree(body, *_POLICY.split(".")).keys() & {"batchNodeCount", "batchPercentage"} else _rollout(body)
    ),
    "config.bootDisk.diskType": _nothing,  # repeats diskType
    "config.bootDisk.sizeGb": _nothing,
}
"""Fields that share options: the first field writes them, the others nothing."""
