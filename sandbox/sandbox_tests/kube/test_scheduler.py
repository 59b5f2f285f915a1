"""The emulated scheduler: whom it places where, whom it does not, and what it says."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gpukube_sandbox.clock import ManualClock
from gpukube_sandbox.kube.controllers.scheduler import GATED, Scheduler
from gpukube_sandbox.kube.scheduler.snapshot import take_snapshot
from gpukube_sandbox.kube.scheduler.verdicts import Placing, place
from gpukube_sandbox.kube.store import kinds
from gpukube_sandbox.kube.store.objectapi import StoreApi
from gpukube_sandbox.kube.store.store import Store

GPU, ZONE = "nvidia.com/gpu", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ROOM = {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110"}
NO_HELP = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."


def node(name: str, zone: str = "a", *taints: dict[str, str], **room: str) -> dict[str, Any]:
    free = {**ROOM, **{key.replace("__", "/").replace("_", "."): value for key, value in room.items()}}
    status = {"allocatable": free, "capacity": free}
    return {"metadata": {"name": name, "labels": {ZONE: zone}}, "spec": {"taints": [*taints]}, "status": status}


def pod(
    name: str = "x", app: str = "x", on: str = "", asks: dict[str, str] | None = None, **more: object
) -> dict[str, Any]:
    container = {"name": "main", "image": "i", "resources": {"limits": asks or {}, "requests": asks or {}}}
    body: dict[str, Any] = {"containers": [container], **more} | ({"nodeName": on} if on else {})
    return {"metadata": {"name": name, "namespace": "default", "labels": {"app": app}}, "spec": body}


def judged(asked: dict[str, Any], *there: dict[str, Any], nodes: list[dict[str, Any]] | None = None) -> Placing:
    given = nodes or [node("n1"), node("n2", "b")]
    return place(asked, take_snapshot(given, there, [{"metadata": {"name": "default"}}]), (1, 33))


def near(kind: str, app: str, key: str = ZONE) -> dict[str, Any]:
    return {kind: {REQUIRED: [{"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}]}}


def spread(**more: object) -> list[dict[str, Any]]:
    rule = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    return [{**rule, "labelSelector": {"matchLabels": {"app": "x"}}, **more}]


HOPELESS = "2 Preemption is not helpful for scheduling"
NONE_LOWER = "2 No preemption victims found for incoming pod"


@pytest.mark.parametrize(
    ("asked", "there", "expected"),
    [
        pytest.param(pod(), [pod("y", on="n1")], ("n2", "n1"), id="fewest-pods-first"),
        pytest.param(pod(asks={"cpu": "3"}), [pod("y", on="n1", asks={"cpu": "2"})], ("n2",), id="room"),
        pytest.param(pod(asks={"cpu": "9"}), [], ("2 Insufficient cpu", HOPELESS), id="never-room"),
        pytest.param(
            pod(asks={"cpu": "3"}),
            [pod("y", on="n1", asks={"cpu": "2"}), pod("z", on="n2", asks={"cpu": "2"})],
            ("2 Insufficient cpu", NONE_LOWER),
            id="no-room-now",
        ),
        pytest.param(pod(asks={GPU: "1"}), [], (f"2 Insufficient {GPU}", HOPELESS), id="no-device"),
        pytest.param(
            pod(asks={"ephemeral-storage": "200Gi"}), [], ("2 Insufficient ephemeral-storage", HOPELESS), id="disk"
        ),
        pytest.param(
            pod(nodeSelector={"pool": "gpu"}),
            [],
            ("2 node(s) didn't match Pod's node affinity/selector", HOPELESS),
            id="selector",
        ),
        pytest.param(pod(affinity=near("podAffinity", "db")), [pod("y", "db", on="n2")], ("n2",), id="near"),
        pytest.param(pod(affinity=near("podAffinity", "x")), [], ("n1", "n2"), id="first-of-its-kind"),
        pytest.param(
            pod(affinity=near("podAffinity", "db")), [], ("2 node(s) didn't match pod affinity rules", HOPELESS),
            id="alone",
        ),
        pytest.param(pod(affinity=near("podAntiAffinity", "db")), [pod("y", "db", on="n2")], ("n1",), id="apart"),
        pytest.param(
            pod(),
            [pod("y", "db", on="n2", affinity=near("podAntiAffinity", "x"))],
            ("n1",),
            id="unwanted-by-who-is-there",
        ),
        pytest.param(pod(topologySpreadConstraints=spread()), [pod("y", on="n1")], ("n2",), id="spread"),
        pytest.param(
            pod(topologySpreadConstraints=spread(minDomains=3)),
            [pod("y", on="n1"), pod("z", on="n2")],
            ("2 node(s) didn't match pod topology spread constraints", NONE_LOWER),
            id="too-few-domains",
        ),
        pytest.param(
            pod(topologySpreadConstraints=spread(topologyKey="rack")),
            [],
            ("2 node(s) didn't match pod topology spread constraints (missing required label)", HOPELESS),
            id="no-domain",
        ),
        pytest.param(
            pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [
                {"key": "metadata.name", "operator": "In", "values": ["n2"]}]}]}}}),
            [],
            ("n2",),
            id="by-name",
        ),
        pytest.param(
            pod(preemptionPolicy="Never", asks={"cpu": "9"}),
            [],
            ("2 Insufficient cpu", "not eligible due to preemptionPolicy=Never."),
            id="never-preempts",
        ),
    ],
)  # fmt: skip
def test_place_when_nodes_differ_then_the_real_schedulers_choice_or_words(
    asked: dict[str, Any], there: list[dict[str, Any]], expected: tuple[str, ...]
) -> None:
    found = judged(asked, *there)
    if found.nodes:
        assert found.nodes == expected
        return
    assert found.message.startswith(f"0/2 nodes are available: {expected[0]}. preemption: ")
    assert expected[1] in found.message


def test_place_when_taints_cordons_and_rooms_differ_then_reasons_are_counted_and_sorted() -> None:
    nodes = [node("n1", "a", {"key": GPU, "value": "present", "effect": "NoSchedule"}), node("n2"), node("n3", cpu="1")]
    nodes[1]["spec"]["unschedulable"] = True
    nodes.append(node("n4", cpu="1", pods="0"))
    assert judged(pod(asks={"cpu": "2"}), nodes=nodes).message == (
        "0/4 nodes are available: 1 Too many pods, 1 node(s) had untolerated taint {nvidia.com/gpu: present}, "
        "1 node(s) were unschedulable, 2 Insufficient cpu. preemption: 0/4 nodes are available: "
        "4 Preemption is not helpful for scheduling."
    )


def test_place_when_sidecars_and_init_containers_ask_then_the_sum_counts() -> None:
    inits = [
        {"name": "stays", "image": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}},
        {"name": "first", "image": "i", "resources": {"requests": {"cpu": "2500m"}}},
    ]
    assert not judged(pod(asks={"cpu": "1"}, initContainers=inits)).nodes
    assert judged(pod(asks={"cpu": "2"}, initContainers=inits[:1])).nodes


def test_place_when_a_less_important_pod_is_in_the_way_then_it_is_the_victim() -> None:
    there = [pod("big", on="n1", asks={"cpu": "3"}, priority=5), pod("small", on="n2", asks={"cpu": "2"}, priority=1)]
    there.append(pod("stays", on="n2", asks={"cpu": "1"}, priority=1))
    found = judged(pod(asks={"cpu": "3"}, priority=10), *there)
    assert (found.makes_room, [item["metadata"]["name"] for item in found.victims]) == ("n2", ["small"])


def run(*objects: tuple[str, dict[str, Any]]) -> Store:
    store = Store(ManualClock())
    for plural, obj in objects:
        made = store.create(kinds.CORE[plural], obj)
        if plural == "nodes":
            store.update(kinds.CORE[plural], {**made, "status": obj["status"]}, part="status")
    asyncio.run(Scheduler(StoreApi(store), ManualClock()).reconcile())
    return store


def told(store: Store) -> list[str]:
    found = store.all_of(kinds.CORE["events"])
    return sorted(f"{item['type']} {item['reason']} {item['involvedObject']['name']}" for item in found)


def test_scheduler_when_pods_wait_then_events_and_conditions_tell() -> None:
    gated = pod("gated", schedulingGates=[{"name": "example.com/later"}])
    store = run(("nodes", node("n1")), ("pods", pod("fits")), ("pods", pod("huge", asks={"cpu": "9"})), ("pods", gated))
    assert told(store) == ["Normal Scheduled fits", "Warning FailedScheduling huge"]
    assert store.get(kinds.CORE["pods"], "default", "fits")["spec"]["nodeName"] == "n1"
    condition = store.get(kinds.CORE["pods"], "default", "gated")["status"]["conditions"][0]
    assert (condition["reason"], condition["message"]) == ("SchedulingGated", GATED)


def test_scheduler_when_a_pod_is_more_important_then_others_go_for_it() -> None:
    urgent = {"metadata": {"name": "urgent"}, "value": 1000}
    store = run(
        ("priorityclasses", urgent),
        ("nodes", node("n1")),
        ("pods", pod("old", on="n1", asks={"cpu": "3"})),
        ("pods", pod("new", asks={"cpu": "3"}, priorityClassName="urgent")),
    )
    assert told(store) == ["Normal Preempted old", "Warning FailedScheduling new"]
    assert store.get(kinds.CORE["pods"], "default", "old")["metadata"]["deletionTimestamp"]
    assert store.get(kinds.CORE["pods"], "default", "new")["status"]["nominatedNodeName"] == "n1"


def test_scheduler_when_there_is_no_node_then_it_says_so() -> None:
    events = run(("pods", pod())).all_of(kinds.CORE["events"])
    assert [item["message"] for item in events] == ["no nodes available to schedule pods"]
