"""The commands on pools, from a prepared spec to plans and reports.

In scope: the steps of each command, and the exit codes of plans. Out of scope: command-line syntax (cli), and the
doctor's checks (doctor).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.core.prices import EMBEDDED
from gpukube.engine.change.apply import Consent, apply_pools, require_consent
from gpukube.engine.change.clusters import none_attempted
from gpukube.engine.change.create import create_pools
from gpukube.engine.change.delete import delete_pools, plan_deletion
from gpukube.engine.change.family_run import Trying
from gpukube.engine.change.holding import GROWING, NOTHING_HELD, STARTING, QuotaReads
from gpukube.engine.change.pool_drain import drain_pools, plan_drain, undo_drains
from gpukube.engine.change.proving import verify_pools
from gpukube.engine.change.releasing import plan_release, release_pools
from gpukube.engine.change.removing import plan_release_removal, remove_releases
from gpukube.engine.change.scale import plan_scaling, scale_pools
from gpukube.engine.change.waiting import wait_for_pools
from gpukube.engine.looking import nothing_to_read, plan_clusters
from gpukube.engine.plan.planning import Scope
from gpukube.engine.plan.price_limits import CurrentLimits, PriceLimits, has_limits
from gpukube.engine.run.clock import Stopped
from gpukube.engine.run.session import open_sessions
from gpukube.engine.saved import provenance, require_fresh, require_place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from gpukube.core.prices import PriceBook
    from gpukube.engine.change.delete import Deletion
    from gpukube.engine.change.draining import DrainConsent
    from gpukube.engine.change.holding import Held
    from gpukube.engine.change.pool_drain import PoolDrain
    from gpukube.engine.change.probing import Probing
    from gpukube.engine.change.releasing import Releasing
    from gpukube.engine.change.removing import Removal
    from gpukube.engine.change.scale import Scaling, Size
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.engine.plan.prepare import Prepared
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.report import ClusterReport
    from gpukube.engine.run.session import Session
    from gpukube.engine.saved import SavedPlan

    Prices: TypeAlias = Callable[[Sequence[ClusterPlan]], PriceBook]


def create(  # noqa: PLR0913 - the options of a creation
    prepared: Prepared,
    run: Run,
    *,
    adopt: bool = False,
    adopt_from: Sequence[str] = (),
    adopt_managed: bool = False,
    ignore_quota: bool = False,
    prices: Prices = lambda _plans: EMBEDDED,
    note: Callable[[str], None] = lambda _line: None,
) -> tuple[ClusterReport, ...]:
    """Create what is missing, install the device plugin, verify the devices.

    Args:
        prepared: The declared pools.
        run: The run.
        adopt: See Scope.
        adopt_from: See Scope.
        adopt_managed: See Scope.
        ignore_quota: See Scope.
        prices: Returns the prices of plans; called if a pool has a maximum price.
        note: Called with a line on what could not be checked.
    """
    prepared = prepared.narrowed()
    adopting = Scope(adopt=adopt, adopt_from=tuple(adopt_from), adopt_managed=adopt_managed)
    scope = replace(adopting, retire=False)  # the dry run fetches the chart
    reads = None if ignore_quota else QuotaReads(STARTING)

    def work(plans: tuple[ClusterPlan, ...], sessions: Mapping[str, Session]) -> tuple[ClusterReport, ...]:
        trying = _trying(plans, run, _held(reads, plans, sessions, note), prices)
        return create_pools(plans, sessions, run, trying)

    return _carry_out(prepared, run, scope, work, reads)


def _held(
    reads: QuotaReads | None,
    plans: Sequence[ClusterPlan],
    sessions: Mapping[str, Session],
    note: Callable[[str], None],
) -> Held:
    held, unread = reads.held(plans, sessions) if reads else (NOTHING_HELD, "")
    if unread:
        note(unread)
    return held


def _trying(plans: Sequence[ClusterPlan], run: Run, held: Held, prices: Prices, *, rebalance: bool = False) -> Trying:
    """Return how the run gets nodes.

    Raises:
        SpecError: A pool has a maximum price, and its price is unknown or too old.
    """
    if not has_limits(plans):
        return Trying(held, rebalance=rebalance)
    limits = PriceLimits(prices(plans), run.clock.now())
    limits.require_known(plans, rebalance=rebalance)
    current = CurrentLimits(limits, prices, run.clock.now)
    return Trying({**limits.refused(plans), **held}, current, rebalance=rebalance)


def _carry_out(
    prepared: Prepared,
    run: Run,
    scope: Scope,
    work: Callable[[tuple[ClusterPlan, ...], Mapping[str, Session]], tuple[ClusterReport, ...]],
    reads: QuotaReads | None = None,
) -> tuple[ClusterReport, ...]:
    """Plan, then work; a run stopped while it plans also returns a report, in which nothing was started."""
    outside_known = reads.begin if reads else nothing_to_read
    with open_sessions(prepared.clusters.values(), run) as sessions:
        try:
            plans = plan_clusters(prepared, sessions, run, scope, outside_known)
        except Stopped:
            return none_attempted(prepared, run)
        return none_attempted(prepared, run) if run.clock.stopped else work(plans, sessions)


def apply(  # noqa: PLR0913 - the options of an apply
    prepared: Prepared,
    run: Run,
    scope: Scope = Scope(),
    consent: Consent = Consent(),
    *,
    saved: SavedPlan | None = None,
    rebalance: bool = False,
    prices: Prices = lambda _plans: EMBEDDED,
    confirm: Callable[[Sequence[ClusterPlan]], None] = lambda _plans: None,
    note: Callable[[str], None] = lambda _line: None,
) -> tuple[ClusterReport, ...]:
    """Bring the live pools to their declared state.

    Args:
        prepared: The declared pools; for a saved plan those of its own specs.
        run: The run.
        scope: Scope of the plan.
        consent: What is allowed in addition to creates and harmless updates.
        saved: The saved plan that the new plan must match.
        rebalance: Move families to a better alternative than the one that has their nodes.
        prices: Returns the prices of plans; called if a pool has a maximum price.
        confirm: Called with the plans before anything changes; raises to stop.
        note: Called with a line on what could not be checked.

    Raises:
        StalePlan: The live state is not the one that the saved plan was made from; nothing was changed.
        SpecError: The saved plan was made for other clouds than those of this run.
        Conflict: The plan contains something that was not allowed; nothing was changed.
    """
    prepared = prepared if scope.prune else prepared.narrowed()
    scope = replace(scope, replace=consent.replace)  # plan for the way of replacing that is allowed
    if saved is not None:
        require_place(saved, provenance(run))
    reads = None if scope.ignore_quota else QuotaReads(GROWING, beside=consent.replace == "surge")

    def work(plans: tuple[ClusterPlan, ...], sessions: Mapping[str, Session]) -> tuple[ClusterReport, ...]:
        if saved is not None:
            require_fresh(saved, plans, provenance(run))
        require_consent(plans, consent)
        trying = _trying(plans, run, _held(reads, plans, sessions, note), prices, rebalance=rebalance)
        confirm(plans)
        return apply_pools(plans, sessions, run, consent, trying)

    return _carry_out(prepared, run, scope, work, reads)


def wait(prepared: Prepared, run: Run, names: Sequence[str] = ()) -> tuple[ClusterReport, ...]:
    """Wait until the clouds have finished with the declared or the named pools, and verify the declared ones.

    Raises:
        SpecError: There is no pool of one of the names.
    """
    prepared, scope = prepared.narrowed(), Scope(skip_cluster=True)
    return _carry_out(prepared, run, scope, lambda plans, sessions: wait_for_pools(plans, sessions, run, names))


def verify(prepared: Prepared, run: Run, probing: Probing | None = None) -> tuple[ClusterReport, ...]:
    """Compare the live nodes with the spec, waiting up to the run's timeout.

    Args:
        prepared: The declared pools.
        run: The run.
        probing: Also run a pod with one device on each pool that matches.
    """
    prepared = prepared.narrowed()
    with open_sessions(prepared.clusters.values(), run) as sessions:
        try:
            return verify_pools(prepared, sessions, run, probing)
        except Stopped:
            return none_attempted(prepared, run)


def delete(
    prepared: Prepared,
    run: Run,
    names: Sequence[str],
    confirm: Callable[[Deletion], None] = lambda _deletion: None,
) -> tuple[ClusterReport, ...]:
    """Delete the live pools of these names, and wait until they are gone.

    Raises:
        SpecError: There is no such pool.
        Conflict: A pool is not gpukube's, or is protected.
    """

    def work(plans: tuple[ClusterPlan, ...], sessions: Mapping[str, Session]) -> tuple[ClusterReport, ...]:
        deletion = plan_deletion(plans, sessions, prepared.owners, names)
        confirm(deletion)
        return delete_pools(deletion, sessions, run)

    return _carry_out(prepared, run, Scope(), work)


def release(
    prepared: Prepared,
    run: Run,
    names: Sequence[str],
    confirm: Callable[[Releasing], None] = lambda _releasing: None,
) -> tuple[ClusterReport, ...]:
    """Remove the ownership labels from the live pools of these names, and leave the pools unchanged.

    Raises:
        SpecError: There is no such pool.
        Conflict: A pool has another owner, is protected, or cannot be changed now.
    """

    def work(plans: tuple[ClusterPlan, ...], sessions: Mapping[str, Session]) -> tuple[ClusterReport, ...]:
        releasing = plan_release(plans, sessions, prepared.owners, names)
        confirm(releasing)
        return release_pools(releasing, sessions, run)

    return _carry_out(prepared, run, Scope(skip_cluster=True), work)


def remove_release(
    prepared: Prepared, run: Run, confirm: Callable[[Removal], None] = lambda _removal: None
) -> tuple[ClusterReport, ...]:
    """Uninstall gpukube's own release from the clusters where no pool and no node needs it."""

    def work(plans: tuple[ClusterPlan, ...], sessions: Mapping[str, Session]) -> tuple[ClusterReport, ...]:
        removal = plan_release_removal(plans, sessions, run)
        confirm(removal)
        return remove_releases(removal, sessions, run)

    return _carry_out(prepared, run, Scope(skip_cluster=True), work)


