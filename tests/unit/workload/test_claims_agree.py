"""`fit` and the sandbox's scheduler, which share no code, over the cases of device claims."""

from __future__ import annotations

import sys
from collections import Counter
from copy import deepcopy
from typing import Any

import pytest

from gpukube.workload.claims import read_claims
from gpukube.workload.devices import published_by_node
from gpukube.workload.fit.filling import Circumstances, ClusterView, Filling
from gpukube.workload.fit.nodes import read_node
from gpukube.workload.fit.pods import read_pod
from gpukube.workload.fit.predicates import obstacles
from gpukube_sandbox.kube.scheduler.devices import take_devices
from gpukube_sandbox.kube.scheduler.snapshot import take_snapshot
from gpukube_sandbox.kube.scheduler.verdicts import place
from tests.claim_cases import FAMILIES, ClaimCase, cases, generated

NEWEST = (1, 36)
Json = dict[str, Any]


def judge(
    pod: Json, nodes: list[Json], slices: list[Json], objects: list[Json], bound: list[Json]
) -> tuple[set[str], bool]:
    """Return the nodes that `fit` finds good for a pod, and whether that is unknown for one.

    Args:
        pod: The pod.
        nodes: All nodes.
        slices: All ResourceSlices.
        objects: Classes, templates, and claims, with what is allocated.
        bound: Other pods, on their nodes.
    """
    claims = read_claims(objects)
    published = published_by_node({one["metadata"]["name"]: one["metadata"]["labels"] for one in nodes}, slices)
    found = tuple(
        read_node(
            node,
            "c",
            tolerates_resources=False,
            published=published[node["metadata"]["name"]],
        )
        for node in nodes
    )
    for node in found:
        for other in bound:
            if other["spec"].get("nodeName") == node.name:
                node.take(read_pod(other["metadata"], other["spec"]))
    filling = Filling(ClusterView(key="c", offers=(), nodes=found, claims=claims), Circumstances())
    namespace = pod["metadata"].get("namespace", "")
    read = read_pod(pod["metadata"], pod["spec"], claims=claims.of_pod(pod["spec"], namespace))
    unknown = any(one.kind == "claim-unknown" for node in filling.nodes for one in obstacles(read, node))
    return {node.name for node in filling.suited(read)}, unknown


def walk(case: ClaimCase) -> list[tuple[str, set[str], set[str], bool]]:
    """Place the pods of a case by the sandbox's scheduler; return what it and `fit` say about each."""
    claims = [deepcopy(item) for item in case.claims]
    for item in claims:
        item["metadata"]["namespace"] = "default"
    bound: list[Json] = []
    said = []
    for body in case.pods:
        pod = deepcopy(body)
        name = pod["metadata"]["name"]
        pod["metadata"] |= {"uid": name, "namespace": "default"}
        made = []
        for item in pod["spec"]["resourceClaims"]:
            if template := item.get("resourceClaimTemplateName"):
                spec = next(one["spec"]["spec"] for one in claims if one["metadata"]["name"] == template)
                owner = {"kind": "Pod", "name": name, "uid": name, "controller": True}
                named = {"name": f"{name}-{item['name']}", "namespace": "default", "ownerReferences": [owner]}
                api = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
                made.append((item["name"], {**api, "metadata": named, "spec": spec}))
        statuses = [{"name": of, "resourceClaimName": claim["metadata"]["name"]} for of, claim in made]
        pod["status"] = {"resourceClaimStatuses": statuses}
        before = [*claims, *(claim for _, claim in made)]
        state = take_devices(case.slices, case.classes, [one for one in before if one["kind"] == "ResourceClaim"])
        theirs = place(pod, take_snapshot(case.nodes, bound, [{"metadata": {"name": "default"}}], state), NEWEST)
        ours, unknown = judge(body, [*case.nodes], [*case.slices], [*case.classes, *claims], bound)
        said.append((name, set(theirs.nodes), ours, unknown))
        if theirs.nodes:
            claims = before
            for claim, allocation in theirs.grants[theirs.nodes[0]].allocations if theirs.grants else ():
                claim["status"] = {"allocation": allocation}
            bound.append({**pod, "spec": {**pod["spec"], "nodeName": theirs.nodes[0]}})
    return said


def compare(found: list[ClaimCase]) -> tuple[list[str], Counter[str]]:
    """Return the differences, and how often `fit` knows."""
    counts: Counter[str] = Counter()
    wrong = []
    for case in found:
        for pod, theirs, ours, unknown in walk(case):
            counts["unknown" if unknown else "known"] += 1
            if ours != theirs and not unknown:
                wrong.append(f"{case.family}: {case.name}: {pod}: scheduler {sorted(theirs)}, fit {sorted(ours)}")
    return wrong, counts


@pytest.mark.parametrize("family", FAMILIES)
def test_fit_when_pods_have_claims_then_the_nodes_of_the_emulated_scheduler(family: str) -> None:
    wrong, counts = compare([case for case in cases() if case.family == family])
    sys.stdout.write(f"{family}: {dict(counts)}\n")
    assert wrong == []
    assert counts["unknown"] <= 0.2 * counts.total()


def test_fit_when_claims_are_generated_then_the_nodes_of_the_emulated_scheduler() -> None:
    wrong, counts = compare([generated(seed) for seed in range(120)])
    assert wrong == []
    assert counts["unknown"] <= 0.2 * counts.total()
