"""Merges the documents of a fleet's shards into the document of a single run over all clusters. Pure.

In scope: which documents belong together, the order of their clusters, the sums, the exit code. Out of scope: reading
files, formats (cli), which cluster is in which shard (`gpukube.core.shards`).

A cluster's part stays unchanged. Sums over clusters are computed again from the parts with the code of a run, so that a
merged document equals that of one run. Quotas are the exception among the parts: clusters of one account share them, so
each shard knows only its own needs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, cast

from gpukube.core.shards import MOST
from gpukube.engine.documents.parts import counted
from gpukube.engine.run.report import GOOD
from gpukube.errors import SEVERITIES, ExitCode, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpukube.core.quotas import QuotaUse
    from gpukube.engine.documents.parts import Document
    from gpukube.engine.documents.shapes.doctor import DoctorDocument, PatientPart
    from gpukube.engine.documents.shapes.listing import ListDocument
    from gpukube.engine.documents.shapes.map import MapCluster, MapDocument
    from gpukube.engine.documents.shapes.parts import Diagnostic, MergedPart, ScopePart, ShardPart
    from gpukube.engine.documents.shapes.plan import ClusterPart, GpuSum, PlanDocument
    from gpukube.engine.documents.shapes.plan_parts import Quota
    from gpukube.engine.documents.shapes.report import ReportDocument
    from gpukube.engine.documents.shapes.usage import UsageCluster, UsageDocument

    QuotaKey = tuple[str, str, str]

REPORTS: Final = ("Create", "Apply", "Wait", "Verify")
KINDS: Final = ("Plan", "Diff", "PoolList", "Map", "Usage", "Doctor", *REPORTS)
"""Documents of the commands with --shard."""
_WHOLE: Final = "pass the documents that `gpukube ... --shard I/N -o json` wrote, one of each shard"
_ONE_RUN: Final = "merge documents of one run: same command, same spec, same filters, same number of shards"


def merge_documents(sources: Sequence[tuple[str, Document]]) -> dict[str, object]:
    """Merge the documents of shards, with the clusters in the order of the spec.

    If shards are missing, the result covers the others and is marked as partial.

    Args:
        sources: The documents as read, each with its file name; in any order.

    Raises:
        SpecError: They are not from the shards of one run, or a shard occurs twice.
    """
    ordered = _in_shard_order(sources)
    shards = [shard_of_document(document) for _, document in ordered]
    places = _places(ordered)
    total = shards[0]["total"]
    missing = [index for index in range(1, total + 1) if index not in {shard["index"] for shard in shards}]
    documents = [document for _, document in ordered]
    clusters = sorted(
        (cluster for document in documents for cluster in cast("list[ClusterPart]", document["clusters"])),
        key=lambda cluster: places[cluster["cluster"]],
    )
    first = {key: value for key, value in documents[0].items() if key != "shard"}
    merged: dict[str, object] = {**first, "clusters": clusters}
    kind = str(first["kind"])
    if kind in ("Plan", "Diff"):
        merged |= _plan(cast("list[PlanDocument]", documents), clusters, places)
    elif kind == "Map":
        merged |= _map(cast("list[MapDocument]", documents), cast("list[MapCluster]", clusters))
    elif kind == "Usage":
        merged |= _usage(cast("list[UsageDocument]", documents), cast("list[UsageCluster]", clusters))
    elif kind == "Doctor":
        merged |= _doctor(cast("list[DoctorDocument]", documents))
    elif kind in REPORTS:
        merged |= _report(cast("ReportDocument", merged))
    code = ExitCode.ERROR if missing else _exit_code(kind, documents, merged)
    if "exitCode" in merged:
        merged["exitCode"] = int(code)
    part: MergedPart = {"total": total, "missing": missing, "spec": shards[0]["spec"], "exitCode": int(code)}
    return {**merged, "merged": part}


def shard_of_document(document: Document) -> ShardPart:
    """Return a document's data on its shard."""
    return cast("ShardPart", document["shard"])


