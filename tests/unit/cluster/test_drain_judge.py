"""What becomes of each pod when its node is emptied: one case a rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.drain.judge import blocked_gangs, delays, gangs, judge
from gpukube.cluster.drain.pods import Gang, disruption_budget, go_duration, node_pod
from gpukube.cluster.kube.views import CORDON

if TYPE_CHECKING:
    from gpukube.cluster.drain.judge import Verdict
    from gpukube.cluster.drain.pods import DisruptionBudget, NodePod

NOW = 1_000_000.0
"""12 January 1970, 13:46:40."""


def pod(name: str = "web-1", *, kind: str = "ReplicaSet", ready: str = "True", **more: object) -> NodePod:
    meta: dict[str, object] = {"name": name, "namespace": "ml", "uid": name, "labels": {"app": "web"}}
    meta |= {"creationTimestamp": "1970-01-12T12:00:00Z", "ownerReferences": []}
    if kind:
        meta["ownerReferences"] = [{"kind": kind, "name": "web", "controller": True}]
    meta |= {key: value for key, value in more.items() if key in ("labels", "annotations", "deletionTimestamp")}
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": "1970-01-12T12:01:30Z"}
    status = {"phase": more.get("phase", "Running"), "startTime": "1970-01-12T12:00:00Z", "conditions": [condition]}
    spec: dict[str, object] = {"nodeName": "n1", "volumes": more.get("volumes", [])}
    spec |= {"terminationGracePeriodSeconds": 20} if more.get("grace") else {}
    return node_pod({"metadata": meta, "spec": spec, "status": status})


def budget(name: str = "b", **more: object) -> DisruptionBudget:
    status: dict[str, object] = {"disruptionsAllowed": 0, "expectedPods": 3, "currentHealthy": 3, "desiredHealthy": 2}
    status |= {"observedGeneration": 1}
    status |= {key: value for key, value in more.items() if key in (*status, "conditions")}
    spec = {key: value for key, value in more.items() if key not in status}
    meta = {"name": name, "namespace": more.get("namespace", "ml"), "generation": 1}
    return disruption_budget(
        {"metadata": meta, "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec}, "status": status}
    )


def one(subject: NodePod, *budgets: DisruptionBudget, allow: bool = True) -> Verdict:
    (found,) = judge([subject], budgets, NOW, allow_disruption=allow)
    return found


def test_judge_when_a_pod_is_a_daemonsets_the_kubelets_or_has_ended_then_stays() -> None:
    mirror = {"kubernetes.io/config.mirror": "x"}
    staying = [pod(kind="DaemonSet"), pod(kind="Node", annotations=mirror), pod(phase="Succeeded"), pod(phase="Failed")]
    assert [(v.way, v.needs) for v in judge(staying, [budget(maxUnavailable=0)], NOW)] == [("stays", ())] * 4


def test_judge_when_no_budget_is_asked_then_free() -> None:
    assert one(pod()).way == "free"
    assert one(pod(phase="Pending"), budget(maxUnavailable=0), budget("c")).way == "free"
    assert one(pod(deletionTimestamp="x"), budget(maxUnavailable=0)).way == "leaving"
    assert one(pod(), budget(namespace="other", maxUnavailable=0)).way == "free"
    assert one(pod(), budget(selector={"matchLabels": {"app": "db"}}, maxUnavailable=0)).way == "free"
    assert one(pod(), budget(selector={}, maxUnavailable=0)).way == "never"
    assert one(pod(), budget(selector=None, maxUnavailable=0)).way == "free"


def test_judge_when_a_pod_is_not_ready_then_by_the_budgets_policy_for_those() -> None:
    sick = pod(ready="False")
    assert one(sick, budget(maxUnavailable=0, unhealthyPodEvictionPolicy="AlwaysAllow")).way == "free"
    assert one(sick, budget(minAvailable=2, currentHealthy=2, desiredHealthy=2)).way == "free"
    assert one(sick, budget(minAvailable=2, currentHealthy=1, desiredHealthy=2)).way == "waits"
    assert one(sick, budget(maxUnavailable="100%", currentHealthy=0, desiredHealthy=0)).way == "waits"


SYNC_FAILED = {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "jobs.batch ..."}
NEVER: dict[str, tuple[dict[str, object], str]] = {
    "maxUnavailable 0": ({"maxUnavailable": 0}, "maxUnavailable is 0"),
    "maxUnavailable 0%": ({"maxUnavailable": "0%"}, "maxUnavailable is 0%"),
    "minAvailable 100%": ({"minAvailable": "100%"}, "minAvailable is 100%"),
    "as many as there are": (
        {"minAvailable": 3, "desiredHealthy": 3}, "minAvailable 3 needs 3 of its 3 pods"
    ),
    "more than there are": ({"minAvailable": 5, "desiredHealthy": 5}, "minAvailable 5 needs 5 of its 3 pods"),
    "rounded up": (
        {"minAvailable": "50%", "desiredHealthy": 1, "expectedPods": 1, "currentHealthy": 1},
        "minAvailable 50% needs 1 of its 1 pods",
    ),
    "a share of bare pods": (
        {"maxUnavailable": 1, "expectedPods": 0, "desiredHealthy": 0}, "its pods have no controller"
    ),
    "no scale": ({"maxUnavailable": 1, "observedGeneration": 0, "conditions": [SYNC_FAILED]}, "jobs.batch ..."),
}  # fmt: skip


@pytest.mark.parametrize("case", NEVER)
def test_judge_when_a_budget_blocks_for_ever_then_never_with_the_reason(case: str) -> None:
    rules, why = NEVER[case]
    found = one(pod(), budget(**rules))  # type: ignore[arg-type]  # test data
    assert (found.way, found.budgets) == ("never", ("ml/b",))
    assert f"budget ml/b: {why}" in found.why or f"({why})" in found.why
    assert "kubectl -n ml edit pdb b" in found.fix


def test_judge_when_two_budgets_cover_a_pod_then_never() -> None:
    found = one(pod(), budget("b", maxUnavailable=1, disruptionsAllowed=1), budget("c", minAvailable=0))
    assert (found.way, found.budgets) == ("never", ("ml/b", "ml/c"))
    assert "ml/b and ml/c" in found.why


def test_judge_when_a_budget_allows_some_or_none_now_then_in_turns_or_waits() -> None:
    assert one(pod(), budget(maxUnavailable=1, disruptionsAllowed=1)).way == "budget"
    waiting = one(pod(), budget(maxUnavailable=1, currentHealthy=2))
    assert (waiting.way, waiting.why) == ("waits", "budget ml/b: 2 of 3 pods are healthy, 2 must be")
    stale = one(pod(), budget(minAvailable=3, observedGeneration=0, desiredHealthy=3, disruptionsAllowed=1))
    assert (stale.way, "older than its spec" in stale.why) == ("waits", True)


SIGNS: dict[str, tuple[dict[str, object], str]] = {
    "bare": ({"kind": ""}, "nothing recreates it"),
    "emptyDir": ({"volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}]}, "emptyDir shm"),
    "safe-to-evict": ({"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}}, "safe-to-evict"),
    "do-not-disrupt": ({"annotations": {"karpenter.sh/do-not-disrupt": "true"}}, "do-not-disrupt: true"),
    "skip": ({"labels": {"cluster.x-k8s.io/drain": "skip"}}, "drain: skip"),
    "head": ({"labels": {"ray.io/cluster": "r", "ray.io/node-type": "head"}}, "the head of RayCluster ml/r"),
}


@pytest.mark.parametrize("case", SIGNS)
def test_judge_when_a_pod_asks_not_to_be_disturbed_then_needs_consent(case: str) -> None:
    made, why = SIGNS[case]
    (need,) = one(pod(**made), allow=False).needs  # type: ignore[arg-type]  # test data
    assert why in need
    assert one(pod(**made)).needs == ()  # type: ignore[arg-type]  # test data


def test_judge_when_a_sign_asks_for_time_then_held_until_then() -> None:
    for keep, left in {"2h": "another 14 min", "1h": "", "soon": "", "1h59m60s": "another 14 min"}.items():
        found = one(pod(annotations={"karpenter.sh/do-not-disrupt": keep}), allow=False)
        assert (found.held, left in found.why, found.needs) == (bool(left), True, ()), keep
    ending = one(pod(labels={"cluster.x-k8s.io/drain": "wait-completed"}), allow=False)
    assert (ending.way, ending.held) == ("waits", True)
    assert [go_duration(text) for text in ("1.5h", "10ms", "4", "h", "")] == [5400.0, 0.01, None, None, None]


def test_gangs_when_pods_work_together_then_collected_and_held_while_one_never_leaves() -> None:
    job = [pod(f"job-{number}", kind="Job", labels={"app": "job"}) for number in range(2)]
    single = pod("single", kind="Job", labels={"app": "single"}, annotations={})
    worker = pod("r-1", labels={"ray.io/cluster": "r", "ray.io/node-type": "worker", "app": "web"})
    member = pod("s-1", kind="Job", labels={"jobset.sigs.k8s.io/jobset-name": "s"})
    found = judge([*job, worker, member], [budget(maxUnavailable=0)], NOW)
    assert {str(gang): len(pods) for gang, pods in gangs(found).items()} == {
        "Job ml/web": 2, "JobSet ml/s": 1, "RayCluster ml/r": 1
    }  # fmt: skip
    assert blocked_gangs(found) == {Gang("RayCluster", "ml", "r")}
    assert gangs(judge([single], [], NOW)) == {}


def test_delays_when_a_budget_lets_pods_go_in_turns_then_turns_of_grace_and_start_up() -> None:
    pods = [pod(f"web-{number}", grace=True) for number in range(5)]
    shared = budget(maxUnavailable=2, disruptionsAllowed=2, expectedPods=5, currentHealthy=5, desiredHealthy=3)
    (found,) = delays(judge(pods, [shared], NOW), [shared], min_ready_s={"ml/b": 10.0})
    assert (found.budget, found.pods, found.allowed) == ("ml/b", 5, 2)
    assert found.seconds == 3 * (20 + 90 + 10)
    assert delays(judge(pods[:2], [shared], NOW), [shared]) == ()


def test_pod_when_clocks_of_server_and_kubelet_differ_then_its_start_up_is_by_one_of_them() -> None:
    obj = {
        "metadata": {"creationTimestamp": "1970-01-01T00:00:00Z"},
        "status": {
            "startTime": "1970-01-12T12:00:00Z",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "1970-01-12T12:01:30Z"}],
        },
    }
    assert node_pod(obj).startup_s == 90


TEMPLATES: list[tuple[dict[str, object], str]] = [
    ({}, ""),
    ({"schedulerName": "default-scheduler"}, ""),
    ({"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}, ""),
    ({"tolerations": [{"operator": "Exists", "effect": "NoExecute"}]}, ""),
    ({"tolerations": [{"key": CORDON, "value": "x"}]}, ""),
    ({"tolerations": [{"key": CORDON}]}, f"tolerations: [{{key: {CORDON}}}]"),
    ({"tolerations": [{"key": "a"}, {"operator": "Exists"}]}, "tolerations: [{operator: Exists}]"),
    ({"schedulerName": "volcano"}, "schedulerName: volcano"),
]


@pytest.mark.parametrize(("spec", "line"), TEMPLATES)
def test_pod_when_its_template_is_read_then_the_line_that_a_cordon_does_not_stop(
    spec: dict[str, object], line: str
) -> None:
    owner = [{"kind": "ReplicaSet", "name": "web-1", "controller": True}]
    meta = {"name": "web-1-x", "namespace": "ml", "ownerReferences": owner}
    above = {"metadata": {"ownerReferences": [{"kind": "Deployment", "name": "web", "controller": True}]}}
    made = node_pod({"metadata": meta, "spec": spec}, above)
    assert (made.ignores, made.workload) == (line, "Deployment ml/web")
    assert node_pod({"metadata": {**meta, "ownerReferences": []}, "spec": spec}).ignores == ""
    named = {**above, "spec": {"template": {"spec": {"nodeName": "n1"}}}}
    assert node_pod({"metadata": meta, "spec": spec}, named).ignores == "nodeName: n1"
