"""Clouds and clusters that do not answer: `--timeout`, Ctrl-C, SIGTERM and SIGHUP end a run all the same, and cleanly.

The whole matrix is marked slow; it prints how long each end took. By default each fault, each place and each way to end
comes up once.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import pytest
import yaml

from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.chaos.stage import EXAMPLES, MIG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.chaos.stage import Ended, Stage, Started

Fault = Literal["retry-after", "hang", "connect"]
Way = Literal["timeout", "INT", "TERM", "HUP"]

SPECS: Final = {
    "arm": EXAMPLES / "aks-custom-taint.yaml",
    "aws": EXAMPLES / "eks-mig.yaml",
    "gke": EXAMPLES / "gke-t4-n1.yaml",
    "kube": EXAMPLES / "aks-custom-taint.yaml",
}
FAULTS: Final[tuple[Fault, ...]] = ("retry-after", "hang", "connect")
CODES: Final = {"timeout": 7, "INT": 130, "TERM": 143, "HUP": 129}
GIVEN_UP: Final = {("kube", "retry-after"), ("aws", "retry-after"), ("gke", "retry-after"), ("aws", "connect")}
"""Where the client itself gives up before the run does: the run then ends with that error, 1."""
LIMIT_S: Final = {"timeout": 45.0, "INT": 15.0, "TERM": 15.0, "HUP": 15.0}
"""What is promised of each way to end; counted from the signal, or from the start."""


def processes_of(stage: Stage) -> list[int]:
    """List the processes that have this test's directory for temporary files: a run, and all that it starts."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and str(stage.tmp).encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


def require_nothing_left(stage: Stage) -> None:
    """No child of the run lives, and nothing of it lies about."""
    wait_for(lambda: not processes_of(stage), lambda: processes_of(stage))
    assert list(stage.tmp.iterdir()) == []


@contextmanager
def black_hole() -> Iterator[int]:
    """A port whose connections are never made: nobody accepts them, and its queue is full."""
    with ExitStack() as held:
        listener = held.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        port: int = listener.getsockname()[1]
        for _ in range(4):
            client = held.enter_context(socket.socket())
            client.settimeout(0)
            with suppress(OSError):
                client.connect(("127.0.0.1", port))
        yield port


def start_into(stage: Stage, place: str, port: int, *words: str) -> Started:
    """Start a creation whose cloud, or whose cluster, is at a port where no connection is made."""
    spec = SPECS[place]
    if place == "kube":
        config = yaml.safe_load(str(daemon.call(stage.info, "GET", "kubeconfig")["kubeconfig"]))
        for cluster in config["clusters"]:
            cluster["cluster"]["server"] = f"https://127.0.0.1:{port}"
        (stage.home / "kubeconfig").write_text(yaml.safe_dump(config))
        written = yaml.safe_load(spec.read_text())
        for cluster in written["clusters"].values():
            cluster["kubeconfig"] = str(stage.home / "kubeconfig")
        spec = stage.home / "pools.yaml"
        spec.write_text(yaml.safe_dump(written))
        return stage.start("pool", "create", "-f", str(spec), "-o", "json", *words)
    field = {"arm": "arm_url", "aws": "aws_url", "gke": "gke_url"}[place]
    elsewhere = stage.home / "state"
    elsewhere.mkdir()
    for path in Path(stage.info.state_dir).iterdir():
        if path.name != "sandbox.json":
            (elsewhere / path.name).symlink_to(path)
    moved = {**asdict(stage.info), field: f"http://127.0.0.1:{port}"}
    (elsewhere / "sandbox.json").write_text(json.dumps(moved))
    there = replace(stage, info=replace(stage.info, state_dir=str(elsewhere)))
    return there.start("pool", "create", "-f", str(spec), "-o", "json", *words)


def begin(stage: Stage, place: str, fault: Fault, held: ExitStack, *words: str) -> Started:
    """Start a creation that comes to wait for an answer; gives it when it does."""
    if fault == "connect":
        if place == "kube":  # its kubeconfig names a cluster that must be there
            assert stage.run("pool", "plan", "-f", str(SPECS[place]), "--skip-cluster").code == 0
        return start_into(stage, place, held.enter_context(black_hole()), *words)
    parts = {"status": 429, "headers": {"Retry-After": "3600"}} if fault == "retry-after" else {}
    daemon.add_fault(stage.info, "status" if parts else "hang", service=place, times=0, **parts)
    started = stage.start("pool", "create", "-f", str(SPECS[place]), "-o", "json", *words)
    wait_for(lambda: stage.struck() or not started.is_running, lambda: started.said)
    return started


