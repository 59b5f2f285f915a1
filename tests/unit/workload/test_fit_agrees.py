"""The predicates of `fit` and the sandbox's scheduler, which share no code, over generated nodes and pods."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from gpukube.workload.fit.neighbours import Neighbours
from gpukube.workload.fit.nodes import Node, read_node
from gpukube.workload.fit.pods import read_pod
from gpukube.workload.fit.predicates import why_not
from gpukube_sandbox.kube.scheduler.snapshot import take_snapshot
from gpukube_sandbox.kube.scheduler.verdicts import place
from sandbox_tests.kube import scheduling

VERSION = (1, 36)
SPACES: list[dict[str, Any]] = [{"metadata": {"name": "default"}}]


def modelled(pod: dict[str, Any]) -> dict[str, Any]:
    """Take out what `fit` does not model: ephemeral storage, host ports, priorities."""
    pod["spec"].pop("priorityClassName", None)
    for container in pod["spec"]["containers"]:
        container.pop("ports", None)
        container["resources"]["requests"].pop("ephemeral-storage", None)
    return pod


def judged(nodes: list[dict[str, Any]], bound: list[dict[str, Any]], pod: dict[str, Any]) -> set[str]:
    """Return the nodes that `fit` finds good for a pod."""
    found: dict[str, Node] = {}
    for node in nodes:
        read = read_node(node, "c", tolerates_resources=False)
        found[read.name] = read
    for other in bound:
        found[other["spec"]["nodeName"]].take(read_pod(other["metadata"], other["spec"]))
    read_one = read_pod(pod["metadata"], pod["spec"])
    around = Neighbours(read_one, list(found.values()), {"default": {}})
    return {name for name, node in found.items() if why_not(read_one, node) is None and not any(around.obstacles(node))}


def differences(seed: int, count: int) -> tuple[list[str], int]:
    """Place generated pods one after the other by the sandbox's scheduler; say where `fit` sees other nodes."""
    random = Random(seed)  # noqa: S311 -- repeatable
    nodes = [scheduling.node(random, f"node-{number}") for number in range(8)]
    bound: list[dict[str, Any]] = []
    found = []
    for number in range(count):
        pod = modelled(scheduling.pod(random, f"pod-{number}"))
        theirs = place(pod, take_snapshot(nodes, bound, SPACES), VERSION).nodes
        ours = judged(nodes, bound, pod)
        if ours != set(theirs):
            found.append(f"{pod['metadata']['name']}: only fit: {ours - set(theirs)}, only they: {set(theirs) - ours}")
        if theirs:
            bound.append({**pod, "spec": {**pod["spec"], "nodeName": theirs[0]}})
    return found, len(bound)


@pytest.mark.parametrize("seed", [1])
def test_fit_when_pods_and_nodes_are_generated_then_the_nodes_of_the_emulated_scheduler(seed: int) -> None:
    found, placed = differences(seed, 36)
    assert found == []
    assert 4 <= placed <= 32, "the generated pods do not show both answers"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_fit_when_five_hundred_pods_are_generated_then_the_nodes_of_the_emulated_scheduler(seed: int) -> None:
    assert differences(seed, 50)[0] == []
