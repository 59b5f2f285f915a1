"""The world file: what is read of it, and where what is wrong is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.cli.worldfile import read_world
from gpukube.errors import SpecError

if TYPE_CHECKING:
    from pathlib import Path


def test_world_when_read_then_clusters_come_first_with_their_places(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text("things:\n  - {provider: aks, resources: [a]}\nclusters:\n  - provider: eks\n    account: '0123'\n")
    first, second = read_world(str(path))
    assert (first.part, first.body, str(first.places.at())) == (
        "clusters",
        {"provider": "eks", "account": "0123"},
        f"{path}:4:5",
    )
    assert (second.part, second.body, str(second.places.at())) == (
        "things",
        {"provider": "aks", "resources": ["a"]},
        f"{path}:2:5",
    )


def test_world_when_empty_then_nothing(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text("# nothing yet\n")
    assert read_world(str(path)) == []


WRONG = {
    "no mapping": ("- a\n", "1:1: a world is a mapping"),
    "another key": ("clusters: []\nroles: []\n", '2:1: a world has no "roles"'),
    "no list": ("things: {}\n", "1:9: things must be a list"),
    "no mapping in a list": ("clusters:\n  - train\n", "2:5: an entry of clusters must be a mapping"),
}


@pytest.mark.parametrize("case", WRONG)
def test_world_when_it_is_none_then_refused_with_the_place(case: str, tmp_path: Path) -> None:
    text, wanted = WRONG[case]
    path = tmp_path / "w.yaml"
    path.write_text(text)
    with pytest.raises(SpecError) as caught:
        read_world(str(path))
    (found,) = caught.value.diagnostics
    assert (found.code, f"{found.where}: {found.seen}") == ("sandbox-world", f"{path}:{wanted}")


def test_world_when_it_is_not_there_then_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        read_world(str(tmp_path / "none.yaml"))
    assert caught.value.diagnostics[0].code == "file-missing"
