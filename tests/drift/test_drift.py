"""Whatever others change, in the clouds and in the clusters, a plan finds exactly that."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from gpukube import api
from sandbox_tests.sandboxes import emptied
from tests.drift.mutations import MUTATIONS, Done, Mutation
from tests.drift.world import World, findings, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube_sandbox.daemon import SandboxInfo

SPEED = 2000.0
MOST = 12


@pytest.fixture(scope="module")
def world(running_sandbox: SandboxInfo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Create the three pools, once."""
    directory = tmp_path_factory.mktemp("drift")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
            patch.setenv(name, str(directory))
        made = make_world(directory, emptied(running_sandbox, SPEED))
        yield made
        made.close()


def require_found(world: World, mutations: Sequence[Mutation]) -> None:
    """Make them, plan, compare, take them back."""
    done: list[Done] = []
    try:
        for in_pool in (True, False):
            # One by one: what was made before a failure is taken back.
            done.extend(mutation.make(world) for mutation in mutations if mutation.in_pool is in_pool)
            world.settle()
        assert findings(world.plan()) == {line for one in done for line in one.found}
    finally:
        for one in reversed(done):
            one.undo()
        world.reset_pools()


def draw(chance: random.Random) -> list[Mutation]:
    """Draw mutations that do not touch the same thing."""
    drawn: dict[str, Mutation] = {}
    for mutation in chance.sample(list(MUTATIONS.values()), chance.randint(2, MOST)):
        drawn.setdefault(mutation.slot, mutation)
    return list(drawn.values())


def rounds(chance: random.Random) -> list[list[Mutation]]:
    """Deal the whole catalog into hands in which no two touch the same thing."""
    hands: list[dict[str, Mutation]] = []
    for mutation in chance.sample(list(MUTATIONS.values()), len(MUTATIONS)):
        fitting = next((hand for hand in hands if mutation.slot not in hand and len(hand) < MOST), None)
        if fitting is None:
            fitting = {}
            hands.append(fitting)
        fitting[mutation.slot] = mutation
    return [list(hand.values()) for hand in hands]


ROUNDS = rounds(random.Random(4))  # noqa: S311 -- a deal, not a secret


def test_plan_when_nothing_changed_then_nothing_is_found(world: World) -> None:
    assert findings(world.plan()) == set()


@pytest.mark.turns(3)
@pytest.mark.parametrize("number", range(len(ROUNDS)))
def test_plan_when_several_things_changed_then_just_those(number: int, world: World) -> None:
    require_found(world, ROUNDS[number])


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_plan_when_one_thing_changed_then_that_and_nothing_else(name: str, world: World) -> None:
    require_found(world, [MUTATIONS[name]])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_plan_when_any_things_changed_then_just_those(seed: int, world: World) -> None:
    require_found(world, draw(random.Random(seed)))  # noqa: S311 -- a draw, not a secret


def test_plan_when_all_is_taken_back_then_nothing_is_found(world: World) -> None:
    assert findings(world.plan()) == set()


MENDED = (
    "aks: pool label changed",
    "aks: node lost our mark",
    "aks: GPU taint removed",
    "aks: tolerations",
    "aks: GFD gone",
    "aks: entry edited",
    "aks: entry added",
    "eks: pool label added",
    "eks: node label removed",
    "eks: image",
    "eks: node selector",
    "eks: entry removed",
    "eks: values edited",
    "gke: pool label removed",
    "gke: node taint removed",
)


def test_apply_when_much_changed_then_all_is_as_declared_again(world: World) -> None:
    try:
        for in_pool in (True, False):
            for name in MENDED:
                if MUTATIONS[name].in_pool is in_pool:
                    MUTATIONS[name].make(world)
            world.settle()
        reports = api.apply(world.prepared, world.run)
        assert api.exit_code(reports) == 0, [report.error for report in reports]
        assert findings(world.plan()) == set()
    finally:
        world.reset_pools()  # what other tests change next is told from how the pools were made
