"""Specs for the tests of this room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.errors import SpecError
from gpukube.spec.loading.load import load_specs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gpukube.errors import Finding
    from gpukube.spec.loading.load import LoadedSpec

HEAD = """\
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {name: ml-platform}
clusters:
  train-eks: {provider: eks, account: "111122223333", region: us-east-1, name: train}
  train-aks: {provider: aks, subscription: 11111111-2222-3333-4444-555555555555, resourceGroup: ml, name: train}
  train-gke: {provider: gke, project: ml-prod, location: us-central1, name: train}
"""

FULL = (
    HEAD
    + r"""pools:
  - name: a100mig
    clusters: [train-eks, train-aks, train-gke]
    names: {aks: a100}
    gpu: {model: A100-40GB, count: 8}
    instanceType: {eks: p4d.24xlarge}
    nodes: {count: 1}
    zones: ["1", "2"]
    disk: {sizeGiB: 256, type: Managed}
    sharing:
      mig: {profile: 1g.5gb, strategy: mixed}
      timeSlicing: {replicas: 2}
    tags: {cost: "42"}
    deletionProtection: true
    driver: {owner: cloud}
    devicePlugin: {owner: helm}
    aks: {maxPods: 60, podSubnetID: null, list: [1, {a: b}]}
  - name: t4shared
    clusters: [train-aks]
    instanceType: Standard_NC4as_T4_v3
    capacity: {type: spot, maxPrice: 2}
    nodes: {autoscaling: {min: 0, max: 5, initial: 1, scope: zone}}
    sharing:
      timeSlicing: {replicas: 4, failRequestsGreaterThanOne: true, renameByDefault: true}
    labels: {team: vision}
    taints: [{key: dedicated, value: vision, effect: NoSchedule}]
    gpuTaint: false
    zones: ["1"]
    kubernetesVersion: "1.34"
    upgrade: {maxSurge: 33%, maxUnavailable: 0}
    maxPodsPerNode: 60
    driver: {version: latest}
    devicePlugin: {version: 0.20.0, values: {compatWithCPUManager: true}}
  - name: set
    clusters: [train-eks, train-aks, train-gke]
    gpu: {model: A100-40GB, count: 8}
    nodes: {count: 1}
    capacity:
      type: reserved
      reserved:
        eks: {capacityBlock: cr-0123456789abcdef0}
        aks:
          capacityReservationGroup: "/subscriptions/11111111-2222-3333-4444-555555555555/\
            resourceGroups/ml/providers/Microsoft.Compute/capacityReservationGroups/a100"
        gke: {flexStart: {maxRunDuration: 7d}}
    sharing: {mig: {layout: [3g.20gb, 2g.10gb, 1g.5gb], strategy: mixed}}
"""
)

POOL = "  - {name: a, clusters: [train-aks], gpu: {model: T4-16GB, count: 1}, nodes: {count: 1}}\n"


def spec_of(pools: str, defaults: str = "") -> str:
    """Write a spec with these pools (block style, indented by two) and defaults (flow style)."""
    return f"{HEAD}{f'defaults: {defaults}' if defaults else ''}\npools:\n{pools}"


def load_text(
    folder: Path, text: str, *, sets: Sequence[str] = (), environ: Mapping[str, str] | None = None
) -> LoadedSpec:
    """Load one spec from a file."""
    file = folder / "spec.yaml"
    file.write_text(text, "utf-8")
    (loaded,) = load_specs([str(file)], sets=sets, environ=environ or {})
    return loaded


def problems_of(
    folder: Path, text: str, *, sets: Sequence[str] = (), environ: Mapping[str, str] | None = None
) -> tuple[Finding, ...]:
    """Load one spec and return everything wrong with it; nothing when it is right."""
    try:
        load_text(folder, text, sets=sets, environ=environ)
    except SpecError as error:
        return error.diagnostics
    return ()
