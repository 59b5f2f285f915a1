"""Reserved pools, and pools of a version, through the real SDK: where they go, and what is found before any call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.core.diff import diff_fields
from gpukube.core.fields import ZONES
from gpukube.core.plan import plan_pool
from gpukube.core.values import Capacity, Nodes, Reservation
from gpukube.errors import CapacityError, GpukubeError
from gpukube_eks import EksProvider
from gpukube_sandbox import daemon
from tests.unit.gpukube_eks.samples import ACCOUNT, REGION, desired_of, eks_target

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube.core.values import Desired, Observed, Operation, Progress, Target
    from gpukube_eks.live.client import EksCloud
    from gpukube_sandbox.daemon import SandboxInfo

    Follow = Callable[[EksCloud, Operation], Progress]

PROVIDER = EksProvider()


def wanted(cloud: EksCloud, target: Target) -> Desired:
    return cloud.complete(desired_of(target))


def find(cloud: EksCloud) -> Observed:
    (found,) = [pool for pool in cloud.pools() if pool.name == "a100mig"]
    return found


def reserved(form: str, identity: str) -> Capacity:
    return Capacity("reserved", reservation=Reservation(form, identity))


BLOCK = reserved("capacityBlock", "cr-0123456789abcdef0")
ODCR = reserved("capacityReservation", "cr-0fedcba9876543210")
RESERVATIONS: list[dict[str, object]] = [
    {"id": "cr-0123456789abcdef0", "type": "p5.48xlarge", "zone": "a", "count": 2, "block": True},
    {"id": "cr-0fedcba9876543210", "type": "p4d.24xlarge", "zone": "b", "count": 4},
]


@pytest.fixture(autouse=True)
def _declared(sandbox: SandboxInfo) -> None:
    daemon.declare(sandbox, "eks", account=ACCOUNT, region=REGION, reservations=RESERVATIONS)


@pytest.mark.parametrize(
    ("machine", "capacity", "zone"), [("p5.48xlarge", BLOCK, "us-east-1a"), ("p4d.24xlarge", ODCR, "us-east-1b")]
)
def test_create_when_reserved_goes_to_the_zone_of_the_reservation_and_then_differs_in_nothing(
    cloud: EksCloud, follow: Follow, machine: str, capacity: Capacity, zone: str
) -> None:
    desired = wanted(cloud, eks_target(machine, capacity=capacity, kubernetes_version="1.34", max_pods=60))

    assert follow(cloud, cloud.send(desired.create)).done

    observed = find(cloud)
    assert (observed.fields[ZONES], observed.instance_type) == ((zone,), machine)
    assert diff_fields(desired.fields, observed.fields) == ()
    assert plan_pool(PROVIDER, desired, cloud.pools()).action == "no-op"


WRONG: dict[str, tuple[str, dict[str, object], str]] = {
    "another zone": ("p4d.24xlarge", {"capacity": ODCR, "zones": ("us-east-1a",)}, "is in us-east-1b"),
    "another type": ("p4de.24xlarge", {"capacity": ODCR}, r"is for p4d\.24xlarge"),
    "no block": (
        "p4d.24xlarge",
        {"capacity": reserved("capacityBlock", "cr-0fedcba9876543210")},
        "not a capacityBlock",
    ),
    "unknown": ("p4d.24xlarge", {"capacity": reserved("capacityReservation", "cr-0000000000000000f")}, "no such"),
    "another version": ("p4d.24xlarge", {"kubernetes_version": "1.33"}, r"the cluster has 1\.34"),
}


@pytest.mark.parametrize("name", WRONG)
def test_complete_when_reservation_or_version_does_not_fit_says_so_before_any_call(cloud: EksCloud, name: str) -> None:
    machine, changes, said = WRONG[name]

    with pytest.raises(GpukubeError, match=said) as caught:
        wanted(cloud, eks_target(machine, **changes))

    assert caught.value.diagnostics[0].fix
    assert [pool.name for pool in cloud.pools()] == ["system"]


def test_create_when_the_reservation_is_used_up_is_told_late(cloud: EksCloud, follow: Follow) -> None:
    nodes = Nodes(5, 5, 5, autoscaled=False)

    error = follow(cloud, cloud.send(wanted(cloud, eks_target(capacity=ODCR, nodes=nodes)).create)).error

    assert isinstance(error, CapacityError)
    assert error.diagnostics[0].code == "reservation"
