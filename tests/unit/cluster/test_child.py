"""Children with a deadline."""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.process import child as child_module
from gpukube.cluster.process.child import DeadlinePassed, Ended, Server, ServerEnded, Stop, kill_all, run_child
from sandbox_tests.waiting import PATIENCE_S, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


ENDLESS = python("import time; time.sleep(60)")
"""It ends well, long before the deadlines that are not meant to pass."""
LONG_S = 2 * PATIENCE_S


def test_run_when_it_ends_then_code_and_both_outputs() -> None:
    code = "import sys; print(sys.stdin.read().upper()); print('oh', file=sys.stderr); sys.exit(3)"
    ended = run_child(python(code), stdin="abc", environ={}, deadline_s=LONG_S)
    assert (ended.code, ended.out.strip(), ended.err.strip()) == (3, "ABC", "oh")


def test_run_when_it_has_an_environment_then_only_that() -> None:
    code = "import os; print('PATH' in os.environ, os.environ['A'])"
    assert run_child(python(code), stdin="", environ={"A": "b"}, deadline_s=LONG_S).out.split() == ["False", "b"]


def test_run_when_the_output_is_no_text_then_read_all_the_same() -> None:
    code = "import os; os.write(1, bytes([0xff, 0x41]))"
    assert run_child(python(code), stdin="", environ={}, deadline_s=LONG_S).out.endswith("A")


def is_readable(end: int) -> bool:
    return bool(select.select([end], [], [], 0)[0])


def test_run_when_its_time_is_up_then_the_whole_group_is_ended() -> None:
    ours, theirs = os.pipe()
    grandchild = f"import os, time; os.write({theirs}, b'up'); time.sleep(1000)"
    started = f"[sys.executable, '-c', {grandchild!r}], pass_fds=[{theirs}]"
    code = f"import subprocess, sys, time; subprocess.Popen({started}); time.sleep(1000)"
    stop = Stop(lambda: is_readable(ours), 0.0)  # as soon as all are up
    with pytest.raises(DeadlinePassed):
        run_child(python(code), stdin="", environ={}, deadline_s=LONG_S, keeps=[theirs], stop=stop)
    os.close(theirs)
    assert os.read(ours, 9) == b"up"
    wait_for(lambda: is_readable(ours), lambda: "somebody still holds the other end")
    assert os.read(ours, 9) == b""
    os.close(ours)


def test_run_when_it_does_not_listen_to_sigterm_then_killed(tmp_path: Path) -> None:
    up = tmp_path / "up"
    code = (
        f"import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); open({str(up)!r}, 'w'); time.sleep(1000)"
    )
    with pytest.raises(DeadlinePassed):
        run_child(python(code), stdin="", environ={}, deadline_s=LONG_S, stop=Stop(up.exists, 0.0))


def test_run_when_the_program_is_missing_then_oserror() -> None:
    with pytest.raises(OSError, match="no-such-program"):
        run_child(["/no-such-program"], stdin="", environ={}, deadline_s=5)


def test_run_when_asked_to_stop_then_ended_after_the_grace() -> None:
    with pytest.raises(DeadlinePassed):
        run_child(ENDLESS, stdin="", environ={}, deadline_s=LONG_S, stop=Stop(lambda: True, 0.2))


def test_run_when_asked_to_stop_and_it_ends_in_time_then_its_answer() -> None:
    code = "import sys, time; said = sys.stdin.read(); time.sleep(0.5); print(said)"
    ended = run_child(python(code), stdin="x" * 200_000, environ={}, deadline_s=LONG_S, stop=Stop(lambda: True, LONG_S))
    assert (ended.code, len(ended.out.strip())) == (0, 200_000)


def test_run_when_nobody_asks_to_stop_then_the_deadline_counts() -> None:
    with pytest.raises(DeadlinePassed):
        run_child(ENDLESS, stdin="", environ={}, deadline_s=0.5, stop=Stop(lambda: False, 0))


