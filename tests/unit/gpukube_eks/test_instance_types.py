"""Pools of several instance types: what is sent, read back, compared, and refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from gpukube.core.diff import diff_fields
from gpukube.core.fields import INSTANCE_TYPE, INSTANCE_TYPES
from gpukube.core.values import Capacity, Reservation
from gpukube.errors import SpecError
from gpukube.gpu.catalog import require_machine
from gpukube_eks import EksProvider
from gpukube_eks.pool.importing import chosen_fields
from gpukube_eks.pool.observe import observe_group
from gpukube_eks.pool.placement import Subnet, choose_subnets
from tests.unit.gpukube_eks.samples import desired_of, eks_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Observed, Target

SPOT, ON_DEMAND = Capacity("spot"), Capacity("on-demand")


def mixed(*names: str, **changes: object) -> Target:
    machines = tuple(require_machine("eks", name) for name in names)
    return eks_target(names[0], machines=machines, **changes)


def live(target: Target) -> Observed:
    return observe_group(cast("Mapping[str, object]", desired_of(target).create.params["nodegroup"]), {}, {})


def test_types_when_sent_keep_the_order_of_the_spec_and_read_back_the_same() -> None:
    target = mixed("g6.4xlarge", "g6.xlarge", "g6.2xlarge")
    desired = desired_of(target)
    group = cast("Mapping[str, object]", desired.create.params["nodegroup"])

    assert group["instanceTypes"] == ["g6.4xlarge", "g6.xlarge", "g6.2xlarge"]
    assert diff_fields(desired.fields, live(target).fields) == ()


@pytest.mark.parametrize(
    ("before", "after", "fields"),
    [
        (("g6.xlarge", "g6.2xlarge"), ("g6.2xlarge", "g6.xlarge"), {INSTANCE_TYPE, INSTANCE_TYPES}),
        (("g6.xlarge", "g6.2xlarge"), ("g6.xlarge", "g6.4xlarge"), {INSTANCE_TYPES}),
        (("g6.xlarge", "g6.2xlarge"), ("g6.xlarge",), {INSTANCE_TYPES}),
        (("g6.xlarge",), ("g6.xlarge", "g6.2xlarge"), {INSTANCE_TYPES}),
    ],
)
def test_types_when_another_list_is_declared_replace_the_pool(
    before: tuple[str, ...], after: tuple[str, ...], fields: set[object]
) -> None:
    changes = diff_fields(desired_of(mixed(*after)).fields, live(mixed(*before)).fields)

    assert {change.field for change in changes} == fields
    assert {EksProvider().update_row(change, changes).kind for change in changes} == {"replace"}


def test_types_when_imported_are_one_list() -> None:
    chosen = chosen_fields(live(mixed("g6.xlarge", "g6.2xlarge")))

    assert chosen[INSTANCE_TYPES] == ("g6.xlarge", "g6.2xlarge")
    assert INSTANCE_TYPE not in chosen


def codes(target: Target) -> dict[str, str]:
    return {found.code: found.severity for found in EksProvider().check(target)}


def test_types_when_bought_on_spot_get_a_hint_that_the_order_does_not_count() -> None:
    assert codes(mixed("p4d.24xlarge", "p4de.24xlarge", capacity=SPOT))["eks-types-order"] == "hint"
    assert "eks-spot-scarce" not in codes(mixed("p4d.24xlarge", "p4de.24xlarge", capacity=SPOT))
    assert "eks-types-order" not in codes(mixed("g6.xlarge", "g6.2xlarge", capacity=ON_DEMAND))
    assert "eks-types-order" not in codes(mixed("g6.xlarge", capacity=SPOT))


@pytest.mark.parametrize(
    ("form", "identity", "refused"),
    [
        ("capacityReservation", "cr-0123456789abcdef0", True),
        ("capacityBlock", "cr-0123456789abcdef0", True),
        ("capacityReservation", "arn:aws:resource-groups:us-east-1:111122223333:group/ml", False),
    ],
)
def test_types_when_one_reservation_is_named_are_refused(form: str, identity: str, *, refused: bool) -> None:
    capacity = Capacity("reserved", reservation=Reservation(form, identity))

    assert ("eks-types-reserved" in codes(mixed("p5.48xlarge", "p5e.48xlarge", capacity=capacity))) == refused


def test_image_when_one_of_the_types_has_none_is_refused() -> None:
    assert codes(mixed("g7e.2xlarge", "g7.2xlarge"))["eks-image-machine"] == "error"


def test_subnets_when_a_zone_offers_none_of_the_types_are_refused() -> None:
    known = {"subnet-a": Subnet("subnet-a", "us-east-1a", public=False)}
    with pytest.raises(SpecError, match=r"g6.xlarge or g6.2xlarge are not offered in us-east-1a"):
        choose_subnets(mixed("g6.xlarge", "g6.2xlarge", zones=("us-east-1a",)), [], ["subnet-a"], known, ["us-east-1b"])
