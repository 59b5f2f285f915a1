"""An emulated world and the library against it: what is planned, applied and left in it.

In scope: specs as data, the runs, the sandbox's clusters. Out of scope: fixtures (conftest), what a spec holds
(`generator`, `edits`), assertions of single tests.
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from gpukube import api
from gpukube.cli.sandbox import Shelter
from gpukube.spec.loading.load import load_specs
from gpukube_sandbox import daemon

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gpukube.core.values import PoolPlan
    from gpukube.spec.loading.load import LoadedSpec
    from gpukube_sandbox.daemon import SandboxInfo

Document = dict[str, Any]  # a spec as its user writes it
Pool = dict[str, Any]

CLOUDS = ("eks", "aks", "gke")
ADDRESSES: Mapping[str, Document] = {
    "eks": {"provider": "eks", "account": "111122223333", "region": "us-east-1"},
    "aks": {"provider": "aks", "subscription": "11111111-2222-3333-4444-555555555555", "resourceGroup": "ml"},
    "gke": {"provider": "gke", "project": "ml-prod", "location": "us-central1"},
}
OPTIONS: Mapping[str, Document] = {
    "eks": {"groupQuota": 100, "nodeQuota": 1000, "roles": ["other-nodes"]},
    "aks": {},
    # auto-upgrade and repair can be turned off outside a release channel only
    "gke": {"releaseChannel": ""},
}
"""Clusters that take everything that a spec may ask of them."""
NO_CONSENT = api.Consent()
SMALL: Mapping[str, Pool] = {
    "eks": {"instanceType": "g4dn.xlarge"},
    "aks": {"instanceType": "Standard_NC4as_T4_v3"},
    "gke": {"instanceType": "g2-standard-4", "zones": ["us-central1-a"]},
}
"""A machine with one GPU on each cloud."""
PACE = api.Pace(timeout_s=270.0, poll_s=0.1, settle_s=60.0, verify_s=240.0)
"""Longer than a busy machine stalls: what is asked for here comes, or nothing waits for it."""


def address(cloud: str, name: str) -> Document:
    """Name a cluster as a spec does."""
    return {**ADDRESSES[cloud], "name": name}


def spec(owner: str, clusters: Mapping[str, Document], pools: Iterable[Pool], **more: object) -> Document:
    """Write a spec; pools without clusters go to all of them."""
    written = [{"clusters": list(clusters), **pool} for pool in pools]
    head = {"apiVersion": "gpukube.io/v1alpha1", "kind": "GPUNodePools", "metadata": {"name": owner}}
    return {**head, "clusters": dict(clusters), "pools": written, **more}


def prepare(*documents: Document) -> api.Prepared:
    """Load and check specs, as JSON, which is YAML too."""
    return api.prepare(loaded(*documents))


def loaded(*documents: Document) -> tuple[LoadedSpec, ...]:
    """Load specs."""
    text = "\n---\n".join(json.dumps(document) for document in documents)
    return load_specs(["-"], stdin=io.StringIO(text), environ={})


def differences(plans: Sequence[api.ClusterPlan]) -> list[str]:
    """Say everything in which the declared and the live differ; nothing where a plan is empty."""
    found = []
    for plan in plans:
        key = plan.cluster.key
        found += [f"{key}: {plan.error}"] if plan.error else []
        found += [f"{key}: inside unknown: {plan.unknown}"] if plan.unknown else []
        found += [f"{key}/{pool.pool}: {pool.action}: {pool.why}" for pool in plan.pools if pool.action != "no-op"]
        if plan.release is not None and plan.release.action != "none":
            found.append(f"{key}: release {plan.release.action}: {plan.release.reason}")
        found += [f"{key}: repair {repair}" for repair in plan.repairs]
        found += [f"{key}: undeclared {observed.name}" for observed in plan.undeclared]
        found += [f"{key}: {d.code}: {d.seen}" for d in plan.diagnostics if d.severity == "error"]
    return found


class Reach(TypedDict, total=False):
    """How far a plan reaches, as `api.Scope` takes it."""

    skip_cluster: bool
    adopt: bool
    adopt_from: tuple[str, ...]
    prune: bool
    migrate_release: bool
    adopt_release: bool
    upgrade: bool
    accept_loss: tuple[str, ...]


@dataclass(frozen=True)
class World:
    """One sandbox.

    Attributes:
        info: Where it is.
    """

    info: SandboxInfo

    def reset(self) -> None:
        """Forget everything."""
        daemon.reset(self.info)

    def make(self, cloud: str, name: str, **options: object) -> Document:
        """Make a cluster, and give its address; `version` is the one of its control plane, if there is one."""
        place = address(cloud, name)
        version = options.pop("version", "")
        body = {**place, "kubernetesVersion": version, "options": {**OPTIONS[cloud], **options}}
        daemon.call(self.info, "POST", "clusters", body)
        return place

    def run(self, *, no_wait: bool = False) -> api.Run:
        """Make the circumstances of one run."""
        shelter = Shelter(self.info)
        chart = api.chart_source(shelter.chart)
        return api.Run(shelter.settings, chart, shelter.environment(), "again", PACE, no_wait=no_wait)

    def plan(self, *documents: Document, **scope: Unpack[Reach]) -> tuple[api.ClusterPlan, ...]:
        """Plan specs together."""
        return api.plan(prepare(*documents), self.run(), api.Scope(**scope))

    def pools(self, *documents: Document, **scope: Unpack[Reach]) -> dict[str, PoolPlan]:
        """Plan specs together, and give the plans of the pools by name; every cluster could be looked into."""
        plans = self.plan(*documents, **scope)
        broken = [f"{plan.cluster.key}: {plan.unknown or plan.error}" for plan in plans if plan.unknown or plan.error]
        assert not broken, broken
        return {pool.pool: pool for plan in plans for pool in plan.pools}

    def create(self, *documents: Document, adopt: bool = False) -> dict[str, api.PoolReport]:
        """Create what specs declare."""
        prepared = prepare(*documents)
        Shelter(self.info).register(prepared)
        return _by_pool(api.create(prepared, self.run(), adopt=adopt))

    def apply(
        self,
        *documents: Document,
        consent: api.Consent = NO_CONSENT,
        confirm: Callable[[Sequence[api.ClusterPlan]], None] = lambda _plans: None,
        **scope: Unpack[Reach],
    ) -> dict[str, api.PoolReport]:
        """Apply specs; `confirm` sees the plans before anything is changed."""
        prepared, reach = prepare(*documents), api.Scope(**scope)
        Shelter(self.info).register(prepared)
        return _by_pool(api.apply(prepared, self.run(), reach, consent, confirm=confirm))

    def release(self, names: Sequence[str], *documents: Document) -> dict[str, api.PoolReport]:
        """Release pools of specs by name."""
        return _by_pool(api.release(prepare(*documents), self.run(), names))

    def nodes(self, cluster: str) -> dict[str, list[str]]:
        """Return the pools of a cluster as the cloud has them, with the names of their nodes."""
        found: Any = daemon.status(self.info)["clusters"]
        return {pool["name"]: pool["nodes"] for one in found if one["name"] == cluster for pool in one["pools"]}

    def disown(self, cloud: str, cluster: str, pool: str, changes: Mapping[str, str | None]) -> None:
        """Take the copy of its marks off a pool without tags of its own, and change its labels."""
        copy = {f"gpukube_{name}": None for name in ("owner", "pool", "place", "protect", "tags")}
        wire: Mapping[str, Document] = {
            "eks": {"tags": {}},
            "aks": {"tags": None},
            "gke": {"config": {"resourceLabels": copy}},
        }
        daemon.tamper(self.info, cluster, pool, **wire[cloud])
        self.relabel(cloud, cluster, pool, changes)

    def relabel(self, cloud: str, cluster: str, pool: str, changes: Mapping[str, str | None]) -> None:
        """Change labels of a pool as another client of the cloud would; None takes one away."""
        live = self._labels(cloud, cluster, pool)
        labels = {key: value for key, value in {**live, **changes}.items() if value is not None}
        wire: Mapping[str, Document] = {
            "eks": {"labels": labels},
            "aks": {"nodeLabels": labels},
            "gke": {"config": {"labels": dict(changes)}},
        }
        daemon.tamper(self.info, cluster, pool, **wire[cloud])

    def _labels(self, cloud: str, cluster: str, pool: str) -> Mapping[str, str]:
        place = {"there": address(cloud, cluster)}
        nobody = spec("nobody", place, [{"name": "none", "nodes": {"count": 1}, **SMALL[cloud]}])
        (plan,) = self.plan(nobody, skip_cluster=True)
        (live,) = (observed for observed in plan.live if observed.name == pool)
        return live.labels


def _by_pool(reports: Sequence[api.ClusterReport]) -> dict[str, api.PoolReport]:
    broken = [f"{report.cluster.key}: {report.error}" for report in reports if report.error is not None]
    assert not broken, broken
    return {pool.pool: pool for report in reports for pool in report.pools}
