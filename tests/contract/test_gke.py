"""GKE keeps the contract: the real SDK over a socket, by gRPC and by REST, against the sandbox."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest
from google.cloud import container_v1 as wire
from google.cloud.container_v1.services.cluster_manager.transports import ClusterManagerGrpcTransport
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]  # ships no types

from gpukube.core.resolve import GPU_TAINT
from gpukube.core.values import Disk, Nodes, Request, Settings, Taint, Upgrade
from gpukube.gpu.catalog import require_machine
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube.testing.contract import Fault, Harness, ProviderContract
from gpukube_gke.pool.translate import CREATE
from gpukube_gke.provider import GkeProvider
from gpukube_sandbox import daemon
from sandbox_tests.gke.clients import signed_channel
from sandbox_tests.sandboxes import emptied
from sandbox_tests.waiting import PATIENCE_S, wait_for
from tests.unit.gpukube_gke.targets import ZONAL, gke_target

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.core.values import Target
    from gpukube.provider import Cloud
    from gpukube_sandbox.daemon import SandboxInfo

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
    "permission": {"action": "status", "status": 401, "times": 0, **POST},  # a new token is tried once
    "busy": {
        "action": "status",
        "status": 429,
        "message": 'cluster "train" hits the concurrent operations quota 5',
        **POST,
    },
}
"""Two ways in which GKE says each."""

LOCATION = "projects/ml-prod/locations/us-central1-a"
PARENT = f"{LOCATION}/clusters/train"
MESSAGES = {
    "create_node_pool": wire.CreateNodePoolRequest,
    "update_node_pool": wire.UpdateNodePoolRequest,
    "set_node_pool_size": wire.SetNodePoolSizeRequest,
    "set_node_pool_autoscaling": wire.SetNodePoolAutoscalingRequest,
    "set_node_pool_management": wire.SetNodePoolManagementRequest,
}
EDITS: dict[str, dict[str, object]] = {
    "a label comes": {"labels": {"team": "vision", "tier": "gold"}},
    "a label changes": {"labels": {"team": "speech"}},
    "a label goes": {"labels": {}},
    "protection": {"protect": True},
    "a taint": {"taints": (GPU_TAINT, Taint("dedicated", "ml", "NoSchedule"))},
    "a taint that evicts": {"taints": (GPU_TAINT, Taint("dedicated", "ml", "NoExecute"))},
    "size": {"nodes": Nodes(2, 2, 2, autoscaled=False)},
    "autoscaler": {"nodes": Nodes(1, 1, 3, autoscaled=True)},
    "tags": {"tags": {"env": "dev"}},
    "machine type": {"machine": require_machine("gke", "g2-standard-12")},
    "disk": {"disk": Disk(200, "pd-ssd")},
    "time-slicing": {"sharing": Sharing(None, Slicing("time-slicing", 4))},
    "MPS": {"sharing": Sharing(None, Slicing("mps", 8))},
    "no driver": {"driver_owner": "none"},
    "management": {"native": {"management": {"autoRepair": False}}},
    "surge": {"upgrade": Upgrade("0", "1")},
    "network": {"native": {"config": {"gvnic": {"enabled": True}, "fastSocket": {"enabled": True}, "tags": ["gpu"]}}},
    "consolidation": {
        "nodes": Nodes(1, 1, 3, autoscaled=True),
        "native": {"config": {"consolidationDelay": "600s"}},
    },
    "driver version": {"driver_version": "latest"},
    "private nodes": {"native": {"networkConfig": {"enablePrivateNodes": True}}},
    "image": {"image": "UBUNTU_CONTAINERD", "driver_version": "default"},
    "image and driver back": {"image": "COS_CONTAINERD", "driver_version": "latest"},
    "kubelet and kernel": {
        "kubelet": {"cpuManagerPolicy": "static", "podPidsLimit": 4096, "cpuCFSQuota": False},
        "sysctls": {"net.core.somaxconn": "4096"},
        "hugepages": {"2Mi": 512},
    },
    "disk performance": {"disk": Disk(200, "hyperdisk-balanced", 6000, 500)},
    "blue-green": {
        "native": {
            "upgradeSettings": {
                "strategy": "BLUE_GREEN",
                "blueGreenSettings": {"standardRolloutPolicy": {"batchNodeCount": 2, "batchSoakDuration": "60s"}},
            }
        }
    },
    "containerd": {"native": {"config": {"containerdConfig": {"writableCgroups": {"enabled": True}}}}},
    "everything at once": {
        "labels": {"team": "speech"},
        "protect": True,
        "taints": (GPU_TAINT, Taint("dedicated", "ml", "NoSchedule")),
        "nodes": Nodes(2, 2, 2, autoscaled=False),
        "disk": Disk(300, "pd-balanced"),
        "sharing": Sharing(None, Slicing("time-slicing", 2)),
        "upgrade": Upgrade("2"),
        "native": {"management": {"autoRepair": False}},
    },
}
"""What changes in place of the plain pool; zones do not, which a cluster of one zone has not."""


@dataclass
class GkeHarness:
    info: SandboxInfo
    provider: GkeProvider
    cloud: Cloud
    faults: Mapping[Fault, dict[str, object]]
    client: wire.ClusterManagerClient
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
        wait_for(lambda: self.cloud.poll(operation).done)

    def move_count(self, name: str) -> None:
        daemon.tamper(self.info, "train", name, initialNodeCount=3)

    def inject(self, fault: Fault, pool: str) -> None:
        parts = dict(self.faults[fault])
        action = str(parts.pop("action"))
        if action == "operation":
            parts["pool"] = f"^{pool}$"
        daemon.add_fault(self.info, action, **parts)

    def edits(self) -> Mapping[str, Target]:
        plain = self.target("plain")
        return {name: replace(plain, **changes) for name, changes in EDITS.items()}  # type: ignore[arg-type]  # test data

    def replace_labels(self, name: str, labels: Mapping[str, str]) -> None:
        self.update(name, labels={"labels": dict(labels)})

    def without_copy(self, request: Request) -> Request:
        pool = cast("Mapping[str, dict[str, Any]]", request.params["nodePool"])
        labels = pool["config"]["resourceLabels"].items()
        config = {**pool["config"], "resourceLabels": {k: v for k, v in labels if not k.startswith("gpukube_")}}
        return replace(request, params={**request.params, "nodePool": {**pool, "config": config}})

    def clone(self, name: str, to: str) -> None:
        labels = {k: v for k, v in self.pool(name).config.resource_labels.items() if not k.startswith("goog-")}
        pool = {"name": to, "initialNodeCount": 1, "config": {"machineType": "e2-medium", "resourceLabels": labels}}
        operation = self.cloud.send(Request("gke", CREATE, {"parent": PARENT, "nodePool": pool}))
        wait_for(lambda: self.cloud.poll(operation).done)

    def add_tag(self, name: str, key: str, value: str) -> None:
        labels = {k: v for k, v in self.pool(name).config.resource_labels.items() if not k.startswith("goog-")}
        self.update(name, resource_labels={"labels": {**labels, key: value}})

    def touch(self, name: str) -> str:
        label = {"touched-by": "somebody"}
        self.update(name, labels={"labels": {**self.pool(name).config.labels, **label}})
        return "touched-by"

    def update(self, name: str, **change: object) -> None:
        """Update a pool as another client does, and wait for it."""
        operation = self.client.update_node_pool(request={"name": self.path(name), **change}, timeout=PATIENCE_S)
        path = f"{LOCATION}/operations/{operation.name}"
        wait_for(lambda: self.client.get_operation(name=path, timeout=PATIENCE_S).status.name == "DONE")

    def pool(self, name: str) -> wire.NodePool:
        return self.client.get_node_pool(name=self.path(name), timeout=PATIENCE_S)

    @staticmethod
    def path(name: str) -> str:
        return f"{PARENT}/nodePools/{name}"

    def accepts(self, request: Request) -> bool:
        params = dict(request.params)
        if request.operation.startswith("set_"):
            params.pop("etag", None)  # compared by the live half, and not sent
        kind = MESSAGES[request.operation]
        read = MessageToDict(kind.pb(kind.from_json(json.dumps(params))))  # type: ignore[attr-defined]  # proto-plus
        return bool(without_defaults(read) == without_defaults(params))

    def pause(self) -> None:
        time.sleep(0.01)


@pytest.fixture(scope="module")
def running(running_sandbox: SandboxInfo) -> SandboxInfo:
    return emptied(running_sandbox, SPEED)


@pytest.mark.turns(2)  # one of the two transports
class TestGke(ProviderContract):
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run a test of faults with both kinds of them, and any other once."""
        kinds = {"late": LATE, "early": EARLY} if "fault" in metafunc.fixturenames else {"late": LATE}
        if "harness" in metafunc.fixturenames:
            metafunc.parametrize("harness", kinds.values(), ids=kinds, indirect=True)

    @pytest.fixture(params=["grpc", "rest"])
    def transport(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    @pytest.fixture
    def harness(self, running: SandboxInfo, transport: str, request: pytest.FixtureRequest) -> Iterator[Harness]:
        daemon.reset(running)
        daemon.add_gke_cluster(running, "ml-prod", "us-central1-a", "train")
        provider = GkeProvider()
        endpoints = {"gke": running.gke_url} | ({"gke-grpc": running.gke_grpc} if transport == "grpc" else {})
        cloud = provider.connect(ZONAL, Settings(endpoints, sandbox=True, secret=running.secret))
        with signed_channel(running) as channel:
            other = wire.ClusterManagerClient(transport=ClusterManagerGrpcTransport(channel=channel))
            yield GkeHarness(running, provider, cloud, request.param, other)
        cloud.close()


def without_defaults(value: object) -> object:
    """proto3 sends no zeros and no false."""
    if isinstance(value, dict):
        return {key: without_defaults(item) for key, item in value.items() if item not in (0, False)}
    return [without_defaults(item) for item in value] if isinstance(value, list) else value
