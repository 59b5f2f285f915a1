"""What Tab offers beside the names of commands and options: clusters and pools of the spec, fields, formats.

Completion runs at each Tab, on a line that is half written: it reads files and nothing else, never waits long, and
never writes to stderr, which would land in the middle of the line. What a completion needs is imported at its Tab.
"""

from __future__ import annotations

import os
import re
import threading
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer  # noqa: TC002 - typer reads annotations when it runs

from gpukube.cli.kinds import FORMATS, KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_OF_LINES: Final = frozenset({"no-manifest", "ignore-rule", "ignore-unused", "ignore-reason"})
"""Findings of `workload lint` that are no rules of manifests."""

VARIABLE: Final = "_GPUKUBE_COMPLETE"
"""Set by the shell functions that `--install-completion` writes; its value is complete_SHELL, or source_SHELL."""
_PATIENCE_S: Final = 3.0
"""A pattern over a whole disk, or a network drive that hangs: after this time Tab offers nothing."""
_MOST_BYTES: Final = 1 << 20
"""Of all files of a spec: half a second; 10,000 pools."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Names that are offered. The functions for zsh evaluate what they get: nothing else of a file may reach them."""

REPLACE: Final = ("surge", "recreate")
EXPORT_TARGETS: Final = ("aws", "az", "gcloud", "terraform", "eksctl", "karpenter")


@contextmanager
def quiet_and_short() -> Iterator[None]:
    """Answer a shell: nothing on stderr, and an end of the process after a few seconds, whatever is read then."""
    if not os.environ[VARIABLE].startswith("complete_"):  # --show-completion and --install-completion
        yield
        return
    _join_words()
    watch = threading.Timer(_PATIENCE_S, os._exit, (0,))
    watch.daemon = True
    watch.start()
    try:
        with Path(os.devnull).open("w") as nowhere, redirect_stderr(nowhere):
            yield
    finally:
        watch.cancel()


def _join_words() -> None:
    """Undo what bash does to a line: it takes "=" and ":" as words of their own (COMP_WORDBREAKS).

    --file=pools.yaml would be three words, of which typer's reader makes a file called "=" and an argument.
    """
    words, cursor = os.environ.get("COMP_WORDS", "").split("\n"), os.environ.get("COMP_CWORD", "")
    if len(words) < 2 or not cursor.isdecimal():  # noqa: PLR2004 - other shells, or words joined by blanks
        return
    at = int(cursor)
    joined: list[str] = []
    moved = at
    glue = False
    for index, word in enumerate(words):
        is_break = word in {"=", ":"} and index < at
        if is_break and word == "=" and joined[-1].startswith("--"):
            moved -= 1  # an option and its value
        elif (is_break or glue) and index < at:
            joined[-1] += word
            moved -= 1
            glue = is_break
        else:
            joined.append(word)
            glue = False
    os.environ["COMP_WORDS"], os.environ["COMP_CWORD"] = "\n".join(joined), str(moved)


def one_of(*words: str) -> Callable[[str], list[str]]:
    """Offer fixed words."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def complete_cluster(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the keys of the spec's clusters."""
    return [key for key in _names(context)[0] if key.startswith(incomplete)]


def complete_pool(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the names of the spec's pools."""
    return [name for name in _names(context)[1] if name.startswith(incomplete)]


def _names(context: typer.Context) -> tuple[list[str], list[str]]:
    """List the clusters and pools of the files of -f, on the line so far, or of GPUKUBE_FILE; broken files have few."""
    from gpukube.spec.source.files import read_regular
    from gpukube.spec.source.names import names_in

    files: list[str] = []
    level = context
    while not files and level is not None:  # `pool plan -f X diff --pool`: the group has the file
        files = list(level.params.get("files") or ())
        level = level.parent  # type: ignore[assignment]  # typer declares the parent as a context of its own click
    clusters: dict[str, None] = {}
    pools: dict[str, None] = {}
    # Shells hand over the words as they stand: "~" and "$HOME" are not replaced.
    paths = [os.path.expandvars(os.path.expanduser(file)) for file in files]  # noqa: PTH111 - patterns are no paths
    for text in read_regular(paths, most=_MOST_BYTES):
        found = names_in(text)
        clusters |= dict.fromkeys(filter(_PLAIN.fullmatch, found.clusters))
        pools |= dict.fromkeys(filter(_PLAIN.fullmatch, found.pools))
    return list(clusters), list(pools)


def complete_field(incomplete: str) -> list[str]:
    """Offer the fields that begin so, one level further; those of a pool without "pools." too.

    A field alone that has fields below it comes with them: else the shell would take it for complete.
    """
    from gpukube.cli.field_names import FIELD_NAMES

    if found := _one_level(FIELD_NAMES.split(), incomplete):
        return found
    from gpukube.spec.reference.fieldguide import field_names  # a field that another package's provider brings

    return _one_level(field_names(), incomplete)


def _one_level(fields: tuple[str, ...] | list[str], incomplete: str) -> list[str]:
    names = [*fields, *(name.removeprefix("pools.") for name in fields if name.startswith("pools."))]
    matching = [name for name in names if name.startswith(incomplete)]
    depth = incomplete.count(".") + 1
    found = list(dict.fromkeys(".".join(name.split(".")[:depth]) for name in matching))
    if len(found) == 1:
        found = list(dict.fromkeys(".".join(name.split(".")[: depth + 1]) for name in matching))
    return found


def complete_format(context: typer.Context, incomplete: str) -> list[str]:
    """Offer the formats of the command that is on the line; all where any document can be shown (`report`)."""
    path = context.command_path.removeprefix("gpukube ")
    every = dict.fromkeys(name for names in FORMATS.values() for name in names)
    possible = every if path.startswith("report ") else FORMATS.get(KINDS.get(path, ""), ())
    return [name for name in possible if name.startswith(incomplete)]


def complete_lint_rule(incomplete: str) -> list[str]:
    """Offer the rules of `workload lint`, by number, and by name where no number begins so."""
    from gpukube.codes import WORKLOADS

    rules = {number: name for name, (number, _) in WORKLOADS.items() if name not in _OF_LINES}
    return [word for word in (*rules, *rules.values()) if word.startswith(incomplete)]
