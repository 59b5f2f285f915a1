"""Bodies of the pool commands that plan and change: build the run, call the API, show the result, set the exit code.

Out of scope: read-only commands (pool_views), which import nothing from here.
"""

from __future__ import annotations

import shlex
import sys
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from gpukube.cli import output as out
from gpukube.cli.bodies.first_pods import print_first_pods
from gpukube.cli.bodies.plan_prices import days_of, plan_prices, warn_old_prices, with_price_limits
from gpukube.cli.options import Choices
from gpukube.cli.rendering.plan import endless_drains
from gpukube.cli.rendering.plan_parts import endless_words, leaving_lines
from gpukube.cli.stage import confirm, note_run, open_job
from gpukube.cli.stderr import write_stderr
from gpukube.engine import commands, looking
from gpukube.engine.change.apply import Consent
from gpukube.engine.change.delete import Deletion
from gpukube.engine.change.draining import DrainConsent
from gpukube.engine.change.pool_drain import PoolDrain
from gpukube.engine.change.probing import Probing
from gpukube.engine.change.releasing import Releasing
from gpukube.engine.change.scale import Scaling, Size
from gpukube.engine.documents.plan import plan_document
from gpukube.engine.documents.plan_parts import leaving_part
from gpukube.engine.documents.report import report_document
from gpukube.engine.documents.summary import plan_summary
from gpukube.engine.plan.drain_forecast import forecast_drain
from gpukube.engine.plan.planning import ClusterPlan, Scope
from gpukube.engine.run.report import exit_code
from gpukube.engine.saved import PlanOptions, SavedPlan, provenance, read_plan, saved_plan, write_plan
from gpukube.errors import ExitCode, SpecError, Where
from gpukube.visible import visible_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpukube.cli.stage import Job
    from gpukube.core.values import PoolPlan, ReplaceHow
    from gpukube.engine.documents.shapes.plan import PlanDocument
    from gpukube.engine.run.report import ClusterReport
    from gpukube.engine.run.session import Session


def plan(choices: Choices) -> None:
    """Show the plan; with --out also save it."""
    _require_plan_options(choices)
    with open_job(choices, "Plan") as job:
        plans = looking.plan(job.prepared, job.run, replace(_scope(choices), quotas=True))
        prices = plan_prices(choices, job, plans)
        shown = plans
        if choices.live:
            from gpukube.cli.bodies.plan_capacity import with_alternatives  # only this option calls them

            shown = with_alternatives(choices, job, plans)
    document = plan_document(
        with_price_limits(shown, prices, job.run.clock.now()),
        job.prepared.warnings,
        silenced=job.prepared.silenced,
        not_read=() if choices.prune else job.prepared.unused,
        prices=prices,
    )
    code = looking.plan_exit_code(plans)
    note_run(document, job, code)
    out.show(_as_shown(document, plans, choices.output), choices.output, verbose=choices.verbose)
    warn_old_prices(choices, days_of(document))
    if choices.out:
        saved = saved_plan(plans, job.specs, PlanOptions(**_same_names(PlanOptions, choices)), provenance(job.run))
        write_plan(saved, choices.out)
        what = f"saved, shard {choices.shard} only" if choices.shard else "saved"
        write_stderr(f"{what}; to apply exactly this: gpukube pool apply {shlex.quote(choices.out)}")
    raise typer.Exit(code)


def _as_shown(document: PlanDocument, plans: Sequence[ClusterPlan], output: str) -> PlanDocument:
    """Add the data that only one format shows."""
    if output != "terraform-json":
        return document
    from gpukube.engine.documents.resources import PricedPlan, planned_resources

    return PricedPlan(**document, resources=tuple(planned_resources(plans)))


def create(choices: Choices) -> None:
    """Create missing pools and verify them."""
    _require_exact_pools(choices)

    def work(job: Job) -> Sequence[ClusterReport]:
        return commands.create(
            job.prepared,
            job.run,
            adopt=choices.adopt,
            adopt_from=choices.adopt_from,
            adopt_managed=choices.adopt_managed,
            ignore_quota=choices.ignore_quota,
            prices=partial(plan_prices, choices, job),
            note=partial(_note, job),
        )

    _report(choices, "Create", work)


