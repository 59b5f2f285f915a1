"""Which role and which subnets a pool gets."""

from __future__ import annotations

import pytest

from gpukube.core.values import Capacity, Reservation
from gpukube.errors import ReservationFull, SpecError
from gpukube_eks.pool.placement import (
    Subnet,
    check_version,
    choose_role,
    choose_subnets,
    documented_roles,
    reserved_zone,
)
from tests.unit.gpukube_eks.samples import eks_target

P4D = eks_target("p4d.24xlarge")
KNOWN = {
    subnet.id: subnet
    for subnet in (
        Subnet("pri-a", "us-east-1a", public=False),
        Subnet("pri-b", "us-east-1b", public=False),
        Subnet("pri-c", "us-east-1c", public=False),
        Subnet("pub-a", "us-east-1a", public=True),
        Subnet("pub-b", "us-east-1b", public=True),
    )
}
AB = ("us-east-1a", "us-east-1b")
LISTED = tuple(KNOWN)


@pytest.mark.parametrize(
    ("used", "documented", "chosen"),
    [
        (["nodes"], [], "nodes"),
        (["nodes", "nodes", ""], ["other"], "nodes"),
        (["nodes", "auto", "cluster"], [], "nodes"),
        ([], ["nodes"], "nodes"),
        (["cluster"], ["nodes"], "nodes"),
    ],
)
def test_role_when_there_is_one_is_chosen(used: list[str], documented: list[str], chosen: str) -> None:
    assert choose_role(P4D, used, documented, ("cluster", "auto")) == chosen


def test_role_when_there_are_several_names_them() -> None:
    with pytest.raises(SpecError, match=r"several roles are possible for the nodes of .*: a, b") as caught:
        choose_role(P4D, ["b", "a"], [], ())

    assert caught.value.diagnostics[0].fix == "write one of them, such as eks: {nodeRole: a}"


def test_role_when_there_is_none_says_what_it_needs() -> None:
    with pytest.raises(SpecError, match="no role found for the nodes of train-eks/a100mig") as caught:
        choose_role(P4D, [], [], ())

    assert "AmazonEKSWorkerNodePolicy" in caught.value.diagnostics[0].fix


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("train-eksNodeRole", True),
        ("AmazonEKSNodeRole", True),
        ("eksctl-train-nodegroup-ng-NodeInstanceRole-1ABC", True),
        ("train-eksClusterRole", False),
    ],
)
def test_role_when_named_as_documented_is_a_candidate(name: str, taken: bool) -> None:  # noqa: FBT001 - a column
    assert documented_roles([{"RoleName": name, "Arn": name}]) == ((name,) if taken else ())


GROUPS: dict[str, tuple[list[tuple[str, ...]], tuple[str, ...], tuple[str, ...]]] = {
    "those of the one other group": ([("pri-a", "pri-b", "pri-c")], (), ("pri-a", "pri-b")),
    "the largest set, where one holds all others": ([("pri-a",), ("pri-b", "pri-a")], (), ("pri-a", "pri-b")),
    "the cluster's private ones without other groups": ([], (), ("pri-a", "pri-b")),
    "the cluster's where the groups are in other zones": ([("pri-c",)], (), ("pri-a", "pri-b")),
    "those of the zones asked for": ([("pri-a",), ("pri-b",)], ("us-east-1b",), ("pri-b",)),
    "the cluster's in zones without a group": ([("pri-a",)], AB, ("pri-a", "pri-b")),
}


@pytest.mark.parametrize("name", GROUPS)
def test_subnets_when_chosen_are(name: str) -> None:
    groups, zones, chosen = GROUPS[name]

    assert choose_subnets(eks_target(zones=zones), groups, LISTED, KNOWN, AB) == chosen


def test_subnets_when_the_cluster_has_public_ones_only_are_these() -> None:
    assert choose_subnets(P4D, [], ("pub-a", "pub-b"), KNOWN, AB) == ("pub-a", "pub-b")


def test_subnets_when_groups_disagree_are_asked_for() -> None:
    with pytest.raises(SpecError, match=r"several sets of subnets are possible for .*: pri-a; pri-b") as caught:
        choose_subnets(P4D, [("pri-a",), ("pri-b",)], LISTED, KNOWN, AB)

    assert "zones" in caught.value.diagnostics[0].fix


