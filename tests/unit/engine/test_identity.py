"""Names of runs: whose process is seen to have ended, and whose is left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpukube.engine.run.identity import has_ended, new_identity

CHILD = "from gpukube.engine.run.identity import new_identity; print(new_identity(), flush=True); input()"
on_linux = pytest.mark.skipif(not Path("/proc/self/ns").is_dir(), reason="only Linux tells which process is gone")


def test_names_when_made_twice_then_they_differ_and_this_process_lives() -> None:
    one, other = new_identity(), new_identity()
    assert one != other
    assert (has_ended(one), has_ended(other)) == (False, False)
    assert f"_{os.getpid()}_" in one


@on_linux
def test_process_when_killed_then_ended_even_before_its_parent_knows() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        name = child.stdout.readline().strip()
        assert not has_ended(name)
        child.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert has_ended(name)  # a zombie
    assert has_ended(name)


@on_linux
def test_process_when_its_id_was_given_to_another_then_ended() -> None:
    host, pid, place, start, last = new_identity().rsplit("_", 4)
    assert has_ended(f"{host}_{pid}_{place}_{int(start) + 1}_{last}")


def without_place(identity: str, place: str) -> str:
    host, _, _, start, last = identity.rsplit("_", 4)
    return f"{host}_{2**22 + 1}_{place}_{start}_{last}"


@pytest.mark.parametrize("place", ["", "0123456789ab"])
def test_process_when_it_is_of_another_machine_or_namespace_then_not_known_to_have_ended(place: str) -> None:
    assert not has_ended(without_place(new_identity(), place))


@pytest.mark.parametrize("name", ["", "host", "host_1", "a_b_c_d_e", "host_-1_ab_1_ab", "host_0_ab_1_ab", "n_uuid"])
def test_name_when_not_ours_then_not_known_to_have_ended(name: str) -> None:
    assert not has_ended(name)


@on_linux
def test_process_when_it_is_of_another_user_then_it_lives() -> None:
    host, _, place, _, last = new_identity().rsplit("_", 4)
    started = Path("/proc/1/stat").read_text().rpartition(")")[2].split()[19]
    assert not has_ended(f"{host}_1_{place}_{started}_{last}")
