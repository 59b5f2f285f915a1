"""Waiting has an end: a timeout, or Ctrl-C. The cloud keeps working, and the same command takes it up again."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.cli.harness import EXAMPLES, LONGEST_S, Cluster, Gpukube, edited_spec, pool_states, start_process

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo
    from tests.cli.harness import Document

CUSTOM = EXAMPLES / "aks-custom-taint.yaml"
FOR_EVER = 1e6  # sandbox seconds


@pytest.fixture
def slow_cloud(sandbox: SandboxInfo, gpukube: Gpukube) -> SandboxInfo:
    """A cloud that takes its time over the next pool, for whose release nothing is left to do."""
    gpukube.made("-f", CUSTOM)
    daemon.tamper(sandbox, "train", "t4custom", delete=True)
    daemon.add_fault(sandbox, "operation", seconds=FOR_EVER)
    return sandbox


def _queue_another(document: Document) -> None:
    """Declare a second pool, which waits for the first: AKS takes one at a time."""
    (pool,) = document["pools"]
    document["pools"].append({**pool, "name": "t4queued"})


def test_create_when_the_timeout_passes_then_seven_and_the_way_to_resume(
    slow_cloud: SandboxInfo, gpukube: Gpukube
) -> None:
    late = gpukube("pool", "create", "-f", CUSTOM, "--timeout", "0.01")
    assert late.code == 7
    assert "error[timeout]: timed out: t4custom is still" in late.out
    assert "fix: the cloud keeps working; to resume: gpukube --sandbox pool create -f " in late.out
    assert pool_states(slow_cloud)["t4custom"] == "Creating"


def test_create_when_the_timeout_passes_while_nodes_are_missing_then_seven_too(
    gpukube: Gpukube, cluster: Cluster
) -> None:
    gpukube.made("-f", CUSTOM)
    cluster.delete_nodes("t4custom")
    late = gpukube("pool", "create", "-f", CUSTOM, "--timeout", "0.01")
    assert late.code == 7
    assert "error[timeout]: timed out: train-aks/t4custom: 0 of 1 nodes are in the cluster" in late.out
    assert f"to resume: gpukube --sandbox pool create -f {CUSTOM}" in late.out


def test_create_when_resumed_then_it_waits_for_the_same_pool_and_proves_it(
    slow_cloud: SandboxInfo, gpukube: Gpukube, cluster: Cluster
) -> None:
    assert gpukube("pool", "create", "-f", CUSTOM, "--timeout", "0.01").code == 7
    shown = gpukube("pool", "plan", "-f", CUSTOM)
    assert "matches; the cloud is still working on it (Creating)" in shown.out
    daemon.configure(slow_cloud, speed=FOR_EVER * 2)
    done = gpukube("pool", "create", "-f", CUSTOM)
    assert (done.code, gpukube.writes()) == (0, []), done.out
    assert cluster.devices("t4custom") == [{"gpu": 1}]


def test_create_when_interrupted_then_130_and_each_pool_says_whether_the_cloud_works_on_it(
    slow_cloud: SandboxInfo, tmp_path: Path
) -> None:
    spec = edited_spec("aks-custom-taint", tmp_path, _queue_another)
    with start_process(slow_cloud, "pool", "create", "-f", spec) as process:
        wait_for(lambda: "t4custom" in pool_states(slow_cloud))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 130, err
    assert "started       train-aks/t4custom  create is still running in the cloud; no longer watched" in out
    assert "not-attempted train-aks/t4queued  no request was sent" in out
    assert "t4queued" not in pool_states(slow_cloud)
    resume = f"gpukube --sandbox pool create -f {spec}"
    assert f"stopped waiting; the cloud keeps working. To resume: {resume}\n" in err
    assert "Traceback" not in err
    assert pool_states(slow_cloud)["t4custom"] == "Creating"
    daemon.configure(slow_cloud, speed=FOR_EVER * 2)
    wait_for(lambda: pool_states(slow_cloud)["t4custom"] == "Succeeded")


def test_delete_when_interrupted_then_130_and_the_pool_still_goes(gpukube: Gpukube, sandbox: SandboxInfo) -> None:
    gpukube.made("-f", CUSTOM)
    daemon.add_fault(sandbox, "operation", seconds=FOR_EVER, kind="Deleting")
    with start_process(sandbox, "pool", "delete", "t4custom", "-f", CUSTOM, "--yes") as process:
        wait_for(lambda: pool_states(sandbox)["t4custom"] == "Deleting")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LONGEST_S)
    assert (process.returncode, "To resume: gpukube --sandbox pool delete t4custom" in err) == (130, True), err
    daemon.configure(sandbox, speed=FOR_EVER * 2)
    wait_for(lambda: "t4custom" not in pool_states(sandbox))


def test_verify_when_interrupted_then_130(gpukube: Gpukube, sandbox: SandboxInfo) -> None:
    gpukube.made("-f", CUSTOM)
    daemon.tamper(sandbox, "train", "t4custom", count=0)
    mark = len(daemon.requests_since(sandbox))
    with start_process(sandbox, "pool", "verify", "-f", CUSTOM, "--timeout", "5") as process:
        wait_for(lambda: sum("/nodes" in str(r["path"]) for r in daemon.requests_since(sandbox, mark)) > 1)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LONGEST_S)
    assert (process.returncode, "To resume: gpukube --sandbox pool verify" in err) == (130, True), err


def test_plan_when_interrupted_twice_while_the_cloud_hangs_then_130_at_once(
    gpukube: Gpukube, sandbox: SandboxInfo
) -> None:
    daemon.add_fault(sandbox, "hang", service="arm")
    with start_process(sandbox, "pool", "plan", "-f", CUSTOM) as process:
        wait_for(lambda: daemon.requests_since(sandbox))
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LONGEST_S)
    assert (process.returncode, "Traceback" in err) == (130, False)
