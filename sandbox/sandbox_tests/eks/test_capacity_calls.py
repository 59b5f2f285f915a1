"""What EC2 tells about capacity, through boto3: Spot scores and prices, Capacity Blocks, reservations, zones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from botocore.model import ListShape, StructureShape

from gpukube_sandbox import daemon
from gpukube_sandbox.eks.capacity import BLOCKS, PURCHASE, SCORES, SUPPORTABILITY
from sandbox_tests.eks.aws import ACCOUNT, REGION, Aws
from sandbox_tests.eks.test_model import EC2
from sandbox_tests.waiting import wait_for

if TYPE_CHECKING:
    from gpukube_sandbox.eks.wire.query import Member

MIXED = ["g4dn.xlarge", "g5.xlarge", "g6.xlarge"]
H100 = "p5.48xlarge"


@pytest.fixture
def still(aws: Aws) -> Aws:
    """A cluster whose time hardly goes on: no day ends within a test."""
    daemon.configure(aws.info, speed=0.001)
    return aws


def code_of(error: ClientError) -> tuple[str, int]:
    response: Any = error.response
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]


def scores(aws: Aws, types: list[str] = MIXED, count: int = 2, **more: object) -> dict[str, int]:
    """Scores by zone id, or by region."""
    given: dict[str, Any] = {"RegionNames": [REGION], "SingleAvailabilityZone": True, **more}
    found = aws.client("ec2").get_spot_placement_scores(InstanceTypes=types, TargetCapacity=count, **given)
    return {one.get("AvailabilityZoneId", one["Region"]): one["Score"] for one in found["SpotPlacementScores"]}


def ids(aws: Aws) -> dict[str, str]:
    """Letter of a zone -> its id."""
    zones = aws.client("ec2").describe_availability_zones()["AvailabilityZones"]
    return {zone["ZoneName"][-1]: zone["ZoneId"] for zone in zones}


@pytest.mark.parametrize(
    ("operation", "table", "left_out"),
    [
        ("GetSpotPlacementScores", SCORES, {"InstanceRequirementsWithMetadata"}),
        ("DescribeCapacityBlockOfferings", BLOCKS, {"UltraserverType", "UltraserverCount"}),
        ("PurchaseCapacityBlock", PURCHASE, set()),
        ("GetCapacityManagerSupportabilityScores", SUPPORTABILITY, {"InstanceRequirementsWithMetadata"}),
    ],
)
def test_table_when_compared_with_the_model_then_every_parameter_is_there_with_its_name(
    operation: str, table: tuple[Member, ...], left_out: set[str]
) -> None:
    shape = EC2.operation_model(operation).input_shape
    assert isinstance(shape, StructureShape)
    assert {member.name for member in table} == set(shape.members) - left_out
    for member in table:
        there = shape.members[member.name]
        assert member.request_name == str(there.serialization.get("name", member.name)), member.name
        assert (member.kind in {"list", "texts"}) is isinstance(there, ListShape), member.name


def test_zones_when_asked_then_their_ids_do_not_follow_their_names(aws: Aws) -> None:
    assert ids(aws) == {"a": "use1-az2", "b": "use1-az3", "c": "use1-az1"}
    ec2 = aws.client("ec2")
    (zone,) = ec2.describe_availability_zones(ZoneIds=["use1-az2"])["AvailabilityZones"]
    assert zone["ZoneName"] == "us-east-1a"
    with pytest.raises(ClientError, match="use1-az9"):
        ec2.describe_availability_zones(ZoneIds=["use1-az9"])
    assert {subnet["AvailabilityZoneId"] for subnet in ec2.describe_subnets()["Subnets"]} == set(ids(aws).values())
    only = [{"Name": "instance-type", "Values": [H100]}]
    (found,) = ec2.describe_instance_type_offerings(LocationType="availability-zone-id", Filters=only)[
        "InstanceTypeOfferings"
    ]
    assert found["Location"] == "use1-az2"


def test_scores_when_three_types_are_named_then_they_follow_the_spot_stock_of_each_zone(aws: Aws) -> None:
    for zone, free in (("a", 0), ("b", 1), ("c", 2)):
        daemon.set_stock(aws.info, "eks", 0, zone=f"{REGION}{zone}", kind="spot")
        daemon.set_stock(aws.info, "eks", free, zone=f"{REGION}{zone}", kind="spot", type="g6.xlarge")
    names = ids(aws)
    assert scores(aws) == {names["a"]: 1, names["b"]: 4, names["c"]: 7}
    assert scores(aws, SingleAvailabilityZone=False) == {REGION: 7}
    daemon.clear_stock(aws.info)
    assert set(scores(aws).values()) == {9}


@pytest.mark.parametrize("types", [["g6.xlarge"], ["g6.xlarge", "g5.xlarge"], ["g6.xlarge"] * 3])
def test_scores_when_fewer_than_three_types_are_named_then_always_low(aws: Aws, types: list[str]) -> None:
    assert set(scores(aws, types).values()) == {3}
    daemon.set_stock(aws.info, "eks", 0, kind="spot")
    assert set(scores(aws, types).values()) == {1}


def test_scores_when_no_region_is_named_then_the_ten_best_of_all(aws: Aws) -> None:
    daemon.set_stock(aws.info, "eks", 0, zone="ap-south-1a", kind="spot")
    found = scores(aws, RegionNames=[])
    assert (len(found), set(found.values())) == (10, {9})


@pytest.mark.parametrize(
    ("unit", "target", "score"), [("vcpu", 8, 7), ("vcpu", 9, 4), ("memory-mib", 32768, 7), ("memory-mib", 32769, 4)]
)
def test_scores_when_the_unit_is_no_machine_then_the_size_of_the_types_counts(
    aws: Aws, unit: str, target: int, score: int
) -> None:
    daemon.set_stock(aws.info, "eks", 0, kind="spot")
    daemon.set_stock(aws.info, "eks", 2, kind="spot", type="g6.xlarge")  # of 4 vCPUs and 16 GiB
    assert set(scores(aws, count=target, TargetCapacityUnitType=unit).values()) == {score}


def test_scores_when_an_eleventh_configuration_is_new_then_refused_for_a_day_and_old_ones_answer(still: Aws) -> None:
    for count in range(1, 11):
        scores(still, count=count)
    with pytest.raises(ClientError) as caught:
        scores(still, count=11)
    assert code_of(caught.value) == ("MaxConfigLimitExceeded", 400)
    assert scores(still, list(reversed(MIXED)), count=10)  # the same configuration
    day = clock(still) + timedelta(days=1)
    daemon.configure(still.info, speed=1_000_000.0)
    wait_for(lambda: clock(still) > day)
    assert scores(still, count=11)


def clock(aws: Aws) -> datetime:
    """The sandbox's time."""
    return datetime.fromisoformat(str(daemon.status(aws.info)["clock"]))


