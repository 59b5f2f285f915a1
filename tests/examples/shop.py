"""A machine of a CI platform, as steps see it: bash, gpukube, gh, pip, and directories of its own.

In scope: running a step's text, the commands on its PATH. Out of scope: what a platform makes of its files
(github_actions, test_ci_gitlab, test_ci_azure_pipelines).

gpukube here is a fork of one process that has imported everything (tests/chaos/forge.py): a pipeline calls it thirty
times. Everything else about the process is real: arguments, environment, streams, exit code.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.chaos.stage import Forge

ROOT = Path(__file__).parents[2]
CI = ROOT / "examples" / "ci"
FAKE_GH = Path(__file__).with_name("fake_gh.py")
LONGEST_S = 120.0

_GPUKUBE = """#!/usr/bin/env bash
order=$(mktemp -d {orders}/XXXXXX)
printf '%s\\0' "$PWD" "$@" > "$order/words"
env -0 > "$order/environment"
mkfifo "$order/code"
echo "$order" > {orders}/queue
read -r code < "$order/code"
cat "$order/out"
cat "$order/err" >&2
exit "$code"
"""
# `python -m venv` and `pip install` of the action: gpukube is there, so they only say what they were asked for.
_PYTHON = """#!/usr/bin/env bash
case "$*" in
  "-I -m venv "*)
    mkdir -p "$4/bin"
    ln -s {tools}/gpukube "$4/bin/gpukube"
    ln -s {tools}/python "$4/bin/python"
    ;;
  "-I -m pip install "*) echo "$*" >> {tools}/pip.log ;;
  *) exec {python} -S "$@" ;;
esac
"""
_PIP = '#!/usr/bin/env bash\necho "$*" >> {tools}/pip.log\n'
_GH = '#!/usr/bin/env bash\nexec {python} -I -S {gh} {tools}/github.json "$@"\n'


@dataclass(frozen=True)
class Ended:
    """How a step's text ended, and the log: both streams, as platforms show them."""

    code: int
    log: str


class Shop:
    """The machine.

    Args:
        forge: Starts gpukube.
        directory: Empty; all is in it.
        environ: Variables of every step.
    """

    def __init__(self, forge: Forge, directory: Path, environ: Mapping[str, str]) -> None:
        self.directory = directory
        self.tools = directory / "tools"
        self.tools.mkdir()
        self._forge = forge
        self._groups: list[int] = []
        self._orders = directory / "orders"
        self._orders.mkdir()
        os.mkfifo(self._orders / "queue")
        self.environ = {"PATH": f"{self.tools}:{os.defpath}:/usr/local/bin", "HOME": str(directory), **environ}
        commands = {"gpukube": _GPUKUBE, "python": _PYTHON, "pip": _PIP, "gh": _GH}
        places = {"tools": self.tools, "orders": self._orders, "python": sys.executable, "gh": FAKE_GH}
        quoted = {name: shlex.quote(str(place)) for name, place in places.items()}
        for name, text in commands.items():
            (self.tools / name).write_text(text.format(**quoted))
            (self.tools / name).chmod(0o755)
        # Opened for both: a queue that nobody writes to at the moment has not ended.
        self._queue = os.fdopen(os.open(self._orders / "queue", os.O_RDWR), "r")
        self._server = threading.Thread(target=self._serve, daemon=True)
        self._server.start()

    def close(self) -> None:
        """End what steps have left running, as runners do, and take no more orders."""
        for group in self._groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        (self._orders / "queue").write_text("\n")
        self._server.join(LONGEST_S)
        self._queue.close()

    def run(self, text: str, shell: Sequence[str], environ: Mapping[str, str], cwd: Path) -> Ended:
        """Run a step's text, from a file as platforms do."""
        script = self.directory / "step.sh"
        script.write_text(text)
        process = subprocess.Popen(
            [*shell, str(script)],
            env={**self.environ, **environ},
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._groups.append(process.pid)
        log, _ = process.communicate(timeout=LONGEST_S)
        return Ended(process.returncode, log)

    @property
    def installed(self) -> list[str]:
        """What pip was asked for, line by line."""
        log = self.tools / "pip.log"
        return log.read_text().splitlines() if log.exists() else []

    @property
    def github(self) -> dict[str, list[dict[str, object]]]:
        """Issues and comments as the fake gh holds them."""
        read: dict[str, list[dict[str, object]]] = json.loads((self.tools / "github.json").read_text())
        return read

    def _serve(self) -> None:
        for line in self._queue:
            if line == "\n":
                return
            order = Path(line.strip())
            cwd, *words = (order / "words").read_text().split("\0")[:-1]
            environ = dict(pair.split("=", 1) for pair in (order / "environment").read_text().split("\0")[:-1])
            pid = self._forge.start(words, environ, order / "out", order / "err", cwd=cwd)
            ended = self._forge.wait_for_end(pid)
            (order / "code").write_text(f"{self._forge.codes[pid] if ended else 70}\n")
