"""Upgrades of a spec and updateConfig of a group."""

from __future__ import annotations

import pytest

from gpukube.core.diff import diff_fields
from gpukube.core.values import Upgrade
from gpukube_eks.pool.observe import observe_group
from gpukube_eks.pool.translate import group_of
from gpukube_eks.pool.upgrades import has_surge, update_config
from tests.unit.gpukube_eks.samples import desired_of, eks_target

CASES: list[tuple[Upgrade, dict[str, object]]] = [
    (Upgrade(), {"maxUnavailable": 1, "updateStrategy": "MINIMAL"}),
    (Upgrade("0"), {"maxUnavailable": 1, "updateStrategy": "MINIMAL"}),
    (Upgrade("0%"), {"maxUnavailable": 1, "updateStrategy": "MINIMAL"}),
    (Upgrade("1"), {"maxUnavailable": 1, "updateStrategy": "DEFAULT"}),
    (Upgrade("33%"), {"maxUnavailable": 1, "updateStrategy": "DEFAULT"}),
    (Upgrade(None, "3"), {"maxUnavailable": 3, "updateStrategy": "MINIMAL"}),
    (Upgrade(None, "33%"), {"maxUnavailablePercentage": 33, "updateStrategy": "MINIMAL"}),
    (Upgrade("1", "10%"), {"maxUnavailablePercentage": 10, "updateStrategy": "DEFAULT"}),
]


@pytest.mark.parametrize(("upgrade", "config"), CASES)
def test_upgrade_when_written_is_an_update_config_and_read_again_no_difference(
    upgrade: Upgrade, config: dict[str, object]
) -> None:
    desired = desired_of(eks_target("g4dn.xlarge", upgrade=upgrade))

    assert update_config(desired.target) == group_of(desired)["updateConfig"] == config
    assert diff_fields(desired.fields, observe_group(group_of(desired), {}, {}).fields) == ()


@pytest.mark.parametrize(
    ("upgrade", "native", "surge"),
    [
        (Upgrade(), {}, False),
        (Upgrade("0"), {}, False),
        (Upgrade("2"), {}, True),
        (Upgrade(), {"updateConfig": {"updateStrategy": "DEFAULT"}}, True),
        (Upgrade(), {"updateConfig": {"updateStrategy": "MINIMAL"}}, False),
    ],
)
def test_surge_when_asked_either_way_is_seen(upgrade: Upgrade, native: dict[str, object], surge: bool) -> None:  # noqa: FBT001 - a table's column
    assert has_surge(eks_target("g4dn.xlarge", upgrade=upgrade, native=native)) is surge
