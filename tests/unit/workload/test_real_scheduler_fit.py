"""The predicates of `workload fit` against a real kube-scheduler, over generated nodes and pods."""

from __future__ import annotations

import asyncio
import ssl
from random import Random
from typing import Any

import httpx
import pytest

from gpukube_sandbox.kube.controlplane import ControlPlane
from sandbox_tests.kube import scheduling
from sandbox_tests.kube.test_real_scheduler import ASSETS, OLDEST, TOKEN, end, prepare, verdict
from sandbox_tests.kube.test_real_scheduler import pytestmark as needs_scheduler
from sandbox_tests.serving import hang_up
from sandbox_tests.waiting import PATIENCE_S
from tests.unit.workload.test_fit_agrees import judged, modelled

PODS = 150
NODES = 12
pytestmark = needs_scheduler


async def story(seed: int) -> tuple[int, list[str]]:
    """Schedule generated pods one after the other by the real scheduler; say where `fit` sees it otherwise.

    Returns:
        How many found a node, and what differed.
    """
    assert ASSETS
    plane = ControlPlane(ASSETS, TOKEN)
    random = Random(seed)  # noqa: S311 -- repeatable
    await plane.start()
    if tuple(map(int, plane.version.split(".")[:2])) < OLDEST:
        await plane.stop()
        pytest.skip(f"the generated pods have fields that a scheduler of {plane.version} does not know")
    headers, trusted = {"authorization": f"Bearer {TOKEN}"}, ssl.create_default_context(cadata=plane.ca_pem)
    nodes = [scheduling.node(random, f"node-{number}") for number in range(NODES)]
    bound: list[dict[str, Any]] = []
    differences: list[str] = []
    async with httpx.AsyncClient(
        base_url=plane.url, headers=headers, verify=trusted, trust_env=False, timeout=PATIENCE_S
    ) as client:
        await prepare(client, nodes)
        for number in range(PODS):
            pod = modelled(scheduling.pod(random, f"pod-{number}"))
            ours = judged(nodes, bound, pod)
            real = await verdict(client, pod)
            chosen = real["spec"].get("nodeName", "")
            if chosen:
                bound.append(real)
            else:
                await end(client, real)
            if chosen not in ours if chosen else ours:
                differences.append(f"pod-{number}: scheduled to {chosen or 'no node'}; fit: {sorted(ours)}")
    await plane.stop()
    await hang_up()
    return len(bound), differences


def test_fit_when_pods_and_nodes_are_generated_then_the_real_scheduler_agrees() -> None:
    placed, differences = asyncio.run(story(seed=13))
    assert differences == []
    assert PODS * 0.1 < placed < PODS * 0.9, "the generated pods do not show both answers"
