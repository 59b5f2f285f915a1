"""A sandbox that holds the cluster of the examples, and connections to it by the real SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.core.values import ClusterRef, Settings
from gpukube_aks import AksProvider
from gpukube_aks.live.client import AksCloud
from gpukube_sandbox import daemon
from sandbox_tests.sandboxes import emptied
from tests.builders import CLUSTER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube_sandbox.daemon import SandboxInfo

    Connect = Callable[..., AksCloud]

SPEED = 2000.0
RESERVED = (
    f"/subscriptions/{CLUSTER.identity['subscription']}/resourceGroups/ml/providers/Microsoft.Compute"
    "/capacityReservationGroups/t4"
)
"""A reservation group that exists."""


@pytest.fixture
def sandbox(running_sandbox: SandboxInfo) -> SandboxInfo:
    """Return the test a sandbox that holds the cluster of the examples and nothing else."""
    emptied(running_sandbox, SPEED)
    daemon.add_cluster(running_sandbox, CLUSTER.identity["subscription"], "ml", "train")
    daemon.declare(running_sandbox, "aks", resources=[RESERVED])
    return running_sandbox


@pytest.fixture
def connect(sandbox: SandboxInfo) -> Iterator[Connect]:
    """Connect to a cluster of the sandbox as the engine does; closed after the test."""
    made: list[AksCloud] = []

    def _connect(cluster: ClusterRef = CLUSTER, timeout_s: float = 60.0) -> AksCloud:
        settings = Settings({"aks": sandbox.arm_url}, sandbox=True, secret=sandbox.secret, request_timeout_s=timeout_s)
        cloud = AksProvider().connect(cluster, settings)
        assert isinstance(cloud, AksCloud)
        made.append(cloud)
        return cloud

    yield _connect
    for cloud in made:
        cloud.close()


@pytest.fixture
def cloud(connect: Connect) -> AksCloud:
    """The cluster of the examples."""
    return connect()
