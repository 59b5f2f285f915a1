"""Body of `gpukube init`: prompt for missing values, check, write, print the next commands."""

from __future__ import annotations

import errno
import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gpukube.cli.stderr import write_stderr
from gpukube.engine.starter import (
    cheapest_gpu,
    check_answers,
    flag_of,
    gpus_for,
    identity_fields,
    offered_counts,
    offered_profiles,
    render_starter,
    with_examples,
)
from gpukube.errors import SpecError, Where, render_diagnostics
from gpukube.spec.model import PROVIDERS
from gpukube.spec.wording import choices

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpukube.engine.starter import Answers

STDOUT = "-"


def start(answers: Answers, *, name: str, ask_nodes: bool, out: str, force: bool, sandbox: bool) -> None:  # noqa: PLR0913 - flags
    """Write a starter spec.

    Args:
        answers: Values of the flags.
        name: Cluster name on every cloud, from --name.
        ask_nodes: Whether the number of nodes is missing.
        out: File, or - for stdout.
        force: Overwrite the file.
        sandbox: For the emulated clouds: use example values instead of prompting.

    Raises:
        SpecError: A value is missing and there is no terminal, or a value is wrong; nothing is written.
    """
    _require_place(out, force=force)
    _require_fitting(answers)
    if sandbox:
        answers = with_examples(answers)
    missing = [] if sandbox else _missing(answers, name)
    if missing and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise _missing_flags_error(missing)
    _require_right(answers)
    if missing:
        answers = _prompt(answers, name, ask_nodes=ask_nodes)
        _require_right(answers)
    _write(render_starter(answers), out, command="gpukube --sandbox" if sandbox else "gpukube")


def _require_place(out: str, *, force: bool) -> None:
    """Refuse to overwrite a file before the first prompt."""
    if out == STDOUT:
        return
    path = Path(out)
    if path.exists() and not force:
        fix = "add --force to overwrite it, or --out with another name"
        raise SpecError(f"{out} already exists", where=Where("--out"), fix=fix, code="file-exists")
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))


def _require_fitting(answers: Answers) -> None:
    """Reject identity flags of a cloud that is not selected."""
    if not answers.providers:
        return
    fitting = {_key(page.path) for provider in answers.providers for page in identity_fields(provider)}
    for key in answers.identity:
        if key not in fitting:
            message = f"{flag_of(key)} is not for {' or '.join(answers.providers)}"
            fix = "remove it, or add its cloud with --provider"
            raise SpecError(message, where=Where(flag_of(key)), fix=fix, code="init-flag")


def _missing(answers: Answers, name: str) -> list[str]:
    """Return the flags that a starter spec needs and that are missing."""
    missing = [] if answers.providers else ["--provider"]
    missing += [] if name else ["--name"]
    for provider in answers.providers:
        keys = [_key(page.path) for page in identity_fields(provider)]
        missing += [flag_of(key) for key in keys if key not in answers.identity]
    return missing + ([] if answers.gpu else ["--gpu"])


def _missing_flags_error(missing: Sequence[str]) -> SpecError:
    verb = "is" if len(missing) == 1 else "are"
    listed = ", ".join(missing)
    fix = f"add {' '.join(f'{flag} ...' for flag in missing)}"
    if "--provider" in missing:
        clouds = (f"{cloud}: {' '.join(flag_of(_key(p.path)) for p in identity_fields(cloud))}" for cloud in PROVIDERS)
        fix += f", and by cloud {'; '.join(clouds)}"
    message = f"{listed} {verb} missing, and there is no terminal to prompt on"
    return SpecError(message, where=Where("init"), fix=fix, code="init-missing")


def _require_right(answers: Answers) -> None:
    if problems := check_answers(answers, os.environ):
        raise SpecError.of(problems)


def _key(path: str) -> str:
    return path.rpartition(".")[2]


