"""The launches of an agent pool in a region without machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.core.values import Ownership, Promise
from gpukube.errors import StockOut
from gpukube_aks import AksProvider
from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.builders import make_target

if TYPE_CHECKING:
    from gpukube_aks.live.client import AksCloud
    from gpukube_sandbox.daemon import SandboxInfo


def test_launches_when_there_are_no_machines_then_told_by_the_pool(sandbox: SandboxInfo, cloud: AksCloud) -> None:
    target = make_target()
    daemon.set_stock(sandbox, "aks", 0, type=target.machine.name)
    cloud.send(
        AksProvider().desired(target, Ownership("cloud", "chart", "c", {}, ""), Promise({}, target.nodes)).create
    )
    pool = wait_for(lambda: found if (found := cloud.pool(target.name)) and found.state == "failed" else None)
    assert pool is not None
    found = cloud.launches(pool)
    assert (type(found.failure), found.failed_at) == (StockOut, None)
