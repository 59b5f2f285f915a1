"""One pod manifest, unchanged, runs on the same pool of all three clouds."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
import yaml
from httpx2 import Timeout
from lightkube import Client, KubeConfig
from lightkube.resources.core_v1 import Node, Pod

from gpukube.sandbox.environment import kubeconfig
from tests.cli.harness import EXAMPLES, Gpukube
from tests.waiting import PATIENCE_S, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.sandbox.daemon import SandboxInfo

MANIFEST = EXAMPLES / "pods" / "one-slice.yaml"
CONTEXTS = ("train", "arn:aws:eks:us-east-1:111122223333:cluster/train", "gke_ml-prod_us-central1_train")


@pytest.fixture
def created(gpukube: Gpukube) -> Gpukube:
    """Make the pools of three-clouds."""
    done = gpukube("pool", "create", "-f", EXAMPLES / "three-clouds.yaml")
    assert done.code == 0, done.err
    return gpukube


@contextmanager
def cluster_of(info: SandboxInfo, context: str) -> Iterator[Client]:
    """Connect to one of the emulated clusters by its context."""
    document = kubeconfig(info)["kubeconfig"]
    assert isinstance(document, dict)
    config = KubeConfig.from_dict({**document, "current-context": context})
    client = Client(config, timeout=Timeout(PATIENCE_S), trust_env=False)
    try:
        yield client
    finally:
        client.close()


@pytest.mark.parametrize("context", CONTEXTS)
def test_pod_when_the_manifest_is_the_same_then_every_cloud_places_it_on_the_pool(
    created: Gpukube, context: str
) -> None:
    with cluster_of(created.info, context) as client:
        pod = Pod.from_dict(yaml.safe_load(MANIFEST.read_text()))
        assert isinstance(pod, Pod)
        client.create(pod, namespace="default")

        def runs() -> bool:
            status = client.get(Pod, "one-slice", namespace="default").status
            return status is not None and status.phase in ("Running", "Succeeded")

        wait_for(runs)
        placed = client.get(Pod, "one-slice", namespace="default").spec
        assert placed is not None
        pool = {
            node.metadata.name for node in client.list(Node, labels={"gpukube.io/pool": "a100slices"}) if node.metadata
        }
        assert placed.nodeName in pool
