"""`gpukube explain ...`: why gpukube decides as it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gpukube.cli.options import (
    ClusterOption,
    FileOption,
    OutputOption,
    ParallelismOption,
    SandboxOption,
    SetOption,
    VerboseOption,
    choices,
)

if TYPE_CHECKING:
    from gpukube.cli.options import Choices
    from gpukube.cluster.sighting import Sighting
    from gpukube.engine.owners import Explained
    from gpukube.engine.planning import ClusterPlan
    from gpukube.engine.reasons import OwnerDocument
    from gpukube.errors import Diagnostic

__all__ = ["app"]

app = typer.Typer(help="Explain why gpukube decides as it does.", no_args_is_help=True)


@app.callback()
def _explain() -> None:
    """Keep `owner` a command of its own."""


@app.command()
def owner(
    context: typer.Context,
    pool: Annotated[str, typer.Argument(metavar="POOL", show_default=False, help="The pool's name in the spec.")],
    *,
    files: FileOption,
    sets: SetOption,
    clusters: ClusterOption,
    live: Annotated[bool, typer.Option("--live", help="Look into the clusters too, at what is there already.")] = False,
    output: OutputOption,
    parallelism: ParallelismOption,
    sandbox: SandboxOption,
    verbose: VerboseOption,
) -> None:
    """Tell who owns driver and device plugin on a pool's nodes: facts, rules, what is set, what would be refused.

    By the spec alone, without any call; --live counts what is on the clusters. -v names the sources.
    Exit codes: 0 told, 4 the spec's pool is refused.
    """
    _tell(choices(context, locals()), pool, live=live)


def _tell(choices: Choices, pool: str, *, live: bool) -> None:
    """Explain one pool on the clusters that are meant."""
    from gpukube import api
    from gpukube.cli import output as out
    from gpukube.engine.owners import explain_owners, has_operator
    from gpukube.engine.reasons import owner_document
    from gpukube.errors import ExitCode, SpecError, Where

    out.require_format(choices.output, "Validation")
    if not choices.files:
        raise SpecError("no spec is given", where=Where("--file"), fix="add -f pools.yaml", code="no-file")
    specs = api.load(choices.files, sets=choices.sets)
    seen, against = _look(choices, pool) if live else ({}, {})
    found = explain_owners(specs, pool, operator_live=[key for key, item in seen.items() if has_operator(item)])
    meant = [item for item in found if _is_meant(item, choices)]
    if not meant:
        keys = ", ".join(item.decision.target.cluster.key for item in found)
        message = f"--cluster {' '.join(choices.clusters)} matches no cluster of {pool}"
        raise SpecError(message, where=Where("--cluster"), fix=f"choose from: {keys}", code="no-match")
    _show(owner_document(meant, seen, against), choices)
    raise typer.Exit(ExitCode.DONE if all(item.desired for item in meant) else ExitCode.BAD_INPUT)


def _is_meant(item: Explained, choices: Choices) -> bool:
    from gpukube import api

    return api.Filters(tuple(choices.clusters)).takes_cluster(item.decision.target.cluster.key)


def _look(choices: Choices, pool: str) -> tuple[dict[str, Sighting], dict[str, list[Diagnostic]]]:
    """Plan the pool's clusters; what they hold, and what the plan has against the pool, by cluster key."""
    from dataclasses import replace

    from gpukube import api
    from gpukube.cli.stage import open_job

    with open_job(replace(choices, pools=[pool]), "Validation") as job:
        plans = api.plan(job.prepared, job.run)
    for plan in plans:
        if error := plan.error or plan.unreachable:
            raise error
    return (
        {plan.cluster.key: plan.seen for plan in plans if plan.seen},
        {plan.cluster.key: _against(plan, pool) for plan in plans},
    )


def _against(plan: ClusterPlan, pool: str) -> list[Diagnostic]:
    """Take what stops this pool or its cluster; the solver's own refusals are told by the explanation."""
    places = {plan.cluster.key, f"{plan.cluster.key}/{pool}"}
    errors = [found for found in plan.diagnostics if found.severity == "error" and found.code != "owner"]
    return [found for found in errors if found.where.source in places]


def _show(document: OwnerDocument, choices: Choices) -> None:
    import json
    import sys

    if choices.output == "json":
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        return
    if choices.output == "yaml":
        import yaml

        yaml.safe_dump(json.loads(json.dumps(document)), sys.stdout, sort_keys=False, allow_unicode=True)
        return
    from rich.console import Console

    from gpukube.cli import output as out
    from gpukube.cli.rendering.owner import render_owners

    console = Console(file=sys.stdout, highlight=False, emoji=False)
    out.write_lines(render_owners(document, sources=choices.verbose), console, wrap=sys.stdout.isatty())
