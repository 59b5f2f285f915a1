"""What `gpukube workload lint` does: check manifests, show what is found, choose the exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from gpukube.cli import output as out
from gpukube.engine.documents.lint import lint_document
from gpukube.engine.workloads import lint_files
from gpukube.errors import ExitCode, SpecError, Where
from gpukube.rule_ids import code_of, rule_id
from gpukube.spec.wording import did_you_mean, nearest, quoted
from gpukube.workload.lint.registry import RULES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cli.options import Choices
    from gpukube.workload.offers import PoolOffer


def lint(choices: Choices, paths: Sequence[str]) -> None:
    """Check manifests.

    Args:
        choices: Of the command line.
        paths: As written.

    Raises:
        SpecError: No manifest is named, or the spec is wrong.
    """
    out.require_format(choices.output, "Lint")
    if not paths:
        raise SpecError("no manifest given", where=Where("FILE"), fix="add a file, or - for stdin", code="no-file")
    found, _ = lint_files(paths, offers=_offers(choices), strict=choices.strict)
    document = lint_document(found)
    if choices.output != "github":  # its annotations stand in the log themselves
        out.warn(found.findings)
    if found.is_right or choices.output not in {"table", "text"}:
        out.show(document, choices.output)
    else:
        out.show_on_stderr(document)
    raise typer.Exit(ExitCode.DONE if found.is_right else ExitCode.BAD_INPUT)


def _offers(choices: Choices) -> tuple[PoolOffer, ...] | None:
    if not choices.files:
        return None
    from gpukube.engine.offers import spec_offers  # the models of the spec, and the rules of its clouds

    return spec_offers(choices.files, sets=choices.sets, clusters=choices.clusters)


def show_rules(name: str) -> None:
    """List all rules, or explain the one of a number or name.

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
