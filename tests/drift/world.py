"""One sandbox with a created pool on each of the three clouds, and the hands of others in it.

In scope: the spec, what a plan finds, and the small changes that mutations are made of. Out of scope: which
mutations there are (mutations), and what is asserted.
"""

from __future__ import annotations

import base64
import copy
import gzip
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from httpx2 import Timeout
from lightkube import Client, KubeConfig
from lightkube.resources.apps_v1 import DaemonSet
from lightkube.resources.core_v1 import ConfigMap, Node, Secret
from lightkube.types import PatchType

from gpukube import api
from gpukube.cli.sandbox import Shelter
from gpukube_sandbox import daemon
from gpukube_sandbox.environment import kubeconfig
from sandbox_tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube_sandbox.daemon import SandboxInfo

SPEC = """
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {name: drift}
clusters:
  aks: {provider: aks, subscription: 11111111-2222-3333-4444-555555555555, resourceGroup: ml, name: drift-aks}
  eks: {provider: eks, account: "111122223333", region: us-east-1, name: drift-eks}
  gke: {provider: gke, project: ml-prod, location: us-central1-a, name: drift-gke}
defaults:
  nodes: {count: 2}
  sharing: {timeSlicing: {replicas: 4, failRequestsGreaterThanOne: true}}
  labels: {team: vision, tier: gold}
  taints: [{key: dedicated, value: vision, effect: NoSchedule}]
pools:
  - {name: t4, clusters: [aks], instanceType: Standard_NC4as_T4_v3, tags: {cost: research}}
  - {name: t4, clusters: [eks], instanceType: g4dn.xlarge, tags: {cost: research}}
  - {name: l4, clusters: [gke], gpu: {model: L4, count: 1}}
"""
NAMESPACE = "gpukube-system"
PLUGIN = "gpukube-nvidia-device-plugin"
CONFIG_MAP = f"{PLUGIN}-configs"
POOLS = {"aks": "t4", "eks": "t4", "gke": "l4"}
POOL_LABELS = {
    "aks": "kubernetes.azure.com/agentpool",
    "eks": "eks.amazonaws.com/nodegroup",
    "gke": "cloud.google.com/gke-nodepool",
}

Wire = dict[str, Any]  # a pool's wire form, which differs from cloud to cloud


@dataclass
class World:
    """The three clusters.

    Attributes:
        base: Cloud -> the pool's wire form as created.
        wire: Cloud -> the same, with what is to be changed; `settle` sends the difference.
    """

    info: SandboxInfo
    prepared: api.Prepared
    run: api.Run
    clients: dict[str, Client] = field(default_factory=dict)
    base: dict[str, Wire] = field(default_factory=dict)
    wire: dict[str, Wire] = field(default_factory=dict)
    _sent: dict[str, Wire] = field(default_factory=dict)

    def plan(self) -> tuple[ClusterPlan, ...]:
        """Plan all clusters."""
        return api.plan(self.prepared, self.run)

    def close(self) -> None:
        """Close the connections."""
        for client in self.clients.values():
            client.close()

    def settle(self) -> None:
        """Send every pool's changed wire form to its cloud, past its API."""
        for cloud, wire in self.wire.items():
            changed = _difference(self._sent.get(cloud, self.base[cloud]), wire)
            if changed:
                daemon.tamper(self.info, f"drift-{cloud}", POOLS[cloud], **changed)
            self._sent[cloud] = copy.deepcopy(wire)

    def reset_pools(self) -> None:
        """Make the pools as they were created."""
        self.wire = copy.deepcopy(self.base)
        self.settle()

    def nodes(self, cloud: str) -> list[str]:
        """Name the nodes of a cloud's pool."""
        found = self.clients[cloud].list(Node, labels={POOL_LABELS[cloud]: POOLS[cloud]})
        return sorted(str(node.metadata.name) for node in found if node.metadata)

    def patch_node(self, cloud: str, name: str, change: Wire, *, status: bool = False) -> None:
        """Merge a change into a node."""
        kind = Node.Status if status else Node
        self.clients[cloud].patch(kind, name, change, patch_type=PatchType.MERGE)

    def node(self, cloud: str, name: str) -> Wire:
        """Read a node."""
        return self.clients[cloud].get(Node, name).to_dict()

    def daemonset(self, cloud: str, name: str = PLUGIN) -> Wire:
        """Read a DaemonSet of the release."""
        return self.clients[cloud].get(DaemonSet, name, namespace=NAMESPACE).to_dict()

    def patch_daemonset(self, cloud: str, change: Wire, name: str = PLUGIN) -> None:
        """Merge a change into the pod of a DaemonSet of the release; lists are merged by their items' names."""
        patch = {"spec": {"template": {"spec": change}}}
        self.clients[cloud].patch(DaemonSet, name, patch, namespace=NAMESPACE, patch_type=PatchType.STRATEGIC)

    def delete_daemonset(self, cloud: str, name: str) -> None:
        """Delete a DaemonSet of the release."""
        self.clients[cloud].delete(DaemonSet, name, namespace=NAMESPACE)

    def create_daemonset(self, cloud: str, obj: Wire) -> None:
        """Make a deleted DaemonSet again."""
        kept = ("name", "namespace", "labels", "annotations")
        details = {key: value for key, value in obj["metadata"].items() if key in kept}
        made = DaemonSet.from_dict({**obj, "metadata": details})
        assert isinstance(made, DaemonSet)
        self.clients[cloud].create(made)

    def entries(self, cloud: str) -> dict[str, str]:
        """Read the config entries."""
        return dict(self.clients[cloud].get(ConfigMap, CONFIG_MAP, namespace=NAMESPACE).data or {})

    def patch_entries(self, cloud: str, entries: dict[str, str | None]) -> None:
        """Change config entries; None removes one."""
        self.clients[cloud].patch(
            ConfigMap, CONFIG_MAP, {"data": entries}, namespace=NAMESPACE, patch_type=PatchType.MERGE
        )

    def release(self, cloud: str) -> tuple[str, str]:
        """Read name and payload of the newest record of the release."""
        found = list(
            self.clients[cloud].list(Secret, namespace=NAMESPACE, labels={"owner": "helm", "status": "deployed"})
        )
        (secret,) = found
        assert secret.metadata
        assert secret.data
        return str(secret.metadata.name), secret.data["release"]

    def write_release(self, cloud: str, name: str, payload: str) -> None:
        """Write the payload of a record."""
        self.clients[cloud].patch(
            Secret, name, {"data": {"release": payload}}, namespace=NAMESPACE, patch_type=PatchType.MERGE
        )


