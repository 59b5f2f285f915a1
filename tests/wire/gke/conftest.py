"""A sandbox that holds the cluster of the examples, and connections to it by the real SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.core.values import ClusterRef, Settings
from gpukube_gke.live.client import GkeCloud
from gpukube_sandbox import daemon
from sandbox_tests.sandboxes import emptied
from sandbox_tests.waiting import wait_for
from tests.unit.gpukube_gke.targets import CLUSTER, PROVIDER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube_sandbox.daemon import SandboxInfo

    Connect = Callable[..., GkeCloud]

SPEED = 5000.0


@pytest.fixture
def sandbox(running_sandbox: SandboxInfo) -> SandboxInfo:
    """Return the test a sandbox that holds nothing but the cluster of the examples."""
    emptied(running_sandbox, SPEED)
    daemon.add_gke_cluster(running_sandbox, "ml-prod", "us-central1", "train")
    return running_sandbox


@pytest.fixture(params=["grpc", "rest"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def connect(sandbox: SandboxInfo, transport: str) -> Iterator[Connect]:
    """Connect to a cluster of the sandbox as the engine does; closed after the test."""
    made: list[GkeCloud] = []

    def _connect(cluster: ClusterRef = CLUSTER, timeout_s: float = 60.0) -> GkeCloud:
        endpoints = {"gke": sandbox.gke_url} | ({"gke-grpc": sandbox.gke_grpc} if transport == "grpc" else {})
        cloud = PROVIDER.connect(
            cluster, Settings(endpoints, sandbox=True, secret=sandbox.secret, request_timeout_s=timeout_s)
        )
        assert isinstance(cloud, GkeCloud)
        made.append(cloud)
        return cloud

    yield _connect
    for cloud in made:
        cloud.close()


@pytest.fixture
def cloud(connect: Connect) -> GkeCloud:
    """The cluster of the examples."""
    return connect()


EDITED_SPEED = 50000.0


@pytest.fixture(scope="module")
def edited_world(running_sandbox: SandboxInfo) -> SandboxInfo:
    """Return the tests of one module that change pools a cluster on no release channel."""
    emptied(running_sandbox, EDITED_SPEED)
    daemon.add_gke_cluster(running_sandbox, "ml-prod", "us-central1", "train", options={"releaseChannel": ""})
    daemon.declare(running_sandbox, "gke", project="ml-prod", reservations=[{"name": "ours"}])
    return running_sandbox


@pytest.fixture
def edited_sandbox(edited_world: SandboxInfo) -> SandboxInfo:
    daemon.configure(edited_world, speed=EDITED_SPEED)
    return edited_world


@pytest.fixture(scope="module")
def connected(edited_world: SandboxInfo) -> Iterator[GkeCloud]:
    """Connect by gRPC; that REST does the same is for the contract to show."""
    endpoints = {"gke": edited_world.gke_url, "gke-grpc": edited_world.gke_grpc}
    cloud = PROVIDER.connect(
        CLUSTER, Settings(endpoints, sandbox=True, secret=edited_world.secret, request_timeout_s=60.0)
    )
    assert isinstance(cloud, GkeCloud)
    yield cloud
    cloud.close()


@pytest.fixture
def living(edited_sandbox: SandboxInfo, connected: GkeCloud) -> Iterator[GkeCloud]:
    """Return the test a cluster without pools of ours; those it makes are taken away."""
    yield connected
    daemon.clear_faults(edited_sandbox)
    daemon.configure(edited_sandbox, speed=EDITED_SPEED)
    for pool in connected.pools():
        if pool.state == "deleting":
            wait_for(lambda name=pool.name: connected.pool(name) is None, lambda name=pool.name: name)  # type: ignore[misc]  # a default binds it
        elif pool.owner:
            daemon.tamper(edited_sandbox, "train", pool.name, delete=True)
