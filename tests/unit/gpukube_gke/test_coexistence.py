"""Whether the nodes of a pool and of its replacement can be placed at the same time."""

from __future__ import annotations

import pytest

from gpukube_gke.rules.coexistence import check_coexistence
from tests.unit.gpukube_gke.edits import live_of
from tests.unit.gpukube_gke.targets import desire, gke_target


@pytest.mark.parametrize(
    ("old", "new", "severities"),
    [
        ("", "", []),
        ("compact", "none", []),
        ("compact", "compact", ["warning"]),
        ("near", "compact", ["warning"]),
        ("near", "other", ["warning"]),
        ("near", "near", ["error"]),
    ],
)
def test_replacement_when_placed_by_the_policy_of_the_old_pool_then_impossible_beside_it(
    old: str, new: str, severities: list[str]
) -> None:
    live = live_of(gke_target("a3-megagpu-8g", placement=old))
    found = check_coexistence(desire(gke_target("a3-megagpu-8g", placement=new)), live)
    assert [(one.code, one.severity) for one in found] == [("surge-impossible", one) for one in severities]
