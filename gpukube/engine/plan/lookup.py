"""Finds live pools by name, and checks that they may be changed: only pools of the given owners may."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.core.marks import has_lost_marks
from gpukube.core.plan import doubtful, match_live
from gpukube.core.values import PoolPlan
from gpukube.errors import Conflict, SpecError, Where

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.core.values import ClusterRef, Desired, Observed, Target
    from gpukube.engine.plan.planning import ClusterPlan


def find_pools(  # noqa: PLR0913 - options that change what a name selects
    plans: Sequence[ClusterPlan],
    owners: Sequence[str],
    names: Sequence[str],
    *,
    may_be_gone: bool = False,
    releasing: bool = False,
    one_of_two: bool = False,
) -> Mapping[str, tuple[Observed, ...]]:
    """Find the live pools with these names, in the spec or in the cloud, and with these owners.

    Args:
        plans: Plans of all clusters.
        owners: Owners whose pools may be changed.
        names: Names of pools.
        may_be_gone: Whether to skip unknown names instead of raising.
        releasing: Whether the pools only lose gpukube's labels, which is also allowed for a manual copy of one of its
            pools.
        one_of_two: Whether a name may select two pools of which one replaces the other.

    Returns:
        The pools by cluster key.

    Raises:
        SpecError: No cluster has a pool of a name and no spec declares it.
        Conflict: A pool of a name has another owner, or the name selects two of which one replaces the other.
        GpukubeError: A cluster could not be read.
    """
    for plan in plans:
        if plan.error is not None:
            raise plan.error
    found = {
        plan.cluster.key: tuple(o for o in plan.live if any(is_named(name, plan.cluster.key, o) for name in names))
        for plan in plans
    }
    for plan in plans:
        _require_declared(plan, owners, names)
        for pool in found[plan.cluster.key]:
            _require_ours(plan.cluster, pool, owners)
            doubt = doubtful(plan.cluster, pool, plan.live)
            if doubt and (doubt.code == "half-marks" or not releasing):
                raise Conflict.of([doubt])
        if releasing:
            found |= {plan.cluster.key: _by_cloud_name(plan, found[plan.cluster.key], names)}
        if not one_of_two:
            _require_unambiguous(plan, found[plan.cluster.key], names)
    for name in names:
        live = any(is_named(name, key, pool) for key, pools in found.items() for pool in pools)
        if not live and not may_be_gone and not any(declared_as(plan, name) for plan in plans):
            raise no_such_pool(name, plans)
    return found


def _require_declared(plan: ClusterPlan, owners: Sequence[str], names: Sequence[str]) -> None:
    """Check the live pools that the spec declares under these names and that lost their labels or were released."""
    for expected in plan.desired:
        if any(is_named(name, plan.cluster.key, expected.target) for name in names):
            if lost := _without_labels(plan, expected):
                raise _unmarked(expected, lost[0])
            for pool in released_pools(plan, expected):
                _require_ours(plan.cluster, pool, owners)


def _require_unambiguous(plan: ClusterPlan, found: Sequence[Observed], names: Sequence[str]) -> None:
    """Reject the name of a pool that is being replaced: it matches two pools, so both must be named."""
    for pool in found:
        both = sorted(o.name for o in found if (o.owner, o.pool) == (pool.owner, pool.pool))
        named = {name.removeprefix(f"{plan.cluster.key}/") for name in names}
        if len(both) > 1 and not named >= set(both):
            if doubt := doubtful(plan.cluster, pool, plan.live):
                raise Conflict.of([doubt])
            alone = next((name for name in both if name != pool.pool), both[-1])
            raise Conflict(
                f"{' and '.join(both)} both have the labels of pool {pool.pool}: a replacement is under way",
                where=Where(f"{plan.cluster.key}/{pool.pool}"),
                fix="finish it: gpukube pool apply -f FILE --replace surge; or name both, "
                f"{' '.join(both)}, or {alone} alone",
                code="replacement-under-way",
            )


def _by_cloud_name(plan: ClusterPlan, found: Sequence[Observed], names: Sequence[str]) -> tuple[Observed, ...]:
    """Let "cluster/name" select by cloud name if pools with the same labels are not a replacement."""
    named = {name.removeprefix(f"{plan.cluster.key}/") for name in names if "/" in name}
    named_owners = {
        (pool.owner, pool.pool) for pool in found
        if pool.name in named and (doubt := doubtful(plan.cluster, pool, plan.live)) and doubt.code == "two-pools"
    }  # fmt: skip
    return tuple(pool for pool in found if (pool.owner, pool.pool) not in named_owners or pool.name in named)


def released_pools(plan: ClusterPlan, desired: Desired) -> tuple[Observed, ...]:
    """Find the live pools that were a declared pool until they were released."""
    found = match_live(desired, [pool for pool in plan.live if not pool.owner])
    return tuple(pool for pool in found if pool.released)


def is_named(name: str, cluster: str, pool: Observed | Target | PoolPlan) -> bool:
    """Return whether a name selects a pool: its name in the spec or in the cloud, or that of its family.

    Each alone or as "cluster/pool".
    """
    return is_named_itself(name, cluster, pool) or is_family_named(name, cluster, family_of(pool))


def is_named_itself(name: str, cluster: str, pool: Observed | Target | PoolPlan) -> bool:
    """Return whether a name is that of a pool, in the spec or in the cloud, alone or as "cluster/pool"."""
    names = {pool.pool, pool.name} - {""}
    return name in names or name in {f"{cluster}/{each}" for each in names}


def is_family_named(name: str, cluster: str, family: str) -> bool:
    """Return whether a name is that of a family, alone or as "cluster/family"; False for a pool of no family."""
    return bool(family) and name in (family, f"{cluster}/{family}")


def family_of(pool: Observed | Target | PoolPlan) -> str:
    """Return the name of a pool's family, as declared or by its label; "" for a pool of no family."""
    if isinstance(pool, PoolPlan):
        return pool.desired.target.family if pool.desired else pool.observed.family if pool.observed else ""
    return pool.family


