"""Workloads over time: what controllers make, what is evicted, and what events tell of it."""

from __future__ import annotations

import pytest

from gpukube_sandbox.kube.cluster import GpuShape, Taint
from gpukube_sandbox.kube.controllers.disruptions import DELETION_TIMEOUT_S, Disruptions
from gpukube_sandbox.kube.store.eviction import evict
from gpukube_sandbox.kube.store.kinds import CORE
from gpukube_sandbox.kube.store.objects import JsonObject, annotations_of, conditions, name_of, spec, status
from gpukube_sandbox.kube.store.problems import ApiProblem
from sandbox_tests.kube.test_life import Bench, life

EVER = ["sleep", "infinity"]


def template(*command: str, app: str = "web", **more: object) -> JsonObject:
    container = {"name": "main", "image": "work:1", "command": [*command]}
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container], **more}}


def pod(name: str, body: JsonObject) -> JsonObject:
    return {"metadata": {**body["metadata"], "name": name}, "spec": body["spec"]}


def owner(name: str = "web", replicas: int = 3, **more: object) -> JsonObject:
    chosen = {"matchLabels": {"app": "web"}}
    made = {"replicas": replicas, "selector": chosen, "template": template(*EVER), **more}
    return {"metadata": {"name": name}, "spec": made}


def job(*command: str, **more: object) -> JsonObject:
    return {"metadata": {"name": "job"}, "spec": {"template": template(*command, restartPolicy="Never"), **more}}


def pods(bench: Bench) -> list[str]:
    return sorted(name_of(pod) for pod in bench.all_of("pods"))


def told(bench: Bench, about: str) -> list[str]:
    found = [item for item in bench.all_of("events") if item["involvedObject"]["name"].startswith(about)]
    return [item["reason"] for item in sorted(found, key=lambda item: int(item["metadata"]["resourceVersion"]))]


def messages(bench: Bench, reason: str) -> set[str]:
    return {item["message"] for item in bench.all_of("events") if item["reason"] == reason}


def test_pod_when_it_lives_and_goes_then_events_tell_each_step() -> None:
    async def story(bench: Bench) -> None:
        await bench.node(None)
        bench.put("pods", pod("one", template(*EVER)))
        await bench.wait(60)
        assert told(bench, "one")[-5:] == ["FailedScheduling", "Scheduled", "Pulled", "Created", "Started"]
        assert messages(bench, "Scheduled") == {"Successfully assigned default/one to n1"}
        bench.cluster.store.delete(CORE["pods"], "default", "one")
        await bench.wait(5)
        assert told(bench, "one")[-1] == "Killing"

    life(story)


def test_pod_when_a_config_map_is_missing_then_the_event_names_it() -> None:
    async def story(bench: Bench) -> None:
        await bench.node(None)
        volume = {"name": "cfg", "configMap": {"name": "absent"}}
        bench.put("pods", pod("one", template(*EVER, volumes=[volume])))
        await bench.wait(60)
        assert messages(bench, "FailedMount") == {
            'MountVolume.SetUp failed for volume "cfg" : configmap "absent" not found'
        }

    life(story)


def test_deployment_when_made_then_its_events_and_its_sets_tell() -> None:
    async def story(bench: Bench) -> None:
        await bench.node(None)
        bench.put("deployments", owner())
        await bench.wait(60)
        assert status(bench.get("deployments", "web"))["readyReplicas"] == 3
        (message,) = messages(bench, "ScalingReplicaSet")
        assert message.startswith("Scaled up replica set web-")
        assert message.endswith(" from 0 to 3")

    life(story)


def test_statefulset_when_made_changed_and_scaled_then_one_pod_after_the_other() -> None:
    async def story(bench: Bench) -> None:
        bench.put("statefulsets", owner("db"))
        await bench.wait(5)
        assert pods(bench) == ["db-0"]
        await bench.node(None)
        await bench.wait(90)
        assert pods(bench) == ["db-0", "db-1", "db-2"]
        before = {name_of(pod): pod["metadata"]["uid"] for pod in bench.all_of("pods")}
        bench.change("statefulsets", "db", {"spec": {"template": {"spec": {"priority": 0, "hostname": "x"}}}})
        await bench.wait(2)
        after = {name_of(pod): pod["metadata"]["uid"] for pod in bench.all_of("pods")}
        assert [name for name in before if after.get(name) == before[name]] == ["db-0", "db-1"]
        await bench.wait(30)
        bench.change("statefulsets", "db", {"spec": {"replicas": 1}})
        await bench.wait(30)
        assert pods(bench) == ["db-0"]

    life(story)