WRONG_SCORES: dict[str, tuple[dict[str, Any], str]] = {
    "no types": ({"InstanceTypes": []}, "MissingParameter"),
    "a type that there is not": ({"InstanceTypes": ["zz.big"]}, "InvalidInstanceType"),
    "a region that there is not": ({"RegionNames": ["moon-1"]}, "InvalidParameterValue"),
    "eleven regions": ({"RegionNames": [REGION] * 11}, "InvalidParameterValue"),
    "a unit that there is not": ({"TargetCapacityUnitType": "gpus"}, "InvalidParameterValue"),
    "a large page": ({"MaxResults": 1001}, "InvalidParameterValue"),
    "requirements": (
        {
            "InstanceTypes": [],
            "InstanceRequirementsWithMetadata": {
                "InstanceRequirements": {"VCpuCount": {"Min": 1}, "MemoryMiB": {"Min": 1}}
            },
        },
        "InvalidAction",
    ),
}


@pytest.mark.parametrize("case", WRONG_SCORES)
def test_scores_when_the_request_is_wrong_then_refused_and_not_counted(still: Aws, case: str) -> None:
    given, code = WRONG_SCORES[case]
    client = still.client("ec2")
    for _ in range(11):
        with pytest.raises(ClientError) as caught:
            client.get_spot_placement_scores(**{"InstanceTypes": MIXED, "TargetCapacity": 1, **given})
        assert code_of(caught.value)[0] == code


