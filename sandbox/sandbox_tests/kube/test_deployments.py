"""How Deployments roll: strategies on full nodes, numbers, revisions, pauses and deadlines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox.kube.controllers.deployments import rollout_bounds
from gpukube_sandbox.kube.store.objects import annotations_of, meta, name_of, spec, status
from sandbox_tests.kube.test_life import Bench, life
from sandbox_tests.kube.test_workloads import EVER, messages, owner, template

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.objects import JsonObject

BIG = {"requests": {"cpu": "3"}}


def web(replicas: int = 3, *, image: str = "work:1", resources: object = None, **more: object) -> JsonObject:
    body = template(*EVER)
    body["spec"]["containers"][0] |= {"image": image, "resources": resources or {}}
    made = owner(replicas=replicas)
    made["spec"] |= {"template": body, **more}
    return made


def rolling(surge: int | str, lack: int | str) -> JsonObject:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": lack}}


def change_image(bench: Bench, image: str) -> None:
    body = template(*EVER)["spec"]["containers"][0] | {
        "image": image,
        "resources": spec(bench.get("deployments", "web"))["template"]["spec"]["containers"][0]["resources"],
    }
    bench.change("deployments", "web", {"spec": {"template": {"spec": {"containers": [body]}}}})


def images(bench: Bench) -> list[str]:
    return sorted(spec(pod)["containers"][0]["image"] for pod in bench.all_of("pods"))


def progressing(bench: Bench) -> JsonObject:
    found: JsonObject = next(
        item for item in status(bench.get("deployments", "web"))["conditions"] if item["type"] == "Progressing"
    )
    return found


def scalings(bench: Bench) -> list[str]:
    """Tell the events in order, without the names of ReplicaSets."""
    found = [item for item in bench.all_of("events") if item["reason"] == "ScalingReplicaSet"]
    words = [item["message"].split() for item in sorted(found, key=lambda item: item["metadata"]["name"])]
    return [f"{word[1]} {word[-3]}-{word[-1]}" for word in words]


@pytest.mark.parametrize(
    ("strategy", "most", "steps"),
    [
        # Events of kube-controller-manager 1.36.
        pytest.param({"type": "Recreate"}, 3, ["down 3-0", "up 0-3"], id="recreate"),
        pytest.param(
            rolling(0, 1),
            3,
            ["down 3-2", "up 0-1", "down 2-1", "up 1-2", "down 1-0", "up 2-3"],
            id="one after the other",
        ),
        pytest.param(rolling(0, "100%"), 3, ["down 3-0", "up 0-3"], id="all at once"),
        pytest.param(rolling("10%", "10%"), 4, ["up 0-1"], id="surge rounded up waits for room"),
    ],
)
def test_deployment_when_it_rolls_on_full_nodes_then_by_its_strategy(
    strategy: JsonObject, most: int, steps: list[str]
) -> None:
    async def story(bench: Bench) -> None:
        for name in ("n1", "n2", "n3"):
            await bench.node(None, name=name)
        bench.put("deployments", web(resources=BIG, strategy=strategy))
        await bench.wait(60)
        change_image(bench, "work:2")
        seen = 0
        for _ in range(60):
            await bench.wait(1)
            seen = max(seen, sum(not meta(pod).get("deletionTimestamp") for pod in bench.all_of("pods")))
        assert seen == most
        assert scalings(bench)[1:] == steps
        done = len(steps) > 1
        assert images(bench) == (["work:2"] * 3 if done else ["work:1"] * 3 + ["work:2"])
        found = status(bench.get("deployments", "web"))
        assert (found["updatedReplicas"], found["unavailableReplicas"]) == ((3, 0) if done else (1, 1))
        assert progressing(bench)["reason"] == ("NewReplicaSetAvailable" if done else "ReplicaSetUpdated")

    life(story)


@pytest.mark.parametrize(
    ("surge", "lack", "replicas", "expected"),
    [
        ("25%", "25%", 3, (1, 0)),
        ("25%", "25%", 10, (3, 2)),
        (0, "25%", 3, (0, 1)),
        (0, 2, 3, (0, 2)),
        ("100%", 0, 4, (4, 0)),
        (2, 1, 0, (2, 1)),
    ],
)
def test_rollout_bounds_when_percentages_then_surge_is_rounded_up_and_unavailable_down(
    surge: int | str, lack: int | str, replicas: int, expected: tuple[int, int]
) -> None:
    assert rollout_bounds(web(replicas, strategy=rolling(surge, lack))) == expected


def test_deployment_when_rolled_back_then_its_old_set_is_the_newest_revision() -> None:
    async def story(bench: Bench) -> None:
        await bench.node(None)
        bench.put("deployments", web(2, revisionHistoryLimit=1))
        await bench.wait(60)
        (first,) = bench.all_of("replicasets")
        for image, count in (("work:2", 2), ("work:1", 2), ("work:3", 2)):
            change_image(bench, image)
            bench.change("deployments", "web", {"metadata": {"annotations": {"kubernetes.io/change-cause": image}}})
            await bench.wait(30)
            assert len(bench.all_of("replicasets")) == count
        left = {name_of(item): annotations_of(item) for item in bench.all_of("replicasets")}
        kept = left[name_of(first)]
        assert kept["deployment.kubernetes.io/revision"] == "3"
        assert kept["deployment.kubernetes.io/revision-history"] == "1"
        assert kept["kubernetes.io/change-cause"] == "work:1"
        assert annotations_of(bench.get("deployments", "web"))["deployment.kubernetes.io/revision"] == "4"

    life(story)


def test_deployment_when_rolled_back_with_empty_fields_then_no_set_is_new() -> None:
    async def story(bench: Bench) -> None:
        bench.put("deployments", web(1))
        await bench.wait(5)
        change = {"metadata": {"generation": 0}, "spec": {"nodeSelector": {}, "volumes": []}}
        bench.change("deployments", "web", {"spec": {"template": change}})
        await bench.wait(5)
        assert len(bench.all_of("replicasets")) == 1

    life(story)


def test_deployment_when_paused_and_scaled_then_sets_keep_their_shares() -> None:
    async def story(bench: Bench) -> None:
        for name in ("n1", "n2"):
            await bench.node(None, name=name)
        bench.put("deployments", web(4, strategy=rolling(0, 2)))
        await bench.wait(60)
        change_image(bench, "gone.invalid/work:2")
        await bench.wait(30)
        assert images(bench) == ["gone.invalid/work:2"] * 2 + ["work:1"] * 2
        bench.change("deployments", "web", {"spec": {"paused": True, "replicas": 8}})
        await bench.wait(30)
        assert images(bench) == ["gone.invalid/work:2"] * 4 + ["work:1"] * 4
        assert progressing(bench)["reason"] == "DeploymentPaused"
        bench.change("deployments", "web", {"spec": {"paused": False}})
        change_image(bench, "work:3")
        await bench.wait(60)
        assert images(bench) == ["work:3"] * 8

    life(story)


def test_deployment_when_its_pods_never_come_then_the_deadline_ends_it() -> None:
    async def story(bench: Bench) -> None:
        bench.put("deployments", web(1, progressDeadlineSeconds=60))
        await bench.wait(50)
        assert progressing(bench)["status"] == "True"
        await bench.wait(30)
        told = progressing(bench)
        assert (told["status"], told["reason"]) == ("False", "ProgressDeadlineExceeded")
        (made,) = bench.all_of("replicasets")
        assert told["message"] == f'ReplicaSet "{name_of(made)}" has timed out progressing.'

    life(story)


def test_deployment_when_pods_have_to_be_ready_for_a_time_then_each_step_waits() -> None:
    async def story(bench: Bench) -> None:
        await bench.node(None)
        await bench.wait(60)
        bench.put("deployments", web(1, minReadySeconds=60))
        await bench.wait(30)
        found = status(bench.get("deployments", "web"))
        assert (found["readyReplicas"], found["availableReplicas"]) == (1, 0)
        await bench.wait(60)
        assert status(bench.get("deployments", "web"))["availableReplicas"] == 1
        change_image(bench, "work:2")
        await bench.wait(30)
        assert images(bench) == ["work:1", "work:2"]
        await bench.wait(60)
        assert images(bench) == ["work:2"]

    life(story)


def test_deployment_when_a_quota_refuses_its_pods_then_the_event_names_it() -> None:
    async def story(bench: Bench) -> None:
        bench.put("resourcequotas", {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}})
        made = bench.put("deployments", web(2))
        await bench.wait(5)
        assert len(bench.all_of("pods")) == 1
        assert any("exceeded quota: few" in message for message in messages(bench, "FailedCreate"))
        assert meta(made)["generation"] == status(bench.get("deployments", "web"))["observedGeneration"]

    life(story)
