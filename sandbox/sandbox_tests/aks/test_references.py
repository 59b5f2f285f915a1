"""What an agent pool names has to exist: asked of a sandbox without its process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

import pytest

from gpukube_sandbox.aks.answers import ArmError
from gpukube_sandbox.aks.preconditions import Preconditions
from gpukube_sandbox.aks.references import ids_in
from gpukube_sandbox.world import ClusterRequest, World
from sandbox_tests.aks.arm import GROUP, NAME, SUBSCRIPTION, T4, Json

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
GROUP_ID = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers"
SUBNET = f"{GROUP_ID}/Microsoft.Network/virtualNetworks/net/subnets/gpus"
PLACED = f"{GROUP_ID}/Microsoft.Compute/proximityPlacementGroups/near"
RESERVED = f"{GROUP_ID}/Microsoft.Compute/capacityReservationGroups/t4"
HOSTS = f"{GROUP_ID}/Microsoft.Compute/hostGroups/hosts"


def in_world(act: Callable[[World], T], *declared: str) -> T:
    """Do something in a world that has one cluster and what was declared."""

    async def run() -> T:
        world = World(1.0, b"authority")
        await world.ensure_cluster(ClusterRequest(SUBSCRIPTION, GROUP, NAME))
        world.aks.declare(declared)
        try:
            return act(world)
        finally:
            await world.reset()

    return asyncio.run(run())


def put(world: World, **properties: object) -> tuple[int, Json]:
    cluster = world.aks.require_cluster(SUBSCRIPTION, GROUP, NAME)
    try:
        answer = world.aks.put_pool(cluster, "p", {"properties": {**T4, **properties}}, "2026-08-01", Preconditions())
    except ArmError as refusal:
        return refusal.status, refusal.body()
    assert isinstance(answer.body, dict)
    return answer.status, answer.body


def not_found(kind: str, name: str) -> str:
    return (
        f"The Resource 'Microsoft.Compute/{kind}/{name}' under resource group '{GROUP}' was not found. For more "
        "details please go to https://aka.ms/ARMResourceNotFoundFix"
    )


NO_SUBNET = f"Could not find subnet gpus in vnet net from resource group {GROUP} of subscription {SUBSCRIPTION}."
REFUSED: dict[str, tuple[str, str, str, str]] = {
    "a subnet": ("vnetSubnetID", SUBNET, "SubnetNotFound", NO_SUBNET),
    "a subnet of pods": ("podSubnetID", SUBNET, "SubnetNotFound", NO_SUBNET),
    "a placement group": (
        "proximityPlacementGroupID", PLACED, "ResourceNotFound", not_found("proximityPlacementGroups", "near"),
    ),
    "a reservation group": (
        "capacityReservationGroupID", RESERVED, "ResourceNotFound", not_found("capacityReservationGroups", "t4"),
    ),
    "a host group": ("hostGroupID", HOSTS, "ResourceNotFound", not_found("hostGroups", "hosts")),
    "a subnet by its name": (
        "vnetSubnetID",
        "gpus",
        "InvalidParameter",
        "'gpus' is not the ID of a resource of type Microsoft.Network/virtualNetworks/subnets.",
    ),
    "a host group as a placement group": (
        "proximityPlacementGroupID",
        HOSTS,
        "InvalidParameter",
        f"'{HOSTS}' is not the ID of a resource of type Microsoft.Compute/proximityPlacementGroups.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_pool_when_it_names_what_is_not_there_then_refused_and_not_made(case: str) -> None:
    key, given, code, text = REFUSED[case]

    def act(world: World) -> tuple[int, Json, list[str]]:
        status, body = put(world, **{key: given})
        return status, body, list(world.aks.require_cluster(SUBSCRIPTION, GROUP, NAME).pools)

    status, body, pools = in_world(act, "/some/thing/else")
    assert (status, body["code"], body["message"]) == (400, code, text)
    assert (body["target"], pools) == (f"agentPoolProfile.{key}", ["nodepool1"])


@pytest.mark.parametrize(("key", "given"), [("vnetSubnetID", SUBNET), ("capacityReservationGroupID", RESERVED)])
def test_pool_when_it_names_what_was_declared_then_made_whatever_the_case(key: str, given: str) -> None:
    status, body = in_world(
        lambda world: put(world, **{key: given.replace("/resourceGroups/", "/resourcegroups/")}), given
    )
    assert status == 201
    assert str(body["properties"][key]).lower() == given.lower()  # type: ignore[index] # an object, as the answer of a PUT has


def test_declare_when_some_is_there_already_then_only_the_rest_is_told() -> None:
    assert in_world(lambda world: world.aks.declare([SUBNET.upper(), PLACED]), SUBNET) == [PLACED]


def test_request_when_read_then_every_id_in_it() -> None:
    named = {"vnetSubnetID": SUBNET, "proximityPlacementGroupID": PLACED, "hostGroupID": HOSTS}
    assert ids_in({**T4, **named}) == [SUBNET, PLACED, HOSTS]
