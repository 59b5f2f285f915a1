"""Checks the fields of machines and of the software on nodes: network, placement, disks, kubelet, kernel.

In scope: values and combinations that GKE refuses. Out of scope: sending them (`pool.node_settings`), native fields
(`combinations`).

Sources: google.container.v1 NodeKubeletConfig, LinuxNodeConfig, BootDisk; GoogleCloudPlatform/cluster-toolkit,
modules/compute/gke-node-pool (placement); GKE cluster autoscaler, placement (nodes of a compact pool);
docs: kubernetes-engine/how-to/gpus-confidential-nodes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import at
from gpukube.errors import Finding
from gpukube_gke.facts.boot_disks import HYPERDISK, default_disk_type
from gpukube_gke.facts.fabric import fabric_of, given_networks, uses_profile
from gpukube_gke.facts.local_ssd import disk_numbers
from gpukube_gke.pool.node_settings import DISKS_OF
from gpukube_gke.pool.purchase import is_flex_start, is_queued

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.core.values import Target

_TOOLKIT: Final = "GoogleCloudPlatform/cluster-toolkit, modules/compute/gke-node-pool"
_MAX_COMPACT: Final = (("a2-", 150), ("a3-", 96), ("a4-", 1500), ("g4-", 1500))
"""Machines -> maximum nodes of a compact pool."""
_CONFIDENTIAL: Final = "a3-highgpu-1g"
"""The only GPU machine that Google makes confidential."""
_KEY: Final = re.compile(r"projects/[^/\s]+/locations/[^/\s]+/keyRings/[^/\s]+/cryptoKeys/[^/\s]+")
_NUMBERS: Final = {
    "podPidsLimit": (1024, 4194303),
    "imageGCHighThresholdPercent": (10, 85),
    "imageGCLowThresholdPercent": (10, 85),
    "containerLogMaxFiles": (2, 10),
}
"""Settings of the kubelet with narrower limits than Kubernetes'."""
_LOG_SIZE: Final = re.compile(r"(\d+)(Ki|Mi|Gi)")
_KIB: Final = {"Ki": 1, "Mi": 1024, "Gi": 1024**2}
_LOG_KIB: Final = (10 * 1024, 500 * 1024)
_DEFAULT_FILES, _DEFAULT_DISK_GIB = 5, 100
_UNSAFE: Final = re.compile(r"kernel\.shm.*|kernel\.msg.*|kernel\.sem|fs\.mqueue\..*|net\..*")
_SYSCTLS: Final = frozenset(
    f"{group}.{name}"
    for group, names in {
        "net.core": "busy_poll busy_read netdev_max_backlog optmem_max rmem_default rmem_max somaxconn wmem_default "
        "wmem_max",
        "net.ipv4": "neigh.default.gc_thresh1 neigh.default.gc_thresh2 neigh.default.gc_thresh3 "
        "tcp_congestion_control tcp_ecn tcp_max_orphans tcp_max_tw_buckets tcp_mtu_probing tcp_rmem tcp_syn_retries "
        "tcp_tw_reuse tcp_wmem",
        "net.netfilter": "nf_conntrack_acct nf_conntrack_buckets nf_conntrack_max nf_conntrack_tcp_timeout_close_wait "
        "nf_conntrack_tcp_timeout_established nf_conntrack_tcp_timeout_time_wait",
        "kernel": "core_pattern dmesg_restrict keys.maxbytes keys.maxkeys kptr_restrict perf_event_paranoid "
        "sched_rt_runtime_us shmall shmmax shmmni softlockup_panic sysrq yama.ptrace_scope",
        "fs": "aio-max-nr file-max inotify.max_user_instances inotify.max_user_watches nr_open",
        "vm": "dirty_background_bytes dirty_background_ratio dirty_bytes dirty_expire_centisecs dirty_ratio "
        "dirty_writeback_centisecs max_map_count min_free_kbytes overcommit_memory overcommit_ratio swappiness "
        "vfs_cache_pressure watermark_scale_factor",
    }.items()
    for name in names.split()
)
"""Kernel parameters that GKE sets (google.container.v1 LinuxNodeConfig.sysctls)."""
_HUGEPAGES: Final = "vm.nr_hugepages"


def check_node_settings(target: Target) -> Iterator[Finding]:
    """Report settings of machines and nodes that GKE refuses, or that do not apply to the machine."""
    for check in _CHECKS:
        yield from check(target)


