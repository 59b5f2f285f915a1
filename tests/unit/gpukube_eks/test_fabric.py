"""EFA interfaces and disks of instance types; EC2's own type data, as moto ships it, and published lists decide."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import pytest

from gpukube.gpu.machines import Machine, find_machine, machines
from gpukube.gpu.refreshed import Offer, Stock, lay_over
from gpukube_eks.facts.fabric import FABRICS, efa_cards, efa_interfaces

Row = tuple[int, int, str]


def _ec2_data() -> dict[str, dict[str, Any]]:
    spec = find_spec("moto")
    if spec is None or spec.origin is None:
        return {}
    file = Path(spec.origin).parent / "ec2" / "resources" / "instance_types.json.gz"
    found: dict[str, dict[str, Any]] = json.loads(gzip.decompress(file.read_bytes()))
    return found


EC2 = _ec2_data()
NEW = "docs: ec2/efa-acc-inst-types"
ADT = "awslabs/awsome-distributed-training 0edaf15"


def named(name: str) -> Machine:
    found = find_machine("eks", name)
    assert found is not None
    return found


@pytest.mark.skipif(not EC2, reason="moto is not installed")
@pytest.mark.parametrize("name", sorted(FABRICS.keys() - {"p6e-gb200.36xlarge"}))
def test_fabric_when_ec2_describes_the_type_then_the_same_cards_and_disks(name: str) -> None:
    fabric, network = FABRICS[name], EC2[name]["NetworkInfo"]
    cards = network["NetworkCards"]
    with_efa = [card["NetworkCardIndex"] for card in cards if "efa-only" in card["InterfaceTypes"]]
    assert (fabric.cards, list(fabric.efa)) == (len(cards), with_efa)
    assert len(with_efa) == network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0)
    disks = [(disk["Count"], disk["SizeInGB"]) for disk in EC2[name].get("InstanceStorageInfo", {}).get("Disks", [])]
    assert disks == ([(fabric.disks, fabric.disk_gb)] if fabric.disks else [])


@pytest.mark.skipif(not EC2, reason="moto is not installed")
@pytest.mark.parametrize("name", sorted(FABRICS.keys() - {"p6e-gb200.36xlarge"}))
def test_interfaces_when_built_then_no_card_has_more_than_it_takes(name: str) -> None:
    most = {
        card["NetworkCardIndex"]: card["MaximumNetworkInterfaces"] for card in EC2[name]["NetworkInfo"]["NetworkCards"]
    }
    used = [interface.card for interface in efa_interfaces(named(name))]
    assert all(used.count(card) <= most[card] for card in used)
    assert len(used) == len({(i.card, i.device) for i in efa_interfaces(named(name))})


@pytest.mark.parametrize("machine", machines("eks"), ids=lambda m: str(m.name))
def test_disks_when_summed_then_the_size_of_the_catalog(machine: Machine) -> None:
    fabric = FABRICS.get(machine.name)
    total = fabric.disks * fabric.disk_gb * 1e9 / 2**30 if fabric else 0
    assert machine.local_ssd_gib == pytest.approx(total, abs=0.05)


@dataclass(frozen=True)
class Published:
    """A list of interfaces that somebody published for a type.

    Attributes:
        types: Instance types of the list.
        source: The file or page.
        rows: (card, device, interface type) of each interface.
        layout: "new" is the one that gpukube writes; "old" has an EFA interface with an address on card 0, and the
            others at another device index: the same number of EFA interfaces on the same cards.
    """

    types: tuple[str, ...]
    source: str
    rows: tuple[Row, ...]
    layout: Literal["new", "old"] = "new"


def _only(cards: range | tuple[int, ...]) -> tuple[Row, ...]:
    return tuple((card, 0, "efa-only") for card in cards)


def _by_rule(cards: int) -> tuple[Row, ...]:
    """Return the list of eksctl and terraform-aws-eks: one EFA interface for each of MaximumNetworkCards."""
    return ((0, 0, "efa"), *((card, 1, "efa") for card in range(1, cards)))


PRIMARY: tuple[Row, ...] = ((0, 0, "interface"),)
ON_CARD_0: tuple[Row, ...] = ((0, 1, "efa-only"),)
BUILDERS = (
    "eksctl-io/eksctl 99984ad: pkg/cfn/builder/network_interfaces.go; "
    "terraform-aws-modules/terraform-aws-eks bef29c4: modules/eks-managed-node-group/main.tf"
)

PUBLISHED = (
    Published(("p5.48xlarge", "p5e.48xlarge"), f"{NEW}, P5 use case 1", (*PRIMARY, *ON_CARD_0, *_only(range(1, 32)))),
    Published(("p6-b200.48xlarge",), f"{NEW}, P6-B200 use case 1", (*PRIMARY, *ON_CARD_0, *_only(range(1, 8)))),
    Published(("p6-b300.48xlarge",), f"{NEW}, P6-B300 use case 1", (*PRIMARY, *_only(range(1, 17)))),
    Published(("p6e-gb200.36xlarge",), f"{NEW}, P6e-GB200, 4 x 400 Gbps", (*PRIMARY, *_only((1, 5, 9, 13)))),
    Published(
        ("p5.48xlarge", "p5e.48xlarge"),
        f"{ADT}: architectures/aws-pcs/assets/add-cng-p5.yaml, Use32Interfaces",
        ((0, 0, "efa"), *((card, 1, "efa") for card in range(1, 32))),
        "old",
    ),
    Published(
        ("p5en.48xlarge",),
        f"{ADT}: architectures/aws-pcs/assets/add-cng-p5.yaml, without Use32Interfaces",
        ((0, 0, "efa"), *((card, 1, "efa") for card in range(1, 16))),
        "old",
    ),
    Published(
        ("p5.48xlarge",),
        f"{ADT}: 1.architectures/3.aws-batch/0.aws-batch-distributed-training-p5.yaml",
        tuple((card, 0, "efa") for card in range(32)),
        "old",
    ),
    Published(
        ("p6-b200.48xlarge",),
        f"{ADT}: 1.architectures/3.aws-batch/aws-batch-distributed-training-p6.yaml",
        tuple((card, 0, "efa") for card in range(8)),
        "old",
    ),
    Published(
        ("p4d.24xlarge", "p4de.24xlarge"),
        f"{ADT}: 1.architectures/3.aws-batch/0.aws-batch-distributed-training.yaml",
        tuple((card, card, "efa") for card in range(4)),
        "old",
    ),
    Published(("p4d.24xlarge", "p4de.24xlarge"), BUILDERS, _by_rule(4), "old"),
    Published(("p5.48xlarge", "p5e.48xlarge"), BUILDERS, _by_rule(32), "old"),
    Published(("p5en.48xlarge",), BUILDERS, _by_rule(16), "old"),
    Published(("p6-b200.48xlarge",), BUILDERS, _by_rule(8), "old"),
    Published(("g6e.24xlarge", "g7.48xlarge", "g7e.24xlarge"), BUILDERS, _by_rule(2), "old"),
    Published(("g6e.48xlarge", "g7e.48xlarge"), BUILDERS, _by_rule(4), "old"),
    Published(
        (
            *("p3dn.24xlarge", "p5.4xlarge"),
            *("g4dn.8xlarge", "g4dn.12xlarge", "g4dn.16xlarge", "g4dn.metal"),
            *("g5.8xlarge", "g5.12xlarge", "g5.16xlarge", "g5.24xlarge", "g5.48xlarge"),
            *("g6.8xlarge", "g6.12xlarge", "g6.16xlarge", "g6.24xlarge", "g6.48xlarge", "gr6.8xlarge"),
            *("g6e.8xlarge", "g6e.12xlarge", "g6e.16xlarge"),
            *("g7.8xlarge", "g7.12xlarge", "g7.24xlarge", "g7e.8xlarge", "g7e.12xlarge"),
        ),
        BUILDERS,
        _by_rule(1),
        "old",
    ),
)
"""The two builders have no lists: they count MaximumNetworkCards of EC2. Only they publish g*, p3dn, and p5.4xlarge."""


@pytest.mark.parametrize(
    ("name", "published"),
    [(name, published) for published in PUBLISHED for name in published.types],
    ids=lambda value: value if isinstance(value, str) else value.source.partition(":")[0],
)
def test_interfaces_when_somebody_published_a_list_then_the_same(name: str, published: Published) -> None:
    ours = tuple(tuple(interface) for interface in efa_interfaces(named(name)))
    if published.layout == "new":
        assert ours == published.rows
    else:
        assert [card for card, _, kind in ours if kind == "efa-only"] == [card for card, _, _ in published.rows]


def test_interfaces_when_a_type_has_efa_then_somebody_published_a_list() -> None:
    published = {name for row in PUBLISHED for name in row.types}
    assert {machine.name for machine in machines("eks") if efa_cards(machine)} == published


def test_builders_when_card_0_has_no_efa_then_their_rule_fails_and_ours_does_not() -> None:
    """eksctl-io/eksctl#8685: counting cards puts an EFA interface on card 0 of p6-b300, which takes none."""
    by_rule = [card for card, _, _ in _by_rule(FABRICS["p6-b300.48xlarge"].cards)]
    assert by_rule == [0, *efa_cards(named("p6-b300.48xlarge"))]


@pytest.mark.parametrize("cards", [(0, 1, 2), (1, 2), ()])
def test_interfaces_when_only_a_refresh_knows_the_type_then_those_of_its_cards(cards: tuple[int, ...]) -> None:
    stock = Stock("eks", "us-east-1", "2026-12-24T08:00:00Z", (Offer("p9.48xlarge", "H200", 8, efa_cards=cards),))
    machine = next(entry.machine for entry in lay_over((stock,)) if entry.machine.name == "p9.48xlarge")
    assert [interface.card for interface in efa_interfaces(machine) if interface.kind == "efa-only"] == list(cards)


def test_interfaces_when_there_is_no_efa_then_none() -> None:
    assert efa_interfaces(named("g5.xlarge")) == ()
