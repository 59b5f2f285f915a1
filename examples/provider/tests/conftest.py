"""A Nimbus cloud with one cluster, whose Kubernetes API is on loopback."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kubernetes_api import KubernetesApi

from gpukube_nimbus.api import NimbusApi

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the file of a cloud with the cluster valley-1/train, set as Nimbus's endpoint."""
    path = tmp_path / "nimbus.json"
    monkeypatch.setenv("GPUKUBE_NIMBUS_ENDPOINT", str(path))
    with KubernetesApi(NimbusApi(str(path)), "valley-1", "train") as kubernetes:
        NimbusApi(str(path)).make_cluster("valley-1", "train", kubernetes.url)
        yield path
