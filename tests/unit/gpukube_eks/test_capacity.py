"""Which machines EC2 says are available: parsed, classed, and asked with as few calls as possible."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from gpukube.core.capacity_sources import CapacityQuery, SourceLine
from gpukube.core.cloud_catalog import Account, Inquiry
from gpukube.core.values import Settings
from gpukube.gpu.machines import require_machine
from gpukube_eks.facts.capacity import block_hours, can_be_block, read_offering, read_reservation, spot_way
from gpukube_eks.live.capacity import read_capacity

if TYPE_CHECKING:
    from gpukube.core.capacity_sources import Offers, Way

P5 = require_machine("eks", "p5.48xlarge")
SMALL = tuple(require_machine("eks", name) for name in ("g5.xlarge", "g5.2xlarge", "g5.4xlarge"))
QUERY = CapacityQuery(Inquiry("eks", "us-east-1", Account(), Settings()), (P5,), 2)
RESERVATION: dict[str, Any] = {
    "CapacityReservationId": "cr-1",
    "InstanceType": "p5.48xlarge",
    "AvailabilityZone": "us-east-1a",
    "State": "active",
    "TotalInstanceCount": 4,
    "AvailableInstanceCount": 2,
    "Tenancy": "default",
    "InstancePlatform": "Linux/UNIX",
    "InstanceMatchCriteria": "targeted",
    "ReservationType": "default",
    "StartDate": datetime(2026, 11, 1, 11, 30, tzinfo=UTC),
}
OFFERING: dict[str, Any] = {
    "CapacityBlockOfferingId": "cbo-1",
    "InstanceType": "p5.48xlarge",
    "AvailabilityZone": "us-east-1b",
    "InstanceCount": 2,
    "StartDate": datetime(2026, 12, 1, 11, 30, tzinfo=UTC),
    "EndDate": datetime(2026, 12, 8, 11, 30, tzinfo=UTC),
    "CapacityBlockDurationHours": 168,
    "UpfrontFee": "10500.0",
    "CurrencyCode": "USD",
}


@dataclass
class FakeEc2:
    """Answers each operation with its pages; an exception is raised."""

    answers: dict[str, Any]
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any operation
        def call(**arguments: Any) -> Any:  # noqa: ANN401 - as above
            self.asked.append((name, arguments))
            answer = self.answers.get(name, {})
            if isinstance(answer, Exception):
                raise answer
            if isinstance(answer, list):
                number = int(arguments.get("NextToken", 0))
                return answer[number] | ({"NextToken": str(number + 1)} if number + 1 < len(answer) else {})
            return answer

        return call

    def of(self, name: str) -> list[dict[str, Any]]:
        return [arguments for operation, arguments in self.asked if operation == name]


def refused(code: str, operation: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "no"}}, operation)


def offered(*names: str, zones: tuple[str, ...] = ("us-east-1a", "us-east-1b")) -> dict[str, Any]:
    return {
        "InstanceTypeOfferings": [
            {"InstanceType": name, "LocationType": "availability-zone", "Location": zone}
            for name in names
            for zone in zones
        ]
    }


def answer(query: CapacityQuery = QUERY, **answers: Any) -> tuple[Offers, FakeEc2]:  # noqa: ANN401 - answers of any operation
    given = {"describe_instance_type_offerings": offered(*(machine.name for machine in query.machines)), **answers}
    ec2 = FakeEc2(given)
    return read_capacity(ec2, query), ec2


def of_kind(offers: Offers, kind: str) -> list[Way]:
    return [way for way in offers.ways if way.kind == kind]


def line(offers: Offers, source: str) -> SourceLine:
    (found,) = [one for one in offers.sources if one.source.startswith(f"EC2 {source}")]
    return found


@pytest.mark.parametrize(
    ("changed", "known", "words"),
    [
        ({}, "free", "2 of 4 free"),
        ({"AvailableInstanceCount": 1}, "none", "1 of 4 free"),
        ({"State": "scheduled"}, "not told", "scheduled"),
    ],
)
def test_reservation_when_read_then_free_only_if_active_and_large_enough(
    changed: dict[str, Any], known: str, words: str
) -> None:
    way = read_reservation(RESERVATION | changed, 2)
    assert way is not None
    assert (way.kind, way.known, way.words, way.usd, way.form) == (
        "reservation", known, words, 0.0, "capacityReservation",
    )  # fmt: skip
    assert (way.free, way.start) == ((0, "2026-11-01T11:30:00Z") if known == "not told" else (way.free, ""))


@pytest.mark.parametrize("changed", [{"Tenancy": "dedicated"}, {"InstancePlatform": "Windows"}])
def test_reservation_when_nodes_cannot_use_it_then_no_way(changed: dict[str, Any]) -> None:
    assert read_reservation(RESERVATION | changed, 2) is None


@pytest.mark.parametrize(
    ("changed", "note"),
    [
        ({"InstanceMatchCriteria": "open"}, "open: any matching instance of the account may take it"),
        ({"Interruptible": True}, "interruptible, with 2 minutes' notice"),
        ({"PlacementGroupArn": "arn:aws:ec2:us-east-1:1:placement-group/near"}, "only in the placement group near"),
        ({"ReservationType": "capacity-block"}, "AWS ends its instances from 30 minutes before its end"),
    ],
)
def test_reservation_when_it_has_a_catch_then_said(changed: dict[str, Any], note: str) -> None:
    way = read_reservation(RESERVATION | changed, 2)
    assert way is not None
    assert way.note == note


def test_block_when_purchased_then_a_block_that_is_free_and_ends() -> None:
    item = RESERVATION | {"ReservationType": "capacity-block", "EndDate": datetime(2026, 12, 8, 11, 30, tzinfo=UTC)}
    way = read_reservation(item, 2)
    assert way is not None
    assert (way.kind, way.known, way.form, way.end) == ("block", "free", "capacityBlock", "2026-12-08T11:30:00Z")


def test_offering_when_read_then_price_of_a_node_hour_and_the_command_that_buys_it() -> None:
    way = read_offering(OFFERING, "us-east-1", 168)
    assert (way.known, way.words) == ("offered", "2 for 168 hours, 10,500.00 USD upfront")
    assert way.usd == pytest.approx(10500 / 168 / 2)
    assert (way.start, way.end) == ("2026-12-01T11:30:00Z", "2026-12-08T11:30:00Z")
    assert way.buy == (
        "aws ec2 purchase-capacity-block --region us-east-1 --capacity-block-offering-id cbo-1 "
        "--instance-platform Linux/UNIX"
    )


@pytest.mark.parametrize("changed", [{"CurrencyCode": "EUR"}, {"UpfrontFee": ""}, {"CapacityBlockDurationHours": 0}])
def test_offering_when_its_price_is_not_one_of_dollars_per_hour_then_unknown(changed: dict[str, Any]) -> None:
    assert read_offering(OFFERING | changed, "us-east-1", 168).usd is None


def test_offering_when_in_parts_then_each_is_a_reservation() -> None:
    way = read_offering(OFFERING | {"CapacityBlockOfferingSegments": [{}, {}]}, "us-east-1", 168)
    assert way.note == "in 2 parts: each is a reservation of its own"


def test_offering_when_it_starts_soon_then_its_minutes_count_and_it_is_shorter() -> None:
    soon = {"CapacityBlockDurationHours": 152, "CapacityBlockDurationMinutes": 30, "UpfrontFee": "14640"}
    way = read_offering(OFFERING | soon, "us-east-1", 168)
    assert (way.usd, way.words) == (48, "2 for 152.5 hours, 14,640.00 USD upfront")
    assert way.note == "shorter than the 168 hours requested"


@pytest.mark.parametrize(
    ("days", "hours"), [(0.1, 24), (7, 7 * 24), (14, 14 * 24), (15, 21 * 24), (182, 182 * 24), (183, None)]
)
def test_block_when_a_duration_is_not_sold_then_the_next_longer_one(days: float, hours: int | None) -> None:
    assert block_hours(round(days * 86400)) == hours


def test_block_when_the_family_is_not_sold_so_then_not() -> None:
    assert [can_be_block(name) for name in ("p5.48xlarge", "p6-b200.48xlarge", "g5.xlarge")] == [True, True, False]


@pytest.mark.parametrize(
    ("score", "known"), [(10, "likely"), (7, "likely"), (6, "possible"), (4, "possible"), (3, "unlikely")]
)
def test_spot_when_scored_then_a_class_beside_aws_own_words(score: int, known: str) -> None:
    way = spot_way("g5.xlarge", "us-east-1a", 0.4, score, 3)
    assert (way.known, way.words, way.why) == (known, f"{score}/10 (3 types)", "")


def test_capacity_when_all_answer_then_each_kind_has_its_ways() -> None:
    offers, ec2 = answer(
        replace(QUERY, seconds=7 * 86400),
        describe_capacity_reservations=[
            {"CapacityReservations": [RESERVATION]},
            {"CapacityReservations": [RESERVATION | {"CapacityReservationId": "cr-2"}]},
        ],
        describe_capacity_block_offerings={"CapacityBlockOfferings": [OFFERING]},
        describe_spot_price_history={
            "SpotPriceHistory": [
                {"InstanceType": "p5.48xlarge", "AvailabilityZone": "us-east-1a", "SpotPrice": "30.5", "Timestamp": "1"}
            ]
        },
    )
    assert [way.id for way in of_kind(offers, "reservation")] == ["cr-1", "cr-2"]
    assert [way.id for way in of_kind(offers, "block")] == ["cbo-1"]
    assert [(way.zone, way.usd, way.known) for way in of_kind(offers, "spot")] == [
        ("us-east-1a", 30.5, "not told"),
        ("us-east-1b", None, "not told"),
    ]
    assert [(way.zone, way.known) for way in of_kind(offers, "on-demand")] == [
        ("us-east-1a", "not told"),
        ("us-east-1b", "not told"),
    ]
    assert ec2.of("describe_capacity_block_offerings") == [
        {"InstanceType": "p5.48xlarge", "InstanceCount": 2, "CapacityDurationHours": 168}
    ]
    assert ec2.of("get_spot_placement_scores") == []
    assert line(offers, "GetSpotPlacementScores").state == "not asked"
    assert line(offers, "GetCapacityManagerSupportabilityScores").state == "not asked"


def test_capacity_when_no_zone_sells_it_then_nothing_more_is_asked() -> None:
    offers, ec2 = answer(describe_instance_type_offerings={"InstanceTypeOfferings": []})
    assert (offers.ways, offers.notes) == ((), ("p5.48xlarge is not sold in us-east-1",))
    assert [name for name, _ in ec2.asked] == ["describe_instance_type_offerings"]


def test_capacity_when_zones_are_named_then_no_other_zone_is_shown() -> None:
    offers, _ = answer(
        replace(QUERY, zones=("us-east-1b",), seconds=86400),
        describe_capacity_reservations={"CapacityReservations": [RESERVATION]},
        describe_capacity_block_offerings={"CapacityBlockOfferings": [OFFERING | {"AvailabilityZone": "us-east-1a"}]},
    )
    assert {(way.kind, way.zone) for way in offers.ways} == {
        ("block", ""), ("spot", "us-east-1b"), ("on-demand", "us-east-1b"),
    }  # fmt: skip
    assert [way.known for way in of_kind(offers, "block")] == ["none"]


def test_capacity_when_a_pool_takes_three_types_then_scored_together_and_named_by_zone() -> None:
    offers, ec2 = answer(
        replace(QUERY, machines=SMALL, mixed=True),
        describe_availability_zones={
            "AvailabilityZones": [
                {"ZoneId": "use1-az4", "ZoneName": "us-east-1a"},
                {"ZoneId": "use1-az6", "ZoneName": "us-east-1b"},
            ]
        },
        get_spot_placement_scores={"SpotPlacementScores": [{"AvailabilityZoneId": "use1-az6", "Score": 9}]},
    )
    assert ec2.of("get_spot_placement_scores") == [
        {
            "InstanceTypes": [machine.name for machine in SMALL],
            "TargetCapacity": 2,
            "TargetCapacityUnitType": "units",
            "SingleAvailabilityZone": True,
            "RegionNames": ["us-east-1"],
        }
    ]
    assert {(way.zone, way.known, way.words) for way in of_kind(offers, "spot")} == {
        ("us-east-1a", "not told", ""),
        ("us-east-1b", "likely", "9/10 (3 types)"),
    }
    assert of_kind(offers, "block") == []


@pytest.mark.parametrize("machines", [SMALL[:2], SMALL])
def test_capacity_when_fewer_than_three_types_or_no_choice_of_them_then_no_score(machines: Any) -> None:  # noqa: ANN401
    offers, ec2 = answer(replace(QUERY, machines=machines, mixed=len(machines) < 3))
    assert ec2.of("get_spot_placement_scores") == []
    assert {way.known for way in of_kind(offers, "spot")} == {"not told"}


def test_capacity_when_too_many_configurations_were_scored_then_spot_is_not_told() -> None:
    code = "MaxConfigLimitExceeded"
    offers, _ = answer(
        replace(QUERY, machines=SMALL, mixed=True), get_spot_placement_scores=refused(code, "GetSpotPlacementScores")
    )
    assert line(offers, "GetSpotPlacementScores").state == "failed"
    assert {(way.known, way.why) for way in of_kind(offers, "spot")} == {("not told", "scores could not be read")}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, "a Capacity Block is bought for a time: add --for 7d"),
        ({"seconds": 200 * 86400}, "a Capacity Block is for at most 182 days"),
        ({"seconds": 86400, "nodes": 65}, "a Capacity Block has at most 64 instances"),
    ],
)
def test_capacity_when_no_block_can_be_asked_for_then_said_why(changes: dict[str, Any], why: str) -> None:
    offers, ec2 = answer(replace(QUERY, **changes))
    assert ec2.of("describe_capacity_block_offerings") == []
    assert [(way.known, way.why) for way in of_kind(offers, "block")] == [("not asked", why)]
    assert line(offers, "DescribeCapacityBlockOfferings") == SourceLine(
        "EC2 DescribeCapacityBlockOfferings", "not asked", text=why
    )


def test_capacity_when_everything_is_refused_then_lines_and_places_that_are_not_told() -> None:
    denied = refused("UnauthorizedOperation", "Any")
    offers, _ = answer(
        replace(QUERY, seconds=86400),
        describe_instance_type_offerings=denied,
        describe_capacity_reservations=denied,
        describe_capacity_block_offerings=denied,
        describe_spot_price_history=denied,
    )
    assert {(way.kind, way.machine, way.zone, way.known) for way in offers.ways} == {
        ("reservation", "p5.48xlarge", "", "not told"),
        ("block", "p5.48xlarge", "", "not told"),
        ("spot", "p5.48xlarge", "", "not told"),
        ("on-demand", "p5.48xlarge", "", "not told"),
    }
    assert [one.state for one in offers.sources].count("failed") == 4
    assert all(one.code for one in offers.sources if one.state == "failed")


def test_read_when_a_type_is_part_of_ultraservers_then_neither_spot_nor_blocks_of_instances_are_read() -> None:
    machine = require_machine("eks", "p6e-gb200.36xlarge")
    offers, ec2 = answer(replace(QUERY, machines=(machine,), seconds=7 * 86_400), describe_capacity_reservations={})
    assert [(way.kind, way.known) for way in offers.ways] == [("block", "not asked"), ("on-demand", "none")]
    assert "--ultraserver-type" in offers.ways[0].why
    assert {name for name, _ in ec2.asked} == {"describe_instance_type_offerings", "describe_capacity_reservations"}
