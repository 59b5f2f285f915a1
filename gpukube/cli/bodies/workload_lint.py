"""Body of `gpukube workload lint`: check manifests, show the findings, choose the exit code."""

from __future__ import annotations

import difflib
import os
import sys
from typing import TYPE_CHECKING

import typer

from gpukube.cli import output as out
from gpukube.cli.stderr import write_stderr
from gpukube.engine.documents.validation import lint_document
from gpukube.engine.workloads import read_manifest_files, write_fixed
from gpukube.errors import ExitCode, SpecError, Where
from gpukube.rule_ids import code_of, rule_id
from gpukube.spec.wording import did_you_mean, nearest, quoted
from gpukube.workload.lint.check import lint as check
from gpukube.workload.lint.registry import RULES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cli.options import Choices
    from gpukube.spec.source.files import Source
    from gpukube.workload.offers import PoolOffer


def lint(choices: Choices, paths: Sequence[str], *, fix: bool = False, diff: bool = False) -> None:
    """Check manifests, and fix them if requested.

    Args:
        choices: The command line.
        paths: Paths as written on the command line.
        fix: Write safe fixes; for stdin to stdout.
        diff: Show what --fix would write.

    Raises:
        SpecError: No manifest is given, or the spec is wrong.
    """
    out.require_format(choices.output, "Lint")
    if not paths:
        raise SpecError("no manifest given", where=Where("FILE"), fix="add a file, or - for stdin", code="no-file")
    writes = diff or (fix and "-" in paths)
    if writes and choices.output not in {"table", "text"}:
        message = f"-o {choices.output} and the fixed text would both be written to stdout"
        raise SpecError(message, where=Where("--output"), fix="remove -o", code="output-format")
    sources, unreadable = read_manifest_files(paths)
    offers = _offers(choices)
    if fix or diff:
        sources = _fix(sources, offers, diff=diff)
    found = check(sources, offers=offers, strict=choices.strict, problems=unreadable)
    document = lint_document(found)
    if choices.output != "github":  # its annotations are shown in the log anyway
        out.warn(found.findings)
    if (found.is_right and not writes) or choices.output not in {"table", "text"}:
        out.show(document, choices.output)
    else:
        out.show_on_stderr(document)
    raise typer.Exit(ExitCode.DONE if found.is_right else ExitCode.BAD_INPUT)


def _fix(sources: Sequence[Source], offers: Sequence[PoolOffer] | None, *, diff: bool) -> tuple[Source, ...]:
    """Fix manifests: write them, or show the diff."""
    from gpukube.workload.lint.repair import fix  # imported only for a fix

    fixed = fix(sources, offers=offers)
    if diff:
        for old, new in zip(sources, fixed, strict=True):
            lines = (old.text.splitlines(keepends=True), new.text.splitlines(keepends=True))
            for line in difflib.unified_diff(*lines, old.name, f"{new.name} (fixed)"):
                sys.stdout.write(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
        return tuple(sources)
    files = [(old, new) for old, new in zip(sources, fixed, strict=True) if old.name != "-"]
    for name in write_fixed(*map(tuple, zip(*files, strict=True))) if files else ():
        write_stderr(f"fixed {name}")
    sys.stdout.writelines(source.text for source in fixed if source.name == "-")
    return fixed


def _offers(choices: Choices) -> tuple[PoolOffer, ...] | None:
    if not choices.files:
        return None
    from gpukube.catalog.learning import learn_refreshed
    from gpukube.engine.offers import spec_offers  # imports the models of the spec and the rules of its clouds

    learn_refreshed(os.environ, sandbox=choices.sandbox)
    return spec_offers(choices.files, sets=choices.sets, clusters=choices.clusters)


def show_rules(name: str) -> None:
    """List all rules, or explain the one with this number or name.

    Raises:
        SpecError: There is no such rule.
    """
    if not name:
        widest = max(map(len, RULES))
        lines = [f"{rule_id(code)}  {code:<{widest}}  {rule.severity:<7}  {rule.title}" for code, rule in RULES.items()]
    elif rule := RULES.get(code_of(name) or ""):
        lines = [
            f"{rule_id(rule.code)} {rule.code} ({rule.severity})",
            rule.title,
            f"    why: {rule.why}",
            f"    fix: {rule.fix}",
            f"    source: {rule.source}",
        ]
    else:
        near = nearest(name, (*RULES, *map(rule_id, RULES)))
        raise SpecError(
            f"{quoted(name)} is not a rule of manifests",
            where=Where("--explain"),
            fix=did_you_mean(near) if near else "gpukube workload lint --list-rules lists them",
            code="no-rule",
        )
    sys.stdout.writelines(f"{line}\n" for line in lines)
