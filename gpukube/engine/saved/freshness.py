"""Compares a saved plan with a fresh plan from the same input: what changed in between.

Pure. In scope: which differences count, and how they are reported. Out of scope: planning, files.

Relevant are the planned actions and what was read of their pools. Not relevant is what changes by nature: nodes of
autoscaled pools, wording of a cloud's status, a pool that was busy and is now ready, one that was being deleted and is
gone, a patch of the control plane, and anything about a pool that matches the spec before and after.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from gpukube.core.fields import FieldPath, label
from gpukube.engine.saved.recording import record_cluster
from gpukube.errors import SpecError, StalePlan, Where

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.saved.file import SavedPlan
    from gpukube.engine.saved.provenance import Provenance
    from gpukube.engine.saved.records import ClusterRecord, PoolRecord, ReleaseRecord, SightRecord
    from gpukube.errors import GpukubeError

_BY_NATURE: Final = frozenset(
    {
        "etag",
        "eTag",
        "match_condition",
        "provisioningState",
        "powerState",
        "nodeImageVersion",
        "currentOrchestratorVersion",
    }
)
"""Keys of requests that repeat what was read of the pool: guards, and on AKS, whose PUT contains the whole pool, what
the service writes (Microsoft.ContainerService, ManagedClusterAgentPoolProfileProperties, read-only properties)."""
_NUMBERS: Final = frozenset({"count", "desiredSize", "initialNodeCount"})
"""Keys that repeat the number of nodes; for an existing autoscaled pool the autoscaler decides it."""
_ABSENT: Final = object()
_ENDPOINT: Final = "endpoint."
"""Prefix of the hosts that were called, which an SDK's environment or configuration can change."""
_SHOWN_AT_MOST: Final = 60
_AGAIN: Final = "plan again and review the changes: gpukube pool plan -f FILE --out plan.json"
_WHY: Final = "a saved plan is applied as it was reviewed, or not at all"


def require_place(saved: SavedPlan, now: Provenance) -> None:
    """Reject a sandbox plan outside the sandbox, or a plan with other endpoints; called before any cloud is read.

    Raises:
        SpecError: Only one of plan and run uses the sandbox, or their endpoints differ.
    """
    record = saved.record
    if record.sandbox != now.sandbox:
        made, here = ("in", "not in it") if record.sandbox else ("outside", "in it")
        fix = "add --sandbox" if record.sandbox else "remove --sandbox"
        message = f"the plan was made {made} the sandbox, but this run is {here}"
        raise SpecError(message, where=saved.source, fix=fix, code="saved-plan-place")
    for provider in sorted({*record.endpoints, *now.endpoints}):
        then, here = (hosts.get(provider, "the cloud's own") for hosts in (record.endpoints, now.endpoints))
        if then != here:
            raise SpecError(
                f"the plan was made with endpoint {then} for {provider}, but this run has {here}",
                where=saved.source,
                fix="use the same endpoint, or plan again",
                code="saved-plan-place",
            )


def require_fresh(saved: SavedPlan, plans: Sequence[ClusterPlan], now: Provenance) -> None:
    """Reject a saved plan if anything changed since.

    Args:
        saved: The saved plan.
        plans: New plans from its specs and options.
        now: Provenance of this run.

    Raises:
        GpukubeError: A cluster could not be planned, or its Kubernetes API could not be read; that error.
        StalePlan: One diagnostic per change, old -> new.
    """
    _require_known(plans)
    found = [_stale(saved.source, "the chart differs from the one that the plan was made with")] * (
        saved.record.chart_digest != now.chart_digest
    )
    fresh = {plan.cluster.key: record_cluster(plan) for plan in plans}
    stored = {record.cluster: record for record in saved.record.clusters}
    for key in dict.fromkeys([*stored, *fresh]):
        found += [_stale(where, moved) for where, moved in _cluster(key, stored.get(key), fresh.get(key))]
    if found:
        raise _joined(found)


def _require_known(plans: Sequence[ClusterPlan]) -> None:
    unknown = [error for plan in plans if (error := plan.error or plan.unreachable) is not None]
    if unknown:
        raise _joined(unknown)


