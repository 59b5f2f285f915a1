"""Reading JSON that somebody else wrote: whatever its shape, an answer and never an exception."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from gpukube.core.jsontree import at, decimal, integer, items, merged, number, strings, text, texts, tree, trees

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)
PATHS = st.lists(st.sampled_from(["a", "b", 0, 1]), max_size=3)
LIVE = {"a": [{"b": {"c": "x"}}, 7, {"d": 2}], "n": "12", "f": "0.25", "flag": True, "zones": ("z1", "z2")}


def test_at_when_path_goes_through_objects_and_lists_then_found() -> None:
    assert at(LIVE, "a", 0, "b", "c") == "x"
    assert at(LIVE, "a", 3, "b") is None
    assert at(LIVE, "a", "b") is None
    assert at(LIVE, 0) is None


def test_lists_when_mixed_then_objects_alone_are_trees() -> None:
    assert trees(LIVE, "a") == [{"b": {"c": "x"}}, {"d": 2}]
    assert items(LIVE, "a")[1:] == [7, {"d": 2}]
    assert strings(LIVE, "zones") == ("z1", "z2")
    assert strings(LIVE, "n") == ()


def test_numbers_when_written_as_text_then_read_only_where_that_is_meant() -> None:
    assert (number(LIVE, "n"), integer(LIVE, "n"), decimal(LIVE, "n")) == (12, None, 12.0)
    assert (number(LIVE, "f"), integer(LIVE, "a", 1), decimal(LIVE, "f")) == (0, 7, 0.25)
    assert (number(LIVE, "flag"), integer(LIVE, "flag"), decimal(LIVE, "flag")) == (0, None, None)


@given(value=JSON, path=PATHS)
def test_readers_when_tree_is_of_any_shape_then_each_gives_its_type(value: object, path: list[str | int]) -> None:
    assert isinstance(tree(value, *path), dict)
    assert isinstance(items(value, *path), list)
    assert all(isinstance(item, dict) for item in trees(value, *path))
    assert all(isinstance(item, str) for item in (text(value, *path), *strings(value, *path)))
    assert all(isinstance(item, str) for item in texts(value, *path).values())
    assert isinstance(number(value, *path), int)
    assert not isinstance(integer(value, *path), bool)
    read = decimal(value, *path)
    assert read is None or math.isfinite(read)


def test_merged_when_trees_meet_then_what_is_not_named_stays() -> None:
    found = merged(
        {"a": {"b": 1, "c": 2}, "l": ["x", "y"], "config": {"accelerators": [{"p": 1, "q": {"r": 1}}]}},
        {"a": {"b": 3}, "l": ["z"], "config": {"accelerators": [{"q": {"s": 2}}]}, "n": True},
    )

    assert found == {
        "a": {"b": 3, "c": 2},
        "l": ["z"],
        "config": {"accelerators": [{"p": 1, "q": {"r": 1, "s": 2}}]},
        "n": True,
    }
