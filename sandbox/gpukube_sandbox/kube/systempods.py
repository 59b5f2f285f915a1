"""The workloads that a cloud runs in kube-system of every new cluster, per node or per cluster.

In scope: creating them from a cloud's table. Out of scope: the tables (each cloud's `addons`).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpukube_sandbox.kube.cluster import KubeCluster
    from gpukube_sandbox.kube.store.objects import JsonObject


@dataclass(frozen=True, slots=True)
class SystemPods:
    """One of the cloud's own workloads.

    Attributes:
        name: Name of the DaemonSet or Deployment, and of its container.
        image: Its image.
        requests: Resource requests of each pod.
        replicas: Number of pods; 0 for one on each node, whatever its taints.
        label: Label key and value of its pods.
    """

    name: str
    image: str
    requests: dict[str, str]
    _: KW_ONLY
    replicas: int = 0
    label: tuple[str, str]


async def apply_system_pods(kube: KubeCluster, table: tuple[SystemPods, ...]) -> None:
    """Create the cloud's own workloads, which the emulated controllers then run."""
    for entry in table:
        await kube.api.create("deployments" if entry.replicas else "daemonsets", _workload(entry))


def _workload(entry: SystemPods) -> JsonObject:
    marks = dict([entry.label])
    container = {"name": entry.name, "image": entry.image, "resources": {"requests": entry.requests}}
    everywhere = [{"operator": "Exists"}]
    anywhere = [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
    pod = {
        "priorityClassName": "system-cluster-critical" if entry.replicas else "system-node-critical",
        "tolerations": anywhere if entry.replicas else everywhere,
        "containers": [container],
    }
    body: JsonObject = {"selector": {"matchLabels": marks}, "template": {"metadata": {"labels": marks}, "spec": pod}}
    if entry.replicas:
        body["replicas"] = entry.replicas
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment" if entry.replicas else "DaemonSet",
        "metadata": {"name": entry.name, "namespace": "kube-system", "labels": marks},
        "spec": body,
    }
