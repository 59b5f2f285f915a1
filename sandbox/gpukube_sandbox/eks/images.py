"""EKS-optimized images: amiType, operating system, included GPU software.

In scope: the table, release versions, and the pairing with instance types. Out of scope: user data (`bottlerocket`),
nodes (`machines`).

Sources: botocore eks AMITypes; docs: eks/ml-eks-optimized-ami (which instance families the accelerated images support);
awslabs/amazon-eks-ami CHANGELOG (releases).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gpukube_sandbox.eks.wire.answers import bad_parameter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube_sandbox.eks.instances import InstanceType

AL_DATE = "20260714"
"""Date of the initial releases."""
_BOTTLEROCKET, _NEXT_BOTTLEROCKET = "1.63.0", "1.64.0"
_X86_NVIDIA = frozenset(
    [
        "p6-b300",
        "p6-b200",
        "p5",
        "p5e",
        "p5en",
        "p4d",
        "p4de",
        "p3",
        "p3dn",
        "g7e",
        "gr6",
        "g6",
        "g6e",
        "g6f",
        "gr6f",
        "g5",
        "g4dn",
    ]
)
_ARM_NVIDIA = frozenset({"p6e-gb200", "g5g"})
_BOTTLEROCKET_ARM_NVIDIA = frozenset({"g5g"})
_NO_AL2_FROM = 33


@dataclass(frozen=True, slots=True)
class Image:
    """An amiType.

    Attributes:
        system: Operating system.
        arch: x86_64 or arm64; "" for a custom image.
        families: Instance families that it supports; empty for a plain image, which supports all.
        disk_gib: Default of diskSize.
    """

    name: str
    system: Literal["al2", "al2023", "bottlerocket", "windows", "custom"]
    arch: str
    families: frozenset[str] = frozenset()
    disk_gib: int = 20

    @property
    def has_driver(self) -> bool:
        """Return whether the image contains the NVIDIA driver and container toolkit."""
        return "NVIDIA" in self.name or self.name == "AL2_x86_64_GPU"

    @property
    def has_plugin(self) -> bool:
        """Return whether the device plugin runs as a service of the node (Bottlerocket NVIDIA only)."""
        return self.system == "bottlerocket" and self.has_driver


def _windows() -> list[Image]:
    names = [f"WINDOWS_{kind}_{year}_x86_64" for year in (2019, 2022, 2025) for kind in ("CORE", "FULL")]
    return [Image(name, "windows", "x86_64", disk_gib=50) for name in names]


_TABLE: tuple[Image, ...] = (
    Image("AL2_x86_64", "al2", "x86_64"),
    Image("AL2_x86_64_GPU", "al2", "x86_64", _X86_NVIDIA | {"inf1", "inf2", "trn1"}),
    Image("AL2_ARM_64", "al2", "arm64"),
    Image("CUSTOM", "custom", ""),
    Image("BOTTLEROCKET_ARM_64", "bottlerocket", "arm64"),
    Image("BOTTLEROCKET_x86_64", "bottlerocket", "x86_64"),
    Image("BOTTLEROCKET_ARM_64_FIPS", "bottlerocket", "arm64"),
    Image("BOTTLEROCKET_x86_64_FIPS", "bottlerocket", "x86_64"),
    Image("BOTTLEROCKET_ARM_64_NVIDIA", "bottlerocket", "arm64", _BOTTLEROCKET_ARM_NVIDIA),
    Image("BOTTLEROCKET_x86_64_NVIDIA", "bottlerocket", "x86_64", _X86_NVIDIA),
    Image("BOTTLEROCKET_ARM_64_NVIDIA_FIPS", "bottlerocket", "arm64", _BOTTLEROCKET_ARM_NVIDIA),
    Image("BOTTLEROCKET_x86_64_NVIDIA_FIPS", "bottlerocket", "x86_64", _X86_NVIDIA),
    *_windows(),
    Image("AL2023_x86_64_STANDARD", "al2023", "x86_64"),
    Image("AL2023_ARM_64_STANDARD", "al2023", "arm64"),
    Image("AL2023_x86_64_NEURON", "al2023", "x86_64", frozenset({"inf1", "inf2", "trn1", "trn2"})),
    Image("AL2023_x86_64_NVIDIA", "al2023", "x86_64", _X86_NVIDIA),
    Image("AL2023_ARM_64_NVIDIA", "al2023", "arm64", _ARM_NVIDIA),
)

IMAGES: dict[str, Image] = {image.name: image for image in _TABLE}


def check_pairing(image: Image, types: Sequence[InstanceType], kubernetes_version: str) -> None:
    """Reject instance types that the image does not support, and AL2 after its end.

    A plain image starts on GPU machines too, without a driver (awslabs/amazon-eks-ami#1817).

    Raises:
        AwsError: 400 InvalidParameterException (eksctl-io/eksctl#7754; docs: eks/eks-ami-deprecation-faqs for AL2,
            whose message is unconfirmed).
    """
    if image.system == "al2" and int(kubernetes_version.split(".")[1]) >= _NO_AL2_FROM:
        raise bad_parameter(f"AMI Type {image.name} is only supported for kubernetes versions 1.32 or earlier")
    wrong = [
        entry.name
        for entry in types
        if (image.arch and entry.arch != image.arch) or (image.families and entry.family not in image.families)
    ]
    if wrong:
        raise bad_parameter(f"[{', '.join(wrong)}] is not a valid instance type for requested amiType {image.name}")


def release_version(image: Image, kubernetes_version: str, date: str = AL_DATE) -> str:
    """Return the release that EKS would choose now: AL2023 "1.34.2-20260714", Bottlerocket "1.63.0-ab12cd34".

    Args:
        image: The amiType.
        kubernetes_version: Version with patch.
        date: Release date of the newest images.
    """
    if image.system == "bottlerocket":
        number = _BOTTLEROCKET if date == AL_DATE else _NEXT_BOTTLEROCKET
        return f"{number}-{_digest(image.name, kubernetes_version)[:8]}"
    return f"{kubernetes_version}-{date}"


def check_release(live: str, requested: str, version: str, image: Image | None) -> None:
    """Reject a release of another Kubernetes version, and one older than the live one.

    Args:
        live: The group's release; "" for a new group.
        requested: Requested release; "" if the request has none.
        version: Kubernetes version of the nodes after the request, "1.34".
        image: The amiType; Bottlerocket's releases have their own numbers.

    Raises:
        AwsError: 400 (docs: eks/update-managed-node-group, "You can't roll back"; messages unconfirmed).
    """
    is_bottlerocket = image is not None and image.system == "bottlerocket"
    if requested and not is_bottlerocket and not requested.startswith(f"{version}."):
        raise bad_parameter(f"Requested release version {requested} is not valid for kubernetes version {version}.")
    if requested and live and _in_order(requested) < _in_order(live):
        raise bad_parameter(f"Requested release version {requested} is older than the node group's {live}.")


def _in_order(release: str) -> list[int]:
    """Return the numbers that order releases, without Bottlerocket's commit."""
    numbers, _, date = release.partition("-")
    return [int(part) for part in numbers.split(".") if part.isdigit()] + ([int(date)] if date.isdigit() else [])


def image_id(image: Image, release: str) -> str:
    """Return the AMI id of an image's release."""
    return f"ami-{_digest(image.name, release)[:17]}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("/".join(parts).encode()).hexdigest()
