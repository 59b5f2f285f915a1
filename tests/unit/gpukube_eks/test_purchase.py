"""How machines are bought: written into template and group, and read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from gpukube.core.diff import diff_fields
from gpukube.core.fields import CAPACITY_TYPE
from gpukube.core.values import Capacity, Reservation
from gpukube_eks.pool.observe import observe_group
from gpukube_eks.pool.purchase import bought_data, capacity_type
from tests.unit.gpukube_eks.samples import desired_of, eks_target

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = dict[str, object]
GROUP = "arn:aws:resource-groups:us-east-1:111122223333:group/gpus"
BLOCK = Capacity("reserved", reservation=Reservation("capacityBlock", "cr-0123456789abcdef0"))
ODCR = Capacity("reserved", reservation=Reservation("capacityReservation", "cr-0123456789abcdef0"))
GROUPED = Capacity("reserved", reservation=Reservation("capacityReservation", GROUP))
KINDS = {"on demand": Capacity("on-demand"), "spot": Capacity("spot"), "block": BLOCK, "one": ODCR, "group": GROUPED}


def parts(capacity: Capacity) -> tuple[Json, Json]:
    params = cast("Mapping[str, Json]", desired_of(eks_target("p5.48xlarge", capacity=capacity)).create.params)
    return params["nodegroup"], cast("Json", params["launchTemplate"]["LaunchTemplateData"])


def test_block_when_written_has_market_reservation_and_type_in_the_template_only() -> None:
    group, data = parts(BLOCK)

    assert (group["capacityType"], "instanceTypes" in group) == ("CAPACITY_BLOCK", False)
    assert data["InstanceMarketOptions"] == {"MarketType": "capacity-block"}
    assert data["InstanceType"] == "p5.48xlarge"
    target = {"CapacityReservationTarget": {"CapacityReservationId": "cr-0123456789abcdef0"}}
    assert data["CapacityReservationSpecification"] == target


@pytest.mark.parametrize(
    ("capacity", "key"), [(ODCR, "CapacityReservationId"), (GROUPED, "CapacityReservationResourceGroupArn")]
)
def test_reservation_when_written_is_bought_on_demand_by_id_or_group(capacity: Capacity, key: str) -> None:
    group, data = parts(capacity)

    assert (group["capacityType"], group["instanceTypes"]) == ("ON_DEMAND", ["p5.48xlarge"])
    assert not {"InstanceMarketOptions", "InstanceType"} & data.keys()
    assert capacity.reservation is not None
    target = {"CapacityReservationTarget": {key: capacity.reservation.id}}
    assert data["CapacityReservationSpecification"] == target


@pytest.mark.parametrize("kind", KINDS)
def test_capacity_when_read_again_is_no_difference_and_to_every_other_one_is(kind: str) -> None:
    observed = observe_group(*parts(KINDS[kind]), {})

    for other, capacity in KINDS.items():
        changes = diff_fields(desired_of(eks_target("p5.48xlarge", capacity=capacity)).fields, observed.fields)
        assert bool(changes) == (other != kind), other
        assert {str(change.field).partition(".")[0] for change in changes} <= {"capacity"}


def test_reservation_when_given_up_is_replaced_by_any_open_one() -> None:
    given_up = bought_data(eks_target("p5.48xlarge"), is_first=False)

    assert given_up == {"CapacityReservationSpecification": {"CapacityReservationPreference": "open"}}
    observed = observe_group({"capacityType": capacity_type(ODCR)}, given_up, {})
    assert observed.fields[CAPACITY_TYPE] == "on-demand"
