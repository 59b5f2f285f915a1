"""Every gpukube command that a message names is one that the command line takes: its words, and its options."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from typer.core import TyperGroup

from gpukube.cli.app import command_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typer._click.core import Command

ROOT: Final = Path(__file__).parents[3]
TREE: Final = command_line()
ENDS: Final = re.compile(r"[;,:()\n`\"]| - |\.(?: |$)")
"""What ends a command in a sentence."""
NAMED: Final = re.compile(r"gpukube(?! import)[\s\"']")
"""What a source with such a text has in it; most have not, and parsing takes its time."""


def texts_of(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Return the texts of a module, what is filled in later as X; no docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    passed = {
        id(node.body[0].value)
        for node in ast.walk(module)
        if isinstance(node, documented) and ast.get_docstring(node) and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(module):
        if id(node) in passed:
            continue
        if isinstance(node, ast.JoinedStr):
            passed |= {id(part) for part in ast.walk(node) if part is not node and isinstance(part, ast.Constant)}
            yield (
                node.lineno,
                "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def commands_in(text: str) -> Iterator[list[str]]:
    """Find the commands in a sentence: `gpukube`, a word of the command line, and what follows."""
    for found in re.finditer(r"\bgpukube ([a-z]+)\b(?! =)", text):
        if found.group(1) in TREE.commands:
            yield ENDS.split(text[found.start(1) :], maxsplit=1)[0].split()


def what_is_wrong(words: list[str]) -> str:
    """Follow the words of a command down the command line; "" when it would be taken."""
    command: Command = TREE
    while isinstance(command, TyperGroup) and words and not words[0].startswith("-"):
        below = command.commands.get(words[0]) or command.commands.get("field")  # explain FIELD is explain field FIELD
        if below is None:
            return f"no command {words[0]}"
        command = below
        words = words[1:]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    unknown = [word for word in words if word.startswith("-") and word != "-" and word.partition("=")[0] not in known]
    return f"no option {', '.join(unknown)}" if unknown else ""


@cache
def printed() -> list[tuple[str, str]]:
    """Find the commands in all texts of the product: where each stands, and its words."""
    return [
        (f"{path.relative_to(ROOT)}:{line}", " ".join(words))
        for folder in ("gpukube", "providers")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "sandbox" not in path.relative_to(ROOT).parts and NAMED.search(source := path.read_text("utf-8"))
        for line, text in texts_of(ast.parse(source))
        for words in commands_in(text)
    ]


def test_commands_when_looked_for_in_messages_then_many_are_found() -> None:
    assert len(printed()) > 40


def test_command_when_a_message_names_it_then_the_command_line_takes_it() -> None:
    assert [(where, command, wrong) for where, command in printed() if (wrong := what_is_wrong(command.split()))] == []


@pytest.mark.parametrize("command", ["pool mend", "pool create --never", "catalog lists"])
def test_command_when_there_is_none_then_it_is_noticed(command: str) -> None:
    assert what_is_wrong(command.split())
