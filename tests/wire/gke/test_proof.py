"""What is promised of a GKE pool is what its nodes come to show, with nothing of ours in the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.core.values import Nodes
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from tests.unit.gpukube_gke.targets import desire, gke_target
from tests.wire.gke.living import prove

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube.core.values import Operation, Progress, Target
    from gpukube_gke.live.client import GkeCloud

    Follow = Callable[[GkeCloud, Operation], Progress]

CUT = MigCut("1g.5gb", "single")
POOLS = {
    7: gke_target("a2-highgpu-1g", sharing=Sharing(CUT)),
    56: gke_target("a2-highgpu-8g", sharing=Sharing(CUT)),
    336: gke_target("a2-megagpu-16g", sharing=Sharing(CUT, Slicing("time-slicing", 3))),
    8: gke_target(
        "g2-standard-4", sharing=Sharing(None, Slicing("time-slicing", 4)), nodes=Nodes(2, 2, 2, autoscaled=False)
    ),
    16: gke_target("g2-standard-24", sharing=Sharing(None, Slicing("mps", 8))),
    2: gke_target("n1-standard-8", ("T4", 2)),
}


@pytest.mark.parametrize(("devices", "target"), POOLS.items(), ids=[str(devices) for devices in POOLS])
def test_pool_when_its_nodes_are_up_shows_the_devices_promised(
    devices: int, target: Target, cloud: GkeCloud, follow: Follow
) -> None:
    desired = cloud.complete(desire(target))
    assert follow(cloud, cloud.send(desired.create)).done

    assert desired.ownership.advertiser == "cloud"
    assert desired.promise.total(desired.promise.nodes.count) == {"nvidia.com/gpu": devices}
    assert prove(cloud, desired).total == {"nvidia.com/gpu": devices}
