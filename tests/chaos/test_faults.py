"""One fault at any call of `pool create`: the run, or the next one, converges, and a failure says what to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from tests.chaos.boundaries import BEFORE_HELM, BEFORE_PROOF, HELM_CALLS, LOOK, POOL_API, helm_call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.chaos.boundaries import Undisturbed
    from tests.chaos.stage import Stage

FAULTS: dict[str, dict[str, object]] = {
    "429": {"action": "status", "status": 429, "headers": {"Retry-After": "1"}},
    "500": {"action": "status", "status": 500},
    "503": {"action": "status", "status": 503},
    "drop-before": {"action": "drop-before"},
    "drop-after": {"action": "drop-after"},
}
KINDS = tuple(FAULTS)
HELM_FAULTS = {
    "dry run": "503",
    "install begins": "drop-before",
    "release record": "drop-after",
    "first object": "429",
    "config": "500",
    "last object": "drop-after",
    "release record is closed": "500",
}


def disturb(stage: Stage, undisturbed: Undisturbed, where: Mapping[str, object], kind: str) -> bool:
    """Let one request meet one fault; when the run does not get over it by itself, run again. Whether it was made."""
    parts = dict(FAULTS[kind])
    daemon.add_fault(stage.info, str(parts.pop("action")), **where, **parts)
    ended = stage.create()
    stage.require_polite(ended)
    struck = stage.struck()
    daemon.clear_faults(stage.info)
    if ended.code != 0:
        ended = stage.create()
    stage.require_converged(ended, undisturbed.objects)
    return struck


@pytest.mark.turns(3)
@pytest.mark.parametrize("at", range(4))
def test_create_when_a_read_of_the_cloud_fails_then_converges(stage: Stage, undisturbed: Undisturbed, at: int) -> None:
    assert disturb(stage, undisturbed, {"service": "arm", "nth": at + 1}, KINDS[at])


@pytest.mark.turns(5)
@pytest.mark.parametrize(
    ("case", "kind"), [*((case, KINDS[at]) for at, case in enumerate(POOL_API)), ("put", "drop-after")]
)
def test_create_when_a_call_of_the_pool_api_fails_then_converges(
    stage: Stage, undisturbed: Undisturbed, case: str, kind: str
) -> None:
    assert disturb(stage, undisturbed, POOL_API[case].parts, kind)


@pytest.mark.turns(3)
@pytest.mark.parametrize("part", range(3))
def test_create_when_every_third_call_before_helm_fails_in_a_row_then_nothing_was_changed(
    stage: Stage, undisturbed: Undisturbed, part: int
) -> None:
    for nth, (method, path) in list(enumerate(undisturbed.kube[:BEFORE_HELM]))[part::3]:
        parts = dict(FAULTS[KINDS[nth % len(KINDS)]])
        # Each time: a read whose connection broke is made once more, and others are made beside it.
        where = {"service": "kube", "method": method, "path": rf"{re.escape(path)}(\?|$)", "times": 0}
        daemon.add_fault(stage.info, str(parts.pop("action")), **where, **parts)
        ended = stage.create()
        stage.require_polite(ended)
        assert ended.code == 1, ended.said
        assert (stage.pools(), stage.releases()) == ({"nodepool1": 1}, [])
        daemon.clear_faults(stage.info)
    stage.require_converged(stage.create(), undisturbed.objects)


@pytest.mark.turns(3)
@pytest.mark.parametrize("part", range(3))
def test_create_when_every_third_call_of_the_proof_fails_in_a_row_then_it_gets_over_each(
    stage: Stage, undisturbed: Undisturbed, part: int
) -> None:
    stage.require_converged(stage.create(), undisturbed.objects)
    for nth in range(LOOK + 1 + part, 2 * LOOK + 1, 3):  # one look to plan, and one to prove
        parts = dict(FAULTS[KINDS[nth % len(KINDS)]])
        daemon.add_fault(stage.info, str(parts.pop("action")), service="kube", nth=nth, **parts)
        ended = stage.create()
        assert stage.struck(), nth
        daemon.clear_faults(stage.info)
        stage.require_polite(ended)
        assert (ended.code, ended.devices) == (0, {"nvidia.com/gpu": 56}), ended.said


@pytest.mark.turns(5)
@pytest.mark.parametrize("at", range(BEFORE_HELM, BEFORE_PROOF))
def test_create_when_a_call_of_the_cluster_fails_then_converges(
    stage: Stage, undisturbed: Undisturbed, at: int
) -> None:
    assert disturb(stage, undisturbed, {"service": "kube", "nth": undisturbed.ours[at]}, KINDS[at % len(KINDS)])


@pytest.mark.turns(4)
@pytest.mark.parametrize("case", HELM_FAULTS)
def test_create_when_a_call_of_helm_fails_then_converges(stage: Stage, undisturbed: Undisturbed, case: str) -> None:
    nth = helm_call(undisturbed, HELM_CALLS[case])
    assert disturb(stage, undisturbed, {"service": "kube", "nth": nth}, HELM_FAULTS[case])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("service", "at"), [*(("arm", at) for at in range(12)), *(("kube", at) for at in range(120))])
def test_create_when_any_call_meets_any_fault_then_converges(
    stage: Stage, undisturbed: Undisturbed, service: str, at: int, kind: str
) -> None:
    calls = undisturbed.arm if service == "arm" else undisturbed.kube
    if at >= len(calls):
        pytest.skip(f"an undisturbed run makes {len(calls)} calls of {service}")
    if not disturb(stage, undisturbed, {"service": service, "nth": at + 1}, kind):
        pytest.skip("this run asked less often how far the pool is")
