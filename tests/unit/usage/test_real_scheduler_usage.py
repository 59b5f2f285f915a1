"""Counts of the map against pods that a real kube-scheduler has bound, over generated nodes and pods."""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from gpukube.usage.documents import map_document
from gpukube_sandbox.kube.controlplane import ControlPlane
from sandbox_tests.kube.test_real_scheduler import ASSETS, OLDEST, TOKEN, prepare, verdict
from sandbox_tests.kube.test_real_scheduler import pytestmark as needs_scheduler
from sandbox_tests.serving import hang_up
from sandbox_tests.waiting import PATIENCE_S
from tests.unit.usage import worlds

if TYPE_CHECKING:
    from tests.unit.usage.worlds import Scene

    Json = dict[str, Any]

SCENES = 5
pytestmark = needs_scheduler


async def bound(seeds: list[int]) -> list[Scene]:
    """Create the nodes and pods of generated scenes without claims, one scene after the other."""
    assert ASSETS
    plane = ControlPlane(ASSETS, TOKEN)
    await plane.start()
    if tuple(map(int, plane.version.split(".")[:2])) < OLDEST:
        await plane.stop()
        pytest.skip(f"a scheduler of {plane.version} is too old for the sandbox's tests")
    headers, trusted = {"authorization": f"Bearer {TOKEN}"}, ssl.create_default_context(cadata=plane.ca_pem)
    scenes = []
    async with httpx.AsyncClient(
        base_url=plane.url, headers=headers, verify=trusted, trust_env=False, timeout=PATIENCE_S
    ) as client:
        await prepare(client, [])
        for seed in seeds:
            made = worlds.scene(seed)
            for node in made.all_nodes:
                node["metadata"].pop("creationTimestamp")
                assert (await client.post("/api/v1/nodes", json=node)).is_success
            pods = []
            for pod in made.pods:
                if "resourceClaims" in pod["spec"] or "schedulingGates" in pod["spec"]:
                    continue
                spec = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
                named = {"name": f"{pod['metadata']['name']}-{seed}", "namespace": "default"}
                pods.append(await verdict(client, {"metadata": named, "spec": spec}))
            made.pods, made.claims = pods, []
            scenes.append(made)
            for node in made.all_nodes:
                await client.delete(f"/api/v1/nodes/{node['metadata']['name']}")
    await plane.stop()
    await hang_up()
    return scenes


def test_map_when_a_real_scheduler_binds_the_pods_then_every_count_is_that_of_the_objects() -> None:
    with_pods = [seed for seed in range(60) if worlds.scene(seed).pods and worlds.scene(seed).all_nodes]
    held = 0
    for made in asyncio.run(bound(with_pods[:SCENES])):
        (cluster,) = map_document(made.build())["clusters"]
        for pool in cluster["pools"]:
            for node in pool["nodes"]:
                requested: Counter[str] = Counter()
                for pod in made.pods:
                    if pod["spec"].get("nodeName") == node["name"]:
                        requested.update(worlds.requests(pod))
                counted = Counter({stock["resource"]: stock["held"] for stock in node["stocks"]})
                assert +counted == +requested
                held += counted.total()
        waits = {(pod["namespace"], pod["name"]): Counter(pod["devices"]) for pod in cluster["waiting"]}
        assert waits == {
            ("default", pod["metadata"]["name"]): asked
            for pod in made.pods
            if not pod["spec"].get("nodeName") and (asked := +worlds.requests(pod))
        }
    assert held
