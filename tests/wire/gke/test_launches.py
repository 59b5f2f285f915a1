"""The launches of a node pool that was created empty and scaled, in a zone without machines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.core.launches import Launches
from gpukube.core.values import Nodes
from gpukube.errors import StockOut
from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.unit.gpukube_gke.targets import CLUSTER, PROVIDER, desire, gke_target
from tests.wire.gke.living import finish

if TYPE_CHECKING:
    from gpukube.core.values import Observed
    from gpukube_gke.live.client import GkeCloud
    from gpukube_sandbox.daemon import SandboxInfo

MACHINE = "a2-highgpu-1g"
EMPTY = replace(gke_target(MACHINE, zones=("us-central1-a",)), nodes=Nodes(0, 0, 0, autoscaled=False))


def test_launches_when_there_are_no_machines_then_told_by_the_pool(sandbox: SandboxInfo, cloud: GkeCloud) -> None:
    daemon.set_stock(sandbox, "gke", 0, type=MACHINE)
    finish(cloud, cloud.send(desire(EMPTY).create))

    def pool() -> Observed:
        found = cloud.pool(EMPTY.name)
        assert found is not None
        return found

    assert cloud.launches(pool()) == Launches()
    cloud.send(PROVIDER.requests.scale(CLUSTER, pool(), Nodes(2, 2, 2, autoscaled=False)))
    found = wait_for(lambda: found if (found := cloud.launches(pool())).failure else None, lambda: pool().native)
    assert found is not None
    assert (type(found.failure), found.failed_at) == (StockOut, None)
