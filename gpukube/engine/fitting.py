"""Reads the files and the spec for `gpukube workload fit`. Makes no calls.

In scope: manifests and pools as input of placement. Out of scope: placement (gpukube.workload.fit), live clusters
(`live_fitting`), output.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.core.prices import target_side
from gpukube.engine.plan.regions import region_of
from gpukube.engine.workloads import read_manifest_files
from gpukube.errors import Finding, SpecError, Where
from gpukube.provider import load_provider
from gpukube.workload.fit.demand import read_demands
from gpukube.workload.fit.filling import ClusterView
from gpukube.workload.manifests import read_manifests
from gpukube.workload.offers import make_offers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.core.prices import PriceBook
    from gpukube.engine.plan.prepare import Prepared
    from gpukube.workload.fit.demand import Workloads


def read_workloads(paths: Sequence[str]) -> Workloads:
    """Read the pods of manifests.

    Args:
        paths: Files, directories, patterns, or "-" for stdin.

    SpecError: A file cannot be read, or no file contains an object.
        SpecError: What cannot be read, or none of them has an object.
    """
    sources, unreadable = read_manifest_files(paths)
    readings = [read_manifests(source.text, source.name) for source in sources]
    wrong = [*unreadable, *(found for reading in readings for found in reading.findings if found.severity == "error")]
    manifests = [manifest for reading in readings for manifest in reading.manifests]
    if not wrong and not manifests:
        fix = "pass manifests: documents with apiVersion and kind"
        wrong = [Finding("no-manifest", Where(paths[0]), "no Kubernetes object found", fix=fix)]
    if wrong:
        raise SpecError.of(wrong)
    return read_demands(manifests)


def declared_clusters(prepared: Prepared) -> tuple[ClusterView, ...]:
    """Describe the clusters of a spec before anything runs there; makes no calls."""
    return tuple(
        ClusterView(key=key, offers=make_offers(pools, load_provider), region=region_of(prepared.clusters[key]))
        for key, pools in prepared.desired.items()
        if pools
    )


def with_prices(view: ClusterView, prices: PriceBook) -> ClusterView:
    """Add prices to the pools of a cluster; they decide which pool starts a node, and are shown."""
    offers = {
        offer.name: replace(offer, price=target_side(offer.desired).node(prices, view.region)) for offer in view.offers
    }
    nodes = [replace(node, offer=offers.get(node.offer.name)) if node.offer else node for node in view.nodes or ()]
    return replace(view, offers=tuple(offers.values()), nodes=None if view.nodes is None else tuple(nodes))
