"""Finds gpukube's labels and taints that a pool's API declares and a live node has lost: drift inside the cluster.

In scope: pool plans and a snapshot -> repairs; pure. Out of scope: patching nodes (release.node_repair), and
differences between spec and pool API (core.diff).

The three clouds set labels and taints on a node when it registers, and again when the pool's own API changes them;
manual changes on the node in between stay (the kubelet sets --node-labels at registration; UpdateNodegroupConfig of EKS
and UpdateNodePool of GKE apply their change to the nodes). AKS reserves the labels and taints of the pool API and warns
against edits on nodes (docs: aks/use-labels, aks/use-node-taints; Azure/AKS#2832), so a repair only restores what the
pool's API currently declares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from gpukube.cluster.names import DRA_DRIVER, GPU_OPERATOR
from gpukube.core.owners import ADVERTISER_LABEL
from gpukube.core.values import OWNER_LABEL, POOL_LABEL
from gpukube.provider import in_cluster_facts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cluster.kube.views import NodeView
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Desired, Observed, PoolPlan

UNINITIALIZED: Final = "node.cloudprovider.kubernetes.io/uninitialized"
"""Taint of a node that the cloud has not initialized yet (k8s.io/cloud-provider api/well_known_taints.go)."""
_CUT_LABEL: Final = "nvidia.com/mig.config"
_WRITTEN_BY_OPERATOR: Final = frozenset({"nvidia.com/gpu.present"})
"""Labels that the GPU Operator sets from NFD's results, over any other value (NVIDIA/gpu-operator
controllers/nodelabeling_controller.go): not gpukube's on nodes that it serves."""


@dataclass(frozen=True, slots=True)
class NodeRepair:
    """One label or taint that a node lacks, or has with another value.

    Attributes:
        node: Name of the node.
        pool: Name of its pool in the spec.
        kind: Label or taint.
        key: Key of the label or taint.
        desired: Value that spec and pool API declare.
        live: Value on the node; None if missing.
        effect: Effect of a taint; "" for a label.
    """

    node: str
    pool: str
    kind: Literal["label", "taint"]
    key: str
    desired: str
    live: str | None
    effect: str = ""

    @property
    def field(self) -> str:
        """Field name in the format of pool fields: "labels[team]", "taints[dedicated:NoSchedule]"."""
        return f"taints[{self.key}:{self.effect}]" if self.kind == "taint" else f"labels[{self.key}]"

    @property
    def disruptive(self) -> bool:
        """Whether the repair affects pods: a new MIG layout stops all users of the node's GPUs, NoExecute evicts."""
        return (self.kind == "label" and self.key == _CUT_LABEL) or self.effect == "NoExecute"

    def __str__(self) -> str:
        """Render the difference in one line."""
        return f"node {self.node}: {self.field} is {self.live if self.live is not None else 'gone'}, not {self.desired}"


def node_repairs(pools: Sequence[PoolPlan], seen: Snapshot) -> tuple[NodeRepair, ...]:
    """Return what nodes of gpukube's ready pools have lost, in the order of pools, nodes, and keys.

    Only what spec and pool API agree on counts: where they differ, the planned update sets it on the nodes. Labels and
    taints of others are not drift.

    Args:
        pools: Plans of one cluster.
        seen: Snapshot of the cluster.
    """
    found: list[NodeRepair] = []
    for plan in pools:
        desired, live = plan.desired, plan.observed
        if (
            desired is None
            or live is None
            or live.state != "ready"
            or (live.owner, live.pool) != (desired.target.owner, desired.target.pool)
        ):
            continue
        for node in sorted(nodes_of_pool(seen, live), key=lambda node: node.name):
            if all(taint.key != UNINITIALIZED for taint in node.taints):
                found += [*_labels(desired, live, node), *_taints(desired, live, node)]
    return tuple(found)


def nodes_of_pool(seen: Snapshot, pool: Observed) -> tuple[NodeView, ...]:
    """Return the nodes of a live pool, by gpukube's labels, or by the cloud's own label if a node has lost them."""
    return tuple(node for node in seen.nodes if belongs_to_pool(node, pool))


def without_nodes_of(seen: Snapshot, pool: Observed) -> Snapshot:
    """Return the snapshot without a live pool's nodes: if two pools share labels, the other pool's nodes remain."""
    names = {node.name for node in nodes_of_pool(seen, pool)}
    return replace(seen, nodes=tuple(node for node in seen.nodes if node.name not in names))


def belongs_to_pool(node: NodeView, pool: Observed, pool_label: str = "") -> bool:
    """Return whether a node belongs to a live pool: by the cloud's own label, else by gpukube's labels.

    Args:
        node: A node of the cluster.
        pool: The live pool.
        pool_label: Key of the cloud's label; "" for those of all clouds.
    """
    # The cloud's label finds a node that has lost gpukube's, and distinguishes two pools with the same ones. Clouds
    # without one are matched only by gpukube's labels.
    keys = [pool_label] if pool_label else (facts.pool_label for facts in in_cluster_facts() if facts.pool_label)
    if named := next((node.labels[key] for key in keys if node.labels.get(key)), ""):
        return named == pool.name
    return bool(pool.owner) and (node.labels.get(OWNER_LABEL), node.labels.get(POOL_LABEL)) == (pool.owner, pool.pool)


def changes_claiming(live: str, expected: str) -> bool:
    """Return whether another value of the advertiser's label moves a node between the DRA driver and another owner.

    Such a label is reported and not restored: pods that run by the other way hold GPUs, which the restored owner does
    not know of and would give to other pods. A node that lost the label has neither.
    """
    return bool(live) and live != expected and DRA_DRIVER.advertiser in (live, expected)


def _labels(desired: Desired, live: Observed, node: NodeView) -> list[NodeRepair]:
    operated = live.labels.get(ADVERTISER_LABEL) == GPU_OPERATOR.advertiser or desired.ownership.operated
    return [
        NodeRepair(
            node=node.name, pool=desired.target.pool, kind="label", key=key, desired=expected, live=node.labels.get(key)
        )
        for key, expected in sorted(desired.labels.items())
        if live.labels.get(key) == expected
        and node.labels.get(key) != expected
        and not (key == ADVERTISER_LABEL and changes_claiming(node.labels.get(key, ""), expected))
        and not (operated and key in _WRITTEN_BY_OPERATOR)
    ]


def _taints(desired: Desired, live: Observed, node: NodeView) -> list[NodeRepair]:
    present = {(taint.key, taint.effect): taint.value for taint in node.taints}
    agreed = sorted(set(desired.effective_taints) & set(live.effective_taints))
    return [
        NodeRepair(
            node=node.name,
            pool=desired.target.pool,
            kind="taint",
            key=taint.key,
            desired=taint.value,
            live=value,
            effect=taint.effect,
        )
        for taint in agreed
        if (value := present.get((taint.key, taint.effect))) != taint.value
    ]
