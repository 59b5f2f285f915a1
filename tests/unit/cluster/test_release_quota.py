"""Quotas of the namespace that would keep the plugin's pods away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.release.quota import quota_shortage

if TYPE_CHECKING:
    from collections.abc import Mapping


def quota(
    limit: str, used: str = "0", *, key: str = "pods", spec: Mapping[str, object] | None = None
) -> dict[str, object]:
    said = {"hard": {key: limit}, **(spec or {})}
    return {"metadata": {"name": "ours"}, "spec": said, "status": {"used": {key: used}}}


def scoped(operator: str, *values: str, name: str = "PriorityClass") -> dict[str, object]:
    expression = {"scopeName": name, "operator": operator, "values": list(values)}
    return {"scopeSelector": {"matchExpressions": [expression]}}


SHORT = {
    "of all pods": quota("4"),
    "used up": quota("10", "6"),
    "counted by object": quota("4", key="count/pods"),
    "of our class": quota("4", spec=scoped("In", "system-cluster-critical", "system-node-critical")),
    "of any class": quota("4", spec=scoped("Exists")),
    "of all classes but one": quota("4", spec=scoped("NotIn", "batch")),
}
ROOMY = {
    "none": {},
    "enough": quota("10", "5"),
    "of another class": quota("0", spec=scoped("In", "batch")),
    "of all classes but ours": quota("0", spec=scoped("NotIn", "system-node-critical")),
    "of another scope": quota("0", spec=scoped("Exists", name="Terminating")),
    "of old scopes": quota("0", spec={"scopes": ["BestEffort"]}),
    "of something else": quota("0", key="services"),
    "never counted": {"metadata": {"name": "new"}, "spec": {"hard": {"pods": "5"}}},
}


@pytest.mark.parametrize("case", SHORT)
def test_quota_when_it_has_no_room_then_named_with_its_numbers(case: str) -> None:
    said = quota_shortage([ROOMY["enough"], SHORT[case]], 5)
    assert said.startswith("ResourceQuota ours allows ")
    assert said.endswith("and 5 more are needed")


@pytest.mark.parametrize("case", ROOMY)
def test_quota_when_it_has_room_or_is_not_for_our_pods_then_nothing_is_said(case: str) -> None:
    assert quota_shortage([ROOMY[case]], 5) == ""
