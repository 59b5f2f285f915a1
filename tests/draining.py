"""A pool of an emulated cluster, in one thread and without sockets, whose time goes on only where a drain waits.

In scope: the stage of tests that drain. Out of scope: what is tested.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Self, cast

from gpukube.cluster.drain.cordon import is_cordoned
from gpukube.cluster.drain.reading import Occupants, read_occupants
from gpukube.cluster.helm.chart import ChartSource
from gpukube.cluster.kube.api_types import NODES
from gpukube.cluster.kube.evictions import EvictionAnswer, eviction_answer
from gpukube.cluster.kube.views import is_drained
from gpukube.core.jsontree import text, texts
from gpukube.core.values import OWNER_LABEL, POOL_LABEL, Observed, PoolPlan, Settings
from gpukube.engine.change.draining import DrainConsent, Drained, drain_pool, require_drained
from gpukube.engine.run.clock import Stopped
from gpukube.engine.run.context import Pace, Run
from gpukube.engine.run.session import Session
from gpukube.testing.fakes import FakeProvider
from gpukube_sandbox.clock import ManualClock
from gpukube_sandbox.kube.cluster import KubeCluster, NodeShape
from gpukube_sandbox.kube.store.eviction import evict
from gpukube_sandbox.kube.store.kinds import CORE
from gpukube_sandbox.kube.store.patches import patch_object
from gpukube_sandbox.kube.store.problems import ApiProblem
from tests.builders import CLUSTER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from types import TracebackType

    from gpukube.cluster.kube.api_types import ApiType
    from gpukube.cluster.kube.client import Kube
    from gpukube.core.jsontree import Tree
    from gpukube.engine.run.events import Event
    from gpukube_sandbox.kube.store.objects import JsonObject

OLD, NEW = "a100", "a100b"
RESUME = "gpukube pool drain a100 -f pools.yaml"
POOL = Observed(
    name=OLD, owner="vision", pool="a100", protected=False, state="ready", status="ACTIVE", failure="", fields={},
    nodes=2, labels={}, effective_taints=(), instance_type="p4d.24xlarge", etag="1", native={},
)  # fmt: skip
PACE = Pace(timeout_s=100_000, poll_s=5, settle_s=60)
PLAN = PoolPlan(CLUSTER, "a100", OLD, "replace", "", None, POOL)


class StoreKube:
    """The calls of a drain, made to a store; evictions come from several threads."""

    def __init__(self, cluster: KubeCluster) -> None:
        self.cluster = cluster
        self.server = "https://train"
        self.evicted: list[str] = []
        self.uids: list[str] = []
        self.looks: list[tuple[float, frozenset[str]]] = []
        self.refused: list[tuple[str, str]] = []
        self.answers: list[tuple[int, Tree]] = []
        self._lock = Lock()

    def time(self) -> float:
        return self.cluster.clock.now()

    def objects(
        self, kind: ApiType, namespace: str = "", labels: Mapping[str, str] | None = None
    ) -> tuple[Tree, ...] | None:
        found = CORE.get(kind.plural)
        if found is None:
            return None
        chosen = (labels or {}).items()
        return tuple(
            obj
            for obj in self.cluster.store.all_of(found, namespace)
            if chosen <= texts(obj, "metadata", "labels").items()
        )

    def find_object(self, kind: ApiType, name: str, namespace: str = "") -> Tree | None:
        return self.cluster.store.find(CORE[kind.plural], namespace, name)

    def change_object(self, kind: ApiType, live: Tree, operations: Sequence[Tree]) -> bool:
        meta = cast("JsonObject", live["metadata"])
        current = self.cluster.store.find(CORE[kind.plural], meta.get("namespace", ""), meta["name"])
        if current is None or current["metadata"]["resourceVersion"] != meta["resourceVersion"]:
            return False
        patched = patch_object(
            current, [dict(one) for one in operations], "application/json-patch+json", CORE[kind.plural]
        )
        self.cluster.store.update(CORE[kind.plural], patched)
        return True

    def all_pods_on(self, nodes: Collection[str]) -> tuple[Tree, ...]:
        self.looks.append((self.time(), frozenset(nodes)))
        pods = self.cluster.store.all_of(CORE["pods"])
        return tuple(pod for pod in pods if text(pod, "spec", "nodeName") in nodes)

    def pods_on(self, nodes: Collection[str]) -> tuple[tuple[str, str], ...]:
        return tuple(
            (text(pod, "spec", "nodeName"), f"{text(pod, 'metadata', 'namespace')}/{text(pod, 'metadata', 'name')}")
            for pod in self.all_pods_on(nodes)
            if is_drained(pod)
        )

    def evict(self, namespace: str, pod: str, uid: str) -> EvictionAnswer:
        with self._lock:
            status, body = self._answer(namespace, pod, uid)
            answer = eviction_answer(status, json.dumps(body).encode(), "")
            assert answer is not None, body
            if answer.refusal:
                self.refused.append((f"{namespace}/{pod}", answer.refusal))
            else:
                self.evicted.append(f"{namespace}/{pod}")
                self.uids.append(uid)
            return answer

    def _answer(self, namespace: str, pod: str, uid: str) -> tuple[int, Tree]:
        if self.answers:
            return self.answers.pop(0)
        try:
            evict(self.cluster.store, namespace, pod, uid=uid)
        except ApiProblem as problem:
            return problem.code, problem.as_status()
        return 201, {}

    def close(self) -> None:
        return None


@dataclass
class Turned:
    """The run's clock: a wait turns the emulated cluster's; `stop_at` is a Ctrl-C."""

    stage: Stage
    stop_at: float = float("inf")

    def now(self) -> float:
        return self.stage.clock.now()

    def wait(self, seconds: float) -> None:
        self.stage.meanwhile()
        self.stage.pass_time(min(seconds, max(0.0, self.stop_at - self.now())))
        if self.stopped:
            raise Stopped

    def stop(self) -> None:
        self.stop_at = self.now()

    @property
    def stopped(self) -> bool:
        return self.now() >= self.stop_at


@dataclass
class Stage:
    """A cluster with the nodes of an old and a new pool, and a run that drains the old one."""

    clock: ManualClock = field(default_factory=ManualClock)
    said: list[Event] = field(default_factory=list)
    beside: str = ""
    meanwhile: Callable[[], None] = lambda: None
    """Called whenever a drain waits."""

    def __post_init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.cluster = KubeCluster("train", self.clock, "token")
        self.kube = StoreKube(self.cluster)
        self.provider = FakeProvider()
        cloud = self.provider.connect(CLUSTER, Settings())
        self.session = Session(CLUSTER, self.provider, cloud, Settings(), None, cast("Kube", self.kube))

    def __enter__(self) -> Self:
        self.loop.run_until_complete(self.cluster.start())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.loop.run_until_complete(self.cluster.stop())
        self.loop.close()
        if error is None:
            assert self.cluster.failures == []

    def pass_time(self, seconds: float) -> None:
        self.loop.run_until_complete(self.clock.advance(seconds))

    def join(self, name: str, pool: str = OLD) -> None:
        """Let a node join a pool, and wait until it is ready."""
        labels = {"fake.example/pool": pool, OWNER_LABEL: "vision", POOL_LABEL: "a100"}
        self.loop.run_until_complete(self.cluster.add_node(NodeShape(name, labels=labels, boot_s=1, cpu=64)))
        self.pass_time(20)

    def put(self, plural: str, obj: JsonObject) -> None:
        obj["metadata"].setdefault("namespace", "default")
        self.cluster.store.create(CORE[plural], obj)

    def pods(self, node: str = "") -> list[str]:
        """Name the pods of a node, or all."""
        found = self.cluster.store.all_of(CORE["pods"])
        return sorted(text(pod, "metadata", "name") for pod in found if node in ("", text(pod, "spec", "nodeName")))

    def cordoned(self) -> list[str]:
        return [text(node, "metadata", "name") for node in self.kube.objects(NODES) or () if is_cordoned(node)]

    def run(self, stop_after: float = float("inf")) -> Run:
        clock = Turned(self, self.clock.now() + stop_after)
        return Run(
            Settings(), ChartSource(), {}, RESUME, PACE,
            spec_options="-f pools.yaml", clock=clock, listen=self.said.append,
        )  # fmt: skip

    def drain(self, *, stop_after: float = float("inf"), allow: bool = False, timeout_s: float = 3600.0) -> Drained:
        self.last = self.run(stop_after)
        consent = DrainConsent(allow_disruption=allow, timeout_s=timeout_s)
        return drain_pool(PLAN, self.session, self.last, consent, successor=self.beside)

    def require_drained(self, *, allow: bool = False) -> None:
        require_drained(PLAN, self.session, self.run(), DrainConsent(allow_disruption=allow))

    def occupants(self, *, allow: bool = False) -> Occupants:
        """Read what is on the old nodes."""
        nodes = [text(node, "metadata", "name") for node in self.kube.objects(NODES) or ()]
        old = [name for name in nodes if name.startswith("old")]
        return read_occupants(cast("Kube", self.kube), old, self.clock.now(), allow_disruption=allow)

    def messages(self) -> list[str]:
        return [event.message for event in self.said]


def pod_spec(**more: object) -> JsonObject:
    return {"containers": [{"name": "main", "image": "work:1", "command": ["sleep", "infinity"]}], **more}


def deployment(name: str, replicas: int, *, labels: Mapping[str, str] | None = None, **more: object) -> JsonObject:
    own = {"app": name, **(labels or {})}
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": own}, "spec": pod_spec(**more)},
        },
    }


def budget(name: str, app: str = "", **rule: object) -> JsonObject:
    selector = {"matchLabels": {"app": app or name}}
    return {"metadata": {"name": name}, "spec": {"selector": selector, **rule}}