def test_spot_prices_when_asked_then_both_names_of_the_zone_and_filters(aws: Aws) -> None:
    ec2, names = aws.client("ec2"), ids(aws)
    found = ec2.describe_spot_price_history(InstanceTypes=["g6.xlarge"], StartTime=datetime.now(UTC))[
        "SpotPriceHistory"
    ]
    zones = {(one["AvailabilityZone"], one["AvailabilityZoneId"]) for one in found}
    assert zones == {(f"{REGION}{letter}", name) for letter, name in names.items()}
    for only in (
        {"AvailabilityZone": f"{REGION}b"},
        {"AvailabilityZoneId": names["b"]},
        {"Filters": [{"Name": "availability-zone-id", "Values": [names["b"]]}]},
    ):
        (one,) = ec2.describe_spot_price_history(InstanceTypes=["g6.xlarge"], **only)["SpotPriceHistory"]
        assert one["AvailabilityZone"] == f"{REGION}b"


def offerings(aws: Aws, **more: object) -> list[dict[str, Any]]:
    given = {"InstanceType": H100, "InstanceCount": 2, "CapacityDurationHours": 48, **more}
    found: list[dict[str, Any]] = aws.client("ec2").describe_capacity_block_offerings(**given)["CapacityBlockOfferings"]
    return found


def test_blocks_when_asked_for_then_up_to_six_that_end_at_half_past_eleven(still: Aws) -> None:
    found = offerings(still)
    assert len(found) == 6
    assert len({one["CapacityBlockOfferingId"] for one in found}) == 6
    for one in found:
        length = one["EndDate"] - one["StartDate"]
        told = timedelta(hours=one["CapacityBlockDurationHours"], minutes=one["CapacityBlockDurationMinutes"])
        assert (one["EndDate"].hour, one["EndDate"].minute) == (11, 30)
        assert told == length - timedelta(seconds=length.seconds % 60)
        assert (one["InstanceType"], one["InstanceCount"], one["AvailabilityZone"]) == (H100, 2, f"{REGION}a")
        assert isinstance(one["UpfrontFee"], str)
        assert (float(one["UpfrontFee"]) > 0, one["CurrencyCode"], one["Tenancy"]) == (True, "USD", "default")
    starts = [one["StartDate"] for one in found]
    assert starts == sorted(starts)
    assert timedelta(days=1) <= found[0]["EndDate"] - found[0]["StartDate"] <= timedelta(days=2)
    assert found[1]["EndDate"] - found[1]["StartDate"] == timedelta(days=2)


def test_blocks_when_a_time_is_asked_for_then_only_those_within_it(still: Aws) -> None:
    first = offerings(still)[2]["StartDate"]
    later = offerings(still, StartDateRange=first, EndDateRange=first + timedelta(days=4))
    assert [one["StartDate"] - first for one in later] == [timedelta(days=day) for day in range(3)]
    assert all(one["EndDate"] <= first for one in offerings(still, EndDateRange=first))


def test_blocks_when_too_few_reserved_machines_are_in_stock_then_none(still: Aws) -> None:
    daemon.set_stock(still.info, "eks", 1, type=H100, kind="reserved")
    assert offerings(still) == []
    assert len(offerings(still, InstanceCount=1)) == 6
    assert offerings(still, InstanceType="g6.xlarge") == []  # no Capacity Blocks of it


