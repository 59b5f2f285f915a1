"""The document of `workload fit`. Pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.core.prices import EMBEDDED
from gpukube.engine.documents.parts import position_of
from gpukube.engine.documents.prices import fit_price, price_sum
from gpukube.errors import ExitCode
from gpukube.workload.fit.filling import SOME_ZONE
from gpukube.workload.quantity import cpu_text, memory_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.prices import PriceBook
    from gpukube.engine.documents.shapes.fit import (
        FilledNodePart,
        FitDocument,
        FittedPart,
        NotPlacedPart,
        RollOutPart,
    )
    from gpukube.engine.documents.shapes.prices import FitPricePart
    from gpukube.workload.fit.answers import Answer, Fit, NodeUse
    from gpukube.workload.fit.demand import Unplaced

_FIXES = {
    "replica": "set maxSurge: 0 and maxUnavailable: 1 in its rollingUpdate, or strategy.type: Recreate",
    "ray-head": "set upgradeStrategy.type: None",
    "ray-worker": "set upgradeStrategy.type: None",
}
"""Role -> setting for a rollout without extra pods (apps/v1 DeploymentStrategy; KubeRay RayServiceUpgradeType)."""


def fit_document(fit: Fit, *, live: bool, prices: PriceBook = EMBEDDED) -> FitDocument:
    """Return where workloads fit, as a document.

    Args:
        fit: The placement.
        live: Whether live nodes were read.
        prices: Prices used for the pools.
    """
    pools = list(_prices(fit))
    nodes = [_node(use) for use in fit.nodes]
    per_node = [node["usdPerHour"] for node in nodes]
    known = [price for price in per_node if price is not None]
    return {
        "schemaVersion": 1,
        "kind": "Fit",
        "exitCode": int(fit_exit_code(fit)),
        "live": live,
        "fits": fit.fits,
        "workloads": [_workload(answer) for answer in fit.answers],
        "notPlaced": [_not_placed(item) for item in fit.unplaced],
        "nodes": nodes,
        "usdPerHour": round(sum(known), 4) if len(known) == len(per_node) else None,
        "prices": pools,
        "price": price_sum(pools, prices),
    }


def fit_exit_code(fit: Fit) -> ExitCode:
    """Return 0 if every pod fits now or after a scale-up, 1 if some never will."""
    return ExitCode.DONE if fit.fits else ExitCode.ERROR


def _workload(answer: Answer) -> FittedPart:
    demand, placed, template = answer.demand, answer.placed, answer.demand.template
    request = demand.pod.request
    return {
        "object": str(template.manifest),
        "group": template.group,
        "namespace": template.manifest.namespace,
        "role": template.role,
        "position": position_of(template.manifest.positions.within(template.path).at("")),
        "cluster": placed.cluster.view.key,
        "requests": {
            "cpu": cpu_text(request.cpu),
            "memory": memory_text(request.memory),
            "devices": dict(request.devices),
            "claims": [claim.name for claim in demand.pod.claims],
        },
        "least": demand.least,
        "most": demand.most,
        "state": answer.state,
        "now": placed.now,
        "afterScaleUp": placed.later,
        "never": placed.never,
        "unknown": placed.unknown,
        "elsewhere": placed.elsewhere,
        "places": [{"node": node.name, "pods": count} for node, count in placed.nodes.items()],
        "reasons": [{"pool": reason.pool, "why": list(reason.texts)} for reason in answer.reasons],
        "edit": {"where": answer.edit.where, "text": answer.edit.text} if answer.edit else None,
        "rollOut": _roll_out(answer),
    }


def _not_placed(item: Unplaced) -> NotPlacedPart:
    return {
        "object": str(item.manifest),
        "group": item.group,
        "position": position_of(item.manifest.positions.at("")),
        "why": item.why,
        "hasPods": item.has_pods,
    }


def _roll_out(answer: Answer) -> RollOutPart | None:
    if not answer.demand.surge or answer.placed.never or answer.placed.unknown or answer.placed.elsewhere:
        return None
    return {
        "pods": answer.demand.surge,
        "places": answer.placed.surge,
        "blocked": answer.rollout_blocked,
        "fix": _FIXES.get(answer.demand.template.role, "") if answer.rollout_blocked else "",
    }


def _node(use: NodeUse) -> FilledNodePart:
    node, offer = use.node, use.node.offer
    cpu, memory = node.free_cpu(), node.free_memory()
    return {
        "name": node.name,
        "cluster": node.cluster,
        "pool": offer.desired.target.pool if offer else "",
        "zone": "" if node.zone == SOME_ZONE else node.zone,
        "new": node.new,
        "pods": [
            {"object": str(demand.template.manifest), "group": demand.template.group, "pods": count}
            for demand, count in use.pods.items()
        ],
        "others": use.others,
        "left": {
            "cpu": None if cpu is None else cpu_text(cpu),
            "memory": None if memory is None else memory_text(memory),
            "pods": node.free_pods(),
            "devices": node.free_devices(),
        },
        "binds": use.binds,
        "stranded": dict(use.stranded),
        "usdPerHour": offer.price.usd.most if offer and offer.price.usd else None,
    }


def _prices(fit: Fit) -> Iterator[FitPricePart]:
    """Yield the prices of the pools that have nodes."""
    for cluster in fit.packing.clusters:
        for offer in cluster.view.offers:
            nodes = [node for node in cluster.nodes if node.offer is not None and node.offer.name == offer.name]
            if nodes:
                yield fit_price(cluster.view.key, offer, sum(not node.new for node in nodes), len(nodes))
