"""Starts gpukube processes in a moment: everything is imported once, then each process is a fork of this one.

Run as a script. One JSON object per line comes in on standard input: `{"argv", "env", "cwd", "out", "err"}`. The
process id goes out at once, `{"pid"}`, and `{"pid", "code"}` when the process has ended (negative: a signal). What a
fork runs is `gpukube.__main__.main`, in a session of its own and with nothing but the environment given.

Commands import what they need when they run: what a fork had to import, this process imports after it, so that no
other fork has to.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import select
import signal
import sys
from contextlib import redirect_stdout, suppress
from pathlib import Path

import gpukube.cli.app
import gpukube.cli.bodies.pool
import gpukube.cli.progress
import gpukube.cli.sandbox
import gpukube.guard
import gpukube_aks.live.client
import gpukube_eks.live.client
import gpukube_gke.live.client
import gpukube_sandbox.daemon
from gpukube.__main__ import main
from gpukube.cluster.kube.lightkube_types import prepare_types
from gpukube.core.values import Settings
from gpukube_eks.live.access import AwsClients, Identity

EXAMPLE = Path(__file__).parents[2] / "examples" / "three-clouds.yaml"
LOADED = (
    gpukube.cli.progress,
    gpukube.cli.bodies.pool,
    gpukube.cli.sandbox,
    gpukube_sandbox.daemon,
    gpukube.guard,
    gpukube_aks.live.client,
    gpukube_eks.live.client,
    gpukube_gke.live.client,
)


def become(order: dict[str, object]) -> None:
    """Be a gpukube process; does not return."""
    code = 70
    known = set(sys.modules)
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        argv, environ = order["argv"], order["env"]
        assert isinstance(argv, list)
        assert isinstance(environ, dict)
        os.environ.clear()
        os.environ.update(environ)
        os.chdir(str(order["cwd"]))
        for number, path in ((1, order["out"]), (2, order["err"])):
            handle = os.open(str(path), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(handle, number)
            os.close(handle)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        sys.argv = ["gpukube", *argv]
        if interval := os.environ.pop("TEST_SWITCH_INTERVAL", ""):
            sys.setswitchinterval(float(interval))
        code = main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        learnt = [name for name in sys.modules if name not in known]
        if learnt:
            imported(order).write_text("\n".join(learnt))
        os._exit(code)


def imported(order: dict[str, object]) -> Path:
    """Where a fork that ends by itself leaves the names of the modules that it had to import."""
    return Path(f"{order['out']}.modules")


def learn(order: dict[str, object]) -> None:
    """Import what a fork had to."""
    path = imported(order)
    if path.exists():
        for name in path.read_text().splitlines():
            with suppress(ImportError):
                importlib.import_module(name)
        path.unlink()


def tell(answer: dict[str, int]) -> None:
    """Write one line."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def warm() -> None:
    """Build once what every fork would build for itself: the commands, the models of a spec, the clients' types."""
    list(gpukube.cli.app.command_line().commands.values())
    with redirect_stdout(io.StringIO()):
        assert main(["validate", "-f", str(EXAMPLE)]) == 0
    prepare_types()
    aws = AwsClients(Identity(dummy="111122223333"), "us-east-1", "http://127.0.0.1:1", Settings())
    _ = aws.eks, aws.ec2, aws.sts, aws.iam  # made, and with them their models read; nothing is called


def serve() -> None:
    """Fork on demand and report ends, until standard input is closed."""
    warm()
    ended, ending = os.pipe()
    os.set_blocking(ending, False)
    signal.set_wakeup_fd(ending)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # the wake-up alone: with a handler the signal is not ignored
    running: dict[int, dict[str, object]] = {}
    while True:
        readable, _, _ = select.select([sys.stdin, ended], [], [])
        if ended in readable:
            os.read(ended, 4096)
        if sys.stdin in readable:
            line = sys.stdin.readline()
            if not line:
                return
            order = json.loads(line)
            pid = os.fork()
            if pid == 0:
                become(order)
            running[pid] = order
            tell({"pid": pid})
        for pid in list(running):
            gone, status = os.waitpid(pid, os.WNOHANG)
            if gone:
                tell({"pid": pid, "code": os.waitstatus_to_exitcode(status)})
                learn(running.pop(pid))


if __name__ == "__main__":
    serve()
