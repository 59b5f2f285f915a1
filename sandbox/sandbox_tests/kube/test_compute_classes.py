"""ComputeClasses of GKE: the served type, pods that select one, the order in which the autoscaler tries pools."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from google.cloud import container_v1 as wire

from gpukube_sandbox.gke.computeclasses import apply_compute_classes
from gpukube_sandbox.gke.making import GkeRequest
from gpukube_sandbox.kube.autoscaler.classes import CLASS_LABEL
from gpukube_sandbox.kube.cluster import Taint
from gpukube_sandbox.kube.store.kinds import COMPUTE_CLASS, CORE
from gpukube_sandbox.kube.store.objects import spec, status
from gpukube_sandbox.kube.store.problems import ApiProblem
from gpukube_sandbox.world import World
from sandbox_tests.kube.test_autoscaler import SPEED, T4, TOLERATED, Cloud, Kind, gke_pool, told, until, work
from sandbox_tests.kube.test_life import Bench, life
from sandbox_tests.kube.test_tables import ask, cluster

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.store import Store

VERSION = "1.34.1-gke.1829001"
CLASSES = "/apis/cloud.google.com/v1/computeclasses"
CHOSEN = {CLASS_LABEL: "h100"}
TAINT = Taint(CLASS_LABEL, "h100")


def compute_class(*ranks: list[str], **more: object) -> JsonObject:
    body = {"priorities": [{"nodepools": pools} for pools in ranks], **more}
    return {"metadata": {"name": "h100"}, "spec": body}


def of_class(**more: object) -> Kind:
    return Kind(T4, labels=dict(CHOSEN), taints=(TAINT,), **more)  # type: ignore[arg-type] # fields of a Kind


async def served(bench: Bench, cloud: Cloud, config: JsonObject | None) -> None:
    """Serve the type, then the class, to an autoscaler of these groups."""
    await apply_compute_classes(bench.cluster, VERSION)
    if config:
        bench.cluster.store.create(COMPUTE_CLASS, config)
    bench.cluster.autoscale(cloud)


def selecting(name: str) -> JsonObject:
    return work(name, nodeSelector=dict(CHOSEN))


def sizes(cloud: Cloud) -> dict[str, int]:
    return {name: len(kind.nodes) for name, kind in cloud.kinds.items() if kind.nodes}


def test_class_when_ranks_are_sold_out_or_full_then_the_next_is_used_and_the_first_again_after_its_pause() -> None:
    async def story(bench: Bench) -> None:
        first, last = of_class(fails="GCE out of resources"), of_class()
        cloud = Cloud(bench, last=last, middle=of_class(high=1), first=first)
        await served(bench, cloud, compute_class(["first"], ["middle"], ["last"]))
        bench.put("pods", selecting("a"))
        await bench.wait(200)
        assert sizes(cloud) == {"middle": 1}
        bench.put("pods", selecting("b"))
        await bench.wait(100)
        assert sizes(cloud) == {"middle": 1, "last": 1}
        first.fails = ""
        await bench.wait(100)
        bench.put("pods", selecting("c"))
        await bench.wait(100)
        assert sizes(cloud) == {"middle": 1, "last": 1, "first": 1}

    life(story)


@pytest.mark.parametrize(
    ("more", "version", "grown"),
    [
        pytest.param({"whenUnsatisfiable": "DoNotScaleUp"}, "1.30.5", {}, id="stop"),
        pytest.param({"whenUnsatisfiable": "ScaleUpAnyway"}, "1.34.2", {"other": 1}, id="any-of-the-class"),
        pytest.param({}, "1.33.0", {}, id="default-from-1.33"),
        pytest.param({}, "1.32.9", {"other": 1}, id="default-before-1.33"),
    ],
)
def test_class_when_no_rank_has_machines_then_when_unsatisfiable_decides(
    more: dict[str, str], version: str, grown: dict[str, int]
) -> None:
    async def story(bench: Bench) -> None:
        foreign = Kind(T4)
        cloud = Cloud(bench, first=of_class(high=0), other=of_class(), foreign=foreign)
        await served(bench, cloud, compute_class(["first"], **more))
        bench.put("pods", selecting("a"))
        await bench.wait(120)
        assert sizes(cloud) == grown
        if not grown:
            reasons = "1 max node group size reached, 1 node(s) didn't match Pod's node affinity/selector"
            text = f"pod didn't trigger scale-up: {reasons}, 1 not in the pod's ComputeClass"
            assert told(bench.cluster, "NotTriggerScaleUp") == [text]

    life(story, version)


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        pytest.param(None, of_class(), id="no-such-class"),
        pytest.param(compute_class(["only"]), Kind(T4, labels=dict(CHOSEN)), id="no-taint"),
        pytest.param(compute_class(["only"]), Kind(T4, taints=(TAINT,)), id="no-label"),
        pytest.param(
            {"metadata": {"name": "h100"}, "spec": {"priorities": [{"machineFamily": "a3"}]}},
            of_class(),
            id="pools-that-gke-would-create",
        ),
    ],
)
def test_class_when_the_pool_is_not_of_it_then_it_stays_empty(config: JsonObject | None, kind: Kind) -> None:
    async def story(bench: Bench) -> None:
        cloud = Cloud(bench, only=kind)
        await served(bench, cloud, config)
        bench.put("pods", selecting("a"))
        await bench.wait(120)
        assert sizes(cloud) == {}

    life(story)


def test_pods_when_one_selects_a_class_and_one_does_not_then_each_gets_its_own_pool() -> None:
    async def story(bench: Bench) -> None:
        cloud = Cloud(bench, own=of_class(), plain=Kind(T4))
        await served(bench, cloud, compute_class(["own"]))
        bench.put("pods", selecting("a"))
        bench.put("pods", work("b"))
        await bench.wait(120)
        assert sizes(cloud) == {"own": 1, "plain": 1}
        assert [spec(bench.get("pods", name))["nodeName"] for name in "ab"] == ["own-0", "plain-0"]

    life(story)


def tolerations(store: Store, pod: JsonObject) -> list[JsonObject]:
    found = spec(store.create(CORE["pods"], pod))["tolerations"]
    return [item for item in found if item["key"] == CLASS_LABEL]


def test_pod_when_it_selects_a_class_then_it_tolerates_its_taint_once() -> None:
    async def story(bench: Bench) -> None:
        store = bench.cluster.store
        wanted = {"key": CLASS_LABEL, "operator": "Equal", "value": "h100", "effect": "NoSchedule"}
        before = tolerations(store, selecting("before"))
        await apply_compute_classes(bench.cluster, VERSION)
        assert (before, tolerations(store, selecting("a"))) == ([], [wanted])
        own = {**selecting("b"), "spec": {**selecting("b")["spec"], "tolerations": [*TOLERATED, wanted]}}
        assert tolerations(store, own) == [wanted]
        assert tolerations(store, work("c")) == []
        assert tolerations(bench.cluster.store.copied(), selecting("d")) == [wanted]

    life(story)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param({}, "spec.priorities: Required value", id="no-ranks"),
        pytest.param({"priorities": []}, "spec.priorities", id="empty"),
        pytest.param({"priorities": [{"nodepools": ["a"], "spot": True}]}, "must validate the schema", id="not-alone"),
        pytest.param({"priorities": [{"nodepools": []}]}, "spec.priorities[0].nodepools", id="no-pools"),
        pytest.param({"priorities": [{"nodepools": "a"}]}, "must be of type array", id="no-list"),
        pytest.param({"priorities": [{"spot": True}], "whenUnsatisfiable": "Wait"}, "DoNotScaleUp", id="unsatisfiable"),
        pytest.param({"priorities": [{"spot": True}], "activeMigration": {}}, "optimizeRulePriority: Req", id="moves"),
    ],
)
def test_class_when_it_is_wrong_then_refused(body: JsonObject, message: str) -> None:
    async def story(bench: Bench) -> None:
        await apply_compute_classes(bench.cluster, VERSION)
        with pytest.raises(ApiProblem) as caught:
            bench.cluster.store.create(COMPUTE_CLASS, {"metadata": {"name": "x"}, "spec": body})
        assert (caught.value.code, message in caught.value.message) == (422, True)

    life(story)


@pytest.mark.parametrize(
    ("version", "code"), [(VERSION, 200), ("1.30.3-gke.1451000", 200), ("1.30.3-gke.1450999", 404)]
)
def test_gke_when_its_version_has_classes_then_they_are_served(version: str, code: int) -> None:
    async def story() -> int:
        world = World(SPEED, b"authority")
        cluster, _ = await world.ensure_gke_cluster(GkeRequest("p", "us-central1", "k", version))
        listed = COMPUTE_CLASS.key in cluster.kube.store.kinds
        await world.reset()
        return 200 if listed else 404

    assert asyncio.run(story()) == code


def test_class_when_asked_over_http_then_it_is_cluster_wide_and_unknown_fields_are_refused() -> None:
    of = cluster()
    asyncio.run(apply_compute_classes(of, VERSION))
    ranks = [{"nodepools": ["a"]}, {"nodepools": ["b"]}]
    made = ask(of, CLASSES, method="POST", json=known(compute_class(["a"], ["b"])))
    assert made.status_code == 201
    assert ask(of, f"{CLASSES}/h100").json()["spec"]["priorities"] == ranks
    wrong = known(compute_class(["a"], nodePools=["b"]))
    strict = ask(of, f"{CLASSES}?fieldValidation=Strict", method="POST", json=wrong)
    assert (strict.status_code, 'unknown field "spec.nodePools"' in strict.json()["message"]) == (400, True)


def known(body: JsonObject) -> JsonObject:
    return {"apiVersion": "cloud.google.com/v1", "kind": "ComputeClass", **body}


def test_gke_when_a_pool_has_label_and_taint_of_a_class_then_its_pods_get_nodes_there() -> None:
    async def story() -> None:
        world = World(SPEED, b"authority")
        cluster, _ = await world.ensure_gke_cluster(GkeRequest("p", "us-central1", "k"))
        kube, pool = cluster.kube, gke_pool(world)
        pool.wire.config.labels[CLASS_LABEL] = "h100"
        pool.wire.config.taints.append(
            wire.NodeTaint(key=CLASS_LABEL, value="h100", effect=wire.NodeTaint.Effect.NO_SCHEDULE)
        )
        try:
            kube.store.create(COMPUTE_CLASS, compute_class(["gpu"]))
            kube.store.create(CORE["pods"], {"metadata": {"name": "x"}, "spec": selecting("x")["spec"]})
            await until(kube, lambda: status(kube.store.get(CORE["pods"], "default", "x")).get("phase") == "Running")
            assert kube.failures == []
        finally:
            await world.reset()

    asyncio.run(story())
