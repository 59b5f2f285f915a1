"""The processes of the embedded Helm: used again within a run, one request at a time, and gone after it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.helm import servers
from gpukube.cluster.helm.embedded import HelmSdk
from gpukube.cluster.process.child import Server
from gpukube.errors import HelmError
from sandbox_tests.waiting import PATIENCE_S, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("helm_python", reason="the embedded Helm is not installed (gpukube[helm])")
VERSION = json.dumps({"verb": "version", "deadline_s": PATIENCE_S})


@pytest.fixture(autouse=True)
def own_processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Set aside what other tests share; give the ids of the processes that are started."""
    started: list[int] = []
    start = servers._start

    def noted(environ: dict[str, str]) -> servers._Process:
        process = start(environ)
        started.append(process.server._child.pid)
        return process

    monkeypatch.setattr(servers, "_idle", {})
    monkeypatch.setattr(servers, "_open_blocks", 0)
    monkeypatch.setattr(servers, "_start", noted)
    yield started
    assert servers._idle == {}


def ask(environ: dict[str, str] | None = None) -> str:
    return servers.request_helm(environ or {}, VERSION, deadline_s=PATIENCE_S)


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_ask_when_a_run_keeps_its_processes_then_one_answers_all_and_ends_with_the_run(
    own_processes: list[int],
) -> None:
    with servers.kept():
        with servers.kept():
            assert json.loads(ask())["helm"] == json.loads(ask())["helm"]
        ask()
        (pid,) = own_processes
        (process,) = next(iter(servers._idle.values()))
        assert is_running(pid)
    assert not is_running(pid)
    assert not process.directory.path.exists()


def test_ask_when_nobody_keeps_then_the_process_ends_with_the_answer(own_processes: list[int]) -> None:
    ask()
    assert not is_running(own_processes[0])


def test_ask_when_the_environment_is_another_then_another_process(own_processes: list[int]) -> None:
    with servers.kept():
        ask({"HTTPS_PROXY": "http://proxy.example.com"})
        ask({})
        assert len(own_processes) == 2


def test_ask_when_two_threads_ask_then_each_has_a_process(
    own_processes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(2)
    sent = Server.send

    def both_at_once(server: Server, request: str, *, deadline_s: float, **rest: object) -> str:
        together.wait(PATIENCE_S)
        return sent(server, request, deadline_s=deadline_s)

    monkeypatch.setattr(Server, "send", both_at_once)
    with servers.kept(), ThreadPoolExecutor(2) as threads:
        assert len(set(threads.map(lambda _: ask(), range(2)))) == 1
        assert len(set(own_processes)) == 2


def test_ask_when_the_process_was_killed_meanwhile_then_another_answers(own_processes: list[int]) -> None:
    with servers.kept():
        ask()
        os.killpg(own_processes[0], signal.SIGKILL)
        (process,) = next(iter(servers._idle.values()))
        wait_for(lambda: not process.server.is_running)
        assert json.loads(ask())["helm"]
        assert len(own_processes) == 2


def test_version_when_the_process_cannot_work_then_a_crash_with_what_it_wrote(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(HelmSdk, "_version", "")
    monkeypatch.setattr(servers, "__file__", str(tmp_path / "servers.py"))
    (tmp_path / "child.py").write_text("raise SystemExit('no library')")
    with pytest.raises(HelmError) as caught:
        HelmSdk({}).version()
    (found,) = caught.value.diagnostics
    assert (found.code, found.seen, found.why) == ("helm-crash", "the embedded Helm ended with code 1", "no library")


def test_ask_when_it_gets_an_open_file_then_its_lock_is_held_until_the_answer(tmp_path: Path) -> None:
    with servers.kept():
        handle = os.open(tmp_path / "mark", os.O_RDWR | os.O_CREAT)
        fcntl.flock(handle, fcntl.LOCK_EX)
        servers.request_helm({}, VERSION, deadline_s=PATIENCE_S, keeps=(handle,))
        os.close(handle)
        again = os.open(tmp_path / "mark", os.O_RDWR)
        fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused if the process still held it
        os.close(again)
