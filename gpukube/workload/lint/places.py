"""Finds the pools of the spec that a pod can use, and what keeps it off each.

Pure. In scope: matching a pod with the offers of the spec, with the scheduler's predicates. Out of scope: messages (the
rules).

A spec contains the GPU pools of some clusters, not all their nodes. So "no pool of the spec fits" is certain to be a
mistake only if the pod selects pools of the spec by their own labels ("bound").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpukube.core.hugepages import HUGE
from gpukube.core.jsontree import text, trees
from gpukube.core.values import POOL_LABEL
from gpukube.workload.fit.nodes import HOSTNAME, ZONE, Node
from gpukube.workload.fit.pods import read_pod
from gpukube.workload.fit.predicates import tolerates
from gpukube.workload.selectors import holds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.core.jsontree import Tree
    from gpukube.core.values import Taint
    from gpukube.workload.fit.pods import Pod as Demand
    from gpukube.workload.lint.views import Pod
    from gpukube.workload.offers import PoolOffer

DISCOVERED: Final = ("nvidia.com/gpu.", "nvidia.com/mig", "nvidia.com/cuda.", "feature.node.kubernetes.io/")
"""Label prefixes of GPU feature discovery and node feature discovery, which a node gets once its driver runs."""
_NODE: Final = "any"


@dataclass(frozen=True, slots=True)
class Place:
    """One pool and how a pod matches it.

    Attributes:
        offer: The pool.
        untolerated: Taints that keep the pod off.
        lacking: Extended resources, claims, and huge pages that the pool does not have at all.
        short: Resources of which one empty node has too little -> what it has.
    """

    offer: PoolOffer
    untolerated: tuple[Taint, ...]
    lacking: tuple[str, ...]
    short: dict[str, int]

    @property
    def nodes(self) -> int:
        """Maximum number of nodes of the pool."""
        return self.offer.desired.target.nodes.maximum

    @property
    def from_zero(self) -> bool:
        """Whether the pool can be empty, so that its autoscaler must start the first node."""
        nodes = self.offer.desired.target.nodes
        return nodes.autoscaled and not nodes.minimum

    @property
    def selector_text(self) -> str:
        """What a pod writes to select the pool."""
        chosen = self.offer.family_selector or self.offer.selector
        pairs = ", ".join(f"{key}: {value}" for key, value in chosen.items())
        return f"nodeSelector: {{{pairs}}}"


@dataclass(frozen=True, slots=True)
class Places:
    """The pools of the spec for one pod.

    Attributes:
        every: All pools of the spec.
        chosen: Pools that its nodeSelector and required node affinity match.
        selects: Whether it has either of these.
        bound: Whether it selects them by labels of the spec's pools, so that no other node can be meant.
    """

    every: tuple[Place, ...]
    chosen: tuple[Place, ...]
    selects: bool
    bound: bool

    @property
    def offering(self) -> tuple[Place, ...]:
        """Chosen pools with the resources that it names, in any number."""
        return tuple(place for place in self.chosen if not place.lacking)

    @property
    def open(self) -> tuple[Place, ...]:
        """Offering pools whose taints it tolerates."""
        return tuple(place for place in self.offering if not place.untolerated)

    @property
    def fitting(self) -> tuple[Place, ...]:
        """Open pools where it fits an empty node."""
        return tuple(place for place in self.open if not place.short)


def find_places(pod: Pod, offers: Sequence[PoolOffer], *, by_claims: bool = False) -> Places:
    """Compare a pod with each pool.

    Args:
        pod: The pod.
        offers: The pools.
        by_claims: Whether the pod claims GPUs.
    """
    demand = read_pod(pod.template.metadata, pod.spec, namespace=pod.manifest.namespace)
    every = tuple(_place(demand, offer, by_claims=by_claims) for offer in offers)
    chosen = tuple(place for place in every if _chooses(demand, place.offer))
    selects = bool(demand.selector) or demand.terms is not None
    required = {(key, value) for key, value, _ in pod.required_labels}
    bound = any(
        item in required and (item[1] == offer.desired.target.name or item[0] == POOL_LABEL)
        for offer in offers
        for item in (*offer.selector.items(), (POOL_LABEL, offer.desired.labels.get(POOL_LABEL, "")))
    ) or any(item in required for offer in offers for item in offer.family_selector.items())
    return Places(every, chosen, selects, bound)


def room_for(pod: Pod, places: Sequence[Place]) -> int:
    """Return how many of the pods fit some pools at their largest; one pool of a family of fixed size has its nodes."""
    shared: dict[tuple[str, str, str], int] = {}
    total = 0
    for place in places:
        room, family = per_node(pod, place) * place.nodes, place.offer.family
        if family and not place.offer.desired.target.nodes.autoscaled:
            shared[family] = max(room, shared.get(family, 0))
        else:
            total += room
    return total + sum(shared.values())


def per_node(pod: Pod, place: Place) -> int:
    """Return how many of the pods fit an empty node."""
    shape, request = place.offer.real, pod.request
    found = ((shape.count(name), count) for name, count in request.devices.items() if count)
    counts = [has // count for has, count in found if has is not None]
    for has, needed in ((shape.cpu, request.cpu), (shape.memory, request.memory)):
        if has is not None and needed:
            counts.append(has // needed)
    if shape.pods is not None:
        counts.append(shape.pods)
    return min(counts, default=0)


def _place(demand: Demand, offer: PoolOffer, *, by_claims: bool) -> Place:
    shape, request = offer.real, demand.request
    node = Node(
        name=_NODE,
        cluster=offer.desired.target.cluster.key,
        shape=shape,
        labels=shape.labels,
        tolerates_resources=offer.tolerates_resources,
        offer=offer,
    )
    room = {**shape.devices, **shape.others, "cpu": shape.cpu, "memory": shape.memory}
    needed = {**request.devices, **request.others, "cpu": request.cpu, "memory": request.memory}
    short = {name: has for name, count in needed.items() if (has := room.get(name)) and count > has}
    return Place(
        offer,
        tuple(
            taint for taint in shape.taints if taint.effect != "PreferNoSchedule" and not tolerates(demand, node, taint)
        ),
        (
            *(name for name in request.devices if shape.count(name) == 0),
            *(("claims",) if by_claims and not offer.by_claims else ()),
            *(name for name in request.others if name.startswith(HUGE) and not shape.others.get(name)),
        ),
        short,
    )


def _chooses(demand: Demand, offer: PoolOffer) -> bool:
    """Return whether nodes of a pool may have the labels that a pod requires, including unknown labels."""
    labels = offer.real.labels
    if any(labels.get(key) != value and not _is_open(key, value, offer) for key, value in demand.selector.items()):
        return False
    return demand.terms is None or any(_holds(term, offer) for term in demand.terms)


def _holds(term: Tree, offer: PoolOffer) -> bool:
    return all(
        holds(requirement, offer.real.labels) or _is_open(text(requirement, "key"), "", offer)
        for requirement in trees(term, "matchExpressions")
    )


def lacks_label(offer: PoolOffer, key: str, value: str) -> bool:
    """Return whether no node of a pool can have a label that a pod requires; the value is "" for several or any."""
    found = offer.real.labels.get(key)
    return (found != value if value else found is None) and not _is_open(key, value, offer)


def _is_open(key: str, value: str, offer: PoolOffer) -> bool:
    """Return whether a label differs from node to node, or is set once the driver runs."""
    zones = offer.desired.target.zones
    if key == ZONE:
        return not zones or not value or value in zones
    return key == HOSTNAME or (offer.discovered and key.startswith(DISCOVERED))