def edited_values(payload: str, **values: object) -> str:
    """Change user values in the payload of a release's record."""
    record = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(payload))))
    record["config"] = {**record["config"], **values}
    packed = base64.b64encode(gzip.compress(json.dumps(record).encode()))
    return base64.b64encode(packed).decode()


def _difference(before: Wire, after: Wire) -> Wire:
    """List what changed, for a tamper call: None removes; maps whole, but for GKE's, which that call merges."""
    if "config" not in after:
        return {key: after.get(key) for key in {*before, *after} if before.get(key) != after.get(key)}
    labels = {
        key: after["config"]["labels"].get(key) for key in {*before["config"]["labels"], *after["config"]["labels"]}
    }
    if before == after:
        return {}
    return {**after, "config": {**after["config"], "labels": labels}}


def make_world(directory: Path, info: SandboxInfo) -> World:
    """Create the pools, and insist that nothing differs then."""
    path = directory / "pools.yaml"
    path.write_text(SPEC)
    prepared = api.prepare(api.load([str(path)], environ={}))
    shelter = Shelter(info)
    shelter.register(prepared)
    run = api.Run(
        settings=shelter.settings,
        chart=api.chart_source(shelter.chart),
        environ=shelter.environment(),
        resume="gpukube pool apply -f pools.yaml",
        pace=api.QUICK.with_timeout(240),
    )
    reports = api.create(prepared, run)
    assert api.exit_code(reports) == 0, reports
    world = World(info, prepared, run)
    for cloud in POOLS:
        world.clients[cloud] = _client(info, f"drift-{cloud}")
    for plan in world.plan():
        (pool,) = plan.pools
        assert pool.observed is not None
        world.base[plan.cluster.key] = _changeable(plan.cluster.key, pool.observed.native)
    world.wire = copy.deepcopy(world.base)
    return world


def _client(info: SandboxInfo, name: str) -> Client:
    document = kubeconfig(info)["kubeconfig"]
    assert isinstance(document, dict)
    contexts = [entry["name"] for entry in document["contexts"] if str(entry["name"]).endswith(name)]
    config = KubeConfig.from_dict({**document, "current-context": contexts[0]})
    return Client(config, timeout=Timeout(PATIENCE_S), trust_env=False)


def _changeable(cloud: str, native: object) -> Wire:
    """Keep the part of a pool's wire form that mutations touch."""
    plain: Wire = json.loads(json.dumps(native, default=str))
    if cloud == "aks":
        names = ("nodeLabels", "nodeTaints", "tags", "count", "enableAutoScaling", "minCount", "maxCount")
        return {key: plain["properties"].get(key) for key in names}
    if cloud == "eks":
        return {key: plain[key] for key in ("labels", "taints", "tags", "scalingConfig")}
    config = {"labels": plain["config"]["labels"], "taints": plain["config"]["taints"]}
    return {"config": config}


def findings(plans: tuple[ClusterPlan, ...]) -> set[str]:
    """Say in one line each what a plan found, of all clusters."""
    found: set[str] = set()
    for plan in plans:
        key = plan.cluster.key
        assert plan.error is None, plan.error
        assert plan.unknown == "", plan.unknown
        found |= {f"{key}: {pool.pool} {change.change.field}" for pool in plan.pools for change in pool.changes}
        found |= {f"{key}: {pool.pool} {pool.action}" for pool in plan.pools if pool.action not in ("no-op", "update")}
        found |= {f"{key}: {repair.node} {repair.field}" for repair in plan.repairs}
        found |= {f"{key}: {item.code}" for item in plan.diagnostics}
        found |= {f"{key}: undeclared {pool.name}" for pool in plan.undeclared}
        if plan.release:
            found |= {f"{key}: value {change.path}" for change in plan.release.changes}
            found |= {f"{key}: {item.object} {item.field}".rstrip() for item in plan.release.drift}
    return found
