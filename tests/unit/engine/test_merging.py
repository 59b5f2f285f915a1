"""Documents of shards put together: what one run would have written, whatever is in it; or what is missing or wrong."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpukube.core.faults import fault
from gpukube.core.shards import Shard
from gpukube.doctor.check import Check, Examination, Found, Skipped
from gpukube.doctor.diagnose import doctor_exit_code
from gpukube.doctor.document import doctor_document
from gpukube.engine.documents.listing import list_document
from gpukube.engine.documents.report import report_document
from gpukube.engine.documents.shards import part_line
from gpukube.engine.looking import survey_exit_code
from gpukube.engine.merging import merge_documents
from gpukube.engine.run.report import ClusterReport, PoolReport, exit_code
from gpukube.errors import (
    AccessError,
    CapacityError,
    ClusterError,
    ExitCode,
    GpukubeError,
    SpecError,
    WaitTimeout,
)
from tests.unit.engine.fleets import address, cluster_ref, fleet_of, part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Literal

    from gpukube.core.values import ClusterRef
    from gpukube.engine.run.report import Outcome
    from gpukube.errors import Severity

Json = dict[str, Any]


def merged(documents: Sequence[Json]) -> tuple[Json, Json]:
    """Merge documents: what of it a run without shards would have written too, and what not."""
    document = merge_documents([(f"{number}.json", document) for number, document in enumerate(documents)])
    found: Json = json.loads(json.dumps(document))
    return found, found.pop("merged")


@pytest.mark.parametrize("kind", ["Plan", "Diff"])
def test_merge_when_300_clusters_in_16_shards_then_byte_for_byte_the_document_of_one_run(
    kind: Literal["Plan", "Diff"],
) -> None:
    fleet = fleet_of(300)
    whole, code = fleet.whole(kind)
    found, how = merged(fleet.shards(16, kind)[::-1])
    assert json.dumps(found) == json.dumps(whole)
    assert how == {"total": 16, "missing": [], "spec": fleet.spec, "exitCode": code}
    if kind == "Plan":  # what clusters share is short for all of them together, and in no shard of 16
        assert sum("quota-short" in json.dumps(cluster["diagnostics"]) for cluster in found["clusters"]) == 3


@settings(max_examples=40)
@given(
    seed=st.integers(0, 1000),
    count=st.integers(1, 12),
    total=st.integers(1, 9),
    trouble=st.sampled_from((0.0, 0.3, 1.0)),
    kind=st.sampled_from(("Plan", "Diff")),
    data=st.data(),
)
def test_merge_when_any_fleet_in_any_order_then_the_document_and_the_code_of_one_run(  # noqa: PLR0913, PLR0917
    seed: int, count: int, total: int, trouble: float, kind: Literal["Plan", "Diff"], data: st.DataObject
) -> None:
    fleet = fleet_of(count, seed, trouble)
    whole, code = fleet.whole(kind)
    found, how = merged(data.draw(st.permutations(fleet.shards(total, kind))))
    assert (json.dumps(found), how["exitCode"]) == (json.dumps(whole), code)


ERRORS: dict[str, Callable[[str], GpukubeError]] = {
    "access": lambda key: AccessError("not allowed", where=key),
    "capacity": lambda key: CapacityError("none left", where=key),
    "time": lambda key: WaitTimeout("too late", where=key),
    "cluster": lambda key: ClusterError("no answer", where=key),
}
SOME_ERROR = st.none() | st.sampled_from(sorted(ERRORS))
OUTCOMES: tuple[Outcome, ...] = ("done", "unchanged", "started", "unknown", "differs", "failed")


def raised(name: str | None, key: str) -> GpukubeError | None:
    return ERRORS[name](key) if name else None


def in_shards(
    clusters: Sequence[ClusterRef], total: int, run: Callable[[Sequence[int]], tuple[Any, int]]
) -> tuple[tuple[Json, int], list[Json]]:
    """Have a run over all clusters, given by their numbers, and one per shard; as JSON."""

    def read(numbers: Sequence[int]) -> tuple[Json, int]:
        document, code = run(numbers)
        return json.loads(json.dumps(document)), int(code)

    documents = []
    for index in range(1, total + 1):
        shard = Shard(index, total)
        ours = [number for number, cluster in enumerate(clusters) if shard.takes(address(cluster))]
        document, code = read(ours)
        places = {clusters[number].key: number + 1 for number in ours}
        documents.append({**document, "shard": part(shard, places, len(clusters), code)})
    return read(range(len(clusters))), documents


POOLS = st.lists(st.tuples(st.sampled_from(OUTCOMES), SOME_ERROR), max_size=3)


@settings(max_examples=80)
@given(
    found=st.lists(st.tuples(SOME_ERROR, POOLS), min_size=1, max_size=8),
    total=st.integers(1, 4),
    kind=st.sampled_from(("Create", "Apply", "Wait", "Verify")),
)
def test_merge_when_reports_of_any_outcome_then_the_report_and_the_code_of_one_run(
    found: list[tuple[str | None, list[tuple[Outcome, str | None]]]], total: int, kind: str
) -> None:
    clusters = [cluster_ref(number) for number in range(len(found))]
    reports = [
        ClusterReport(
            cluster,
            tuple(
                PoolReport(f"p{n}", f"p{n}", outcome, "", error=raised(problem, cluster.key))
                for n, (outcome, problem) in enumerate(pools)
            ),
            error=raised(error, cluster.key),
        )
        for cluster, (error, pools) in zip(clusters, found, strict=True)
    ]

    def run(numbers: Sequence[int]) -> tuple[Any, int]:
        ours = [reports[number] for number in numbers]
        return report_document(ours, kind=kind), exit_code(ours)

    (whole, code), documents = in_shards(clusters, total, run)
    document, how = merged(documents)
    assert (json.dumps(document), how["exitCode"]) == (json.dumps(whole), code)


@settings(max_examples=40)
@given(seed=st.integers(0, 100), total=st.integers(1, 5), trouble=st.sampled_from((0.0, 0.5, 1.0)))
def test_merge_when_lists_then_the_list_and_the_code_of_one_run(seed: int, total: int, trouble: float) -> None:
    plans = fleet_of(7, seed, trouble).plans

    def run(numbers: Sequence[int]) -> tuple[Any, int]:
        ours = [plans[number] for number in numbers]
        return list_document(ours), survey_exit_code(ours)

    (whole, code), documents = in_shards([plan.cluster for plan in plans], total, run)
    document, how = merged(documents)
    assert (json.dumps(document), how["exitCode"]) == (json.dumps(whole), code)


CHECK = Check("some-check", "title", "it costs", "https://example.com", lambda _evidence: (), ())


@settings(max_examples=60)
@given(
    found=st.lists(
        st.tuples(st.lists(st.sampled_from(("error", "warning", "hint")), max_size=3), SOME_ERROR, SOME_ERROR),
        min_size=1,
        max_size=8,
    ),
    total=st.integers(1, 4),
)
def test_merge_when_examinations_then_the_findings_and_the_code_of_one_run(
    found: list[tuple[list[Severity], str | None, str | None]], total: int
) -> None:
    clusters = [cluster_ref(number) for number in range(len(found))]
    made = [examination(cluster, *what) for cluster, what in zip(clusters, found, strict=True)]

    def run(numbers: Sequence[int]) -> tuple[Any, int]:
        ours = [made[number] for number in numbers]
        return doctor_document(ours), doctor_exit_code(ours)

    (whole, code), documents = in_shards(clusters, total, run)
    document, how = merged(documents)
    assert (json.dumps(document), how["exitCode"]) == (json.dumps(whole), code)


def examination(
    cluster: ClusterRef, severities: Sequence[Severity], unread: str | None, unfixed: str | None
) -> Examination:
    error = raised(unread, cluster.key)
    if error is not None:
        return Examination(cluster, skipped=(Skipped(CHECK, "nodes"),), troubles=(error,), unreadable=error)
    found = tuple(Found(CHECK, fault("node n", "seen", "fix", severity=severity)) for severity in severities)
    return Examination(cluster, found, made=3, fix_error=raised(unfixed, cluster.key))


def documents_of(total: int, **changes: object) -> list[Json]:
    return [{**document, **changes} for document in fleet_of(30).shards(total, "Diff")]


@pytest.mark.parametrize("missing", [[2], [4, 9, 11], list(range(2, 17))])
def test_merge_when_shards_are_missing_then_one_and_which_and_what_is_there(missing: list[int]) -> None:
    documents = documents_of(16)
    there = [document for document in documents if document["shard"]["index"] not in missing]
    found, how = merged(there[::-1])
    assert (how["missing"], how["exitCode"], how["total"]) == (missing, ExitCode.ERROR, 16)
    assert [cluster["cluster"] for cluster in found["clusters"]] == [
        cluster["cluster"]
        for cluster in fleet_of(30).whole("Diff")[0]["clusters"]
        if any(cluster in document["clusters"] for document in there)
    ]
    assert found["summary"]["clusters"] == len(found["clusters"])
    assert part_line({**found, "merged": how}) == (
        f"partial: {len(missing)} of 16 shards missing: {', '.join(map(str, missing))}"
    )


def test_merge_when_a_report_is_partial_then_its_own_code_is_one_too() -> None:
    (_, _), documents = in_shards(
        [cluster_ref(number) for number in range(6)],
        3,
        lambda numbers: (report_document([ClusterReport(cluster_ref(n), ()) for n in numbers], kind="Verify"), 0),
    )
    found, how = merged(documents[:2])
    assert (found["exitCode"], how["exitCode"], how["missing"]) == (1, 1, [3])


def test_merge_when_a_shard_was_interrupted_then_one() -> None:
    documents = documents_of(3)
    for code in (ExitCode.INTERRUPTED, ExitCode.TERMINATED, ExitCode.HUNG_UP):
        documents[1]["shard"]["exitCode"] = code
        assert merged(documents)[1]["exitCode"] == ExitCode.ERROR


def moved(document: Json, place: int) -> Json:
    """Put the first cluster of a shard at another place."""
    key = next(iter(document["shard"]["clusters"]))
    places = {**document["shard"]["clusters"], key: place}
    return {**document, "shard": {**document["shard"], "clusters": places}}


def with_shard(document: Json, **changes: object) -> Json:
    return {**document, "shard": {**document["shard"], **changes}}


FIRST, SECOND, THIRD = documents_of(3)
WRONG: dict[str, tuple[list[Json], str, str]] = {
    "twice": ([FIRST, SECOND, FIRST], "merge-twice", "2.json: it is shard 1/3, and so is 0.json"),
    "another kind": ([FIRST, fleet_of(30).shards(3)[1]], "merge-differs", "its kind is Plan; that of 0.json is Diff"),
    "another number": ([FIRST, documents_of(4)[1]], "merge-differs", "its number of shards is 4; that of 0.json is 3"),
    "another spec": (
        [FIRST, with_shard(SECOND, spec="sha256:1")],
        "merge-differs",
        "its spec is sha256:1; that of 0.json is sha256:0",
    ),
    "other filters": (
        [FIRST, {**SECOND, "scope": {"owners": ["fleet"], "filters": ["--cluster=a*", "--pool=b"]}}],
        "merge-differs",
        "its filters is --cluster=a* --pool=b; that of 0.json is none",
    ),
    "other clusters": ([FIRST, with_shard(SECOND, of=31)], "merge-differs", "its number of clusters is 31"),
    "a whole one": ([fleet_of(30).whole()[0]], "merge-whole", "it is from a run without --shard"),
    "a merged one": ([merge_documents([("a", FIRST), ("b", SECOND)])], "merge-whole", "it is already merged"),
    "not of shards": ([{**FIRST, "kind": "Delete"}], "merge-kind", "documents of kind Delete have no shards"),
    "an index that is none": ([with_shard(FIRST, index=4)], "merge-differs", "its shard data is inconsistent"),
    "clusters of others": ([with_shard(FIRST, clusters={})], "merge-differs", "its shard data is inconsistent"),
    "one place twice": (
        [FIRST, moved(SECOND, next(iter(FIRST["shard"]["clusters"].values())))],
        "merge-differs",
        'is at the place of "c',
    ),
    "a place beyond the last": ([moved(FIRST, 31)], "merge-differs", "31 of 30"),
    "one cluster at two places": (
        [
            FIRST,
            with_shard(SECOND, clusters={**SECOND["shard"]["clusters"], next(iter(FIRST["shard"]["clusters"])): 29}),
        ],
        "merge-differs",
        "different ones of 30",
    ),
    "a cluster in no shard": (
        [FIRST, SECOND, with_shard({**THIRD, "clusters": [], "notRead": []}, clusters={})],
        "merge-differs",
        "3 shards have ",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_merge_when_documents_do_not_belong_together_then_which_and_why(case: str) -> None:
    documents, code, seen = WRONG[case]
    with pytest.raises(SpecError) as caught:
        merged(documents)
    (found,) = caught.value.diagnostics
    assert (found.code, bool(found.fix)) == (code, True)
    assert seen in f"{found.where}: {found.seen}"
