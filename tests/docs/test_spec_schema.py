"""The page of the spec does what it says, and the published JSON Schema is that of the models; all examples fit it."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from gpukube.__main__ import main
from tools.spec_docs import PAGE, SCHEMA, schema_file

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
Node = dict[str, Any]
PUBLISHED: Node = json.loads(SCHEMA.read_text("utf-8"))
VALIDATOR = Draft202012Validator(PUBLISHED)


def test_published_schema_when_models_change_then_it_is_written_again() -> None:
    assert SCHEMA.read_text("utf-8") == schema_file(), "run: python tools/spec_docs.py"


@pytest.mark.parametrize("file", EXAMPLES, ids=[file.stem for file in EXAMPLES])
def test_example_file_when_judged_by_the_published_schema_then_fits(file: Path) -> None:
    for document in yaml.safe_load_all(file.read_text("utf-8")):
        VALIDATOR.validate(document)


SHELL = "".join(re.findall(r"```sh\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL))
COMMANDS = [line for line in SHELL.replace("\\\n", "").splitlines() if line]


@pytest.mark.parametrize("line", COMMANDS)
def test_command_of_the_page_when_run_then_succeeds(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(line, comments=True)[1:]) == 0
    assert "".join(capsys.readouterr())


def test_commands_of_the_page_when_counted_then_none_was_overlooked() -> None:
    assert len(COMMANDS) == 6


def exemplified(node: object, path: str = "") -> Iterator[tuple[str, Node]]:
    if isinstance(node, dict):
        if isinstance(node.get("examples", node.get("defaultSnippets")), list):
            yield path, node
        for key, inner in node.items():
            yield from exemplified(inner, f"{path}/{key}")
    elif isinstance(node, list):
        for index, inner in enumerate(node):
            yield from exemplified(inner, f"{path}/{index}")


FIELDS = dict(exemplified(PUBLISHED))


@pytest.mark.parametrize("path", FIELDS)
def test_example_of_a_field_when_judged_by_the_field_then_fits(path: str) -> None:
    field = FIELDS[path]
    judge = Draft202012Validator({**field, "$defs": PUBLISHED["$defs"]})
    examples = [*field.get("examples", ()), *(snippet["body"] for snippet in field.get("defaultSnippets", ()))]
    assert examples
    for example in examples:
        judge.validate(example)
