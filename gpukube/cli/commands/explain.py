"""`gpukube explain ...`: what a field of the spec means, and why gpukube decides as it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gpukube.cli.command_lists import Group
from gpukube.cli.completion import complete_field, complete_pool
from gpukube.cli.options import END, SPEC, Choices, takes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from typer._click.core import Context
    from typer._click.shell_completion import CompletionItem

    from gpukube.cli.rendering.text import Line
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.engine.documents.shapes.explanation import OwnerDocument
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.errors import Finding


class _Fields(Group):
    """A group whose first word may be a field: `explain pools.gpu` means `explain field pools.gpu`."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Treat an unknown command as a field."""
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["field", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands, or fields if no command matches."""
        found = super().shell_complete(ctx, incomplete)
        if found or not incomplete or incomplete.startswith("-"):
            return found
        return self.commands["field"].params[0].shell_complete(ctx, incomplete)


app = typer.Typer(
    cls=_Fields,
    help="Explain a field of the spec, or who owns driver and plugin.",
    subcommand_metavar="FIELD | COMMAND [ARGS]...",
    no_args_is_help=True,
)


@app.command("field")
@takes("output", "verbose")
def explain(
    choices: Choices,
    field: Annotated[
        str,
        typer.Argument(
            metavar="FIELD",
            show_default=False,
            autocompletion=complete_field,
            help="pools.sharing.mig.profile, sharing.mig, pool.capacity, defaults.taints; pools lists all fields.",
        ),
    ],
    *,
    recursive: Annotated[
        bool, typer.Option("--recursive", "-r", help="Also show the fields below it, at all levels.")
    ] = False,
) -> None:
    """Explain a field of the spec. Shows type, default, choices, examples, and its effect on each cloud.

    `explain FIELD` is the short form. Makes no API calls. -v adds sources.
    """  # fmt: skip
    from gpukube.engine.documents.field_guide import field_document

    _require_format(choices, "FieldExplanation")
    document = field_document(field, recursive=recursive)
    if _is_data(document, choices):
        return
    from gpukube.cli.rendering.field import render_field

    _write(render_field(document, recursive=recursive, sources=choices.verbose))


@app.command()
@takes(*SPEC, "clusters", "live", "output", *END)
def owner(
    choices: Choices,
    pool: Annotated[
        str,
        typer.Argument(
            metavar="POOL", show_default=False, autocompletion=complete_pool, help="Name of the pool in the spec."
        ),
    ],
    *,
    live: Annotated[bool, typer.Option("--live", help="Also read the clusters.")] = False,
) -> None:
    """Show who owns driver and device plugin on a pool's nodes. Lists facts, rules, settings, alternatives.

    Uses the spec only and makes no API calls; --live also counts what is in the clusters. -v adds sources.
    Exit codes: 0 explained, 4 the pool is rejected.
    """
    from gpukube.engine import offline
    from gpukube.engine.documents.reasons import owner_document
    from gpukube.engine.plan.ownership import explain_owners, has_operator
    from gpukube.engine.plan.prepare import Filters
    from gpukube.errors import ExitCode, SpecError, Where

    _require_format(choices, "OwnerExplanation")
    if not choices.files:
        raise SpecError("no spec given", where=Where("--file"), fix="add -f pools.yaml", code="no-file")
    specs = offline.load(choices.files, sets=choices.sets)
    seen, against = _look(choices, pool) if live else ({}, {})
    found = explain_owners(specs, pool, operator_live=[key for key, item in seen.items() if has_operator(item)])
    filters = Filters(tuple(choices.clusters))
    selected = [item for item in found if filters.takes_cluster(item.decision.target.cluster.key)]
    if not selected:
        keys = ", ".join(item.decision.target.cluster.key for item in found)
        message = f"--cluster {' '.join(choices.clusters)} matches no cluster of {pool}"
        raise SpecError(message, where=Where("--cluster"), fix=f"choose from: {keys}", code="no-match")
    _show(owner_document(selected, seen, against), choices)
    raise typer.Exit(ExitCode.DONE if all(item.desired for item in selected) else ExitCode.BAD_INPUT)


def _look(choices: Choices, pool: str) -> tuple[dict[str, Snapshot], dict[str, list[Finding]]]:
    """Plan the pool's clusters; return snapshots, and errors that block the pool, by cluster key."""
    from dataclasses import replace

    from gpukube.cli.stage import open_job
    from gpukube.engine import looking

    with open_job(replace(choices, pools=(pool,)), "OwnerExplanation") as job:
        plans = looking.plan(job.prepared, job.run)
    for plan in plans:
        if error := plan.error or plan.unreachable:
            raise error
    return (
        {plan.cluster.key: plan.seen for plan in plans if plan.seen},
        {plan.cluster.key: _blocking_errors(plan, pool) for plan in plans},
    )


def _blocking_errors(plan: ClusterPlan, pool: str) -> list[Finding]:
    """Return the errors that block this pool or its cluster; the explanation covers the solver's own."""
    from gpukube.core.owners import OWNER_REFUSED

    places = {plan.cluster.key, f"{plan.cluster.key}/{pool}"}
    errors = [found for found in plan.diagnostics if found.severity == "error" and found.code != OWNER_REFUSED]
    return [found for found in errors if found.where.source in places]


def _show(document: OwnerDocument, choices: Choices) -> None:
    if _is_data(document, choices):
        return
    from gpukube.cli.rendering.owner import render_owners

    _write(render_owners(document, sources=choices.verbose))


def _require_format(choices: Choices, kind: str) -> None:
    from gpukube.cli import output as out

    out.require_format(choices.output, kind)


def _is_data(document: Mapping[str, object], choices: Choices) -> bool:
    """Write the document as JSON or YAML if that format is requested, and return whether it is."""
    if choices.output not in ("json", "yaml"):
        return False
    from gpukube.cli.formats.data import write_data

    write_data(document, choices.output)
    return True


def _write(lines: Iterable[Line]) -> None:
    import sys

    from gpukube.cli import output as out

    out.show_lines(lines, sys.stdout)