def _in_shard_order(sources: Sequence[tuple[str, Document]]) -> list[tuple[str, Document]]:
    """Sort documents by shard, after checking that they belong together."""
    found: dict[int, tuple[str, Document]] = {}
    for file, document in sources:
        _require_shard(file, document)
        shard = shard_of_document(document)
        known_file, known = next(iter(found.values()), (file, document))
        for name, here, there in _identity(document, known):
            if here != there:
                message = f"its {name} is {here}; that of {known_file} is {there}"
                raise SpecError(message, where=file, fix=_ONE_RUN, code="merge-differs")
        if shard["index"] in found:
            message = f"it is shard {shard['index']}/{shard['total']}, and so is {found[shard['index']][0]}"
            fix = "pass one of them: of two runs of one shard, the later"
            raise SpecError(message, where=file, fix=fix, code="merge-twice")
        found[shard["index"]] = (file, document)
    return [found[index] for index in sorted(found)]


def _require_shard(file: str, document: Document) -> None:
    kind = document["kind"]
    if kind not in KINDS:
        message = f"documents of kind {kind} have no shards"
        raise SpecError(message, where=file, fix=f"merge one of {', '.join(KINDS)}", code="merge-kind")
    if "merged" in document:
        raise SpecError("it is already merged", where=file, fix=_WHOLE, code="merge-whole")
    if "shard" not in document:
        raise SpecError("it is from a run without --shard", where=file, fix=_WHOLE, code="merge-whole")
    shard = shard_of_document(document)
    keys = {cluster["cluster"] for cluster in cast("list[ClusterPart]", document["clusters"])}
    keys |= set(cast("list[str]", document.get("notRead", [])))
    if not 1 <= shard["index"] <= shard["total"] <= MOST or not keys <= shard["clusters"].keys():
        fix = "it was edited; run that shard again"
        raise SpecError("its shard data is inconsistent", where=file, fix=fix, code="merge-differs")


def _identity(document: Document, known: Document) -> Iterable[tuple[str, object, object]]:
    """Compare what documents of one run have in common: (name, here, there)."""
    ours, theirs = shard_of_document(document), shard_of_document(known)
    yield "kind", document["kind"], known["kind"]
    yield "number of shards", ours["total"], theirs["total"]
    yield "spec", ours["spec"], theirs["spec"]
    yield "filters", _filters(document), _filters(known)
    yield "number of clusters", ours["of"], theirs["of"]


def _filters(document: Document) -> str:
    scope = cast("ScopePart | None", document.get("scope"))
    return " ".join(scope["filters"]) if scope and scope["filters"] else "none"


def _places(ordered: Sequence[tuple[str, Document]]) -> dict[str, int]:
    """Return the positions of all clusters; each is in one shard, and all shards together have every cluster."""
    shards = [shard_of_document(document) for _, document in ordered]
    keys: dict[int, str] = {}
    for (file, _), shard in zip(ordered, shards, strict=True):
        for key, place in shard["clusters"].items():
            if keys.setdefault(place, key) != key or not 1 <= place <= shard["of"]:
                message = f'cluster "{key}" is at the place of "{keys[place]}", {place} of {shard["of"]}'
                raise SpecError(message, where=file, fix=_SAME_VERSION, code="merge-differs")
    count, of = sum(len(shard["clusters"]) for shard in shards), shards[0]["of"]
    places = {key: place for place, key in keys.items()}
    if len(places) < count or (len(shards) == shards[0]["total"] and count < of):
        message = f"{len(shards)} shards have {count} clusters, {len(places)} different ones of {of}"
        raise SpecError(message, where="report merge", fix=_SAME_VERSION, code="merge-differs")
    return places


_SAME_VERSION: Final = "run all shards again, with one version of gpukube and one spec"


