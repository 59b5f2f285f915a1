"""docs/formats.md says what the commands write: one table, compared with the code and with every command's help."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gpukube.__main__ import main
from gpukube.cli.app import command_line
from gpukube.cli.formats.markdown import COMMENT, SUMMARY
from gpukube.cli.kinds import FORMATS, KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

PAGE: Final = (Path(__file__).parents[2] / "docs" / "formats.md").read_text("utf-8")
WRITTEN: Final = {path: tuple(FORMATS[kind]) for path, kind in KINDS.items()}


def rows(heading: str) -> Iterator[list[str]]:
    """Return the cells of a table's first two columns, as what stands in code spans."""
    for line in PAGE.partition(f"| {heading}")[2].partition("\n\n")[0].splitlines()[2:]:
        yield [re.findall(r"`([^`]+)`", cell) for cell in line.split("|")[1:3]]  # type: ignore[misc]


def test_table_when_compared_then_what_every_command_writes() -> None:
    told = {command: tuple(formats) for commands, formats in rows("Command |") for command in commands}
    assert told == WRITTEN


def test_formats_when_listed_then_each_is_explained() -> None:
    explained = [name for names, _ in rows("Format |") for name in names]
    assert sorted(explained) == sorted({name for formats in FORMATS.values() for name in formats})
    assert f"{COMMENT:,} characters" in PAGE
    assert f"{SUMMARY:,} bytes" in PAGE


def test_help_when_shown_then_names_the_formats_of_its_command() -> None:
    for path, formats in WRITTEN.items():
        command: Any = command_line()
        for word in path.split():
            command = command.commands[word]
        (output,) = [parameter for parameter in command.params if parameter.name == "output"]
        assert output.help == f"{formats[0]} (default), {', '.join(formats[1:])}.", path


def test_plain_lines_when_validate_and_lint_write_them_then_the_expression_of_the_page_finds_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (expression,) = re.findall(r"```text\n(\^.*\$)\n```", PAGE)
    spec, pod = tmp_path / "pools.yaml", tmp_path / "pod.yaml"
    spec.write_text(
        "apiVersion: gpukube.io/v1alpha1\nkind: GPUNodePools\nmetadata: {name: x}\npools: []\nclusters: 1\n"
    )
    pod.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: one}\n"
        "spec: {containers: [{name: main, resources: {requests: {nvidia.com/gpu: 1}}}]}\n"
    )
    for words, file, severities in (
        (("validate", "-f", str(spec)), spec, {"error"}),
        (("workload", "lint", str(pod)), pod, {"error", "warning"}),
    ):
        assert main(list(words)) == 4
        lines = capsys.readouterr().err.splitlines()
        found = [match for line in lines if (match := re.match(expression, line))]
        assert len(found) == sum(not line.startswith(" ") for line in lines) - 1  # the last line counts them
        assert {match[1] for match in found} == {str(file)}
        assert {match[4] for match in found} == severities
        assert all(int(match[2]) > 0 < int(match[3]) and match[7] for match in found)
