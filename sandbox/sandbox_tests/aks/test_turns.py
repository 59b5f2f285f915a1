"""Work that meets other work at the worst moment: on a clock turned by hand."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from gpukube_sandbox.aks.clusters import Cluster
from gpukube_sandbox.aks.preconditions import Preconditions
from gpukube_sandbox.aks.service import AksService
from gpukube_sandbox.aks.throttle import Throttle
from gpukube_sandbox.clock import ManualClock
from gpukube_sandbox.kube.cluster import KubeCluster
from gpukube_sandbox.stock import Stock
from sandbox_tests.aks.arm import API, GROUP, NAME, SUBSCRIPTION, T4, Json
from sandbox_tests.aks.test_nodes import is_ready

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

LASTS_S = 138
"""A creation of one machine, by the usual pace."""


class Bench:
    """One cluster on a manual clock."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.service = AksService(self.clock, lambda *_: None, Throttle(self.clock), Stock(self.clock))
        self.kube = KubeCluster(NAME, self.clock, "token")
        self.cluster = Cluster(
            SUBSCRIPTION, GROUP, NAME, "eastus", "1.34.2", self.kube, "https://kube", b"", "token", self.service.supply
        )

    @property
    def state(self) -> str:
        return self.cluster.pools["gpu1"].state

    def put(self, **properties: object) -> None:
        self.service.put_pool(
            self.cluster, "gpu1", {"properties": {**T4, **properties}}, API, Preconditions(None, None)
        )

    def abort(self) -> None:
        self.service.abort_pool(self.cluster, "gpu1")


def play(story: Callable[[Bench], Awaitable[None]]) -> None:
    async def main() -> None:
        bench = Bench()
        await bench.kube.start()
        try:
            await story(bench)
        finally:
            await bench.kube.stop()

    asyncio.run(main())


def test_abort_when_the_operation_was_about_to_end_then_it_is_aborted_all_the_same() -> None:
    async def story(bench: Bench) -> None:
        bench.put()
        await bench.clock.advance(LASTS_S - 1)
        assert bench.state == "Creating"
        await bench.clock.advance(2, turns=0)  # its last sleep is over, and its turn still to come
        bench.abort()
        await bench.clock.advance(bench.service.pace.cancel_s / 2)
        assert bench.state == "Canceling"
        await bench.clock.advance(bench.service.pace.cancel_s)
        assert bench.state == "Canceled"

    play(story)


def test_update_when_an_abort_left_a_machine_booting_then_it_comes_changed_and_ready() -> None:
    async def story(bench: Bench) -> None:
        bench.service.pace.boot_s = 1000
        bench.put()
        await bench.clock.advance(100)
        bench.abort()
        await bench.clock.advance(100)
        bench.put(nodeLabels={"team": "x"})
        while bench.state != "Succeeded":
            await bench.clock.advance(1)
        (node,) = await bench.kube.api.list("nodes")
        labels: Json = node["metadata"]["labels"]
        assert (labels.get("team"), is_ready(node)) == ("x", True)

    play(story)