@pytest.mark.parametrize(
    ("zones", "listed", "offered", "message"),
    [
        ((), ("pri-c",), AB, "the cluster has no subnet in a zone that offers p4d.24xlarge"),
        ((), LISTED, (), "zones that offer it: none"),
        (("us-east-1c",), LISTED, AB, "p4d.24xlarge is not offered in us-east-1c"),
        (("us-east-1b",), ("pri-a",), AB, "the cluster has no subnet in us-east-1b; it has subnets in us-east-1a"),
    ],
)
def test_subnets_when_none_is_left_say_why(
    zones: tuple[str, ...], listed: tuple[str, ...], offered: tuple[str, ...], message: str
) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        choose_subnets(eks_target(zones=zones), [], listed, KNOWN, offered)

    assert caught.value.diagnostics[0].fix


@pytest.mark.parametrize(("wanted", "group"), [("", ""), ("1.34", ""), ("1.34", "1.33"), ("1.33", "1.33")])
def test_version_when_it_is_the_clusters_or_the_groups_own_is_taken(wanted: str, group: str) -> None:
    check_version(eks_target(kubernetes_version=wanted), "1.34", group)


@pytest.mark.parametrize(("wanted", "group"), [("1.33", ""), ("1.35", ""), ("1.32", "1.33")])
def test_version_when_it_is_another_one_is_refused(wanted: str, group: str) -> None:
    with pytest.raises(SpecError, match=f"kubernetesVersion is {wanted}, but the cluster has 1.34") as caught:
        check_version(eks_target(kubernetes_version=wanted), "1.34", group)

    assert caught.value.diagnostics[0].fix


BLOCK = Capacity("reserved", reservation=Reservation("capacityBlock", "cr-1"))
ODCR = Capacity("reserved", reservation=Reservation("capacityReservation", "cr-1"))
LIVE = {
    "CapacityReservationId": "cr-1",
    "AvailabilityZone": "us-east-1b",
    "InstanceType": "p4d.24xlarge",
    "State": "active",
    "ReservationType": "default",
}


@pytest.mark.parametrize("state", ["active", "scheduled", "pending"])
def test_zone_when_the_reservation_fits_is_its_own(state: str) -> None:
    block = {**LIVE, "ReservationType": "capacity-block", "State": state}

    assert reserved_zone(eks_target(capacity=ODCR), {**LIVE, "State": state}) == "us-east-1b"
    assert reserved_zone(eks_target(capacity=BLOCK, zones=("us-east-1b",)), block) == "us-east-1b"


@pytest.mark.parametrize(
    ("capacity", "live", "zones", "native", "said"),
    [
        (ODCR, {"InstanceType": "p5.48xlarge"}, (), (), "is for p5.48xlarge"),
        (BLOCK, {}, (), (), "is not a capacityBlock"),
        (ODCR, {"ReservationType": "capacity-block"}, (), (), "is not a capacityReservation"),
        (ODCR, {}, ("us-east-1a",), (), "is in us-east-1b, but .* in us-east-1a"),
        (ODCR, {}, (), ("us-east-1a", "us-east-1b"), "is in us-east-1b, but .* in us-east-1a, us-east-1b"),
    ],
    ids=["type", "no block", "a block", "zone", "subnets"],
)
def test_zone_when_the_reservation_does_not_fit_says_why(
    capacity: Capacity, live: dict[str, str], zones: tuple[str, ...], native: tuple[str, ...], said: str
) -> None:
    with pytest.raises(SpecError, match=said) as caught:
        reserved_zone(eks_target(capacity=capacity, zones=zones), {**LIVE, **live}, native)

    assert caught.value.diagnostics[0].fix


@pytest.mark.parametrize("state", ["expired", "cancelled", "failed", "payment-failed"])
def test_zone_when_the_reservation_is_over_says_so(state: str) -> None:
    with pytest.raises(ReservationFull, match=f"is {state}"):
        reserved_zone(eks_target(capacity=ODCR), {**LIVE, "State": state})
