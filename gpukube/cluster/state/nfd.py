"""Detects an existing Node Feature Discovery, and whether it reaches gpukube's nodes.

In scope: recognizing a foreign NFD. Out of scope: the chart values that follow (release.plugin_values).

With NFD installed twice, two masters fight over labels (NVIDIA/cloud-native-docs, gpu-operator/getting-started). The
CRDs that helm leaves behind do not mean that one is running, so workloads decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpukube.cluster.names import GPU_OPERATOR, NAMESPACE, RELEASE_KINDS
from gpukube.cluster.state.scheduling import daemon_misfits
from gpukube.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from gpukube.cluster.kube.views import WorkloadView
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Desired

_NAME: Final = "node-feature-discovery"
_SHORT: Final = "nfd"


@dataclass(frozen=True, slots=True)
class ForeignNfd:
    """An NFD outside gpukube's release.

    Attributes:
        masters, workers: Its workloads; either may be hidden.
    """

    masters: tuple[WorkloadView, ...]
    workers: tuple[WorkloadView, ...]

    def __str__(self) -> str:
        """Render the first workload."""
        return str((*self.masters, *self.workers)[0])


def find_nfd(seen: Snapshot, going: Collection[tuple[str, str]] = ()) -> ForeignNfd | None:
    """Find a foreign NFD; return None if there is none.

    Args:
        seen: The cluster.
        going: Namespace and name of releases that are about to be uninstalled, with their NFD.
    """
    own = {*going, *((NAMESPACE, kind.name) for kind in RELEASE_KINDS)}
    masters = tuple(item for item in seen.deployments if _is_part(item, "master") and _release(item) not in own)
    workers = tuple(item for item in seen.daemonsets if _is_part(item, "worker") and _release(item) not in own)
    return ForeignNfd(masters, workers) if masters or workers else None


def _is_part(item: WorkloadView, role: str) -> bool:
    named = item.labels.get("app.kubernetes.io/name", "") == _NAME or item.labels.get("app") in (_SHORT, f"nfd-{role}")
    runs = any(f"nfd-{role}" in word for part in item.containers for word in part.command)
    return (named and (item.name.endswith(role) or _role(item) == role)) or runs or item.name == f"nfd-{role}"


def _role(item: WorkloadView) -> str:
    return item.labels.get("role", "") or item.pod_labels.get("role", "")


def _release(item: WorkloadView) -> tuple[str, str]:
    return item.namespace, item.labels.get("app.kubernetes.io/instance", "")


def nfd_warnings(nfd: ForeignNfd | None, pools: Sequence[Desired]) -> list[Finding]:
    """Warn about pools that a foreign NFD's workers do not reach: no features, so no GFD labels there.

    The plugin's chart does not depend on it: gpukube's nodes have the label that its affinity requires from the start.
    The
    GPU Operator does: it ignores nodes on which NFD has not detected the GPU (controllers/nodelabeling_controller.go).
    """
    if nfd is None:
        return []
    found = []
    for pool in pools:
        stuck = [daemon_misfits(item.placement, pool.labels, pool.effective_taints) for item in nfd.workers]
        taints = sorted({str(miss.taint) for reasons in stuck for miss in reasons if miss.taint})
        if stuck and all(stuck) and taints:
            found.append(_out_of_reach(nfd.workers[0], pool, ", ".join(taints)))
    return found


def _out_of_reach(worker: WorkloadView, pool: Desired, taints: str) -> Finding:
    where, message = pool.target.where, f"{worker} does not tolerate {taints}"
    fix = f"add tolerations for {taints} to that DaemonSet's release"
    if GPU_OPERATOR.serves(pool.ownership):
        why = "the GPU Operator serves only nodes that NFD has labeled: these would have no GPU"
        return Finding("operator-nfd", where, message, why=why, fix=fix)
    why = "feature labels come from that NFD, so these nodes get none (their GPUs are still advertised)"
    return Finding("nfd-taint", where, message, why=why, fix=fix, severity="warning")
