"""The rights that roles of the charts hand out are those that the printed policies hold, and nothing more.

The sandbox's charts have the roles of NVIDIA's own, which test_stand_ins compares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpukube.cluster.release.dra_values import dra_values
from gpukube.cluster.release.operator_values import operator_values
from gpukube.cluster.release.plugin_values import chart_values
from gpukube.cluster.release.shared_values import ReleaseContext
from gpukube.engine.permissions.chart_roles import (
    DRA_EVERYWHERE,
    DRA_OURS,
    OPERATOR_EVERYWHERE,
    OPERATOR_OURS,
    PLUGIN_EVERYWHERE,
    PLUGIN_OURS,
)
from gpukube_sandbox.kube.repository import CHART, DRA, OPERATOR, archive_name, chart_archive
from tests.unit.cluster.builders import SLICED, claimed, desire, operated
from tests.wire.cluster.real_charts import missing_charts, real_archive
from tests.wire.cluster.test_stand_ins import Case, rendered

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube.engine.permissions.chart_roles import RoleRule

Right = tuple[str, str, str, tuple[str, ...]]
UPGRADED = {"operator": {"upgradeCRD": True}}
CASES = {
    "plugin": (
        Case(CHART, "0.20.0", chart_values([desire(sharing=SLICED)], ReleaseContext())), PLUGIN_EVERYWHERE, PLUGIN_OURS
    ),
    "operator": (
        Case(OPERATOR, "v26.7.0", operator_values([operated(sharing=SLICED)], ReleaseContext()) | UPGRADED),
        OPERATOR_EVERYWHERE,
        OPERATOR_OURS,
    ),
    "DRA driver": (Case(DRA, "0.4.1", dra_values([claimed()], ReleaseContext())), DRA_EVERYWHERE, DRA_OURS),
}  # fmt: skip


def rights(roles: Iterable[Any]) -> Iterator[Right]:
    for role in roles:
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        yield verb, resource, group, tuple(rule.get("resourceNames", ()))


def held(rules: Iterable[RoleRule]) -> set[Right]:
    return {
        (verb, resource, rule.group, rule.names)
        for rule in rules
        for verb in rule.verbs.split()
        for resource in rule.resources.split()
    }


@pytest.mark.parametrize("name", CASES)
def test_roles_when_a_chart_is_rendered_then_the_printed_policies_hold_what_it_hands_out(name: str) -> None:
    case, everywhere, ours = CASES[name]
    is_missing = missing_charts(archive_name(case.version, case.chart))
    archive = chart_archive(case.version, case.chart) if is_missing else real_archive(case.chart, case.version)
    objects = rendered(archive, case).values()
    assert set(rights(one for one in objects if one["kind"] == "ClusterRole")) == held(everywhere)
    assert set(rights(one for one in objects if one["kind"] == "Role")) == held(ours)
