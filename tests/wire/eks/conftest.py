"""A sandbox that holds the cluster of the examples, and connections to it by the real SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.core.values import ClusterRef, Settings
from gpukube_eks import EksProvider
from gpukube_eks.live.client import EksCloud
from gpukube_sandbox import daemon
from sandbox_tests.sandboxes import emptied
from tests.unit.gpukube_eks.samples import ACCOUNT, CLUSTER, REGION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube_sandbox.daemon import SandboxInfo

    Connect = Callable[..., EksCloud]

SPEED = 4000.0


@pytest.fixture
def sandbox(running_sandbox: SandboxInfo) -> SandboxInfo:
    """Return the test a sandbox that holds the cluster of the examples and nothing else."""
    emptied(running_sandbox, SPEED)
    daemon.add_eks_cluster(running_sandbox, ACCOUNT, REGION, "train")
    return running_sandbox


@pytest.fixture
def connect(sandbox: SandboxInfo) -> Iterator[Connect]:
    """Connect to a cluster of the sandbox as the engine does; closed after the test."""
    made: list[EksCloud] = []

    def _connect(cluster: ClusterRef = CLUSTER, timeout_s: float = 60.0) -> EksCloud:
        settings = Settings({"eks": sandbox.aws_url}, sandbox=True, secret=sandbox.secret, request_timeout_s=timeout_s)
        cloud = EksProvider().connect(cluster, settings)
        assert isinstance(cloud, EksCloud)
        made.append(cloud)
        return cloud

    yield _connect
    for cloud in made:
        cloud.close()


@pytest.fixture
def cloud(connect: Connect) -> EksCloud:
    """The cluster of the examples."""
    return connect()
