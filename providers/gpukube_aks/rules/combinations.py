"""Features of an agent pool that exclude each other, or combine badly: rows of one table.

In scope: the rows and their check. Out of scope: single values (`pool.native`, `pool.limits`), and requirements of one
feature alone (`capacity`, `facts.images`, `upgrades`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import at
from gpukube.errors import Finding
from gpukube_aks.facts.fabric import is_confidential
from gpukube_aks.pool.fields import placement_group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.core.values import Target
    from gpukube.errors import Severity


@dataclass(frozen=True, slots=True)
class Combination:
    """Two features that one pool cannot have, or should not.

    Attributes:
        code: Code of the finding.
        path: Field that the finding points to.
        found: Whether a pool has both features.
        message: What is wrong.
        fix: What to change.
        source: Reason, or its source.
    """

    code: str
    path: str
    found: Callable[[Target], bool]
    message: str
    fix: str
    source: str
    severity: Severity = "error"


def check_combinations(target: Target) -> Iterator[Finding]:
    """Report the combinations that a pool has."""
    for row in COMBINATIONS:
        if row.found(target):
            where = target.locator.at(row.path)
            yield Finding(row.code, where, row.message, fix=row.fix, why=row.source, severity=row.severity)


def _native(target: Target, path: str) -> object:
    return at(target.native, *_steps(path)) if target.native else None  # most pools have none


@cache  # every pool is checked against the same few paths
def _steps(path: str) -> list[str]:
    return path.split(".")


def _is_on(path: str) -> Callable[[Target], bool]:
    return lambda target: _native(target, path) is True


def _is_given(path: str) -> Callable[[Target], bool]:
    return lambda target: _native(target, path) is not None


def _is(path: str, desired: str) -> Callable[[Target], bool]:
    return lambda target: _native(target, path) == desired


def _all(first: Callable[[Target], bool], *others: Callable[[Target], bool]) -> Callable[[Target], bool]:
    # The first test fails for nearly every pool, and a generator takes longer than the test.
    return lambda target: first(target) and all(test(target) for test in others)


def _is_reserved(target: Target) -> bool:
    return target.capacity.type == "reserved"


def _is_spot(target: Target) -> bool:
    return target.capacity.type == "spot"


def _has_many_zones(target: Target) -> bool:
    return len(target.zones) > 1


def _is_arm(target: Target) -> bool:
    return target.machine.arch == "arm64"


def _gets_driver(target: Target) -> bool:
    return target.driver_owner not in ("none", "operator")


def _is_confidential(target: Target) -> bool:
    return is_confidential(target.machine.name)


def _is_ubuntu(target: Target) -> bool:
    return not target.image or target.image.startswith("Ubuntu")


def _is_trusted(target: Target) -> bool:
    return _is_on("securityProfile.enableSecureBoot")(target) or _is_on("securityProfile.enableVTPM")(target)


def _lacks_public_ips(target: Target) -> bool:
    return _native(target, "enableNodePublicIP") is not True


def _fails_on_swap(target: Target) -> bool:
    return _native(target, "kubeletConfig.failSwapOn") is not False


def _is_placed(target: Target) -> bool:
    return placement_group(target) is not None


_RESERVING: Final = "learn.microsoft.com/azure/virtual-machines/capacity-reservation-overview"
_HOSTS: Final = "learn.microsoft.com/azure/virtual-machines/dedicated-hosts"
_TRUSTED: Final = "learn.microsoft.com/azure/aks/use-trusted-launch"
_FIPS: Final = "learn.microsoft.com/azure/aks/node-images"
_SCALE_DOWN: Final = "learn.microsoft.com/azure/aks/scale-down-mode"
_DEALLOCATES: Final = _is("scaleDownMode", "Deallocate")
_WITHOUT_PLACEMENT: Final = "remove it, or write capacity.type: on-demand"

COMBINATIONS: Final[tuple[Combination, ...]] = (
    Combination(
        code="aks-reservation-excludes",
        path="placement",
        found=_all(_is_reserved, _is_placed),
        message="reserved machines cannot be in a proximity placement group",
        fix=_WITHOUT_PLACEMENT,
        source=_RESERVING,
    ),
    Combination(
        code="aks-reservation-excludes",
        path="aks.hostGroupID",
        found=_all(_is_reserved, _is_given("hostGroupID")),
        message="dedicated hosts cannot use a capacity reservation",
        fix=_WITHOUT_PLACEMENT,
        source=_RESERVING,
    ),
    Combination(
        code="aks-reservation-excludes",
        path="aks.enableUltraSSD",
        found=_all(_is_reserved, _is_on("enableUltraSSD")),
        message="reserved machines cannot have Ultra Disks",
        fix=_WITHOUT_PLACEMENT,
        source=_RESERVING,
    ),
    Combination(
        code="aks-placement-zones",
        path="placement",
        found=_all(_is_placed, _has_many_zones),
        message="a proximity placement group is in one zone, but the pool has several",
        fix="write one zone, or remove the group",
        source="learn.microsoft.com/azure/aks/reduce-latency-ppg",
    ),
    Combination(
        code="aks-placement-zones",
        path="aks.hostGroupID",
        found=_all(_is_given("hostGroupID"), _has_many_zones),
        message="a group of dedicated hosts is in one zone, but the pool has several",
        fix="write the zone of the group, or remove it",
        source=_HOSTS,
    ),
    Combination(
        code="aks-native-combination",
        path="aks.hostGroupID",
        found=_all(_is_given("hostGroupID"), _is_placed),
        message="dedicated hosts cannot be in a proximity placement group",
        fix="remove hostGroupID or placement",
        source=_HOSTS,
    ),
    Combination(
        code="aks-ultra-zones",
        path="aks.enableUltraSSD",
        found=_all(_is_on("enableUltraSSD"), lambda target: not target.zones),
        message="Ultra Disks need zones, but the pool has none",
        fix="write zones that have them",
        source="learn.microsoft.com/azure/aks/use-ultra-disks",
        severity="warning",
    ),
    Combination(
        code="aks-placement",
        path="placement",
        found=_all(_is_placed, lambda target: not _is_reserved(target)),
        message="a proximity placement group limits the available machines, and GPUs are scarce",
        fix="remove it unless the nodes need the latency",
        source="learn.microsoft.com/troubleshoot/azure/azure-kubernetes/error-codes/zonalallocation-allocationfailed-error",
        severity="hint",
    ),
    Combination(
        code="aks-spot-deallocate",
        path="aks.scaleSetEvictionPolicy",
        found=_all(_is_spot, _is("scaleSetEvictionPolicy", "Deallocate")),
        message="evicted machines stay deallocated, count toward the quota, and block scaling",
        fix="remove it: Delete is the default",
        source="learn.microsoft.com/azure/aks/spot-node-pool",
        severity="warning",
    ),
    Combination(
        code="aks-deallocate-disk",
        path="aks.scaleDownMode",
        found=_all(_DEALLOCATES, lambda target: target.disk.type == "Ephemeral"),
        message="AKS cannot deallocate machines with ephemeral disks",
        fix="write disk.type: Managed, or scaleDownMode: Delete",
        source=_SCALE_DOWN,
    ),
    Combination(
        code="aks-deallocate-disk",
        path="aks.scaleDownMode",
        found=_all(_DEALLOCATES, lambda target: target.disk.type is None),
        message="AKS deallocates no machines with ephemeral disks, and chooses the disk itself here",
        fix="write disk: {sizeGiB: 128, type: Managed}",
        source=_SCALE_DOWN,
        severity="warning",
    ),
    Combination(
        code="aks-deallocate",
        path="aks.scaleDownMode",
        found=_all(_DEALLOCATES, lambda target: "operator" in (target.plugin_owner, target.driver_owner)),
        message="after about ten stops of a machine the GPU Operator no longer starts on it",
        fix="write scaleDownMode: Delete",
        source="NVIDIA/gpu-operator#729",
        severity="warning",
    ),
    Combination(
        code="aks-image-features",
        path="aks.enableFIPS",
        found=_all(_is_on("enableFIPS"), _is_arm, _is_ubuntu),
        message="AKS has FIPS images for arm64 with Azure Linux only",
        fix="write image: AzureLinux, or remove enableFIPS",
        source=_FIPS,
    ),
    Combination(
        code="aks-image-features",
        path="aks.enableFIPS",
        found=_all(_is_on("enableFIPS"), _is_trusted, lambda target: not _is_ubuntu(target)),
        message="FIPS can be combined with trusted launch on Ubuntu 22.04 only",
        fix="write image: Ubuntu2204, or remove enableFIPS or securityProfile",
        source=_TRUSTED,
    ),
    Combination(
        code="aks-image-features",
        path="aks.enableFIPS",
        found=_all(_is_on("enableFIPS"), lambda target: target.image == "Ubuntu2404"),
        message="AKS has no FIPS image of Ubuntu 24.04",
        fix="write image: AzureLinux, or remove enableFIPS",
        source="learn.microsoft.com/azure/aks/upgrade-os-version",
    ),
    Combination(
        code="aks-image-features",
        path="aks.securityProfile",
        found=_all(_is_trusted, _is_arm),
        message="AKS has no trusted launch on arm64",
        fix="remove enableSecureBoot and enableVTPM",
        source=_TRUSTED,
    ),
    Combination(
        code="aks-image-features",
        path="aks.securityProfile",
        found=_all(_is_trusted, _is_confidential),
        message="confidential machines do not support trusted launch",
        fix="remove enableSecureBoot and enableVTPM",
        source=_TRUSTED,
    ),
    Combination(
        code="aks-secure-boot",
        path="aks.securityProfile.enableSecureBoot",
        found=_all(_is_on("securityProfile.enableSecureBoot"), _is_ubuntu, _gets_driver),
        message="with Secure Boot the GPU driver that AKS installs on Ubuntu may not load",
        fix="write image: AzureLinux or driver.owner: none, or remove enableSecureBoot",
        source=f"{_TRUSTED}; on Azure Linux it works since the release of 2026-07-17",
        severity="warning",
    ),
    Combination(
        code="aks-arm-driver",
        path="instanceType",
        found=_all(_is_arm, _gets_driver),
        message="AKS's GPU driver for arm64 machines is not released yet",
        fix="check that nodes of this size advertise their GPUs before you rely on them",
        source="Azure/AgentBaker#8745, Azure/AgentBaker#8950",
        severity="warning",
    ),
    Combination(
        code="aks-native-combination",
        path="aks.nodePublicIPPrefixID",
        found=_all(_is_given("nodePublicIPPrefixID"), _lacks_public_ips),
        message="aks.nodePublicIPPrefixID is set, but the nodes have no public addresses",
        fix="add enableNodePublicIP: true, or remove it",
        source="azure-cli: az aks nodepool add --node-public-ip-prefix-id",
    ),
    Combination(
        code="aks-native-combination",
        path="aks.networkProfile.nodePublicIPTags",
        found=_all(_is_given("networkProfile.nodePublicIPTags"), _lacks_public_ips),
        message="aks.networkProfile.nodePublicIPTags is set, but the nodes have no public addresses",
        fix="add enableNodePublicIP: true, or remove it",
        source="learn.microsoft.com/azure/aks/use-node-public-ips",
    ),
    Combination(
        code="aks-native-combination",
        path="aks.podIPAllocationMode",
        found=_all(_is_given("podIPAllocationMode"), lambda target: _native(target, "podSubnetID") is None),
        message="aks.podIPAllocationMode is set without a subnet for pods",
        fix="add podSubnetID, or remove it",
        source="azure-mgmt-containerservice: AgentPool.podIPAllocationMode",
    ),
    Combination(
        code="aks-image-features",
        path="aks.artifactStreamingProfile",
        found=_all(_is_on("artifactStreamingProfile.enabled"), _is_arm),
        message="AKS has no artifact streaming on arm64",
        fix="remove artifactStreamingProfile",
        source="learn.microsoft.com/azure/aks/artifact-streaming",
    ),
    Combination(
        code="aks-native-combination",
        path="aks.kubeletConfig.failSwapOn",
        found=_all(_is_given("linuxOSConfig.swapFileSizeMB"), _fails_on_swap),
        message="by default the kubelet does not start on nodes with a swap file",
        fix="write kubeletConfig: {failSwapOn: false}, or remove swapFileSizeMB",
        source="azure-mgmt-containerservice: KubeletConfig.failSwapOn",
    ),
)
"""Rows by subject: placement, purchase option, scale-down, boot, the rest."""
