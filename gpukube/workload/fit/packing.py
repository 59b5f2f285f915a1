"""Places all pods: in which order, on which cluster, and which ones do not fit.

Pure and deterministic. In scope: the order. Out of scope: the node that a pod gets (`filling`), explaining pods that do
not fit (`answers`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import strings, text, trees
from gpukube.workload.fit.filling import Circumstances, Filling
from gpukube.workload.fit.nodes import ZONE
from gpukube.workload.fit.predicates import obstacles, selects
from gpukube.workload.selectors import matches_term

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.workload.fit.demand import Demand
    from gpukube.workload.fit.filling import ClusterView
    from gpukube.workload.fit.nodes import Node
    from gpukube.workload.fit.pods import Pod


_FAR: Final = 99
"""Distance of a cluster without pools."""


@dataclass(slots=True, eq=False)
class Placed:
    """Placement of equal pods.

    Attributes:
        cluster: Cluster where they were placed.
        nodes: Node -> number of pods.
        missing: Number of the workload's minimum pods that do not fit.
        beyond: The same for pods that an autoscaler may add.
        elsewhere: Pods without devices that fit no known node: they need a node without GPUs.
        unknown: The same for pods of which it is unknown whether they fit: their claims ask what only nodes show.
        surge: Number of rollout pods that fit.
    """

    cluster: Filling
    nodes: Counter[Node] = field(default_factory=Counter)
    missing: int = 0
    beyond: int = 0
    elsewhere: int = 0
    unknown: int = 0
    surge: int = 0

    @property
    def now(self) -> int:
        """Number of pods on running nodes."""
        return sum(count for node, count in self.nodes.items() if not node.new)

    @property
    def later(self) -> int:
        """Number of pods on nodes that an autoscaler starts."""
        return self.nodes.total() - self.now

    @property
    def never(self) -> int:
        """Number of pods that do not fit."""
        return self.missing + self.beyond

    @property
    def unfit(self) -> int:
        """Number of pods that do not fit for certain."""
        return self.never + self.unknown


@dataclass(frozen=True, slots=True)
class Packing:
    """Placement of everything.

    Attributes:
        clusters: Clusters with their nodes after placing.
        placed: By demand, in the order of the files.
    """

    clusters: tuple[Filling, ...]
    placed: Mapping[Demand, Placed]


def pack(views: Sequence[ClusterView], demands: Sequence[Demand], *, roll_outs: bool = True) -> Packing:
    """Place all pods, in the order of the files.

    First the minimum of each workload, then what autoscalers may add; rollouts are tried at the end, each on its own,
    and use no room. A workload goes to the first cluster that fits its whole minimum, else to the one where the fewest
    of its pods do not fit. Pods that do not fit are retried after the others, to which they may have an affinity.

    Args:
        views: The clusters.
        demands: In the order of the files.
        roll_outs: Whether to try rollouts.
    """
    given = _circumstances(views, demands)
    clusters = tuple(Filling(view, given) for view in views)
    workloads: dict[int, list[Demand]] = {}
    for demand in demands:
        workloads.setdefault(id(demand.workload), []).append(demand)
    placed: dict[Demand, Placed] = {}
    for own in workloads.values():
        cluster = _best_cluster(clusters, own)
        placed.update({demand: _place(cluster, demand) for demand in own})
    _try_again(placed)
    for demand, found in placed.items():
        if not demand.daemon and demand.most is not None and not found.never:
            found.beyond = _fill(found, demand, demand.most - demand.least)
    _try_again(placed)
    _set_unknown(placed)
    for own in workloads.values() if roll_outs else ():
        if any(demand.surge for demand in own):
            _try_roll_out(own, placed)
    for demand, found in placed.items():
        if demand.daemon:
            for node in found.cluster.nodes:
                if demand.pod in node.pods:
                    found.nodes[node] += 1
    return Packing(clusters, {demand: placed[demand] for demand in demands})


def _set_unknown(placed: Mapping[Demand, Placed]) -> None:
    """Count pods as unknown whose claims ask what only nodes show."""
    for demand, found in placed.items():
        if found.never and found.cluster.is_unclear(demand.pod):
            found.unknown, found.missing, found.beyond = found.never, 0, 0


def _best_cluster(clusters: Sequence[Filling], own: Sequence[Demand]) -> Filling:
    if len(clusters) == 1:
        return clusters[0]
    tried: list[tuple[int, int, Filling]] = []
    for cluster in clusters:
        mark = cluster.mark()
        missing = sum(_place(cluster, demand).missing for demand in own)
        cluster.undo(mark)
        if not missing:
            return cluster
        tried.append((missing, sum(_distance(cluster, demand.pod) for demand in own), cluster))
    return min(tried, key=lambda item: item[:2])[2]


def _distance(cluster: Filling, pod: Pod) -> int:
    """Return how many obstacles are between a pod and the pool that matches it best."""
    return min((len(list(obstacles(pod, cluster.fresh(offer)))) for offer in cluster.view.offers), default=_FAR)


def _place(cluster: Filling, demand: Demand) -> Placed:
    found = Placed(cluster)
    if not demand.daemon:
        left = _fill(found, demand, demand.least)
        pod = demand.pod
        if pod.needs_devices or pod.node_name or _is_bound(cluster, pod) or too_large_anywhere(pod, cluster):
            found.missing = left
        else:
            found.elsewhere = left
    return found


def too_large_anywhere(pod: Pod, cluster: Filling) -> tuple[str, ...]:
    """Return why no known node outside of the pools could run a pod even if it were empty.

    A pool that is not in the spec starts nodes as large as its existing ones. Returns () if one could run it, and if no
    such node is known.
    """
    nodes = [node for node in cluster.view.nodes or () if node.offer is None]
    refused = [[one.text for one in obstacles(pod, node) if one.kind == "resource" and one.lasting] for node in nodes]
    return tuple(dict.fromkeys(text for texts in refused for text in texts)) if all(refused) else ()


def _fill(found: Placed, demand: Demand, count: int) -> int:
    """Place equal pods until one does not fit; return how many are left."""
    start = demand.pod.needs_devices or _is_bound(found.cluster, demand.pod)
    for done in range(count):
        node = found.cluster.place(demand.pod, start=start)
        if node is None:
            return count - done
        found.nodes[node] += 1
    return 0


def _is_bound(cluster: Filling, pod: Pod) -> bool:
    """Return whether a pod selects nodes of one of the pools; other pods without devices can run on any node.

    So can those that only avoid some nodes: an affinity that a node without labels matches.
    """
    if not pod.selector and (pod.terms is None or any(matches_term(term, {}, "") for term in pod.terms)):
        return False
    return any(selects(pod, cluster.fresh(offer)) for offer in cluster.view.offers)


def _try_again(placed: Mapping[Demand, Placed]) -> None:
    """Retry those that do not fit until none does: pods to which they have an affinity may have been placed."""
    progress = True
    while progress:
        progress = False
        for demand, found in placed.items():
            if found.missing and (demand.pod.near or demand.pod.spreads):
                before, found.missing = found.missing, _fill(found, demand, found.missing)
                progress = progress or found.missing < before


def _try_roll_out(own: Sequence[Demand], placed: Mapping[Demand, Placed]) -> None:
    """Return how many pods of a rollout would fit next to the old ones."""
    cluster = placed[own[0]].cluster
    mark = cluster.mark()
    for demand in own:
        found = placed[demand]
        if demand.surge and not (found.never or found.elsewhere or found.unknown):
            trial = Placed(cluster)
            found.surge = demand.surge - _fill(trial, demand, demand.surge)
    cluster.undo(mark)


def _circumstances(views: Sequence[ClusterView], demands: Sequence[Demand]) -> Circumstances:
    pods = [demand.pod for demand in demands]
    running = (pod for view in views for node in view.nodes or () for pod in node.pods)
    named = [pair for pod in pods for pair in _labels_named(pod)]
    return Circumstances(
        zones=tuple(dict.fromkeys(value for key, value in named if key == ZONE and value)),
        discovered={key: value for key, value in reversed(named) if key.startswith("nvidia.com/")},
        daemons=tuple(demand.pod for demand in demands if demand.daemon),
        rules=any(pod.spreads or pod.near or pod.apart for pod in pods) or any(pod.apart for pod in running),
    )


def _labels_named(pod: Pod) -> Iterator[tuple[str, str]]:
    """Yield the node labels that a pod requires, with an accepted value, "" for any."""
    yield from pod.selector.items()
    for term in pod.terms or ():
        for item in trees(term, "matchExpressions"):
            if text(item, "operator") in {"In", "Exists"}:
                yield from ((text(item, "key"), value) for value in strings(item, "values") or ("",))
