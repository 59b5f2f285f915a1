"""The reservation or Capacity Block that a group names, as EC2 returns it now."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gpukube.core.reservations import LiveReservation
from gpukube.core.values import Capacity, Reservation, Settings
from gpukube.endpoint import Endpoint
from gpukube.errors import CloudError
from gpukube_eks.live.client import EksCloud
from gpukube_eks.pool.observe import observe_group
from tests.unit.gpukube_eks.fakes import FakeAws, Json, refusal
from tests.unit.gpukube_eks.samples import CLUSTER, desired_of, eks_target

GROUP = "arn:aws:resource-groups:us-east-1:111122223333:group/gpus"
FOUND: Json = {
    "CapacityReservationId": "cr-1",
    "InstanceType": "p5.48xlarge",
    "State": "active",
    "TotalInstanceCount": 4,
    "AvailableInstanceCount": 1,
    "ReservationType": "default",
}
END = {"EndDate": datetime(2026, 12, 8, 11, 30, tzinfo=UTC)}


def reserved(aws: FakeAws, form: str = "capacityReservation", identity: str = "cr-1") -> LiveReservation | None:
    capacity = Capacity("reserved", reservation=Reservation(form, identity))
    return EksCloud(CLUSTER, Settings(), Endpoint(), aws).reserved(
        desired_of(eks_target("p5.48xlarge", capacity=capacity))
    )


@pytest.fixture
def aws() -> FakeAws:
    made = FakeAws()
    made.reservations = [FOUND]
    return made


def test_reserved_when_active_has_its_free_machines_and_what_its_end_does(aws: FakeAws) -> None:
    found = reserved(aws)
    assert found == LiveReservation("cr-1", 4, 3, at_end="its machines run on, billed on demand")
    assert found.free == 1


@pytest.mark.parametrize("state", ["scheduled", "assessing", "payment-pending", "expired", "unavailable"])
def test_reserved_when_not_active_has_no_free_machines(aws: FakeAws, state: str) -> None:
    aws.reservations = [{**FOUND, "State": state}]
    found = reserved(aws)
    assert found is not None
    assert (found.active, found.free) == (False, 0)


@pytest.mark.parametrize(("machine", "minutes"), [("p5.48xlarge", 30), ("p6e-gb200.36xlarge", 60)])
def test_block_when_it_ends_has_its_machines_ended_before(aws: FakeAws, machine: str, minutes: int) -> None:
    aws.reservations = [{**FOUND, **END, "InstanceType": machine, "ReservationType": "capacity-block"}]
    found = reserved(aws, "capacityBlock")
    assert found is not None
    assert found.end == "2026-12-08T11:30:00Z"
    assert f"EC2 ends its machines from {minutes} minutes before the end" in found.at_end


def test_reserved_when_a_live_group_names_it_is_that_of_its_template(aws: FakeAws) -> None:
    target = {"CapacityReservationTarget": {"CapacityReservationId": "cr-1"}}
    group = observe_group(
        {"nodegroupName": "h100", "status": "ACTIVE", "capacityType": "ON_DEMAND"},
        {"CapacityReservationSpecification": target},
        {},
    )
    found = EksCloud(CLUSTER, Settings(), Endpoint(), aws).reserved(group)
    assert found is not None
    assert found.id == "cr-1"


def test_reserved_when_read_twice_then_asked_twice(aws: FakeAws) -> None:
    cloud = EksCloud(CLUSTER, Settings(), Endpoint(), aws)
    pool = desired_of(
        eks_target("p5.48xlarge", capacity=Capacity("reserved", reservation=Reservation("capacityBlock", "cr-1")))
    )
    cloud.reserved(pool)
    aws.reservations = [{**FOUND, "AvailableInstanceCount": 0}]
    found = cloud.reserved(pool)
    assert found is not None
    assert found.free == 0


def test_reserved_when_it_is_a_resource_group_then_nothing_is_asked(aws: FakeAws) -> None:
    assert reserved(aws, identity=GROUP) is None
    assert "describe_capacity_reservations" not in aws.calls


def test_reserved_when_not_allowed_or_not_there_then_none(aws: FakeAws) -> None:
    aws.raises = {"describe_capacity_reservations": refusal("UnauthorizedOperation")}
    assert reserved(aws) is None
    aws.reservations = []
    assert reserved(aws) is None


def test_reserved_when_the_call_fails_otherwise_then_an_error(aws: FakeAws) -> None:
    aws.raises = {"describe_capacity_reservations": refusal("InternalError")}
    with pytest.raises(CloudError):
        reserved(aws)
