"""Running clients written in Go, kubectl and helm, on a machine that may stand still for a while."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from sandbox_tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_STOOD_STILL = "TLS handshake timeout"
"""What they say when the machine stood still for the ten seconds that Go gives a handshake; nothing was sent then."""


def run_client(
    command: Sequence[str], env: Mapping[str, str] | None = None, stdin: str | None = None, *, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, good or bad; from the start again where it got no connection."""
    tried: list[subprocess.CompletedProcess[str]] = []

    def has_connected() -> bool:
        tried[:] = [
            subprocess.run(
                command, capture_output=True, text=True, timeout=120, check=False, env=env, input=stdin, cwd=cwd
            )
        ]
        return _STOOD_STILL not in tried[0].stderr + tried[0].stdout

    wait_for(has_connected, lambda: tried[0].stderr)
    return tried[0]
