"""Pools with alternatives in emulated clouds with little stock: the world, its prices, and who has nodes at any moment.

In scope: the stage of the tests. Out of scope: which families there are (`generator`), what is tested.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from lightkube.resources.coordination_v1 import Lease
from lightkube.resources.core_v1 import Node

from gpukube import api
from gpukube.core.prices import EMBEDDED
from gpukube.engine.run.clock import Stopped
from gpukube_sandbox import daemon
from sandbox_tests.sandboxes import made_once
from tests.changes.world import NO_CONSENT, OPTIONS, World, address, prepare, spec
from tests.cli.harness import NAMESPACE
from tests.e2e.stage import inside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpukube.core.prices import PriceBook
    from gpukube.engine.run.events import Listener
    from gpukube_sandbox.daemon import SandboxInfo
    from tests.changes.world import Document

SPEED = 4000.0
PACE = api.Pace(timeout_s=120.0, poll_s=0.05, settle_s=60.0, verify_s=100.0, quiet_s=0.15, capacity_s=60.0, speed=SPEED)
"""Longer than a busy machine stalls for what comes, and short for machines that do not come."""
CLUSTERS: dict[str, tuple[str, Document]] = {
    "eks": ("eks", {}),
    "aks": ("aks", {}),
    "gke": ("gke", {}),
    "gke-a": ("gke", {"location": "us-central1-a"}),
    "eks2": ("eks", {}),
}
"""Clusters by name: the cloud, and what differs from its others. One on Google Cloud is in one zone."""
RANKS: dict[str, tuple[tuple[str, str], ...]] = {
    "eks": (("g4dn.xlarge", "on-demand"), ("g4dn.xlarge", "spot"), ("g5.xlarge", "on-demand")),
    "aks": (
        ("Standard_NC4as_T4_v3", "on-demand"),
        ("Standard_NC4as_T4_v3", "spot"),
        ("Standard_NC8as_T4_v3", "on-demand"),
    ),
    "gke": (("g2-standard-4", "on-demand"), ("g2-standard-4", "spot"), ("g2-standard-8", "on-demand")),
}
"""Three alternatives on each cloud, as machine and kind; each has one GPU."""
ZONES = {"eks": "us-east-1a", "aks": "1", "gke": "us-central1-a"}
NODES = 2
SERVICES = {"eks": "aws", "aks": "arm", "gke": "gke"}
"""Clouds, as the log of requests names them."""
_THEIRS = ("system", "nodepool1", "default-pool")
_LOOK_S = 0.02
_made: dict[str, None] = {}


@dataclass(frozen=True)
class Families(World):
    """One sandbox.

    Attributes:
        there: The clusters, as specs name them.
    """

    there: dict[str, Document] = field(default_factory=dict)

    def begin(self, *names: str) -> None:
        """Have clusters of `CLUSTERS` with a release, and without pools of ours."""
        self.there.update({name: {**address(cloud, name), **more} for name, (cloud, more) in _picked(names)})
        made_once(self.info, f"families {names}", self._make, _made)

    def _make(self) -> None:
        for name, place in self.there.items():
            body = {**place, "kubernetesVersion": "", "options": OPTIONS[CLUSTERS[name][0]]}
            daemon.call(self.info, "POST", "clusters", body)
        first = [
            {"name": "first", "nodes": {"count": 1}, "gpu": {"model": "T4", "count": 1}, "capacity": {"type": "spot"}}
        ]
        document = spec("first", self.there, first)
        _all_well(api.create(prepare(document), super().run()))
        _all_well(api.delete(prepare(document), super().run(), ["first"]))

    def run(self, *, no_wait: bool = False, listen: Listener = lambda _event: None) -> api.Run:
        """Make the circumstances of one run."""
        return replace(super().run(no_wait=no_wait), pace=PACE, listen=listen)

    def ran(self, document: Document, prices: PriceBook = EMBEDDED, run: api.Run | None = None) -> Ended:
        """Create the one family of a spec."""
        prepared = prepare(document)
        return _ended(api.create(prepared, run or self.run(), prices=lambda _plans: prices))

    def applied(
        self,
        document: Document,
        run: api.Run | None = None,
        consent: api.Consent = NO_CONSENT,
        prices: PriceBook = EMBEDDED,
        *,
        rebalance: bool = False,
    ) -> Ended:
        """Apply the one family of a spec."""
        prepared = prepare(document)
        run = run or self.run()
        return _ended(api.apply(prepared, run, api.Scope(), consent, rebalance=rebalance, prices=lambda _plans: prices))

    def run_until(self, said: str, then: Callable[[], object] = lambda: None, *, stop: bool = False) -> api.Run:
        """Make a run in which something happens when it first says something, such as its own end."""
        told: list[str] = []

        def listen(event: api.Event) -> None:
            told.append(f"{event.pool} {event.message}")
            if said in told[-1] and sum(said in one for one in told) == 1:
                then()
                if stop:
                    run.clock.stop()

        run = self.run(listen=listen)
        return run

    def stock(self, cloud: str, rank: int, free: int, then: Mapping[float, int] | None = None) -> None:
        """Limit the machines of one of the three alternatives."""
        machine, kind = RANKS[cloud][rank]
        daemon.set_stock(self.info, cloud, free, then, type=machine, kind=kind)

    def taken(self) -> int:
        """Return how many of the limited machines exist."""
        return sum(int(str(one["taken"])) for one in daemon.list_stock(self.info))

    def sizes(self) -> dict[str, int]:
        """Return the pools of all clusters but those that were there, "eks/h100", with their machines."""
        clusters: Any = daemon.status(self.info)["clusters"]
        return {
            f"{one['name']}/{pool['name']}": len(pool["nodes"])
            for one in clusters
            for pool in one["pools"]
            if pool["name"] not in _THEIRS
        }

    def ready(self, cluster: str, pool: str) -> int:
        """Return how many nodes of a pool are ready."""
        with inside(self.info, cluster) as there:
            nodes = there.client.list(Node, labels={"gpukube.io/pool": pool})
            conditions = [one for node in nodes for one in (node.status and node.status.conditions) or []]
        return sum(one.type == "Ready" and one.status == "True" for one in conditions)

    def forget_attempts(self, cluster: str) -> None:
        """Delete the lock and the record of each family, as with kubectl."""
        with inside(self.info, cluster) as there:
            for lease in there.client.list(Lease, namespace=NAMESPACE):
                there.client.delete(Lease, str(lease.metadata and lease.metadata.name), namespace=NAMESPACE)

    def last_request(self) -> int:
        """Return the number of the last request in the log."""
        found = daemon.requests_since(self.info)
        return int(str(found[-1]["index"])) if found else 0

    @contextmanager
    def watched(self) -> Iterator[list[frozenset[str]]]:
        """Collect which pools have had nodes at the same moment, as often as can be asked."""
        seen: list[frozenset[str]] = []
        over = Event()

        def work() -> None:
            while not over.wait(_LOOK_S):
                having = frozenset(name for name, nodes in self.sizes().items() if nodes)
                if not seen or seen[-1] != having:
                    seen.append(having)

        thread = Thread(target=work, daemon=True)
        thread.start()
        try:
            yield seen
        finally:
            over.set()
            thread.join()


class Ended(NamedTuple):
    """The end of a run.

    Attributes:
        code: Exit code.
        report: What became of the family.
    """

    code: int
    report: api.PoolReport


def killed(*_asked: object, **_how: object) -> None:
    """Stand for a step before which a run is killed."""
    raise Stopped


def _ended(reports: Sequence[api.ClusterReport]) -> Ended:
    assert [report.error for report in reports] == [None] * len(reports)
    (pool,) = (pool for report in reports for pool in report.pools)
    return Ended(api.exit_code(reports), pool)


def ranked(cloud: str, **more: object) -> Document:
    """Write a pool with the three alternatives of a cloud: m0, m1 and m2."""
    first, *others = (
        {"name": f"m{number}", "instanceType": machine, "capacity": {"type": kind}, "zones": [ZONES[cloud]]}
        for number, (machine, kind) in enumerate(RANKS[cloud])
    )
    return {**first, "nodes": {"count": NODES}, "alternatives": others, **more}


def made_requests(info: SandboxInfo, mark: int) -> list[tuple[str, float]]:
    """Return the pools whose creation was requested after a request of the log, "aws eks/m0", each with the time."""
    found = []
    for request in daemon.requests_since(info, mark):
        name = _created(request)
        if name and request["fault"] != "hang":
            found.append((f"{request['service']} {name}", float(str(request["at"]))))
    return found


def _created(request: dict[str, Any]) -> str:
    """Return cluster and name of the pool that a request creates on its cloud; "" for any other request."""
    parts, body = str(request["path"]).split("/"), request["body"] if isinstance(request["body"], dict) else {}
    if request["method"] == "PUT" and parts[-2] == "agentPools":
        return f"{parts[-3]}/{parts[-1]}"
    if request["method"] == "POST" and parts[-1] in ("node-groups", "nodePools"):
        return f"{parts[-2]}/{body.get('nodegroupName') or (body.get('nodePool') or {}).get('name')}"
    return ""


def _picked(names: Sequence[str]) -> Iterator[tuple[str, tuple[str, Document]]]:
    return ((name, CLUSTERS[name]) for name in names)


def _all_well(reports: Sequence[api.ClusterReport]) -> None:
    found = [(report.error, [pool.error for pool in report.pools]) for report in reports]
    assert found == [(None, [None])] * len(reports)