def _high_speed(target: Target) -> Iterator[Finding]:
    if not target.high_speed or uses_profile(target):
        return
    fabric, where = fabric_of(target.machine.name), target.locator.at("network.highSpeed")
    if fabric is None:
        yield Finding(
            "gke-high-speed",
            where,
            f"network.highSpeed is true, but {target.machine.name} has no GPUDirect network",
            fix="remove it, or choose a3-highgpu-8g, a3-megagpu-8g, a3-ultragpu-8g, a4 or a4x",
            why="docs: compute/docs/accelerator-optimized-machines",
        )
    elif not fabric.profile and given_networks(target.native) != fabric.interfaces:
        yield Finding(
            "gke-high-speed",
            where,
            f"network.highSpeed is true, and {fabric.kind} on {target.machine.name} needs exactly {fabric.interfaces} "
            f"additional networks, but the spec names {given_networks(target.native)}",
            fix="list them under gke.networkConfig.additionalNodeNetworkConfigs: [{network: NAME, subnetwork: NAME}]",
            why="GKE does not make these networks itself; another network takes the place of a GPU's "
            "(docs.nvidia.com/aicr: gke-tcpxo-networking)",
        )


def _placement(target: Target) -> Iterator[Finding]:
    if target.placement in ("", "none"):  # a named policy is compact too
        return
    name, strategy = target.machine.name, at(target.native, "upgradeSettings", "strategy")
    limit = next((number for prefix, number in _MAX_COMPACT if name.startswith(prefix)), None)
    rows = (
        (len(target.zones) > 1, "needs one zone", "write one zone", _TOOLKIT),
        (
            strategy == "BLUE_GREEN",
            "excludes upgrades of strategy BLUE_GREEN",
            "write gke.upgradeSettings.strategy: SURGE",
            _TOOLKIT,
        ),
        (
            is_queued(target),
            "excludes queued provisioning",
            "remove it",
            "GoogleCloudPlatform/cluster-toolkit#3582",
        ),
        (
            is_flex_start(target) and not name.startswith(("a3-ultragpu-", "a4-")),
            "works with flex-start on a3-ultragpu and a4 only",
            "remove it",
            "GoogleCloudPlatform/cluster-toolkit#5737",
        ),
        (
            name.startswith(("n1-", "custom-")),
            "does not work for N1 machines",
            "remove it, or write a machine of g2, a2 or later",
            "Compute Engine: Placement policy is not applicable to machine type (dstackai/dstack#2591)",
        ),
        (
            limit is not None and target.nodes.maximum > limit,
            "does not work for so many nodes",
            "request at most 150 nodes of a2, 96 of a3, 1500 of a4 and g4",
            "GKE cluster autoscaler, placement",
        ),
    )
    for applies, message, fix, source in rows:
        if applies:
            where = target.locator.at("placement")
            yield Finding("gke-placement", where, f"placement: {target.placement} {message}", fix=fix, why=source)


def _local_storage(target: Target) -> Iterator[Finding]:
    use, name = target.local_storage, target.machine.name
    if not use:
        return
    path, numbers = DISKS_OF[use], disk_numbers(name)
    other = next(steps for key, steps in DISKS_OF.items() if key != use)
    where = target.locator.at("localStorage")
    if numbers == ():
        message = f"localStorage is {use}, but {name} has no local disks"
        yield Finding("gke-local-storage", where, message, fix="remove it, or choose a machine with local disks")
    elif at(target.native, *path) == 0:
        message = f"localStorage is {use}, but gke.{'.'.join(path)} is 0"
        yield Finding("gke-local-storage", where, message, fix="keep one of them")
    elif at(target.native, *other):
        message = f"localStorage is {use}, but gke.{'.'.join(other)} uses the disks otherwise"
        yield Finding("gke-local-storage", where, message, fix="keep one of them")
    elif (numbers is None or len(numbers) > 1) and not at(target.native, *path):
        some = f"{numbers[0]} to {numbers[-1]}" if numbers else "NUMBER"
        yield Finding(
            "gke-local-storage",
            where,
            f"localStorage is {use}, but the number of local disks of {name} is your choice",
            fix=f"add gke.{'.'.join(path)}: {some}",
            why="each is paid for (docs: compute/docs/disks/local-ssd)",
        )


