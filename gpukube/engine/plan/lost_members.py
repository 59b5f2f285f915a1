"""Members of a live pool that its replacement would not have: errors of the plan unless each is accepted.

In scope: adding these findings to plans, and checking the arguments of --accept-loss. Out of scope: which members a
person chose and a new pool would lack (the providers' pool.members).

Only names are shown: values may be secret.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from gpukube.core.members import is_declared
from gpukube.errors import Finding, SpecError, Where

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.core.members import Chosen
    from gpukube.core.values import PoolPlan
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.provider import Provider

OPTION = "--accept-loss"


class Accepted(NamedTuple):
    """An argument of --accept-loss: a path, of one pool or of all ("" is all)."""

    pool: str
    path: str

    def covers(self, plan: PoolPlan, lost: Chosen) -> bool:
        """Return whether the argument accepts the loss of this member."""
        return self.pool in ("", plan.pool) and self.path == lost.path


def parse_accepted(argument: str) -> Accepted:
    """Parse PATH or POOL:PATH; keys in brackets may contain colons."""
    pool, colon, path = argument.partition(":")
    return Accepted(pool, path) if colon and "[" not in pool else Accepted("", argument)


def with_losses(plan: ClusterPlan, provider: Provider, arguments: Sequence[str]) -> ClusterPlan:
    """Add the findings about lost members to the plans of a cluster's pools."""
    return replace(plan, pools=tuple(with_lost_members(pool, provider, arguments) for pool in plan.pools))


def with_lost_members(plan: PoolPlan, provider: Provider, arguments: Sequence[str]) -> PoolPlan:
    """Add to the plan of a replacement a finding for the members that the new pool would not have.

    Args:
        plan: The plan of a pool.
        provider: Provider of its cloud.
        arguments: Values of --accept-loss.
    """
    lost = _lost(plan, provider)
    if not lost:
        return plan
    accepted = [parse_accepted(argument) for argument in arguments]
    agreed = tuple(one for one in lost if any(given.covers(plan, one) for given in accepted))
    rest = [one for one in lost if one not in agreed]
    found = [*_refused(plan, rest), *([_agreed(plan, agreed)] if agreed else [])]
    return replace(plan, diagnostics=(*plan.diagnostics, *found), lost=lost)


def require_lost(plans: Sequence[ClusterPlan], arguments: Sequence[str]) -> None:
    """Reject arguments of --accept-loss that accept nothing: probably a typo, which would hide the real loss.

    Nothing is known about clusters that could not be read, and about pools that do not exist: after a run that was
    killed between deleting and creating a pool, the same command must complete it.

    Raises:
        SpecError: Names the members that would be lost.
    """
    if any(plan.error is not None for plan in plans):
        return
    pools = [pool for plan in plans for pool in plan.pools]
    lost = [(pool, one) for pool in pools for one in pool.lost]
    for argument in arguments:
        given = parse_accepted(argument)
        absent = any(pool.action == "create" and given.pool in ("", pool.pool) for pool in pools)
        if not absent and not any(given.covers(pool, one) for pool, one in lost):
            known = ", ".join(dict.fromkeys(one.path for _, one in lost))
            raise SpecError(
                f"{OPTION} {argument}: no replacement in this plan would lose it",
                where=Where(OPTION),
                fix=f"write one of {known}, or remove it" if known else "remove it: this plan loses nothing",
                code="no-loss",
            )


def _lost(plan: PoolPlan, provider: Provider) -> tuple[Chosen, ...]:
    members, live = provider.extras.members, plan.observed
    replaces = plan.action == "replace" or (plan.action == "create" and len(plan.requests) > 1)
    if members is None or live is None or not replaces or live.state == "deleting" or not live.fields:
        return ()
    new = (plan.replacement and plan.replacement.successor) or plan.desired
    if new is None:
        return ()
    shown = [str(one.change.field) for one in plan.changes]
    lost = members.lost(live, new)  # the plan has carried over what it can
    return tuple(one for one in lost if not is_declared(one.path, shown))  # those are differences of the spec


def _refused(plan: PoolPlan, lost: Sequence[Chosen]) -> Iterator[Finding]:
    """Return a finding for the members that a spec can say, and one for the others."""
    for sayable in (True, False):
        some = [one for one in lost if (not one.reason) == sayable]
        if not some:
            continue
        flags = " ".join(f"{OPTION} {_quoted(one.path)}" for one in some)
        yield Finding(
            "members-lost",
            plan.where,
            f"the new pool would not have what {plan.name} has: {_names(some)}",
            fix=f"{'add it to the spec (gpukube pool import writes it)' if sayable else 'keep the pool'}, or accept "
            f"the loss: {flags}",
            why="" if sayable else "; ".join(f"{one.path}: {one.reason}" for one in some),
        )


def _agreed(plan: PoolPlan, lost: Sequence[Chosen]) -> Finding:
    return Finding(
        "members-lost",
        plan.where,
        f"as accepted, the new pool will not have what {plan.name} has: {_names(lost)}",
        severity="warning",
    )


def _names(lost: Sequence[Chosen]) -> str:
    return ", ".join(one.path for one in lost)


def _quoted(path: str) -> str:
    return f"'{path}'" if "[" in path else path
