"""Fields of a GKE node pool's machines and of the software on its nodes: network, placement, disks, kubelet, kernel.

In scope: their rows. Out of scope: values that GKE refuses (`rules.node_settings`), the other fields (`fields`).

Sources: google.container.v1 NodeKubeletConfig, LinuxNodeConfig, BootDisk, ConfidentialNodes, NodeNetworkConfig;
docs: kubernetes-engine/how-to/node-system-config.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core import fields as paths
from gpukube.core.binding import ANY, Binding, Draft, Effect
from gpukube.core.fields import FieldPath, hugepages, kubelet
from gpukube.core.jsontree import at, number, strings, text, texts, tree
from gpukube.core.values import Ability
from gpukube_gke.facts.fabric import fabric_of, given_networks, uses_profile
from gpukube_gke.facts.local_ssd import fixed_disks
from gpukube_gke.pool.effects import AT_CREATION, MAYBE_RECREATED, PROTO, RECREATED, TERRAFORM, UPDATE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpukube.core.values import Target
    from gpukube_gke.pool.live import Live

COMPACT: Final = "compact"
EPHEMERAL: Final = ("config", "ephemeralStorageLocalSsdConfig", "localSsdCount")
RAW: Final = ("config", "localNvmeSsdBlockConfig", "localSsdCount")
DISKS_OF: Final = {"ephemeral": EPHEMERAL, "raw": RAW}
"""localStorage -> the number of disks that are used so."""
TDX: Final = "TDX"
"""The only ConfidentialInstanceType of machines with GPUs (docs: confidential-computing, gpus)."""
_EXACT: Final = Ability("exact")
_KUBELET: Final = Effect("disruptive", MAYBE_RECREATED, f"{PROTO}kubelet_config", UPDATE)
_LINUX: Final = Effect("disruptive", MAYBE_RECREATED, f"{PROTO}linux_node_config", UPDATE)
_BOOT_DISK: Final = Effect("disruptive", RECREATED, f"{PROTO}boot_disk", UPDATE)
_FIXED: Final = Effect("replace", AT_CREATION, TERRAFORM)


# Reading the spec


def _is_fast(target: Target) -> bool | None:
    """A pool with all networks of its GPUs has the fast network, whether the spec calls it so or not."""
    return target.high_speed or _has_fabric(target.machine.name, given_networks(target.native), profile=False) or None


def _has_fabric(machine: str, networks: int, *, profile: bool) -> bool:
    fabric = fabric_of(machine)
    return fabric is not None and (profile or networks >= fabric.interfaces)


def _placement(target: Target) -> dict[str, object] | None:
    if target.placement in ("", "none"):
        return None
    # GoogleCloudPlatform/cluster-toolkit modules/compute/resource-policy sends the type with every policy.
    return {"type": "COMPACT", **({} if target.placement == COMPACT else {"policyName": target.placement})}


def _boot_disk(target: Target) -> dict[str, object] | None:
    """Repeat type and size: both forms of the boot disk must agree (google.container.v1 BootDisk)."""
    disk = target.disk
    if disk.iops is None and disk.throughput is None:
        return None
    parts = (disk.type, disk.size_gib, disk.iops, disk.throughput)
    names = ("diskType", "sizeGb", "provisionedIops", "provisionedThroughput")
    return {name: str(part) for name, part in zip(names, parts, strict=True) if part is not None}


def _local_disks(target: Target) -> dict[str, object] | None:
    """Return the use of all disks of the machine; if their number is a choice, the spec has it under `gke`."""
    count = fixed_disks(target.machine.name)
    if not target.local_storage or not count:
        return None
    config, message, name = DISKS_OF[target.local_storage]
    return {config: {message: {name: count}}}


# Reading a live pool


def _read_placement(live: Live) -> str:
    policy = tree(live.pool, "placementPolicy")
    return text(policy, "policyName") or (COMPACT if policy.get("type") == "COMPACT" else "none")


def _read_local(live: Live) -> str | None:
    """Return how the local disks are used; on a machine with a fixed number, the number may be omitted."""
    counted = (use for use, path in DISKS_OF.items() if number(live.pool, *path))
    if use := next(counted, None):
        return use
    is_fixed = fixed_disks(text(live.config, "machineType")) > 0
    return next((use for use, path in DISKS_OF.items() if is_fixed and at(live.pool, *path[:-1]) == {}), None)


def _read_memory(live: Live) -> str | None:
    """GKE accepts "static" (google.container.v1 MemoryManager) and "Static" (Terraform)."""
    return text(live.config, "kubeletConfig", "memoryManager", "policy").capitalize() or None


def _of_kubelet(
    name: str,
    *wire: str,
    read: Callable[[Live], object] | None = None,
    write: Callable[[object], object] | None = None,
    ability: Ability | None = None,
    feature: str = "",
) -> Binding[Draft, Live]:
    """Return the row of a setting of the kubelet.

    Args:
        name: Its name in a spec.
        wire: Its path in NodeKubeletConfig.
        read: See `Binding`.
        write: Converts its value for the request.
        ability: See `Binding`.
        feature: See `Binding`.
    """

    def get(draft: Draft) -> object:
        value = draft.target.kubelet.get(name)
        return tuple(sorted(value)) if isinstance(value, tuple | list) else value

    def sent(draft: Draft) -> object:
        value = get(draft)
        return value if write is None or value is None else write(value)

    return Binding(
        path=kubelet(name),
        wire=("config", "kubeletConfig", *wire),
        get=get,
        write=sent,
        read=read,
        effect=_KUBELET,
        ability=ability,
        feature=feature,
    )


def _listed(value: object) -> list[str]:
    return list(strings(value))


NODE_BINDINGS: Final[tuple[Binding[Draft, Live], ...]] = (
    Binding(
        path=paths.HIGH_SPEED,
        wire=("networkConfig", "acceleratorNetworkProfile"),
        get=lambda draft: _is_fast(draft.target),
        write=lambda draft: "auto" if uses_profile(draft.target) else None,
        read=lambda live: (
            _has_fabric(
                text(live.config, "machineType"),
                given_networks(live.pool),
                profile=bool(at(live.pool, "networkConfig", "acceleratorNetworkProfile")),
            )
            or None
        ),
        effect=Effect("replace", AT_CREATION, "google.container.v1 NodeNetworkConfig.accelerator_network_profile"),
        ability=_EXACT,
    ),
    Binding(
        path=paths.PLACEMENT,
        wire=("placementPolicy",),
        members=("placementPolicy.type", "placementPolicy.policyName"),
        get=lambda draft: draft.target.placement or None,
        write=lambda draft: _placement(draft.target),
        read=_read_placement,
        effect=_FIXED,
        ability=_EXACT,
        feature="placement.compact",
    ),
    Binding(
        path=paths.DISK_IOPS,
        wire=("config", "bootDisk"),
        members=("config.bootDisk.provisionedIops",),
        get=lambda draft: draft.target.disk.iops,
        write=lambda draft: _boot_disk(draft.target),
        read=lambda live: number(live.config, "bootDisk", "provisionedIops") or None,
        effect=_BOOT_DISK,
        ability=_EXACT,
    ),
    Binding(
        path=paths.DISK_THROUGHPUT,
        members=("config.bootDisk.provisionedThroughput",),
        get=lambda draft: draft.target.disk.throughput,
        read=lambda live: number(live.config, "bootDisk", "provisionedThroughput") or None,
        effect=_BOOT_DISK,
        ability=_EXACT,
    ),
    Binding(
        path=paths.DISK_KMS_KEY,
        wire=("config", "bootDiskKmsKey"),
        get=lambda draft: draft.target.disk.kms_key or None,
        effect=_FIXED,
        ability=_EXACT,
    ),
    Binding(
        path=paths.LOCAL_STORAGE,
        members=(),
        get=lambda draft: draft.target.local_storage or None,
        write=lambda draft: _local_disks(draft.target),
        read=_read_local,
        effect=_FIXED,
        ability=_EXACT,
        feature="localStorage.ephemeral",
    ),
    Binding(
        path=paths.CONFIDENTIAL,
        wire=("config", "confidentialNodes"),
        members=("config.confidentialNodes.enabled", "config.confidentialNodes.confidentialInstanceType"),
        get=lambda draft: draft.target.confidential or None,
        write=lambda draft: {"enabled": True, "confidentialInstanceType": TDX} if draft.target.confidential else None,
        read=lambda live: bool(at(live.config, "confidentialNodes", "enabled")) or None,
        effect=Effect("replace", "the type of confidential machines is set at creation only", TERRAFORM),
        ability=_EXACT,
    ),
    _of_kubelet("cpuManagerPolicy", "cpuManagerPolicy", ability=_EXACT, feature="kubelet"),
    _of_kubelet("topologyManagerPolicy", "topologyManager", "policy"),
    _of_kubelet("topologyManagerScope", "topologyManager", "scope", ability=_EXACT),
    _of_kubelet("memoryManagerPolicy", "memoryManager", "policy", read=_read_memory, ability=_EXACT),
    _of_kubelet(
        "podPidsLimit",
        "podPidsLimit",
        read=lambda live: number(live.config, "kubeletConfig", "podPidsLimit") or None,
        write=str,
    ),
    _of_kubelet("cpuCFSQuota", "cpuCfsQuota"),
    _of_kubelet("cpuCFSQuotaPeriod", "cpuCfsQuotaPeriod"),
    _of_kubelet("imageGCHighThresholdPercent", "imageGcHighThresholdPercent"),
    _of_kubelet("imageGCLowThresholdPercent", "imageGcLowThresholdPercent"),
    _of_kubelet("containerLogMaxSize", "containerLogMaxSize"),
    _of_kubelet("containerLogMaxFiles", "containerLogMaxFiles"),
    _of_kubelet(
        "allowedUnsafeSysctls",
        "allowedUnsafeSysctls",
        read=lambda live: tuple(sorted(strings(live.config, "kubeletConfig", "allowedUnsafeSysctls"))) or None,
        write=_listed,
    ),
    Binding(
        path=FieldPath("sysctls", ANY),
        wire=("config", "linuxNodeConfig", "sysctls"),
        get=lambda draft: draft.target.sysctls,
        write=lambda draft: dict(sorted(draft.target.sysctls.items())) or None,
        read=lambda live: texts(live.config, "linuxNodeConfig", "sysctls"),
        effect=_LINUX,
        ability=_EXACT,
        feature="sysctls",
    ),
    Binding(
        path=hugepages("2Mi"),
        wire=("config", "linuxNodeConfig", "hugepages", "hugepageSize2m"),
        get=lambda draft: draft.target.hugepages.get("2Mi"),
        effect=_LINUX,
        ability=_EXACT,
        feature="hugepages",
    ),
    Binding(
        path=hugepages("1Gi"),
        wire=("config", "linuxNodeConfig", "hugepages", "hugepageSize1g"),
        get=lambda draft: draft.target.hugepages.get("1Gi"),
        effect=_LINUX,
    ),
)
"""The fields of machines and node software, in wire order."""

NODE_ABILITIES: Final[Mapping[str, Ability]] = {
    "disk.encrypted": _EXACT,
    "placement.named": _EXACT,
    "localStorage.raw": _EXACT,
    "instanceTypes": Ability("missing", "write a pool for each type", "all nodes of a GKE pool have the same type"),
}
"""Abilities of features without a row of their own; disks are always encrypted (docs: compute/docs/disks)."""
