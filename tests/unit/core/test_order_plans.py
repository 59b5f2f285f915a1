"""Plans of the objects that order families: written, left alone, or foreign."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.core.expander import NAME, RECORD, record
from gpukube.core.jsontree import tree
from gpukube.core.order_plans import plan_class, plan_map
from gpukube.core.scaling_order import ClassOrder, FamilyOrder, GroupOrder
from gpukube.provider import load_provider

if TYPE_CHECKING:
    from gpukube.core.jsontree import Tree

ORDER = FamilyOrder("team", "h100", (("h100",), ("h100spot",)))
OTHER = FamilyOrder("a-team", "t4", (("t4",), ("t4spot",)))
HOW = GroupOrder(group=lambda name: f"^{name}$")


def a_map(text: str, *families: FamilyOrder, **data: str) -> Tree:
    annotations = {"kept": "yes", **({RECORD: record(families)} if families else {})}
    return {"metadata": {"name": NAME, "annotations": annotations}, "data": {"priorities": text, **data}}


def test_map_that_is_missing_is_created() -> None:
    plan = plan_map(None, "scaling", [ORDER], HOW)
    assert (plan.action, plan.acts, str(plan)) == ("create", True, f"ConfigMap scaling/{NAME}")
    assert plan.content == "1000:\n  - '^h100$'\n990:\n  - '^h100spot$'\n1:\n  - '.*'\n"
    assert plan.desired["data"] == {"priorities": plan.content}


def test_map_with_this_order_is_left_alone() -> None:
    first = plan_map(None, "scaling", [ORDER], HOW)
    again = plan_map(first.desired, "scaling", [ORDER], HOW)
    assert (again.action, again.acts, again.why) == ("none", False, "it has this order")


def test_map_is_the_same_whoever_writes_last() -> None:
    one = plan_map(plan_map(None, "x", [ORDER], HOW).desired, "x", [OTHER], HOW, [ORDER])
    two = plan_map(plan_map(None, "x", [OTHER], HOW).desired, "x", [ORDER], HOW, [OTHER])
    assert one.action == two.action == "update"
    assert one.desired == two.desired


def test_map_of_ours_keeps_other_data_and_annotations() -> None:
    live = a_map("1000: ['^old$', mine]\n3: [cpu]\n", FamilyOrder("team", "h100", (("old",),)), more="kept")
    plan = plan_map(live, "x", [ORDER], HOW)
    assert plan.content == "1000:\n  - '^h100$'\n  - 'mine'\n990:\n  - '^h100spot$'\n3:\n  - 'cpu'\n1:\n  - '.*'\n"
    assert plan.desired["data"] == {"priorities": plan.content, "more": "kept"}
    assert plan.desired["metadata"]["annotations"]["kept"] == "yes"  # type: ignore[index]  # a mapping


@pytest.mark.parametrize(
    ("text", "action", "content"),
    [
        ("5: [cpu]", "foreign", "1000:\n  - '^h100$'\n990:\n  - '^h100spot$'\n"),
        ("5: ['^h100$']", "foreign", "990:\n  - '^h100spot$'\n"),
        ("5: ['^h100$']\n4: ['^h100spot$']", "none", ""),
        ("4: ['^h100$']\n5: ['^h100spot$']", "foreign", "1000:\n  - '^h100$'\n990:\n  - '^h100spot$'\n"),
        ("5: ['^h100$', '^h100spot$']", "foreign", "1000:\n  - '^h100$'\n990:\n  - '^h100spot$'\n"),
        ("5: ['^h100$']\n4: ['^h100spot$']\n3: ['^h100$']", "none", ""),
        ("nonsense", "foreign", "1000:\n  - '^h100$'\n990:\n  - '^h100spot$'\n"),
    ],
)
def test_map_of_others_is_never_written_and_its_missing_lines_are_named(text: str, action: str, content: str) -> None:
    plan = plan_map(a_map(text), "x", [ORDER], HOW)
    assert (plan.action, plan.content, plan.desired) == (action, content, {})


def test_map_of_ours_that_cannot_be_read_is_not_overwritten() -> None:
    plan = plan_map(a_map("a: [b]", ORDER), "x", [ORDER], HOW)
    assert (plan.action, plan.desired, plan.why) == (
        "foreign",
        {},
        "its priorities cannot be read: 'a' is not a number",
    )


def test_class_of_a_family() -> None:
    how = load_provider("gke").extras.order
    assert isinstance(how, ClassOrder)
    plan = plan_class(None, FamilyOrder("team", "h100", (("h100",), (), ("h200", "h200b"))), how)
    assert (plan.action, plan.why) == ("create", "it does not exist; pods select cloud.google.com/compute-class: h100")
    assert plan.desired == {
        "apiVersion": "cloud.google.com/v1",
        "kind": "ComputeClass",
        "metadata": {"name": "h100", "labels": {"gpukube.io/owner": "team", "gpukube.io/family": "h100"}},
        "spec": {
            "nodePoolAutoCreation": {"enabled": False},
            "priorities": [{"nodepools": ["h100"]}, {"nodepools": ["h200", "h200b"]}],
            "whenUnsatisfiable": "DoNotScaleUp",
        },
    }
    assert plan_class(plan.desired, plan.orders[0], how).action == "none"
    more = {**plan.desired, "spec": {**plan.desired["spec"], "activeMigration": {"optimizeRulePriority": True}}}  # type: ignore[dict-item]  # a mapping
    assert plan_class(more, plan.orders[0], how).action == "none"
    changed = plan_class(more, ORDER, how)
    assert (changed.action, tree(changed.desired, "spec", "activeMigration")) == (
        "update",
        {"optimizeRulePriority": True},
    )
    assert plan_class(plan.desired, ORDER, how).action == "update"
    assert plan_class(plan.desired, FamilyOrder("other", "h100", ORDER.ranks), how).action == "foreign"
    assert plan_class({"metadata": {"name": "h100"}}, ORDER, how).action == "foreign"


@pytest.mark.parametrize(
    ("cloud", "pool", "pattern"),
    [
        ("eks", "h100", "^eks-h100-[0-9a-f]{8}-[0-9a-f-]{27}$"),
        ("eks", "h100-spot_1.x", r"^eks-h100-spot_1\.x-[0-9a-f]{8}-[0-9a-f-]{27}$"),
        ("aks", "h100", "^aks-h100-[0-9]+-vmss$"),
    ],
)
def test_patterns_of_node_groups_match_one_pool_only(cloud: str, pool: str, pattern: str) -> None:
    how = load_provider(cloud).extras.order
    assert isinstance(how, GroupOrder)
    assert how.group(pool) == pattern