def test_job_when_indexed_then_each_index_ends_once_and_few_run_at_a_time() -> None:
    async def story(bench: Bench) -> None:
        await bench.node(None)
        await bench.wait(60)
        bench.put("jobs", job("true", completions=5, parallelism=2, completionMode="Indexed"))
        await bench.wait(2)
        assert status(bench.get("jobs", "job"))["active"] == 2
        await bench.wait(60)
        found = status(bench.get("jobs", "job"))
        assert (found["succeeded"], found["completedIndexes"]) == (5, "0-4")
        indexes = [annotations_of(pod)["batch.kubernetes.io/job-completion-index"] for pod in bench.all_of("pods")]
        assert sorted(indexes) == ["0", "1", "2", "3", "4"]
        assert "Completed" in told(bench, "job")

    life(story)


def test_job_when_its_pods_fail_then_it_gives_up_after_its_retries() -> None:
    async def story(bench: Bench) -> None:
        await bench.node(None)
        await bench.wait(60)
        bench.put("jobs", job("nvidia-smi", backoffLimit=2))
        await bench.wait(10)
        assert status(bench.get("jobs", "job"))["failed"] == 1
        await bench.wait(60)
        assert status(bench.get("jobs", "job"))["failed"] == 3
        assert conditions(bench.get("jobs", "job")) == {"FailureTarget": "True", "Failed": "True"}
        assert messages(bench, "BackoffLimitExceeded") == {"Job has reached the specified backoff limit"}

    life(story)


def test_job_when_a_pod_sleeps_then_it_runs_as_long() -> None:
    async def story(bench: Bench) -> None:
        await bench.node(None)
        await bench.wait(60)
        bench.put("jobs", job("sh", "-c", "nproc; sleep 1000"))
        await bench.wait(900)
        assert status(bench.get("jobs", "job"))["active"] == 1
        await bench.wait(200)
        assert conditions(bench.get("jobs", "job"))["Complete"] == "True"

    life(story)


