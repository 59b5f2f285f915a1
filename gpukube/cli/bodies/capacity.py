"""Body of `gpukube capacity find`: what is looked for and where, querying the clouds, showing the document."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from gpukube.capacity.criteria import (
    Criteria,
    parse_duration,
    places_of_clusters,
    places_of_pools,
    places_of_regions,
)
from gpukube.capacity.documents import capacity_document
from gpukube.capacity.ways import known_ways
from gpukube.catalog.prices import known_prices
from gpukube.catalog.refreshing import choose_inquiries
from gpukube.cli import output as out
from gpukube.cli.bodies.catalog import with_option_named
from gpukube.cli.endpoints import emulated_secret, endpoints
from gpukube.core.cloud_catalog import Account
from gpukube.core.values import Settings
from gpukube.errors import SpecError, Where
from gpukube.gpu.models import parse_model

if TYPE_CHECKING:
    from gpukube.capacity.criteria import Place
    from gpukube.capacity.ways import Search
    from gpukube.cli.capacity_options import Query
    from gpukube.cli.options import Choices
    from gpukube.core.values import Target
    from gpukube.engine.plan.prepare import Prepared

_MINUTES: Final = 2.0
"""How long all clouds together may take; what has not responded by then is `not told`."""


def find_capacity(choices: Choices, query: Query) -> None:
    """Show the ways to get machines.

    Raises:
        SpecError: The command line or the spec is wrong, or no cloud has such a machine.
    """
    out.require_format(choices.output, "Capacity")
    _require_one_query(choices, query)
    if choices.files or choices.clusters:
        search, criteria = _in_clusters(replace(choices, timeout=_MINUTES), query)
    else:
        search, criteria = _in_regions(choices, query)
    create = _create_command(choices, query.pool)
    document = capacity_document(search, criteria, live=query.live, pool=query.pool, create=create)
    out.show(document, choices.output, verbose=choices.verbose)


def _require_one_query(choices: Choices, query: Query) -> None:
    if bool(query.gpu) == bool(query.pool):
        message = "both --gpu and --pool given" if query.gpu else "neither --gpu nor --pool given"
        fix = "write --gpu H100-80GB --count 8, or -f pools.yaml --pool NAME"
        raise SpecError(message, where=Where("--gpu"), fix=fix, code="nothing-to-find")
    if query.pool and not choices.files:
        raise SpecError("no spec given", where=Where("--file"), fix="add -f pools.yaml", code="no-file")


def _in_regions(choices: Choices, query: Query) -> tuple[Search, Criteria]:
    """Search regions, with the clouds' own credentials."""
    settings = Settings(endpoints=endpoints(), secret=emulated_secret())
    if choices.sandbox and query.live:
        from gpukube.cli import sandbox

        settings = sandbox.enter().settings
    criteria = _criteria(query)
    places, missing = _regions(query, settings, criteria)
    book = known_prices(os.environ, sandbox=choices.sandbox)
    if not query.live:
        return _noting(known_ways(places, book), missing), criteria
    from gpukube.capacity.finding import Line, search_clouds, short_timeout  # only --live calls clouds
    from gpukube.engine.run.calls import Calls
    from gpukube.engine.run.clock import SystemClock

    clock = SystemClock()
    calls = Calls(clock, clock.now() + _MINUTES * 60, choices.command)
    line = Line(short_timeout(settings), clock, calls, {})
    return _noting(search_clouds(places, criteria, line, book), missing), criteria


def _in_clusters(choices: Choices, query: Query) -> tuple[Search, Criteria]:
    """Search the regions of clusters, with the credentials that reach them, and the regions that are named."""
    from gpukube.cli.stage import open_job, prepare_choices  # imports sessions, progress, and the spec

    if not query.live:
        _, prepared = prepare_choices(choices)
        places, criteria, missing = _places(prepared, query, Settings())
        book = known_prices(os.environ, sandbox=choices.sandbox)
        return _noting(known_ways(places, book), missing), criteria
    from gpukube.capacity.finding import Line, search_clouds, short_timeout  # only --live calls clouds
    from gpukube.engine.run.session import open_sessions

    with open_job(choices, "Capacity") as job:
        settings = short_timeout(job.run.settings)
        places, criteria, missing = _places(job.prepared, query, settings)
        book = known_prices(os.environ, sandbox=choices.sandbox)
        clusters = [place.cluster for place in places if place.cluster]
        with open_sessions(clusters, replace(job.run, settings=settings)) as sessions:
            line = Line(settings, job.run.clock, job.run.calls, sessions)
            return _noting(search_clouds(places, criteria, line, book), missing), criteria


def _places(
    prepared: Prepared, query: Query, settings: Settings
) -> tuple[tuple[Place, ...], Criteria, tuple[str, ...]]:  # fmt: skip
    regions: tuple[Place, ...] = ()
    missing: tuple[str, ...] = ()
    if query.pool:
        targets = _targets(prepared, query.pool)
        first = targets[0]
        criteria = Criteria(
            first.machine.model, first.machine.gpus, query.nodes or max(1, first.nodes.maximum), _seconds(query)
        )
        places = places_of_pools(targets, settings)
    else:
        criteria = _criteria(query)
        places, missing = places_of_clusters(prepared.clusters.values(), settings, criteria)
    if query.regions:
        regions, others = _regions(query, settings, criteria)
        missing = (*missing, *others)
    return (*places, *regions), criteria, tuple(dict.fromkeys(missing))


def _targets(prepared: Prepared, name: str) -> list[Target]:
    """Return a pool on all of its clusters.

    Raises:
        SpecError: The spec has no such pool on the chosen clusters.
    """
    targets = [pool.target for pools in prepared.desired.values() for pool in pools]
    found = [target for target in targets if target.pool == name]
    if not found:
        known = ", ".join(sorted({target.pool for target in targets}))
        fix = f"choose from: {known}" if known else "choose another cluster"
        raise SpecError(f"--pool {name} matches no pool of the spec", where=Where("--pool"), fix=fix, code="no-match")
    return found


def _regions(query: Query, settings: Settings, criteria: Criteria) -> tuple[tuple[Place, ...], tuple[str, ...]]:
    account = Account(query.subscription, query.project)
    inquiries = choose_inquiries(query.providers, query.regions, account, settings)
    return with_option_named("--gpu", partial(places_of_regions, inquiries, criteria))


def _criteria(query: Query) -> Criteria:
    model = with_option_named("--gpu", partial(parse_model, query.gpu))
    return Criteria(model, query.count, query.nodes or 1, _seconds(query))


def _seconds(query: Query) -> int | None:
    return parse_duration(query.duration) if query.duration else None


def _noting(search: Search, missing: tuple[str, ...]) -> Search:
    return replace(search, notes=(*missing, *search.notes))


def _create_command(choices: Choices, pool: str) -> str:
    """Return the command that creates the pool of the spec, for the user to run."""
    if not pool:
        return ""
    words = ["gpukube", *(["--sandbox"] if choices.sandbox else []), "pool", "create"]
    options = (("-f", choices.files), ("--set", choices.sets), ("--pool", (pool,)))
    return shlex.join([*words, *(word for option, values in options for value in values for word in (option, value))])
