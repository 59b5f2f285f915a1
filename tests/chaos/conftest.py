"""One forge per session, one empty stage per test, and what an undisturbed run looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from sandbox_tests.sandboxes import emptied
from tests.chaos.boundaries import Undisturbed, first_looks
from tests.chaos.stage import HELM_AGENT, Forge, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.daemon import SandboxInfo

SPEED = 5000.0


@pytest.fixture(scope="session")
def forge() -> Iterator[Forge]:
    """Start the process that all gpukube processes are forks of."""
    made = Forge()
    yield made
    made.close()


@pytest.fixture
def stage(running_sandbox: SandboxInfo, forge: Forge, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Return the test an empty sandbox and directories of its own."""
    emptied(running_sandbox, SPEED)
    with Stage(running_sandbox, forge, tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("tmp")) as made:
        yield made


@pytest.fixture(scope="session")
def undisturbed(running_sandbox: SandboxInfo, forge: Forge, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """Record one undisturbed run."""
    emptied(running_sandbox, SPEED)
    with Stage(running_sandbox, forge, tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("tmp")) as stage:
        ended = stage.create()
        assert ended.code == 0, ended.said
        requests = daemon.requests_since(running_sandbox)
        objects = stage.objects()
    arm = [(str(r["method"]), str(r["path"])) for r in requests if r["service"] == "arm"]
    kube = [r for r in requests if r["service"] == "kube"]
    agents = [str(r["headers"]["user-agent"]) for r in kube]  # type: ignore[index]  # an object of the log
    return Undisturbed(
        arm=arm,
        kube=[(str(r["method"]), str(r["path"])) for r in kube],
        ours=first_looks([at for at, agent in enumerate(agents, 1) if not agent.startswith(HELM_AGENT)]),
        helm=[at for at, agent in enumerate(agents, 1) if agent.startswith(HELM_AGENT)],
        objects=objects,
    )
