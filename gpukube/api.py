"""The library: what the command line and notebooks call.

Load and check specs offline, then plan, create, verify or delete with a `Run` that says how clouds are reached::

    from gpukube import api

    prepared = api.prepare(api.load(["pools.yaml"]))
    run = api.Run(api.Settings(), api.chart_source(""), os.environ, resume="python my_script.py")
    reports = api.create(prepared, run)
    sys.exit(api.exit_code(reports))

All functions raise `gpukube.errors.GpukubeError` and its subclasses only; those that give no reports also `Stopped`,
when the clock of the run is stopped meanwhile.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpukube.cluster.chart import ChartSource, local_chart
from gpukube.core.values import Settings
from gpukube.doctor.check import Examination
from gpukube.doctor.diagnose import doctor_exit_code, examine_clusters, mend_clusters
from gpukube.doctor.document import doctor_document
from gpukube.engine.apply import Consent, apply_pools, require_consent
from gpukube.engine.clock import Clock, Stopped, SystemClock
from gpukube.engine.clusters import nothing_begun
from gpukube.engine.create import create_pools
from gpukube.engine.delete import Deletion, delete_pools
from gpukube.engine.delete import plan_deletion as _plan_deletion
from gpukube.engine.documents import (
    list_document,
    plan_document,
    plan_summary,
    pool_document,
    report_document,
    used_devices,
    validation_document,
)
from gpukube.engine.events import Event, Listener
from gpukube.engine.fanout import run_all
from gpukube.engine.planning import ClusterPlan, Scope, plan_clusters
from gpukube.engine.prepare import Filters, Prepared, Validation, examine, prepare, prepare_addresses
from gpukube.engine.probing import Probing
from gpukube.engine.proving import verify_pools
from gpukube.engine.report import ClusterReport, PoolReport, exit_code
from gpukube.engine.run import QUICK, Pace, Run
from gpukube.engine.saved import (
    PlanOptions,
    SavedPlan,
    provenance,
    read_plan,
    require_fresh,
    require_place,
    saved_plan,
    write_plan,
)
from gpukube.engine.scale import Scaling, Size, scale_pools
from gpukube.engine.scale import plan_scaling as _plan_scaling
from gpukube.engine.session import Session, open_sessions
from gpukube.engine.waiting import wait_for_pools
from gpukube.errors import ExitCode, GpukubeError, HelmError, SpecError
from gpukube.spec.dump import dump_spec
from gpukube.spec.load import LoadedSpec, Reading, read_specs
from gpukube.spec.schema import json_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "QUICK",
    "ChartSource",
    "Clock",
    "ClusterPlan",
    "ClusterReport",
    "Consent",
    "Deletion",
    "Event",
    "Examination",
    "Filters",
    "Listener",
    "LoadedSpec",
    "Pace",
    "PlanOptions",
    "PoolReport",
    "Prepared",
    "Probing",
    "Run",
    "SavedPlan",
    "Scaling",
    "Scope",
    "Settings",
    "Size",
    "Stopped",
    "SystemClock",
    "Validation",
    "apply",
    "chart_source",
    "create",
    "delete",
    "diagnose",
    "diff_exit_code",
    "doctor_document",
    "doctor_exit_code",
    "dump_spec",
    "exit_code",
    "list_document",
    "load",
    "plan",
    "plan_document",
    "plan_exit_code",
    "plan_summary",
    "pool_document",
    "prepare",
    "prepare_addresses",
    "provenance",
    "read_plan",
    "report_document",
    "saved_plan",
    "scale",
    "schema",
    "survey",
    "survey_exit_code",
    "validate",
    "validation_document",
    "verify",
    "wait",
    "write_plan",
]


def load(
    paths: Sequence[str], *, sets: Sequence[str] = (), environ: Mapping[str, str] | None = None
) -> tuple[LoadedSpec, ...]:
    """Load specs from files, directories, patterns or "-" (stdin), with overrides `path=value`.

    Raises:
        SpecError: Holds everything that is wrong in all files, also what the clouds refuse of the pools that are right
            so far, so that one run tells it all.
    """
    reading = _read(paths, sets, environ)
    if reading.is_right:
        return reading.specs
    raise SpecError.of(examine(reading).findings)


def validate(
    paths: Sequence[str],
    *,
    sets: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    strict: bool = False,
) -> Validation:
    """Say everything that can be said about specs offline; raises nothing for what is wrong with them.

    Args:
        paths: As those of `load`.
        sets: Overrides, `path=value`.
        environ: Variables for ${NAME}; the process's own when not given.
        strict: Take warnings for errors.
    """
    return examine(_read(paths, sets, environ), strict=strict)


def _read(paths: Sequence[str], sets: Sequence[str], environ: Mapping[str, str] | None) -> Reading:
    return read_specs(paths, stdin=sys.stdin, sets=sets, environ=os.environ if environ is None else environ)


def schema() -> dict[str, object]:
    """Give the JSON Schema of the spec."""
    return dict(json_schema())


def chart_source(location: str) -> ChartSource:
    """Return where the device-plugin chart comes from; "" for NVIDIA's repository and the pinned version.

    Raises:
        SpecError: A local place that holds no chart; looked at now, before any call.
    """
    source = ChartSource(location) if location else ChartSource()
    if source.kind == "local":
        try:
            local_chart(Path(location))
        except HelmError as error:
            raise SpecError.of(error.diagnostics) from error
    return source


def plan(prepared: Prepared, run: Run, scope: Scope = Scope()) -> tuple[ClusterPlan, ...]:
    """Look at the clusters that pools are on, with `scope.prune` at all, and say what would happen; changes nothing."""
    prepared = prepared if scope.prune else prepared.narrowed()
    with open_sessions(prepared.clusters.values(), run) as sessions:
        return plan_clusters(prepared, sessions, run, scope)


def survey(
    prepared: Prepared, run: Run, *, skip_cluster: bool = False
) -> tuple[tuple[ClusterPlan, ...], dict[str, dict[str, dict[str, int]]]]:
    """Look at all clusters for a listing.

    Returns:
        The plans, and per cluster key and node the devices that pods request; clusters that could not be asked are left
        out.
    """
    with open_sessions(prepared.clusters.values(), run) as sessions:
        plans = plan_clusters(prepared, sessions, run, Scope(skip_cluster=skip_cluster))
        asked = {plan.cluster.key: sessions[plan.cluster.key].kube().pods for plan in plans if plan.seen}
        pods = run_all(asked, run.parallelism)
    usage = {key: used_devices(found) for key, found in pods.items() if not isinstance(found, GpukubeError)}
    return plans, usage


def create(
    prepared: Prepared, run: Run, *, adopt: bool = False, adopt_from: Sequence[str] = ()
) -> tuple[ClusterReport, ...]:
    """Create what is missing, install the device plugin, prove the devices."""
    prepared = prepared.narrowed()
    scope = Scope(adopt=adopt, adopt_from=tuple(adopt_from), retire=False, check_chart=True)
    return _carry_out(prepared, run, scope, lambda plans, sessions: create_pools(plans, sessions, run))


def _carry_out(
    prepared: Prepared,
    run: Run,
    scope: Scope,
    work: Callable[[tuple[ClusterPlan, ...], Mapping[str, Session]], tuple[ClusterReport, ...]],
) -> tuple[ClusterReport, ...]:
    """Plan, then work; a run that is stopped while it plans has a report too, in which nothing was begun."""
    with open_sessions(prepared.clusters.values(), run) as sessions:
        try:
            plans = plan_clusters(prepared, sessions, run, scope)
        except Stopped:
            return nothing_begun(prepared, run)
        return nothing_begun(prepared, run) if run.clock.stopped else work(plans, sessions)


def apply(  # noqa: PLR0913 - what an apply is made of
    prepared: Prepared,
    run: Run,
    scope: Scope = Scope(),
    consent: Consent = Consent(),
    *,
    saved: SavedPlan | None = None,
    confirm: Callable[[Sequence[ClusterPlan]], None] = lambda _plans: None,
) -> tuple[ClusterReport, ...]:
    """Bring the live pools to what is declared.

    Args:
        prepared: What is declared; of a saved plan its own specs.
        run: How the clouds are reached.
        scope: How far the plan reaches.
        consent: What is allowed beyond creating and harmless updates.
        saved: The plan that this must turn out to be.
        confirm: Shown the plans before anything is changed; raises to stop.

    Raises:
        StalePlan: The world is not the one that the saved plan saw; nothing was changed.
        SpecError: The saved plan was made for other clouds than this run reaches.
        Conflict: Something would be done that was not consented to; nothing was changed.
    """
    prepared = prepared if scope.prune else prepared.narrowed()
    if saved is not None:
        require_place(saved, provenance(run))

    def work(plans: tuple[ClusterPlan, ...], sessions: Mapping[str, Session]) -> tuple[ClusterReport, ...]:
        if saved is not None:
            require_fresh(saved, plans, provenance(run))
        require_consent(plans, consent)
        confirm(plans)
        return apply_pools(plans, sessions, run)

    return _carry_out(prepared, run, scope, work)


def wait(prepared: Prepared, run: Run, names: Sequence[str] = ()) -> tuple[ClusterReport, ...]:
    """Wait until the clouds have finished with the declared pools, or those named, and prove the declared ones.

    Raises:
        SpecError: There is no pool of some name.
    """
    prepared, scope = prepared.narrowed(), Scope(skip_cluster=True)
    return _carry_out(prepared, run, scope, lambda plans, sessions: wait_for_pools(plans, sessions, run, names))


def verify(prepared: Prepared, run: Run, probing: Probing | None = None) -> tuple[ClusterReport, ...]:
    """Compare the live nodes with the promise, waiting as long as the run's timeout says.

    Args:
        prepared: What is declared.
        run: How the clouds are reached.
        probing: Also run a pod with one device on each pool that is as promised.
    """
    prepared = prepared.narrowed()
    with open_sessions(prepared.clusters.values(), run) as sessions:
        try:
            return verify_pools(prepared, sessions, run, probing)
        except Stopped:
            return nothing_begun(prepared, run)


def diagnose(
    prepared: Prepared, run: Run, *, mend: Callable[[Sequence[str]], None] | None = None
) -> tuple[Examination, ...]:
    """Examine live clusters for the known faults; those of addresses alone too.

    Args:
        prepared: What is declared; with nothing declared, what only a spec can tell is not checked.
        run: How the clouds are reached.
        mend: Told what would be done about it, raises to stop; None to change nothing.
    """
    with open_sessions(prepared.clusters.values(), run) as sessions:
        found = examine_clusters(prepared, sessions, run)
        return found if mend is None else mend_clusters(found, prepared, sessions, run, mend)


def delete(
    prepared: Prepared,
    run: Run,
    names: Sequence[str],
    confirm: Callable[[Deletion], None] = lambda _deletion: None,
) -> tuple[ClusterReport, ...]:
    """Delete the live pools of these names, and wait for the end.

    Raises:
        SpecError: There is no such pool.
        Conflict: One is not ours, or protected.
    """

    def work(plans: tuple[ClusterPlan, ...], sessions: Mapping[str, Session]) -> tuple[ClusterReport, ...]:
        deletion = _plan_deletion(plans, sessions, prepared.owners, names)
        confirm(deletion)
        return delete_pools(deletion, sessions, run)

    return _carry_out(prepared, run, Scope(), work)


def scale(
    prepared: Prepared,
    run: Run,
    name: str,
    size: Size,
    confirm: Callable[[Scaling], None] = lambda _scaling: None,
) -> tuple[ClusterReport, ...]:
    """Give the live pools of this name another size, and wait for the end.

    Raises:
        SpecError: There is no such pool, or it cannot have that size.
        Conflict: One is not ours.
    """

    def work(plans: tuple[ClusterPlan, ...], sessions: Mapping[str, Session]) -> tuple[ClusterReport, ...]:
        scaling = _plan_scaling(plans, sessions, prepared.owners, name, size)
        confirm(scaling)
        return scale_pools(scaling, sessions, run)

    return _carry_out(prepared.narrowed(), run, Scope(), work)


def plan_exit_code(plans: Sequence[ClusterPlan]) -> ExitCode:
    """0 when every cluster could be read, inside too where that was meant; else the cause's own code, or 1 of several.

    Part of a plan is no plan: who applies it, or posts it, must notice.
    """
    errors = [error for plan in plans if (error := plan.error or plan.unreachable) is not None]
    codes = {error.exit_code for error in errors} or {ExitCode.DONE}
    return codes.pop() if len(codes) == 1 else ExitCode.ERROR


def survey_exit_code(plans: Sequence[ClusterPlan]) -> ExitCode:
    """0 when every cloud could be asked, 3 when some could, else the cause's own code."""
    errors = [plan.error for plan in plans if plan.error is not None]
    if errors and len(errors) < len(plans):
        return ExitCode.PARTLY_DONE
    codes = {error.exit_code for error in errors} or {ExitCode.DONE}
    return codes.pop() if len(codes) == 1 else ExitCode.ERROR


def diff_exit_code(plans: Sequence[ClusterPlan], *, skip_cluster: bool) -> ExitCode:
    """0 the same, 2 differs; what `plan_exit_code` gives when a cluster could not be read."""
    read = [replace(plan, unreachable=None) if skip_cluster else plan for plan in plans]
    if (code := plan_exit_code(read)) is not ExitCode.DONE:
        return code
    return ExitCode.DIFFERS if any(plan.differs for plan in plans) else ExitCode.DONE
