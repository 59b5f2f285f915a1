"""Converts plans to the document of a saved plan, and rejects plans that cannot be saved.

A plan with an error, a conflict, or an unknown cannot be applied, so it is not written: an existing file can be applied
as long as nothing changes. (Terraform writes such plans, marked as not applicable; they are of no more use than the
printed plan.)
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, cast

import msgspec

from gpukube.cluster.helm.chart import ChartSource
from gpukube.engine.saved.recording import digest, record_cluster
from gpukube.engine.saved.records import KIND, SCHEMA_VERSION, OptionsRecord, PlanRecord
from gpukube.engine.saved.specs import pack_spec
from gpukube.errors import Finding, GpukubeError, Where

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.core.values import PoolPlan
    from gpukube.engine.documents.parts import Document
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.saved.options import PlanOptions
    from gpukube.engine.saved.provenance import Provenance
    from gpukube.spec.loading.load import LoadedSpec


def saved_plan(
    plans: Sequence[ClusterPlan], specs: Sequence[LoadedSpec], options: PlanOptions, made: Provenance
) -> Document:
    """Return the document of a saved plan, including its checksum.

    Args:
        plans: Plans of every cluster, made from `specs` with `options`.
        specs: The loaded specs.
        options: Other options that shaped the plan.
        made: Provenance of the run.

    Raises:
        GpukubeError: The plan cannot be saved; one diagnostic per reason.
    """
    require_savable(plans, options)
    record = PlanRecord(
        kind=KIND,
        schema_version=SCHEMA_VERSION,
        gpukube_version=made.version,
        created=made.created,
        sandbox=made.sandbox,
        endpoints=dict(made.endpoints),
        chart_digest=made.chart_digest,
        options=OptionsRecord(**asdict(options)),
        specs=tuple(pack_spec(spec) for spec in specs),
        clusters=tuple(record_cluster(plan) for plan in plans),
        checksum="",
    )
    document = cast("dict[str, object]", msgspec.to_builtins(record))
    del document["checksum"]
    return {**document, "checksum": digest(document)}


def require_savable(plans: Sequence[ClusterPlan], options: PlanOptions) -> None:
    """Reject plans that could not be applied.

    Raises:
        GpukubeError: One diagnostic per reason.
    """
    found = [_refusal(where, cause) for plan in plans for where, cause in _obstacles(plan)]
    if ChartSource(options.chart).has_secret:
        found.append(
            _refusal(
                Where("--chart"),
                "the chart's address contains a user, password or query, which a saved plan must not contain",
                "use an address without them (helm registry login for oci://), or a local chart; then plan again",
            )
        )
    if found:
        raise GpukubeError.of(dict.fromkeys(found))


def _refusal(where: Where, cause: str, fix: str = "fix this, then plan again") -> Finding:
    return Finding(
        "plan-unsaved",
        where,
        f"the plan is not saved: {cause}",
        fix=fix,
        why="a saved plan is applied exactly as saved, so it must have no errors and nothing unknown",
    )


def _obstacles(plan: ClusterPlan) -> Iterator[tuple[Where, str]]:
    """Return what prevents the plan of one cluster from being applied."""
    where = Where(plan.cluster.key)
    if plan.error is not None:
        yield where, str(plan.error)
        return
    if plan.unknown:
        yield where, f"the cluster could not be read: {plan.unknown}"
    else:
        yield from ((where, it.reason) for it in plan.releases if it.action in ("conflict", "unknown"))
    yield from ((d.where, d.seen) for d in plan.diagnostics if d.severity == "error")
    for pool in plan.pools:
        yield from _pool_obstacles(pool)


def _pool_obstacles(pool: PoolPlan) -> Iterator[tuple[Where, str]]:
    errors = [d.seen for d in pool.diagnostics if d.severity == "error"]
    if pool.action == "conflict" and not errors:
        errors = [pool.why]
    yield from ((pool.where, message) for message in errors)
