"""Body of `gpukube doctor --print-policy`: compute the permissions, show them, write files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from gpukube.cli import output as out
from gpukube.cli.stage import prepare_choices
from gpukube.core.permissions import EXTRAS
from gpukube.engine.permissions.policies import describe_policies, file_text
from gpukube.errors import SpecError, Where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cli.options import Choices
    from gpukube.core.permissions import Extra, PolicyLevel

_LEVELS: Final = ("plan", "apply")


def print_policies(choices: Choices, level: str, extras: Sequence[str], directory: str, *, fix: bool) -> None:
    """Show the policies, or write their files and show the commands that apply them.

    Raises:
        SpecError: The specs or the command line are wrong.
        OSError: A file cannot be written.
    """
    _require(level, "--print-policy", _LEVELS)
    for extra in extras:
        _require(extra, "--with", tuple(EXTRAS))
    if fix:
        message = "--fix cannot be combined with --print-policy"
        raise SpecError(message, where=Where("--fix"), fix="remove one of them", code="choice")
    out.require_format(choices.output, "Permissions")
    _, prepared = prepare_choices(choices)
    document = describe_policies(prepared, cast("PolicyLevel", level), cast("Sequence[Extra]", extras), directory)
    if directory:
        Path(directory).mkdir(parents=True, exist_ok=True)
        for policy in document["policies"]:
            (Path(directory) / policy["file"]).write_text(file_text(policy["file"], policy["documents"]), "utf-8")
    out.show(document, choices.output, verbose=choices.verbose)


def _require(value: str, option: str, known: Sequence[str]) -> None:
    if value not in known:
        message = f'"{value}" is not a value of {option}' if value else f"{option} is missing"
        words = " or ".join((", ".join(known[:-1]), known[-1]))
        raise SpecError(message, where=Where(option), fix=f"set {option} to {words}", code="choice")
