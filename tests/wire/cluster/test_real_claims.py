"""Device claims on a real control plane: everything that predicts what becomes of pods agrees with its scheduler.

`pytest -m kube -rP` shows the figures.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import pytest

from gpukube_sandbox.clock import ScaledClock
from gpukube_sandbox.kube.cluster import KubeCluster
from gpukube_sandbox.kube.controllers.deviceclaims import DeviceClaims
from gpukube_sandbox.kube.controllers.scheduler import Scheduler
from gpukube_sandbox.kube.controlplane import ControlPlane, find_assets
from gpukube_sandbox.kube.scheduler.devices import results_of, take_devices
from gpukube_sandbox.kube.scheduler.snapshot import take_snapshot
from gpukube_sandbox.kube.scheduler.verdicts import place
from gpukube_sandbox.kube.store.kinds import CORE
from gpukube_sandbox.kube.store.validation.deviceclaims import ADMIN_ACCESS
from tests.claim_cases import FAMILIES, ClaimCase, cases, extended_cases, generated
from tests.unit.workload.test_claims_agree import judge
from tests.wire.cluster.conftest import TOKEN
from tests.wire.cluster.real_claims import PLURALS, Step, real_plane

if TYPE_CHECKING:
    from gpukube_sandbox.kube.scheduler.verdicts import Placing

ASSETS: Final = find_assets()
pytestmark = [
    pytest.mark.kube,
    pytest.mark.skipif(
        ASSETS is None or not ControlPlane(ASSETS, TOKEN).has("kube-scheduler"),
        reason="KUBEBUILDER_ASSETS names no directory with a whole control plane",
    ),
]
SEEDS: Final = range(25)
NEWEST: Final = (1, 36)
_OWN_NAME: Final = re.compile(r"(?:case-\d+|default)/(pod-\d+-\d+-gpu)-\w+|n\d+-(?=\d)")
_PLANE: Final = "1.36.2"


@pytest.fixture(scope="module")
def steps() -> list[Step]:
    """What a real scheduler did with the pods of all cases."""

    async def run() -> list[Step]:
        async with real_plane() as plane:
            if plane.minor < NEWEST:
                pytest.skip(f"a control plane of {plane.minor} lacks fields that the cases have")
            every = (*cases(), *extended_cases(), *map(generated, SEEDS))
            return [step for case in every for step in await plane.run(case)]

    return asyncio.run(run())


def placed(step: Step, nodes: list[dict[str, Any]]) -> Placing:
    """What the emulated scheduler decides about a pod with these nodes, from what the real one has read."""
    before = step.before
    bound = [pod for pod in before.pods if pod["spec"].get("nodeName")]
    space = {"metadata": {"name": step.pod["metadata"]["namespace"]}}
    devices = take_devices(before.slices, before.classes, before.claims)
    return place(step.pod, take_snapshot(nodes, bound, [space], devices), NEWEST)


def differs(step: Step) -> bool:
    """Whether the emulated scheduler decides otherwise: the node, what is allocated there, or the message."""
    ours = placed(step, step.before.nodes)
    if step.node:
        grant, extended = ours.grants.get(step.node), step.pod["status"].get("extendedResourceClaimStatus") or {}
        created = extended.get("resourceClaimName", "")
        mappings = grant.extended[1] if grant and grant.extended else None
        return (
            step.node not in ours.nodes
            or mappings != extended.get("requestMappings")
            or any(
                allocation != step.allocations[claim["metadata"].get("name", created)]
                for claim, allocation in (grant.allocations if grant else ())
            )
        )
    if ours.nodes or ours.message == step.message:
        return bool(ours.nodes)
    # Of several nodes where a claim is an error, the real scheduler reports the one that it comes to first.
    errors = {placed(step, [node]).message for node in step.before.nodes}
    return not ours.is_error or step.message not in errors


def test_pods_when_the_emulated_scheduler_has_read_the_same_then_it_decides_the_same(steps: list[Step]) -> None:
    counts = Counter((step.case.family, bool(step.node)) for step in steps)
    sys.stdout.write(f"{len(steps)} pods of {len({step.case.name for step in steps})} cases: {dict(counts)}\n")

    different = [step.label for step in steps if differs(step)]

    assert different == []
    for family in FAMILIES:
        assert len({step.case.name for step in steps if step.case.family == family}) >= 15
        assert counts[family, False], "some pods of each family wait"
        assert counts[family, True] or family == "impossible"


def test_pods_when_workload_fit_has_read_the_same_then_it_finds_the_same_nodes(steps: list[Step]) -> None:
    unknown, different = Counter[str](), []
    for step in steps:
        before = step.before
        kinds = {
            "DeviceClass": before.classes,
            "ResourceClaim": before.claims,
            "ResourceClaimTemplate": before.templates,
        }
        objects = [
            {**item, "apiVersion": "resource.k8s.io/v1", "kind": kind}
            for kind, items in kinds.items()
            for item in items
        ]
        nodes, unclear = judge(step.pod, before.nodes, before.slices, objects, before.pods)
        unknown[step.case.family] += unclear
        if not unclear and (step.node not in nodes if step.node else nodes):
            different.append(f"{step.label}: scheduler {step.node or step.message}, fit {sorted(nodes)}")
    sys.stdout.write(f"workload fit: {len(steps)} pods, {len(different)} differences, unknown: {dict(unknown)}\n")

    assert different == []
    assert unknown.total() <= 0.2 * len(steps)


Outcome = tuple[bool, str, int]
"""Whether a pod was bound, why not, and how many devices its claims have."""


async def emulate(case: ClaimCase) -> dict[str, Outcome]:
    """Run a case through the emulated API and its controllers; return the outcome of each pod."""
    clock = ScaledClock(1.0)
    cluster = KubeCluster("twin", clock, TOKEN, _PLANE)
    controllers = DeviceClaims(cluster.api, clock), Scheduler(cluster.api, clock, NEWEST)
    cluster.store.update(CORE["namespaces"], {"metadata": {"name": "default", "labels": {ADMIN_ACCESS: "true"}}})
    for plural, items in (("nodes", case.nodes), ("resourceslices", case.slices), ("deviceclasses", case.classes)):
        for item in items:
            cluster.store.create(CORE[plural], item)
    for item in case.claims:
        cluster.store.create(CORE[PLURALS[item["kind"]]], item)
    found = {}
    for body in case.pods:
        name = body["metadata"]["name"]
        cluster.store.create(CORE["pods"], body)
        for controller in controllers:
            await controller.reconcile()
        pod = cluster.store.get(CORE["pods"], "default", name)
        if not pod["spec"].get("nodeName"):
            found[name] = False, _plain(next(one["message"] for one in pod["status"]["conditions"])), 0
            continue
        uid, claims = pod["metadata"]["uid"], cluster.store.all_of(CORE["resourceclaims"])
        mine = [claim for claim in claims if uid in {one["uid"] for one in claim["status"].get("reservedFor") or ()}]
        found[name] = True, "", sum(len(list(results_of(claim))) for claim in mine)
    return found


def test_cases_when_they_run_in_the_emulated_cluster_then_the_same_pods_are_bound_or_wait(steps: list[Step]) -> None:
    """Of several nodes that fit, each scheduler takes its own; where later pods depend on it, the case says nothing."""
    emulated = {
        case.name: asyncio.run(emulate(case)) for case in {step.case.name: step.case for step in steps}.values()
    }

    different = [
        (step.label, theirs, ours)
        for step in steps
        if step.case.family in {*FAMILIES, "extended"}
        and (theirs := outcome(step)) != (ours := emulated[step.case.name][step.pod["metadata"]["name"]])
    ]
    assert different == []


def outcome(step: Step) -> Outcome:
    """What the real scheduler did, as `emulate` returns it."""
    if not step.node:
        return False, _plain(step.message), 0
    return True, "", sum(len(step.results[claim]) for claim in set(_claims_of(step)))


def _claims_of(step: Step) -> list[str]:
    status = step.pod["status"]
    made = {one["name"]: one["resourceClaimName"] for one in status.get("resourceClaimStatuses") or ()}
    extended = (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
    named = [one.get("resourceClaimName") or made[one["name"]] for one in step.pod["spec"].get("resourceClaims") or ()]
    return [*named, *([extended] if extended else [])]


def _plain(message: str) -> str:
    """A message without names that differ in each run."""
    return _OWN_NAME.sub(lambda found: found[1] or "node-", message)
