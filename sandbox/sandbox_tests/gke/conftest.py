"""A cluster in the sandbox, and the real client over both of its transports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("google.cloud.container_v1", reason="needs google-cloud-container")

from sandbox_tests.gke.clients import Gke, add_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube_sandbox.daemon import SandboxInfo


@pytest.fixture(scope="session", params=["grpc", "rest"])
def any_client(running_sandbox: SandboxInfo, request: pytest.FixtureRequest) -> Iterator[Gke]:
    """One client per transport for the whole session: making one takes longer than a test."""
    client = Gke(running_sandbox, request.param)
    yield client
    client.close()


@pytest.fixture
def gke(sandbox: SandboxInfo, any_client: Gke) -> Gke:
    """An empty sandbox with one zonal cluster that has a pool of CPUs."""
    add_cluster(sandbox)
    return any_client


@pytest.fixture
def with_cluster(sandbox: SandboxInfo, any_client: Gke) -> Callable[..., Gke]:
    """Make the cluster with other options."""

    def make(**options: object) -> Gke:
        add_cluster(sandbox, **options)
        return any_client

    return make
