"""AKS keeps the contract of providers, through the real SDK against the sandbox."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import pytest
from azure.mgmt.containerservice.models import AgentPool

from gpukube.core.values import Nodes, Request
from gpukube.gpu.sharing import MigCut, Sharing
from gpukube.sandbox import daemon
from gpukube.testing.contract import ProviderContract
from gpukube_aks import AksProvider
from gpukube_aks.translate import CREATE
from tests.builders import make_target

if TYPE_CHECKING:
    from gpukube.core.values import Target
    from gpukube.provider import Cloud, Provider
    from gpukube.sandbox.daemon import SandboxInfo
    from gpukube.testing.contract import Fault, Harness
    from gpukube_aks.client import AksCloud

FAULTS: dict[Fault, dict[str, object]] = {
    "throttle": {"action": "status", "method": "PUT", "status": 429, "headers": {"Retry-After": "0"}},
    "drop-before": {"action": "drop-before", "method": "PUT"},
    "drop-after": {"action": "drop-after", "method": "PUT"},
    "capacity": {"action": "operation", "code": "AllocationFailed"},
    "quota": {"action": "operation", "code": "QuotaExceeded"},
    "permission": {"action": "status", "method": "PUT", "status": 403, "code": "AuthorizationFailed"},
    "busy": {"action": "background", "cluster": "train", "seconds": 1e6},
}


@dataclass
class AksHarness:
    """The cluster of the examples in the sandbox."""

    sandbox: SandboxInfo
    cloud: Cloud
    provider: Provider
    package: str = "gpukube_aks"
    sdk: str = "azure"

    def target(self, kind: Literal["plain", "mig", "autoscaled"]) -> Target:
        if kind == "mig":
            return make_target(name="mig", pool="mig", sharing=Sharing(MigCut("1g.5gb", "single")))
        plain = make_target("Standard_NC4as_T4_v3", name=kind, pool=kind)
        return replace(plain, nodes=Nodes(1, 1, 3, autoscaled=True)) if kind == "autoscaled" else plain

    def add_foreign_pool(self, name: str) -> None:
        self._create(name, "Standard_NC4as_T4_v3")

    def move_count(self, name: str) -> None:
        daemon.tamper(self.sandbox, "train", name, count=3)

    def inject(self, fault: Fault, pool: str) -> None:
        parts = dict(FAULTS[fault])
        action = str(parts.pop("action"))
        if action == "operation":
            parts["pool"] = pool
        elif action != "background":
            parts["path"] = f"agentPools/{pool}"
        daemon.add_fault(self.sandbox, action, **parts)

    def accepts(self, request: Request) -> bool:
        body = request.params["body"]
        return isinstance(body, dict) and AgentPool(body).as_dict() == body

    def pause(self) -> None:
        time.sleep(0.02)

    def _create(self, name: str, size: str) -> None:
        """Make a pool as any other tool would: without our marks."""
        body = {"properties": {"count": 1, "vmSize": size, "mode": "User"}}
        path = {"resource_group": "ml", "cluster": "train", "pool": name}
        operation = self.cloud.send(Request("aks", CREATE, {**path, "body": body}))
        while not self.cloud.poll(operation).done:
            self.pause()


class TestAks(ProviderContract):
    """Every sentence of the contract."""

    @pytest.fixture
    def harness(self, sandbox: SandboxInfo, cloud: AksCloud) -> Harness:
        return AksHarness(sandbox, cloud, AksProvider())
