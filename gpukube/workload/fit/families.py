"""Pools with alternatives before anything is placed: of a family with a fixed size, one pool has all nodes.

Pure. In scope: which pool that is, of a cluster that was not read. Out of scope: placing (`packing`); live clusters,
whose nodes show it; autoscaled families, whose pools all start nodes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.workload.fit.packing import pack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.workload.fit.demand import Demand
    from gpukube.workload.fit.filling import ClusterView
    from gpukube.workload.offers import PoolOffer


def settle_families(views: Sequence[ClusterView], demands: Sequence[Demand]) -> tuple[ClusterView, ...]:
    """Leave one pool of each family with a fixed size: the first with which most pods fit."""
    settled = tuple(replace(view, offers=_firsts(view)) for view in views)
    for number, view in enumerate(views):
        for first in settled[number].offers:
            best: tuple[int, tuple[ClusterView, ...]] | None = None
            for member in _members(first, view):
                offers = tuple(member if offer.name == first.name else offer for offer in settled[number].offers)
                tried = (*settled[:number], replace(view, offers=offers), *settled[number + 1 :])
                unfit = sum(found.unfit for found in pack(tried, demands, roll_outs=False).placed.values())
                if best is None or unfit < best[0]:
                    best = unfit, tried
                if not unfit:
                    break
            settled = best[1] if best else settled
    return settled


def _firsts(view: ClusterView) -> tuple[PoolOffer, ...]:
    """Return the pools of a cluster without those that stand by for another one of their family."""
    return tuple(
        offer for offer in view.offers if offer.name == min(_members(offer, view), key=_rank, default=offer).name
    )


def _members(offer: PoolOffer, view: ClusterView) -> list[PoolOffer]:
    """Return the pools of a family of which one has all nodes, by rank; none for other pools."""
    if view.nodes is not None or not offer.family or offer.desired.target.nodes.autoscaled:
        return []
    return sorted((other for other in view.offers if other.family == offer.family), key=_rank)


def _rank(offer: PoolOffer) -> int:
    return offer.desired.target.rank
