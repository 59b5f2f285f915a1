"""Body of `gpukube workload fit`: read manifests and pools, place the pods, choose the exit code."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import typer

from gpukube.catalog.learning import learn_refreshed
from gpukube.catalog.prices import known_prices
from gpukube.cli import output as out
from gpukube.cli.bodies.plan_prices import warn_old_prices
from gpukube.cli.stderr import write_stderr
from gpukube.core.prices import target_side
from gpukube.engine import offline
from gpukube.engine.documents.fit import fit_document, fit_exit_code
from gpukube.engine.fitting import declared_clusters, read_workloads, with_prices
from gpukube.engine.plan.prepare import Filters, prepare
from gpukube.errors import SpecError, Where
from gpukube.workload.fit.answers import find_fit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cli.options import Choices


def fit(choices: Choices, paths: Sequence[str], *, live: bool) -> None:
    """Place the pods of manifests on the pools of a spec.

    Args:
        choices: The command line.
        paths: Paths as written on the command line.
        live: Whether to read the clusters.

    Raises:
        SpecError: No manifest or no spec is given, or one of them is wrong.
    """
    out.require_format(choices.output, "Fit")
    if not paths:
        raise SpecError("no manifest given", where=Where("FILE"), fix="add a file, or - for stdin", code="no-file")
    if not choices.files:
        raise SpecError("no spec given", where=Where("--file"), fix="add -f pools.yaml", code="no-file")
    workloads = read_workloads(paths)
    prices = known_prices(os.environ, sandbox=choices.sandbox)
    if live or choices.live_prices:
        from gpukube.cli.stage import open_job  # imports sessions, progress, and the Kubernetes client
        from gpukube.engine.live_fitting import live_clusters

        with open_job(choices, "Fit") as job:
            prepared = job.prepared
            views = live_clusters(prepared, job.run, workloads.demands) if live else declared_clusters(prepared)
            if choices.live_prices:
                from gpukube.catalog.live_prices import PoolToPrice, read_prices  # only this option needs it

                requested = [
                    PoolToPrice(prepared.clusters[view.key], view.region, target_side(offer.desired))
                    for view in views
                    for offer in view.offers
                ]
                prices = read_prices(prices, requested, job.run.settings, job.run.clock)
    else:
        learn_refreshed(os.environ, sandbox=choices.sandbox)
        specs = offline.load(choices.files, sets=choices.sets)
        views = declared_clusters(prepare(specs, Filters(tuple(choices.clusters))))
    found = find_fit([with_prices(view, prices) for view in views], *workloads)
    document = fit_document(found, live=live, prices=prices)
    out.show(document, choices.output, verbose=choices.verbose)
    warn_old_prices(choices, (part["asOf"] for part in document["prices"]))
    for pool, what in dict.fromkeys(
        (use.node.offer.name, use.node.offer.on_request) for use in found.nodes if use.node.new and use.node.offer
    ):
        if what:
            write_stderr(f"note: no pod starts a node of {pool} on its own; it needs {what}")
    raise typer.Exit(fit_exit_code(found))
