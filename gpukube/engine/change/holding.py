"""Holds back pools whose first nodes would exceed a quota, before any of their calls; the other pools continue.

In scope: reading quotas while a run reads its clusters, and which pools to hold back. Out of scope: how much of which
quota a pool needs (engine.plan.quotas).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import wait
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from gpukube.core.quotas import QuotaReading
from gpukube.engine.plan.quotas import as_read, by_place, cluster_needs, summed
from gpukube.engine.run.calls import begin
from gpukube.engine.run.clock import Stopped
from gpukube.engine.run.report import PoolReport
from gpukube.errors import CloudError, GpukubeError, QuotaError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from concurrent.futures import Future

    from gpukube.core.quotas import CloudQuota, QuotaNeed, QuotaUse
    from gpukube.core.values import Action, PoolPlan
    from gpukube.engine.change.live_pool import Proof, Work
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session

Held: TypeAlias = Mapping[tuple[str, str], GpukubeError]
"""Cluster and pool -> why the pool is held back."""
NOTHING_HELD: Final[Held] = MappingProxyType({})
_Answer: TypeAlias = Mapping["CloudQuota", QuotaReading]

STARTING: Final[tuple[Action, ...]] = ("create",)
"""Actions of `create` that start nodes."""
GROWING: Final[tuple[Action, ...]] = ("create", "update", "replace")
"""Actions of `apply` that start nodes."""
_PATIENCE_S: Final = 15.0
"""Maximum wait for quotas after everything else was read."""
_MOST_NAMED: Final = 3


@dataclass(slots=True)
class QuotaReads:
    """Quotas that the pools of a run need at the start, each read once, while the run reads its clusters.

    Attributes:
        actions: Actions that need quota in this run.
        beside: Whether a replacement pool runs next to the old one; see `pool_needs`.
    """

    actions: Collection[Action]
    beside: bool = False
    _answers: dict[tuple[CloudQuota, ...], Future[_Answer]] = field(default_factory=dict, init=False)
    _begun: set[CloudQuota] = field(default_factory=set, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def begin(self, plan: ClusterPlan, session: Session) -> None:
        """Start to read the quotas that a cluster's pools need and nobody has requested yet; do not wait."""
        needed = {need.quota for pool in plan.pools for need in self._needs(plan, pool, session)}
        with self._lock:
            new = needed - self._begun
            self._begun |= new
            for group in by_place(new).values():
                self._answers[group] = begin(partial(session.cloud.quotas, group), threading.Event())

    def held(self, plans: Sequence[ClusterPlan], sessions: Mapping[str, Session]) -> tuple[Held, str]:
        """Return the pools whose first nodes a quota cannot cover after the pools before them in the spec.

        Args:
            plans: Plans of all clusters; `begin` was called with each.
            sessions: Sessions of these clusters, by key.

        Returns:
            The pools, each with its error; and one line on quotas that could not be read, "" if there are none. A pool
            is held back only if both limit and usage were read.
        """
        needs = {
            (plan.cluster.key, pool.pool): self._needs(plan, pool, sessions[plan.cluster.key])
            for plan in plans
            for pool in plan.pools
        }
        uses = summed((need for own in needs.values() for need in own), self._readings())
        left = {quota: use.free for quota, use in uses.items() if use.free is not None}
        held = {}
        for key, own in needs.items():
            known = [need for need in own if need.quota in left]
            short = next((need for need in known if need.amount > left[need.quota]), None)
            if short:
                held[key] = _refusal(short, uses[short.quota], left[short.quota])
                continue
            for need in known:
                left[need.quota] -= need.amount
        return held, _unread(use for use in uses.values() if use.quota not in left)

    def _needs(self, plan: ClusterPlan, pool: PoolPlan, session: Session) -> tuple[QuotaNeed, ...]:
        if pool.action not in self.actions:
            return ()
        return cluster_needs(replace(plan, pools=(pool,)), session, beside=self.beside, at_once=True)

    def _readings(self) -> dict[CloudQuota, QuotaReading]:
        wait(self._answers.values(), _PATIENCE_S)
        found = {quota: QuotaReading(unknown=quota.unread) for quota in self._begun}
        for group, answer in self._answers.items():
            found |= as_read(group, _answered(answer))
        return found


def unless_held(work: Work, held: Held) -> Work:
    """Return work that skips the pools that are held back: nothing is sent for them."""

    def done(plan: PoolPlan, session: Session, run: Run) -> PoolReport | Proof:
        error = held.get((plan.cluster.key, plan.pool))
        if error is None:
            return work(plan, session, run)
        run.note_failure()
        message = "not sent: not enough quota" if isinstance(error, QuotaError) else "not sent: it costs too much"
        return PoolReport(plan.pool, plan.name, "failed", message, error=error, resume=run.resume)

    return done


def _answered(answer: Future[_Answer]) -> _Answer | GpukubeError:
    if not answer.done():
        return CloudError(f"no answer within {_PATIENCE_S:g} s")
    try:
        return answer.result()
    except GpukubeError as error:
        return error
    except Stopped:
        return CloudError("the run was stopped")


def _refusal(need: QuotaNeed, use: QuotaUse, left: float) -> QuotaError:
    quota, reading = need.quota, use.reading
    others = "" if left == use.free else f", {left:g} left after the pools before this one"
    return QuotaError(
        f"quota {quota.name} ({quota.title}) in {quota.place} allows {reading.limit:g} {quota.unit}, "
        f"{reading.used:g} of them used{others}; the first nodes need {need.amount:g}",
        where=need.pool,
        fix=f"raise it to {use.least_limit:g}: {use.fix}; or add --ignore-quota to try anyway",
        why="nothing was sent for the pool: the cloud rejects nodes beyond a quota",
        code="quota-short",
    )


def _unread(uses: Iterable[QuotaUse]) -> str:
    """Name the quotas that were not read, grouped by reason."""
    reasons: dict[str, list[str]] = {}
    for use in uses:
        reasons.setdefault(use.reading.unknown, []).append(use.quota.name)
    shown = [f"{', '.join(names)} ({why})" for why, names in reasons.items()]
    more = f"; and {len(shown) - _MOST_NAMED} more reasons" if len(shown) > _MOST_NAMED else ""
    return f"quotas not checked: {'; '.join(shown[:_MOST_NAMED])}{more}" if shown else ""
