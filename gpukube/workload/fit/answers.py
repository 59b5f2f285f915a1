"""Reports for each workload and node: schedules now, after a scale-up, or never; why, and what would change that.

Pure. In scope: reasons per pool, what limits a node. Out of scope: placing (`packing`), searching for the change
(`edits`), documents.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from gpukube.core.autoscaler_template import devices_text
from gpukube.workload.fit.edits import Edit, find_edits
from gpukube.workload.fit.families import settle_families
from gpukube.workload.fit.packing import pack, too_large_anywhere
from gpukube.workload.fit.predicates import obstacles, why_not

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.workload.claims import Claims
    from gpukube.workload.fit.demand import Demand, Unplaced
    from gpukube.workload.fit.filling import ClusterView, Filling
    from gpukube.workload.fit.nodes import Node
    from gpukube.workload.fit.packing import Packing, Placed
    from gpukube.workload.fit.pods import Pod
    from gpukube.workload.offers import PoolOffer

_MISSING: Final = "the pool does not exist yet: `gpukube pool create` creates it"

State = Literal["now", "after-scale-up", "never", "unknown", "elsewhere"]


@dataclass(frozen=True, slots=True)
class PoolReason:
    """Why pods do not fit a pool.

    Attributes:
        pool: Cluster key and pool.
        texts: The reasons.
    """

    pool: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """Result for equal pods.

    Attributes:
        demand: The pods.
        placed: Where they were placed.
        reasons: Reasons for those that were not placed, per pool of their cluster; the best-matching pool comes first.
        edit: The single change with which all fit; None if none was found, or needed.
    """

    demand: Demand
    placed: Placed
    reasons: tuple[PoolReason, ...] = ()
    edit: Edit | None = None

    @property
    def state(self) -> State:
        """The worst result among the pods."""
        if self.placed.never:
            return "never"
        if self.placed.unknown:
            return "unknown"
        if self.placed.elsewhere:
            return "elsewhere"
        return "after-scale-up" if self.placed.later else "now"

    @property
    def rollout_blocked(self) -> bool:
        """Whether a rollout or an upgrade would never finish, although the pods themselves fit."""
        whole = not (self.placed.never or self.placed.elsewhere or self.placed.unknown)
        return whole and self.placed.surge < self.demand.surge_needed


@dataclass(frozen=True, slots=True)
class NodeUse:
    """A node with pods of the workloads.

    Attributes:
        node: State after placing.
        pods: Pods of the workloads.
        others: Pods that were there before.
        binds: What prevents one more of these pods: a resource, or "pods"; "" if one more would fit.
        stranded: Unused devices that no pod of the workloads can use.
    """

    node: Node
    pods: Mapping[Demand, int]
    others: int
    binds: str
    stranded: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Fit:
    """The complete result.

    Attributes:
        answers: In the order of the files.
        nodes: Nodes with pods of the workloads, by cluster and pool.
        packing: The packing that was found.
        unplaced: Pods that were not placed at all.
    """

    answers: tuple[Answer, ...]
    nodes: tuple[NodeUse, ...]
    packing: Packing
    unplaced: tuple[Unplaced, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether every pod fits now or after a scale-up, as far as the spec shows."""
        never = any(answer.placed.never or answer.placed.unknown for answer in self.answers)
        return not never and not any(item.has_pods for item in self.unplaced)


def find_fit(
    views: Sequence[ClusterView],
    demands: Sequence[Demand],
    unplaced: Sequence[Unplaced] = (),
    claims: Claims | None = None,
) -> Fit:
    """Place the pods of workloads, and explain those that do not fit.

    Args:
        views: The clusters.
        demands: Pods to place, in the order of the files.
        unplaced: Pods that cannot be placed, to report with the rest.
        claims: Claims and device classes among the files; they come before those of the clusters.
    """
    if claims is not None:
        views = [replace(view, claims=view.claims.beside(claims)) for view in views]
    views = settle_families(views, demands)
    packing = pack(views, demands)
    edits = find_edits(views, demands, packing)
    answers = tuple(
        Answer(
            demand,
            placed,
            tuple(_reasons(demand.pod, placed.cluster)) if placed.never or placed.unknown else (),
            edits.get(demand),
        )
        for demand, placed in packing.placed.items()
    )
    return Fit(answers, tuple(_uses(packing)), packing, tuple(unplaced))


def _reasons(pod: Pod, cluster: Filling) -> list[PoolReason]:
    found = [
        PoolReason(offer.name, tuple(dict.fromkeys(pool_reasons(pod, cluster, offer)))) for offer in cluster.view.offers
    ]
    there = {offer.family for offer in cluster.view.offers}
    missing = [offer for offer in cluster.view.missing if not offer.family or offer.family not in there]
    found += [PoolReason(offer.name, (_MISSING,)) for offer in missing]
    if not pod.needs_devices and (texts := too_large_anywhere(pod, cluster)):
        found.append(PoolReason(f"{cluster.view.key}, nodes of no pool of the spec", texts))
    return sorted(found, key=lambda reason: len(reason.texts))


def pool_reasons(pod: Pod, cluster: Filling, offer: PoolOffer) -> Iterator[str]:
    """Yield why one more pod does not fit a pool in its current state."""
    fresh = cluster.fresh(offer)
    lasting = [obstacle.text for obstacle in obstacles(pod, fresh)]
    if lasting:
        yield from lasting
        return
    if not cluster.is_expected(pod, offer):
        expected = devices_text(offer.expected.all_devices)
        yield f"while the pool is empty, the autoscaler expects {expected} of a node, so such pods start none"
        return
    more = list(cluster.more(offer))
    if more:
        yield from (obstacle.text for node in more for obstacle in cluster.refusals(pod, node))
        return
    size, nodes = cluster.size(offer), offer.desired.target.nodes
    full = next((obstacle.text for obstacle in cluster.rules_broken(pod, offer)), "")
    full = full or (f"its {'node is' if size == 1 else f'{size} nodes are'} full" if size else "it has no nodes")
    yield f"{full}, its {'maximum' if nodes.autoscaled else 'count'} is {nodes.maximum}"


def _uses(packing: Packing) -> Iterator[NodeUse]:
    of_pod = {demand.pod: demand for demand in packing.placed}
    for cluster in packing.clusters:
        for node in cluster.nodes:
            pods = {of_pod[pod]: count for pod, count in node.pods.items() if pod in of_pod}
            if not any(not demand.daemon for demand in pods):
                continue
            others = sum(count for pod, count in node.pods.items() if pod not in of_pod)
            yield NodeUse(node, pods, others, _binding(pods, node), _stranded(of_pod, node))


def _binding(pods: Mapping[Demand, int], node: Node) -> str:
    """Return what prevents one more pod of the kind that has most pods on the node."""
    most = max((item for item in pods if not item.daemon), key=lambda item: pods[item])
    found = (obstacle.subject for obstacle in obstacles(most.pod, node) if obstacle.kind in {"resource", "pods"})
    return next(found, "")


def _stranded(of_pod: Mapping[Pod, Demand], node: Node) -> dict[str, int]:
    """Return the unused devices, except those of the fast network, that no pod of the workloads can use."""
    fabric = node.offer.desired.fabric if node.offer else None
    free = node.free_devices().items()
    left = {name: count for name, count in free if count > 0 and not (fabric and fabric.covers(name))}
    return {
        name: count
        for name, count in left.items()
        if not any((name in pod.request.devices or pod.claims) and why_not(pod, node) is None for pod in of_pod)
    }
