"""Specs of any number of pools, as fleets have them: three clouds, all ways of sharing, some fields of every kind.

In scope: the text of such a spec. Out of scope: measuring.
"""

from __future__ import annotations

HEAD = """apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {name: fleet}
clusters:
"""
CLUSTERS = (
    '  c{n}: {{provider: eks, account: "111122223333", region: us-east-1, name: c{n}}}\n',
    "  c{n}: {{provider: aks, subscription: 11111111-2222-3333-4444-555555555555, resourceGroup: ml, name: c{n}}}\n",
    "  c{n}: {{provider: gke, project: ml-prod, location: us-central1, name: c{n}}}\n",
)
POOLS = (
    """  - name: p{p}
    clusters: [c{c}]
    gpu: {{model: A100-40GB, count: 8}}
    nodes: {{count: 1}}
    sharing:
      mig: {{profile: 1g.5gb}}
    labels: {{team: t{p}}}
""",
    """  - name: p{p}
    clusters: [c{c}]
    instanceType: {{eks: g4dn.xlarge, aks: Standard_NC4as_T4_v3, gke: g2-standard-4}}
    nodes: {{autoscaling: {{min: 1, max: 5}}}}
    capacity: {{type: spot}}
    sharing:
      timeSlicing: {{replicas: 4, failRequestsGreaterThanOne: true}}
    taints: [{{key: dedicated, value: t{p}, effect: NoSchedule}}]
""",
    """  - name: p{p}
    clusters: [c{c}]
    gpu: {{model: H100-80GB, count: 8}}
    nodes: {{count: 2}}
    disk: {{sizeGiB: 200}}
    labels: {{team: t{p}, example.com/stage: prod}}
    tags: {{cost: c{p}}}
""",
)
MISTAKE = """  - name: p{p}
    clusters: [c{c}, nowhere]
    gpu: {{model: A100-40GB, count: 8, colour: red}}
    nodes: {{count: "one"}}
"""
PER_CLUSTER = 90
"""Below what a cloud allows of pools in a cluster."""


def fleet(pools: int) -> str:
    """Write a spec of that many pools in which all is well."""
    # The cluster changes with every 90th pool, the pool's kind with every one: each kind comes to each cloud.
    return _spec(pools, [POOLS[p % len(POOLS)].format(p=p, c=p // PER_CLUSTER) for p in range(pools)])


def fleet_of_mistakes(pools: int) -> str:
    """Write a spec of that many pools with three mistakes in each."""
    return _spec(pools, [MISTAKE.format(p=p, c=p // PER_CLUSTER) for p in range(pools)])


def _spec(pools: int, parts: list[str]) -> str:
    clusters = [CLUSTERS[n % len(CLUSTERS)].format(n=n) for n in range(-(-pools // PER_CLUSTER))]
    return "".join([HEAD, *clusters, "pools:\n", *parts])
