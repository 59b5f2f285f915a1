"""Network cards and local disks of the instance types.

In scope: the sandbox's own table, and its form in DescribeInstanceTypes. Out of scope: which interfaces a launch may
have (`launchrules`), the rest of a type (`instances`).

Sources: EC2 DescribeInstanceTypes, NetworkInfo.NetworkCards, EfaInfo, and InstanceStorageInfo; p3:
aws/amazon-vpc-cni-k8s misc/eni-max-pods.txt; p6e-gb200: aws/aws-parallelcluster#6930 and docs:
eks/ml-eks-nvidia-ultraserver, where EC2's own description is unconfirmed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpukube_sandbox.eks.wire.answers import objects_in

if TYPE_CHECKING:
    from gpukube_sandbox.eks.instances import InstanceType
    from gpukube_sandbox.eks.wire.answers import Json

EFA_TYPES: Final = frozenset({"efa", "efa-only"})
_PLAIN, _ANY = ("interface",), ("interface", "efa", "efa-only")
_ROWS: Final = {
    # interfaces per card, and count x GB of local disks ("-" for none)
    "3 -": "t3.medium t3.large m5.large m6i.large m6g.large",
    "4 -": "m5.xlarge m6i.2xlarge c5.xlarge inf2.xlarge p3.2xlarge g5g.xlarge g5g.2xlarge",
    "8 -": "p3.8xlarge p3.16xlarge g5g.4xlarge g5g.8xlarge",
    "15 -": "g5g.16xlarge g5g.metal",
    "2 1x150": "g4ad.xlarge",
    "4 1x474": "trn1.2xlarge",
    "3 1x125": "g4dn.xlarge",
    "3 1x225": "g4dn.2xlarge g4dn.4xlarge",
    "4 1x900": "g4dn.8xlarge g4dn.16xlarge",
    "8 1x900": "g4dn.12xlarge g5.8xlarge",
    "15 2x900": "g4dn.metal p3dn.24xlarge",
    "4 1x250": "g5.xlarge g6.xlarge g6e.xlarge",
    "4 1x450": "g5.2xlarge g6.2xlarge g6e.2xlarge",
    "8 1x600": "g5.4xlarge g6.4xlarge g6e.4xlarge gr6.4xlarge",
    "15 1x3800": "g5.12xlarge g5.24xlarge",
    "8 1x1900": "g5.16xlarge g7e.4xlarge g7e.8xlarge",
    "7 2x3800": "g5.48xlarge",
    "8 2x450": "g6.8xlarge g6e.8xlarge gr6.8xlarge",
    "8 4x940": "g6.12xlarge",
    "15 2x940": "g6.16xlarge",
    "15 4x940": "g6.24xlarge",
    "15 8x940": "g6.48xlarge",
    "10 2x1900": "g6e.12xlarge g6e.24xlarge",
    "15 2x950": "g6e.16xlarge",
    "10 4x1900": "g6e.48xlarge",
    "2 1x100": "g6f.large",
    "4 1x100": "g6f.xlarge",
    "4 1x200": "g6f.2xlarge",
    "8 1x450": "g6f.4xlarge gr6f.4xlarge",
    "4 1x440": "g7.2xlarge",
    "8 1x875": "g7.4xlarge",
    "10 1x930": "g7.8xlarge",
    "12 1x1900": "g7.12xlarge",
    "24 1x3800": "g7.24xlarge",
    "12 2x3800": "g7.48xlarge",
    "4 1x1900": "g7e.2xlarge",
    "10 1x3800": "g7e.12xlarge",
    "10 2x3800": "g7e.24xlarge",
    "10 4x3800": "g7e.48xlarge",
    "15 8x1000": "p4d.24xlarge p4de.24xlarge",
    "4 1x3800": "p5.4xlarge",
    "2 8x3800": "p5.48xlarge p5e.48xlarge",
    "4 8x3800": "p5en.48xlarge p6-b200.48xlarge p6-b300.48xlarge",
    "2 3x7500": "p6e-gb200.36xlarge",
}
_BY_TYPE: Final = {name: row.split() for row, names in _ROWS.items() for name in names.split()}


@dataclass(frozen=True, slots=True)
class Card:
    """A network card.

    Attributes:
        most: Number of interfaces that it can have.
        kinds: Their InterfaceTypes.
    """

    index: int
    most: int
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Disks:
    """The local disks of a machine, all of one size."""

    count: int
    gb: int


def cards_of(kind: InstanceType) -> tuple[Card, ...]:
    """Return the network cards of a type: one for each EFA interface, or a single one.

    Card 0 of p6-b300 and p6e-gb200 is an additional one, for IP traffic only; the odd cards of p6e-gb200 have one
    interface each.
    """
    most, kinds = int(_BY_TYPE[kind.name][0]), _ANY if kind.efa else _PLAIN
    if kind.family in {"p6-b300", "p6e-gb200"}:
        odd = 1 if kind.family == "p6e-gb200" else most
        return (
            Card(0, most, _PLAIN),
            *(Card(index, odd if index % 2 else most, kinds) for index in range(1, kind.efa + 1)),
        )
    return tuple(Card(index, most, kinds) for index in range(max(1, kind.efa)))


def disks_of(kind: InstanceType) -> Disks | None:
    """Return the local disks of a type; None for none."""
    count, _, gb = _BY_TYPE[kind.name][1].partition("x")
    return Disks(int(count), int(gb)) if gb else None


def network_info(kind: InstanceType) -> Json:
    """Return NetworkInfo."""
    cards = cards_of(kind)
    shown = [
        {
            "networkCardIndex": card.index,
            "maximumNetworkInterfaces": card.most,
            "interfaceTypeSet": {"item": list(card.kinds)},
        }
        for card in cards
    ]
    found: Json = {
        "maximumNetworkInterfaces": sum(card.most for card in cards),
        "maximumNetworkCards": len(cards),
        "defaultNetworkCardIndex": 0,
        "networkCards": {"item": shown},
        "efaSupported": kind.efa > 0,
    }
    return found | ({"efaInfo": {"maximumEfaInterfaces": kind.efa}} if kind.efa else {})


def storage_info(kind: InstanceType) -> Json:
    """Return InstanceStorageSupported and, with local disks, InstanceStorageInfo."""
    disks = disks_of(kind)
    if disks is None:
        return {"instanceStorageSupported": False}
    return {
        "instanceStorageSupported": True,
        "instanceStorageInfo": {
            "totalSizeInGB": disks.count * disks.gb,
            "disks": {"item": [{"sizeInGB": disks.gb, "count": disks.count, "type": "ssd"}]},
            "nvmeSupport": "required",
            "encryptionSupport": "required",
        },
    }


def efa_count(data: Json | None) -> int:
    """Count the EFA interfaces of a launch template."""
    return sum(card.get("InterfaceType") in EFA_TYPES for card in objects_in((data or {}).get("NetworkInterfaces")))
