"""The container file, where no container engine is: what it copies makes the same wheel, and it runs as nobody."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from tests.packaging.conftest import build

if TYPE_CHECKING:
    from tests.packaging.conftest import Built

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "Containerfile").read_text("utf-8")
IGNORED = [line for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line and line[0] != "#"]


def instructions() -> list[tuple[str, str]]:
    """List the instructions, each on one line."""
    lines = [line for line in TEXT.splitlines() if line and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in joined.splitlines())]


def test_context_when_it_is_all_there_is_then_the_wheel_is_the_same(built: Built, tmp_path: Path) -> None:
    assert IGNORED[0] == "*"
    for name in (line[1:] for line in IGNORED if line.startswith("!")):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / "source" / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
        else:
            shutil.copy(source, tmp_path / "source" / name)
    assert build("wheel", tmp_path / "source", tmp_path / "dist").read_bytes() == built.wheel.read_bytes()
    assert (tmp_path / "source" / "constraints.txt").is_file()


def test_file_when_read_then_pinned_base_no_root_no_secret() -> None:
    found = instructions()
    (version,) = (rest.removeprefix("PYTHON=") for name, rest in found if rest.startswith("PYTHON="))
    assert re.fullmatch(r"3\.\d+(\.\d+)?-slim-[a-z]+", version), "a version, never latest"
    assert {rest.split()[0] for name, rest in found if name == "FROM"} == {"docker.io/library/python:${PYTHON}"}
    last = max(index for index, (name, _) in enumerate(found) if name == "FROM")
    users = [rest for name, rest in found[last:] if name == "USER"]
    assert users == ["65532:65532"]
    assert [name for name, _ in found[last:]][-4:] == ["USER", "WORKDIR", "ENTRYPOINT", "CMD"], (
        "nothing runs as root after"
    )
    assert not re.search(r"(?i)(token|secret|password|api_?key)", " ".join(rest for _, rest in found))
    (install,) = (rest for name, rest in found if name == "RUN" and "pip install" in rest)
    assert "-c constraints.txt" in install
    assert not any(name == "ADD" for name, _ in found)
