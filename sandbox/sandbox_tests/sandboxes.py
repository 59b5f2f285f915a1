"""The one sandbox of a worker, as a test or a module takes it over.

In scope: emptying it, and putting back what an earlier test has made there. Out of scope: fixtures (conftest),
and what is made in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from gpukube_sandbox import daemon

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube_sandbox.daemon import SandboxInfo

Made = TypeVar("Made")


def emptied(info: SandboxInfo, speed: float) -> SandboxInfo:
    """Wipe everything that other tests have left, and let time go on at a speed."""
    daemon.reset(info)
    daemon.configure(info, speed=speed)
    return info


def signed(info: SandboxInfo) -> dict[str, str]:
    """Headers of a request that the emulated ARM and GKE take."""
    return {"Authorization": f"Bearer {info.secret}"}


def made_once(info: SandboxInfo, what: str, make: Callable[[], Made], known: dict[str, Made]) -> Made:
    """Bring a fresh sandbox to a state: put it back if an earlier test has made it, from the same beginnings.

    Args:
        info: The sandbox; where it has answered requests already, the state is made anew.
        what: All that the state depends on, but for what the control API has been told.
        make: Makes it, and insists that this went well.
        known: What `make` gave each time.
    """
    loaded, name = daemon.load(info, what)
    if loaded:
        return known[name]
    made = make()
    if name and daemon.save(info, name):
        known[name] = made
    return made
