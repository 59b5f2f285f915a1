"""What a node pool names has to exist: asked of a sandbox without its process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

import pytest
from google.cloud import container_v1 as wire

from gpukube_sandbox.gke.making import GkeRequest
from gpukube_sandbox.gke.steering import declare, declare_for
from gpukube_sandbox.gke.wire.answers import GoogleError
from gpukube_sandbox.shapes import WrongEntry
from gpukube_sandbox.world import World
from sandbox_tests.gke.clients import CLUSTER, NAME, PROJECT, ZONE, gpu_pool

if TYPE_CHECKING:
    from collections.abc import Callable

    from sandbox_tests.gke.clients import Json

T = TypeVar("T")
EMAIL = f"nodes@{PROJECT}.iam.gserviceaccount.com"
RESOURCES = [
    "global/networks/gpu-net",
    "regions/us-central1/subnetworks/gpu-sub",
    "regions/us-central1/resourcePolicies/compact",
]
OURS: Json = {"name": "ours", "zone": ZONE, "machineType": "a2-highgpu-1g", "count": 1}


def in_world(act: Callable[[World], T]) -> T:
    """Do something in a world that has one cluster and what was declared."""

    async def run() -> T:
        world = World(1.0, b"authority")
        await world.ensure_gke_cluster(GkeRequest(PROJECT, ZONE, NAME))
        ours = {"serviceAccounts": [EMAIL], "reservations": [OURS], "resources": RESOURCES}
        theirs = {"reservations": [OURS | {"name": "theirs"}], "resources": ["global/networks/shared"]}
        declare(world.gke.service(), {"project": PROJECT, **ours})
        declare(world.gke.service(), {"project": "other", **theirs})
        try:
            return act(world)
        finally:
            await world.reset()

    return asyncio.run(run())


def create(world: World, **config: object) -> tuple[str, str]:
    return made(world, gpu_pool("p", "a2-highgpu-1g", "nvidia-tesla-a100", 1, 1, **config))


def made(world: World, pool: Json) -> tuple[str, str]:
    try:
        world.gke.service().create_node_pool(wire.CreateNodePoolRequest(parent=CLUSTER, node_pool=pool))
    except GoogleError as refusal:
        return refusal.code, refusal.message
    return "", ""


def taking(reservation: str) -> Json:
    key = "compute.googleapis.com/reservation-name"
    affinity = {"consume_reservation_type": "SPECIFIC_RESERVATION", "key": key, "values": [reservation]}
    return {"reservation_affinity": affinity}


@pytest.mark.parametrize("email", ["nope", f"other@{PROJECT}.iam.gserviceaccount.com"])
def test_pool_when_its_service_account_is_not_there_then_400(email: str) -> None:
    text = f'Service account "{email}" does not exist.'
    assert in_world(lambda world: create(world, service_account=email)) == ("INVALID_ARGUMENT", text)


@pytest.mark.parametrize(
    "name", ["nobodys", "theirs", "projects/other/reservations/ours", "projects/x/reservations/ours"]
)
def test_pool_when_its_reservation_is_not_there_then_404(name: str) -> None:
    text = f'Google Compute Engine: reservation "{name}" not found for node pool "p" at zone "{ZONE}".'
    assert in_world(lambda world: create(world, **taking(name))) == ("NOT_FOUND", text)


def carded(network: str, subnetwork: str) -> Json:
    return {"network_config": {"additional_node_network_configs": [{"network": network, "subnetwork": subnetwork}]}}


def placed(policy: str) -> Json:
    return {"placement_policy": {"type_": "COMPACT", "policy_name": policy}}


def pool_with(parts: Json) -> Json:
    return {**gpu_pool("p", "a2-highgpu-1g", "nvidia-tesla-a100", 1, 1), **parts}


ABSENT: dict[str, tuple[Json, str]] = {
    "network": (carded("nope", "gpu-sub"), f"{PROJECT}/global/networks/nope"),
    "subnetwork": (carded("gpu-net", "nope"), f"{PROJECT}/regions/us-central1/subnetworks/nope"),
    "network of another project": (
        carded("projects/other/global/networks/nope", "gpu-sub"),
        "other/global/networks/nope",
    ),
    "placement policy": (placed("nope"), f"{PROJECT}/regions/us-central1/resourcePolicies/nope"),
}


@pytest.mark.parametrize("case", ABSENT)
def test_pool_when_its_network_or_policy_is_not_there_then_404(case: str) -> None:
    parts, name = ABSENT[case]
    text = f"The resource 'projects/{name}' was not found"
    assert in_world(lambda world: made(world, pool_with(parts))) == ("NOT_FOUND", text)


@pytest.mark.parametrize(
    "parts",
    [
        {},
        carded("gpu-net", "gpu-sub"),
        carded("projects/other/global/networks/shared", "gpu-sub"),
        placed("compact"),
        placed(""),
    ],
)
def test_pool_when_its_network_and_policy_were_declared_then_made(parts: Json) -> None:
    assert in_world(lambda world: made(world, pool_with(parts))) == ("", "")


ACCEPTED: dict[str, Json] = {
    "an account": {"service_account": EMAIL},
    "the default account": {"service_account": "default"},
    "a reservation": taking("ours"),
    "a reservation by its whole name": taking(f"projects/{PROJECT}/reservations/ours"),
    "a reservation of another project": taking("projects/other/reservations/theirs"),
}


@pytest.mark.parametrize("config", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_pool_when_it_names_what_was_declared_then_made(config: Json) -> None:
    assert in_world(lambda world: create(world, **config)) == ("", "")


def test_declare_when_some_is_there_already_then_only_the_rest_is_told() -> None:
    more: Json = {"project": PROJECT, "serviceAccounts": [EMAIL, "new@x"], "reservations": [OURS, OURS | {"name": "b"}]}
    made = in_world(lambda world: declare(world.gke.service(), more))
    assert made == ["service account new@x", "reservation b"]


WRONG: dict[str, tuple[Json, str, tuple[str | int, ...]]] = {
    "key": ({"accounts": []}, 'there is no key "accounts"', ("accounts",)),
    "no mapping": ({"reservations": ["ours"]}, "reservations[0] must be a mapping", ("reservations", 0)),
    "key within": ({"reservations": [OURS | {"size": 1}]}, 'there is no key "size"', ("reservations", 0, "size")),
    "resource": ({"resources": ["gpu-net"]}, "gpu-net is not a resource that a pool can name", ("resources", 0)),
    "zone": (
        {"reservations": [OURS | {"zone": "us-central1-z"}]},
        "zone us-central1-z does not exist",
        ("reservations", 0, "zone"),
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_declare_when_it_is_not_understood_then_refused_with_its_place(case: str) -> None:
    wrong, text, at = WRONG[case]

    def act(world: World) -> tuple[str, tuple[str | int, ...]]:
        with pytest.raises(WrongEntry) as caught:
            declare(world.gke.service(), {"project": PROJECT, **wrong})
        return str(caught.value).partition(";")[0], caught.value.at

    assert in_world(act) == (text, at)


def test_request_when_declared_for_then_it_is_accepted() -> None:
    config = {"service_account": "own@x", **taking("projects/owner/reservations/mine")}
    pool = gpu_pool("p", "a2-highgpu-1g", "nvidia-tesla-a100", 1, 3, **config) | placed("mine")
    request = {"parent": CLUSTER, "nodePool": pool}

    def act(world: World) -> tuple[list[str], list[str], tuple[str, str]]:
        service = world.gke.service()
        made, again = declare_for(service, request), declare_for(service, request)
        service.create_node_pool(wire.CreateNodePoolRequest(parent=CLUSTER, node_pool=pool))
        return made, again, create(world, **taking("projects/owner/reservations/mine"))

    made, again, (code, _) = in_world(act)
    declared = ["service account own@x", "reservation mine", "regions/us-central1/resourcePolicies/mine"]
    assert (made, again, code) == (declared, [], "ALREADY_EXISTS")
