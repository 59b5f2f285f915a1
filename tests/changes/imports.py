"""Pools lose their owner, are imported, and taking them over changes nothing else."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from gpukube import api
from gpukube.core.jsontree import texts
from gpukube.core.values import OWNER_LABEL, POOL_LABEL, PROTECT_LABEL
from gpukube.engine import looking
from gpukube.engine.importing import chosen_pools, import_cluster
from gpukube.engine.plan.prepare import prepare_addresses
from gpukube.engine.run.session import open_sessions
from gpukube.spec.loading.load import load_specs
from gpukube_sandbox import daemon

if TYPE_CHECKING:
    from gpukube.engine.importing import Imported
    from tests.changes.world import Document, World

MARKS = dict.fromkeys((OWNER_LABEL, POOL_LABEL, PROTECT_LABEL))
WHERE = {
    "eks": "eks:111122223333/us-east-1/{}",
    "aks": "aks:11111111-2222-3333-4444-555555555555/ml/{}",
    "gke": "gke:ml-prod/us-central1/{}",
}


def look(world: World, cloud: str, name: str) -> api.ClusterPlan:
    run, prepared = world.run(), prepare_addresses([WHERE[cloud].format(name)])
    with open_sessions(prepared.clusters.values(), run) as sessions:
        (plan,) = looking.plan_clusters(prepared, sessions, run, api.Scope(skip_cluster=True))
    return plan


def disown(world: World, cloud: str, name: str) -> None:
    """Take the marks off all pools, as another client of the cloud would."""
    copy = {f"gpukube_{one}": None for one in ("owner", "pool", "place", "protect", "tags")}
    for live in look(world, cloud, name).live:
        labels = {key: value for key, value in live.labels.items() if key not in MARKS}
        tags = texts(live.native, "tags")
        wire: dict[str, Document] = {
            "eks": {"labels": labels, "tags": {k: v for k, v in tags.items() if not k.startswith("gpukube.io/")}},
            "aks": {"nodeLabels": labels, "tags": None},
            "gke": {"config": {"labels": MARKS, "resourceLabels": copy}},
        }
        if live.owner:
            daemon.tamper(world.info, name, live.name, **wire[cloud])


def imported_from(world: World, cloud: str, name: str) -> Imported:
    run = world.run()
    prepared = prepare_addresses([WHERE[cloud].format(name)])
    with open_sessions(prepared.clusters.values(), run) as sessions:
        (plan,) = looking.plan_clusters(prepared, sessions, run, api.Scope())
        return import_cluster(plan, sessions[plan.cluster.key], chosen_pools(plan, ()), "imported")


def require_import(world: World, cloud: str, name: str, pools: int) -> str:
    """Import a cluster, and check that adopting what is imported adds marks alone; gives the text."""
    found = imported_from(world, cloud, name)
    assert (dict(found.left_out), dict(found.differing)) == ({}, {}), found.text
    assert found.pools == pools
    specs = load_specs(["-"], stdin=io.StringIO(found.text), environ={})
    plans = api.plan(api.prepare(specs), world.run(), api.Scope(adopt=True, adopt_managed=True))
    planned = [pool for plan in plans for pool in plan.pools]
    told = [
        (pool.pool, pool.action, [one.seen for one in pool.diagnostics if one.code != "managed-pool"])
        for pool in planned
    ]
    assert told == [(pool.pool, "adopt", []) for pool in planned]
    return found.text
