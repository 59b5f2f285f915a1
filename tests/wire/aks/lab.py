"""A live cluster of the sandbox to change pools on, with the real SDK and the cluster's Kubernetes API."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import yaml

from gpukube.core.diff import diff_fields
from gpukube.core.values import Ownership, Promise
from gpukube_aks import AksProvider
from sandbox_tests.waiting import wait_for
from tests.builders import CLUSTER

if TYPE_CHECKING:
    from gpukube.core.values import Change, Desired, Observed, Operation, Target
    from gpukube_aks.live.client import AksCloud
    from gpukube_sandbox.daemon import SandboxInfo

    Node = dict[str, Any]

PROVIDER = AksProvider()
CONFIG = "nvidia.com/device-plugin.config"
ADVERTISER = "gpukube.io/advertiser"
CALLS = 5


def desire(target: Target, owned: Mapping[str, str | None] | None = None) -> Desired:
    labels = {ADVERTISER: "chart", CONFIG: "c-1", **(owned or {})}
    ownership = Ownership("cloud", "chart", "c-1", {k: v for k, v in labels.items() if v is not None}, "")
    return PROVIDER.desired(target, ownership, Promise({}, target.nodes))


@dataclass
class Lab:
    """A live cluster; `fresh` makes a pool on it that a test may change."""

    info: SandboxInfo
    cloud: AksCloud
    kube: httpx.Client
    bases: Mapping[str, Target]
    made: int = 0

    def finish(self, operation: Operation) -> None:
        def is_done() -> bool:
            progress = self.cloud.poll(operation)
            if progress.error is not None:
                raise progress.error
            return progress.done

        wait_for(is_done, lambda: f"{operation} does not end", every_s=0.005)

    def create(self, target: Target) -> Observed:
        self.finish(self.cloud.send(desire(target).create))
        return self.find(target.name)

    def fresh(self, base: str) -> Target:
        self.made += 1
        target = replace(self.bases[base], name=f"p{self.made}")
        self.create(target)
        return target

    def find(self, name: str) -> Observed:
        found = self.cloud.pool(name)
        assert found is not None
        return found

    def drop(self, name: str) -> None:
        self.finish(self.cloud.send(PROVIDER.requests.delete(CLUSTER, self.find(name))))

    def nodes(self, name: str) -> dict[str, Node]:
        query = {"labelSelector": f"kubernetes.azure.com/agentpool={name}"}
        items = self.kube.get("/api/v1/nodes", params=query).json()["items"]
        return {item["metadata"]["name"]: item for item in items}

    def settled(self, name: str) -> dict[str, Node]:
        """The nodes, once there are as many as the pool says, each with the labels and taints that the pool says."""
        seen: list[dict[str, Node]] = []

        def has_followed() -> bool:
            observed, nodes = self.find(name), self.nodes(name)
            seen[:] = [nodes]
            return len(nodes) == observed.nodes and all(agrees(node, observed) for node in nodes.values())

        wait_for(has_followed, lambda: f"the nodes of {name} do not follow the pool: {seen}", every_s=0.005)
        return seen[0]

    def bring_about(self, desired: Desired) -> list[Change]:
        """Do what the engine does, and give the changes that the first look found."""
        first: list[Change] = []
        for _ in range(CALLS):
            observed = self.find(desired.target.name)
            changes = diff_fields(desired.fields, observed.fields)
            if not changes:
                return first
            first = first or list(changes)
            self.finish(self.cloud.send(PROVIDER.requests.update(desired, observed, changes)[0]))
        pytest.fail(f"{desired.target.name} is still different after {CALLS} calls")


def properties_of(observed: Observed) -> Mapping[str, object]:
    found = observed.native["properties"]
    assert isinstance(found, Mapping)
    return found


def kube_client(cloud: AksCloud) -> httpx.Client:
    document = yaml.safe_load(cloud.kube_access().kubeconfig)
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    headers = {"Authorization": f"Bearer {user['token']}"}
    context = ssl.create_default_context(cadata=authority)
    return httpx.Client(base_url=cluster["server"], verify=context, trust_env=False, headers=headers, timeout=60)


def agrees(node: Node, observed: Observed) -> bool:
    labels = node["metadata"]["labels"]
    taints = {(t["key"], t.get("value", ""), t["effect"]) for t in node["spec"].get("taints") or ()}
    ours = {key for key in ("team", "tier", CONFIG, ADVERTISER, "gpukube.io/protect") if key in labels}
    return (
        observed.labels.items() <= labels.items()
        and ours <= observed.labels.keys()
        and taints == {(t.key, t.value, t.effect) for t in observed.effective_taints}
        and node["status"]["nodeInfo"]["kubeletVersion"] == f"v{running(observed)}"
    )


def running(observed: Observed) -> object:
    return properties_of(observed)["currentOrchestratorVersion"]
