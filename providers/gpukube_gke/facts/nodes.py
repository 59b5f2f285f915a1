"""What GKE's nodes offer pods: allocatable resources, and labels at creation.

In scope: the numbers that Google documents. Out of scope: whether pods fit (gpukube.workload).

Sources: docs: kubernetes-engine/concepts/plan-node-sizes (reserved resources), kubernetes-engine/concepts/node-pools,
how-to/gpus-multi, how-to/timesharing-gpus, how-to/nvidia-mps-gpus (labels).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import text, tree
from gpukube.core.node_facts import (
    CPU_STEPS,
    GIB,
    MIB,
    NodeFacts,
    Reserved,
    Room,
    common_labels,
    in_steps,
    room_left,
)
from gpukube_gke.facts.in_cluster import IN_CLUSTER
from gpukube_gke.facts.places import region_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Desired, Target

_KERNEL: Final = 1 / 32
"""Share of memory that the kernel takes: twice the deduction of GKE's autoscaler (1/64, kubernetes/autoscaler
cloudprovider/gce/gce_reserved.go), because the page's own example node has 2.7 % less than its machine."""
_MEMORY_STEPS: Final = (
    (4 * GIB, 0.25), (4 * GIB, 0.2), (8 * GIB, 0.1), (112 * GIB, 0.06), (float("inf"), 0.02),
)  # fmt: skip
_EVICTION: Final = 100 * MIB
_PODS: Final = 110
_SYSTEM_PODS: Final = Room(cpu=600, memory=768 * MIB, pods=14)
"""Allowance for system pods. Every node runs kube-proxy (100m), fluentbit-gke (100m, 200Mi), gke-metrics-agent (8m,
110Mi), pdcsi-node (10m, 20Mi), netd, and the GPU device plugin; some also run gke-metadata-server (100m, 100Mi),
node-local-dns, ip-masq-agent, managed Prometheus, Dataplane V2, and the DCGM exporter."""
_CLOUD: Final = "cloud.google.com/"
_ACCELERATOR: Final = ("nodePool", "config", "accelerators", 0)
_STRATEGIES: Final = {"TIME_SHARING": "time-sharing", "MPS": "mps"}
_DRIVERS: Final = {"DEFAULT": "default", "LATEST": "latest"}


def _room(target: Target) -> Room | None:
    reserved = Reserved(
        cpu=-int(-in_steps((target.machine.vcpus or 0) * 1000, CPU_STEPS)),
        memory=int(in_steps((target.machine.memory_gib or 0) * GIB, _MEMORY_STEPS)) + _EVICTION,
        kernel=_KERNEL,
        pods=_SYSTEM_PODS,
    )
    return room_left(target.machine, target.max_pods or _PODS, reserved)


def _labels(desired: Desired) -> Mapping[str, str]:
    """Return the labels in a pool's instance template, which GKE's autoscaler reads, and those of the kubelet.

    Source:
        kubernetes/autoscaler cloudprovider/gce/templates.go (node_labels of kube-env).
    """
    target = desired.target
    spot, flexible = target.capacity.type == "spot", tree(desired.create.params, "nodePool", "config").get("flexStart")
    driver = _DRIVERS.get(_setting(desired, "gpuDriverInstallationConfig", "gpuDriverVersion"))
    added = {
        "gke-accelerator": target.machine.accelerator,
        "gke-gpu-driver-version": driver,
        "gke-os-distribution": "ubuntu" if "ubuntu" in target.image.lower() else "cos",
        "gke-container-runtime": "containerd",
        "gke-max-pods-per-node": str(target.max_pods or _PODS),
        "machine-family": target.machine.name.split("-", maxsplit=1)[0],
        "gke-provisioning": "flex-start" if flexible else "spot" if spot else "standard",
        "gke-spot": "true" if spot else None,
        "gke-flex-start": "true" if flexible else None,
    }
    return {
        **common_labels(target.machine, region_of(target.cluster.identity.get("location", ""))),
        **desired.labels,
        **{_CLOUD + name: value for name, value in added.items() if value},
        **_selector(desired),
    }


def _selector(desired: Desired) -> dict[str, str]:
    """Return a selector of the pool and, as on Google's pages, of how its GPUs are partitioned and shared."""
    found = {
        "gke-gpu-partition-size": _setting(desired, "gpuPartitionSize").replace("+", "."),
        "gke-gpu-sharing-strategy": _STRATEGIES.get(_setting(desired, "gpuSharingConfig", "gpuSharingStrategy"), ""),
        "gke-max-shared-clients-per-gpu": _setting(desired, "gpuSharingConfig", "maxSharedClientsPerGpu"),
    }
    return {IN_CLUSTER.pool_label: desired.target.name} | {_CLOUD + key: value for key, value in found.items() if value}


def _on_request(desired: Desired) -> str:
    """Return what starts the nodes of a queued pool; "" for others.

    Source: google.container.v1 NodePool.QueuedProvisioning: nodes start only for ProvisioningRequests.
    """
    queued = tree(desired.create.params, "nodePool", "queuedProvisioning").get("enabled")
    return "a ProvisioningRequest, by hand or by Kueue" if queued else ""


def _provisioning(desired: Desired) -> dict[str, object]:
    """Return Kueue's ProvisioningRequestConfig, which gives each workload the nodes started for it.

    Source: kubernetes-sigs/kueue issue of topology-aware scheduling with ProvisioningRequests, by its maintainer
    (2026-02-09); AI-Hypercomputer/xpk, templates of dws-config.
    """
    if not _on_request(desired):
        return {}
    key = "autoscaling.gke.io/provisioning-request"
    return {
        "provisioningClassName": "queued-provisioning.gke.io",
        "podSetUpdates": {"nodeSelector": [{"key": key, "valueFromProvisioningClassDetail": "ResizeRequestName"}]},
    }


def _setting(desired: Desired, *path: str) -> str:
    return text(desired.create.params, *_ACCELERATOR, *path)


NODES: Final = NodeFacts(
    room=_room, labels=_labels, selector=_selector, on_request=_on_request, provisioning=_provisioning
)