def apply(choices: Choices) -> None:
    """Make the live pools match the spec, after confirmation; or apply a saved plan."""
    saved = None
    if choices.plan_file:
        saved = read_plan(choices.plan_file)
        out.warn(saved.warnings)
        choices = _as_saved(choices, saved)
    _require_plan_options(choices)

    def ask(job: Job, plans: Sequence[ClusterPlan]) -> None:
        moves = _moves(plans) if choices.rebalance else []
        if saved is None and (moves or any(plan.differs for plan in plans)):
            _confirm_apply(choices, job, plans, moves)

    def work(job: Job) -> Sequence[ClusterReport]:
        consent = Consent(choices.allow_disruption, _replace_how(choices), choices.drain_timeout * 60)
        return commands.apply(
            job.prepared,
            job.run,
            _scope(choices),
            consent,
            saved=saved,
            rebalance=choices.rebalance,
            prices=partial(plan_prices, choices, job),
            confirm=lambda plans: ask(job, plans),
            note=partial(_note, job),
        )

    _report(choices, "Apply", work, saved)


def _note(job: Job, line: str) -> None:
    with job.progress.paused():
        write_stderr(line)


def wait(choices: Choices) -> None:
    """Wait for operations that an earlier command started, then verify."""
    if not choices.files and not choices.names:
        fix = "add the pools' names, or -f pools.yaml"
        raise SpecError("no spec and no pool given", where=Where("--cluster"), fix=fix, code="no-names")
    _report(choices, "Wait", lambda job: commands.wait(job.prepared, job.run, choices.names))


def verify(choices: Choices) -> None:
    """Verify the live pools; with --probe also by running a pod."""
    requested = choices.probe or choices.probe_scale_up
    probing = Probing(choices.probe_image, choices.probe_scale_up) if requested else None
    _report(choices, "Verify", lambda job: commands.verify(job.prepared, job.run, probing))


def delete(choices: Choices) -> None:
    """Delete this owner's pools, after confirmation."""

    def ask(job: Job, deletion: Deletion) -> None:
        confirm(choices, job, "delete", [_named(pool) for pool in deletion.pools()])

    def work(job: Job) -> Sequence[ClusterReport]:
        return commands.delete(job.prepared, job.run, choices.names, lambda deletion: ask(job, deletion))

    _report(choices, "Delete", work)


def release(choices: Choices) -> None:
    """Remove gpukube's labels from pools, after confirmation."""

    def ask(job: Job, releasing: Releasing) -> None:
        pools = [f"{pool.cluster.key}/{pool.name}" for pool in releasing.pools()]
        confirm(choices, job, "release", pools)

    def work(job: Job) -> Sequence[ClusterReport]:
        return commands.release(job.prepared, job.run, choices.names, lambda releasing: ask(job, releasing))

    _report(choices, "Release", work)


def remove_release(choices: Choices) -> None:
    """Uninstall gpukube's own release if nothing needs it, after confirmation."""

    def work(job: Job) -> Sequence[ClusterReport]:
        return commands.remove_release(
            job.prepared, job.run, lambda removal: confirm(choices, job, "remove", removal.releases())
        )

    _report(choices, "ReleaseRemoval", work)


def scale(choices: Choices, nodes: int | None, minimum: int | None, maximum: int | None) -> None:
    """Change the size of a live pool; asks for confirmation if nodes are removed."""
    size = Size(nodes, minimum, maximum)
    if size == Size():
        raise SpecError("no size given", where=Where("--nodes"), fix="add --nodes, or --min and --max", code="no-size")

    def ask(job: Job, scaling: Scaling) -> None:
        shrinking = [_named(pool) for pool in scaling.pools() if pool.disruptive]
        confirm(choices, job, "scale down", shrinking)

    def work(job: Job) -> Sequence[ClusterReport]:
        return commands.scale(job.prepared, job.run, choices.names[0], size, lambda scaling: ask(job, scaling))

    _report(choices, "Scale", work)