def scale(
    prepared: Prepared,
    run: Run,
    name: str,
    size: Size,
    confirm: Callable[[Scaling], None] = lambda _scaling: None,
) -> tuple[ClusterReport, ...]:
    """Set the size of the live pools of this name, and wait for the result.

    Raises:
        SpecError: There is no such pool, or it cannot have that size.
        Conflict: A pool is not gpukube's.
    """

    def work(plans: tuple[ClusterPlan, ...], sessions: Mapping[str, Session]) -> tuple[ClusterReport, ...]:
        scaling = plan_scaling(plans, sessions, prepared.owners, name, size)
        confirm(scaling)
        return scale_pools(scaling, sessions, run)

    return _carry_out(prepared.narrowed(), run, Scope(), work)


def drain(
    prepared: Prepared,
    run: Run,
    name: str,
    consent: DrainConsent,
    confirm: Callable[[PoolDrain, Mapping[str, Session]], None] = lambda _drain, _sessions: None,
) -> tuple[ClusterReport, ...]:
    """Cordon the nodes of the live pools of this name and evict their pods.

    Raises:
        SpecError: There is no such pool.
        Conflict: A pool is not gpukube's, or is protected.
    """

    def work(plans: tuple[ClusterPlan, ...], sessions: Mapping[str, Session]) -> tuple[ClusterReport, ...]:
        found = plan_drain(plans, prepared.owners, name)
        confirm(found, sessions)
        return drain_pools(found, sessions, run, consent)

    return _carry_out(prepared.narrowed(), run, Scope(skip_cluster=True), work)


def undo_drain(prepared: Prepared, run: Run, name: str) -> tuple[ClusterReport, ...]:
    """Uncordon the nodes that `drain` has cordoned in the live pools of this name.

    Raises:
        SpecError: There is no such pool.
        Conflict: A pool is not gpukube's.
    """

    def work(plans: tuple[ClusterPlan, ...], sessions: Mapping[str, Session]) -> tuple[ClusterReport, ...]:
        return undo_drains(plan_drain(plans, prepared.owners, name, undo=True), sessions, run)

    return _carry_out(prepared.narrowed(), run, Scope(skip_cluster=True), work)
