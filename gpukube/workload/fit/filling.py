"""The nodes of one cluster while pods are placed one after another, as scheduler and autoscaler would place them.

Pure and deterministic. In scope: which node a pod gets, and which pool starts one for it. Out of scope: whether a pod
can run on a node (`predicates`, `neighbours`), the order of the pods (`packing`).

A pod goes to the running node that the default scheduler prefers: no soft taint, preferred node affinity, most CPU and
memory free. If none fits, an autoscaled pool starts a node, the cheapest that fits the pod; of
a family, the first in its order. The autoscaler judges a
pool without nodes by an expected one (`PoolOffer.expected`), and is assumed to start the node in the zone that the pod
needs.

Source: kubernetes/kubernetes pkg/scheduler/framework/plugins (tainttoleration, nodeaffinity, noderesources
least_allocated.go); kubernetes/autoscaler cluster-autoscaler/FAQ.md ("How does scale-up work?").
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING

from gpukube.workload.claims import Claims
from gpukube.workload.fit.claiming import Board
from gpukube.workload.fit.neighbours import Neighbours
from gpukube.workload.fit.nodes import HOSTNAME, ZONE, Node
from gpukube.workload.fit.predicates import may_go, obstacles, tolerates, why_not
from gpukube.workload.selectors import matches_term

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.workload.fit.pods import Pod
    from gpukube.workload.fit.predicates import Obstacle
    from gpukube.workload.offers import NodeShape, PoolOffer

SOME_ZONE = "(any zone)"
"""Zone of nodes whose pool sets none, as long as no pod requires one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """A cluster before anything is placed.

    Attributes:
        key: Key in the spec.
        offers: Its pools.
        nodes: Live nodes with their pods; None if unknown: pools then have their minimum size.
        missing: Pools of the spec that do not exist yet, if known.
        namespaces: Name -> labels.
        region: Region of the cluster; "" if unknown.
        claims: Claims and device classes of the files, and of a live cluster.
    """

    key: str
    offers: tuple[PoolOffer, ...]
    nodes: tuple[Node, ...] | None = None
    missing: tuple[PoolOffer, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    region: str = ""
    claims: Claims = field(default_factory=Claims)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known about all pods before the first is placed.

    Attributes:
        zones: Zones that pods name; they stand in for the zones of a pool that sets none.
        discovered: GPU feature discovery labels that pods name, with their values: running nodes are assumed to have
            them, since the values are unknown in advance.
        daemons: Pods of DaemonSets: each matching node has one.
        rules: Whether any pod has rules about other pods.
    """

    zones: tuple[str, ...] = ()
    discovered: Mapping[str, str] = field(default_factory=dict)
    daemons: tuple[Pod, ...] = ()
    rules: bool = False


class Filling:
    """A cluster that is being filled.

    Args:
        view: The cluster before placing.
        given: What is known about all pods.
    """

    def __init__(self, view: ClusterView, given: Circumstances) -> None:
        self.view = view
        self.nodes: list[Node] = []
        self._given = given
        self._sizes: Counter[str] = Counter()
        self._spread: Counter[tuple[str, str]] = Counter()
        self._open: dict[Pod, list[Node]] = {}
        self._seen: Counter[Pod] = Counter()
        self._known: dict[tuple[int, Pod], bool] = {}
        self._placed: list[tuple[Pod, Node]] = []
        self._board = Board(view.claims, live=view.nodes is not None)
        if view.nodes is None:
            for offer in view.offers:
                for _ in range(offer.desired.target.nodes.minimum):
                    self._add(replace(self.fresh(offer), new=False))
        else:
            for node in view.nodes:
                self._add(
                    replace(
                        node,
                        pods=Counter(node.pods),
                        devices=Counter(node.devices),
                        others=Counter(node.others),
                        board=self._board,
                        in_use=set(self._board.allocated),
                        granted={},
                    )
                )
                self._take_daemons(self.nodes[-1])

    def place(self, pod: Pod, *, start: bool = True) -> Node | None:
        """Place a pod on a node; return None if none fits.

        Args:
            pod: A pod that is not placed yet.
            start: Whether a pool may start a node for it.
        """
        chosen = min(self.suited(pod), key=lambda node: _rank(pod, node), default=None)
        if chosen is None and start and not self._is_blocked(pod):
            chosen = self._start(pod)
        if chosen is not None:
            chosen.take(pod)
            self._placed.append((pod, chosen))
        return chosen

    def suited(self, pod: Pod) -> list[Node]:
        """Return the nodes that a pod may go to now."""
        if self._is_blocked(pod):
            return []
        good = self._with_room(pod)
        if self._given.rules:
            around = self._around(pod, self.nodes)
            good = [node for node in good if not any(around.obstacles(node))]
        return good

    def is_unclear(self, pod: Pod) -> bool:
        """Return whether it is unknown if a pod fits: all that keeps it off some node is a claim that may not."""
        nodes = [*self.nodes, *(self.fresh(offer) for offer in self.view.offers)]
        return any({found.kind for found in obstacles(pod, node)} == {"claim-unknown"} for node in nodes)

    def _is_blocked(self, pod: Pod) -> bool:
        """Return whether a claim is an error on some node that nothing else keeps the pod off: it then goes nowhere."""
        if not pod.claims:
            return False
        return any({found.kind for found in obstacles(pod, node)} == {"claim-error"} for node in self.nodes)

    def _with_room(self, pod: Pod) -> list[Node]:
        """Return the nodes that may accept a pod; nodes that rejected it are skipped: their room only shrinks."""
        nodes = [*self._open.get(pod, ()), *self.nodes[self._seen[pod] :]]
        self._seen[pod] = len(self.nodes)
        self._open[pod] = [node for node in nodes if may_go(pod, node)]
        return self._open[pod]

    def _start(self, pod: Pod) -> Node | None:
        options = [node for offer in self.view.offers for node in [self.startable(pod, offer)] if node is not None]
        chosen = min((node for node in options if not _stands_by(node, options)), key=_price, default=None)
        if chosen is not None:
            self._add(chosen)
        return chosen

    def mark(self) -> tuple[int, int]:
        """Return the current state, for `undo`."""
        return len(self.nodes), len(self._placed)

    def undo(self, mark: tuple[int, int]) -> None:
        """Undo what was placed and started since a mark."""
        nodes, placed = mark
        for pod, node in self._placed[placed:]:
            node.take(pod, -1)
        for node in self.nodes[nodes:]:
            self._count(node, -1)
        del self._placed[placed:], self.nodes[nodes:]
        self._open.clear()
        self._seen.clear()

    def startable(self, pod: Pod, offer: PoolOffer) -> Node | None:
        """Return the node that a pool would start for a pod; None if it would not."""
        if self.size(offer) >= offer.desired.target.nodes.maximum or not self.is_expected(pod, offer):
            return None
        return next((node for node in self.more(offer) if not any(self.refusals(pod, node))), None)

    def size(self, offer: PoolOffer) -> int:
        """Return the number of nodes in a pool, including started ones."""
        return self._sizes[offer.name]

    def is_expected(self, pod: Pod, offer: PoolOffer) -> bool:
        """Return whether the autoscaler expects a node of a pool to fit a pod.

        A pool that has nodes, or will have them whatever is pending, is judged by these.
        """
        if self.size(offer) or offer.desired.target.nodes.minimum:
            return True
        return may_go(pod, self.fresh(offer, expected=True))

    def refusals(self, pod: Pod, node: Node) -> Iterator[Obstacle]:
        """Yield why a pod cannot run on a node that is not up yet."""
        if obstacle := why_not(pod, node):
            yield obstacle
        elif self._given.rules:
            yield from self._around(pod, [*self.nodes, node]).obstacles(node)

    def rules_broken(self, pod: Pod, offer: PoolOffer) -> Iterator[Obstacle]:
        """Yield which rules about other pods keep a pod off a pool's nodes that have room for it."""
        around = self._around(pod, self.nodes) if self._given.rules else None
        for node in self.nodes if around else ():
            if node.offer is not None and node.offer.name == offer.name and may_go(pod, node):
                yield from around.obstacles(node) if around else ()

    def more(self, offer: PoolOffer) -> Iterator[Node]:
        """Yield the next node of a pool, one per possible zone; nothing if the pool is full."""
        target = offer.desired.target
        if self.size(offer) >= target.nodes.maximum:
            return
        zones = self._zones(offer)
        most = target.nodes.maximum
        if target.nodes.scope == "zone" and target.zones:
            most = target.nodes.maximum // len(zones)
        for zone in sorted(zones, key=lambda zone: self._spread[offer.name, zone]):
            if self._spread[offer.name, zone] < most:
                yield self.fresh(offer, zone=zone)

    def fresh(self, offer: PoolOffer, *, zone: str = "", expected: bool = False) -> Node:
        """Return one more node of a pool, without user pods, whether or not the pool may have it.

        Args:
            offer: The pool.
            zone: Its zone; "" for one with the fewest nodes of the pool.
            expected: Whether to return the node that the autoscaler expects of an empty pool.
        """
        if not zone:
            zone = min(self._zones(offer), key=lambda name: self._spread[offer.name, name])
        shape = offer.expected if expected else self._real(offer)
        found = self._given.discovered if offer.discovered and not expected else {}
        name = f"{offer.desired.target.name}-{self.size(offer) + 1}"
        node = Node(
            name=name,
            cluster=self.view.key,
            shape=shape,
            labels={**found, **shape.labels, HOSTNAME: name, ZONE: zone},
            tolerates_resources=offer.tolerates_resources,
            offer=offer,
            new=True,
            board=self._board,
        )
        self._take_daemons(node)
        return node

    def _real(self, offer: PoolOffer) -> NodeShape:
        """Return a node of a pool with verified devices: those of a live node, if there is one."""
        if not offer.by_claims:
            return offer.real
        alike = (node.shape.published for node in self.view.nodes or () if node.offer and node.offer.name == offer.name)
        return replace(offer.real, published=next((found for found in alike if found.devices), offer.real.published))

    def _around(self, pod: Pod, nodes: Sequence[Node]) -> Neighbours:
        return Neighbours(pod, nodes, self.view.namespaces, self._known)

    def _take_daemons(self, node: Node) -> None:
        for pod in self._given.daemons:
            if pod not in node.pods and may_go(pod, node):
                node.take(pod)

    def _zones(self, offer: PoolOffer) -> list[str]:
        """Return a pool's zones as node labels: "1" in a spec is the zone "eastus-1" that a pod names."""
        named = self._given.zones
        written = [
            next((one for one in named if one.endswith(f"-{zone}")), zone) for zone in offer.desired.target.zones
        ]
        return written or list(named) or [SOME_ZONE]

    def _add(self, node: Node) -> None:
        self.nodes.append(node)
        self._count(node, 1)

    def _count(self, node: Node, count: int) -> None:
        if node.offer is not None:
            self._sizes[node.offer.name] += count
            self._spread[node.offer.name, node.zone] += count


def _rank(pod: Pod, node: Node) -> tuple[bool, int, int, int]:
    """Order nodes as the scheduler does: running, without soft taints, preferred, with most CPU and memory free."""
    soft = sum(taint.effect == "PreferNoSchedule" and not tolerates(pod, node, taint) for taint in node.shape.taints)
    liked = sum(weight for weight, term in pod.liked if matches_term(term, node.labels, node.name))
    shares = [
        (has - used - requested) * 100 // has
        for has, used, requested in (
            (node.shape.cpu, node.cpu, pod.request.cpu),
            (node.shape.memory, node.memory, pod.request.memory),
        )
        if has
    ]
    return node.new, soft, -liked, -sum(shares)


def _stands_by(node: Node, options: Sequence[Node]) -> bool:
    """Return whether the autoscaler would rather start a node of another pool of the same family."""
    own = node.offer
    others = (other.offer for other in options)
    return own is not None and any(
        other.family and other.family == own.family and other.desired.target.rank < own.desired.target.rank
        for other in others
        if other is not None
    )


def _price(node: Node) -> float:
    guide = node.offer.price.guide if node.offer else None
    return inf if guide is None else guide