def drain(choices: Choices, *, undo: bool) -> None:
    """Cordon the nodes of a pool and evict their pods, after confirmation; or uncordon them."""
    # The command's own timeout covers only what the drain's does not: reading the clouds, the last calls.
    choices = replace(choices, timeout=choices.timeout + choices.drain_timeout)
    consent = DrainConsent(choices.allow_disruption, choices.drain_timeout * 60)

    def ask(job: Job, found: PoolDrain, sessions: Mapping[str, Session]) -> None:
        endless: list[str] = []
        with job.progress.paused():
            for pool in found.pools():
                session = sessions[pool.cluster.key]
                part = leaving_part(forecast_drain(pool, session, session.kube(), job.run.clock.now()))
                if part is not None:
                    endless += filter(None, [endless_words(pool.name, part)])
                    write_stderr(f"{pool.cluster.key}/{pool.name}")
                    out.show_lines(leaving_lines(visible_tree(part), indent="  ", whole=choices.verbose), sys.stderr)
        pools = ", ".join(_named(pool) for pool in found.pools())
        confirm(choices, job, "drain", ["; ".join((pools, *endless))])

    def work(job: Job) -> Sequence[ClusterReport]:
        if undo:
            return commands.undo_drain(job.prepared, job.run, choices.names[0])
        return commands.drain(job.prepared, job.run, choices.names[0], consent, partial(ask, job))

    _report(choices, "Drain", work)


def _scope(choices: Choices) -> Scope:
    pin = bool(choices.out or choices.plan_file)
    return Scope(**_same_names(Scope, choices), pin=pin, check_chart=True)


def _replace_how(choices: Choices) -> ReplaceHow:
    """Return how to replace pools; `_require_plan_options` has checked it."""
    return "surge" if choices.replace == "surge" else "recreate" if choices.replace else ""


def _same_names(kind: type[Scope | PlanOptions], source: Choices | PlanOptions) -> dict[str, Any]:
    """Return the values of the source's fields that have the same name in `kind`."""
    return {field.name: getattr(source, field.name) for field in fields(kind) if hasattr(source, field.name)}


def _require_plan_options(choices: Choices) -> None:
    """Reject options that exclude each other.

    Raises:
        SpecError: --replace is neither surge nor recreate, or is combined with --no-wait; or --prune would not see the
            whole spec, or would delete in one of several runs.
    """
    if choices.replace not in ("", "recreate", "surge"):
        raise SpecError(
            f'"{choices.replace}" is not a value of --replace', where=Where("--replace"),
            fix="set it to surge or recreate", code="choice",
        )  # fmt: skip
    _require_exact_pools(choices)
    if choices.replace == "surge" and choices.no_wait:
        raise SpecError(
            "--no-wait cannot be combined with --replace surge",
            where=Where("--no-wait"),
            fix="remove one of them",
            why="the old pool is drained and deleted after the GPUs of the new one are verified",
            code="surge-waits",
        )
    if choices.prune and (choices.clusters or choices.pools):
        raise SpecError(
            "--prune cannot be combined with --pool or --cluster",
            where=Where("--prune"),
            fix="remove the filters",
            why="pools that a filter leaves out would look as if the spec no longer declared them",
            code="prune-filtered",
        )
    if choices.prune and (choices.shard or "shard" in choices.given):
        raise SpecError(
            "--prune cannot be combined with --shard",
            where=Where("--prune"),
            fix="remove --prune here, and run `gpukube pool plan --prune` and `apply --prune` once without --shard",
            why="several runs would all delete a pool that was dropped from the spec by mistake, before "
            "anyone has seen the whole list",
            code="prune-sharded",
        )


def _require_exact_pools(choices: Choices) -> None:
    """Reject --adopt-managed for pools that are not named one by one.

    Raises:
        SpecError: --pool is missing or a pattern.
    """
    if choices.adopt_managed and (not choices.pools or any(char in name for name in choices.pools for char in "*?[")):
        raise SpecError(
            "--adopt-managed needs exact pool names",
            where=Where("--adopt-managed"),
            fix="add --pool NAME for each pool, without patterns",
            why="another tool manages each of these pools and may undo or delete what gpukube does",
            code="adopt-managed",
        )


