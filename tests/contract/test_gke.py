"""GKE keeps the contract: the real SDK over a socket, by gRPC and by REST, against the sandbox."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import pytest
from google.cloud import container_v1 as wire
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]  # ships no types

from gpukube.core.values import Nodes, Request, Settings
from gpukube.gpu.sharing import MigCut, Sharing
from gpukube.sandbox import daemon
from gpukube.testing.contract import Fault, Harness, ProviderContract
from gpukube_gke.provider import GkeProvider
from gpukube_gke.translate import CREATE
from tests.unit.gpukube_gke.targets import ZONAL, gke_target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.core.values import Target
    from gpukube.provider import Cloud
    from gpukube.sandbox.daemon import SandboxInfo

SPEED = 20000.0
POST = {"service": "gke", "method": "POST", "path": "/nodePools"}

COMMON: Mapping[Fault, dict[str, object]] = {
    "drop-before": {"action": "drop-before", **POST},
    "drop-after": {"action": "drop-after", **POST},
}
LATE: Mapping[Fault, dict[str, object]] = {
    **COMMON,
    "throttle": {"action": "status", "status": 429, **POST},
    "capacity": {"action": "operation", "code": "GCE_STOCKOUT"},
    "quota": {"action": "operation", "code": "GCE_QUOTA_EXCEEDED"},
    "permission": {"action": "operation", "code": "PERMISSION_DENIED"},
    "busy": {"action": "background", "seconds": 1e6},
}
EARLY: Mapping[Fault, dict[str, object]] = {
    **COMMON,
    "throttle": {"action": "status", "status": 429, "times": 2, **POST},
    "capacity": {"action": "operation", "code": "ZONE_RESOURCE_POOL_EXHAUSTED"},
    "quota": {"action": "operation", "code": "INSUFFICIENT_QUOTA"},
    "permission": {"action": "status", "status": 401, **POST},
    "busy": {
        "action": "status",
        "status": 429,
        "message": 'cluster "train" hits the concurrent operations quota 5',
        **POST,
    },
}
"""Two ways in which GKE says each."""


@dataclass
class GkeHarness:
    info: SandboxInfo
    provider: GkeProvider
    cloud: Cloud
    faults: Mapping[Fault, dict[str, object]]
    package: str = "gpukube_gke"
    sdk: str = "google"

    def target(self, kind: Literal["plain", "mig", "autoscaled"]) -> Target:
        if kind == "mig":
            cut = Sharing(mig=MigCut("1g.5gb", "single"))
            return gke_target(cluster=ZONAL, name="p-mig", pool="p-mig", sharing=cut)
        plain = gke_target(
            "g2-standard-8", cluster=ZONAL, name=f"p-{kind}", pool=f"p-{kind}", labels={"team": "vision"}
        )
        return plain if kind == "plain" else replace(plain, nodes=Nodes(1, 1, 3, autoscaled=True))

    def add_foreign_pool(self, name: str) -> None:
        pool = {"name": name, "initialNodeCount": 1, "config": {"machineType": "e2-medium"}}
        parent = "projects/ml-prod/locations/us-central1-a/clusters/train"
        operation = self.cloud.send(Request("gke", CREATE, {"parent": parent, "nodePool": pool}))
        while not self.cloud.poll(operation).done:
            self.pause()

    def move_count(self, name: str) -> None:
        daemon.tamper(self.info, "train", name, initialNodeCount=3)

    def inject(self, fault: Fault, pool: str) -> None:
        parts = dict(self.faults[fault])
        action = str(parts.pop("action"))
        if action == "operation":
            parts["pool"] = f"^{pool}$"
        daemon.add_fault(self.info, action, **parts)

    def accepts(self, request: Request) -> bool:
        read = wire.CreateNodePoolRequest.from_json(json.dumps(request.params))
        return bool(MessageToDict(wire.CreateNodePoolRequest.pb(read)) == request.params)

    def pause(self) -> None:
        time.sleep(0.01)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxInfo]:
    state_dir = tmp_path_factory.mktemp("sandbox")
    yield daemon.up(state_dir, SPEED)
    daemon.down(state_dir)


class TestGke(ProviderContract):
    @pytest.fixture(params=["grpc", "rest"])
    def transport(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    @pytest.fixture(params=[LATE, EARLY], ids=["late", "early"])
    def harness(self, running: SandboxInfo, transport: str, request: pytest.FixtureRequest) -> Iterator[Harness]:
        daemon.reset(running)
        daemon.add_gke_cluster(running, "ml-prod", "us-central1-a", "train")
        provider = GkeProvider()
        endpoints = {"gke": running.gke_url} | ({"gke-grpc": running.gke_grpc} if transport == "grpc" else {})
        cloud = provider.connect(ZONAL, Settings(endpoints, sandbox=True))
        yield GkeHarness(running, provider, cloud, request.param)
        cloud.close()
