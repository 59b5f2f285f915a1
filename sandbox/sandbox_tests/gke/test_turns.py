"""What comes at an awkward moment, on a clock turned by hand."""

from __future__ import annotations

import asyncio

from google.cloud import container_v1 as wire

from gpukube_sandbox.clock import ManualClock
from gpukube_sandbox.faults import FaultBook
from gpukube_sandbox.gke.making import CPU_POOL, GkeRequest, make_cluster
from gpukube_sandbox.gke.service import GkeService
from gpukube_sandbox.gke.wire.enums import PoolStatus
from gpukube_sandbox.stock import Stock

PLACE = "projects/ml-prod/locations/us-central1-a"
POOL = f"{PLACE}/clusters/train/nodePools/{CPU_POOL}"
LONG_S = 10_000
"""More than anything here takes."""


def test_labels_when_a_cancelled_upgrade_left_a_machine_booting_then_it_gets_them_too() -> None:
    async def story() -> list[dict[str, str]]:
        clock = ManualClock()
        service = GkeService(clock, FaultBook(), Stock(clock))
        wanted = GkeRequest("ml-prod", "us-central1-a", "train")
        cluster = await make_cluster(service, wanted, "https://kube", b"authority", None)
        await clock.advance(LONG_S)
        pool = cluster.pools[CPU_POOL]
        pool.wire.upgrade_settings = wire.NodePool.UpgradeSettings(max_unavailable=1)  # the old machine goes first
        before = pool.all_nodes()
        image = wire.UpdateNodePoolRequest(name=POOL, image_type="UBUNTU_CONTAINERD")
        operation = service.update_node_pool(image).name
        while pool.all_nodes() in (before, []):
            await clock.advance(1)
        service.cancel_operation(wire.CancelOperationRequest(name=f"{PLACE}/operations/{operation}"))
        while pool.wire.status != PoolStatus.RUNNING:
            await clock.advance(1)
        assert await cluster.kube.api.list("nodes") == [], "it boots"
        labels = wire.NodeLabels(labels={"team": "x"})
        service.update_node_pool(wire.UpdateNodePoolRequest(name=POOL, labels=labels))
        await clock.advance(LONG_S)
        found = await cluster.kube.api.list("nodes")
        await cluster.kube.stop()
        return [node["metadata"]["labels"] for node in found]

    assert [labels.get("team") for labels in asyncio.run(story())] == ["x"]