def test_blocks_when_types_are_preferred_then_each_is_offered(still: Aws) -> None:
    types = [{"InstanceType": name} for name in ("p5.48xlarge", "p5e.48xlarge")]
    found = still.client("ec2").describe_capacity_block_offerings(
        InstanceTypePreferences=types, InstanceCount=1, CapacityDurationHours=24
    )["CapacityBlockOfferings"]
    assert {one["InstanceType"] for one in found} == {"p5.48xlarge", "p5e.48xlarge"}


def test_blocks_when_in_pages_then_all_come(still: Aws) -> None:
    pages = still.client("ec2").get_paginator("describe_capacity_block_offerings")
    given: dict[str, Any] = {"InstanceType": H100, "InstanceCount": 2, "CapacityDurationHours": 48}
    found = [page["CapacityBlockOfferings"] for page in pages.paginate(**given, PaginationConfig={"PageSize": 4})]
    assert [len(page) for page in found] == [4, 2]


@pytest.mark.parametrize(
    "wrong",
    [
        {"CapacityDurationHours": 23},
        {"CapacityDurationHours": 25},
        {"CapacityDurationHours": 15 * 24},
        {"CapacityDurationHours": 189 * 24},
        {"InstanceCount": 65},
    ],
)
def test_blocks_when_no_block_is_so_long_or_large_then_refused(still: Aws, wrong: dict[str, int]) -> None:
    with pytest.raises(ClientError) as caught:
        offerings(still, **wrong)
    assert code_of(caught.value) == ("InvalidParameterValue", 400)
    for hours in (24, 14 * 24, 21 * 24, 182 * 24):
        assert offerings(still, CapacityDurationHours=hours)


def test_purchase_when_nothing_is_set_then_refused_and_when_allowed_then_reserved_from_its_start(still: Aws) -> None:
    ec2, offer = still.client("ec2"), offerings(still)[1]
    wanted = {"CapacityBlockOfferingId": offer["CapacityBlockOfferingId"], "InstancePlatform": "Linux/UNIX"}
    with pytest.raises(ClientError, match="explicit deny in a service control policy") as caught:
        ec2.purchase_capacity_block(**wanted)
    assert code_of(caught.value) == ("UnauthorizedOperation", 403)
    assert ec2.describe_capacity_reservations()["CapacityReservations"] == []
    daemon.configure(still.info, eksSellsBlocks=True)
    made = ec2.purchase_capacity_block(**wanted)["CapacityReservation"]
    (found,) = ec2.describe_capacity_reservations(Filters=[{"Name": "state", "Values": ["scheduled"]}])[
        "CapacityReservations"
    ]
    assert (found["CapacityReservationId"], found["ReservationType"]) == (
        made["CapacityReservationId"],
        "capacity-block",
    )
    assert (found["StartDate"], found["EndDate"]) == (offer["StartDate"], offer["EndDate"])
    assert (found["TotalInstanceCount"], found["AvailableInstanceCount"], found["EndDateType"]) == (2, 0, "limited")
    with pytest.raises(ClientError) as caught:
        ec2.purchase_capacity_block(**{**wanted, "CapacityBlockOfferingId": "cb-0"})
    assert code_of(caught.value)[0] == "InvalidCapacityBlockOfferingId.NotFound"


