"""A pool changes from a device plugin to NVIDIA's DRA driver and back, with pods: never two advertisers on a node."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

import pytest
from lightkube.generic_resource import create_global_resource, create_namespaced_resource
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import Node

from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.changes.world import SMALL, spec
from tests.e2e.stage import name_of
from tests.networks import install_driver
from tests.surge.stage import APP, CLOUDS, NODES, POOL, SECOND, Killer, Story, begin, running, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.changes.world import Document, World
    from tests.e2e.stage import Inside

MOST_STRIKES: Final = 60
SLICE: Final = create_global_resource("resource.k8s.io", "v1", "ResourceSlice", "resourceslices")
TEMPLATE: Final = create_namespaced_resource("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates")
_GPU: Final = "nvidia.com/gpu"
_PLACED: Final = {
    "terminationGracePeriodSeconds": 1,
    "nodeSelector": {"gpukube.io/pool": POOL},
    "tolerations": [{"operator": "Exists", "effect": "NoSchedule", "key": _GPU}],
}


def claimed(story: Story) -> Document:
    """Give the spec of the story's pool with the DRA driver."""
    return spec(story.owner, story.there, [{**story.pool, "devicePlugin": {"owner": "dra"}}])


def serve_claims(cluster: Inside) -> None:
    """Run pods that claim one GPU each, instead of those that request one."""
    cluster.client.delete(Deployment, "serve", namespace="default")
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    body = {"metadata": {"name": "gpu", "namespace": "default"}, "spec": {"spec": {"devices": {"requests": [request]}}}}
    cluster.client.create(TEMPLATE.from_dict(body))
    container = {"name": "main", "image": "example.com/serve:1", "resources": {"claims": [{"name": "gpu"}]}}
    pod = {
        **_PLACED,
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        "containers": [container],
    }
    template = {"metadata": {"labels": APP}, "spec": pod}
    made = Deployment.from_dict(
        {
            "metadata": {"name": "claims", "namespace": "default"},
            "spec": {"replicas": NODES, "selector": {"matchLabels": APP}, "template": template},
        }
    )
    assert isinstance(made, Deployment)
    cluster.client.create(made)


@contextmanager
def watched_owners(story: Story) -> Iterator[set[str]]:
    """Collect what must never be, as often as can be asked: nodes with two advertisers, and GPUs of two pods."""
    both: set[str] = set()
    begun = Event()
    over = Event()

    def look(cluster: Inside) -> None:
        sliced = {
            str(one["spec"]["nodeName"])
            for one in (dict(item) for item in cluster.client.list(SLICE))
            if one["spec"]["driver"] == "gpu.nvidia.com" and one["spec"].get("devices")
        }
        for node in cluster.client.list(Node):
            has: dict[str, Any] = (node.status and node.status.allocatable) or {}
            if name_of(node) in sliced and int(has.get(_GPU, "0")):
                both.add(name_of(node))
        held: dict[str, Any] = daemon.gpu_holders(story.world.info, story.cluster)
        for gpus in held.values():
            both.update(f"{gpu}: {pods}" for gpu, pods in gpus.items() if len(pods) > 1)

    def work(cluster: Inside) -> None:
        look(cluster)
        begun.set()
        while not over.wait(0.02):
            look(cluster)

    with story.inside() as watching:
        thread = Thread(target=work, args=(watching,), daemon=True)
        thread.start()
        begun.wait()
        try:
            yield both
        finally:
            over.set()
            thread.join()


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_owner_when_changed_to_dra_and_back_then_nodes_are_new_and_none_has_two_advertisers(
    world: World, cloud: str
) -> None:
    story = begin(world, cloud, f"owner-{cloud}")
    install_driver(world.info, {**story.there["train"], "provider": cloud})
    with story.inside() as cluster, watched_owners(story) as both:
        serve(cluster)
        plan = world.pools(claimed(story))[POOL]
        assert plan.action == "replace"
        assert plan.leaving is not None
        assert [_GPU in one.why for one in plan.leaving.homeless] == [True] * NODES
        report = story.apply(claimed(story))
        assert (report.outcome, report.name, report.error) == ("done", SECOND, None), report
        assert report.proof is not None
        assert (report.proof.status, report.proof.total) == ("proven", {"gpu.nvidia.com": NODES})
        assert world.pools(claimed(story))[POOL].action == "no-op"

        serve_claims(cluster)
        wait_for(lambda: sorted(running(cluster)) == sorted(world.nodes(story.cluster)[SECOND]))
        back = world.pools(story.before)[POOL]
        assert back.action == "replace"
        assert back.leaving is not None
        assert ["its claim finds no device" in one.why for one in back.leaving.homeless] == [True] * NODES
        report = story.apply(story.before)
        assert (report.outcome, report.name, report.error) == ("done", POOL, None), report
    assert both == set()
    assert story.pools() == {POOL: NODES}


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_owner_when_killed_at_each_change_in_turn_then_no_node_ever_has_two_advertisers(
    world: World, cloud: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = begin(world, cloud, f"owner-killed-{cloud}")
    install_driver(world.info, {**story.there["train"], "provider": cloud})
    with story.inside() as cluster, watched_owners(story) as both:
        serve(cluster)
        _kill_until_done(story, claimed(story), SECOND, monkeypatch)
        serve_claims(cluster)
        wait_for(lambda: sorted(running(cluster)) == sorted(world.nodes(story.cluster)[SECOND]))
        _kill_until_done(story, story.before, POOL, monkeypatch)
    assert both == set()


def _kill_until_done(story: Story, document: Document, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Apply a spec until it is done, killed at each change in turn."""
    with monkeypatch.context() as patch:
        killer = Killer(patch)
        report = story.apply(document)
        while report.outcome in ("started", "unknown", "not-attempted"):
            assert len(killer.struck) < MOST_STRIKES, killer.struck
            report = story.apply(document)
    assert len(killer.struck) >= 2 * (2 + NODES), killer.struck
    assert (report.outcome in ("done", "unchanged"), report.name, report.error) == (True, name, None), report
    assert story.pools() == {name: NODES}


def test_owner_when_the_cluster_serves_nvidia_com_gpu_by_claims_then_the_pods_run_on_the_new_nodes(
    world: World,
) -> None:
    world.make("aks", "owner-bridged", version="1.36.0")
    story = Story(world, "aks", "owner-bridged", {"name": POOL, "nodes": {"count": NODES}, **SMALL["aks"]})
    (created,) = world.create(story.before).values()
    assert created.error is None
    with story.inside() as cluster:
        serve(cluster)
        plan = world.pools(claimed(story))[POOL]
        assert plan.leaving is not None
        assert (plan.action, plan.leaving.homeless) == ("replace", ())
        report = story.apply(claimed(story))
        assert (report.outcome, report.name, report.error) == ("done", SECOND, None), report
        wait_for(lambda: sorted(running(cluster)) == sorted(world.nodes(story.cluster)[SECOND]))
