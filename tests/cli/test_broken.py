"""Ten specs with the mistakes people make: told with their place, exit 4, never a traceback, nothing sent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.cli.harness import Gpukube

BROKEN = Path(__file__).parent / "broken"
FILES = sorted(BROKEN.glob("*.yaml"))
TOTAL = re.compile(r"\d+ (error|warning|hint)s?(, \d+ (error|warning|hint)s?)*")
HEAD = re.compile(r"(\S+\.yaml):(\d+):(\d+): (error|warning|hint)\[GPK\d{3} [a-z-]+\]: \S.*")
WAYS: Sequence[tuple[str, ...]] = (("validate",), ("pool", "plan", "diff"), ("pool", "create"))


def expected_of(file: Path) -> list[tuple[int, int, str]]:
    """Read from the file's comments what is wrong with it: `# expect LINE:COLUMN code`."""
    found = re.findall(r"^# expect (\d+):(\d+) ([a-z-]+)$", file.read_text("utf-8"), re.MULTILINE)
    return [(int(line), int(column), code) for line, column, code in found]


def test_broken_specs_when_counted_then_ten_at_least() -> None:
    assert len(FILES) >= 10
    assert all(expected_of(file) for file in FILES)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_spec_when_broken_then_every_mistake_at_its_place(file: Path, gpukube: Gpukube) -> None:
    for words in WAYS:
        refused = gpukube(*words, "-f", file)
        assert (refused.code, refused.out) == (4, "")
        told = re.findall(
            rf"^{re.escape(str(file))}:(\d+):(\d+): error\[GPK\d+ ([a-z0-9-]+)\]", refused.err, re.MULTILINE
        )
        assert [(int(line), int(column), code) for line, column, code in told] == expected_of(file), refused.err
        assert "Traceback" not in refused.err
        assert gpukube.writes() == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_message_when_shown_then_each_line_has_its_form(file: Path, gpukube: Gpukube) -> None:
    for line in gpukube("validate", "-f", file).err.splitlines():
        assert HEAD.fullmatch(line) or line.startswith(("    fix: ", "    why: ")) or TOTAL.fullmatch(line), line
        assert not line.endswith((".", " "))
