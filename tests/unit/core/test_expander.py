"""The ConfigMap of the priority expander: which lines are gpukube's, and what a merge leaves alone."""

from __future__ import annotations

import pytest

from gpukube.core.expander import (
    RECORD,
    OrderError,
    broken_patterns,
    flag_of,
    lines_of,
    merge,
    missing_lines,
    parse_priorities,
    record,
    recorded,
    render,
    uses_priorities,
    without_gone,
)
from gpukube.core.scaling_order import FamilyOrder

H100 = FamilyOrder("team", "h100", (("h100",), ("h100spot",)))
A100 = FamilyOrder("team", "a100", (("a100",), ("a100spot",), ("a100late",)))
OTHER = FamilyOrder("other", "h100", (("theirs",), ("theirsb",)))


def _group(name: str) -> str:
    return f"^eks-{name}-x$"


def test_a_number_per_rank_is_shared_by_the_families() -> None:
    assert lines_of([H100, A100], _group) == {
        1000: ("^eks-h100-x$", "^eks-a100-x$"),
        990: ("^eks-h100spot-x$", "^eks-a100spot-x$"),
        980: ("^eks-a100late-x$",),
    }


def test_a_new_map_has_a_line_for_all_other_groups() -> None:
    assert merge({}, (), [H100], _group) == {1000: ("^eks-h100-x$",), 990: ("^eks-h100spot-x$",), 1: (".*",)}


@pytest.mark.parametrize("there", [".*", ".+", "^.*$", ""])
def test_a_line_for_all_groups_is_not_added_twice(there: str) -> None:
    assert merge({50: (there,)}, (), [H100], _group) == {
        1000: ("^eks-h100-x$",),
        990: ("^eks-h100spot-x$",),
        50: (there,),
    }


def test_other_lines_stay_and_own_old_lines_go() -> None:
    live = {1000: ("^eks-h100-x$", "mine"), 990: ("^eks-h100spot-x$",), 980: ("^eks-gone-x$",), 5: ("cpu",), 1: (".*",)}
    before = FamilyOrder("team", "h100", (("h100",), ("h100spot",), ("gone",)))
    after = FamilyOrder("team", "h100", (("h100spot",), ("h100",)))
    assert merge(live, [before], [after], _group) == {
        1000: ("^eks-h100spot-x$", "mine"),
        990: ("^eks-h100-x$",),
        5: ("cpu",),
        1: (".*",),
    }


def test_merging_twice_changes_nothing() -> None:
    orders = [H100, OTHER]
    once = merge({7: ("cpu",)}, (), orders, _group)
    assert merge(once, orders, orders, _group) == once
    assert parse_priorities(render(once)) == once


def test_the_last_family_leaves_the_line_for_all_groups() -> None:
    once = merge({}, (), [H100], _group)
    assert merge(once, [H100], (), _group) == {1: (".*",)}


def test_text_of_the_map() -> None:
    assert render({1: (".*",), 1000: ("^it's$", "b")}) == "1000:\n  - '^it''s$'\n  - 'b'\n1:\n  - '.*'\n"


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("", "it is not a mapping of numbers to patterns"),
        ("- a", "it is not a mapping of numbers to patterns"),
        ("a: [b]", "'a' is not a number"),
        ("true: [b]", "True is not a number"),
        ("1: b", "1 has no list of patterns"),
        ("1: [2]", "1 has no list of patterns"),
        ("1: [", "it is not YAML"),
    ],
)
def test_priorities_that_the_expander_does_not_understand(written: str, why: str) -> None:
    with pytest.raises(OrderError, match=why):
        parse_priorities(written)


def test_patterns_that_make_a_map_invalid() -> None:
    assert broken_patterns({2: ("a", "("), 1: ("[", r"\pL+(?i)", "[[:alpha:]]")}) == ["(", "["]


def test_lines_that_a_map_of_others_lacks() -> None:
    wanted = lines_of([H100], _group)
    assert missing_lines({20: ("^eks-h100-x$",), 10: ("a",)}, wanted) == {990: ("^eks-h100spot-x$",)}
    assert missing_lines({20: ("^eks-h100-x$",), 10: ("^eks-h100spot-x$",)}, wanted) == {}


def test_the_record_names_what_was_written() -> None:
    written = {"metadata": {"annotations": {RECORD: record([OTHER, H100])}}}
    assert recorded(written) == (OTHER, H100)
    assert recorded({"metadata": {"annotations": {"team": "x"}}}) is None
    assert recorded({"metadata": {"annotations": {RECORD: "broken"}}}) == ()


def test_pools_that_are_gone_leave_the_order() -> None:
    assert without_gone([H100, A100], ["h100spot", "another"]) == (FamilyOrder("team", "h100", ((), ("h100spot",))),)


@pytest.mark.parametrize(
    ("words", "expander", "used"),
    [
        (("./cluster-autoscaler", "--expander=priority"), "priority", True),
        (("./cluster-autoscaler", "--expander", "priority,least-waste", "--v=4"), "priority,least-waste", True),
        (("./cluster-autoscaler", "--expander=least-waste,priority"), "least-waste,priority", False),
        (("./cluster-autoscaler", "-expander=random"), "random", False),
        (("./cluster-autoscaler", "--expander-x=priority"), "", False),
        (("./cluster-autoscaler",), "", False),
    ],
)
def test_the_expander_of_a_command(words: tuple[str, ...], expander: str, *, used: bool) -> None:
    assert flag_of(words, "expander") == expander
    assert uses_priorities(expander) is used