def _prompt(answers: Answers, name: str, *, ask_nodes: bool) -> Answers:
    """Prompt for all missing values, in the order of the spec."""
    if not answers.providers:
        text = f"Cloud: {choices(PROVIDERS)}; several with commas"
        answers = _question(text, "", answers, lambda a, text: replace(a, providers=_words(text)))
        _require_fitting(answers)
    for provider in answers.providers:
        answers = _prompt_cluster(answers, provider, name)
    if not answers.owner:
        first = answers.names[answers.providers[0]]
        answers = _question("Owner of the pools", first, answers, lambda a, text: replace(a, owner=text))
    answers = _prompt_gpu(answers)
    if ask_nodes:
        answers = _question("Nodes", "1", answers, lambda a, text: replace(a, nodes=int(text)))
    if not answers.mig and not answers.replicas:
        answers = _prompt_sharing(answers)
    if not answers.spot:
        answers = _question("Spot machines (yes, no)", "no", answers, lambda a, text: replace(a, spot=_is_yes(text)))
    return answers


def _prompt_cluster(answers: Answers, provider: str, name: str) -> Answers:
    for page in identity_fields(provider):
        if (key := _key(page.path)) not in answers.identity:
            example = f", such as {page.examples[0]}" if page.examples else ""
            answers = _question(f"{provider} {key}{example}", "", answers, partial(_with_identity, key))
    if name:
        return _with_name(provider, answers, name)
    before = next(iter(answers.names.values()), "")
    return _question(f"{provider} name of the cluster", before, answers, partial(_with_name, provider))


def _with_identity(key: str, answers: Answers, text: str) -> Answers:
    return replace(answers, identity={**answers.identity, key: text})


def _with_name(provider: str, answers: Answers, text: str) -> Answers:
    return replace(answers, names={**answers.names, provider: text})


def _prompt_gpu(answers: Answers) -> Answers:
    if not answers.gpu:
        known = tuple(gpus_for(answers))
        write_stderr(f"GPUs on {', '.join(answers.providers)}: {', '.join(known)}")
        cheapest = cheapest_gpu(known, answers.providers)
        answers = _question("GPU model", cheapest, answers, lambda a, text: replace(a, gpu=text))
    counts = offered_counts(answers.gpu, answers.providers)
    if answers.count or len(counts) < 2:  # noqa: PLR2004 - nothing to choose from
        return answers
    text = f"GPUs per node ({', '.join(map(str, counts))})"
    return _question(text, str(counts[0]), answers, lambda a, text: replace(a, count=int(text)))


def _prompt_sharing(answers: Answers) -> Answers:
    profiles = offered_profiles(answers.gpu)
    ways = ("none", *(("mig",) if profiles else ()), "time-slicing")
    way = ""
    while way not in ways:
        way = _read(f"Sharing ({', '.join(ways)})", "none")
    if way == "mig":
        write_stderr(f"profiles of {answers.gpu}: {', '.join(profiles)}")
        return _question("MIG profile", profiles[0], answers, lambda a, text: replace(a, mig=text))
    if way == "time-slicing":
        return _question("Shares of each GPU", "2", answers, lambda a, text: replace(a, replicas=int(text)))
    return answers


def _question(text: str, default: str, answers: Answers, store: Callable[[Answers, str], Answers]) -> Answers:
    """Prompt until the answer is valid."""
    while True:
        written = _read(text, default)
        try:
            taken = store(answers, written)
        except ValueError:
            write_stderr(f'"{written}" is not a valid answer')
            continue
        problems = check_answers(taken, os.environ)
        if not problems:
            return taken
        write_stderr(render_diagnostics(problems))


def _read(text: str, default: str) -> str:
    """Read a line; typer would write a space to stdout, which may be the file."""
    shown = f" [{default}]" if default else ""
    sys.stderr.write(f"{text}{shown}: ")
    sys.stderr.flush()
    try:
        line = sys.stdin.readline()
    except KeyboardInterrupt:
        line = ""
    if not line:
        sys.stderr.write("\n")
        raise typer.Abort
    return line.strip() or default


def _words(text: str) -> tuple[str, ...]:
    words = tuple(dict.fromkeys(text.replace(",", " ").split()))
    if not words:
        raise ValueError(text)
    return words


def _is_yes(text: str) -> bool:
    if text.casefold() not in ("y", "yes", "n", "no"):
        raise ValueError(text)
    return text.casefold() in ("y", "yes")


def _write(text: str, out: str, *, command: str) -> None:
    if out == STDOUT:
        sys.stdout.write(text)
        return
    path = Path(out)
    temporary = path.with_name(f".{path.name}.new")
    try:
        temporary.write_text(text, "utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    write_stderr(f"wrote {out}; next:\n  gpukube validate -f {out}\n  {command} pool plan -f {out}")
