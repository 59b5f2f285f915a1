"""Node groups and the stock: launches that find no machines, capacity that returns, reservations. On a manual clock."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import pytest

from gpukube_sandbox import daemon
from gpukube_sandbox.clock import ManualClock
from gpukube_sandbox.eks.account import AUTOSCALING
from gpukube_sandbox.eks.autoscaling import EksGroups
from gpukube_sandbox.eks.ec2 import ACTIONS as EC2
from gpukube_sandbox.eks.ending import BlockEnds
from gpukube_sandbox.eks.making import EksRequest, make_cluster
from gpukube_sandbox.eks.service import EksService
from gpukube_sandbox.eks.steering import declare, tamper_group
from gpukube_sandbox.eks.wire.answers import AwsError
from gpukube_sandbox.faults import FaultBook
from gpukube_sandbox.stock import Stock, parse_entry
from sandbox_tests.eks.aws import ACCOUNT, NAME, REGION, T4, Aws
from sandbox_tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gpukube_sandbox.eks.clusters import EksCluster
    from gpukube_sandbox.eks.groups import NodeGroup
    from gpukube_sandbox.eks.wire.identity import Caller

Json = dict[str, Any]
SOLD_OUT = (
    "Could not launch On-Demand Instances. InsufficientInstanceCapacity - We currently do not have sufficient "
    "g4dn.xlarge capacity in the Availability Zone you requested (us-east-1a). Our system will be working on "
    "provisioning additional capacity."
)
NO_SPOT = (
    "Could not launch Spot Instances. InsufficientInstanceCapacity - There is no Spot capacity available that matches "
    "your request."
)


class Me:
    """A caller of the account in the region."""

    account, region = ACCOUNT, REGION


class Stage:
    """One cluster on a clock that the test advances."""

    cluster: EksCluster

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.stock = Stock(self.clock)
        self.faults = FaultBook()
        self.service = EksService(self.clock, lambda *_: None, self.stock)

    async def start(self) -> None:
        self.cluster = await make_cluster(self.service, EksRequest(ACCOUNT, REGION, NAME), "https://k", b"ca", None)
        await self.clock.advance(600)

    def limit(self, free: int, then: dict[str, int] | None = None, **place: str) -> None:
        entry = {"provider": "eks", "type": "g4dn.xlarge", "free": free, "then": then or {}, **place}
        self.stock.put(parse_entry(entry))

    def create(self, count: int, zones: str = "abc", data: Json | None = None, **members: object) -> None:
        subnets = [subnet.id for subnet in self.cluster.subnets if subnet.zone in zones and not subnet.public]
        role = self.cluster.node_role_arn
        sizes = {"minSize": 0, "maxSize": 9, "desiredSize": count}
        body = {"nodegroupName": "gpu", "subnets": subnets, "nodeRole": role, "scalingConfig": sizes, **T4, **members}
        if data:
            self.service.templates(ACCOUNT, REGION).create("gpukube-t", "", data, {}, "")
            body["launchTemplate"] = {"name": "gpukube-t"}
        self.service.create_group(self.cluster, {key: value for key, value in body.items() if value is not None})

    def scale(self, count: int) -> None:
        self.service.update_config(self.cluster, "gpu", {"scalingConfig": {"minSize": 0, "desiredSize": count}})

    @property
    def group(self) -> NodeGroup:
        return self.cluster.groups["gpu"]

    @property
    def seen(self) -> tuple[str, int, list[str]]:
        """State, number of machines, codes of the health."""
        return self.group.status, len(self.group.nodes), [str(issue["code"]) for issue in self.group.issues]

    @property
    def activities(self) -> list[Json]:
        params = {"AutoScalingGroupName": self.group.asg}
        found: Any = AUTOSCALING["DescribeScalingActivities"](self.service, cast("Caller", Me), params)
        return list(found["Activities"]["member"])

    @property
    def reservations(self) -> list[Json]:
        found: Any = EC2["DescribeCapacityReservations"](self.service, cast("Caller", Me), {})
        return list(found["capacityReservationSet"]["item"])


def staged(story: Callable[[Stage], Awaitable[Any]]) -> Any:  # noqa: ANN401 - what the story gives
    async def run() -> Any:  # noqa: ANN401 - as above
        stage = Stage()
        await stage.start()
        try:
            return await story(stage)
        finally:
            await stage.service.reset()
            await stage.cluster.kube.stop()

    return asyncio.run(run())


def test_create_when_no_machine_is_in_stock_then_told_early_and_failed_after_15_minutes() -> None:
    async def story(stage: Stage) -> None:
        stage.limit(0)
        stage.create(2, "a")
        await stage.clock.advance(60)
        assert stage.seen == ("CREATING", 0, ["AsgInstanceLaunchFailures"])
        assert stage.group.wire()["resources"] == {"autoScalingGroups": [{"name": stage.group.asg}]}
        assert stage.group.issues[0]["message"] == f"{SOLD_OUT} Launching EC2 instance failed."
        assert stage.group.issues[0]["resourceIds"] == [stage.group.asg]
        await stage.clock.advance(840)
        assert stage.seen[0] == "CREATING"
        await stage.clock.advance(60)
        assert stage.seen == ("CREATE_FAILED", 0, ["AsgInstanceLaunchFailures", "NodeCreationFailure"])
        assert str(stage.group.issues[1]["resourceIds"]).startswith("['DUMMY_")

    staged(story)


def test_create_when_one_zone_is_sold_out_then_all_machines_start_in_the_others() -> None:
    async def story(stage: Stage) -> None:
        stage.limit(0, zone="us-east-1a")
        stage.create(4)
        await stage.clock.advance(300)
        assert stage.seen == ("ACTIVE", 4, [])
        assert {stage.group.instances[node].zone for node in stage.group.nodes} == {"us-east-1b", "us-east-1c"}

    staged(story)


def test_create_when_another_zone_has_machines_then_the_message_names_it() -> None:
    async def story(stage: Stage) -> str:
        stage.limit(0, zone="us-east-1a")
        stage.create(1, "a")
        await stage.clock.advance(60)
        return str(stage.group.issues[0]["message"])

    assert "specifying an Availability Zone in your request or choosing us-east-1b, us-east-1c." in staged(story)


def test_create_when_some_machines_are_in_stock_then_those_start_and_deleting_gives_them_back() -> None:
    async def story(stage: Stage) -> None:
        stage.limit(2)
        stage.create(3, "a")
        await stage.clock.advance(1000)
        assert stage.seen[:2] == ("CREATE_FAILED", 2)
        assert stage.stock.free("eks", "us-east-1a", "g4dn.xlarge", "on-demand") == 0
        stage.service.delete_group(stage.cluster, "gpu")
        await stage.clock.advance(300)
        assert "gpu" not in stage.cluster.groups
        assert stage.stock.free("eks", "us-east-1a", "g4dn.xlarge", "on-demand") == 2

    staged(story)


def test_create_when_stock_returns_in_time_then_active() -> None:
    async def story(stage: Stage) -> None:
        stage.limit(0, {"300": 4})
        stage.create(2, "a")
        await stage.clock.advance(900)
        assert stage.seen == ("ACTIVE", 2, [])

    staged(story)


def test_create_when_it_has_failed_and_stock_returns_then_machines_still_come() -> None:
    async def story(stage: Stage) -> None:
        stage.limit(0, {"1200": 4})
        stage.create(2, "a")
        await stage.clock.advance(1100)
        assert stage.seen[:2] == ("CREATE_FAILED", 0)
        await stage.clock.advance(1500)
        assert stage.seen[:2] == ("CREATE_FAILED", 2)

    staged(story)


def test_create_when_the_first_type_is_sold_out_then_the_next_is_launched() -> None:
    async def story(stage: Stage) -> list[str]:
        stage.limit(1)
        stage.create(3, "a", instanceTypes=["g4dn.xlarge", "g4dn.2xlarge"])
        await stage.clock.advance(300)
        return [stage.group.instances[node].type for node in stage.group.nodes]

    assert staged(story) == ["g4dn.xlarge", "g4dn.2xlarge", "g4dn.2xlarge"]


def test_create_when_spot_is_sold_out_then_on_demand_is_not_touched_and_the_text_is_spots() -> None:
    async def story(stage: Stage) -> None:
        stage.limit(0, kind="spot")
        stage.create(1, "a", capacityType="SPOT")
        await stage.clock.advance(60)
        assert stage.group.issues[0]["message"] == f"{NO_SPOT} Launching EC2 instance failed."
        assert stage.stock.free("eks", "us-east-1a", "g4dn.xlarge", "on-demand") is None

    staged(story)


def test_scale_when_machines_are_short_then_degraded_and_active_again_when_stock_returns() -> None:
    async def story(stage: Stage) -> None:
        stage.limit(1, {"900": 3})
        stage.create(0, "a")
        await stage.clock.advance(120)
        assert stage.seen == ("ACTIVE", 0, [])
        stage.scale(3)
        await stage.clock.advance(120)
        assert stage.seen == ("DEGRADED", 1, ["AsgInstanceLaunchFailures"])
        assert next(iter(stage.group.updates.values())).status == "Successful"
        await stage.clock.advance(1600)
        assert stage.seen == ("ACTIVE", 3, [])

    staged(story)


def test_scale_when_degraded_then_it_can_be_emptied_and_deleted() -> None:
    async def story(stage: Stage) -> None:
        stage.limit(1)
        stage.create(0, "a")
        await stage.clock.advance(120)
        stage.scale(3)
        await stage.clock.advance(120)
        stage.scale(0)
        await stage.clock.advance(60)
        assert stage.seen == ("DEGRADED", 0, ["AsgInstanceLaunchFailures"])
        before = len(stage.activities)
        await stage.clock.advance(3600)
        assert (len(stage.activities), stage.seen[1]) == (before, 0)  # nothing is tried any more
        stage.service.delete_group(stage.cluster, "gpu")
        await stage.clock.advance(300)
        assert "gpu" not in stage.cluster.groups

    staged(story)


def test_activities_when_machines_are_short_then_newest_first_and_repeated_less_and_less_often() -> None:
    async def story(stage: Stage) -> None:
        stage.limit(1)
        stage.create(0, "a")
        await stage.clock.advance(120)
        stage.scale(2)
        await stage.clock.advance(3600)
        found = stage.activities
        assert [one["StatusCode"] for one in found] == ["Failed"] * (len(found) - 1) + ["Successful"]
        assert found[0]["StatusMessage"].partition(" - ")[0].endswith(" InsufficientInstanceCapacity")
        starts = [one["StartTime"] for one in found]
        assert starts == sorted(starts, reverse=True)
        assert len({one["ActivityId"] for one in found}) == len(found)
        moments = [float(str(one["StartTime"])) for one in reversed(stage.group.activities)][1:]
        gaps = [round(after - before) for before, after in pairwise(moments)]
        assert gaps == [60, 120, 240, 480, 600, 600, 600, 600]

    staged(story)


def test_delete_when_creating_then_refused_or_accepted_as_it_is_set() -> None:
    async def story(stage: Stage) -> None:
        stage.limit(1)
        stage.create(2, "a")
        await stage.clock.advance(200)
        with pytest.raises(AwsError, match="CREATING") as caught:
            stage.service.delete_group(stage.cluster, "gpu")
        assert caught.value.code == "ResourceInUseException"
        stage.service.is_creating_busy = False
        stage.service.delete_group(stage.cluster, "gpu")
        assert stage.seen[0] == "DELETING"
        await stage.clock.advance(300)
        assert "gpu" not in stage.cluster.groups
        assert stage.stock.free("eks", "us-east-1a", "g4dn.xlarge", "on-demand") == 1

    staged(story)


@pytest.mark.parametrize("status", ["CREATING", "UPDATING", "DELETING", "CREATE_FAILED", "DELETE_FAILED"])
def test_update_when_neither_active_nor_degraded_then_refused(status: str) -> None:
    async def story(stage: Stage) -> None:
        stage.create(0)
        await stage.clock.advance(120)
        stage.group.status = cast("Any", status)
        with pytest.raises(AwsError, match="not in Active State"):
            stage.scale(1)

    staged(story)


def test_version_when_the_surge_is_not_in_stock_then_the_update_fails_and_the_group_stays() -> None:
    async def story(stage: Stage) -> None:
        stage.limit(2)
        stage.create(1, "a")
        await stage.clock.advance(300)
        nodes = list(stage.group.nodes)
        stage.service.update_version(stage.cluster, "gpu", {})
        await stage.clock.advance(900)
        (update,) = stage.group.updates.values()
        assert (update.status, update.errors[0]["errorCode"]) == ("Failed", "NodeCreationFailure")
        assert "InsufficientInstanceCapacity" in str(update.errors[0]["errorMessage"])
        assert (stage.seen, stage.group.nodes) == (("ACTIVE", 1, []), nodes)
        stage.limit(2)
        stage.service.update_version(stage.cluster, "gpu", {})
        await stage.clock.advance(900)
        assert (stage.seen[:2], set(stage.group.nodes) & set(nodes)) == (("ACTIVE", 1), set())

    staged(story)


def test_autoscaler_when_machines_are_short_then_it_is_told_at_once_and_the_size_falls_back() -> None:
    async def story(stage: Stage) -> None:
        stage.limit(1)
        stage.create(0, "a")
        await stage.clock.advance(120)
        groups = EksGroups(stage.cluster, stage.clock, stage.faults)
        growing = asyncio.ensure_future(groups.grow(stage.group.asg, 3))
        await stage.clock.advance(120)
        failure = await growing
        assert failure is not None
        assert ("InsufficientInstanceCapacity" in failure.message, failure.missing, failure.seen) == (
            True,
            2,
            "machines",
        )
        assert (stage.group.desired, stage.seen[:2]) == (1, ("DEGRADED", 1))

    staged(story)


def test_tamper_when_somebody_else_deletes_the_group_then_its_machines_are_given_back() -> None:
    async def story(stage: Stage) -> None:
        stage.limit(1)
        stage.create(1, "a")
        await stage.clock.advance(300)
        await tamper_group(stage.service, stage.cluster, "gpu", {}, delete=True)
        assert stage.stock.free("eks", "us-east-1a", "g4dn.xlarge", "on-demand") == 1

    staged(story)


def target(identity: str = "", **specification: object) -> Json:
    given = {"CapacityReservationTarget": {"CapacityReservationId": identity}} if identity else specification
    return {"CapacityReservationSpecification": given}


def reserve(stage: Stage, **entry: object) -> None:
    found = {"id": "cr-1", "type": "g4dn.xlarge", "zone": "a", "count": 2, **entry}
    declare(stage.service, {"account": ACCOUNT, "region": REGION, "reservations": [found]})


def test_reservation_when_full_then_partly_launched_and_its_free_machines_follow() -> None:
    async def story(stage: Stage) -> None:
        stage.limit(0, kind="on-demand")
        reserve(stage)
        assert stage.reservations[0]["availableInstanceCount"] == 2
        stage.create(3, "a", target("cr-1"))
        await stage.clock.advance(120)
        assert stage.seen == ("CREATING", 2, ["AsgInstanceLaunchFailures"])
        message = str(stage.group.issues[0]["message"])
        assert message.startswith("Could not launch On-Demand Instances. ReservationCapacityExceeded - ")
        assert stage.reservations[0]["availableInstanceCount"] == 0
        await stage.clock.advance(1000)
        stage.service.delete_group(stage.cluster, "gpu")
        await stage.clock.advance(300)
        assert stage.reservations[0]["availableInstanceCount"] == 2

    staged(story)


def test_reservation_when_it_starts_later_then_machines_come_then_and_it_ends() -> None:
    async def story(stage: Stage) -> list[str]:
        reserve(stage, start=600, end=3600)
        states = [stage.reservations[0]["state"]]
        stage.create(1, "a", target("cr-1"))
        await stage.clock.advance(550)
        assert stage.seen[:2] == ("CREATING", 0)
        await stage.clock.advance(600)
        assert stage.seen == ("ACTIVE", 1, [])
        states.append(stage.reservations[0]["state"])
        await stage.clock.advance(3000)
        return [*states, stage.reservations[0]["state"], stage.reservations[0]["endDateType"]]

    assert staged(story) == ["scheduled", "active", "expired", "limited"]


@pytest.mark.parametrize(("block", "left"), [(True, 0), (False, 2)])
def test_reservation_when_it_ends_then_the_group_of_a_block_is_emptied_before_and_others_run_on(
    *, block: bool, left: int
) -> None:
    async def story(stage: Stage) -> None:
        stage.cluster.kube.follow(BlockEnds(stage.cluster, stage.clock))
        reserve(stage, block=block, end=7200)
        data = {**target("cr-1"), "InstanceType": "g4dn.xlarge"} | (
            {"InstanceMarketOptions": {"MarketType": "capacity-block"}} if block else {}
        )
        members: Json = {"instanceTypes": None, **({"capacityType": "CAPACITY_BLOCK"} if block else {})}
        stage.create(2, "a", data, **members)
        await stage.clock.advance(7200 - 2400 - 10)
        assert stage.seen[:2] == ("ACTIVE", 2)
        await stage.clock.advance(20)
        assert stage.group.desired == left
        await stage.clock.advance(600)
        assert stage.seen[:2] == ("ACTIVE", left)
        await stage.clock.advance(1800)
        assert (stage.reservations[0]["state"], len(stage.group.nodes)) == ("expired", left)

    staged(story)


def test_reservation_when_open_then_launches_that_name_none_use_it_before_they_are_bought() -> None:
    async def story(stage: Stage) -> None:
        reserve(stage, open=True)
        assert stage.reservations[0]["instanceMatchCriteria"] == "open"
        stage.create(3, "a")
        await stage.clock.advance(300)
        markets = [stage.group.instances[node].market for node in stage.group.nodes]
        assert (markets, stage.reservations[0]["availableInstanceCount"]) == (["reserved", "reserved", "on-demand"], 0)

    staged(story)


def test_reservation_when_a_template_asks_for_none_or_for_nothing_else_then_so_it_is() -> None:
    async def story(stage: Stage, preference: str) -> list[str]:
        reserve(stage, open=True)
        stage.create(3, "a", target(CapacityReservationPreference=preference))
        await stage.clock.advance(300)
        return [stage.group.instances[node].market for node in stage.group.nodes]

    assert staged(lambda stage: story(stage, "none")) == ["on-demand"] * 3
    assert staged(lambda stage: story(stage, "capacity-reservations-only")) == ["reserved"] * 2


def test_reservation_when_the_stock_of_reserved_machines_is_limited_then_fewer_are_free() -> None:
    async def story(stage: Stage) -> int:
        reserve(stage, count=4)
        stage.limit(1, kind="reserved")
        return int(stage.reservations[0]["availableInstanceCount"])

    assert staged(story) == 1


def test_group_when_stock_is_set_from_outside_then_the_sdk_sees_the_failure_and_the_recovery(aws: Aws) -> None:
    daemon.set_stock(aws.info, "eks", 0, type="g4dn.xlarge")
    aws.create("gpu", scalingConfig={"minSize": 0, "maxSize": 2, "desiredSize": 0})
    aws.update("gpu", scalingConfig={"desiredSize": 1})
    wait_for(lambda: aws.group("gpu")["status"] == "DEGRADED")
    asg = aws.group("gpu")["resources"]["autoScalingGroups"][0]["name"]
    pages = aws.client("autoscaling").get_paginator("describe_scaling_activities")
    found = [one for page in pages.paginate(AutoScalingGroupName=asg) for one in page["Activities"]]
    assert {one["StatusCode"] for one in found} == {"Failed"}
    assert "InsufficientInstanceCapacity - " in found[0]["StatusMessage"]
    daemon.clear_stock(aws.info)
    wait_for(lambda: aws.group("gpu")["status"] == "ACTIVE" and not aws.group("gpu")["health"]["issues"])