def test_drain_when_a_budget_is_used_up_then_429_and_the_real_body() -> None:
    async def story(bench: Bench) -> None:
        await bench.node(None)
        bench.put("deployments", owner(replicas=2))
        budget = {
            "metadata": {"name": "keep"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        }
        bench.put("poddisruptionbudgets", budget)
        await bench.wait(60)
        assert status(bench.get("poddisruptionbudgets", "keep"))["disruptionsAllowed"] == 1
        bench.change("nodes", "n1", {"spec": {"unschedulable": True}})
        await bench.wait(1)
        assert {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"} in spec(bench.get("nodes", "n1"))[
            "taints"
        ]
        first, second = pods(bench)
        evict(bench.cluster.store, "default", first, dry_run=True)
        assert not bench.get("pods", first)["metadata"].get("deletionTimestamp")
        evict(bench.cluster.store, "default", first)
        await bench.wait(10)
        with pytest.raises(ApiProblem) as refused:
            evict(bench.cluster.store, "default", second)
        assert (refused.value.code, refused.value.reason) == (429, "TooManyRequests")
        assert refused.value.message == "Cannot evict pod as it would violate the pod's disruption budget."
        assert refused.value.details["causes"] == [
            {
                "reason": "DisruptionBudget",
                "message": "The disruption budget keep needs 1 healthy pods and has 1 currently",
            }
        ]
        bench.change("nodes", "n1", {"spec": {"unschedulable": None}})
        await bench.wait(60)
        assert not spec(bench.get("nodes", "n1")).get("taints")
        evict(bench.cluster.store, "default", second)

    life(story)


def budget(name: str, **rules: object) -> JsonObject:
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": "web"}}, **rules}}


def test_eviction_when_a_budgets_status_is_old_stuck_or_unhealthy_pods_may_go_then_as_upstream() -> None:
    async def story(bench: Bench) -> None:
        await bench.node(None)
        bench.put("deployments", owner(replicas=2))
        await bench.wait(60)
        bench.put("poddisruptionbudgets", budget("b", minAvailable=2))
        store, (first, second) = bench.cluster.store, pods(bench)

        def refused(**how: str) -> ApiProblem:
            with pytest.raises(ApiProblem) as caught:
                evict(store, "default", first, **how)  # type: ignore[arg-type]  # a uid at the most
            return caught.value

        late = refused()
        assert (late.code, late.details["retryAfterSeconds"]) == (429, 10)
        assert late.details["causes"][0]["message"] == "The disruption budget b is still being processed by the server."
        await bench.wait(1)
        assert "retryAfterSeconds" not in refused().details
        bench.change("poddisruptionbudgets", "b", {"spec": {"minAvailable": 1}})
        await bench.wait(1)
        assert refused(uid="another").code == 409
        found = bench.get("poddisruptionbudgets", "b")
        crowd = {f"gone-{number}": "2026-01-01T00:00:00Z" for number in range(2001)}
        store.update(
            CORE["poddisruptionbudgets"],
            {**found, "status": {**status(found), "disruptionsAllowed": 1, "disruptedPods": crowd}},
            part="status",
        )
        assert "DisruptedPods map too big" in refused().message
        sick = bench.get("pods", first)
        unready = [{"type": "Ready", "status": "False"}]
        store.update(CORE["pods"], {**sick, "status": {**status(sick), "conditions": unready}}, part="status")
        evict(store, "default", first)
        told_of = {
            item["type"]: item["reason"] for item in status(bench.get("pods", first))["conditions"] if "reason" in item
        }
        assert told_of["DisruptionTarget"] == "EvictionByEvictionAPI"
        assert second in pods(bench)

    life(story)


def test_budget_when_its_pods_have_no_scale_then_its_numbers_fail_and_a_noted_pod_counts_again_later() -> None:
    async def story(bench: Bench) -> None:
        await bench.node(None)
        bench.put("jobs", job(*EVER))
        bench.put("poddisruptionbudgets", budget("share", maxUnavailable=1))
        await bench.wait(60)
        (told_of,) = status(bench.get("poddisruptionbudgets", "share"))["conditions"]
        assert (told_of["reason"], told_of["message"]) == (
            "SyncFailed",
            "jobs.batch does not implement the scale subresource",
        )
        bench.change("poddisruptionbudgets", "share", {"spec": {"maxUnavailable": None, "minAvailable": 0}})
        await bench.wait(1)
        noted = bench.get("poddisruptionbudgets", "share")
        (name,) = pods(bench)
        left = {**status(noted), "disruptionsAllowed": 0, "disruptedPods": {name: bench.cluster.store.now()}}
        bench.cluster.store.update(CORE["poddisruptionbudgets"], {**noted, "status": left}, part="status")
        due = await Disruptions(bench.cluster.api, bench.clock).reconcile()
        assert due == pytest.approx(bench.clock.now() + DELETION_TIMEOUT_S, abs=1)
        await bench.wait(60)
        assert status(bench.get("poddisruptionbudgets", "share"))["disruptionsAllowed"] == 0
        await bench.wait(90)
        found = status(bench.get("poddisruptionbudgets", "share"))
        assert (found["disruptionsAllowed"], found.get("disruptedPods")) == (1, {})

    life(story)


def test_pod_when_its_node_gets_a_taint_that_ends_it_then_it_goes_when_its_patience_does() -> None:
    async def story(bench: Bench) -> None:
        await bench.node(None)
        tolerated = {"key": "off", "operator": "Exists", "effect": "NoExecute"}
        patient = template(*EVER, tolerations=[{**tolerated, "tolerationSeconds": 100}])
        for name, body in (("goes", template(*EVER)), ("waits", patient)):
            bench.put("pods", pod(name, body))
        bench.put("pods", pod("stays", template(*EVER, tolerations=[tolerated])))
        await bench.wait(60)
        bench.change("nodes", "n1", {"spec": {"taints": [{"key": "off", "effect": "NoExecute"}]}})
        await bench.wait(30)
        assert pods(bench) == ["stays", "waits"]
        await bench.wait(100)
        assert pods(bench) == ["stays"]
        assert messages(bench, "TaintManagerEviction") == {
            "Marking for deletion Pod default/goes",
            "Marking for deletion Pod default/waits",
        }

    life(story)


def test_daemonset_when_its_pods_are_refused_then_events_say_why() -> None:
    async def story(bench: Bench) -> None:
        await bench.node(None, Taint("gpu", "x"), name="n1")
        await bench.node(None, name="n2")
        bench.put("resourcequotas", {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}})
        everywhere = template(*EVER, tolerations=[{"operator": "Exists"}])
        chosen = {"selector": {"matchLabels": {"app": "web"}}}
        bench.put("daemonsets", {"metadata": {"name": "all"}, "spec": {**chosen, "template": everywhere}})
        no_class = {**everywhere, "spec": {**everywhere["spec"], "runtimeClassName": "nvidia"}}
        bench.put("daemonsets", {"metadata": {"name": "cls"}, "spec": {**chosen, "template": no_class}})
        await bench.wait(60)
        over = "exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1"
        assert messages(bench, "FailedCreate") == {
            f'Error creating: pods "all-" is forbidden: {over}',
            'Error creating: pods "cls-" is forbidden: pod rejected: RuntimeClass "nvidia" not found',
        }
        assert status(bench.get("resourcequotas", "few"))["used"] == {"pods": "1"}

    life(story)