def test_reservations_when_of_all_kinds_then_their_states_criteria_and_dates_are_told(aws: Aws) -> None:
    entry = {"type": H100, "zone": "a", "count": 4}
    far = 30 * 86400
    entries = [
        {**entry, "id": "cr-1", "open": True},
        {**entry, "id": "cr-2", "end": far},
        {**entry, "id": "cr-3", "start": far},
        {**entry, "id": "cr-4", "state": "payment-pending", "block": True},
    ]
    daemon.declare(aws.info, "eks", account=ACCOUNT, region=REGION, reservations=entries)
    ec2 = aws.client("ec2")
    shown = {one["CapacityReservationId"]: one for one in ec2.describe_capacity_reservations()["CapacityReservations"]}
    keys = ("State", "InstanceMatchCriteria", "EndDateType", "AvailableInstanceCount")
    assert {name: tuple(one[key] for key in keys) for name, one in shown.items()} == {
        "cr-1": ("active", "open", "unlimited", 4),
        "cr-2": ("active", "targeted", "limited", 4),
        "cr-3": ("scheduled", "targeted", "unlimited", 0),
        "cr-4": ("payment-pending", "targeted", "limited", 0),
    }
    assert shown["cr-2"]["EndDate"] - shown["cr-2"]["CreateDate"] == timedelta(seconds=far)
    assert "EndDate" not in shown["cr-1"]
    assert shown["cr-1"]["AvailabilityZoneId"] == ids(aws)["a"]
    found = ec2.describe_capacity_reservations(Filters=[{"Name": "instance-match-criteria", "Values": ["open"]}])
    assert [one["CapacityReservationId"] for one in found["CapacityReservations"]] == ["cr-1"]


def test_supportability_when_capacity_manager_is_off_then_refused(aws: Aws) -> None:
    ec2 = aws.client("ec2")
    assert ec2.get_capacity_manager_attributes()["CapacityManagerStatus"] == "disabled"
    with pytest.raises(ClientError) as caught:
        ec2.get_capacity_manager_supportability_scores(
            MarketType="on-demand", CapacityAmount=1, CapacityUnit="instances", CapacityAvailabilityZoneIds=["use1-az1"]
        )
    assert code_of(caught.value) == ("CapacityManagerNotEnabled", 400)


@pytest.mark.parametrize(
    ("permission", "call"),
    [
        ("ec2:GetSpotPlacementScores", scores),
        ("ec2:DescribeCapacityBlockOfferings", offerings),
        ("ec2:GetCapacityManagerAttributes", lambda aws: aws.client("ec2").get_capacity_manager_attributes()),
        ("ec2:DescribeCapacityReservations", lambda aws: aws.client("ec2").describe_capacity_reservations()),
        ("autoscaling:DescribeScalingActivities", lambda aws: aws.client("autoscaling").describe_scaling_activities()),
    ],
)
def test_call_when_its_permission_is_denied_then_refused(aws: Aws, permission: str, call: Any) -> None:  # noqa: ANN401 - any call
    daemon.deny_permissions(aws.info, permission)
    with pytest.raises(ClientError, match=permission):
        call(aws)
    daemon.deny_permissions(aws.info)
    assert call(aws) is not None


def test_activities_when_in_pages_then_all_come_and_one_is_found_by_its_id(aws: Aws) -> None:
    daemon.set_stock(aws.info, "eks", 1, type="g4dn.xlarge")
    sizes = {"minSize": 0, "maxSize": 2, "desiredSize": 0}
    asg = aws.create("gpu", scalingConfig=sizes)["resources"]["autoScalingGroups"][0]["name"]
    for size in (1, 0, 1):
        aws.update("gpu", scalingConfig={"desiredSize": size})
    client = aws.client("autoscaling")
    pages = client.get_paginator("describe_scaling_activities")
    paged = pages.paginate(AutoScalingGroupName=asg, PaginationConfig={"PageSize": 1})
    found = [one for page in paged for one in page["Activities"]]
    assert [one["ActivityId"] for one in found] == sorted((one["ActivityId"] for one in found), reverse=True)
    assert all(one["AutoScalingGroupName"] == asg and one["Cause"] for one in found)
    only = client.describe_scaling_activities(ActivityIds=[found[-1]["ActivityId"]])["Activities"]
    assert [one["ActivityId"] for one in only] == [found[-1]["ActivityId"]]
    with pytest.raises(ClientError, match="MaxRecords"):
        client.describe_scaling_activities(MaxRecords=101)
