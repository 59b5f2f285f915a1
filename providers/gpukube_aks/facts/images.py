"""Node images: the values of osSKU, with the machines and Kubernetes versions that each supports.

In scope: that table, and the checks of image and kubernetesVersion. Out of scope: the effect of changing them
(`pool.updates`), features that exclude each other (`rules.combinations`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.core.values import Target

DEFAULT_IMAGE: Final = "Ubuntu"
"""Default of AKS if osSKU is omitted (SDK, AgentPool.osSKU)."""

_VERSION: Final = re.compile(r"1\.(\d+)(\.\d+)?")
_BEHIND: Final = 2  # minor versions below the control plane, never above it (docs: aks/upgrade-node-pools)
_UBUNTU_ONLY: Final = "RTXPRO6000"
_VERSIONS_SOURCE: Final = "docs: aks/upgrade-os-version"


@dataclass(frozen=True, slots=True)
class Image:
    """One value of osSKU.

    Attributes:
        oldest, newest: Range of Kubernetes minor versions that it supports; None for no limit.
        arm64: Whether it has an NVIDIA driver for arm64 machines.
    """

    oldest: int | None = None
    newest: int | None = None
    arm64: bool = True


IMAGES: Final[Mapping[str, Image]] = {
    "Ubuntu": Image(),
    "Ubuntu2204": Image(25, 36),
    "Ubuntu2404": Image(32, 38),
    "AzureLinux": Image(),
    "AzureLinux3": Image(28, 36),
    "AzureContainerLinux": Image(34, arm64=False),
}
"""Linux images with an NVIDIA driver (SDK, OSSKU; versions: docs: aks/upgrade-os-version)."""

_OTHERS: Final[Mapping[str, str]] = {
    "cblmariner": "it is deprecated; AzureLinux is its successor",
    "mariner": "it is deprecated; AzureLinux is its successor",
    "flatcar": "AKS has no NVIDIA driver on Flatcar (learn.microsoft.com/azure/aks/use-nvidia-gpu)",
    "azurelinuxosguard": "AKS has no NVIDIA driver on OS Guard (learn.microsoft.com/azure/aks/use-nvidia-gpu)",
    "windows": "GPU pools of gpukube are Linux: on Windows there is no MIG and no device-plugin chart",
    "ubuntu1804": "Ubuntu 18.04 was retired on 2025-06-17 (Azure/AKS#4873)",
    "ubuntu2004": "Ubuntu 20.04 retires on 2027-03-17 and is not a value of osSKU (Azure/AKS#4874)",
}
"""Prefix of names that users try but no pool can have -> why."""


def check_image(target: Target) -> Iterator[Finding]:
    """Report an image that AKS does not have, or not for this machine or Kubernetes version."""
    name, where = target.image, target.locator.at("image")
    if not name:
        return
    image = IMAGES.get(name)
    if image is None:
        yield Finding(
            "aks-image",
            where,
            f'AKS has no GPU node image "{name}"',
            fix=f"write {_nearest(name)}",
            why=next((why for start, why in _OTHERS.items() if name.casefold().startswith(start)), ""),
        )
        return
    if reason := _machine_reason(name, image, target):
        message = f'the image "{name}" has no GPU driver for {target.machine.name}'
        yield Finding("aks-image-machine", where, message, fix=f"write image: {DEFAULT_IMAGE}", why=reason)
    minor = minor_of(target.kubernetes_version)
    if minor is not None and not (image.oldest or 0) <= minor <= (image.newest or minor):
        yield Finding(
            "aks-image-version",
            where,
            f'AKS has no image "{name}" for Kubernetes {target.kubernetes_version}',
            fix=f"write image: {_family(name)}, which follows the version",
            why=f"AKS has it for 1.{image.oldest} {f'to 1.{image.newest}' if image.newest else 'and newer'} "
            f"({_VERSIONS_SOURCE})",
        )


def _nearest(name: str) -> str:
    by_case = {known.casefold(): known for known in IMAGES}
    near = get_close_matches(name.casefold(), by_case, n=1, cutoff=0.75)
    return by_case[near[0]] if near else f"one of {', '.join(IMAGES)}"


def _family(name: str) -> str:
    return "AzureLinux" if name.startswith("AzureLinux") else DEFAULT_IMAGE


def _machine_reason(name: str, image: Image, target: Target) -> str:
    if target.driver_owner in ("none", "operator"):
        return ""
    if target.machine.arch == "arm64" and not image.arm64:
        return "its NVIDIA driver is for amd64 only (learn.microsoft.com/azure/aks/use-nvidia-gpu)"
    if target.machine.model.chip == _UBUNTU_ONLY and not name.startswith(DEFAULT_IMAGE):
        return "AKS runs these sizes on Ubuntu only (Azure/AKS release notes of 2026-06-19)"
    return ""


def check_version(target: Target) -> Iterator[Finding]:
    """Report a Kubernetes version that is not in AKS's format."""
    version = target.kubernetes_version
    if version and minor_of(version) is None:
        yield Finding(
            "aks-version",
            target.locator.at("kubernetesVersion"),
            f'AKS has no Kubernetes version "{version}"',
            fix=f'write "{version.partition("-")[0]}", or only the minor version',
            why="AKS versions are 1.MINOR or 1.MINOR.PATCH (SDK, AgentPool.orchestratorVersion)",
        )


def check_skew(target: Target, plane: str) -> Finding | None:
    """Return a finding if the node version does not fit the live cluster's.

    Args:
        target: The declared pool.
        plane: Version of the control plane, "1.34.2"; "" if unknown.

    Source:
        Never above the control plane, and at most two minor versions below (SDK, AgentPool.orchestratorVersion).
    """
    desired, present = minor_of(target.kubernetes_version), minor_of(plane)
    if desired is None or present is None:
        return None
    above = desired > present or _patches(target.kubernetes_version) > _patches(plane)
    if not above and desired >= present - _BEHIND:
        return None
    return Finding(
        "version-skew",
        target.locator.at("kubernetesVersion"),
        f"kubernetesVersion is {target.kubernetes_version}, but the control plane of {target.cluster.key} runs {plane}",
        fix="upgrade the cluster first" if above else f"write 1.{present - _BEHIND} or newer, or remove it",
        why="nodes run the version of the control plane or one of the two minor versions before it",
    )


def minor_of(version: str) -> int | None:
    """Return the minor version, 34 for "1.34.2"; None if it is not in AKS's format."""
    found = _VERSION.fullmatch(version)
    return int(found[1]) if found else None


def _patches(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
