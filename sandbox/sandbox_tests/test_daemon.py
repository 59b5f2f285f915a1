"""The background process from outside: started once, found, stopped, killed and started again."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from gpukube_sandbox import daemon
from gpukube_sandbox.environment import env
from gpukube_sandbox.state import CLIENT_FILES, hold_life_lock, is_running
from gpukube_sandbox.tls import make_tls
from sandbox_tests.sandboxes import signed
from sandbox_tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.daemon import SandboxInfo

ROOT = Path(__file__).parents[1]


@pytest.fixture
def state_dir(tmp_path: Path) -> Iterator[Path]:
    """A directory whose sandbox is stopped at the end."""
    directory = tmp_path / "state" / "sandbox"
    yield directory
    daemon.down(directory)


def left_in(state_dir: Path) -> set[str]:
    """Name what is in a state directory besides the log and the locks."""
    return {path.name for path in state_dir.iterdir()} - {daemon.LOG_FILE, "daemon.lock", "starting.lock"}


def start_in_process(state_dir: Path) -> subprocess.Popen[str]:
    """Call `up` in a process of its own, as two terminals would."""
    code = "import sys, pathlib; from gpukube_sandbox import daemon; print(daemon.up(pathlib.Path(sys.argv[1]), 9).pid)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, str(state_dir)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def test_up_when_called_twice_then_one_process_and_the_same_answer(state_dir: Path) -> None:
    first = daemon.up(state_dir, 50)
    assert daemon.up(state_dir, 99) == first == daemon.load_info(state_dir)
    status = daemon.status(first)
    assert (status["pid"], status["speed"], status["clusters"]) == (first.pid, 50.0, [])


def test_up_when_two_start_at_once_then_one_process(state_dir: Path) -> None:
    starters = [start_in_process(state_dir) for _ in range(3)]
    pids = {starter.communicate()[0].strip() for starter in starters}
    info = daemon.load_info(state_dir)
    assert info is not None
    assert pids == {str(info.pid)}


def test_up_when_many_threads_start_at_once_then_one_process(state_dir: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: daemon.up(state_dir, 9).pid, range(4)))
    assert len(set(found)) == 1


def test_up_when_the_old_process_is_just_ending_then_a_new_one(state_dir: Path) -> None:
    state_dir.mkdir(parents=True)
    ending = hold_life_lock(state_dir)
    assert ending is not None
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(daemon.up, state_dir, 9)
        time.sleep(0.2)  # a slow machine looks later, and finds none
        os.close(ending)
        assert daemon.status(started.result())["pid"] == started.result().pid


def test_up_when_the_process_was_killed_then_a_new_one_with_nothing_in_it(state_dir: Path) -> None:
    first = daemon.up(state_dir, 9)
    daemon.add_cluster(first, "11111111-2222-3333-4444-555555555555", "ml", "train")
    os.kill(first.pid, signal.SIGKILL)
    wait_for(lambda: not is_running(state_dir))
    assert left_in(state_dir) == {"sandbox.json", "clusters", "ca.pem", "server.pem", "server.key"}  # not believed
    assert daemon.load_info(state_dir) is None
    assert not daemon.down(state_dir)
    assert left_in(state_dir) == set()
    second = daemon.up(state_dir, 9)
    assert (second.pid != first.pid, second.sandbox_id != first.sandbox_id) == (True, True)
    assert daemon.status(second)["clusters"] == []


@pytest.mark.turns(4)
@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}'])
def test_up_when_the_state_file_is_broken_then_replaced(state_dir: Path, content: str) -> None:
    state_dir.mkdir(parents=True)
    (state_dir / "sandbox.json").write_text(content)
    assert daemon.load_info(state_dir) is None
    assert daemon.load_info(state_dir) != daemon.up(state_dir, 9)


def test_up_when_the_process_cannot_start_then_the_log_is_in_the_message(state_dir: Path) -> None:
    with pytest.raises(daemon.SandboxError, match=r"speed is -1\.0"):
        daemon.up(state_dir, -1)
    assert not is_running(state_dir)


def test_down_when_running_then_gone_with_its_file_and_again_nothing_to_do(state_dir: Path) -> None:
    info = daemon.up(state_dir, 9)
    env(info)
    assert daemon.down(state_dir)
    assert left_in(state_dir) == set()
    with pytest.raises(daemon.SandboxError):
        daemon.status(info)
    assert not daemon.down(state_dir)
    assert not daemon.down(state_dir / "never")


def test_stop_when_asked_over_the_control_api_then_it_ends_cleanly(state_dir: Path) -> None:
    info = daemon.up(state_dir, 9)
    daemon.call(info, "POST", "stop")
    wait_for(lambda: not is_running(state_dir))
    assert daemon.load_info(state_dir) is None
    assert "Traceback" not in (state_dir / daemon.LOG_FILE).read_text()


def test_idle_timeout_when_nobody_calls_then_it_ends_by_itself_without_leaving_keys(state_dir: Path) -> None:
    info = daemon.up(state_dir, 9, idle_timeout_s=0.3)
    assert info.idle_timeout_s == 0.3
    daemon.add_gke_cluster(info, "demo-proj", "us-central1-a", "train")  # its credentials are written then
    assert (state_dir / CLIENT_FILES / "google" / "credentials.json").exists()
    wait_for(lambda: not is_running(state_dir))
    assert left_in(state_dir) == set()


def test_idle_timeout_when_the_first_call_is_late_then_it_is_waited_for(state_dir: Path) -> None:
    state_dir.mkdir(parents=True)
    command = [sys.executable, "-m", "gpukube_sandbox", "serve", "--state-dir", str(state_dir), "--idle-timeout", "0.1"]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}) as process:
        info = wait_for(lambda: daemon.load_info(state_dir))
        assert info is not None
        time.sleep(0.5)
        daemon.status(info)
        assert process.wait(120) == 0


def test_files_when_it_runs_then_only_the_owner_may_read_them(state_dir: Path) -> None:
    info = daemon.up(state_dir, 9)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in state_dir.iterdir()}
    assert set(modes.values()) == {0o600}
    assert {"sandbox.json", "ca.pem", "server.key", "sandbox.log"} <= set(modes)
    assert stat.S_IMODE(state_dir.stat().st_mode) == 0o700
    assert info.control_token not in repr(info)
    assert info.control_token not in (state_dir / daemon.LOG_FILE).read_text()


def test_ports_when_it_listens_then_on_loopback_only(state_dir: Path) -> None:
    info = daemon.up(state_dir, 9)
    listening = Path(f"/proc/{info.pid}/net/tcp")
    if not listening.exists():
        pytest.skip("no /proc here")
    inodes = set()
    for path in Path(f"/proc/{info.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a connection that ends meanwhile
            inodes.add(str(path.readlink())[8:-1])
    rows = [line.split() for line in listening.read_text().splitlines()[1:]]
    own = [row[1] for row in rows if row[3] == "0A" and row[9] in inodes]
    assert len(own) >= 5
    assert {address.partition(":")[0] for address in own} == {"0100007F"}


def test_control_when_the_token_is_wrong_then_401(sandbox: SandboxInfo) -> None:
    for headers in ({}, {"Authorization": "Bearer nonsense"}):
        answer = httpx.get(f"{sandbox.control_url}/status", headers=headers, trust_env=False, timeout=60)
        assert (answer.status_code, list(answer.json())) == (401, ["error"])


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "10.0.0.1", "127.0.0.1.evil.example", "[::2]"])
def test_ports_when_a_request_names_another_host_then_421(sandbox: SandboxInfo, host: str) -> None:
    ports = (sandbox.arm_url, sandbox.arm_tls_url, sandbox.kube_url, sandbox.aws_url, sandbox.gke_url)
    with httpx.Client(trust_env=False, verify=False, headers={"Host": host}, timeout=60) as client:  # noqa: S501 - loopback
        assert {client.get(port).status_code for port in (*ports, f"{sandbox.control_url}/status")} == {421}


@pytest.mark.parametrize("host", ["localhost", "localhost:80", "127.0.0.1", "[::1]:80"])
def test_ports_when_a_request_names_this_machine_then_answered(sandbox: SandboxInfo, host: str) -> None:
    sent = {"Host": host, **signed(sandbox)}
    assert httpx.get(f"{sandbox.arm_url}/tenants", headers=sent, trust_env=False, timeout=60).status_code == 400


@pytest.mark.parametrize(
    ("path", "body", "text"),
    [
        ("clusters", {"provider": "oke", "name": "x"}, "provider is oke; there are aks, eks, gke"),
        ("clusters", {"provider": "aks", "name": "x"}, "subscription is missing"),
        ("clusters", {"provider": "aks", "region": "x"}, 'there is no key "region"; there are kubernetesVersion,'),
        ("settings", {"speed": 0}, "above 0"),
        ("settings", {"limits": {"none": [1, 1]}}, "no limit 'none'"),
        ("settings", {"pace": {"none": 1}}, "no pace 'none'"),
        ("tamper", {"cluster": "none", "pool": "x"}, "0 clusters"),
    ],
)
def test_control_when_a_call_is_wrong_then_400_says_why(
    sandbox: SandboxInfo, path: str, body: dict[str, object], text: str
) -> None:
    with pytest.raises(daemon.SandboxError, match=text):
        daemon.call(sandbox, "POST", path, body)


def test_call_when_nobody_listens_then_sandbox_error(state_dir: Path) -> None:
    info = daemon.up(state_dir, 9)
    daemon.down(state_dir)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # nobody else is given the port
        gone = replace(info, control_url=f"http://127.0.0.1:{silent.getsockname()[1]}/_sandbox")
        with pytest.raises(daemon.SandboxError, match="does not answer"):
            daemon.status(gone)


def test_reset_when_called_then_clusters_faults_and_log_are_gone(sandbox: SandboxInfo) -> None:
    made = daemon.add_cluster(sandbox, "11111111-2222-3333-4444-555555555555", "ml", "train")
    again = daemon.add_cluster(sandbox, "11111111-2222-3333-4444-555555555555", "ML", "Train")
    assert (made["created"], again["created"], made["id"]) == (True, False, again["id"])
    daemon.add_fault(sandbox, "status")
    httpx.get(f"{sandbox.arm_url}/subscriptions", headers=signed(sandbox), trust_env=False, timeout=60)
    daemon.reset(sandbox)
    status = daemon.status(sandbox)
    assert (status["clusters"], status["faults"], status["requests"]) == ([], 0, {"total": 0})


def test_speed_when_changed_then_who_waits_wakes_by_the_new_one(sandbox: SandboxInfo) -> None:
    daemon.add_cluster(sandbox, "11111111-2222-3333-4444-555555555555", "ml", "train")
    daemon.configure(sandbox, speed=0.001)
    path = "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/ml/providers"
    address = f"{sandbox.arm_url}{path}/Microsoft.ContainerService/managedClusters/train/agentPools/gpu1"
    query = {"api-version": "2026-08-01"}
    body = {"properties": {"count": 1, "vmSize": "Standard_NC4as_T4_v3"}}
    with httpx.Client(trust_env=False, params=query, headers=signed(sandbox), timeout=60) as client:
        client.put(address, json=body).raise_for_status()
        daemon.configure(sandbox, speed=100_000)
        wait_for(lambda: client.get(address).json()["properties"]["provisioningState"] == "Succeeded")


def test_certificates_when_made_then_private_and_new_each_time(tmp_path: Path) -> None:
    first = make_tls(tmp_path).ca.read_bytes()
    files = make_tls(tmp_path)
    assert files.ca.read_bytes() != first
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_state_file_when_read_as_json_then_has_what_others_need(state_dir: Path) -> None:
    info = daemon.up(state_dir, 9)
    document = json.loads((state_dir / "sandbox.json").read_text())
    assert (document["pid"], document["arm_url"], document["speed"]) == (info.pid, info.arm_url, 9.0)
