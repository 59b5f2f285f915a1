"""What became of pools and clusters -> exit code, as a table."""

from __future__ import annotations

import pytest

from gpukube.api import diff_exit_code, plan_exit_code, survey_exit_code
from gpukube.engine.plan.planning import ClusterPlan
from gpukube.engine.run.report import ClusterReport, PoolReport, exit_code
from gpukube.errors import (
    AccessError,
    Busy,
    CapacityError,
    ChartNotFound,
    CloudError,
    ClusterError,
    ClusterSlow,
    Conflict,
    DrainTimeout,
    ExitCode,
    FieldConflict,
    Finding,
    GpukubeError,
    HelmError,
    HelmTimeout,
    MissingExtra,
    Moved,
    NoCluster,
    NotAllowed,
    NotOffered,
    QuotaError,
    RegionalQuota,
    ReservationFull,
    SpecError,
    StalePlan,
    StockOut,
    Throttled,
    WaitTimeout,
    Where,
    WrongAccount,
)
from tests.builders import CLUSTER


def pool(outcome: str, error: GpukubeError | None = None) -> PoolReport:
    return PoolReport("p", "p", outcome, "", error=error)  # type: ignore[arg-type]  # a table's word


def cluster(*pools: PoolReport, error: GpukubeError | None = None) -> ClusterReport:
    return ClusterReport(CLUSTER, pools, error=error)


DONE, SAME, DIFFERS, LEFT = pool("done"), pool("unchanged"), pool("differs"), pool("not-attempted")
NO_ROOM, NO_QUOTA = pool("failed", CapacityError("x")), pool("failed", QuotaError("x"))
LATE, REFUSED = pool("failed", WaitTimeout("x")), pool("failed", AccessError("x"))

REPORTS: dict[str, tuple[list[ClusterReport], ExitCode]] = {
    "nothing declared": ([cluster()], ExitCode.DONE),
    "all made": ([cluster(DONE, DONE)], ExitCode.DONE),
    "all there": ([cluster(SAME), cluster(SAME, DONE)], ExitCode.DONE),
    "one differs": ([cluster(DIFFERS)], ExitCode.ERROR),
    "one differs, one made": ([cluster(DIFFERS, DONE)], ExitCode.PARTLY_DONE),
    "one differs, one the same": ([cluster(DIFFERS), cluster(SAME)], ExitCode.PARTLY_DONE),
    "no capacity": ([cluster(NO_ROOM)], ExitCode.CAPACITY),
    "no capacity and no quota": ([cluster(NO_ROOM, NO_QUOTA)], ExitCode.CAPACITY),
    "no capacity for one of two": ([cluster(NO_ROOM, DONE)], ExitCode.PARTLY_DONE),
    "no capacity and refused": ([cluster(NO_ROOM, REFUSED)], ExitCode.ERROR),
    "late": ([cluster(LATE)], ExitCode.TIMED_OUT),
    "late, and one never begun": ([cluster(LATE, LEFT)], ExitCode.TIMED_OUT),
    "late, and one made": ([cluster(LATE, DONE)], ExitCode.PARTLY_DONE),
    "a cluster refused us": ([cluster(LEFT, error=AccessError("x"))], ExitCode.ACCESS),
    "one cluster refused, another done": (
        [cluster(LEFT, error=AccessError("x")), cluster(DONE)],
        ExitCode.PARTLY_DONE,
    ),
    "two clusters failed in two ways": (
        [cluster(LEFT, error=AccessError("x")), cluster(LEFT, error=ClusterError("x"))],
        ExitCode.ERROR,
    ),
    "a cluster without pools failed beside a good one": (
        [cluster(error=HelmError("x")), cluster(SAME)],
        ExitCode.PARTLY_DONE,
    ),
}


@pytest.mark.parametrize("name", REPORTS)
def test_exit_code_when_reports_are_in_then_as_documented(name: str) -> None:
    reports, expected = REPORTS[name]
    assert exit_code(reports) is expected


CLASSES: dict[type[GpukubeError], int] = {
    GpukubeError: 1,
    SpecError: 4,
    AccessError: 5,
    WrongAccount: 5,
    NotAllowed: 5,
    CapacityError: 6,
    QuotaError: 6,
    StockOut: 6,
    ReservationFull: 6,
    NotOffered: 6,
    RegionalQuota: 6,
    WaitTimeout: 7,
    DrainTimeout: 7,
    Conflict: 1,
    Busy: 1,
    Moved: 1,
    CloudError: 1,
    Throttled: 1,
    NoCluster: 1,
    ClusterError: 1,
    ClusterSlow: 1,
    HelmError: 1,
    ChartNotFound: 4,
    FieldConflict: 1,
    HelmTimeout: 1,
    StalePlan: 1,
    MissingExtra: 1,
}


