"""EKS node images that include the NVIDIA driver: amiType by image family and machine.

In scope: the table and lookups in it. Out of scope: what a node with an image advertises (`provider`), image
settings (`userdata.bottlerocket`).

Names: botocore eks/2017-11-01 AMITypes. Instance families: docs: eks/ml-eks-optimized-ami. amiType is always sent:
without it EKS chooses an image without a driver (HHS/simpler-grants-gov#12404).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from gpukube.gpu.catalog import Machine
    from gpukube.gpu.models import Arch

System = Literal["al2023", "bottlerocket"]

DEFAULT_IMAGE: Final[System] = "al2023"
SYSTEMS: Final[tuple[System, ...]] = ("al2023", "bottlerocket")
"""Allowed values of the spec's `image` on EKS."""


@dataclass(frozen=True, slots=True)
class Image:
    """One amiType.

    Attributes:
        name: The API's name.
        system: The spec's name.
        arch: CPU architecture of the machines.
        families: Supported instance families, the part before the dot.
    """

    name: str
    system: System
    arch: Arch
    families: frozenset[str]


_AMD64: Final = frozenset(
    "p6-b300 p6-b200 p5 p5e p5en p4d p4de p3 p3dn g7e gr6 g6 g6e g6f gr6f g5 g4dn".split()  # noqa: SIM905 - a table
)

IMAGES: Final[tuple[Image, ...]] = (
    Image("AL2023_x86_64_NVIDIA", "al2023", "amd64", _AMD64),
    Image("AL2023_ARM_64_NVIDIA", "al2023", "arm64", frozenset({"g5g", "p6e-gb200"})),
    Image("BOTTLEROCKET_x86_64_NVIDIA", "bottlerocket", "amd64", _AMD64),
    Image("BOTTLEROCKET_ARM_64_NVIDIA", "bottlerocket", "arm64", frozenset({"g5g"})),
)


def find_image(image: str, machine: Machine) -> Image | None:
    """Return the amiType of an image family ("" for the default) that supports a machine; None if there is none."""
    family = family_of(machine.name)
    return next(
        (i for i in IMAGES if i.system == (image or DEFAULT_IMAGE) and i.arch == machine.arch and family in i.families),
        None,
    )


def require_image(image: str, machine: Machine) -> Image:
    """Return the amiType for a checked pool.

    Raises:
        LookupError: There is none; `rules` rejects such a pool first.
    """
    if found := find_image(image, machine):
        return found
    message = f"no image {image} for {machine.name}"
    raise LookupError(message)


CUSTOM: Final = "CUSTOM"
"""amiType of a group whose launch template names an image; no request has it."""


def is_bottlerocket(ami_type: str) -> bool:
    """Return whether an amiType is a Bottlerocket image, FIPS variants included."""
    return ami_type.startswith("BOTTLEROCKET_")


def system_of(name: str) -> System | None:
    """Guess the image family from a name that the API, eksctl, or a person uses; None if none matches."""
    plain = name.lower().replace("-", "").replace("_", "").replace("amazonlinux", "al")
    return next((system for system in SYSTEMS if plain.startswith(system)), None)


def family_of(instance_type: str) -> str:
    """Return the family of an instance type: "g6e" of "g6e.xlarge"."""
    return instance_type.partition(".")[0]