def _confidential(target: Target) -> Iterator[Finding]:
    if not target.confidential:
        return
    where = target.locator.at("confidential")
    if target.machine.name != _CONFIDENTIAL:
        yield Finding(
            "gke-confidential",
            where,
            f"confidential is true, but {target.machine.name} is not available as a confidential machine",
            fix=f"remove it, or write instanceType: {_CONFIDENTIAL}",
            why="of the machines with GPUs, Google encrypts only that one's memory (Intel TDX)",
        )
    elif target.sharing.mig or target.sharing.slicing:
        yield Finding(
            "gke-confidential",
            where,
            "confidential is true, but confidential nodes support neither MIG nor GPU sharing",
            fix="remove sharing",
        )


def _disk(target: Target) -> Iterator[Finding]:
    disk, name = target.disk, target.machine.name
    kind = disk.type or default_disk_type(name)
    for field, value in (("iops", disk.iops), ("throughput", disk.throughput)):
        if value is not None and kind != HYPERDISK:
            yield Finding(
                "gke-disk-performance",
                target.locator.at(f"disk.{field}"),
                f"disk.{field} is {value}, but only {HYPERDISK} has a choice of it",
                fix=f"remove it, or write type: {HYPERDISK}",
                why="google.container.v1 BootDisk",
            )
    if disk.encrypted is False:
        yield Finding(
            "gke-disk-encryption",
            target.locator.at("disk.encrypted"),
            "disk.encrypted is false, but Google encrypts every disk",
            fix="remove it",
        )
    if disk.kms_key and not _KEY.fullmatch(disk.kms_key):
        yield Finding(
            "gke-disk-encryption",
            target.locator.at("disk.kmsKey"),
            f'disk.kmsKey is "{disk.kms_key}", which is not the full name of a Cloud KMS key',
            fix="write projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY",
        )


def _kubelet(target: Target) -> Iterator[Finding]:
    for field, (low, high) in _NUMBERS.items():
        value = target.kubelet.get(field)
        if isinstance(value, int) and not low <= value <= high:
            yield _refused(target, field, f"is {value}", f"write {low} to {high}")
    names = target.kubelet.get("allowedUnsafeSysctls")
    for name in names if isinstance(names, tuple | list) else ():
        if not _UNSAFE.fullmatch(str(name)):
            fix = "list parameters of kernel.shm*, kernel.msg*, kernel.sem, fs.mqueue.* and net.* only"
            yield _refused(target, "allowedUnsafeSysctls", f'has "{name}"', fix)
    yield from _logs(target)


def _logs(target: Target) -> Iterator[Finding]:
    found = _LOG_SIZE.fullmatch(str(target.kubelet.get("containerLogMaxSize", "")))
    if not found:
        return
    size, files = int(found[1]) * _KIB[found[2]], target.kubelet.get("containerLogMaxFiles", _DEFAULT_FILES)
    disk_kib = (target.disk.size_gib or _DEFAULT_DISK_GIB) * _KIB["Gi"]
    if not _LOG_KIB[0] <= size <= _LOG_KIB[1]:
        yield _refused(target, "containerLogMaxSize", f"is {found[0]}", "write 10Mi to 500Mi")
    elif isinstance(files, int) and size * files * 100 > disk_kib:
        message = f"is {found[0]}, and {files} such files are more than 1% of the disk"
        yield _refused(
            target, "containerLogMaxSize", message, "write a smaller size or number of files, or a larger disk"
        )


def _refused(target: Target, field: str, message: str, fix: str) -> Finding:
    return Finding(
        "gke-kubelet",
        target.locator.at(f"kubelet.{field}"),
        f"kubelet.{field} {message}, which GKE refuses",
        fix=fix,
        why="google.container.v1 NodeKubeletConfig",
    )


def _sysctls(target: Target) -> Iterator[Finding]:
    for name, value in target.sysctls.items():
        if name not in _SYSCTLS:
            pages = f"remove it, and write hugepages: {{2Mi: {value}}}" if name == _HUGEPAGES else ""
            yield Finding(
                "gke-sysctl",
                target.locator.at(f"sysctls[{name}]"),
                f"GKE does not set the kernel parameter {name}",
                fix=pages or "remove it, or set it with a privileged DaemonSet",
                why="google.container.v1 LinuxNodeConfig.sysctls lists what it sets",
            )


_CHECKS: Final[tuple[Callable[[Target], Iterator[Finding]], ...]] = (
    _high_speed,
    _placement,
    _local_storage,
    _confidential,
    _disk,
    _kubelet,
    _sysctls,
)
