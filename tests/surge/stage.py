"""Pools with pods on them in an emulated cloud: what runs there, what can be had at every moment, where a run dies.

In scope: the stage of tests that replace pools. Out of scope: what is tested.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING

from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import Node, Pod
from lightkube.resources.policy_v1 import PodDisruptionBudget

from gpukube import api
from gpukube.engine.run.calls import Calls
from gpukube.engine.run.clock import Stopped
from sandbox_tests.waiting import wait_for
from tests.changes.world import SMALL, World, address, prepare, spec
from tests.e2e.stage import Inside, inside, name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    import pytest

    from tests.changes.world import Document

CLOUDS = ("eks", "aks", "gke")
OTHER: dict[str, Document] = {
    "eks": {"instanceType": "g4dn.2xlarge"},
    "aks": {"instanceType": "Standard_NC8as_T4_v3"},
    "gke": {"capacity": {"type": "spot"}},
}
"""What cannot change on a live pool; the machine has one GPU before and after."""
SURGE = api.Consent(replace="surge")
POOL, SECOND = "t4", "t4b"
NODES = 2
APP = {"app": "serve"}
_GPU = "nvidia.com/gpu"
_OVER = "tests/over"
"""Annotation of a node that ends a watch: every change before it has been noted."""


@dataclass(frozen=True)
class Story:
    """One cluster with a pool to replace."""

    world: World
    cloud: str
    cluster: str
    pool: Document
    owner: str = "team"

    @property
    def before(self) -> Document:
        """The spec of the pool as it lives."""
        return self._spec({})

    @property
    def after(self) -> Document:
        """The spec of the pool that takes its place."""
        return self._spec(OTHER[self.cloud])

    @property
    def there(self) -> dict[str, Document]:
        """The cluster, as specs name it."""
        return {"train": address(self.cloud, self.cluster)}

    def _spec(self, change: Document) -> Document:
        return spec(self.owner, self.there, [{**self.pool, **change}])

    def pools(self) -> dict[str, int]:
        """Our pools in the cloud, with their machines."""
        found = self.world.nodes(self.cluster)
        return {name: len(nodes) for name, nodes in found.items() if name in (POOL, SECOND)}

    def apply(self, document: Document, consent: api.Consent = SURGE) -> api.PoolReport:
        """Apply a spec, and give what became of the pool."""
        prepared = prepare(document)
        (report,) = api.apply(prepared, self.world.run(), api.Scope(), consent)
        assert report.error is None, report.error
        (pool,) = report.pools
        return pool

    def inside(self) -> AbstractContextManager[Inside]:
        """Open the cluster, as somebody with kubectl has it."""
        return inside(self.world.info, self.cluster)


def begin(world: World, cloud: str, cluster: str, **pool: object) -> Story:
    """Make a cluster with the pool as it is before."""
    world.make(cloud, cluster)
    story = Story(world, cloud, cluster, {"name": POOL, "nodes": {"count": NODES}, **SMALL[cloud], **pool})
    (report,) = world.create(story.before).values()
    assert report.error is None, report.error
    return story


_SERVING: Document = {
    "terminationGracePeriodSeconds": 1,
    "nodeSelector": {"gpukube.io/pool": POOL},
    "tolerations": [{"operator": "Exists", "effect": "NoSchedule", "key": _GPU}],
    "containers": [{"name": "main", "image": "example.com/serve:1", "resources": {"limits": {_GPU: "1"}}}],
}


def serve_alone(cluster: Inside) -> None:
    """Run a pod with one GPU that nothing makes again."""
    made = Pod.from_dict({"metadata": {"name": "alone", "namespace": "default", "labels": APP}, "spec": _SERVING})
    assert isinstance(made, Pod)
    cluster.client.create(made)
    wait_for(lambda: len(running(cluster)) == 1)


def serve(cluster: Inside, replicas: int = NODES) -> None:
    """Run pods with one GPU each, wherever a node of the pool has one."""
    made = Deployment.from_dict(
        {
            "metadata": {"name": "serve", "namespace": "default"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": APP},
                "template": {"metadata": {"labels": APP}, "spec": _SERVING},
            },
        }
    )
    assert isinstance(made, Deployment)
    cluster.client.create(made)
    wait_for(lambda: len(running(cluster)) == replicas)


def running(cluster: Inside) -> list[str]:
    """Name the nodes of the pods that serve."""
    pods = cluster.client.list(Pod, namespace="default", labels={**APP})
    return [str(pod.spec.nodeName) for pod in pods if pod.spec and pod.status and pod.status.phase == "Running"]


def block(cluster: Inside) -> None:
    """Let no pod that serves be disrupted."""
    body = {
        "metadata": {"name": "all", "namespace": "default"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": APP}},
    }
    made = PodDisruptionBudget.from_dict(body)
    assert isinstance(made, PodDisruptionBudget)
    cluster.client.create(made)


def unblock(cluster: Inside) -> None:
    """Take the budget away."""
    cluster.client.delete(PodDisruptionBudget, "all", namespace="default")


def allocatable(nodes: dict[str, Node]) -> int:
    """Count the GPUs that can be had on nodes of the pool, cordoned or not."""
    total = 0
    for node in nodes.values():
        labels = (node.metadata.labels if node.metadata else None) or {}
        if labels.get("gpukube.io/pool") == POOL and node.status and node.status.allocatable:
            total += int(node.status.allocatable.get(_GPU, "0"))
    return total


@contextmanager
def watched(story: Story) -> Iterator[list[int]]:
    """Note the allocatable GPUs of the pool after every change of a node: no moment is missed, as samples could."""
    seen: list[int] = []
    begun = Event()

    def work(cluster: Inside) -> None:
        nodes = {str(node.metadata.name): node for node in cluster.client.list(Node) if node.metadata}
        seen.append(allocatable(nodes))
        begun.set()
        for kind, node in cluster.client.watch(Node):
            if node.metadata is None or _OVER in (node.metadata.annotations or {}):
                return
            nodes.pop(str(node.metadata.name), None)
            if kind != "DELETED":
                nodes[str(node.metadata.name)] = node
            seen.append(allocatable(nodes))

    with story.inside() as watching, story.inside() as cluster:
        thread = Thread(target=work, args=(watching,), daemon=True)
        thread.start()
        begun.wait()
        yield seen
        last = next(iter(cluster.client.list(Node)))
        cluster.client.patch(Node, name_of(last), {"metadata": {"annotations": {_OVER: ""}}})
        thread.join()


class Killer:
    """Ends runs at their changes of cloud and cluster: at each twice, before its effect, and after it, unheard."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.struck: list[str] = []
        original: Callable[..., object] = Calls.__call__

        def call(calls: Calls, where: str, doing: str, work: Callable[[], object], *, changes: bool = False) -> object:
            before = self.struck.count(doing)
            if not changes or before > 1:
                return original(calls, where, doing, work, changes=changes)
            self.struck.append(doing)
            if before:
                original(calls, where, doing, work, changes=changes)
            calls._clock.stop()  # the run is to end here, as if its machine had
            raise Stopped(in_flight=bool(before))

        patch.setattr(Calls, "__call__", call)
