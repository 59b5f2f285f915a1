"""What the plugin's log says about the step that is missing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpukube.cluster.proof.logs import Source, explain_by_log, log_sources
from gpukube.cluster.proof.outcome import step_of
from gpukube.cluster.proof.verify import prove_pool
from gpukube.engine.documents.parts import WEIGHTS
from tests.unit.cluster.builders import SINGLE, advertised_by_cloud, desire, installed, node_of, plugin_pod, state

POOL = desire(sharing=SINGLE)
DARK = node_of(POOL, allocatable={})
CRASHED = plugin_pod(ready=False, containers=(state(waiting="CrashLoopBackOff", restarts=3),))
CRASH = Source("node-1", "plugin-x7", "nvidia-device-plugin-ctr")

LINES = {
    "no driver": ("could not load NVML library: libnvidia-ml.so.1: cannot open shared object file", "driver"),
    "no nvml": ("failed to construct resource managers: nvml init failed: ERROR_LIBRARY_NOT_FOUND", "driver"),
    "not cut": ("invalid MIG configuration: device 0 has no MIG devices configured", "geometry"),
    "cut in part": ("all devices on the node must be configured with the same migEnabled value", "geometry"),
    "no entry": ("specified config c-0 does not exist", "config-entry"),
    "one replica": ("number of replicas must be >= 2", "config-entry"),
    "mps with mig": ("sharing using MPS is not supported for MIG devices", "config-entry"),
    "no mps daemon": ("Failed to start plugin: error waiting for MPS daemon", "features"),
    "no gpu": ("No devices found. Waiting indefinitely.", "driver"),
}


@pytest.mark.parametrize("case", LINES)
def test_explain_when_a_log_says_why_then_its_step_and_its_words(case: str) -> None:
    line, step = LINES[case]
    proof = prove_pool(POOL, installed([POOL], DARK, pods=(CRASHED,)))
    told = explain_by_log(proof, CRASH, ["Starting Plugins.", f"E main.go] {line}", "exiting"])
    (found,) = told.per_node[0].findings
    assert (step_of(found), WEIGHTS[found.severity], line in found.seen, bool(found.why)) == (
        step,
        "broken",
        True,
        True,
    )
    assert found.fix


def test_explain_when_the_log_says_nothing_known_then_as_it_was() -> None:
    proof = prove_pool(POOL, installed([POOL], DARK, pods=(CRASHED,)))
    assert explain_by_log(proof, CRASH, ["Starting Plugins."]) is proof


def test_explain_when_it_is_another_node_then_as_it_was() -> None:
    proof = prove_pool(POOL, installed([POOL], DARK, pods=(CRASHED,)))
    told = explain_by_log(proof, replace(CRASH, node="node-2"), ["nvml init failed"])
    assert told.per_node == proof.per_node


def sources(*, pods: object, node: object = DARK) -> tuple[Source, ...]:
    seen = installed([POOL], node, pods=pods)  # type: ignore[arg-type]  # test data
    return log_sources(POOL, prove_pool(POOL, seen), seen)


def test_sources_when_a_pod_crashes_or_shows_nothing_then_its_container() -> None:
    assert sources(pods=(CRASHED,)) == (CRASH,)
    assert sources(pods=(plugin_pod(),)) == (CRASH,)


def test_sources_when_there_is_nothing_to_ask_then_none() -> None:
    assert sources(pods=(plugin_pod(),), node=node_of(POOL)) == ()
    assert sources(pods=(replace(CRASHED, terminating=True),)) == ()
    assert sources(pods=(replace(CRASHED, owner="another"),)) == ()
    cloud = advertised_by_cloud(POOL)
    seen = installed([POOL], DARK)
    assert log_sources(cloud, prove_pool(cloud, seen), seen) == ()
