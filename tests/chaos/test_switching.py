"""Threads of three clusters in one process, switched as often as Python can: nothing that they share is half made.

Each process is one chance: what is not safe to share is mostly made at its first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from gpukube_sandbox import daemon
from tests.chaos.conftest import SPEED
from tests.chaos.stage import EXAMPLES

if TYPE_CHECKING:
    from tests.chaos.stage import Stage

SPEC: Final = EXAMPLES / "three-clouds.yaml"
PLANS: Final = 500
CREATES: Final = 50


@pytest.fixture
def switching(stage: Stage) -> Stage:
    """Processes whose threads are switched after each microsecond."""
    stage.environ["TEST_SWITCH_INTERVAL"] = "1e-6"
    return stage


def plan(stage: Stage) -> int:
    """Plan on all clusters; gives the exit code, negative for a signal."""
    return stage.run("pool", "plan", "-f", str(SPEC)).code


def create(stage: Stage) -> int:
    """Create on all clusters of an empty sandbox; likewise."""
    daemon.reset(stage.info)
    daemon.configure(stage.info, speed=SPEED)
    return stage.create(SPEC).code


def test_plan_when_threads_are_switched_all_the_time_then_the_process_lives(switching: Stage) -> None:
    assert [plan(switching) for _ in range(3)] == [0] * 3


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_create_when_repeated_while_threads_are_switched_then_every_process_lives(switching: Stage) -> None:
    codes = [create(switching) for _ in range(CREATES)]
    assert codes == [0] * CREATES


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_plan_when_repeated_while_threads_are_switched_then_every_process_lives(switching: Stage) -> None:
    codes = [plan(switching) for _ in range(PLANS)]
    assert codes == [0] * PLANS
