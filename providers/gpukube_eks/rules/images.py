"""Rules for images, releases, and versions: what EKS rejects, and what their settings do not support.

In scope: pure checks from a target to diagnostics, listed in `IMAGE_CHECKS`. Out of scope: the tables of images
(`facts.images`) and of Bottlerocket's settings (`userdata.bottlerocket`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding
from gpukube_eks.facts.images import SYSTEMS, family_of, find_image, system_of
from gpukube_eks.pool.own_image import own_image
from gpukube_eks.userdata.bottlerocket import MIG_MODELS, RELEASES, is_profile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gpukube.core.values import Target

_DRIVER_595: Final = frozenset({"g7"})
"""Families whose GPUs need a newer driver than the images include (awslabs/amazon-eks-ami, doc/usage/g7-ami.md)."""
_GONE: Final[Mapping[str, str]] = dict.fromkeys(
    ("al2", "amazonlinux2"),
    "AWS has published no Amazon Linux 2 images since 2025-11-26, and none for Kubernetes 1.33 and newer "
    "(docs: eks/eks-ami-deprecation-faqs)",
)
_AL2023_RELEASE: Final = re.compile(r"(1\.\d+)\.\d+-20\d{6}")  # awslabs/amazon-eks-ami CHANGELOG
_ROCKET_RELEASE: Final = re.compile(
    r"(\d+)\.(\d+)\.\d+-(?!20\d{6})[0-9a-f]{8}"
)  # bottlerocket-os/bottlerocket releases
_MINOR: Final = re.compile(r"1\.\d+")
_ROCKET_580: Final = 34
"""Minor Kubernetes version of the first Bottlerocket variant with driver 580 (docs: eks/ml-eks-optimized-ami)."""
_FEW_PODS, _MANY_PODS, _MANY_VCPUS = 110, 250, 30
"""Maximum pods of a managed node below and above a number of vCPUs (awsdocs/amazon-eks-user-guide#663)."""
_NEED_580: Final[Mapping[str, str]] = {"B300-269GB": "580.82.07", "RTXPRO6000-96GB": "575.51.03"}
"""First driver version that supports the GPU (NVIDIA MIG User Guide, supported GPUs)."""


def _image(target: Target) -> Iterator[Finding]:
    where, image = target.locator.at("image"), target.image
    if image and image not in SYSTEMS:
        message = f'EKS has no image family "{image}" with the NVIDIA driver that gpukube knows'
        yield Finding("eks-image", where, message, fix=_suggest_image(image), why=_why_not(image))
        return
    if own_image(target):
        yield from _own_image(target)
        return
    for index, machine in enumerate(target.all_machines):
        if family_of(machine.name) in _DRIVER_595:
            yield Finding(
                "eks-image-machine",
                target.locator.at(f"instanceTypes[{index}]" if target.machines else "instanceType"),
                f"no EKS image has a driver for the GPUs of {machine.name}",
                fix="choose another instance type, or write image: al2023 and eks.imageId, an image with that driver",
                why="they need driver 595, but the images have 580 (awslabs/amazon-eks-ami, g7-ami)",
            )
        elif find_image(image, machine) is None:
            yield Finding(
                "eks-image-machine",
                where,
                f"{image or 'al2023'} has no image with the NVIDIA driver for {machine.name}",
                fix="choose another instance type" + (", or image: al2023" if find_image("", machine) else ""),
                why="EKS rejects other combinations (eksctl-io/eksctl#7754)",
            )


def _own_image(target: Target) -> Iterator[Finding]:
    if target.image != "al2023":
        yield Finding(
            "eks-own-image",
            target.locator.at("eks.imageId"),
            "gpukube writes the settings with which nodes of an own image join only for al2023",
            fix="write image: al2023 if the image is based on it, or remove eks.imageId",
            why="EKS adds nothing to the user data of a group with an own image (docs: eks/launch-templates)",
        )
    versions = {
        "kubernetesVersion": target.kubernetes_version,
        "eks.releaseVersion": target.native.get("releaseVersion"),
    }
    for field in (name for name, value in versions.items() if value):
        yield Finding(
            "eks-own-image",
            target.locator.at(field),
            f"{field} cannot be set together with eks.imageId, which has its version in it",
            fix=f"remove {field}",
            why="EKS rejects both together (docs: eks/launch-templates)",
        )


def _why_not(image: str) -> str:
    if image.startswith("ami-"):
        return "an image of your own is written as eks: {imageId: ami-...}, with image: al2023"
    return _GONE.get("al2" if image.lower().startswith("al2_") else image.lower(), "")


def _suggest_image(image: str) -> str:
    """Return the fix for an image; it names the family if the image is written as in the API or eksctl."""
    if found := system_of(image):
        return f"write {found}"
    return f"write {' or '.join(SYSTEMS)}, or leave image out"


def _bottlerocket(target: Target) -> Iterator[Finding]:
    cut, model = target.sharing.mig, str(target.machine.model)
    if target.image != "bottlerocket" or cut is None:
        return
    where = target.locator.at("sharing.mig.profile")
    if cut.strategy == "mixed":
        yield Finding(
            "eks-bottlerocket-mixed",
            target.locator.at("sharing.mig.strategy"),
            "Bottlerocket advertises MIG instances as nvidia.com/gpu only",
            fix="write strategy: single, or image: al2023",
        )
    if model not in MIG_MODELS:
        yield Finding(
            "eks-bottlerocket-mig",
            where,
            f"Bottlerocket has no documented MIG setting for {model}",
            fix="write image: al2023",
            why=f"its setting mig.profile supports {', '.join(MIG_MODELS)}",
        )
    elif cut.layout:
        yield Finding(
            "eks-bottlerocket-profile",
            target.locator.at("sharing.mig.layout"),
            "Bottlerocket supports one MIG profile for all GPUs, not a layout",
            fix="write profile instead of layout, or image: al2023",
        )
    elif not is_profile(cut.profile):
        yield Finding(
            "eks-bottlerocket-profile",
            where,
            f'Bottlerocket does not support the MIG profile "{cut.profile}"',
            fix="write a plain profile, without +me or +gfx, or image: al2023",
        )


def _bottlerocket_plugin(target: Target) -> Iterator[Finding]:
    if target.image == "bottlerocket" and target.plugin_owner == "none":
        yield Finding(
            "eks-bottlerocket-plugin",
            target.locator.at("devicePlugin.owner"),
            "devicePlugin.owner is none, but Bottlerocket always runs its own device plugin",
            fix="write devicePlugin.owner: auto, or image: al2023",
            why="exactly one component may register nvidia.com/* on a node",
        )


def _bottlerocket_driver(target: Target) -> Iterator[Finding]:
    minor, needed = target.kubernetes_version.split(".")[1:2], _NEED_580.get(str(target.machine.model))
    if target.image == "bottlerocket" and needed and minor and int(minor[0]) < _ROCKET_580:
        yield Finding(
            "eks-bottlerocket-driver",
            target.locator.at("image"),
            f"{target.machine.model} needs driver {needed}; Bottlerocket has 580 only for Kubernetes 1.{_ROCKET_580} "
            "and newer",
            fix="write image: al2023, or upgrade the cluster",
            why=f"kubernetesVersion is {target.kubernetes_version} (docs: eks/ml-eks-optimized-ami)",
            severity="warning",
        )


def _version(target: Target) -> Iterator[Finding]:
    version = target.kubernetes_version
    if version and not _MINOR.fullmatch(version):
        minor = ".".join(version.split(".")[:2])
        yield Finding(
            "eks-version",
            target.locator.at("kubernetesVersion"),
            f'kubernetesVersion is "{version}", but EKS accepts minor versions only',
            fix=f'write "{minor}"; eks: {{releaseVersion: ...}} sets the patch',
        )


def _release(target: Target) -> Iterator[Finding]:
    release, where = target.native.get("releaseVersion"), target.locator.at("eks.releaseVersion")
    if not isinstance(release, str):
        return
    rocket = target.image == "bottlerocket"
    found = (_ROCKET_RELEASE if rocket else _AL2023_RELEASE).fullmatch(release)
    if found is None:
        yield Finding(
            "eks-release",
            where,
            f'"{release}" is not a release of {target.image or SYSTEMS[0]}',
            fix=f"write a release such as {'1.57.0-ab12cd34' if rocket else '1.34.2-20260714'}, or remove it",
            why="EKS accepts only releases of the node group's image (botocore eks CreateNodegroupRequest)",
        )
    elif rocket:
        yield from _rocket_release(target, (int(found[1]), int(found[2])))
    elif target.kubernetes_version and found[1] != target.kubernetes_version:
        yield Finding(
            "eks-release",
            where,
            f'"{release}" is a release of Kubernetes {found[1]}, but kubernetesVersion is {target.kubernetes_version}',
            fix="write a release of that version, or remove it to use the newest",
        )


def _rocket_release(target: Target, release: tuple[int, int]) -> Iterator[Finding]:
    """Check that a release supports all settings: an unknown one keeps its nodes from starting."""
    sharing = target.sharing
    used = (["mig"] if sharing.mig else []) + ([sharing.slicing.mode] if sharing.slicing else [])
    used += ["dra"] if target.plugin_owner == "dra" else []
    for setting in used:
        if release < RELEASES[setting]:
            first = ".".join(map(str, RELEASES[setting]))
            yield Finding(
                "eks-bottlerocket-release",
                target.locator.at("eks.releaseVersion"),
                f"Bottlerocket {release[0]}.{release[1]} has no setting "
                + ("that turns its device plugin off" if setting == "dra" else f"for {setting}"),
                fix=f"write release {first} or newer, or remove it",
                why=f"it was added in {first} (bottlerocket-os/bottlerocket-project-website, data/settings)",
            )


def _pods(target: Target) -> Iterator[Finding]:
    pods, smallest = target.max_pods, min(target.all_machines, key=lambda machine: machine.vcpus or _MANY_VCPUS)
    most = _FEW_PODS if smallest.vcpus is not None and smallest.vcpus < _MANY_VCPUS else _MANY_PODS
    if pods is not None and pods > most:
        yield Finding(
            "eks-max-pods",
            target.locator.at("maxPodsPerNode"),
            f"maxPodsPerNode is {pods}, but a managed node of {smallest.name} allows at most {most}",
            fix=f"write {most} or less",
            why=f"{_FEW_PODS} below {_MANY_VCPUS} vCPUs and {_MANY_PODS} above (awsdocs/amazon-eks-user-guide#663)",
            severity="warning",
        )


def _reboot(target: Target) -> Iterator[Finding]:
    cut = target.sharing.mig
    if cut and target.image != "bottlerocket" and family_of(target.machine.name) in ("p4d", "p4de"):
        boots_cut = not cut.layout and cut.strategy == "single"
        yield Finding(
            "eks-mig-reboot",
            target.locator.at("sharing.mig"),
            f"the MIG manager reboots every new {target.machine.name} once before it advertises MIG instances",
            fix="wait for the instances" + (", or write image: bottlerocket, which needs no reboot" * boots_cut),
            why="a virtual machine cannot reset its A100 (NVIDIA/gpu-operator#1606)",
            severity="hint",
        )


def _coherent(target: Target) -> Iterator[Finding]:
    if target.sharing.mig and family_of(target.machine.name) == "p6e-gb200":
        yield Finding(
            "eks-mig-coherent",
            target.locator.at("sharing.mig"),
            f"nodes of {target.machine.name} start with coherent driver memory (CDMM), which excludes MIG",
            fix="remove sharing.mig, or choose another machine",
            why="the images have it since v20251103 (docs: eks/ml-eks-nvidia-ultraserver)",
            severity="warning",
        )


IMAGE_CHECKS: Final[tuple[Callable[[Target], Iterator[Finding]], ...]] = (
    _image,
    _bottlerocket,
    _bottlerocket_plugin,
    _bottlerocket_driver,
    _version,
    _release,
    _pods,
    _reboot,
    _coherent,
)
