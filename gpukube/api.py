"""The public library, used by the command line and by notebooks.

Load and check specs offline, then plan, create, verify, or delete with a `Run` that defines how clouds are reached::

    from gpukube import api

    prepared = api.prepare(api.load(["pools.yaml"]))
    run = api.Run(api.Settings(), api.chart_source(""), os.environ, resume="python my_script.py")
    reports = api.create(prepared, run)
    sys.exit(api.exit_code(reports))

All functions raise only `gpukube.errors.GpukubeError` and its subclasses; those that return no reports also raise
`Stopped` if the clock of the run is stopped meanwhile.
"""

from __future__ import annotations

from gpukube.cluster.helm.chart import ChartSource
from gpukube.core.values import Settings
from gpukube.doctor.check import Examination
from gpukube.doctor.diagnose import diagnose, doctor_exit_code
from gpukube.doctor.document import doctor_document
from gpukube.engine.change.apply import Consent
from gpukube.engine.change.delete import Deletion
from gpukube.engine.change.probing import Probing
from gpukube.engine.change.releasing import Releasing
from gpukube.engine.change.scale import Scaling, Size
from gpukube.engine.commands import apply, create, delete, release, scale, verify, wait
from gpukube.engine.documents.listing import list_document, pool_document
from gpukube.engine.documents.plan import plan_document
from gpukube.engine.documents.report import report_document
from gpukube.engine.documents.summary import plan_summary
from gpukube.engine.documents.validation import validation_document
from gpukube.engine.looking import diff_exit_code, plan, plan_exit_code, survey, survey_exit_code
from gpukube.engine.offline import load, validate
from gpukube.engine.plan.planning import ClusterPlan, Scope
from gpukube.engine.plan.prepare import Filters, Prepared, Validation, prepare, prepare_addresses
from gpukube.engine.run.clock import Clock, Stopped, SystemClock
from gpukube.engine.run.context import QUICK, Pace, Run, chart_source
from gpukube.engine.run.events import Event, Listener
from gpukube.engine.run.report import ClusterReport, PoolReport, exit_code
from gpukube.engine.saved import PlanOptions, SavedPlan, provenance, read_plan, saved_plan, write_plan
from gpukube.spec.dump import dump_spec
from gpukube.spec.loading.load import LoadedSpec
from gpukube.spec.reference.schema import json_schema

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
    "Releasing",
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
    "release",
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


def schema() -> dict[str, object]:
    """Return the JSON Schema of the spec."""
    return dict(json_schema())