def _plan(
    documents: Sequence[PlanDocument], clusters: list[ClusterPart], places: Mapping[str, int]
) -> dict[str, object]:
    from gpukube.core.prices import PriceBook  # noqa: PLC0415 - only for plans, like the next
    from gpukube.engine.documents.plan import add_gpus, plan_totals  # noqa: PLC0415

    sums = [document["summary"]["gpus"] for document in documents]
    before = [gpus["before"] for gpus in sums]
    known = [gpus for gpus in before if gpus is not None]
    notes = dict.fromkeys(note for document in documents for note in document["summary"]["price"]["notes"])
    _share_quotas(documents, clusters, places)
    gpus: GpuSum = {
        "before": add_gpus(known) if len(known) == len(before) else None,
        "min": add_gpus(one["min"] for one in sums),
        "max": add_gpus(one["max"] for one in sums),
    }
    return {
        "differs": any(document["differs"] for document in documents),
        "summary": plan_totals(clusters, gpus, PriceBook(notes=tuple(notes))),
        "notRead": sorted((key for one in documents for key in one["notRead"]), key=places.__getitem__),
        # Each shard checks the whole spec, so all have the same findings.
        "warnings": _unique(found for document in documents for found in document["warnings"]),
        "silenced": _unique(found for document in documents for found in document["silenced"]),
    }


def _unique(parts: Iterable[object]) -> list[object]:
    return list({json.dumps(part): part for part in parts}.values())


def _share_quotas(documents: Sequence[PlanDocument], clusters: list[ClusterPart], places: Mapping[str, int]) -> None:
    """Sum what all shards need of a quota, in the parts of all clusters that share it."""
    shares: dict[QuotaKey, list[Quota]] = {}
    for document in documents:
        # All clusters of a shard have the same numbers.
        ours = {
            _quota_key(cluster, quota): quota
            for cluster in reversed(document["clusters"])
            for quota in cluster["quotas"]
        }
        for key, quota in ours.items():
            shares.setdefault(key, []).append(quota)
    if not shares:
        return
    from gpukube.engine.documents.parts import diagnostic_document  # noqa: PLC0415 - only for plans that need quotas
    from gpukube.engine.documents.plan_parts import quota_part  # noqa: PLC0415 - as above
    from gpukube.engine.plan.quotas import shortfalls  # noqa: PLC0415 - as above

    uses = {key: _use(key[0], quotas, places) for key, quotas in shares.items()}
    reported: set[QuotaKey] = set()
    for number, cluster in enumerate(clusters):
        keys = [_quota_key(cluster, quota) for quota in cluster["quotas"]]
        if keys:
            new = [uses[key] for key in keys if key not in reported]
            reported.update(keys)
            kept = [found for found in cluster["diagnostics"] if found["code"] != "quota-short"]
            short: list[Diagnostic] = [diagnostic_document(one) for one in shortfalls(new, cluster["cluster"])]
            quotas = [quota_part(uses[key]) for key in keys]
            clusters[number] = {**cluster, "quotas": quotas, "diagnostics": [*kept, *short]}


def _quota_key(cluster: ClusterPart, quota: Quota) -> QuotaKey:
    return cluster["provider"], quota["place"], quota["name"]


def _use(provider: str, shares: Sequence[Quota], places: Mapping[str, int]) -> QuotaUse:
    """Sum what shards need of one quota, which each has read on its own; if their readings differ, use the worse."""
    from gpukube.core.quotas import CloudQuota, QuotaReading, QuotaUse  # noqa: PLC0415 - as above

    one = shares[0]
    limit = min((share["limit"] for share in shares if share["limit"] is not None), default=None)
    used = max((share["used"] for share in shares if share["used"] is not None), default=None)
    unknown = next((share["unknown"] for share in shares if share["unknown"]), "") if None in (limit, used) else ""
    pools = sorted((pool for share in shares for pool in share["pools"]), key=lambda name: places[name.split("/")[0]])
    return QuotaUse(
        CloudQuota(
            provider=provider,
            name=one["name"],
            title=one["title"],
            unit=one["unit"],
            place=one["place"],
            raise_by=one["raiseBy"],
            source=one["source"],
        ),
        sum(share["needed"] for share in shares),
        tuple(pools),
        QuotaReading(limit, used, unknown),
    )