def _as_saved(choices: Choices, saved: SavedPlan) -> Choices:
    """Return the options that shape the plan from the file; the command line must not set them.

    Consent (--replace, --allow-disruption) is different: it may be given when the plan is saved or applied.

    Raises:
        SpecError: The command line sets one.
    """
    shaping = {"files", "sets", *_same_names(PlanOptions, choices)} - {"replace", "allow_disruption"}
    given = [field for field in fields(Choices) if field.name in choices.given & shaping]
    if given:
        raise SpecError(
            f"{given[0].metadata['option'].param_decls[0]} cannot be combined with a saved plan",
            where=Where(choices.plan_file),
            fix="remove it, or plan again with it",
            why="a saved plan is applied exactly as it is",
            code="saved-plan-option",
        )
    kept = saved.options
    if "surge" in (kept.replace, choices.replace) and "replace" in choices.given and kept.replace != choices.replace:
        raise SpecError(
            f"the plan was made {f'with --replace {kept.replace}' if kept.replace else 'without --replace'}, and "
            f"--replace {choices.replace} sends other requests",
            where=Where(choices.plan_file),
            fix="remove it, or plan again with it",
            why="a saved plan is applied exactly",
            code="saved-plan-option",
        )
    consent = {
        "replace": kept.replace or choices.replace,
        "allow_disruption": kept.allow_disruption or choices.allow_disruption,
    }
    return replace(choices, **{**_same_names(PlanOptions, kept), **consent})


def _report(
    choices: Choices,
    kind: str,
    work: Callable[[Job], Sequence[ClusterReport]],
    saved: SavedPlan | None = None,
) -> None:
    with open_job(choices, kind, saved) as job:
        reports = work(job)
    # With an event log on stdout the report is its last line, so that everything stays JSON Lines.
    output = "line" if choices.events == "-" else choices.output
    document = report_document(reports, kind=kind)
    run = job.run
    if run.clock.stopped:
        document["exitCode"] = int(job.ending.exit_code)
    note_run(document, job, ExitCode(document["exitCode"]))
    if job.ending.is_hangup and sys.stdout.isatty():
        raise typer.Exit(job.ending.exit_code)
    out.show(document, output, verbose=choices.verbose)
    if run.clock.stopped:
        # A drain does not continue in the cloud: only this process evicts pods.
        drains = kind == "Drain" or run.standing
        stopped = "stopped" if drains else "stopped waiting; the cloud keeps working"
        write_stderr(f"{stopped}. To resume: {run.resume}")
        raise typer.Exit(job.ending.exit_code)
    if kind == "Create":
        made = {
            (report.cluster.key, pool.pool) for report in reports for pool in report.pools if pool.outcome == "done"
        }
        desired = (pool for pools in job.prepared.desired.values() for pool in pools)
        print_first_pods(choices, desired, made)
    raise typer.Exit(exit_code(reports))


def _named(pool: PoolPlan) -> str:
    """Describe a pool and what is lost with it."""
    loss = pool.loss
    of = f" of {loss.of}" if loss and loss.of is not None else ""
    pods = f", {len(loss.pods)} running pods" if loss and loss.pods else ""
    if pods and of:
        pods = ", with the pods on them"
    nodes = f", {loss.nodes}{of} nodes{pods}" if loss and loss.nodes else ""
    return f"{pool.cluster.key}/{pool.name} ({pool.observed.instance_type if pool.observed else ''}{nodes})"


def _moves(plans: Sequence[ClusterPlan]) -> list[str]:
    """Describe the moves to better alternatives that --rebalance may make."""
    places = [(pool, pool.family) for plan in plans for pool in plan.pools if pool.family]
    return [
        f"move {place.name} from {pool.pool} to a better alternative that gets machines, and delete {pool.name}"
        for pool, place in places
        if (place.role == "holder" and place.turn) or place.role == "second"
    ]


def _confirm_apply(choices: Choices, job: Job, plans: Sequence[ClusterPlan], moves: Sequence[str]) -> None:
    """Show the plan and ask whether to apply it."""
    if choices.yes:
        return
    with job.progress.paused():
        prices = plan_prices(choices, job, plans)
        limited = with_price_limits(tuple(plans), prices, job.run.clock.now())
        document = plan_document(limited, (), prices=prices)
        for cluster in document["clusters"]:
            for pool in cluster["pools"]:
                pool["needs"] = []  # already checked: a missing flag is refused earlier
        out.show_on_stderr(document, verbose=choices.verbose)
    confirm(choices, job, "apply", ["; ".join((plan_summary(document), *endless_drains(document), *moves))])