def _joined(errors: Sequence[GpukubeError]) -> GpukubeError:
    """Combine several errors into one of the first one's class, with all diagnostics."""
    first, *others = errors
    if not others:
        return first
    return type(first).of(dict.fromkeys(d for error in errors for d in error.diagnostics), str(first))


def _stale(where: str, moved: str) -> StalePlan:
    return StalePlan(moved, where=Where(where), fix=_AGAIN, why=_WHY)


def _cluster(key: str, saved: ClusterRecord | None, now: ClusterRecord | None) -> Iterator[tuple[str, str]]:
    """Describe what changed on one cluster, each with the resource it is about."""
    if now is None and saved is not None and not saved.pools:
        return  # planned by an older gpukube, which also read clusters without pools
    if saved is None or now is None:
        yield key, "the cluster is not in the saved plan" if saved is None else "the cluster is only in the saved plan"
        return
    yield from ((key, moved) for moved in _identity(saved, now))
    then = {_key(pool): pool for pool in saved.pools}
    here = {_key(pool): pool for pool in now.pools}
    for pool in dict.fromkeys([*then, *here]):
        yield from ((f"{key}/{pool[1]}", moved) for moved in _pool(then.get(pool), here.get(pool)))
    known = {mark.name for mark in saved.undeclared}
    for mark in now.undeclared:
        if mark.name not in known:
            yield f"{key}/{mark.pool or mark.name}", f'live pool {mark.name} of "{mark.owner}" is new'
    yield from _repairs(key, saved, now)
    for name, text in now.orders.items():  # an order that was written meanwhile does not count
        if saved.orders.get(name) != text:
            yield key, f"{name} would get another order of alternatives"
    for saved_one, now_one in ((saved.release, now.release), (saved.dra_release, now.dra_release)):
        if saved_one is not None and now_one is not None:
            yield from ((key, moved) for moved in _release(saved_one, now_one))
    before, after = _dra_action(saved), _dra_action(now)
    if before != after and None in (saved.dra_release, now.dra_release):
        yield key, f"release of the DRA driver: action {before} -> {after}"


def _identity(saved: ClusterRecord, now: ClusterRecord) -> Iterator[str]:
    then = {"provider": saved.provider, "name": saved.name, "location": saved.location, **saved.identity}
    here = {"provider": now.provider, "name": now.name, "location": now.location, **now.identity}
    # A plan saved before endpoints were recorded has none; that is not a change.
    if not any(name.startswith(_ENDPOINT) for name in then):
        here = {name: value for name, value in here.items() if not name.startswith(_ENDPOINT)}
    yield from _differences(then, here)
    minors = (_minor(saved.kubernetes_version), _minor(now.kubernetes_version))
    if minors[0] != minors[1]:
        yield f"Kubernetes {minors[0]} -> {minors[1]}"


def _minor(version: str) -> str:
    """Return "1.34" for "1.34.2-gke.100": clouds patch control planes on their own."""
    return ".".join(version.split(".")[:2])


def _key(pool: PoolRecord) -> tuple[str, str, str]:
    """Identify a pool across two plans; of two pools with the same labels to delete, each by its cloud name."""
    return pool.owner, pool.pool, pool.name if pool.action == "delete" else ""


def _pool(saved: PoolRecord | None, now: PoolRecord | None) -> Iterator[str]:
    if saved is None:
        yield f"pool {now.name if now else ''} is new: it would be deleted" if _deletes(now) else "the pool is new"
    elif now is None:
        if not (_deletes(saved) and saved.seen and saved.seen.state == "deleting"):
            yield "the pool is gone"
    elif not saved.action == now.action == "no-op":
        moved = [*_seen_pool(saved.seen, now.seen)]
        if saved.action != now.action:
            moved.append(f"action {saved.action} -> {now.action}")
        yield from moved or [*_calls(saved, now)] or _goals(saved, now)


def _deletes(pool: PoolRecord | None) -> bool:
    return pool is not None and pool.action == "delete"


