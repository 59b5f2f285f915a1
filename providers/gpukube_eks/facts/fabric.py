"""Network cards and local disks of instance types, and the interfaces of a node with EFA.

In scope: the table, and what is derived from it. Out of scope: security groups and subnets of the interfaces (`pool`).

Sources: EC2 DescribeInstanceTypes (NetworkInfo, InstanceStorageInfo), the copy in moto 5.2.5; for p6e-gb200, which it
lacks: docs: ec2/efa-acc-inst-types and eks/ml-eks-nvidia-ultraserver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.gpu.catalog import Machine


@dataclass(frozen=True, slots=True)
class Fabric:
    """Network and disks of one instance type.

    Attributes:
        cards: Network cards.
        efa: Cards that get an EFA interface; none if the type has no EFA.
        disks: NVMe disks included in the instance.
        disk_gb: Size of each.
    """

    cards: int
    efa: Sequence[int]
    disks: int
    disk_gb: int


class Interface(NamedTuple):
    """A network interface of a launch template, in the words of EC2."""

    card: int
    device: int
    kind: Literal["interface", "efa-only"]


_NONE: Final = ()
_ONE: Final = range(1)

FABRICS: Final[Mapping[str, Fabric]] = {
    "p3dn.24xlarge": Fabric(1, _ONE, 2, 900),
    "p4d.24xlarge": Fabric(4, range(4), 8, 1000),
    "p4de.24xlarge": Fabric(4, range(4), 8, 1000),
    "p5.4xlarge": Fabric(1, _ONE, 1, 3800),
    "p5.48xlarge": Fabric(32, range(32), 8, 3800),
    "p5e.48xlarge": Fabric(32, range(32), 8, 3800),
    "p5en.48xlarge": Fabric(16, range(16), 8, 3800),
    "p6-b200.48xlarge": Fabric(8, range(8), 8, 3800),
    # card 0 has no EFA, so counting cards instead of EFA interfaces fails (eksctl-io/eksctl#8685)
    "p6-b300.48xlarge": Fabric(17, range(1, 17), 8, 3800),
    # cards share NICs and GPUs: one EFA interface for each GPU has all of the bandwidth
    "p6e-gb200.36xlarge": Fabric(17, (1, 5, 9, 13), 3, 7500),
    "g4dn.xlarge": Fabric(1, _NONE, 1, 125),
    "g4dn.2xlarge": Fabric(1, _NONE, 1, 225),
    "g4dn.4xlarge": Fabric(1, _NONE, 1, 225),
    "g4dn.8xlarge": Fabric(1, _ONE, 1, 900),
    "g4dn.12xlarge": Fabric(1, _ONE, 1, 900),
    "g4dn.16xlarge": Fabric(1, _ONE, 1, 900),
    "g4dn.metal": Fabric(1, _ONE, 2, 900),
    "g5.xlarge": Fabric(1, _NONE, 1, 250),
    "g5.2xlarge": Fabric(1, _NONE, 1, 450),
    "g5.4xlarge": Fabric(1, _NONE, 1, 600),
    "g5.8xlarge": Fabric(1, _ONE, 1, 900),
    "g5.12xlarge": Fabric(1, _ONE, 1, 3800),
    "g5.16xlarge": Fabric(1, _ONE, 1, 1900),
    "g5.24xlarge": Fabric(1, _ONE, 1, 3800),
    "g5.48xlarge": Fabric(1, _ONE, 2, 3800),
    "g6.xlarge": Fabric(1, _NONE, 1, 250),
    "g6.2xlarge": Fabric(1, _NONE, 1, 450),
    "g6.4xlarge": Fabric(1, _NONE, 1, 600),
    "g6.8xlarge": Fabric(1, _ONE, 2, 450),
    "g6.12xlarge": Fabric(1, _ONE, 4, 940),
    "g6.16xlarge": Fabric(1, _ONE, 2, 940),
    "g6.24xlarge": Fabric(1, _ONE, 4, 940),
    "g6.48xlarge": Fabric(1, _ONE, 8, 940),
    "g6e.xlarge": Fabric(1, _NONE, 1, 250),
    "g6e.2xlarge": Fabric(1, _NONE, 1, 450),
    "g6e.4xlarge": Fabric(1, _NONE, 1, 600),
    "g6e.8xlarge": Fabric(1, _ONE, 2, 450),
    "g6e.12xlarge": Fabric(1, _ONE, 2, 1900),
    "g6e.16xlarge": Fabric(1, _ONE, 2, 950),
    "g6e.24xlarge": Fabric(2, range(2), 2, 1900),
    "g6e.48xlarge": Fabric(4, range(4), 4, 1900),
    "g6f.large": Fabric(1, _NONE, 1, 100),
    "g6f.xlarge": Fabric(1, _NONE, 1, 100),
    "g6f.2xlarge": Fabric(1, _NONE, 1, 200),
    "g6f.4xlarge": Fabric(1, _NONE, 1, 450),
    "gr6.4xlarge": Fabric(1, _NONE, 1, 600),
    "gr6.8xlarge": Fabric(1, _ONE, 2, 450),
    "gr6f.4xlarge": Fabric(1, _NONE, 1, 450),
    "g7.2xlarge": Fabric(1, _NONE, 1, 440),
    "g7.4xlarge": Fabric(1, _NONE, 1, 875),
    "g7.8xlarge": Fabric(1, _ONE, 1, 930),
    "g7.12xlarge": Fabric(1, _ONE, 1, 1900),
    "g7.24xlarge": Fabric(1, _ONE, 1, 3800),
    "g7.48xlarge": Fabric(2, range(2), 2, 3800),
    "g7e.2xlarge": Fabric(1, _NONE, 1, 1900),
    "g7e.4xlarge": Fabric(1, _NONE, 1, 1900),
    "g7e.8xlarge": Fabric(1, _ONE, 1, 1900),
    "g7e.12xlarge": Fabric(1, _ONE, 1, 3800),
    "g7e.24xlarge": Fabric(2, range(2), 2, 3800),
    "g7e.48xlarge": Fabric(4, range(4), 4, 3800),
}
"""Instance type -> its fabric; types that are missing have neither EFA nor disks, or are known from a refresh only."""


def efa_cards(machine: Machine) -> Sequence[int]:
    """Return the cards of a node that get an EFA interface; none without EFA."""
    fabric = FABRICS.get(machine.name)
    return fabric.efa if fabric else machine.efa_cards


def cards_of(machine: Machine) -> int:
    """Return the network cards of a node; 0 if they are unknown."""
    fabric = FABRICS.get(machine.name)
    return fabric.cards if fabric else 0


def efa_interfaces(machine: Machine) -> tuple[Interface, ...]:
    """Return the network interfaces of a node with EFA, the primary first; () if the type has no EFA.

    The primary interface has the node's address, and each card one EFA-only interface, so a node uses no other address
    of the subnet for EFA. Types may share a launch template with EFA only if these are equal.

    Source: docs: ec2/efa-acc-inst-types. The VPC CNI supports EFA-only interfaces from 1.18.5 (docs: eks/node-efa).
    """
    cards = efa_cards(machine)
    if not cards:
        return ()
    return (
        Interface(0, 0, "interface"),
        *(Interface(card, 1 if card == 0 else 0, "efa-only") for card in cards),
    )
