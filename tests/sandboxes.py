"""The one sandbox of a worker, as a test or a module takes it over.

Lives here: emptying it. Must not live here: fixtures (conftest), and what is made in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.sandbox import daemon

if TYPE_CHECKING:
    from gpukube.sandbox.daemon import SandboxInfo


def emptied(info: SandboxInfo, speed: float) -> SandboxInfo:
    """Wipe everything that other tests have left, and let time go on at a speed."""
    daemon.reset(info)
    daemon.configure(info, speed=speed)
    return info
