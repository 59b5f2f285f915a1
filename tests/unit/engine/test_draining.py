"""Draining a pool of an emulated cluster: what leaves, in which order, and what is reported of what does not."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.drain.pods import SCALE_DOWN_DISABLED
from gpukube.cluster.kube.api_types import NODES
from gpukube.cluster.kube.views import CORDON
from gpukube.core.jsontree import text
from gpukube.engine.run.clock import Stopped
from gpukube.errors import Conflict, DrainTimeout
from gpukube_sandbox.kube.store.kinds import CORE
from tests.drained_pods import differences, workloads
from tests.draining import NEW, OLD, Stage, budget, deployment, pod_spec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.kube.store.objects import JsonObject


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as made:
        made.join("old-1")
        made.join("old-2")
        yield made


def test_drain_when_a_budget_lets_pods_go_in_turns_then_all_leave_and_the_nodes_are_cordoned(stage: Stage) -> None:
    stage.put("deployments", deployment("web", 4))
    stage.put("poddisruptionbudgets", budget("web", maxUnavailable=1))
    stage.pass_time(60)
    stage.join("new-1", NEW)
    stage.drain()
    stage.require_drained()
    assert (stage.cordoned(), stage.pods("old-1"), stage.pods("old-2")) == (["old-1", "old-2"], [], [])
    assert len(stage.pods("new-1")) == 4
    assert ("default/web", "budget") in {(pod.rsplit("-", 2)[0], refusal) for pod, refusal in stage.kube.refused}
    assert any("left; waiting for budget default/web: " in line for line in stage.messages())


def test_drain_when_a_budget_never_lets_go_then_times_out_and_names_pod_budget_and_the_way_back(stage: Stage) -> None:
    stage.put("deployments", deployment("web", 1))
    stage.put("poddisruptionbudgets", budget("keep", "web", minAvailable=1))
    stage.put("deployments", deployment("free", 2))
    stage.pass_time(60)
    stage.join("new-1", NEW)
    with pytest.raises(DrainTimeout) as caught:
        stage.drain(timeout_s=300)
    (found,) = caught.value.diagnostics
    (pod,) = [name for node in ("old-1", "old-2") for name in stage.pods(node)]
    assert f"default/{pod} on old-" in found.seen
    assert "budget default/keep: minAvailable 1 needs 1 of its 1 pods" in found.seen
    assert "cordoned: old-1, old-2" in found.seen
    assert found.fix.endswith("gpukube pool drain a100 --undo -f pools.yaml")
    with pytest.raises(Conflict, match=pod):
        stage.require_drained()


def test_drain_when_a_pod_is_bare_or_has_an_empty_dir_then_nothing_is_done_without_consent(stage: Stage) -> None:
    stage.put("pods", {"metadata": {"name": "bare"}, "spec": pod_spec()})
    stage.put("deployments", deployment("shm", 1, volumes=[{"name": "shm", "emptyDir": {"medium": "Memory"}}]))
    stage.pass_time(60)
    with pytest.raises(Conflict) as caught:
        stage.drain()
    assert [d.code for d in caught.value.diagnostics] == ["drain-consent"] * 2
    assert "nothing recreates it" in caught.value.render()
    assert "the data in emptyDir shm is lost" in caught.value.render()
    assert (stage.cordoned(), stage.kube.evicted) == ([], [])
    stage.drain(allow=True)
    assert stage.pods("old-1") == stage.pods("old-2") == []


def test_drain_when_autoscalers_must_keep_a_node_then_its_pods_leave_with_consent_only(stage: Stage) -> None:
    stage.put("deployments", deployment("web", 4))
    stage.pass_time(60)
    kept, others = stage.pods("old-1"), stage.pods("old-2")
    assert kept
    assert others
    node = next(one for one in stage.kube.objects(NODES) or () if text(one, "metadata", "name") == "old-1")
    sign = {"op": "add", "path": "/metadata/annotations", "value": {SCALE_DOWN_DISABLED: "true"}}
    assert stage.kube.change_object(NODES, node, [sign])
    with pytest.raises(Conflict) as caught:
        stage.drain()
    assert sorted(d.seen.split()[1].partition("/")[2] for d in caught.value.diagnostics) == kept
    assert "its node has cluster-autoscaler.kubernetes.io/scale-down-disabled: true" in caught.value.render()
    assert stage.cordoned() == []
    stage.drain(allow=True)
    assert stage.pods("old-1") == stage.pods("old-2") == []


def test_drain_when_stopped_then_the_nodes_stay_cordoned_and_it_resumes(stage: Stage) -> None:
    stage.put("deployments", deployment("web", 3))
    stage.pass_time(60)
    with pytest.raises(Stopped):
        stage.drain(stop_after=2)
    assert stage.cordoned() == ["old-1", "old-2"]
    stage.drain()
    assert stage.pods("old-1") == stage.pods("old-2") == []


def test_drain_when_a_node_joins_meanwhile_then_it_is_cordoned_and_drained_too(stage: Stage) -> None:
    stage.put("deployments", deployment("web", 2))
    stage.put("poddisruptionbudgets", budget("web", minAvailable=2))
    stage.pass_time(60)
    with pytest.raises(DrainTimeout):
        stage.drain(timeout_s=30)
    stage.join("old-3")
    stage.cluster.store.delete(CORE["poddisruptionbudgets"], "default", "web")
    stage.drain()
    assert stage.cordoned() == ["old-1", "old-2", "old-3"]
    assert stage.pods("old-3") == []


IGNORING: dict[str, tuple[JsonObject, str]] = {
    "tolerates everything": ({"tolerations": [{"operator": "Exists"}]}, "tolerations: [{operator: Exists}]"),
    "tolerates the cordon": (
        {"tolerations": [{"key": CORDON, "effect": "NoSchedule", "operator": "Exists"}]},
        f"tolerations: [{{key: {CORDON}, effect: NoSchedule, operator: Exists}}]",
    ),
    "names the node": ({"nodeName": "old-1"}, "nodeName: old-1"),
    "has another scheduler": ({"schedulerName": "volcano"}, "schedulerName: volcano"),
}
KEPT = {"nodeSelector": {"fake.example/pool": OLD}}


def bind_others(stage: Stage) -> None:
    """Do as a scheduler that knows no cordons."""
    for pod in stage.cluster.store.all_of(CORE["pods"]):
        if text(pod, "spec", "schedulerName") == "volcano" and not text(pod, "spec", "nodeName"):
            stage.cluster.store.bind(text(pod, "metadata", "namespace"), text(pod, "metadata", "name"), "old-1")


@pytest.mark.parametrize("kind", ["deployments", "replicationcontrollers", "statefulsets"])
@pytest.mark.parametrize("case", IGNORING)
def test_drain_when_pods_ignore_the_cordon_then_named_before_evicted_once_and_never_called_empty(
    stage: Stage, case: str, kind: str
) -> None:
    more, line = IGNORING[case]
    made = deployment("all", 2, **KEPT, **more)
    if kind != "deployments":
        made["spec"] |= {"serviceName": "all", "podManagementPolicy": "Parallel"} if kind == "statefulsets" else {}
        made["spec"]["selector"] = {"app": "all"} if kind == "replicationcontrollers" else made["spec"]["selector"]
    stage.put(kind, made)
    stage.put("deployments", deployment("web", 2))
    stage.meanwhile = partial(bind_others, stage)
    for _ in range(6):
        stage.meanwhile()
        stage.pass_time(10)
    with pytest.raises(Conflict) as caught:
        stage.drain()
    workload = f"{CORE[kind].kind} default/all"
    assert [d.code for d in caught.value.diagnostics] == ["drain-consent"] * 2
    assert caught.value.render().count(f"{workload} ignores the cordon ({line})") == 2
    assert (stage.cordoned(), stage.kube.evicted) == ([], [])
    before = {v.pod.uid for v in stage.occupants(allow=True).left}
    done = stage.drain(allow=True)
    assert str(done) == f"2 nodes cordoned; 2 pods of {workload} ignore the cordon and end with the node"
    assert (sorted(stage.kube.uids), len(before)) == (sorted(before), 4)
    stage.require_drained(allow=True)
    with pytest.raises(Conflict, match="default/all"):
        stage.require_drained()


def test_drain_when_a_pod_comes_late_then_evicted_once_and_empty_is_said_of_two_lists(stage: Stage) -> None:
    late = iter([None, None, "late-1", None, "late-2"])
    stage.put("deployments", deployment("web", 1))
    stage.pass_time(60)

    def come() -> None:
        if name := next(late, None):  # as one that the scheduler had bound before it saw the cordon
            owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "x", "uid": "x", "controller": True}
            meta = {"name": name, "ownerReferences": [owner]}
            stage.put("pods", {"metadata": meta, "spec": pod_spec(nodeName="old-2")})

    stage.meanwhile = come
    assert str(stage.drain()) == "2 nodes cordoned and empty"
    assert (len(stage.kube.evicted), stage.kube.evicted[1:]) == (3, ["default/late-1", "default/late-2"])
    looks = [at for at, nodes in stage.kube.looks if len(nodes) == 2]
    assert looks[-1] - looks[-4] > 10


def test_drain_when_a_node_is_uncordoned_meanwhile_then_cordoned_again_and_all_on_it_evicted_once(stage: Stage) -> None:
    stage.put("deployments", deployment("all", 2, **KEPT, tolerations=[{"operator": "Exists"}]))
    stage.pass_time(60)
    undone: list[str] = []

    def uncordon() -> None:
        if len(stage.kube.uids) == 2 and not undone:
            undone.extend(v.pod.uid for v in stage.occupants(allow=True).left if v.pod.node == "old-1")
            node = next(one for one in stage.kube.objects(NODES) or () if text(one, "metadata", "name") == "old-1")
            assert stage.kube.change_object(NODES, node, [{"op": "remove", "path": "/spec/unschedulable"}])

    stage.meanwhile = uncordon
    done = stage.drain(allow=True)
    assert stage.cordoned() == ["old-1", "old-2"]
    assert done.ending == (("Deployment default/all", 2),)
    assert len(stage.kube.uids) == len(set(stage.kube.uids))
    assert undone
    assert set(undone) <= set(stage.kube.uids)


def test_drain_when_pods_are_not_made_again_then_waits_a_minute_and_says_so(stage: Stage) -> None:
    ordered = deployment("ordered", 2, **KEPT)
    ordered["spec"] |= {"serviceName": "ordered"}  # the second one waits for the first one, which has no place
    stage.put("statefulsets", ordered)
    stage.pass_time(60)
    begun = stage.clock.now()
    done = stage.drain()
    assert str(done) == (
        "2 nodes cordoned and empty; not all pods were recreated: StatefulSet default/ordered (1 of 2)"
    )
    assert stage.clock.now() - begun >= 60
    assert "waiting for StatefulSet default/ordered (1 of 2) to recreate pods" in stage.messages()


def test_drain_when_stopped_beside_a_new_pool_then_says_what_stands_and_the_way_back(stage: Stage) -> None:
    stage.put("deployments", deployment("web", 1))
    stage.put("poddisruptionbudgets", budget("keep", "web", minAvailable=1))
    stage.pass_time(60)
    stage.beside = NEW
    with pytest.raises(Stopped):
        stage.drain(stop_after=20)
    (standing,) = stage.last.standing.values()
    assert standing.startswith("stopped: a100 is not drained any further; cordoned: old-1, old-2; ")
    assert "a100 and a100b both run, and cost" in standing
    assert "1 pod left: default/web-" in standing
    assert "budget default/keep: minAvailable 1 needs 1 of its 1 pods" in standing
    assert standing.endswith("to give up: gpukube pool drain a100 --undo -f pools.yaml")


@pytest.mark.parametrize("pods", [40, pytest.param(500, marks=pytest.mark.slow)])
def test_drain_when_pods_and_budgets_are_generated_then_as_foretold(pods: int) -> None:
    ways: Counter[str] = Counter()
    wrong: list[str] = []
    for seed in range(pods // 10):
        with Stage() as stage:
            stage.join("old-1")
            for workload in workloads(Random(seed), 10):  # noqa: S311 -- repeatable
                stage.put(workload.plural, workload.obj)
                for one in workload.budgets:
                    stage.put("poddisruptionbudgets", one)
            stage.pass_time(120)
            stage.join("new-1", NEW)
            before = stage.occupants()
            needing = {str(v.pod) for v in before.verdicts if v.needs}
            if needing:
                with pytest.raises(Conflict) as caught:
                    stage.drain()
                named = {d.seen.split()[1] for d in caught.value.diagnostics}
                assert (named, stage.cordoned(), stage.kube.evicted) == (needing, [], [])
            foretold = stage.occupants(allow=True).verdicts
            with suppress(DrainTimeout):
                stage.drain(allow=True, timeout_s=600)
            left = {v.pod.uid for v in stage.occupants(allow=True).verdicts}
            ways.update(v.way for v in foretold)
            wrong += [f"seed {seed}: {line}" for line in differences(foretold, left, stage.kube.refused)]
    assert wrong == []
    shown = ("free", "budget", "never", *(("waits",) if pods >= 500 else ()))
    assert min(ways[way] for way in shown) > 0, ways


def status_of(code: int, message: str, *causes: str, **details: object) -> tuple[int, dict[str, object]]:
    listed = [{"reason": reason, "message": message} for reason in causes]
    return code, {"message": message, "details": {**details, "causes": listed}}


PASSING = {
    "504": (status_of(504, 'couldn\'t update PodDisruptionBudget "b" due to conflicts'), "late"),
    "throttled": (status_of(429, "too many requests", retryAfterSeconds=7), "throttled"),
    "processing": (
        status_of(429, "The disruption budget b is still being processed by the server.", "DisruptionBudget"),
        "processing",
    ),
    "namespace": (status_of(403, "namespace ml is being terminated", "NamespaceTerminating"), "namespace"),
    "stuck": (status_of(403, "DisruptedPods map too big - too many evictions"), "stuck"),
}


@pytest.mark.parametrize("case", PASSING)
def test_drain_when_an_eviction_is_refused_for_the_moment_then_it_is_repeated(stage: Stage, case: str) -> None:
    answer, refusal = PASSING[case]
    stage.put("deployments", deployment("web", 1))
    stage.pass_time(60)
    stage.kube.answers.append(answer)
    stage.drain()
    assert [told for _, told in stage.kube.refused] == [refusal]
    assert stage.pods("old-1") == stage.pods("old-2") == []
