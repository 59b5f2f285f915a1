"""Pools as people write them, translated by the clouds' own providers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.prices import EMBEDDED
from gpukube.engine.fitting import declared_clusters, with_prices
from gpukube.engine.plan.prepare import prepare
from tests.unit.spec.samples import load_text

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube.workload.offers import PoolOffer

CLUSTERS: Final = """\
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {name: ml-platform}
clusters:
  train-eks: {provider: eks, account: "111122223333", region: us-east-1, name: train}
  train-aks: {provider: aks, subscription: 11111111-2222-3333-4444-555555555555, resourceGroup: ml, name: train}
  train-gke: {provider: gke, project: ml-prod, location: us-central1-a, name: train}
pools:
"""

POOLS: Final = {
    "whole": "{name: whole, clusters: [train-aks, train-eks, train-gke], gpu: {model: A100-40GB, count: 8}, "
    "nodes: {autoscaling: {min: 0, max: 4}}}",
    "single": "{name: single, clusters: [train-aks, train-gke], gpu: {model: A100-40GB, count: 8}, "
    "nodes: {autoscaling: {min: 0, max: 2}}, sharing: {mig: {profile: 1g.5gb}}}",
    "mixed": "{name: mixed, clusters: [train-aks], gpu: {model: A100-40GB, count: 8}, "
    "nodes: {autoscaling: {min: 1, max: 2}}, sharing: {mig: {profile: 1g.5gb, strategy: mixed}}}",
    "layout": "{name: layout, clusters: [train-eks], gpu: {model: A100-40GB, count: 8}, nodes: {count: 1}, "
    "sharing: {mig: {layout: [3g.20gb, 2g.10gb, 2g.10gb], strategy: mixed}}}",
    "sliced": "{name: sliced, clusters: [train-aks, train-eks, train-gke], gpu: {model: T4, count: 1}, "
    "nodes: {count: 2}, sharing: {timeSlicing: {replicas: 4}}}",
    "renamed": "{name: renamed, clusters: [train-aks, train-eks], gpu: {model: T4, count: 1}, nodes: {count: 2}, "
    "sharing: {timeSlicing: {replicas: 4, renameByDefault: true}}}",
    "mps": "{name: mps, clusters: [train-eks, train-gke], gpu: {model: L4, count: 1}, nodes: {count: 2}, "
    "sharing: {mps: {replicas: 4}}}",
    "spot": "{name: spot, clusters: [train-aks, train-eks, train-gke], gpu: {model: T4, count: 1}, "
    "nodes: {autoscaling: {min: 0, max: 3}}, capacity: {type: spot}}",
    "reserved": "{name: reserved, clusters: [train-gke], gpu: {model: H100-80GB, count: 8}, nodes: {count: 2}, "
    "capacity: {type: reserved, reserved: {gke: {reservation: h100}}}}",
    "queued": "{name: queued, clusters: [train-gke], gpu: {model: A100-80GB, count: 8}, "
    "nodes: {autoscaling: {min: 0, max: 4}}, capacity: {type: reserved, reserved: {gke: {queued: {}}}}}",
    "tainted": "{name: tainted, clusters: [train-aks, train-eks, train-gke], gpu: {model: T4, count: 1}, "
    "nodes: {count: 1}, gpuTaint: false, taints: [{key: sku, value: gpu, effect: NoSchedule}]}",
    "claims": "{name: claims, clusters: [train-eks, train-aks, train-gke], gpu: {model: T4, count: 4}, "
    "nodes: {count: 2}, devicePlugin: {owner: dra}}",
    "nobody": "{name: nobody, clusters: [train-aks], gpu: {model: T4, count: 1}, nodes: {count: 1}, "
    "devicePlugin: {owner: none}}",
}
"""One of each kind that pods see differently."""


def offers(tmp_path: Path, *pools: str) -> dict[str, PoolOffer]:
    """Translate pools, each by its name above or as written, and describe what they offer; by cluster and pool."""
    return described(tmp_path, CLUSTERS + "".join(f"  - {POOLS.get(pool, pool)}\n" for pool in pools))


def described(tmp_path: Path, text: str) -> dict[str, PoolOffer]:
    """Translate a spec, and describe what its pools offer; by cluster and pool."""
    prepared = prepare([load_text(tmp_path, text)])
    assert prepared.desired, prepared
    priced = (with_prices(cluster, EMBEDDED) for cluster in declared_clusters(prepared))
    return {offer.name: offer for cluster in priced for offer in cluster.offers}


def all_offers(tmp_path: Path) -> dict[str, PoolOffer]:
    """Describe all of them; a layout and MPS cannot be on one cluster of EKS."""
    return offers(tmp_path, *(name for name in POOLS if name != "layout")) | offers(tmp_path, "layout")
