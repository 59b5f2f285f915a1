"""Tab completion beyond command and option names: clusters and pools of the spec, fields, formats.

Completion runs at each Tab, on a half-written line: it only reads files, never waits long, and never writes to
stderr, which would land in the middle of the line. Its dependencies are imported only at Tab.
"""

from __future__ import annotations

import os
import re
import threading
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer  # noqa: TC002 - typer reads annotations at run time

from gpukube.cli.kinds import FORMATS, KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_OF_LINES: Final = frozenset({"no-manifest", "ignore-rule", "ignore-unused", "ignore-reason"})
"""Findings of `workload lint` that are not about manifests."""

VARIABLE: Final = "_GPUKUBE_COMPLETE"
"""Variable set by the shell functions that `--install-completion` writes: complete_SHELL or source_SHELL."""
_PATIENCE_S: Final = 3.0
"""Seconds after which Tab offers nothing, for a pattern over a whole disk or a network drive that hangs."""
_MOST_BYTES: Final = 1 << 20
"""Maximum size of all files of a spec: half a second of reading, or 10,000 pools."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Pattern of names that may be offered. The zsh functions evaluate their input, so nothing else may reach them."""

REPLACE: Final = ("surge", "recreate")
EXPORT_TARGETS: Final = ("aws", "az", "gcloud", "terraform", "eksctl", "karpenter")


@contextmanager
def quiet_and_short() -> Iterator[None]:
    """Write nothing to stderr, and end the process after a few seconds, even in the middle of a read."""
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
    """Undo how bash splits a line: "=" and ":" become separate words (COMP_WORDBREAKS).

    --file=pools.yaml would be three words, which typer would parse as a file called "=" and an argument.
    """
    words, cursor = os.environ.get("COMP_WORDS", "").split("\n"), os.environ.get("COMP_CWORD", "")
    if len(words) < 2 or not cursor.isdecimal():  # noqa: PLR2004 - other shells, or words joined by spaces
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
    """Return a completer for fixed words."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def complete_cluster(context: typer.Context, incomplete: str) -> list[str]:
    """Complete keys of the spec's clusters."""
    return [key for key in _names(context)[0] if key.startswith(incomplete)]


def complete_pool(context: typer.Context, incomplete: str) -> list[str]:
    """Complete names of the spec's pools."""
    return [name for name in _names(context)[1] if name.startswith(incomplete)]


def _names(context: typer.Context) -> tuple[list[str], list[str]]:
    """Return clusters and pools of the files of -f, or of GPUKUBE_FILE; a broken file can yield fewer."""
    from gpukube.spec.source.files import read_regular
    from gpukube.spec.source.names import names_in

    files: list[str] = []
    level = context
    while not files and level is not None:  # `pool plan -f X diff --pool`: the file is an option of the group
        files = list(level.params.get("files") or ())
        level = level.parent  # type: ignore[assignment]  # typer declares the parent as a context of its bundled click
    clusters: dict[str, None] = {}
    pools: dict[str, None] = {}
    # Shells pass words unexpanded: "~" and "$HOME" are not replaced.
    paths = [os.path.expandvars(os.path.expanduser(file)) for file in files]  # noqa: PTH111 - patterns are no paths
    for text in read_regular(paths, most=_MOST_BYTES):
        found = names_in(text)
        clusters |= dict.fromkeys(filter(_PLAIN.fullmatch, found.clusters))
        pools |= dict.fromkeys(filter(_PLAIN.fullmatch, found.pools))
    return list(clusters), list(pools)


def complete_topic(incomplete: str) -> list[str]:
    """Complete names of pages of the documentation."""
    from gpukube.cli.pages import list_pages

    return [page.topic for page in list_pages() if page.topic.startswith(incomplete)]


def complete_field(incomplete: str) -> list[str]:
    """Complete the next level of fields; fields of a pool match without "pools." too.

    A single match that has subfields is offered with them: otherwise the shell would treat it as complete.
    """
    from gpukube.cli.field_names import FIELD_NAMES

    if found := _one_level(FIELD_NAMES.split(), incomplete):
        return found
    from gpukube.spec.reference.fieldguide import field_names  # includes fields of providers from other packages

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
    """Complete formats of the command on the line; all formats if any document can be shown (`report`)."""
    path = context.command_path.removeprefix("gpukube ")
    every = dict.fromkeys(name for names in FORMATS.values() for name in names)
    possible = every if path.startswith("report ") else FORMATS.get(KINDS.get(path, ""), ())
    return [name for name in possible if name.startswith(incomplete)]


def complete_lint_rule(incomplete: str) -> list[str]:
    """Complete rules of `workload lint`, by number, or by name if no number matches."""
    from gpukube.codes import WORKLOADS

    rules = {number: name for name, (number, _) in WORKLOADS.items() if name not in _OF_LINES}
    return [word for word in (*rules, *rules.values()) if word.startswith(incomplete)]
