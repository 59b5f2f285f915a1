"""Reading files, directories and stdin when they cannot be read."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from gpukube.spec.source.files import read_sources


class BrokenStdin(io.StringIO):
    """A stream whose other end fails."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def read(self, _size: int | None = -1, /) -> str:
        raise self.error


def test_stdin_when_not_utf_8_then_the_byte_is_named() -> None:
    error = UnicodeDecodeError("utf-8", b"a: 1\nb: \xfe", 8, 9, "invalid start byte")
    ((), (found,)) = read_sources(["-"], BrokenStdin(error))
    assert found.render().startswith("-:2:4: error[GPK105 encoding]: byte 0xfe is not UTF-8")


def test_stdin_when_it_fails_then_the_reason_is_given() -> None:
    ((), (found,)) = read_sources(["-"], BrokenStdin(OSError(5, "Input/output error")))
    assert found.render().startswith("-: error[GPK102 file-unreadable]: cannot be read: input/output error")


def test_directory_when_not_readable_then_the_reason_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)  # root may read everything, so permissions cannot show it
    ((), (found,)) = read_sources([str(tmp_path)], None)
    assert found.code == "file-unreadable"
    assert found.seen == "cannot be read: permission denied"


MISSING = {
    "a name like another": ("pool.yaml", "did you mean {folder}/pools.yaml?"),
    "a name like none": ("zzz", "check the path"),
    "in a missing directory": ("no/such/pools.yaml", "check the path"),
    "below a file": ("pools.yaml/x.yaml", "check the path"),
}


@pytest.mark.parametrize(("name", "fix"), MISSING.values(), ids=MISSING)
def test_file_when_missing_then_the_nearest_name_is_offered(name: str, fix: str, tmp_path: Path) -> None:
    (tmp_path / "pools.yaml").write_text("kind: GPUNodePools", "utf-8")
    ((), (found,)) = read_sources([str(tmp_path / name)], None)
    assert (found.code, found.fix) == ("file-missing", fix.format(folder=tmp_path))


def test_paths_when_some_are_wrong_then_the_others_are_still_read(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("\ufeffa: 1", "utf-8")
    sources, problems = read_sources([str(tmp_path / "a.yaml"), str(tmp_path / "b"), "-"], io.StringIO("c: 1"))
    assert [source.text for source in sources] == ["a: 1", "c: 1"]
    assert len(problems) == 1


TREE = ("a.yaml", "b.yml", "notes.txt", ".hidden.yaml", "aks/c.yaml", "aks/deep/d.yaml", "[x].yaml")
PATTERNS = {
    "one level": (["*.yaml"], ["[x].yaml", "a.yaml"]),
    "any depth": (["**/*.yaml"], ["[x].yaml", "a.yaml", "aks/c.yaml", "aks/deep/d.yaml"]),
    "below a folder": (["aks/**/*.yaml"], ["aks/c.yaml", "aks/deep/d.yaml"]),
    "a set of characters": (["[ab].y*ml"], ["a.yaml", "b.yml"]),
    "one character": (["?.yml"], ["b.yml"]),
    "folders are passed over": (["*"], ["[x].yaml", "a.yaml", "b.yml", "notes.txt"]),
    "a name that looks like a pattern": (["[x].yaml"], ["[x].yaml"]),
    "twice the same": (["*.yml", "b.yml", "./b.yml"], ["b.yml"]),
    "several, in their order": (["aks/*.yaml", "*.yml"], ["aks/c.yaml", "b.yml"]),
}


@pytest.mark.parametrize(("paths", "read"), PATTERNS.values(), ids=PATTERNS)
def test_pattern_when_given_quoted_then_its_files_are_read_by_name(
    paths: list[str], read: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(tmp_path)
    monkeypatch.chdir(tmp_path)
    sources, problems = read_sources(paths, None)
    assert ([source.name for source in sources], problems) == (read, ())


EMPTY = {
    "too shallow": ("deep/*.yaml", "check the pattern and its directory"),
    "deeper ones are there": ("aks/*.yml", "write aks/**/*.yaml"),
    "here": ("*.json", "write **/*.yaml"),
}


@pytest.mark.parametrize(("pattern", "fix"), EMPTY.values(), ids=EMPTY)
def test_pattern_when_it_matches_nothing_then_is_an_error(
    pattern: str, fix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(tmp_path)
    monkeypatch.chdir(tmp_path)
    ((), (found,)) = read_sources([pattern], None)
    assert (found.code, found.where.source, found.fix) == ("pattern-empty", pattern, fix)


def grow(folder: Path) -> None:
    for name in TREE:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("a: 1", "utf-8")


def test_file_when_missing_then_only_specs_are_offered(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text("kind: Pod", "utf-8")
    (tmp_path / "pools.yaml").write_text("kind: GPUNodePools", "utf-8")
    ((), (found,)) = read_sources([str(tmp_path / "pods.yaml")], None)
    assert found.fix == f"did you mean {tmp_path / 'pools.yaml'}?"


def test_named_pipe_when_nobody_writes_then_refused_at_once_and_one_of_the_shell_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pools.yaml")
    sources, found = read_sources([str(tmp_path / "pools.yaml"), str(tmp_path / "pool.yaml")], None)
    assert not sources
    assert [(item.code, item.seen) for item in found] == [
        ("file-unreadable", "cannot be read: it is a named pipe"),
        ("file-missing", "does not exist"),  # nor is the pipe opened to see whether it was meant
    ]
    reading, writing = os.pipe()
    os.write(writing, b"a: 1")
    os.close(writing)
    (source,), found = read_sources([f"/dev/fd/{reading}"], None)
    os.close(reading)
    assert (source.text, found) == ("a: 1", ())
