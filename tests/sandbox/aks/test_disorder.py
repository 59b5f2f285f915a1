"""Many requests in any order, with faults between them: what is left must fit together."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from gpukube.sandbox import daemon
from tests.sandbox.aks.arm import GROUP, NAME, T4
from tests.sandbox.aks.test_nodes import kube_client

if TYPE_CHECKING:
    from tests.sandbox.aks.arm import Arm

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
    until = time.monotonic() + 10
    while True:
        clusters: Any = daemon.status(arm.info)["clusters"]
        pools = list(clusters[0]["pools"])
        if not any(pool["state"] in BUSY for pool in pools):
            return pools
        assert time.monotonic() < until, pools
        time.sleep(0.01)


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
    time.sleep(0.1)  # machines that have just come register
    with kube_client(arm) as kube:
        joined = {node["metadata"]["name"] for node in kube.get("/api/v1/nodes").json()["items"]}
    assert joined == {node for pool in pools for node in pool["nodes"]}
    assert {pool["state"] for pool in pools} <= {"Succeeded", "Failed", "Canceled"}
    for pool in pools:  # whatever happened, a PUT mends it
        if pool["name"] in POOLS:
            assert arm.create(pool["name"], {**T4, "count": 1})["provisioningState"] == "Succeeded"
    assert [len(pool["nodes"]) for pool in settle(arm)] == [1] * len(pools)


def test_pool_when_it_vanishes_while_it_is_made_then_no_node_is_left(arm: Arm) -> None:
    daemon.configure(arm.info, speed=300)
    arm.put("gpu1", {**T4, "count": 5})
    time.sleep(0.2)
    daemon.tamper(arm.info, NAME, "gpu1", delete=True)
    daemon.configure(arm.info, speed=5000)
    time.sleep(0.05)
    assert [pool.name for pool in arm.sdk.agent_pools.list(GROUP, NAME)] == ["nodepool1"]
    with kube_client(arm) as kube:
        assert len(kube.get("/api/v1/nodes").json()["items"]) == 1
    assert arm.put("gpu1", T4).status_code == 201
