"""Values of the device plugin's chart for the pools it serves.

In scope: pools and live values -> chart values; pure. Out of scope: whether this chart is the cluster's release (plan),
and what the charts share (shared_values).

What the values ensure (NVIDIA/k8s-device-plugin v0.20.0, chart and README):
- the chart's `migStrategy` overrides flags.migStrategy of every entry, so it is never set;
- helm merges maps, so `affinity: {}` keeps the chart's default terms; the list nodeSelectorTerms is replaced;
- `tolerations` replaces the default list; it does not apply to NFD, whose workers tolerate only
  nvidia.com/gpu=present:NoSchedule (#734), and whose master and collector tolerate no GPU taint.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.views import Toleration
from gpukube.cluster.names import DEVICE_PLUGIN
from gpukube.cluster.release.chart_settings import lay_over, requested_values
from gpukube.cluster.release.shared_values import (
    CONTROL_PLANE,
    DEFAULT_KEY,
    GPU_TAINTS,
    cover_taints,
    merged_entries,
    put,
)
from gpukube.core.owners import ADVERTISER_LABEL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cluster.release.shared_values import ReleaseContext
    from gpukube.core.values import Desired

_AFFINITY: Final = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [
                        {"key": ADVERTISER_LABEL, "operator": "In", "values": [DEVICE_PLUGIN.advertiser]}
                    ]
                }
            ]
        }
    }
}
_PLUGIN_DEFAULTS: Final = (Toleration("CriticalAddonsOnly", "Exists"), GPU_TAINTS)
_WORKER_DEFAULTS: Final = (
    Toleration("node-role.kubernetes.io/master", effect="NoSchedule"),
    CONTROL_PLANE,
    GPU_TAINTS,
)
_TOLERATION_LISTS: Final[tuple[tuple[tuple[str, ...], tuple[Toleration, ...]], ...]] = (
    (("tolerations",), _PLUGIN_DEFAULTS),
    (("nfd", "worker", "tolerations"), _WORKER_DEFAULTS),
    (("nfd", "master", "tolerations"), (CONTROL_PLANE, GPU_TAINTS)),
    (("nfd", "gc", "tolerations"), (GPU_TAINTS,)),
)
"""Every list of tolerations that must cover the pools' taints, with the entries of the chart's own default (for NFD's
workers nvidia.com/gpu with any value)."""
_BANNED: Final = (
    "migStrategy",
    "nodeSelector",
    "devicePlugin",
    "nameOverride",
    "fullnameOverride",
    "namespaceOverride",
    "selectorLabelsOverride",
)
"""Values that would break gpukube's: removed from live values, rejected in a spec."""
_MOUNTING_ALL: Final = ("0.19.0", "0.19.1", "0.19.2")
"""Versions that by default mount all RDMA devices of a node into each container with a GPU, devices of other pods too
(NVIDIA/k8s-device-plugin#1837; docs: eks/device-management-efa)."""


def chart_values(pools: Sequence[Desired], context: ReleaseContext) -> dict[str, object]:
    """Merge what these pools need into the live values; deterministic, and independent of the pools' order."""
    values = copy.deepcopy(dict(context.live))
    lay_over(values, requested_values(pools))
    for name in _BANNED:
        values.pop(name, None)
    values["config"] = {"default": DEFAULT_KEY, "map": merged_entries(pools, context, DEVICE_PLUGIN.entries)}
    values["affinity"] = copy.deepcopy(_AFFINITY)
    put(values, ("gfd", "enabled"), new=True)
    put(values, ("nfd", "enabled"), new=context.bundle_nfd)
    put(values, ("nfd", "worker", "nodeSelector"), new={ADVERTISER_LABEL: DEVICE_PLUGIN.advertiser})
    if context.version in _MOUNTING_ALL and any(pool.fabric for pool in pools):
        values.setdefault("mofedEnabled", False)
    cover_taints(values, _TOLERATION_LISTS, pools, context)
    return values
