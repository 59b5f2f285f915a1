"""The library: what the command line and notebooks call.

Load and check specs offline, then plan, create, verify or delete with a `Run` that says how clouds are reached::

    from gpukube import api

    prepared = api.prepare(api.load(["pools.yaml"]))
    run = api.Run(api.Settings(), api.chart_source(""), os.environ, resume="python my_script.py")
    reports = api.create(prepared, run)
    sys.exit(api.exit_code(reports))

All functions raise `gpukube.errors.GpukubeError` and its subclasses only.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from gpukube.cluster.chart import ChartSource
from gpukube.core.values import Settings
from gpukube.engine.clock import Clock, SystemClock
from gpukube.engine.create import create_pools
from gpukube.engine.delete import Deletion, delete_pools
from gpukube.engine.delete import plan_deletion as _plan_deletion
from gpukube.engine.documents import (
    list_document,
    plan_document,
    pool_document,
    report_document,
    validation_document,
)
from gpukube.engine.events import Event, Listener
from gpukube.engine.planning import ClusterPlan, plan_clusters
from gpukube.engine.prepare import Filters, Prepared, prepare
from gpukube.engine.proving import verify_pools
from gpukube.engine.report import ClusterReport, PoolReport, exit_code
from gpukube.engine.run import QUICK, Pace, Run
from gpukube.engine.session import open_sessions
from gpukube.errors import ExitCode
from gpukube.spec.load import LoadedSpec, load_specs
from gpukube.spec.schema import json_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "QUICK",
    "ChartSource",
    "Clock",
    "ClusterPlan",
    "ClusterReport",
    "Deletion",
    "Event",
    "Filters",
    "Listener",
    "LoadedSpec",
    "Pace",
    "PoolReport",
    "Prepared",
    "Run",
    "Settings",
    "SystemClock",
    "chart_source",
    "create",
    "delete",
    "diff_exit_code",
    "exit_code",
    "list_document",
    "load",
    "plan",
    "plan_deletion",
    "plan_document",
    "plan_exit_code",
    "pool_document",
    "prepare",
    "report_document",
    "schema",
    "validation_document",
    "verify",
]


def load(
    paths: Sequence[str], *, sets: Sequence[str] = (), environ: Mapping[str, str] | None = None
) -> tuple[LoadedSpec, ...]:
    """Load specs from files, directories or "-" (stdin), with overrides `path=value`.

    Raises:
        SpecError: Holds everything that is wrong in all files.
    """
    return load_specs(paths, stdin=sys.stdin, sets=sets, environ=os.environ if environ is None else environ)


def schema() -> dict[str, object]:
    """Give the JSON Schema of the spec."""
    return dict(json_schema())


def chart_source(location: str) -> ChartSource:
    """Say where the device-plugin chart comes from; "" for NVIDIA's repository and the pinned version."""
    return ChartSource(location) if location else ChartSource()


def plan(prepared: Prepared, run: Run, *, skip_cluster: bool = False) -> tuple[ClusterPlan, ...]:
    """Look at all clusters and say what would happen; changes nothing."""
    with open_sessions(prepared.clusters.values(), run.settings) as sessions:
        return plan_clusters(prepared, sessions, run, skip_cluster=skip_cluster)


def create(prepared: Prepared, run: Run) -> tuple[ClusterReport, ...]:
    """Create what is missing, install the device plugin, prove the devices."""
    with open_sessions(prepared.clusters.values(), run.settings) as sessions:
        return create_pools(plan_clusters(prepared, sessions, run), sessions, run)


def verify(prepared: Prepared, run: Run) -> tuple[ClusterReport, ...]:
    """Compare the live nodes with the promise, waiting as long as the run's timeout says."""
    with open_sessions(prepared.clusters.values(), run.settings) as sessions:
        return verify_pools(prepared, sessions, run)


def plan_deletion(prepared: Prepared, run: Run, names: Sequence[str]) -> Deletion:
    """Find the live pools of these names that may be deleted.

    Raises:
        SpecError: There is no such pool.
        Conflict: One is not ours, or protected.
    """
    plans = plan(prepared, run, skip_cluster=True)
    return _plan_deletion(plans, prepared.owners, names)


def delete(deletion: Deletion, run: Run) -> tuple[ClusterReport, ...]:
    """Delete what `plan_deletion` found, and wait for the end."""
    with open_sessions([cluster for cluster, _ in deletion.clusters.values()], run.settings) as sessions:
        return delete_pools(deletion, sessions, run)


def plan_exit_code(plans: Sequence[ClusterPlan]) -> ExitCode:
    """0 when every cluster could be planned, 3 when some could, else the cause's own code."""
    errors = [plan.error for plan in plans if plan.error is not None]
    if not errors:
        return ExitCode.DONE
    if len(errors) < len(plans):
        return ExitCode.PARTLY_DONE
    codes = {error.exit_code for error in errors}
    return codes.pop() if len(codes) == 1 else ExitCode.ERROR


def diff_exit_code(plans: Sequence[ClusterPlan], *, skip_cluster: bool) -> ExitCode:
    """0 the same, 2 differs; an error's own code when a cloud could not be asked, 1 when a cluster could not."""
    if any(plan.error is not None for plan in plans):
        code = plan_exit_code(plans)
        return ExitCode.ERROR if code is ExitCode.PARTLY_DONE else code
    if not skip_cluster and any(plan.unreachable is not None for plan in plans):
        return ExitCode.ERROR
    return ExitCode.DIFFERS if any(plan.differs for plan in plans) else ExitCode.DONE
