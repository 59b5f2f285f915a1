"""AKS keeps the contract: the real SDK over a socket, against the sandbox."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

import httpx
import pytest
from azure.mgmt.containerservice.models import AgentPool

from gpukube.core.resolve import GPU_TAINT
from gpukube.core.values import Nodes, Request, Settings, Taint, Upgrade
from gpukube.gpu.sharing import MigCut, Sharing
from gpukube.testing.contract import Fault, Harness, ProviderContract
from gpukube_aks.pool.translate import CREATE
from gpukube_aks.provider import AksProvider
from gpukube_sandbox import daemon
from sandbox_tests.sandboxes import emptied, signed
from sandbox_tests.waiting import PATIENCE_S, wait_for
from tests.builders import CLUSTER, make_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gpukube.core.values import Target
    from gpukube.provider import Cloud
    from gpukube_sandbox.daemon import SandboxInfo

SPEED = 4000.0
POOLS = (
    f"/subscriptions/{CLUSTER.identity['subscription']}/resourceGroups/ml/providers/Microsoft.ContainerService"
    "/managedClusters/train/agentPools"
)
BUSY_BODY = {"code": "OperationNotAllowed", "message": "Another operation (Updating) is in progress.", "details": None}

COMMON: Mapping[Fault, dict[str, object]] = {
    "throttle": {"action": "status", "method": "PUT", "status": 429, "headers": {"Retry-After": "1"}},
    "drop-before": {"action": "drop-before", "method": "PUT"},
    "drop-after": {"action": "drop-after", "method": "PUT"},
}
LATE: Mapping[Fault, dict[str, object]] = {
    **COMMON,
    "capacity": {"action": "operation", "code": "AllocationFailed"},
    "quota": {"action": "operation", "code": "QuotaExceeded"},
    "permission": {"action": "operation", "code": "RequestDisallowedByPolicy"},
    "busy": {"action": "background", "seconds": 1e6},
}
EARLY: Mapping[Fault, dict[str, object]] = {
    **COMMON,
    "throttle": {"action": "status", "method": "PUT", "status": 429, "times": 2},
    "capacity": {"action": "operation", "code": "SkuNotAvailable"},
    "quota": {"action": "operation", "code": "ErrCode_InsufficientVCPUQuota"},
    "permission": {"action": "operation", "code": "AuthorizationFailed"},
    "busy": {"action": "status", "method": "PUT", "status": 409, "body": BUSY_BODY},
}
"""Two ways in which AKS says each: in the operation or at once, with Retry-After or without."""


@dataclass
class AksHarness:
    info: SandboxInfo
    provider: AksProvider
    cloud: Cloud
    faults: Mapping[Fault, dict[str, object]]
    package: str = "gpukube_aks"
    sdk: str = "azure"
    touches: int = 0

    def target(self, kind: Literal["plain", "mig", "autoscaled"]) -> Target:
        if kind == "mig":
            return make_target(name="pmig", pool="p-mig", sharing=Sharing(mig=MigCut("1g.5gb", "single")))
        plain = make_target("Standard_NC4as_T4_v3", name=f"p{kind}", pool=f"p-{kind}", labels={"team": "vision"})
        return plain if kind == "plain" else replace(plain, nodes=Nodes(1, 1, 3, autoscaled=True))

    def add_foreign_pool(self, name: str) -> None:
        body = {"properties": {"count": 1, "vmSize": "Standard_NC4as_T4_v3", "mode": "User"}}
        params = {"resource_group": "ml", "cluster": "train", "pool": name, "body": body}
        operation = self.cloud.send(Request("aks", CREATE, params))
        wait_for(lambda: self.cloud.poll(operation).done)

    def move_count(self, name: str) -> None:
        daemon.tamper(self.info, "train", name, count=3)

    def inject(self, fault: Fault, pool: str) -> None:
        parts = dict(self.faults[fault])
        action = str(parts.pop("action"))
        if action == "operation":
            parts["pool"] = f"^{pool}$"
        elif action != "background":
            parts["path"] = f"/agentPools/{pool}"
        daemon.add_fault(self.info, action, **parts)

    def edits(self) -> Mapping[str, Target]:
        plain = self.target("plain")
        return {
            "more nodes": replace(plain, nodes=Nodes(2, 2, 2, autoscaled=False)),
            "no nodes": replace(plain, nodes=Nodes(0, 0, 0, autoscaled=False)),
            "autoscaler on": replace(plain, nodes=Nodes(1, 0, 3, autoscaled=True)),
            "label changed": replace(plain, labels={"team": "audio"}),
            "label added": replace(plain, labels={**plain.labels, "tier": "a"}),
            "label removed": replace(plain, labels={}),
            "taint added": replace(plain, taints=(GPU_TAINT, Taint("dedicated", "x", "NoSchedule"))),
            "taint that evicts": replace(plain, taints=(GPU_TAINT, Taint("dedicated", "x", "NoExecute"))),
            "taints removed": replace(plain, taints=(), gpu_taint=False),
            "protected": replace(plain, protect=True),
            "tag": replace(plain, tags={"cost": "1"}),
            "native setting": replace(plain, native={"scaleDownMode": "Deallocate"}),
            "nested native setting": replace(plain, native={"upgradeSettings": {"drainTimeoutInMinutes": 60}}),
            "other image": replace(plain, image="Ubuntu2204"),
            "upgrade": replace(plain, upgrade=Upgrade("0", "1")),
            "many at once": replace(
                plain,
                nodes=Nodes(2, 2, 2, autoscaled=False),
                labels={"tier": "b"},
                image="Ubuntu2404",
                upgrade=Upgrade("2"),
            ),
        }

    def replace_labels(self, name: str, labels: Mapping[str, str]) -> None:
        self.put(name, lambda read: {**read, "nodeLabels": dict(labels)})

    def without_copy(self, request: Request) -> Request:
        properties = cast("Mapping[str, dict[str, Any]]", request.params["body"])["properties"]
        tags = {key: value for key, value in properties["tags"].items() if not key.startswith("gpukube_")}
        return replace(request, params={**request.params, "body": {"properties": {**properties, "tags": tags}}})

    def clone(self, name: str, to: str) -> None:
        self.put(to, lambda _: {key: self.read(name)[key] for key in ("count", "vmSize", "mode", "tags")})

    def add_tag(self, name: str, key: str, value: str) -> None:
        self.put(name, lambda read: {**read, "tags": {**read["tags"], key: value}})

    def touch(self, name: str) -> str:
        self.touches += 1
        label = {"touched": str(self.touches)}
        self.put(name, lambda read: {**read, "nodeLabels": {**read["nodeLabels"], **label}})
        return "touched"

    def read(self, name: str) -> dict[str, Any]:
        """The properties of a pool, as another client reads them; empty where there is none."""
        with self.client() as http:
            return dict(http.get(f"{POOLS}/{name}").json().get("properties", {}))

    def put(self, name: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Put a pool as another client does, and wait for it."""
        with self.client() as http:
            http.put(f"{POOLS}/{name}", json={"properties": change(self.read(name))}).raise_for_status()
        wait_for(lambda: self.read(name)["provisioningState"] == "Succeeded", lambda: self.read(name))

    def client(self) -> httpx.Client:
        query = {"api-version": "2026-08-01"}
        return httpx.Client(
            base_url=self.info.arm_url, params=query, headers=signed(self.info), trust_env=False, timeout=PATIENCE_S
        )

    def accepts(self, request: Request) -> bool:
        body = request.params["body"]
        return isinstance(body, dict) and AgentPool(body).as_dict() == body

    def pause(self) -> None:
        time.sleep(0.01)


@pytest.fixture(scope="module")
def running(running_sandbox: SandboxInfo) -> SandboxInfo:
    return emptied(running_sandbox, SPEED)


class TestAks(ProviderContract):
    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run a test of faults with both kinds of them, and any other once."""
        kinds = {"late": LATE, "early": EARLY} if "fault" in metafunc.fixturenames else {"late": LATE}
        if "harness" in metafunc.fixturenames:
            metafunc.parametrize("harness", kinds.values(), ids=kinds, indirect=True)

    @pytest.fixture
    def harness(self, running: SandboxInfo, request: pytest.FixtureRequest) -> Iterator[Harness]:
        daemon.reset(running)
        daemon.add_cluster(running, CLUSTER.identity["subscription"], "ml", "train")
        provider = AksProvider()
        cloud = provider.connect(CLUSTER, Settings({"aks": running.arm_url}, sandbox=True, secret=running.secret))
        yield AksHarness(running, provider, cloud, request.param)
        cloud.close()
