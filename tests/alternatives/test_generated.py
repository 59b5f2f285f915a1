"""Generated families: the first place that has the machines has the nodes, and nothing else is left or was there."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from gpukube.errors import ExitCode
from gpukube_sandbox import daemon
from sandbox_tests.eks.aws import Aws
from tests.alternatives.generator import generated
from tests.alternatives.stage import NODES, SERVICES, made_requests

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo
    from tests.alternatives.generator import Case, Place
    from tests.alternatives.stage import Families

COUNT = 500
EACH_RUN = 18


@pytest.mark.turns(9)
@pytest.mark.parametrize(
    "number", [*range(EACH_RUN), *(pytest.param(one, marks=pytest.mark.slow) for one in range(EACH_RUN, COUNT))]
)
def test_create_when_a_family_is_generated_then_the_first_place_with_machines_has_it(
    world: Families, number: int
) -> None:
    case = generated(number)
    world.begin(*case.clusters)
    mark = world.last_request()
    began = time.time()
    case.lay(world.info)
    with world.watched() as seen:
        code, report = world.ran(case.document(world.there), case.prices)
    left = world.sizes()
    assert max(map(len, seen)) <= 1, seen
    tried = _tried(world.info, case, mark)
    assert list(tried) == [place for place in case.places if place in tried], "in the order of the family"
    assert set(tried) <= set(case.affordable)
    won = next((place for place in case.places if left.get(place.pool)), None)
    if case.is_fixed:
        assert won == case.winner, report
    for place, (begun, ended) in tried.items():
        had = case.machines(place, began, begun, ended)
        assert (max(had) >= NODES) if place == won else (min(had) < NODES), (place, had, report)
    if won is None:
        assert left == {}
        assert list(tried) == list(case.affordable)
        assert code == (ExitCode.CAPACITY if tried else ExitCode.ERROR), report
    else:
        assert (code, left) == (0, {won.pool: NODES}), report
        assert list(tried) == list(case.affordable)[: case.affordable.index(won) + 1]
    _require_nothing_else(world.info, case, won)


def _tried(info: SandboxInfo, case: Case, mark: int) -> dict[Place, tuple[float, float]]:
    """Return the places whose pool was created, in order, with the time of that and of the beginning of the next."""
    by_path = {f"{SERVICES[place.cloud]} {place.pool}": place for place in case.places}
    found = [(by_path[where], at) for where, at in made_requests(info, mark)]
    ends = [*(at for _, at in found[1:]), time.time()][: len(found)]
    tried = {place: (begun, ended) for (place, begun), ended in zip(found, ends, strict=True)}
    assert len(tried) == len(found), "each is created once"
    return tried


def _require_nothing_else(info: SandboxInfo, case: Case, won: Place | None) -> None:
    taken = sum(int(str(one["taken"])) for one in daemon.list_stock(info))
    assert taken == (NODES if won else 0)
    if "eks" in case.clusters:
        templates = Aws(info).client("ec2").describe_launch_templates()["LaunchTemplates"]
        assert len(templates) == (1 if won and won.cloud == "eks" else 0)