def _seen_pool(saved: SightRecord | None, now: SightRecord | None) -> Iterator[str]:
    """Describe what changed in the live pool that the plan acts on."""
    if saved is None or now is None:
        if now is not None:
            yield f"live pool {now.name} exists now"
        elif saved is not None and saved.state != "deleting":
            yield f"the live pool {saved.name} is gone"
        return
    moved = [*_differences(_facts(saved), _facts(now))]
    settled = (saved.state, now.state) == ("busy", "ready")
    if saved.state != now.state and not settled:
        moved.append(f"state {saved.state} -> {now.state}")
    # Etags are not compared: every write creates a new one, even a write that was reverted. Cloud fields beyond
    # gpukube's are compared in the requests, which contain them.
    yield from moved


def _facts(seen: SightRecord) -> dict[str, object]:
    """Return everything that is known of a live pool by name, each item once."""
    labels = {str(label(key)): value for key, value in seen.labels.items()}
    taints = {} if "taints" in seen.fields else {"taints": list(seen.taints)}
    return {"name": seen.name, **labels, **taints, **seen.fields}


def _calls(saved: PoolRecord, now: PoolRecord) -> Iterator[str]:
    """Describe how the requests differ, if nothing that was read of the pool explains it."""
    then, here = [request.operation for request in saved.requests], [request.operation for request in now.requests]
    if then != here:
        yield f"requests {', '.join(then) or 'none'} -> {', '.join(here) or 'none'}"
        return
    ignored = _BY_NATURE | (
        _NUMBERS
        if now.seen and any(FieldPath.parse(field).is_below("nodes", "autoscaling") for field in now.seen.fields)
        else frozenset()
    )
    for before, after in zip(saved.requests, now.requests, strict=True):
        for moved in _differences(dict(_leaves(before.params, ignored)), dict(_leaves(after.params, ignored))):
            yield f"request {before.operation}: {moved}"


def _goals(saved: PoolRecord, now: PoolRecord) -> Iterator[str]:
    """Describe target values that differ and are in no request: the newest node image."""
    yield from _differences(*({change.field: change.new for change in one.changes} for one in (saved, now)))


def _leaves(value: object, ignored: frozenset[str], path: str = "") -> Iterator[tuple[str, object]]:
    """Return the leaves of a request by path; lists are leaves."""
    if not isinstance(value, Mapping):
        yield path, value
        return
    for key, inner in value.items():
        if key not in ignored:
            yield from _leaves(inner, ignored, f"{path}.{key}" if path else str(key))


def _repairs(key: str, saved: ClusterRecord, now: ClusterRecord) -> Iterator[tuple[str, str]]:
    """Describe labels and taints that nodes have lost since; nodes that were repaired or are gone do not count."""
    known = {(repair.node, repair.field, repair.wanted) for repair in saved.repairs}
    for repair in now.repairs:
        if (repair.node, repair.field, repair.wanted) not in known:
            lost = f"{repair.field} {repair.wanted} -> {_shown(repair.live)}"
            yield f"{key}/{repair.pool}", f"node {repair.node}: {lost}"


def _release(saved: ReleaseRecord, now: ReleaseRecord) -> Iterator[str]:
    """Describe what changed in the release, unless both plans leave it alone."""
    if saved.action == now.action == "none":
        return
    moved = [f"release {text}" for text in _differences(_release_facts(saved), _release_facts(now))]
    if saved.digest and now.digest and saved.digest != now.digest:
        moved.append(f"release chart digest {saved.digest} -> {now.digest}")
    if not moved and saved.values != now.values:
        then, here = ({value.path: value.new for value in release.changes} for release in (saved, now))
        moved = [f"release value {text}" for text in _differences(then, here)] or ["release values differ"]
    yield from moved


def _dra_action(cluster: ClusterRecord) -> str:
    return cluster.dra_release.action if cluster.dra_release else "none"


def _release_facts(release: ReleaseRecord) -> dict[str, object]:
    facts: dict[str, object] = {"name": release.name, "chart": f"{release.chart} {release.version}"}
    return {**facts, "action": release.action, "revision": release.revision}


def _differences(then: Mapping[str, object], now: Mapping[str, object]) -> Iterator[str]:
    for name in sorted({*then, *now}):
        old, new = then.get(name, _ABSENT), now.get(name, _ABSENT)
        if old != new:
            yield f"{name} {_shown(old)} -> {_shown(new)}"


def _shown(value: object) -> str:
    if value is _ABSENT or value is None:
        return "none"
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _SHOWN_AT_MOST else f"{text[:_SHOWN_AT_MOST]}..."