@pytest.mark.parametrize("kind", CLASSES)
def test_error_class_when_it_ends_the_run_then_its_documented_code(kind: type[GpukubeError]) -> None:
    assert int(kind("x").exit_code) == CLASSES[kind]
    assert exit_code([cluster(pool("failed", kind("x")))]) == CLASSES[kind]


def test_error_classes_when_listed_then_every_one_is_in_the_table() -> None:
    def below(kind: type[GpukubeError]) -> set[type[GpukubeError]]:
        return {kind}.union(*(below(child) for child in kind.__subclasses__()))

    assert {kind for kind in below(GpukubeError) if kind.__module__ == "gpukube.errors"} == set(CLASSES)


def test_error_when_made_of_several_findings_then_it_has_them_all_and_its_own_class() -> None:
    found = [Finding("a", Where("x"), "first", fix="do"), Finding("b", Where("y"), "second", severity="warning")]
    error = Busy.of(found, "both")
    assert (type(error), str(error), error.diagnostics) == (Busy, "both", tuple(found))
    assert str(SpecError.of(found)) == str(SpecError.of(reversed(found))) == "first"
    assert str(SpecError.of(found[1:])) == "second"
    with pytest.raises(AttributeError):
        error.diagnostics = ()  # type: ignore[misc]  # what this shows


def test_exit_code_2_when_looked_for_then_no_error_has_it() -> None:
    assert ExitCode.DIFFERS not in {kind("x").exit_code for kind in CLASSES}


FINE = ClusterPlan(CLUSTER)
REFUSING = ClusterPlan(CLUSTER, error=AccessError("x"))
GONE = ClusterPlan(CLUSTER, error=CloudError("x"))
SILENT = ClusterPlan(CLUSTER, unknown="no answer", unreachable=ClusterError("no answer"))
FORBIDDEN = ClusterPlan(CLUSTER, unknown="forbidden", unreachable=AccessError("forbidden"))
SKIPPED = ClusterPlan(CLUSTER, unknown="skipped (--skip-cluster)")

PLANS: dict[str, tuple[list[ClusterPlan], ExitCode, ExitCode]] = {
    # name: (plans, code of plan, code of diff)
    "fine": ([FINE], ExitCode.DONE, ExitCode.DONE),
    "refused": ([REFUSING], ExitCode.ACCESS, ExitCode.ACCESS),
    "one of two refused": ([FINE, REFUSING], ExitCode.ACCESS, ExitCode.ACCESS),
    "two causes": ([GONE, REFUSING], ExitCode.ERROR, ExitCode.ERROR),
    "the inside is unknown": ([SILENT], ExitCode.ERROR, ExitCode.ERROR),
    "the inside of one is unknown": ([FINE, SILENT], ExitCode.ERROR, ExitCode.ERROR),
    "we may not look inside": ([FORBIDDEN], ExitCode.ACCESS, ExitCode.ACCESS),
    "the inside was skipped": ([SKIPPED], ExitCode.DONE, ExitCode.DONE),
}


@pytest.mark.parametrize("name", PLANS)
def test_plan_exit_code_when_clusters_fail_then_never_mistaken_for_a_difference(name: str) -> None:
    plans, of_plan, of_diff = PLANS[name]
    assert plan_exit_code(plans) is of_plan
    assert diff_exit_code(plans, skip_cluster=False) is of_diff


SURVEYS: dict[str, tuple[list[ClusterPlan], ExitCode]] = {
    "fine": ([FINE], ExitCode.DONE),
    "refused": ([REFUSING], ExitCode.ACCESS),
    "one of two refused": ([FINE, REFUSING], ExitCode.PARTLY_DONE),
    "two causes": ([GONE, REFUSING], ExitCode.ERROR),
    "the inside is unknown": ([SILENT], ExitCode.DONE),
}


@pytest.mark.parametrize("name", SURVEYS)
def test_survey_exit_code_when_clouds_could_not_be_asked_then_partly_done_where_others_could(name: str) -> None:
    plans, code = SURVEYS[name]
    assert survey_exit_code(plans) is code


def test_diff_exit_code_when_the_inside_is_skipped_on_purpose_then_not_an_error() -> None:
    assert diff_exit_code([SILENT], skip_cluster=True) is ExitCode.DONE