def _map(documents: Sequence[MapDocument], clusters: list[MapCluster]) -> dict[str, object]:
    from gpukube.engine.documents.map_sums import add_namespaces, map_sum  # noqa: PLC0415 - only for maps

    return {
        "readAt": max(document["readAt"] for document in documents),
        "summary": map_sum(clusters),
        "namespaces": add_namespaces(space for cluster in clusters for space in cluster["namespaces"]),
    }


def _usage(documents: Sequence[UsageDocument], clusters: list[UsageCluster]) -> dict[str, object]:
    from gpukube.engine.documents.usage_sums import usage_sums  # noqa: PLC0415 - only for usage

    total, groups, owners, namespaces = usage_sums(clusters)
    return {
        "readAt": max(document["readAt"] for document in documents),
        "summary": total,
        "groups": groups,
        "owners": owners,
        "namespaces": namespaces,
        "notes": _unique(note for document in documents for note in document["notes"]),
    }


def _doctor(documents: Sequence[DoctorDocument]) -> dict[str, object]:
    sums = {name: sum(document["summary"].get(name, 0) for document in documents) for name in SEVERITIES}
    return {"summary": {name: count for name, count in sums.items() if count}}


def _report(merged: ReportDocument) -> dict[str, object]:
    return {"summary": counted(pool["outcome"] for cluster in merged["clusters"] for pool in cluster["pools"])}


def _exit_code(kind: str, documents: Sequence[Document], merged: Document) -> ExitCode:
    """Return the exit code that one run would have had, by the rules of the commands, from each shard's exit code.

    An interrupted shard counts as failed with 1, as it did not finish.
    """
    codes = {_code(document) for document in documents}
    failed = codes - {ExitCode.DONE, ExitCode.DIFFERS}
    if kind in ("Plan", "Diff"):
        return _common_code(failed) or max(codes)
    if kind == "Doctor":
        patients = cast("list[DoctorDocument]", documents)
        failures = {_code(one) for one in patients if any(map(_is_failed, one["clusters"]))} - {ExitCode.DONE}
        return _common_code(failures or failed) or ExitCode.DONE
    if failed and _is_partly_good(kind, merged):
        return ExitCode.PARTLY_DONE
    return _common_code(failed) or ExitCode.DONE


def _code(document: Document) -> ExitCode:
    code = shard_of_document(document)["exitCode"]
    return ExitCode(code) if code in range(ExitCode.TIMED_OUT + 1) else ExitCode.ERROR


def _common_code(failed: set[ExitCode]) -> ExitCode | None:
    """Return the only code of all failures, or 1 if they differ; None if nothing failed."""
    return (next(iter(failed)) if len(failed) == 1 else ExitCode.ERROR) if failed else None


def _is_failed(patient: PatientPart) -> bool:
    """Return whether a cluster could not be checked or fixed, which outweighs findings."""
    unread = (skipped["reading"] in ("cloud", "nodes") for skipped in patient["skipped"])
    return bool(patient["unmended"]) or (not patient["made"] and bool(patient["errors"])) or any(unread)


def _is_partly_good(kind: str, merged: Document) -> bool:
    if kind == "PoolList":
        return any(cluster["error"] is None for cluster in cast("ListDocument", merged)["clusters"])
    if kind in ("Map", "Usage"):
        read = cast("MapDocument | UsageDocument", merged)["summary"]
        return read["unread"] < read["clusters"]
    pools = (pool for cluster in cast("ReportDocument", merged)["clusters"] for pool in cluster["pools"])
    return any(pool["outcome"] in GOOD and pool["error"] is None for pool in pools)
