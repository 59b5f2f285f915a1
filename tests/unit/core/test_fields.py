"""Paths of fields: tuples inside, texts at the edges."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpukube.core.fields import COUNT, FieldPath, known, label, tag

WORDS = st.from_regex(r"[a-zA-Z][a-zA-Z0-9]{0,8}", fullmatch=True)
KEYS = st.text("ab./-_]0", min_size=1, max_size=12)
PATHS = st.lists(WORDS, min_size=1, max_size=4).map(lambda steps: FieldPath(*steps)) | KEYS.map(label) | KEYS.map(tag)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (COUNT, "nodes.count"),
        (label("example.com/team"), "labels[example.com/team]"),
        (tag("odd]"), "tags[odd]]"),
        (
            FieldPath("nodes", "autoscaling", "resources", "nvidia.com/gpu"),
            "nodes.autoscaling.resources[nvidia.com/gpu]",
        ),
        (FieldPath("driver", "version"), "driver.version"),
    ],
)
def test_text_when_written_then_keys_stand_in_brackets(path: FieldPath, text: str) -> None:
    assert str(path) == f"{path}" == text
    assert FieldPath.parse(text) == path


@given(PATHS)
def test_path_when_written_and_read_or_copied_then_the_same(path: FieldPath) -> None:
    assert FieldPath.parse(str(path)) == path
    assert copy.deepcopy(path) == path == pickle.loads(pickle.dumps(path))  # noqa: S301 - our own bytes


@given(PATHS, PATHS)
def test_below_when_asked_then_by_whole_steps(path: FieldPath, other: FieldPath) -> None:
    assert path.is_below(*path)
    assert path.is_below(*other) == (path[: len(other)] == tuple(other))
    assert not label("teamwork").is_below(*label("team"))


def test_known_when_values_are_open_then_left_out_and_in_the_order_of_texts() -> None:
    fields = {label("a"): "1", label("a.b"): "2", COUNT: None, FieldPath("driver"): "none"}
    assert [str(path) for path in known(fields)] == ["driver", "labels[a.b]", "labels[a]"]
