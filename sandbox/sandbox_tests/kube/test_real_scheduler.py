"""The emulated scheduler's verdicts against those of a real kube-scheduler, over generated nodes and pods."""

from __future__ import annotations

import asyncio
import ssl
from random import Random
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from gpukube_sandbox.credentials import new_secret
from gpukube_sandbox.kube.controlplane import ControlPlane, find_assets
from gpukube_sandbox.kube.scheduler.snapshot import take_snapshot
from gpukube_sandbox.kube.scheduler.verdicts import place, priority
from sandbox_tests.serving import hang_up
from sandbox_tests.waiting import PATIENCE_S

from . import scheduling

if TYPE_CHECKING:
    from collections.abc import Iterable

ASSETS = find_assets()
TOKEN = new_secret()
PODS = 200
NODES = 15
OLDEST = (1, 34)
pytestmark = [
    pytest.mark.kube,
    pytest.mark.skipif(
        ASSETS is None or not ControlPlane(ASSETS, TOKEN).has("kube-scheduler"),
        reason="KUBEBUILDER_ASSETS names no directory with etcd, kube-apiserver and kube-scheduler",
    ),
]


async def verdict(client: httpx.AsyncClient, pod: dict[str, Any]) -> dict[str, Any]:
    """Create a pod and wait until the real scheduler has bound it or said why not."""
    made = await client.post("/api/v1/namespaces/default/pods", json=pod)
    assert made.is_success, made.text
    name = pod["metadata"]["name"]
    path, since = "/api/v1/namespaces/default/pods", made.json()["metadata"]["resourceVersion"]
    asked = {"watch": "true", "fieldSelector": f"metadata.name={name}", "resourceVersion": since}
    async with asyncio.timeout(PATIENCE_S), client.stream("GET", path, params=asked) as answer:
        async for line in answer.aiter_lines():
            found: dict[str, Any] = httpx.Response(200, text=line).json()["object"]
            told = {item["type"]: item for item in found["status"].get("conditions") or ()}
            if found["spec"].get("nodeName") or told.get("PodScheduled", {}).get("status") == "False":
                return found
    raise AssertionError(name)


async def prepare(client: httpx.AsyncClient, nodes: list[dict[str, Any]]) -> None:
    account = {"metadata": {"name": "default", "namespace": "default"}}
    await client.post("/api/v1/namespaces/default/serviceaccounts", json=account)
    for name, (value, policy) in scheduling.CLASSES.items():
        made = {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy}
        assert (await client.post("/apis/scheduling.k8s.io/v1/priorityclasses", json=made)).is_success
    for node in nodes:
        assert (await client.post("/api/v1/nodes", json=node)).is_success


async def end(client: httpx.AsyncClient, *pods: dict[str, Any]) -> None:
    for pod in pods:
        path = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}"
        await client.delete(path, params={"gracePeriodSeconds": "0"})


async def doomed(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    """Return the pods that the real scheduler has preempted: no kubelet ends them."""
    listed = (await client.get("/api/v1/namespaces/default/pods")).json()["items"]
    return [item for item in listed if item["metadata"].get("deletionTimestamp")]


def worth(pods: Iterable[dict[str, Any]]) -> list[int]:
    """Return what is lost with pods: which of several equal choices is taken, the real scheduler leaves to chance."""
    return sorted(map(priority, pods))


def named(pods: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in pods)


async def story(seed: int) -> tuple[int, int, list[str]]:
    """Schedule generated pods one after the other on both.

    Returns:
        How many found a node, how many made others go, and what differed.
    """
    assert ASSETS
    plane = ControlPlane(ASSETS, TOKEN)
    random = Random(seed)  # noqa: S311 -- repeatable
    await plane.start()
    differences: list[str] = []
    preempted = 0
    headers, trusted = {"authorization": f"Bearer {TOKEN}"}, ssl.create_default_context(cadata=plane.ca_pem)
    major, minor = map(int, plane.version.split(".")[:2])
    if (major, minor) < OLDEST:
        await plane.stop()
        pytest.skip(f"the generated pods have fields that a scheduler of {plane.version} does not know")
    bound: list[dict[str, Any]] = []
    nodes = [scheduling.node(random, f"node-{number}") for number in range(NODES)]
    async with httpx.AsyncClient(
        base_url=plane.url, headers=headers, verify=trusted, trust_env=False, timeout=PATIENCE_S
    ) as client:
        await prepare(client, nodes)
        for number in range(PODS):
            real = await verdict(client, scheduling.pod(random, f"pod-{number}"))
            chosen = real["spec"].pop("nodeName", "")
            ours = place(real, take_snapshot(nodes, bound, [{"metadata": {"name": "default"}}]), (major, minor))
            gone: list[dict[str, Any]] = []
            if chosen:
                real["spec"]["nodeName"] = chosen
                bound.append(real)
                agree = chosen in ours.nodes
                told = f"runs on {chosen}"
            else:
                told = next(item["message"] for item in real["status"]["conditions"] if item["type"] == "PodScheduled")
                gone = await doomed(client)
                preempted += len(gone)
                agree = (told, worth(gone)) == (ours.message, worth(ours.victims)) and not ours.nodes
                bound = [item for item in bound if item["metadata"]["name"] not in named(gone)]
                await end(client, real, *gone)
            if not agree:
                told += f" at the cost of {named(gone)}" if not chosen else ""
                differences.append(
                    f"{real['metadata']['name']}: {told!r}; ours: {ours.nodes} {ours.message!r} {named(ours.victims)}"
                )
    await plane.stop()
    await hang_up()
    return len(bound), preempted, differences


def test_scheduler_when_pods_and_nodes_are_generated_then_same_verdicts_as_the_real_one() -> None:
    placed, preempted, differences = asyncio.run(story(seed=12))
    assert differences == []
    assert PODS * 0.1 < placed < PODS * 0.9, "the generated pods do not tell both kinds of verdict"
    assert preempted > 0
