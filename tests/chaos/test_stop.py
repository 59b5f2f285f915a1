"""Runs that end before the cloud has: Ctrl-C, --no-wait, --fail-fast. Each says how to go on, and that works."""

from __future__ import annotations

import json
import os
import shlex
import signal
from typing import TYPE_CHECKING

import pytest
import yaml

from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.chaos.changes import CHANGES, CLOUDS, prepare, require_changed, start_apply
from tests.chaos.conftest import SPEED

if TYPE_CHECKING:
    from tests.chaos.stage import Ended, Stage

LONG_S = 5e6
"""In the cloud's time; a quarter of an hour of ours, longer than anybody here waits."""
RESUME = "To resume: gpukube --sandbox "


def outcomes(ended: Ended) -> dict[str, str]:
    """What became of each pool."""
    return {pool["pool"]: pool["outcome"] for cluster in json.loads(ended.out)["clusters"] for pool in cluster["pools"]}


def let_finish(stage: Stage, name: str) -> None:
    """Have the cloud end what takes long; then it is as fast as always."""
    daemon.configure(stage.info, speed=LONG_S * 10)
    wait_for(lambda: not is_at_work(stage, name))
    daemon.configure(stage.info, speed=SPEED)


def is_at_work(stage: Stage, name: str) -> bool:
    """Whether the cloud says that it works on the pool."""
    (cluster,) = stage.clusters()
    pools = cluster["pools"]
    assert isinstance(pools, list)
    (state,) = [pool["state"] for pool in pools if pool["name"] == name]
    return state not in ("Succeeded", "ACTIVE", "RUNNING")


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", CLOUDS)
def test_apply_when_interrupted_while_the_cloud_works_then_130_and_the_printed_command_resumes(
    stage: Stage, name: str
) -> None:
    cloud, change = CLOUDS[name], CHANGES[name, "roll"]
    prepare(stage, cloud, change)
    daemon.add_fault(stage.info, "operation", pool=cloud.pool, seconds=LONG_S)
    started = start_apply(stage, "after")
    wait_for(stage.struck)
    wait_for(lambda: is_at_work(stage, cloud.pool))
    os.kill(started.pid, signal.SIGINT)
    ended = started.wait()
    stage.require_stopped(ended)
    assert outcomes(ended) == {cloud.pool: "started"}
    assert is_at_work(stage, cloud.pool)
    resume = ended.err.partition(RESUME)[2].partition("\n")[0]
    again = stage.start(*shlex.split(resume))
    wait_for(lambda: "is still" in again.said or "wait: " in again.said or "update: " in again.said)
    let_finish(stage, cloud.pool)
    require_changed(stage, cloud, change, again.wait())


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", CLOUDS)
def test_apply_when_not_waited_for_then_wait_follows_it_to_its_proof(stage: Stage, name: str) -> None:
    cloud, change = CLOUDS[name], CHANGES[name, "roll"]
    prepare(stage, cloud, change)
    daemon.add_fault(stage.info, "operation", pool=cloud.pool, seconds=LONG_S)
    begun = start_apply(stage, "after", "--no-wait").wait()
    assert (begun.code, outcomes(begun)) == (0, {cloud.pool: "started"}), begun.said
    assert is_at_work(stage, cloud.pool)
    waits = stage.start("pool", "wait", "-f", str(stage.home / "after.yaml"), "-o", "json")
    wait_for(lambda: f"{cloud.pool} wait: " in waits.said)
    let_finish(stage, cloud.pool)
    waited = waits.wait()
    stage.require_polite(waited)
    assert waited.devices == {"nvidia.com/gpu": 8}, waited.said
    require_changed(stage, cloud, change, waited)


def test_apply_when_one_pool_fails_fast_then_the_others_are_not_begun_and_the_next_run_does_all(stage: Stage) -> None:
    cloud, change = CLOUDS["aks"], CHANGES["aks", "delete"]
    prepare(stage, cloud, change)
    path = stage.home / "before.yaml"
    spec = yaml.safe_load(path.read_text())
    for pool in spec["pools"]:
        pool["labels"]["team"] = "audio"
    path.write_text(yaml.safe_dump(spec))
    daemon.add_fault(stage.info, "status", service="arm", method="PUT", status=400, code="InvalidParameter")
    failed = start_apply(stage, "before", "--fail-fast").wait()
    stage.require_polite(failed)
    assert failed.code == 1, failed.said
    assert sorted(outcomes(failed).values()) == ["failed", "not-attempted"]
    assert "--fail-fast" in failed.out
    daemon.clear_faults(stage.info)
    done = start_apply(stage, "before", "--fail-fast").wait()
    assert (done.code, set(outcomes(done).values())) == (0, {"done"}), done.said
    assert {node.labels["team"] for node in stage.nodes() if "team" in node.labels} == {"audio"}
