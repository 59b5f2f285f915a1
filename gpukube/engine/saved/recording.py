"""Converts cluster plans to their records: what was read and what will be done, without secrets.

Pure. In scope: what a saved plan contains. Out of scope: comparing two records (freshness). The clouds' responses are
left out; requests contain no credentials, and their user data is recorded as a digest.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, cast

from gpukube.engine.documents.parts import plain, request_part
from gpukube.engine.saved.records import (
    ChangeRecord,
    ClusterRecord,
    MarkRecord,
    PoolRecord,
    ReleaseRecord,
    RepairRecord,
    RequestRecord,
    SightRecord,
    ValueRecord,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.cluster.release.plan import ReleasePlan
    from gpukube.core.fields import FieldPath
    from gpukube.core.values import Observed, PoolPlan, Request
    from gpukube.engine.plan.planning import ClusterPlan


def record_cluster(plan: ClusterPlan) -> ClusterRecord:
    """Return the record of one cluster's plan, which must not have failed."""
    cluster, facts = plan.cluster, plan.facts
    return ClusterRecord(
        cluster=cluster.key,
        provider=cluster.provider,
        name=cluster.name,
        identity={
            **cluster.identity,
            **{f"endpoint.{service}": host for service, host in (facts.endpoints if facts else {}).items()},
        },
        location=facts.location if facts else "",
        kubernetes_version=facts.kubernetes_version if facts else "",
        pools=tuple(_pool(pool) for pool in plan.pools),
        undeclared=tuple(MarkRecord(o.name, o.owner, o.pool) for o in plan.undeclared),
        release=_release(plan.release) if plan.release else None,
        dra_release=_release(dra) if (dra := plan.dra_release) and not dra.is_absent else None,
        repairs=tuple(RepairRecord(r.node, r.pool, r.field, r.desired, r.live) for r in plan.repairs),
        orders={str(item): item.content for item in plan.orders if item.acts},
    )


def canonical(value: object) -> bytes:
    """Return JSON in the canonical form used for digests: sorted keys, no spaces, ASCII.

    Raises:
        ValueError: A number that JSON cannot represent.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def digest(value: object) -> str:
    """Return the digest of a JSON value, "sha256:..."."""
    return f"sha256:{sha256(canonical(value)).hexdigest()}"


def _pool(plan: PoolPlan) -> PoolRecord:
    changes = ((c.change, c.row.kind) for c in plan.changes)
    return PoolRecord(
        pool=plan.pool,
        owner=plan.desired.target.owner if plan.desired else plan.observed.owner if plan.observed else "",
        name=plan.name,
        action=plan.action,
        changes=tuple(ChangeRecord(str(c.field), plain(c.old), plain(c.new), kind) for c, kind in changes),
        requests=tuple(_request(request) for request in plan.requests),
        seen=_seen_pool(plan.observed) if plan.observed else None,
    )


def _request(request: Request) -> RequestRecord:
    part = request_part(request)
    return RequestRecord(part["service"], part["operation"], cast("dict[str, object]", part["params"]))


def _seen_pool(live: Observed) -> SightRecord:
    taints = tuple(sorted(str(taint) for taint in live.effective_taints))
    return SightRecord(
        name=live.name,
        state=live.state,
        etag=live.etag,
        fields=_object(live.fields),
        labels=dict(live.labels),
        taints=taints,
    )


def _release(plan: ReleasePlan) -> ReleaseRecord:
    return ReleaseRecord(
        action=plan.action,
        name=plan.name,
        chart=plan.chart,
        version=plan.version,
        revision=plan.revision,
        values=digest(_object(plan.values)),
        changes=tuple(ValueRecord(c.path, plain(c.old), plain(c.new)) for c in plan.changes),
        digest=plan.digest,
    )


def _object(value: Mapping[str, object] | Mapping[FieldPath, object]) -> dict[str, object]:
    return {str(key): plain(inner) for key, inner in value.items()}
