"""Many requests in any order, with faults between them: what is left must fit together."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from gpukube_sandbox import daemon
from sandbox_tests.aks.arm import GROUP, NAME, T4
from sandbox_tests.aks.test_nodes import kube_client
from sandbox_tests.waiting import wait_for

if TYPE_CHECKING:
    from sandbox_tests.aks.arm import Arm

POOLS = ("gpu1", "gpu2", "gpu3")
BUSY = {"Creating", "Updating", "Scaling", "Upgrading", "Deleting", "Canceling"}


def act(arm: Arm, dice: random.Random) -> None:
    """Do one thing; refusals and cut connections are part of it."""
    name = dice.choice(POOLS)
    match dice.randrange(8):
        case 0 | 1 | 2:
            arm.put(name, {**T4, "count": dice.randrange(4), "nodeLabels": {"n": str(dice.randrange(3))}})
        case 3:
            arm.request("DELETE", f"/agentPools/{name}")
        case 4:
            arm.request("POST", f"/agentPools/{name}/abort")
        case 5:
            code = dice.choice(["AllocationFailed", "NodesNotReady", "ErrCode_InsufficientVCPUQuota"])
            daemon.add_fault(arm.info, "operation", code=code, afterNodes=dice.randrange(3))
        case 6:
            daemon.add_fault(arm.info, dice.choice(["drop-before", "drop-after"]), nth=dice.randrange(1, 4))
        case _:
            time.sleep(dice.random() / 20)


def settle(arm: Arm) -> list[dict[str, Any]]:
    """Wait until nothing works any more; gives the pools."""

    def look() -> list[dict[str, Any]]:
        pools = pools_of(arm)
        return [] if any(pool["state"] in BUSY for pool in pools) else pools

    return wait_for(look, lambda: pools_of(arm))


def pools_of(arm: Arm) -> list[dict[str, Any]]:
    """Every pool of the one cluster; there is always one."""
    clusters: Any = daemon.status(arm.info)["clusters"]
    return list(clusters[0]["pools"])


def joined(kube: httpx.Client) -> set[str]:
    """Names of the nodes."""
    return {str(node["metadata"]["name"]) for node in kube.get("/api/v1/nodes").json()["items"]}


def assert_nodes_are_machines(arm: Arm) -> None:
    """No node without its machine; machines that have just come take a moment to register."""
    with kube_client(arm) as kube:
        machines = {node for pool in pools_of(arm) for node in pool["nodes"]}
        wait_for(lambda: joined(kube) == machines, lambda: (joined(kube), machines))


@pytest.mark.turns(3)
@pytest.mark.parametrize("seed", range(6))
def test_requests_when_in_any_order_with_faults_then_nodes_and_pools_agree(arm: Arm, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - a repeatable order, no secret
    for _ in range(60):
        try:
            act(arm, dice)
        except httpx.TransportError:
            continue
    daemon.clear_faults(arm.info)
    pools = settle(arm)
    assert_nodes_are_machines(arm)
    assert {pool["state"] for pool in pools} <= {"Succeeded", "Failed", "Canceled"}
    for pool in pools:  # whatever happened, a PUT mends it
        if pool["name"] in POOLS:
            assert arm.create(pool["name"], {**T4, "count": 1})["provisioningState"] == "Succeeded"
    assert [len(pool["nodes"]) for pool in settle(arm)] == [1] * len(pools)
    assert_nodes_are_machines(arm)


def test_pool_when_it_vanishes_while_it_is_made_then_no_node_is_left(arm: Arm) -> None:
    daemon.configure(arm.info, pace={"boot_s": 1e6})
    arm.put("gpu1", {**T4, "count": 5})
    wait_for(lambda: len(pools_of(arm)[1]["nodes"]) > 1)
    daemon.tamper(arm.info, NAME, "gpu1", delete=True)
    assert [pool.name for pool in arm.sdk.agent_pools.list(GROUP, NAME)] == ["nodepool1"]
    daemon.configure(arm.info, speed=100_000_000)
    assert arm.create("gpu2", T4)["provisioningState"] == "Succeeded"  # boots as long, and began later
    assert [pool["name"] for pool in pools_of(arm)] == ["nodepool1", "gpu2"]
    assert_nodes_are_machines(arm)
    assert arm.put("gpu1", T4).status_code == 201
