"""Commands with the answers that are expected of them, one after the other.

In scope: running such a list. Out of scope: the lists (test modules), finding the commands (tests/clients).
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from string import Template
from typing import TYPE_CHECKING

from sandbox_tests.kube.clients import run_client

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo

__all__ = ["Referee", "Row", "as_one_line"]

Row = tuple[str, str] | tuple[str, str, int | tuple[int, ...]]
"""A command, the decisive part of what it prints, and its exit code (or codes, of versions) where that is not 0.

A `$name` in the command is one of the referee's names. " ... " in the answer stands for anything, blanks and line ends
count as one blank, and an empty answer means that nothing is printed at all.
"""


@dataclass(slots=True)
class Referee:
    """Runs commands against a sandbox, in the environment that the sandbox gives out.

    Attributes:
        info: The sandbox.
        env: All variables of the commands.
        cwd: Where they run.
        names: What a command may abbreviate, such as "pool" for the options that name one.
    """

    info: SandboxInfo
    env: Mapping[str, str]
    cwd: Path
    names: dict[str, str] = field(default_factory=dict)

    def asks(self, rows: Sequence[Row]) -> None:
        """Run the commands, and insist on the answer of each before the next."""
        for line, answer, *codes in rows:
            expected = codes[0] if codes else 0
            code, printed = self.told(line)
            assert code == expected or (isinstance(expected, tuple) and code in expected), f"{line}\n[{code}] {printed}"
            assert _is_answer(answer, printed), f"{line}\nprinted  {printed}\nexpected {answer}"

    def told(self, line: str) -> tuple[int, str]:
        """Run a command; gives its exit code and what it printed, as one line."""
        words = shlex.split(Template(line).safe_substitute(self.names))
        done = run_client(words, self.env, cwd=self.cwd)
        return done.returncode, as_one_line(done.stdout + done.stderr)


def as_one_line(text: str) -> str:
    """Let each run of blanks and line ends be one blank."""
    return " ".join(text.split())


def _is_answer(expected: str, printed: str) -> bool:
    if not expected:
        return not printed
    parts = (re.escape(as_one_line(part)) for part in expected.split(" ... "))
    return re.search(".*".join(parts), printed) is not None
