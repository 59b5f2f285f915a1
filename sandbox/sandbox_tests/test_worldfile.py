"""World files: what is read of one, what is refused, and where."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpukube_sandbox import daemon
from gpukube_sandbox.worldfile import WorldError, populate, read_world

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo

UUID = "11111111-2222-3333-4444-555555555555"
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "sandbox" / "world.yaml"


def write(folder: Path, text: str) -> str:
    path = folder / "w.yaml"
    path.write_text(text)
    return str(path)


def test_read_when_things_stand_first_then_clusters_come_first(tmp_path: Path) -> None:
    path = write(tmp_path, "things:\n  - {provider: aks, resources: [a]}\nclusters:\n  - {provider: eks, name: t}\n")
    assert [(entry.part, entry.body) for entry in read_world(path)] == [
        ("clusters", {"provider": "eks", "name": "t"}),
        ("things", {"provider": "aks", "resources": ["a"]}),
    ]


def test_read_when_values_look_like_numbers_then_only_whole_numbers_are(tmp_path: Path) -> None:
    written = "{a: 012345678901, b: 1.30, c: 12, d: '12', e: no, f: true, g: , h: 2026-01-01}"
    (entry,) = read_world(write(tmp_path, f"things:\n  - {written}\n"))
    expected = ["012345678901", "1.30", 12, "12", "no", True, None, "2026-01-01"]
    assert list(entry.body.values()) == expected


def test_read_when_empty_then_nothing(tmp_path: Path) -> None:
    assert read_world(write(tmp_path, "# nothing yet\n")) == []


def twenty(anchor: str) -> str:
    return "[" + ", ".join([f"*{anchor}"] * 20) + "]"


UNREADABLE = {
    "no mapping": ("- a\n", ["1:1: a world is a mapping"]),
    "another key": ("clusters: []\nroles: []\n", ['2:1: a world has no "roles"']),
    "no list": ("things: {}\n", ["1:9: things must be a list"]),
    "no mapping in a list": ("clusters:\n  - train\n", ["2:5: an entry of clusters must be a mapping"]),
    "two mistakes": ("a: 1\nb: 2\n", ['1:1: a world has no "a"', '2:1: a world has no "b"']),
    "a key twice": ("things:\n  - {provider: eks, provider: aks}\n", ['2:21: key "provider" is written twice']),
    "a key that is a list": ("things:\n  - {[a]: 1}\n", ["2:6: a key must be a string"]),
    "an alias inside itself": ("things:\n  - &a {b: *a}\n", ["2:5: has too many values"]),
    "aliases of aliases": (
        (f"things:\n  - a: &a [1]\n    b: &b {twenty('a')}\n    c: &c {twenty('b')}\n"
        f"    d: &d {twenty('c')}\n    e: {twenty('d')}\n"),
        ["2:12: has too many values"],
    ),
    "no YAML": ("things: [\n", ["2:1: not YAML: expected the node content, but found '<stream end>'"]),
}  # fmt: skip


@pytest.mark.parametrize("case", UNREADABLE)
def test_read_when_it_is_no_world_then_each_mistake_has_its_place(case: str, tmp_path: Path) -> None:
    text, expected = UNREADABLE[case]
    path = write(tmp_path, text)
    with pytest.raises(WorldError) as caught:
        read_world(path)
    assert str(caught.value).splitlines() == [f"{path}:{line}" for line in expected]
    assert all(mistake.fix for mistake in caught.value.mistakes)


FILES = {
    "missing": "does not exist",
    "directory": "cannot be read: is a directory",
    "pipe": "cannot be read: it is a named pipe",
    "bytes": "2:3: byte 0xff is not UTF-8",
    "large": "is larger than 1048576 bytes",
    "control": "not YAML: special characters are not allowed",
    "deep": "not YAML: nested too deeply",
}


@pytest.mark.parametrize("case", FILES)
def test_read_when_the_file_is_none_then_refused_and_not_waited_for(case: str, tmp_path: Path) -> None:
    path = tmp_path / case
    contents = {"bytes": b"a:\n- \xff", "large": b"#" * (1 << 21), "control": b"a: \x01", "deep": b"[" * 100_000}
    if case in contents:
        path.write_bytes(contents[case])
    elif case == "directory":
        path.mkdir()
    elif case == "pipe":
        os.mkfifo(path)
    with pytest.raises(WorldError) as caught:
        read_world(str(path))
    separator = ":" if FILES[case][0].isdigit() else ": "
    assert str(caught.value) == f"{path}{separator}{FILES[case]}"


def test_populate_when_the_world_of_the_examples_then_all_of_it_is_there(sandbox: SandboxInfo) -> None:
    entries = read_world(str(EXAMPLE))
    populate(sandbox, entries)
    clusters: Any = daemon.status(sandbox)["clusters"]
    assert [cluster["provider"] for cluster in clusters] == ["aks", "eks", "gke"]
    again = [daemon.call(sandbox, "POST", "things", entry.body)["made"] for entry in entries if entry.part == "things"]
    assert again == [[], [], []]


REFUSED = {
    "clusters:\n  - {provider: eks, account: '1', region: us-east-1, name: train}\n": (
        "2:21: account is '1'; it must have twelve digits"
    ),
    "clusters:\n  - {provider: eks, account: '111122223333', region: moon-1, name: t}\n": (
        "2:46: there is no region moon-1; the nearest is me-south-1"
    ),
    "clusters:\n  - {provider: gke, project: p, location: us-central9, name: t}\n": (
        "2:33: there is no location us-central9; the nearest is us-central2"
    ),
    "clusters:\n  - {provider: gke, project: p, location: us-east1-a, name: t}\n": (
        "2:33: there is no location us-east1-a; the nearest is us-east1-d"
    ),
    "clusters:\n  - {provider: gke, project: p, location: us-central1, name: Bad_Name}\n": (
        "2:56: name is Bad_Name; it must be at most 40 lower-case letters, digits and -, beginning with a letter and "
        "not ending with -"
    ),
    "clusters:\n  - {provider: eks, account: '111122223333', region: us-east-1, name: _t}\n": (
        "2:65: name is _t; it must be at most 100 letters, digits, - and _, beginning with a letter or digit"
    ),
    "clusters:\n  - {provider: aks, subscription: nope, resourceGroup: ml, name: t}\n": (
        "2:21: subscription is nope; it must be a UUID such as 11111111-2222-3333-4444-555555555555"
    ),
    f"clusters:\n  - {{provider: aks, subscription: {UUID}, resourceGroup: ml, name: t, location: moonbase}}\n": (
        "2:101: there is no location moonbase; the nearest is usgovarizona"
    ),
    f"clusters:\n  - {{provider: aks, subscription: {UUID}, resourceGroup: ml, name: t-}}\n": (
        "2:92: name is t-; it must be at most 63 letters, digits, - and _, beginning and ending with a letter or digit"
    ),
    "clusters:\n  - {provider: eks, account: '111122223333', region: us-east-1, name: t, kubernetesVersion: '9.9'}\n": (
        "2:74: there is no Kubernetes 9.9; there are 1.24 to 1.37, the nearest is 1.37"
    ),
    "things:\n  - {provider: eks, account: '111122223333', region: eu-west-9}\n": (
        "2:46: there is no region eu-west-9; the nearest is eu-west-3"
    ),
    f"things:\n  - {{provider: aks, subscription: {UUID}, location: eastus9, quotas: {{}}}}\n": (
        "2:73: there is no location eastus9; the nearest is eastus"
    ),
    "things:\n  - {provider: gke, project: p, region: moon-west1, quotas: {}}\n": (
        "2:33: there is no region moon-west1; the nearest is me-west1"
    ),
    "things:\n  - {provider: gke, project: p, reservations: [{name: r, machineType: a3-high-8g}]}\n": (
        "2:58: there is no machineType a3-high-8g; the nearest is a3-highgpu-8g"
    ),
    "clusters:\n  - {provider: gke, name: train}\n": "2:5: project is missing",
    "clusters:\n  - {provider: oke, name: train}\n": "2:6: provider is oke; there are aks, eks, gke",
    "things:\n  - resources: []\n": "2:5: provider is missing; there are aks, eks, gke",
    "things:\n  - {provider: gke, project: p, serviceAccounts: [a, 2]}\n": (
        '2:54: serviceAccounts[1] is 2; it must be text: write "2"'
    ),
    "things:\n  - provider: gke\n    project: p\n    reservations:\n      - {name: r, size: 2}\n": (
        '5:19: there is no key "size"; there are assuredCount, count, deleteAtTime, inUseByOthers, machineType, name, '
        "status, zone"
    ),
}


def test_populate_when_the_sandbox_refuses_an_entry_then_its_place_is_told(
    sandbox: SandboxInfo, tmp_path: Path
) -> None:
    told = {}
    for text in REFUSED:
        path = write(tmp_path, text)
        with pytest.raises(WorldError) as caught:
            populate(sandbox, read_world(path))
        (mistake,) = caught.value.mistakes
        told[text] = str(mistake).removeprefix(f"{path}:")
        assert mistake.fix == "see docs/sandbox.md, What exists, for the format"
    assert told == REFUSED