def no_such_pool(name: str, plans: Sequence[ClusterPlan]) -> SpecError:
    """Return the error for an unknown name."""
    keys = ", ".join(plan.cluster.key for plan in plans)
    declared = ", and the spec has none" if any(plan.desired for plan in plans) else ""
    return SpecError(
        f'no pool "{name}" is live on {keys}{declared}',
        where=Where(name),
        fix="gpukube pool list shows the live pools",
        code="no-pool",
    )


def absent_pools(plan: ClusterPlan, names: Sequence[str], plans: Sequence[ClusterPlan]) -> Iterator[str]:
    """List the declared pools of these names that do not exist on the cluster, and families of which no pool does.

    Args:
        plan: The cluster.
        names: Names of pools.
        plans: All clusters: a family with place: any exists if it does on one of them.
    """
    key = plan.cluster.key
    families = {family for each in plans for family in _live_families(each)}
    missing = [
        expected.target for expected in plan.desired
        if not _is_live(plan, expected.target) and not _without_labels(plan, expected)
    ]  # fmt: skip
    absent = {}
    for target in missing:
        if any(is_family_named(name, key, target.family) for name in names):
            there = families if target.place == "any" else _live_families(plan)
            if (target.owner, target.family) not in there:
                absent[target.family] = target
        elif any(is_named_itself(name, key, target) for name in names):
            absent[target.pool] = target
    yield from absent


def _is_live(plan: ClusterPlan, target: Target) -> bool:
    return any((o.owner, o.pool) == (target.owner, target.pool) for o in plan.live)


def _live_families(plan: ClusterPlan) -> set[tuple[str, str]]:
    """Return owner and name of the families with a live pool, with or without the label of the family."""
    declared = {(d.target.owner, d.target.family) for d in plan.desired if _is_live(plan, d.target)}
    return {*declared, *((o.owner, o.family) for o in plan.live)}


def _without_labels(plan: ClusterPlan, desired: Desired) -> tuple[Observed, ...]:
    """Find the live pools that are identified as a declared one only by the copy of its labels."""
    return tuple(o for o in plan.live if has_lost_marks(desired, o))


def declared_as(plan: ClusterPlan, name: str) -> Desired | None:
    """Return the declared pool of this name; None if there is none."""
    return next((d for d in plan.desired if is_named(name, plan.cluster.key, d.target)), None)


def _unmarked(desired: Desired, pool: Observed) -> Conflict:
    target, adopt = desired.target, " --adopt" if desired.copy_is_fixed else ""
    return Conflict(
        f'the labels of the pool "{pool.name}" were replaced: they have no gpukube.io/owner',
        where=target.where,
        why="a pool with the owner only in its tags is not scaled, released or deleted",
        fix=f"gpukube pool apply -f FILE --pool {target.pool}{adopt} restores them; then run this again",
        code="lost-marks",
    )


def _require_ours(cluster: ClusterRef, pool: Observed, owners: Sequence[str]) -> None:
    if pool.owner not in owners:
        claim = f"add --owner {pool.owner} if that is you" if pool.owner and not owners else ""
        raise Conflict(
            f'it belongs to "{pool.owner}"' if pool.owner else "it has no gpukube.io/owner label",
            where=Where(f"{cluster.key}/{pool.name}"),
            why="gpukube changes and deletes only pools of the spec's owner",
            fix=claim or "use the spec or the tool that created it",
            code="not-ours",
        )
