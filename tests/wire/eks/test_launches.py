"""The launches of a node group that was created empty and scaled, in a place with few machines."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.core.launches import Launches
from gpukube.core.values import Nodes
from gpukube.errors import StockOut
from gpukube_eks import EksProvider
from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.unit.gpukube_eks.samples import CLUSTER, desired_of, eks_target

if TYPE_CHECKING:
    from gpukube.core.values import Observed, Operation
    from gpukube_eks.live.client import EksCloud
    from gpukube_sandbox.daemon import SandboxInfo

MACHINE = "g4dn.xlarge"
EMPTY = replace(eks_target(MACHINE, name="t4", pool="t4"), nodes=Nodes(0, 0, 2, autoscaled=False))


def finish(cloud: EksCloud, operation: Operation) -> None:
    wait_for(lambda: cloud.poll(operation).done, lambda: cloud.poll(operation))


def group(cloud: EksCloud) -> Observed:
    found = cloud.pool("t4")
    assert found is not None
    return found


def launches(cloud: EksCloud) -> Launches:
    return cloud.launches(group(cloud))


def scale(cloud: EksCloud, nodes: int) -> None:
    cloud.send(EksProvider().requests.scale(CLUSTER, group(cloud), Nodes(nodes, nodes, nodes, autoscaled=False)))


def test_launches_when_there_are_no_machines_and_later_some_then_both_are_told(
    sandbox: SandboxInfo, cloud: EksCloud
) -> None:
    daemon.set_stock(sandbox, "eks", 0, type=MACHINE)
    finish(cloud, cloud.send(cloud.complete(desired_of(EMPTY)).create))
    assert launches(cloud) == Launches()

    scale(cloud, 2)
    failed = wait_for(lambda: found if (found := launches(cloud)).failure else None)
    assert failed is not None
    assert (type(failed.failure), failed.launched_at) == (StockOut, None)
    assert failed.failed_at

    daemon.clear_stock(sandbox)
    done = wait_for(lambda: found if (found := launches(cloud)).launched_at else None)
    assert done is not None
    assert (done.launched_at or 0) >= failed.failed_at


def test_launches_when_the_activities_may_not_be_read_then_from_the_health(
    sandbox: SandboxInfo, cloud: EksCloud
) -> None:
    daemon.set_stock(sandbox, "eks", 0, type=MACHINE)
    finish(cloud, cloud.send(cloud.complete(desired_of(EMPTY)).create))
    daemon.deny_permissions(sandbox, "autoscaling:DescribeScalingActivities")
    scale(cloud, 2)
    found = wait_for(lambda: found if (found := launches(cloud)).failure else None, lambda: group(cloud).native)
    assert found is not None
    assert (type(found.failure), found.failed_at) == (StockOut, None)
