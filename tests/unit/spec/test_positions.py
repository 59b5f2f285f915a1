"""Paths and their lookup."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpukube.errors import Where
from gpukube.spec.source.document import load_documents
from gpukube.spec.source.positions import Path, Positions, parse_path, render_path

PATHS: dict[str, Path] = {
    "": (),
    "pools": ("pools",),
    "pools[0].gpu.model": ("pools", 0, "gpu", "model"),
    "clusters.train-aks.name": ("clusters", "train-aks", "name"),
    'pools[0].labels["example.com/team"]': ("pools", 0, "labels", "example.com/team"),
    "[3]": (3,),
}
TEXT = "pools:\n  - labels: {example.com/team: vision}\n    gpu:\n      model: T4\n"


def positions() -> Positions:
    document = load_documents(TEXT, "a.yaml")[0][0]
    return Positions(document.root, document.origin, document.mark)


@pytest.mark.parametrize(("text", "path"), PATHS.items())
def test_path_when_written_then_is_read_back(text: str, path: Path) -> None:
    assert parse_path(text) == path
    assert render_path(path) == text


@pytest.mark.parametrize("text", [".a", "a.", "a..b", "a[", "a[x]", "a b", 'a["]', "[-1]"])
def test_path_when_malformed_then_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        parse_path(text)


@given(path=st.lists(st.text(max_size=5) | st.integers(0, 999), max_size=4).map(tuple))
def test_any_path_when_rendered_then_parses_back(path: Path) -> None:
    assert parse_path(render_path(path)) == path


AT = {
    "pools[0].gpu.model": "4:14",
    "pools[0].gpu.count": "4:7",
    "pools[0].sharing.mig.profile": "2:5",
    "pools[7]": "2:3",
    'pools[0].labels["example.com/team"]': "2:32",
    "nothing": "1:1",
    "no path at [all": "1:1",
}


@pytest.mark.parametrize(("path", "place"), AT.items())
def test_position_when_path_was_not_written_then_is_the_nearest_enclosing(path: str, place: str) -> None:
    assert str(positions().at(path)) == f"a.yaml:{place}"


def test_key_position_when_key_was_not_written_then_is_the_nearest_enclosing() -> None:
    assert str(positions().key_at("pools[0].gpu")) == "a.yaml:3:5"
    assert str(positions().key_at("pools[0].disk")) == "a.yaml:2:5"


def test_positions_when_narrowed_then_paths_are_relative_and_messages_whole() -> None:
    pool = positions().within("pools[0]")
    assert str(pool.at("gpu.model")) == "a.yaml:4:14"
    assert pool.path("gpu.model") == "pools[0].gpu.model"
    assert pool.path() == "pools[0]"
    assert pool.has("gpu.model")
    assert not pool.has("gpu.count")
    assert str(pool.within("disk").at("sizeGiB")) == "a.yaml:2:5"
    assert not pool.within("disk").has("model")


def test_marks_when_all_are_asked_for_then_each_leads_to_its_path_and_back() -> None:
    whole = positions()
    marks = set(whole.all_marks()) - {whole.mark}
    paths = whole.paths_of(marks)
    assert set(paths) == marks
    assert set(paths.values()) == {
        *("pools", "pools[0]", "pools[0].labels", 'pools[0].labels["example.com/team"]'),
        *("pools[0].gpu", "pools[0].gpu.model"),
    }
    for mark, path in paths.items():
        where = whole.origin.where(mark)
        assert where in {whole.at(path), whole.key_at(path)}
        assert whole.origin.marks_of(where) == (mark,)


def test_paths_when_asked_of_a_part_then_are_whole() -> None:
    part = positions().within("pools[0].gpu")
    assert part.paths_of({part.mark_at("model")}) == {part.mark_at("model"): "pools[0].gpu.model"}


def test_marks_of_when_the_place_is_elsewhere_then_none() -> None:
    whole = positions()
    mark = whole.origin.add("--set a.b")
    assert whole.origin.marks_of(Where("b.yaml", 1, 1)) == ()
    assert whole.origin.marks_of(Where("a.yaml")) == ()
    assert whole.origin.marks_of(Where("--set a.b")) == (mark,)