def test_daemonset_when_there_is_no_room_then_its_pod_waits_for_the_scheduler() -> None:
    async def story(bench: Bench) -> None:
        await bench.node(GpuShape("T4", 1, host_plugin=True))
        await bench.wait(60)
        body = template(*EVER)
        body["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
        bench.put("pods", pod("holder", body))
        await bench.wait(10)
        chosen = {"selector": {"matchLabels": {"app": "web"}}}
        bench.put("daemonsets", {"metadata": {"name": "all"}, "spec": {**chosen, "template": body}})
        await bench.wait(10)
        waits = next(item for item in bench.all_of("pods") if name_of(item) != "holder")
        assert (status(waits)["phase"], spec(waits).get("nodeName")) == ("Pending", None)
        assert any(
            message.startswith("0/1 nodes are available: 1 Insuff") for message in messages(bench, "FailedScheduling")
        )
        assert status(bench.get("daemonsets", "all"))["currentNumberScheduled"] == 1
        bench.cluster.store.delete(CORE["pods"], "default", "holder")
        await bench.wait(10)
        assert spec(bench.get("pods", name_of(waits)))["nodeName"] == "n1"
        assert conditions(bench.get("pods", name_of(waits)))["Ready"] == "True"

    life(story)


def test_quota_when_it_is_about_devices_then_requests_are_counted() -> None:
    async def story(bench: Bench) -> None:
        hard = {"hard": {"requests.nvidia.com/gpu": "4", "requests.cpu": "10"}}
        bench.put("resourcequotas", {"metadata": {"name": "gpus"}, "spec": hard})
        asks = {"limits": {"nvidia.com/gpu": "3", "cpu": "1"}}
        body = {"containers": [{"name": "main", "image": "i", "resources": asks}]}
        bench.put("pods", {"metadata": {"name": "a"}, "spec": body})
        with pytest.raises(ApiProblem) as refused:
            bench.put("pods", {"metadata": {"name": "b"}, "spec": body})
        assert refused.value.message == (
            'pods "b" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=3, '
            "used: requests.nvidia.com/gpu=3, limited: requests.nvidia.com/gpu=4"
        )
        with pytest.raises(ApiProblem, match=r"failed quota: gpus: must specify requests\.cpu for: main"):
            bench.put("pods", pod("c", template(*EVER)))

    life(story)


def test_node_when_it_registers_then_it_has_a_lease_that_goes_with_it() -> None:
    async def story(bench: Bench) -> None:
        await bench.node(None)
        await bench.wait(60)
        assert told(bench, "n1") == ["Starting", "RegisteredNode", "NodeReady"]
        (lease,) = bench.all_of("leases")
        assert (name_of(lease), spec(lease)["holderIdentity"]) == ("n1", "n1")
        await bench.cluster.remove_node("n1")
        assert bench.all_of("leases") == []

    life(story)