def end(stage: Stage, place: str, fault: Fault, way: Way, minutes: str) -> tuple[Ended, float]:
    """Have a creation meet a fault and end it one way; gives how it ended, and after how many seconds."""
    with ExitStack() as held:
        since = time.monotonic()
        started = begin(stage, place, fault, held, *(("--timeout", minutes) if way == "timeout" else ()))
        if way != "timeout":
            wait_for(lambda: "check: " in started.said or not started.is_running)
            since = time.monotonic()
            with suppress(ProcessLookupError):  # where the client gives up, the run may be over just now
                os.kill(started.pid, signal.Signals[f"SIG{way}"])
        ended = started.wait()
        return ended, time.monotonic() - since


def require_clean_end(stage: Stage, ended: Ended, way: Way) -> None:
    """Its code, a report of every pool, the way to resume, and nothing left behind."""
    report = json.loads(ended.out)
    assert (ended.code, report["exitCode"]) == (CODES[way], CODES[way]), ended.said
    assert [pool["outcome"] for cluster in report["clusters"] for pool in cluster["pools"]] == ["not-attempted"]
    assert "o resume: gpukube --sandbox pool create" in (ended.out if way == "timeout" else ended.err), ended.said
    assert "Traceback" not in ended.said
    require_nothing_left(stage)


ONCE: Final[tuple[tuple[str, Fault, Way], ...]] = (
    ("arm", "retry-after", "timeout"),
    ("aws", "hang", "TERM"),
    ("gke", "connect", "INT"),
    ("kube", "hang", "HUP"),
)


@pytest.mark.turns(2)
@pytest.mark.parametrize(("place", "fault", "way"), ONCE)
def test_create_when_nothing_answers_then_it_ends_in_order(stage: Stage, place: str, fault: Fault, way: Way) -> None:
    ended, _ = end(stage, place, fault, way, "0.03")
    require_clean_end(stage, ended, way)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["timeout", "INT", "TERM"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("place", SPECS)
def test_create_when_nothing_answers_then_it_ends_in_the_time_promised(
    stage: Stage, place: str, fault: Fault, way: Way
) -> None:
    ended, seconds = end(stage, place, fault, way, "0.3")
    print(f"{place} {fault} {way}: exit {ended.code} after {seconds:.1f} s")  # noqa: T201 - the figures
    if (place, fault) in GIVEN_UP and ended.code == 1:
        require_nothing_left(stage)
    else:
        require_clean_end(stage, ended, way)
    assert seconds < LIMIT_S[way]


def hang_in_helm(stage: Stage) -> Started:
    """Start a creation whose Helm waits for the answer to a change."""
    daemon.add_fault(stage.info, "hang", service="kube", method="PATCH", path="/configmaps/", times=0)
    started = stage.start_create()
    wait_for(stage.struck, lambda: started.said)
    return started


def test_create_when_terminated_while_helm_hangs_then_helm_is_given_its_time_and_the_next_run_converges(
    stage: Stage,
) -> None:
    started = hang_in_helm(stage)
    os.kill(started.pid, signal.SIGTERM)
    ended = started.wait()
    assert ended.code == 143, ended.said
    assert "release: stopping: Helm has up to 10 s to finish its change" in ended.err
    assert json.loads(ended.out)["exitCode"] == 143
    require_nothing_left(stage)
    daemon.clear_faults(stage.info)
    again = stage.create()
    assert (again.code, again.devices) == (0, {"nvidia.com/gpu": 56}), again.said
    assert [status for _, _, status in stage.releases()][-1] == "deployed"


def test_create_when_interrupted_twice_then_at_once_and_nothing_is_left(stage: Stage) -> None:
    started = hang_in_helm(stage)
    os.kill(started.pid, signal.SIGINT)
    wait_for(lambda: "Helm has up to 10 s" in started.said)
    os.kill(started.pid, signal.SIGINT)
    ended = started.wait()
    assert (ended.code, "To resume: gpukube --sandbox pool create" in ended.err) == (130, True), ended.said
    require_nothing_left(stage)


def test_create_when_killed_alone_then_helm_ends_by_itself_and_the_next_run_removes_what_is_left(stage: Stage) -> None:
    started = hang_in_helm(stage)
    started.kill(with_children=False)
    wait_for(lambda: not processes_of(stage), lambda: processes_of(stage))
    left = {re.sub(r"-[^-]*$", "", path.name) for path in stage.tmp.iterdir()}
    assert left == {"gpukube-kube", "gpukube-helm", "gpukube-chart"}
    daemon.clear_faults(stage.info)
    assert stage.run("pool", "plan", "-f", str(MIG)).code == 0
    assert list(stage.tmp.iterdir()) == []
