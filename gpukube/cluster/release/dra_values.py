"""Values of the chart of NVIDIA's DRA driver for the pools it serves.

In scope: pools and live values -> chart values, and pools that one release cannot serve together; pure. Out of scope:
what the charts share (shared_values).

What the values ensure (kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1, deployments/helm):
- rendering fails unless `gpuResourcesEnabledOverride` confirms `resources.gpus.enabled`; without multi-node NVLink,
  ComputeDomains only add a controller and a second container;
- `nvidiaDriverRoot` is where the nodes have the driver, one place per release: with a wrong one the pods wait forever;
- `kubeletPlugin.tolerations` replaces the chart's list;
- the affinity replaces the chart's own, which would also match nodes of other pools, and not those that the GPU
  Operator must leave alone;
- `resourceApiVersion` does not depend on what Helm knows of the cluster; older APIs are not supported.
"""

from __future__ import annotations

import copy
from itertools import product
from typing import TYPE_CHECKING, Final

from gpukube.cluster.names import DRA_DRIVER
from gpukube.cluster.release.chart_settings import lay_over, requested_values
from gpukube.cluster.release.shared_values import GPU_TAINTS, cover_taints, put, served_names
from gpukube.core.jsontree import text
from gpukube.core.owners import ADVERTISER_LABEL, CLIENT_LABEL, MIG_CONFIG_LABEL, MIG_STATE_LABEL
from gpukube.errors import Finding, Where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cluster.kube.views import Toleration
    from gpukube.cluster.release.shared_values import ReleaseContext
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Desired, Observed

ROOT: Final = "nvidiaDriverRoot"
_OURS: Final = {"key": ADVERTISER_LABEL, "operator": "In", "values": [DRA_DRIVER.advertiser]}
_SETTLED: Final = (
    {"key": MIG_CONFIG_LABEL, "operator": "DoesNotExist"},
    {"key": MIG_STATE_LABEL, "operator": "In", "values": ["success"]},
)
"""Nodes with MIG have the first label at creation, the operator's others only later: without this condition the driver
would publish whole GPUs first."""
_UNPAUSED: Final = (
    {"key": CLIENT_LABEL, "operator": "DoesNotExist"},
    {"key": CLIENT_LABEL, "operator": "In", "values": ["true"]},
)
"""The driver publishes the devices that it finds when it starts, so it must start again after such a change."""
_FIXED: Final[tuple[tuple[tuple[str, ...], object], ...]] = (
    (("gpuResourcesEnabledOverride",), True),
    (("resourceApiVersion",), "resource.k8s.io/v1"),
    (("resources", "gpus", "enabled"), True),
    (("resources", "computeDomains", "enabled"), False),
    (("kubeletPlugin", "nodeSelector"), {}),
    (
        ("kubeletPlugin", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"),
        {
            "nodeSelectorTerms": [
                {"matchExpressions": [_OURS, settled, unpaused]} for settled, unpaused in product(_SETTLED, _UNPAUSED)
            ]
        },
    ),
)
_TOLERATION_LISTS: Final[tuple[tuple[tuple[str, ...], tuple[Toleration, ...]], ...]] = (
    (("kubeletPlugin", "tolerations"), (GPU_TAINTS,)),
)
_BANNED: Final = ("nameOverride", "fullnameOverride", "namespaceOverride", "selectorLabelsOverride")
"""Values that would break gpukube's: removed from live values, rejected in a spec."""


def dra_values(pools: Sequence[Desired], context: ReleaseContext) -> dict[str, object]:
    """Merge what these pools need into the live values; deterministic, and independent of the pools' order."""
    values = copy.deepcopy(dict(context.live))
    lay_over(values, requested_values(pools))
    for name in _BANNED:
        values.pop(name, None)
    for path, value in _FIXED:
        put(values, path, new=copy.deepcopy(value))
    cover_taints(values, _TOLERATION_LISTS, pools, context)
    for name, own in (item for pool in pools for item in pool.ownership.values.items()):
        put(values, tuple(name.split(".")), new=own)
    return values


def check_declared_roots(pools: Sequence[Desired]) -> list[Finding]:
    """Report declared pools whose nodes have the driver elsewhere than those of the first pool.

    Args:
        pools: Pools of one cluster that the DRA driver serves.
    """
    return [
        _two_roots(
            pool.target.locator.at("devicePlugin.owner"),
            f"{pool.target.where} has its driver in {_root(pool)}, but {pools[0].target.where} in {_root(pools[0])}",
            "write the same driver.owner for both; or move one of them to another cluster",
        )
        for pool in pools[1:]
        if _root(pool) != _root(pools[0])
    ]


def check_roots(
    pools: Sequence[Desired], seen: Snapshot, live_pools: Sequence[Observed], where: Where
) -> list[Finding]:
    """Report pools with their drivers in two places, and a live release that serves nodes with theirs elsewhere.

    Args:
        pools: Declared pools that the DRA driver serves.
        seen: The cluster.
        live_pools: All pools of the cluster.
        where: The cluster, for the message.
    """
    if found := check_declared_roots(pools):
        return found
    release = seen.release_of(DRA_DRIVER)
    live, desired = text(release.values if release else {}, ROOT), _root(pools[0])
    served = served_names(seen, live_pools, DRA_DRIVER.carries)
    if live in ("", desired) or not served:
        return []
    # The release changes before the pools, and its pods on these nodes would find no driver.
    message = f"{pools[0].target.where} has its driver in {desired}, but {', '.join(sorted(served)[:3])} in {live}"
    fix = "delete the pools that it serves first (gpukube pool delete), or use another cluster"
    return [_two_roots(where, message, fix)]


def _root(pool: Desired) -> str:
    return text(pool.ownership.values, ROOT)


def _two_roots(where: Where, message: str, fix: str) -> Finding:
    return Finding(
        "dra-roots",
        where,
        message,
        why=f"a cluster has one release of {DRA_DRIVER.title}, which looks for the driver in one place "
        "(kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1, nvidiaDriverRoot)",
        fix=fix,
    )
