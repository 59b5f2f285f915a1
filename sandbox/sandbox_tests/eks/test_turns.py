"""What happens when the machine stood still and everything is due at once: on a clock turned by hand."""

from __future__ import annotations

import asyncio

from gpukube_sandbox.clock import ManualClock
from gpukube_sandbox.eks.making import EksRequest, make_cluster
from gpukube_sandbox.eks.service import EksService
from gpukube_sandbox.stock import Stock
from sandbox_tests.eks.aws import ACCOUNT, NAME, REGION

LONG_S = 10_000
"""More than anything here takes."""


async def stall(clock: ManualClock) -> None:
    """Let everything come due before anything gets its turn."""
    await clock.advance(LONG_S, turns=0)
    await clock.advance(0)


def test_config_when_the_machine_stood_still_then_a_booting_node_gets_the_new_labels_too() -> None:
    async def story() -> list[dict[str, str]]:
        clock = ManualClock()
        service = EksService(clock, lambda *_: None, Stock(clock))
        cluster = await make_cluster(service, EksRequest(ACCOUNT, REGION, NAME), "https://kube", b"authority", None)
        await clock.advance(LONG_S)
        service.update_config(cluster, "system", {"scalingConfig": {"desiredSize": 2}})
        await clock.advance(50)  # the second node boots
        service.update_config(cluster, "system", {"labels": {"addOrUpdateLabels": {"team": "x"}}})
        await clock.advance(16)  # it is waited for
        assert [update.status for update in cluster.groups["system"].updates.values()] == ["Successful", "InProgress"]
        while cluster.groups["system"].status != "ACTIVE":
            await stall(clock)
        await stall(clock)
        found = await cluster.kube.api.list("nodes")
        await cluster.kube.stop()
        return [node["metadata"]["labels"] for node in found]

    assert [labels.get("team") for labels in asyncio.run(story())] == ["x", "x"]