ORPHANED = """
import os, sys
from gpukube.cluster.process.child import run_child
code = "import os, subprocess, sys; subprocess.Popen([sys.executable, '-c', %r], pass_fds=[%d]); %s" % (
    sys.argv[2], int(sys.argv[1]), sys.argv[2])
run_child([sys.executable, "-c", code], stdin="", environ={}, deadline_s=1000, keeps=[int(sys.argv[1])])
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_run_when_a_signal_ends_it_then_that_is_its_code(number: signal.Signals) -> None:
    code = f"import os; os.kill(os.getpid(), {number.value})"  # the kernel's, when memory is short: SIGKILL
    assert run_child(python(code), stdin="", environ={}, deadline_s=LONG_S).code == -number


def killpg_of_macos(group: int, number: int) -> None:
    """Send a signal as macOS does: for a group whose last process has ended and is not waited for, it is EPERM."""
    if os.waitid(os.P_PID, group, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
    os.kill(-group, number)


def test_run_when_macos_refuses_a_signal_to_what_has_ended_then_it_counts_as_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "killpg", killpg_of_macos)
    with subprocess.Popen(python(""), start_new_session=True, text=True) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        with pytest.raises(PermissionError):
            os.killpg(ended.pid, signal.SIGTERM)
        child_module._kill(ended)
    with pytest.raises(DeadlinePassed):
        run_child(ENDLESS, stdin="", environ={}, deadline_s=0.1)


def test_run_when_its_starter_is_killed_then_it_ends_by_itself_with_what_it_started() -> None:
    ours, theirs = os.pipe()
    holds = f"import os, time; os.write({theirs}, b'u'); time.sleep(1000)"
    starter = subprocess.Popen([sys.executable, "-c", ORPHANED, str(theirs), holds], pass_fds=[theirs])
    os.close(theirs)
    assert os.read(ours, 1) + os.read(ours, 1) == b"uu"  # the child and its own child are up
    starter.kill()
    starter.wait()
    wait_for(lambda: is_readable(ours), lambda: "somebody still holds the other end")
    assert os.read(ours, 9) == b""
    os.close(ours)


def test_run_when_the_program_cannot_be_executed_then_its_code_and_why(tmp_path: Path) -> None:
    script = tmp_path / "helm"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o700)
    ended = run_child([str(script)], stdin="", environ={}, deadline_s=LONG_S)
    assert (ended.code, ended.err) == (127, f"{script}: No such file or directory\n")


def test_kill_all_when_a_child_runs_then_it_is_killed_at_once() -> None:
    ended: list[Ended] = []

    def run() -> None:
        ended.append(run_child(ENDLESS, stdin="", environ={}, deadline_s=LONG_S))

    thread = threading.Thread(target=run)
    thread.start()

    def is_gone() -> bool:
        kill_all()  # does nothing as long as the child is not up
        return not thread.is_alive()

    wait_for(is_gone)
    assert ended[0].code == -signal.SIGKILL


# A child that serves


SERVES = """
import os, socket, sys, time
channel = socket.socket(fileno=0)
lines = channel.makefile("rw", encoding="utf-8")
for line in lines:
    word = line.strip()
    if word == "hang":
        time.sleep(1000)
    if word == "crash":
        os.write(2, b"no memory")
        os._exit(3)
    lines.write(f"{os.getpid()} {len(word)}" + chr(10))
    lines.flush()
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(python(SERVES), {}, tmp_path / "log")
    yield made
    made.end()


def test_server_when_it_is_asked_twice_then_the_same_process_answers(server: Server) -> None:
    first, second = (server.send("x" * count, deadline_s=LONG_S).split() for count in (5, 3_000_000))
    assert first[0] == second[0]
    assert (first[1], second[1]) == ("5", "3000000")
    assert server.is_running
    server.end()
    server.end()
    stat = Path(f"/proc/{first[0]}/stat")
    wait_for(lambda: not stat.exists() or ") Z " in stat.read_text())


def test_server_when_its_time_is_up_then_it_is_ended(server: Server) -> None:
    with pytest.raises(DeadlinePassed):
        server.send("hang", deadline_s=0.2)
    assert not server.is_running


def test_server_when_asked_to_stop_then_ended_after_the_grace(server: Server) -> None:
    with pytest.raises(DeadlinePassed):
        server.send("hang", deadline_s=LONG_S, stop=Stop(lambda: True, 0.2))


def test_server_when_it_crashes_then_its_code_and_what_it_wrote(server: Server, tmp_path: Path) -> None:
    with pytest.raises(ServerEnded) as caught:
        server.send("crash", deadline_s=LONG_S)
    assert (caught.value.args, (tmp_path / "log").read_text()) == ((3,), "no memory")
