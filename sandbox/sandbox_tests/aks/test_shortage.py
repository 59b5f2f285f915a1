"""Pools of AKS whose machines are not available: late errors, what stays, and how it goes on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from azure.core.exceptions import HttpResponseError

from gpukube_sandbox import daemon
from gpukube_sandbox.aks.autoscaling import AksGroups
from gpukube_sandbox.aks.machines import scale_set_name
from gpukube_sandbox.faults import FaultBook
from gpukube_sandbox.kube.autoscaler.groups import Failure
from gpukube_sandbox.stock import Entry, Place
from sandbox_tests.aks.arm import GROUP, NAME, SUBSCRIPTION, T4
from sandbox_tests.aks.test_lifecycle import nodes_of
from sandbox_tests.aks.test_nodes import kube_client, nodes
from sandbox_tests.aks.test_turns import Bench, play
from sandbox_tests.waiting import wait_for

if TYPE_CHECKING:
    from sandbox_tests.aks.arm import Arm, Json

SIZE = str(T4["vmSize"])
COMPUTE = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Compute"
PLACED = {"proximityPlacementGroupID": f"{COMPUTE}/proximityPlacementGroups/near"}
SPOT = {"scaleSetPriority": "Spot"}
ZONE: Json = {"availabilityZones": ["2"]}


def limit(arm: Arm, free: int, **place: str) -> None:
    daemon.set_stock(arm.info, "aks", free, type=SIZE, **place)  # type: ignore[arg-type]  # no `then`


def taken(arm: Arm) -> object:
    (entry,) = daemon.list_stock(arm.info)
    return entry["taken"]


def failure(arm: Arm, **properties: object) -> Any:  # noqa: ANN401 - JSON
    """The error of a pool that cannot be created, equal in its operation and its state."""
    answer = arm.put("gpu", {**T4, **properties})
    assert answer.status_code in {200, 201}, answer.text
    status = answer.headers["azure-asyncoperation"]
    wait_for(lambda: arm.http.get(status).json()["status"] != "InProgress")
    operation, pool = arm.http.get(status).json(), arm.get("gpu")
    assert (operation["status"], pool["provisioningState"]) == ("Failed", "Failed")
    assert pool["status"]["provisioningError"] == operation["error"]  # type: ignore[index]  # JSON
    return operation["error"]


@pytest.mark.parametrize(
    ("properties", "code", "text"),
    [
        ({}, "AllocationFailed", "cluster is out of capacity"),
        ({"availabilityZones": ["1", "2"]}, "AllocationFailed", "cluster is out of capacity"),
        (ZONE, "ZonalAllocationFailed", f"VM size {SIZE} in zone 2"),
        (PLACED, "OverconstrainedAllocationRequest", "too restrictive"),
        (PLACED | ZONE, "OverconstrainedZonalAllocationRequest", "too restrictive"),
        (SPOT, "SkuNotAvailable", f"{SIZE}' is currently not available in location 'eastus'"),
        (SPOT | ZONE, "SkuNotAvailable", "Please try another size"),
    ],
)
def test_create_when_there_is_no_machine_then_fails_late_and_works_again_with_one(
    arm: Arm, properties: Json, code: str, text: str
) -> None:
    daemon.declare(arm.info, "aks", resources=[PLACED["proximityPlacementGroupID"]])
    limit(arm, 0)
    error = failure(arm, **properties)
    assert (error["code"], error["details"][0]["code"]) == (code, code)
    assert text in error["details"][0]["message"]
    assert error["message"].startswith(f'Code="{code}" Message="')
    daemon.clear_stock(arm.info)
    made = arm.create("gpu", {**T4, **properties})
    assert (made["provisioningState"], made.get("status")) == ("Succeeded", None)
    assert len(nodes_of(arm, "gpu")) == 1


def test_create_when_only_the_other_kind_has_machines_then_fails(arm: Arm) -> None:
    limit(arm, 0, kind="spot")
    failure(arm, **SPOT)
    arm.sdk.agent_pools.begin_delete(GROUP, NAME, "gpu").result()
    assert arm.create("gpu", T4)["provisioningState"] == "Succeeded"


def test_create_when_there_are_too_few_then_some_stay_until_the_pool_goes(arm: Arm) -> None:
    limit(arm, 2)
    assert failure(arm, count=3)["code"] == "AllocationFailed"
    wait_for(lambda: len(nodes_of(arm, "gpu")) == 2)
    assert taken(arm) == 2
    limit(arm, 3)
    assert taken(arm) == 0  # those before do not count
    limit(arm, 1)
    assert arm.create("gpu", {**T4, "count": 3})["provisioningState"] == "Succeeded"
    arm.sdk.agent_pools.begin_delete(GROUP, NAME, "gpu").result()
    assert taken(arm) == 0


def test_create_when_one_zone_has_none_then_all_in_the_other(arm: Arm) -> None:
    limit(arm, 0, zone="eastus-1")
    arm.create("gpu", {**T4, "count": 2, "availabilityZones": ["1", "2"]})
    with kube_client(arm) as kube:
        zones = [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes(kube, "gpu")]
    assert zones == ["eastus-2", "eastus-2"]


def test_upgrade_when_there_is_no_machine_for_the_surge_then_fails_and_the_old_stay(arm: Arm) -> None:
    old = {**T4, "orchestratorVersion": "1.33.5", "osSKU": "Ubuntu2404"}
    arm.create("gpu", old)
    before = nodes_of(arm, "gpu")
    limit(arm, 0)
    with pytest.raises(HttpResponseError, match="AllocationFailed"):
        arm.create("gpu", {**old, "orchestratorVersion": "1.34.2"})
    assert nodes_of(arm, "gpu") == before != []


def begin(arm: Arm, **properties: object) -> str:
    """Begin a creation that looks for machines for long; gives the address of its operation."""
    limit(arm, 1)
    daemon.configure(arm.info, pace={"shortage_s": 1_000_000})
    answer = arm.put("gpu", {**T4, "count": 2, **properties})
    wait_for(lambda: taken(arm) == 1)
    return str(answer.headers["azure-asyncoperation"])


def test_delete_when_the_pool_is_being_created_then_it_preempts_and_the_pool_goes(arm: Arm) -> None:
    status = begin(arm)
    assert arm.put("more", T4).status_code == 409
    arm.sdk.agent_pools.begin_delete(GROUP, NAME, "gpu").result()
    ended = arm.http.get(status).json()
    assert (ended["status"], ended["error"]["code"]) == ("Failed", "AKSOperationPreemptedByDelete")
    assert arm.request("GET", "/agentPools/gpu").status_code == 404
    assert (taken(arm), nodes_of(arm, "gpu")) == (0, [])


def test_delete_when_the_pool_is_being_deleted_then_409(arm: Arm) -> None:
    begin(arm)
    daemon.configure(arm.info, pace={"settle_s": 1_000_000})
    assert arm.request("DELETE", "/agentPools/gpu").status_code == 202
    assert arm.request("DELETE", "/agentPools/gpu").status_code == 409


def test_abort_when_machines_are_looked_for_then_canceled_and_a_second_one_is_204(arm: Arm) -> None:
    begin(arm)
    daemon.configure(arm.info, pace={"cancel_s": 1000})
    assert arm.request("POST", "/agentPools/gpu/abort").status_code == 202
    assert arm.request("POST", "/agentPools/gpu/abort").status_code == 204
    wait_for(lambda: arm.get("gpu")["provisioningState"] == "Canceled")
    assert len(nodes_of(arm, "gpu")) == 1  # what came stays
    assert arm.request("POST", "/agentPools/gpu/abort").status_code == 409


def test_failure_when_there_is_no_machine_then_after_minutes() -> None:
    async def story(bench: Bench) -> None:
        bench.service.stock.put(Entry(Place.of("aks", "*", SIZE, "*"), ((0.0, 0),)))
        bench.put()
        pace = bench.service.pace
        await bench.clock.advance(pace.accept_s + pace.allocate_s + pace.shortage_s - 1)
        assert bench.state == "Creating"
        await bench.clock.advance(1)
        assert bench.state == "Failed"

    play(story)


def test_spot_when_its_maximum_price_is_too_low_then_fails_with_machines_only(arm: Arm) -> None:
    error = failure(arm, **SPOT, spotMaxPrice=0.01)
    assert error["code"] == "OperationNotAllowed"
    assert "max price '0.01 USD' is lower than the current spot price '0.141 USD'" in error["message"]
    assert nodes_of(arm, "gpu") == []
    scaled = {"enableAutoScaling": True, "minCount": 0, "maxCount": 2, "count": 0}
    made = arm.create("none", {**T4, **SPOT, **scaled, "spotMaxPrice": 0.01})
    assert made["provisioningState"] == "Succeeded"
    assert arm.create("enough", {**T4, **SPOT, "spotMaxPrice": 0.142})["provisioningState"] == "Succeeded"


@pytest.mark.parametrize("by", ["price", "stock"])
def test_autoscaler_when_no_machine_comes_then_it_sees_that_after_15_minutes(by: str) -> None:
    async def story(bench: Bench) -> None:
        price = {"scaleSetPriority": "Spot", "spotMaxPrice": 0.01 if by == "price" else -1.0}
        scaled = {"enableAutoScaling": True, "minCount": 0, "maxCount": 2, "count": 0}
        bench.put(**price, **scaled)
        await bench.clock.advance(100)
        if by == "stock":
            bench.service.stock.put(Entry(Place.of("aks", "*", SIZE, "spot"), ((0.0, 1),)))
        groups = AksGroups(bench.cluster, bench.clock, FaultBook(), bench.service.quotas)
        began, growth = bench.clock.now(), asyncio.ensure_future(groups.grow(_group(bench), 2))
        while not growth.done():
            await bench.clock.advance(10)
        failed, came = growth.result(), int(by == "stock")
        assert isinstance(failed, Failure)
        assert (failed.missing, failed.seen, bench.clock.now() - began >= 900) == (2 - came, "time", True)
        pool = bench.cluster.pools["gpu1"]
        assert (len(pool.nodes), pool.properties["count"], bench.state) == (came, came, "Succeeded")

    def _group(bench: Bench) -> str:
        return scale_set_name(bench.cluster.id, "gpu1")

    play(story)
