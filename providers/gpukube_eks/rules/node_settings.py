"""Rules for settings of kubelet, kernel, and local disks: what user data cannot say, and what has no effect.

In scope: pure checks from a target to diagnostics, listed in `SETTING_CHECKS`. Out of scope: user data of others, which
only a live pool has (`pool.settings`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding
from gpukube_eks.userdata.bottlerocket import PAGE_SIZE
from gpukube_eks.userdata.nodeconfig import is_safe_sysctl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.core.values import Target

_LOW, _HIGH = 80, 85
"""The kubelet's defaults in percent (kubernetes.io: reference/config-api/kubelet-config.v1beta1)."""
_PAGES: Final = ("vm.nr_hugepages", "vm/nr_hugepages")


def _sysctls(target: Target) -> Iterator[Finding]:
    for key, value in target.sysctls.items():
        where = target.locator.at(f"sysctls.{key}")
        if key in _PAGES:
            yield Finding(
                "eks-node-setting",
                where,
                f"sysctls: {{{key}: ...}} reserves huge pages, which have a field of their own",
                fix=f"write hugepages: {{{PAGE_SIZE}: {value}}}",
            )
        elif not is_safe_sysctl(key, value):
            yield Finding(
                "eks-node-setting",
                where,
                f"sysctls.{key} has a name or value that gpukube does not write into a node's script",
                fix="write letters, digits and _.:,/+- only, and no * in the name",
                why="a script that runs as root on each node contains it",
            )


def _rocket(target: Target) -> Iterator[Finding]:
    if target.image != "bottlerocket":
        return
    if "cpuCFSQuotaPeriod" in target.kubelet:
        yield Finding(
            "eks-node-setting",
            target.locator.at("kubelet.cpuCFSQuotaPeriod"),
            "Bottlerocket has no setting for kubelet.cpuCFSQuotaPeriod",
            fix="remove it, or write image: al2023",
            why="bottlerocket-os/bottlerocket-project-website data/settings kubernetes.toml",
        )
    for size in target.hugepages:
        if size != PAGE_SIZE:
            yield Finding(
                "eks-node-setting",
                target.locator.at(f"hugepages.{size}"),
                f"gpukube reserves no huge pages of {size} on Bottlerocket",
                fix=f"write hugepages: {{{PAGE_SIZE}: N}}, or image: al2023",
                why="only releases from 1.64 have a setting for it (bottlerocket-os/bottlerocket-core-kit#952)",
            )


def _thresholds(target: Target) -> Iterator[Finding]:
    low, high = (target.kubelet.get(f"imageGC{name}ThresholdPercent") for name in ("Low", "High"))
    if (low is None) == (high is None):  # both: spec.rules compares them
        return
    least, most = (low if isinstance(low, int) else _LOW), (high if isinstance(high, int) else _HIGH)
    if least >= most:
        yield Finding(
            "eks-kubelet",
            target.locator.at("kubelet"),
            f"imageGCLowThresholdPercent is {least} and imageGCHighThresholdPercent is {most}: one by default",
            fix="write both, the lower one first",
            why="the kubelet starts only if the first is below (kubernetes pkg/kubelet/apis/config/validation)",
        )


def _memory(target: Target) -> Iterator[Finding]:
    if target.kubelet.get("memoryManagerPolicy") == "Static":
        yield Finding(
            "eks-memory-manager",
            target.locator.at("kubelet.memoryManagerPolicy"),
            "kubelet.memoryManagerPolicy Static needs reservedMemory, which gpukube does not set",
            fix="remove it, unless your own user data sets reservedMemory for this instance type",
            why="the kubelet does not start if reservedMemory differs from what it reserves in all "
            "(kubernetes.io: tasks/administer-cluster/memory-manager)",
            severity="warning",
        )


def _disks(target: Target) -> Iterator[Finding]:
    if target.local_storage and target.machine.local_ssd_gib == 0:
        yield Finding(
            "eks-local-storage",
            target.locator.at("localStorage"),
            f"localStorage is {target.local_storage}, but {target.machine.name} has no local disks",
            fix="remove it, or choose another instance type",
            why="images and emptyDir volumes stay on the node disk"
            if target.image != "bottlerocket"
            else "Bottlerocket's bootstrap command finds no disk",
            severity="warning",
        )


SETTING_CHECKS: Final[tuple[Callable[[Target], Iterator[Finding]], ...]] = (
    _sysctls,
    _rocket,
    _thresholds,
    _memory,
    _disks,
)
"""All checks of this module."""
