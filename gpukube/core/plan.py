"""Desired and observed pools -> what will happen to each, and why.

Pure: no cloud is asked and nothing is sent. A live pool is matched by our marks (owner, pool) first, then by its
cloud name; what is not ours is never changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.core.diff import diff_fields
from gpukube.core.values import ClassifiedChange, PoolPlan
from gpukube.errors import Diagnostic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.core.values import Action, Desired, Observed
    from gpukube.provider import Provider

__all__ = ["match_live", "plan_pool"]


def match_live(desired: Desired, live: Sequence[Observed]) -> tuple[Observed, ...]:
    """Find the live pools that are this one: by (owner, pool) mark, else by cloud name.

    Returns:
        None, one, or several: two pools with one mark are an unfinished replacement.
    """
    target = desired.target
    marked = tuple(o for o in live if (o.owner, o.pool) == (target.owner, target.pool))
    return marked or tuple(o for o in live if o.name == target.name)


def plan_pool(provider: Provider, desired: Desired, live: Sequence[Observed]) -> PoolPlan:
    """Plan one pool of the spec against the live pools of its cluster."""
    matches = match_live(desired, live)
    if not matches:
        return _plan(desired, None, "create", "no such pool on the cluster")
    if len(matches) > 1:
        return _unfinished_replacement(desired, matches)
    observed = matches[0]
    if (observed.owner, observed.pool) != (desired.target.owner, desired.target.pool):
        return _foreign(desired, observed)
    changes = tuple(
        ClassifiedChange(change, provider.update_row(change)) for change in diff_fields(desired.fields, observed.fields)
    )
    if changes and observed.fields:  # without fields it is what a killed run left of a pool: made again
        return _changed(desired, observed, changes)
    return _unchanged(provider, desired, observed)


def _plan(desired: Desired, observed: Observed | None, action: Action, why: str) -> PoolPlan:
    target = desired.target
    requests = (desired.create,) if action == "create" else ()
    return PoolPlan(target.cluster, target.pool, target.name, action, why, desired, observed, (), requests, ())


def _unchanged(provider: Provider, desired: Desired, observed: Observed) -> PoolPlan:
    if observed.state == "busy":
        return _plan(desired, observed, "no-op", f"matches; the cloud is still working on it ({observed.status})")
    if observed.state == "ready":
        return _plan(desired, observed, "no-op", "matches the spec")
    target = desired.target
    repair = provider.recreate_request(desired, observed)
    requests = (repair,) if repair else (provider.delete_request(target.cluster, observed), desired.create)
    why = f"is there but {observed.status}: {observed.failure or 'the cloud gives no reason'}; made again"
    return PoolPlan(target.cluster, target.pool, target.name, "create", why, desired, observed, (), requests, ())


def _changed(desired: Desired, observed: Observed, changes: tuple[ClassifiedChange, ...]) -> PoolPlan:
    target = desired.target
    kinds = {c.row.kind for c in changes}
    action: Action = "replace" if "replace" in kinds else "update"
    fields = ", ".join(c.change.field for c in changes)
    diagnostics = tuple(
        Diagnostic(
            "refused-change",
            target.where,
            f"{c.change.field} cannot change: {c.row.sentence}",
            fix="write the live value again, or give the pool a new name",
        )
        for c in changes
        if c.row.kind == "refused"
    )
    return PoolPlan(
        target.cluster, target.pool, target.name, action, f"differs in {fields}", desired, observed, changes, (),
        diagnostics,
    )  # fmt: skip


def _foreign(desired: Desired, observed: Observed) -> PoolPlan:
    target = desired.target
    owner = f'belongs to "{observed.owner}" (pool {observed.pool})' if observed.owner else "is not marked as ours"
    problem = Diagnostic(
        "foreign-pool",
        target.where,
        f'a pool named "{observed.name}" exists on {target.cluster.key} and {owner}',
        fix=f"choose another name for the pool (names: {{{target.cluster.provider}: ...}}), or delete the live one",
        why="gpukube changes and deletes only pools that carry its owner's mark",
    )
    return PoolPlan(
        target.cluster, target.pool, target.name, "conflict", problem.message, desired, observed, (), (), (problem,)
    )  # fmt: skip


def _unfinished_replacement(desired: Desired, matches: tuple[Observed, ...]) -> PoolPlan:
    target = desired.target
    names = " and ".join(o.name for o in matches)
    problem = Diagnostic(
        "two-pools",
        target.where,
        f"{names} both carry the mark of this pool: an unfinished replacement",
        fix=f"delete the one that is no longer wanted: gpukube pool delete -f FILE --cluster {target.cluster.key} NAME",
    )
    return PoolPlan(
        target.cluster, target.pool, target.name, "conflict", problem.message, desired, matches[0], (), (), (problem,)
    )  # fmt: skip
