"""Plans -> the document of a saved plan; and which plans are not fit to be saved.

A plan that holds an error, a conflict or something unknown cannot be applied, so none is written: a file that exists
can be applied as long as nothing moves. (Terraform writes such plans marked as not applicable; nobody can do more with
them than read what the screen has said.)
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
    """Make the document of a saved plan, checksum included.

    Args:
        plans: Every cluster, as planned from `specs` with `options`.
        specs: As loaded.
        options: What else shaped the plan.
        made: The circumstances.

    Raises:
        GpukubeError: The plan is not fit to be saved; one diagnostic per reason.
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
    """Refuse plans that could not be applied.

    Raises:
        GpukubeError: One diagnostic per reason.
    """
    found = [_refusal(where, cause) for plan in plans for where, cause in _obstacles(plan)]
    if ChartSource(options.chart).has_secret:
        found.append(
            _refusal(
                Where("--chart"),
                "the chart's address contains a user, password or query, which a saved plan must not",
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
        why="a saved plan is applied as it is, so it must have no errors and nothing unknown",
    )


def _obstacles(plan: ClusterPlan) -> Iterator[tuple[Where, str]]:
    """Find what keeps the plan of one cluster from being applied."""
    where = Where(plan.cluster.key)
    if plan.error is not None:
        yield where, str(plan.error)
        return
    if plan.unknown:
        yield where, f"the cluster could not be read: {plan.unknown}"
    elif plan.release is not None and plan.release.action in ("conflict", "unknown"):
        yield where, plan.release.reason
    yield from ((d.where, d.seen) for d in plan.diagnostics if d.severity == "error")
    for pool in plan.pools:
        yield from _pool_obstacles(pool)


def _pool_obstacles(pool: PoolPlan) -> Iterator[tuple[Where, str]]:
    errors = [d.seen for d in pool.diagnostics if d.severity == "error"]
    if pool.action == "conflict" and not errors:
        errors = [pool.why]
    yield from ((pool.where, message) for message in errors)
