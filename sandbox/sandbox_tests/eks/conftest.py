"""A cluster in the sandbox, and the real SDK that talks to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from sandbox_tests.eks.aws import ACCOUNT, NAME, REGION, Aws
from sandbox_tests.eks.tokens import kube_client

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from gpukube_sandbox.daemon import SandboxInfo


@pytest.fixture
def aws(sandbox: SandboxInfo) -> Aws:
    """One EKS cluster and clients for it."""
    daemon.add_eks_cluster(sandbox, ACCOUNT, REGION, NAME)
    return Aws(sandbox)


@pytest.fixture
def kube(aws: Aws) -> Iterator[httpx.Client]:
    """A client of the cluster's Kubernetes API, with a presigned token."""
    with kube_client(aws) as client:
        yield client
