"""Plans what happens to each pool, and why, from desired and observed pools.

Pure: makes no calls. A live pool matches by its marks (owner, pool) first, then by their second copy, then by its cloud
name; pools that gpukube does not own never change.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from gpukube.core.diff import diff_fields
from gpukube.core.fields import PROTECTION, label
from gpukube.core.managers import describe_managers
from gpukube.core.marks import has_lost_marks, names_another
from gpukube.core.replacing import (
    Pair,
    doubt_among,
    next_step,
    renamed,
    requests_left,
    successor_name,
    surge_doubt,
    tell_apart,
)
from gpukube.core.values import (
    MARKS,
    OWNER_LABEL,
    POOL_LABEL,
    RELEASED_LABEL,
    Change,
    ClassifiedChange,
    PoolPlan,
    Replacement,
)
from gpukube.errors import Finding, GpukubeError, SpecError, Where
from gpukube.spec.poolnames import alternate_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from gpukube.core.managers import Manager
    from gpukube.core.provider_parts import Extras, PoolRequests
    from gpukube.core.values import (
        Action,
        ClusterRef,
        Desired,
        Observed,
        Obstacle,
        Ownership,
        Promise,
        Request,
        Target,
        UpdateRow,
    )

RELEASED_BEFORE = "true"
"""Former value of the release label on GKE, before it contained the pool's name."""
RELEASED = label(RELEASED_LABEL)

PROTECTED_WHY = "its live label gpukube.io/protect is true"


class PoolCalls(Protocol):
    """The members of `gpukube.provider.Provider`, which is above this package, that a plan uses."""

    def desired(self, target: Target, ownership: Ownership, promise: Promise) -> Desired:
        """As Provider.desired."""

    def update_row(self, change: Change, beside: Sequence[Change] = (), live: Observed | None = None) -> UpdateRow:
        """As Provider.update_row."""

    @property
    def requests(self) -> PoolRequests:
        """As Provider.requests."""

    @property
    def extras(self) -> Extras:
        """As Provider.extras."""


def match_live(desired: Desired, live: Sequence[Observed], taken: Collection[str] = ()) -> tuple[Observed, ...]:
    """Return the live pools that match: by (owner, pool) mark, else by the copy of the marks, else by cloud name.

    A released pool with this name in its spec matches by either of its names, any other only by the declared one. Names
    of the spec's other pools (`taken`) never match.

    Returns:
        None, one, or several pools: two pools with the same mark are a replacement in progress. Pools whose labels lost
        the marks are not part of one: of several, the one with the declared name matches. Next to a pool that has the
        marks and no copy, they stay in the result.
    """
    target = desired.target
    names = {target.name, alternate_name(target.name)}
    copied = desired.copy.pool if desired.copy else None
    # One cheap check per pool of the cluster: this runs for every declared pool, so its cost is quadratic.
    live = [o for o in live if o.pool == target.pool or o.name in names or (o.copy and o.copy.pool == copied)]
    named = tuple(o for o in live if o.name == target.name)
    lost = tuple(o for o in live if has_lost_marks(desired, o))
    marked = tuple(o for o in live if (o.owner, o.pool) == (target.owner, target.pool))
    known = (target.pool, RELEASED_BEFORE) if desired.copy_is_fixed else (target.pool,)
    released = [o for o in live if o.name in names and o.name not in taken and o.released in known]
    if lost and any(o.copy is None and o.fields for o in marked):
        return (*marked, *lost)
    return marked or tuple(o for o in lost if o in named) or lost or named or tuple(released[:1])


def plan_pool(  # noqa: PLR0913 - the context of a pool, and what is requested
    provider: PoolCalls,
    desired: Desired,
    live: Sequence[Observed],
    *,
    adopt: bool = False,
    adopt_from: Collection[str] = (),
    adopt_managed: bool = False,
    form: Callable[[str], Desired] | None = None,
    taken: Collection[str] = (),
) -> PoolPlan:
    """Plan one pool of the spec against the live pools of its cluster.

    Args:
        provider: The cloud's pure half.
        desired: The pool, under its declared name.
        live: All pools of its cluster.
        adopt: Add the marks to a pool of this name without an owner, and change nothing else.
        adopt_from: Owners whose pools may be adopted if only the copy of the marks names them.
        adopt_managed: Like adopt, also for a pool that another tool manages.
        form: Returns the pool under another cloud name; by default as the provider translates it.
        taken: Cloud names of the spec's other pools on this cluster.
    """
    declared = desired.target.name
    form = form or partial(renamed, provider.desired, desired)
    matches = match_live(desired, live, taken)
    if not matches:
        return _created(form(declared), live, taken)
    if len(matches) > 1:
        return _two_pools(provider, form, declared, matches, taken)
    observed = matches[0]
    desired = form(observed.name)
    changes = _classified(provider, desired, observed)
    requested = adopt or adopt_managed or bool(adopt_from)
    if has_lost_marks(desired, observed):
        if desired.copy_is_fixed:
            if not adopt:
                return _marks_lost(desired, observed)
        else:  # the same command completes an adoption interrupted between the copy and the labels
            may_be_adopted = requested and not observed.owner and observed.state == "ready"
            if not (may_be_adopted and (adopt_managed or not provider.extras.managers(observed))):
                return _lost(provider, desired, observed, changes)
    if (observed.owner, observed.pool) != (desired.target.owner, desired.target.pool):
        managers = provider.extras.managers(observed)
        refusal = _refused_adoption(desired, observed, requested=requested, adopt_from=adopt_from)
        if managers and (refusal is None or refusal.obstacle == "foreign") and not observed.owner and not adopt_managed:
            refusal = _managed_conflict(desired, observed, managers)
        return refusal or _with_managers(_adopted(provider, desired, observed, changes), managers)
    if observed.copied:
        problem = copied_pool(desired.target.cluster, observed)
        return _plan(desired, observed, "conflict", problem.seen, diagnostics=(problem,))
    plan = _owned(provider, desired, observed, changes)
    if plan.action != "replace":
        return plan
    if observed.name != declared:  # deleted first, it is recreated under the declared name
        recreated, _ = carry_over(provider, form(declared), observed)  # what it cannot carry, the plan says already
        calls = _calls_to_recreate(provider, recreated, observed)
        plan = replace(plan, desired=recreated, requests=calls)
    return _with_successor(provider, form, declared, plan, taken)


def _created(desired: Desired, live: Sequence[Observed], taken: Collection[str]) -> PoolPlan:
    alternate = alternate_name(desired.target.name)
    other = next((o for o in live if o.name == alternate and not o.owner and o.name not in taken), None)
    problems = (_alternate_taken(desired, other),) if other else ()
    return _plan(desired, None, "create", "the pool does not exist", requests=(desired.create,), diagnostics=problems)


def _with_successor(
    provider: PoolCalls, form: Callable[[str], Desired], declared: str, plan: PoolPlan, taken: Collection[str]
) -> PoolPlan:
    """Add the successor, created next to the live pool, to the plan of a replacement."""
    name = successor_name(declared, plan.name)
    assert plan.observed is not None  # noqa: S101 - a replaced pool is live
    copy = None
    if doubt := surge_doubt(declared, plan.observed, form, taken):
        is_named = plan.name in (declared, alternate_name(declared)) and alternate_name(declared) not in taken
        copy = provider.requests.copy(plan.cluster, plan.observed) if is_named else None
        if copy is None:
            why = "while two pools have one mark, names and tags tell them from pools with copied labels"
            problem = Finding("surge-impossible", plan.where, doubt, why=why)
            return replace(plan, replacement=Replacement(name, None, obstacles=(problem,)))
    try:
        successor = form(name)
    except GpukubeError as error:  # a successor is impossible under its name, but the live pool can still be recreated
        return replace(plan, replacement=Replacement(name, None, obstacles=tuple(error.diagnostics)))
    successor, _ = carry_over(provider, successor, plan.observed)  # what it cannot carry, the plan says already
    calls = _calls_left(provider, (successor.create,), plan.cluster, plan.observed, copy)
    return replace(plan, replacement=Replacement(name, successor, requests=calls))


def _calls_left(
    provider: PoolCalls,
    create: Sequence[Request],
    cluster: ClusterRef,
    old: Observed,
    copy: Request | None = None,
) -> tuple[Request, ...]:
    freeze, delete = provider.requests.freeze(cluster, old), provider.requests.delete(cluster, old)
    return requests_left(create, freeze, delete, old, copy)


def _owned(
    provider: PoolCalls, desired: Desired, observed: Observed, changes: tuple[ClassifiedChange, ...]
) -> PoolPlan:
    if observed.state == "deleting":
        desired, problems = carry_over(provider, desired, observed)
        why = f"is being deleted ({observed.status}); created again afterwards"
        return _plan(desired, observed, "create", why, requests=(desired.create,), diagnostics=problems)
    if observed.state == "failed":
        return _recreated(provider, desired, observed, changes)
    if changes and observed.fields:  # a pool without fields is left over from a killed run: recreated
        return _changed(provider, desired, observed, changes)
    if observed.state == "busy":
        return _plan(desired, observed, "no-op", f"matches; the cloud is still working on it ({observed.status})")
    return _plan(desired, observed, "no-op", "matches the spec", diagnostics=tuple(_problems(desired, observed)))


def _lost(provider: PoolCalls, desired: Desired, observed: Observed, changes: tuple[ClassifiedChange, ...]) -> PoolPlan:
    """Restore the marks of a pool whose labels were replaced.

    Until then the pool is neither deleted nor replaced; such changes wait for a later plan.
    """
    target = desired.target
    if observed.state == "deleting":
        return _owned(provider, desired, observed, changes)
    if observed.state == "failed":
        problem = Finding(
            "lost-marks",
            target.where,
            f'the pool "{observed.name}" is {observed.status}, and its gpukube.io labels were replaced',
            fix=f"give it the labels {OWNER_LABEL}={target.owner} and {POOL_LABEL}={target.pool} with the cloud's own "
            "tool, or delete it there",
            why="a pool with the owner in its tags only is never deleted",
        )
        return _plan(desired, observed, "conflict", problem.seen, diagnostics=(problem,))
    later = [c for c in changes if c.row.kind in ("replace", "refused")]
    if later:
        changes = tuple(c for c in changes if c.change.field[0] == "labels" or c.change.field == PROTECTION)
    plan = _changed(provider, desired, observed, changes)
    why = f"{plan.why}; its gpukube.io labels were replaced, the copy in its tags is intact"
    rest = [_for_later(desired.target.where, later)] if later else []
    return replace(plan, why=why, diagnostics=(*plan.diagnostics, *rest))


def _marks_lost(desired: Desired, observed: Observed) -> PoolPlan:
    """Refuse a pool whose labels were replaced if its copy cannot change: such a copy survives a release."""
    problem = Finding(
        "marks-lost",
        desired.target.where,
        f'the gpukube.io labels of the pool "{observed.name}" were replaced; its tags name this spec',
        fix="if the pool is still yours: gpukube pool apply -f FILE --adopt restores them",
        why="the tags cannot change on a live pool: they name this spec even if it was released and somebody else "
        "adopted it since",
    )
    return _plan(desired, observed, "conflict", problem.seen, diagnostics=(problem,), obstacle="marks-lost")


def duplicate_pools(
    cluster: ClusterRef, pool: str, live: Sequence[Observed], doubt: tuple[str, str], *, where: Where | None = None
) -> Finding:
    """Refuse live pools of one mark that are not an unfinished replacement; `doubt` comes from `doubt_among`."""
    unexpected, why = doubt
    names = " and ".join(one.name for one in live)
    return Finding(
        "two-pools",
        where or Where(f"{cluster.key}/{pool}"),
        f"{names} have the labels of pool {pool}, and {why}",
        fix=_release_fix(cluster, unexpected),
        why="gpukube changes only pools that it created or adopted; labels can be copied",
    )


def copied_pool(cluster: ClusterRef, observed: Observed) -> Finding:
    """Refuse a live pool that was copied from another one with its labels and tags."""
    return Finding(
        "copied-marks",
        Where(f"{cluster.key}/{observed.pool or observed.name}"),
        f'"{observed.name}" has the labels of pool {observed.pool}, and its tags were written for another pool',
        fix=_release_fix(cluster, observed.name),
        why="gpukube changes only pools that it created or adopted, and this one was copied from such a pool",
    )


def half_marked(cluster: ClusterRef, observed: Observed) -> Finding:
    """Refuse a live pool with an owner label and no pool label, which gpukube never writes."""
    return Finding(
        "half-marks",
        Where(f"{cluster.key}/{observed.name}"),
        f'the pool "{observed.name}" has the label {OWNER_LABEL}={observed.owner} and no label {POOL_LABEL}',
        fix=f"remove the label {OWNER_LABEL} with the cloud's own tool, or add {POOL_LABEL}",
        why="gpukube writes both, so the pool may be somebody else's",
    )


def _release_fix(cluster: ClusterRef, name: str) -> str:
    """Return the fix that removes only the marks of a live pool."""
    return f"release the pool that gpukube did not create: gpukube pool release {cluster.key}/{name} -f FILE"


def _alternate_taken(desired: Desired, other: Observed) -> Finding:
    return Finding(
        "surge-impossible",
        desired.target.where,
        f'a pool named "{other.name}", the name of its replacement, exists and has no gpukube.io/owner label',
        fix="choose another name, if the pool is to be replaced by --replace surge one day",
        severity="warning",
    )


def _for_later(where: Where, later: Sequence[ClassifiedChange]) -> Finding:
    fields = ", ".join(str(c.change.field) for c in later)
    return Finding(
        "lost-marks",
        where,
        f"the pool also differs in {fields}, which cannot change before its gpukube.io labels are restored",
        fix="apply, then plan again",
        why="a pool with the owner in its tags only is never replaced",
        severity="warning",
    )


def _problems(desired: Desired, observed: Observed) -> list[Finding]:
    """Return the problem that the cloud reports for a usable pool: an update that failed halfway."""
    if not observed.failure:
        return []
    message = f"the cloud reports a problem: {observed.failure}"
    fix = "check it with the cloud's own tool; gpukube pool verify checks its GPUs"
    return [Finding("pool-ails", desired.target.where, message, fix=fix, severity="warning")]


def plan_removal(
    provider: PoolCalls, cluster: ClusterRef, observed: Observed, live: Sequence[Observed] = ()
) -> PoolPlan:
    """Plan the deletion of a live pool that the spec no longer declares; `live` are all pools of its cluster."""
    where = Where(f"{cluster.key}/{observed.pool or observed.name}")
    problems = (_protected(where, "deleted"),) if observed.protected else ()
    if doubt := doubtful(cluster, observed, live):
        return replace(plan_as_it_is(cluster, observed), action="conflict", why=doubt.seen, diagnostics=(doubt,))
    is_deleting = observed.state == "deleting"
    requests = () if is_deleting else (provider.requests.delete(cluster, observed),)
    return PoolPlan(
        cluster=cluster,
        pool=observed.pool or observed.name,
        name=observed.name,
        action="delete",
        why=f'belongs to "{observed.owner}", which no longer declares it',
        desired=None,
        observed=observed,
        requests=requests,
        diagnostics=problems,
    )


def doubtful(cluster: ClusterRef, observed: Observed, live: Sequence[Observed]) -> Finding | None:
    """Return why a live pool with marks, declared or not, must not change: its marks may be copied.

    Args:
        cluster: Its cluster.
        observed: The pool.
        live: All pools of its cluster.
    """
    if observed.owner and not observed.pool:
        return half_marked(cluster, observed)
    if observed.copied:
        return copied_pool(cluster, observed)
    mark = (observed.owner, observed.pool)
    group = [one for one in live if (one.owner, one.pool) == mark]
    lost = next((o for o in live if not o.owner and o.copy and (o.copy.owner, o.copy.pool) == mark), None)
    if lost and observed.copy is None:
        why = f"{lost.name} has lost them: its tags name this pool"
        return duplicate_pools(cluster, observed.pool, (observed, lost), (observed.name, why))
    if len(group) <= 1:
        return None
    names = [one.name for one in group]
    declared = observed.pool if observed.pool in names else min(names, key=len)
    doubt = doubt_among(declared, group)
    return duplicate_pools(cluster, observed.pool, group, doubt) if doubt else None


def plan_releasing(provider: PoolCalls, cluster: ClusterRef, observed: Observed) -> PoolPlan:
    """Plan the removal of the marks from a live pool, which otherwise stays unchanged."""
    where = Where(f"{cluster.key}/{observed.pool or observed.name}")
    problems = [_protected(where, "released")] if observed.protected else []
    if observed.state in ("deleting", "failed"):
        problem = Finding(
            "release-not-ready",
            where,
            f'the pool "{observed.name}" is {observed.status}: it cannot be released now',
            fix="wait until it is gone" if observed.state == "deleting" else "repair it first, or delete it",
            why="the labels of such a pool cannot change",
        )
        problems.append(problem)
    gone = [Change(label(key), observed.labels[key], None) for key in MARKS if key in observed.labels]
    gone += [Change(RELEASED, None, observed.pool)] if observed.owner and observed.pool else []
    return PoolPlan(
        cluster=cluster,
        pool=observed.pool or observed.name,
        name=observed.name,
        action="update",
        why="requested by name",
        desired=None,
        observed=observed,
        changes=tuple(ClassifiedChange(one, provider.update_row(one, gone, observed)) for one in gone),
        requests=() if problems else provider.requests.release(cluster, observed),
        diagnostics=tuple(problems),
    )


def plan_as_it_is(cluster: ClusterRef, pool: Observed) -> PoolPlan:
    """Plan no change for a live pool that was requested by name."""
    return PoolPlan(
        cluster=cluster,
        pool=pool.pool or pool.name,
        name=pool.name,
        action="no-op",
        why="requested by name",
        desired=None,
        observed=pool,
    )


def keep_failed_pool(provider: PoolCalls, plan: PoolPlan) -> PoolPlan:
    """Withdraw the plan to recreate a failed pool with nodes: it worked before, and its pods may still run.

    If the cloud repairs a failed pool without deleting it, the plan stays.
    """
    desired, observed = plan.desired, plan.observed
    if plan.action != "create" or desired is None or observed is None or observed.state != "failed":
        return plan
    if provider.requests.recreate(desired, observed) is not None:
        return plan
    if plan.changes:
        return _changed(provider, desired, observed, plan.changes)
    problem = Finding(
        "failed-with-nodes",
        plan.where,
        f"the pool is {observed.status} and has live nodes: {observed.failure or 'the cloud gives no reason'}",
        fix="fix it with the cloud's own tool; or delete it (gpukube pool delete) and create it again",
        why="only a pool that never had nodes is replaced without a flag",
    )
    return _plan(desired, observed, "conflict", problem.seen, diagnostics=(problem,))


def _plan(  # noqa: PLR0913 - the parts of a plan
    desired: Desired,
    observed: Observed | None,
    action: Action,
    why: str,
    *,
    changes: tuple[ClassifiedChange, ...] = (),
    requests: tuple[Request, ...] = (),
    diagnostics: tuple[Finding, ...] = (),
    obstacle: Obstacle | None = None,
) -> PoolPlan:
    return PoolPlan(
        cluster=desired.target.cluster,
        pool=desired.target.pool,
        name=observed.name if observed else desired.target.name,
        action=action,
        why=why,
        desired=desired,
        observed=observed,
        changes=changes,
        requests=requests,
        diagnostics=(*diagnostics, *desired.unchecked),
        obstacle=obstacle,
    )


def find_changes(desired: Desired, observed: Observed) -> tuple[Change, ...]:
    """Compare a declared pool with a live one, field by field.

    If the labels lost the marks, the copy shows whether the pool was protected. Writing the marks removes the release
    label.
    """
    fields = {**observed.fields, **{path: v for path, v in observed.moving.items() if path in desired.fields}}
    if not observed.released:
        fields.pop(RELEASED, None)
    elif RELEASED.key in observed.labels:
        fields[RELEASED] = observed.released
    if has_lost_marks(desired, observed) and observed.copy and observed.copy.protected and not desired.target.protect:
        fields = {**fields, PROTECTION: True}
    return diff_fields(desired.fields, fields, () if names_another(desired, observed) else observed.written)


def _classified(provider: PoolCalls, desired: Desired, observed: Observed) -> tuple[ClassifiedChange, ...]:
    changes = find_changes(desired, observed)
    return tuple(ClassifiedChange(change, provider.update_row(change, changes, observed)) for change in changes)


def _recreated(
    provider: PoolCalls, desired: Desired, observed: Observed, changes: tuple[ClassifiedChange, ...]
) -> PoolPlan:
    """Recreate a pool that exists but is unusable."""
    desired, problems = carry_over(provider, desired, observed)
    repair = provider.requests.recreate(desired, observed)
    requests = (repair,) if repair else _calls_to_recreate(provider, desired, observed)
    why = f"exists but is {observed.status}: {observed.failure or 'the cloud gives no reason'}; created again"
    return _plan(desired, observed, "create", why, changes=changes, requests=requests, diagnostics=problems)


def carry_over(provider: PoolCalls, desired: Desired, observed: Observed) -> tuple[Desired, tuple[Finding, ...]]:
    """Return a live pool's replacement with what it takes over, or as declared with the findings why it cannot."""
    try:
        return provider.requests.carry(desired, observed), ()
    except SpecError as error:
        return desired, tuple(error.diagnostics)


def _calls_to_recreate(provider: PoolCalls, desired: Desired, observed: Observed) -> tuple[Request, ...]:
    """Return the calls that delete a pool and create it again under its declared name."""
    kept = provider.requests.keep(desired, observed)
    deleted = provider.requests.delete(desired.target.cluster, observed)
    return (*([kept] if kept else []), deleted, desired.create)


def _changed(
    provider: PoolCalls, desired: Desired, observed: Observed, changes: tuple[ClassifiedChange, ...]
) -> PoolPlan:
    calls: tuple[Request, ...]
    kinds = {c.row.kind for c in changes}
    problems = [_refused(desired.target.where, c) for c in changes if c.row.kind == "refused"]
    fields = ", ".join(str(c.change.field) for c in changes)
    if "replace" in kinds:
        requested = ", ".join(str(c.change.field) for c in changes if c.row.kind == "replace")
        why = f"differs in {fields}; {requested} cannot change on a live pool"
        problems += [_protected(desired.target.where, "replaced")] if observed.protected else []
        declared = desired
        desired, unmerged = carry_over(provider, desired, observed)
        problems += unmerged
        if desired is not declared:
            why = f"{why}; {provider.extras.carried(observed)}"
        calls = _calls_to_recreate(provider, desired, observed)
        return _plan(desired, observed, "replace", why, changes=changes, requests=calls, diagnostics=tuple(problems))
    calls = ()
    if not problems:
        try:
            calls = _updates(provider, desired, observed, changes)
        except SpecError as error:
            problems += error.diagnostics
    why = f"differs in {fields}"
    problems += _problems(desired, observed)
    return _plan(desired, observed, "update", why, changes=changes, requests=calls, diagnostics=tuple(problems))


def _updates(
    provider: PoolCalls, desired: Desired, observed: Observed, changes: tuple[ClassifiedChange, ...]
) -> tuple[Request, ...]:
    return provider.requests.update(desired, observed, tuple(c.change for c in changes))


def _refused(where: Where, classified: ClassifiedChange) -> Finding:
    return Finding(
        "refused-change",
        where,
        f"{classified.change.field} cannot change: {classified.row.sentence}",
        fix="write the live value, or give the pool a new name",
    )


def _protected(where: Where, what: str) -> Finding:
    return Finding(
        "protected",
        where,
        f"it would be {what}, but it is protected",
        fix="apply deletionProtection: false first",
        why=PROTECTED_WHY,
    )


def _refused_adoption(
    desired: Desired, observed: Observed, *, requested: bool, adopt_from: Collection[str]
) -> PoolPlan | None:
    """Plan a conflict for a pool without this owner that must not be adopted; return None if it may be adopted."""
    if observed.owner and not observed.pool:
        problem = half_marked(desired.target.cluster, observed)
        return _plan(desired, observed, "conflict", problem.seen, diagnostics=(problem,))
    if observed.owner:
        return _conflict(desired, observed)
    if names_another(desired, observed):
        is_named = observed.copy is not None and observed.copy.owner in adopt_from
        return None if is_named else _copied_conflict(desired, observed)
    return None if requested else _conflict(desired, observed)


def _adopted(
    provider: PoolCalls, desired: Desired, observed: Observed, changes: tuple[ClassifiedChange, ...]
) -> PoolPlan:
    """Plan the adoption of a pool without an owner, or of one whose owner was named."""
    target = desired.target
    if observed.state != "ready":
        return _not_adoptable(desired, observed)
    now = adopting_changes(desired, changes)
    later = tuple(c for c in changes if c not in now)
    requests = _updates(provider, desired, observed, now)
    if not later:
        why = "it has no gpukube.io/owner label and matches the spec; adopted"
        return _plan(desired, observed, "adopt", why, changes=changes, requests=requests)
    fields = ", ".join(str(c.change.field) for c in later)
    problem = Finding(
        "adopt-differs",
        target.where,
        f"it also differs in {fields}, which does not change in this run",
        fix="plan again once it is adopted: a later apply changes it",
        why="adopting adds the gpukube.io labels and changes nothing else",
        severity="warning",
    )
    why = f"it has no gpukube.io/owner label; adopted without other changes: differs in {fields}"
    return _plan(desired, observed, "adopt", why, changes=changes, requests=requests, diagnostics=(problem,))


def adopting_changes(desired: Desired, changes: Sequence[ClassifiedChange]) -> tuple[ClassifiedChange, ...]:
    """Return the changes that an adoption makes.

    If the pool differs only in gpukube's labels and no pod is affected, the adoption sets all of them. They select the
    plugin for the nodes, so if anything else differs (devices may not match the spec yet), it sets only the marks.
    """
    added = desired.labels.keys() - desired.target.labels.keys()
    own = {label(key) for key in added} | {PROTECTION}
    harmless = tuple(
        c
        for c in changes
        if c.change.field == RELEASED or (c.change.field in own and c.change.old is None and c.row.kind == "in-place")
    )
    if len(harmless) == len(changes):
        return harmless
    marks = {label(key) for key in MARKS} | {PROTECTION, RELEASED}
    return tuple(c for c in harmless if c.change.field in marks)


def _not_adoptable(desired: Desired, observed: Observed) -> PoolPlan:
    """Plan a conflict for a pool without an owner that is not ready."""
    passing = observed.state in ("busy", "deleting")
    another = f"choose another name for the pool (names: {{{desired.target.cluster.provider}: ...}})"
    problem = Finding(
        "adopt-not-ready",
        desired.target.where,
        f'a pool named "{observed.name}" exists and is {observed.status}: it cannot be adopted now',
        fix="wait until the cloud has finished, and run this again"
        if passing
        else f"repair it with the cloud's own tool, or {another}",
        why="a pool that is not ready cannot be changed",
    )
    return _plan(desired, observed, "conflict", problem.seen, diagnostics=(problem,), obstacle="not-ready")


def _conflict(desired: Desired, observed: Observed) -> PoolPlan:
    target = desired.target
    owner = (
        f'belongs to "{observed.owner}" (pool {observed.pool})' if observed.owner else "has no gpukube.io/owner label"
    )
    another = f"choose another name for the pool (names: {{{target.cluster.provider}: ...}})"
    adopt = "take it over with --adopt" + (
        "" if observed.state == "ready" else f" once it is no longer {observed.status}"
    )
    problem = Finding(
        "foreign-pool",
        target.where,
        f'a pool named "{observed.name}" exists on {target.cluster.key} and {owner}',
        fix=f"{another}, or delete the live one" if observed.owner else f"{another}, or {adopt}",
        why="gpukube changes and deletes only pools of the spec's owner",
    )
    return _plan(desired, observed, "conflict", problem.seen, diagnostics=(problem,), obstacle="foreign")


def _managed_conflict(desired: Desired, observed: Observed, managers: Sequence[Manager]) -> PoolPlan:
    """Plan a conflict for a pool without an owner that another tool manages."""
    target = desired.target
    problem = Finding(
        "managed-pool",
        target.where,
        f'a pool named "{observed.name}" exists on {target.cluster.key}, and {describe_managers(managers)} manages it',
        fix="leave it out of the spec; or let the other tool forget it without deleting it, and adopt it with "
        f"--adopt-managed --pool {target.pool}",
        why="two tools that manage one pool undo each other's changes, or one deletes what the other uses",
    )
    return _plan(desired, observed, "conflict", problem.seen, diagnostics=(problem,), obstacle="managed")


def _with_managers(plan: PoolPlan, managers: Sequence[Manager]) -> PoolPlan:
    """Add a warning about other tools that manage an adopted pool."""
    if plan.action != "adopt" or not managers:
        return plan
    problem = Finding(
        "managed-pool",
        plan.where,
        f"{describe_managers(managers)} manages it too",
        fix="see that it no longer changes or deletes the pool",
        why="two tools that manage one pool undo each other's changes",
        severity="warning",
    )
    return replace(plan, diagnostics=(*plan.diagnostics, problem))


def _copied_conflict(desired: Desired, observed: Observed) -> PoolPlan:
    """Plan a conflict for a pool without marks in its labels whose copy names another owner or pool."""
    target, copy = desired.target, observed.copy
    owner, pool = (copy.owner, copy.pool) if copy else ("", "")
    another = f"choose another name for the pool (names: {{{target.cluster.provider}: ...}})"
    problem = Finding(
        "foreign-copy",
        target.where,
        f'a pool named "{observed.name}" exists on {target.cluster.key}; it has no gpukube.io labels, and '
        f'its tags name the owner "{owner}" (pool {pool})',
        fix=f"{another}, or take it over with --adopt-from {owner}",
        why="labels can be replaced by accident, so a pool keeps its owner until you name that owner",
    )
    return _plan(desired, observed, "conflict", problem.seen, diagnostics=(problem,), obstacle="foreign-copy")


def _two_pools(
    provider: PoolCalls,
    form: Callable[[str], Desired],
    declared: str,
    matches: tuple[Observed, ...],
    taken: Collection[str],
) -> PoolPlan:
    """Resume a replacement; plan a conflict if it is unclear which of the two pools is the old one."""
    desired = form(declared)
    target = desired.target
    names = " and ".join(o.name for o in matches)
    if has_lost_marks(desired, matches[0]):
        problem = Finding(
            "lost-marks",
            target.where,
            f"the gpukube.io labels of {names} were replaced, and the tags of each name this pool",
            fix=f"give the right one the labels {OWNER_LABEL}={target.owner} and {POOL_LABEL}={target.pool} with the "
            "cloud's own tool",
        )
        return _plan(desired, matches[0], "conflict", problem.seen, diagnostics=(problem,))

    if doubt := _doubt_about_lost(desired, matches) or doubt_among(declared, matches, form, taken):
        problem = duplicate_pools(target.cluster, target.pool, matches, doubt)
        return _plan(desired, matches[0], "conflict", problem.seen, diagnostics=(problem,))

    def fits(live: Observed) -> bool:
        return all(c.row.kind not in ("replace", "refused") for c in _classified(provider, form(live.name), live))

    pair = tell_apart(matches, fits)
    if isinstance(pair, Pair):
        return _in_progress(provider, form(pair.new.name), pair)
    deleting = next((o.name for o in matches if o.state == "deleting"), "")
    other = next((o.name for o in matches if o.name != declared), alternate_name(declared))
    problem = Finding(
        "two-pools",
        target.where,
        f"{names} both have the labels of this pool, and {pair}",
        fix=f"wait until {deleting} is deleted, then plan again"
        if deleting
        else f"delete the one that is not needed: gpukube pool delete -f FILE --cluster {target.cluster.key} {other}, "
        "or with the cloud's own tool",
        why="while a pool is replaced, the new one is the one that matches the spec",
    )
    return _plan(desired, matches[0], "conflict", problem.seen, diagnostics=(problem,))


def _doubt_about_lost(desired: Desired, matches: Sequence[Observed]) -> tuple[str, str] | None:
    """Return the doubt about a pool with labels and no copy next to one that lost them: it may be copied from it."""
    lost = next((pool.name for pool in matches if has_lost_marks(desired, pool)), "")
    return (matches[0].name, f"{lost} has lost them: its tags name this pool") if lost else None


def _in_progress(provider: PoolCalls, desired: Desired, pair: Pair) -> PoolPlan:
    """Plan the remaining steps of a replacement, which end with deleting the old pool."""
    old, new = pair.old, pair.new
    desired, unmerged = carry_over(provider, desired, old)
    changes = _classified(provider, desired, old) if old.fields else ()
    planned = _owned(provider, desired, new, _classified(provider, desired, new))
    problems = [*unmerged, *(d for d in planned.diagnostics if d.severity == "error")]
    problems += [_protected(desired.target.where, "replaced")] if old.protected else []
    step = next_step(old, new)
    calls = _calls_left(provider, planned.requests, desired.target.cluster, old)
    status = {
        "create": f"{new.name} is {new.status}",
        "prove": f"{new.name} exists and its GPUs are to be verified",
        "drain": "",
        "delete": f"{old.name} is {old.status}",
    }[step]
    return replace(
        _plan(desired, old, "replace", f"{new.name} replaces {old.name}: {status}", changes=changes, requests=calls),
        name=old.name,
        diagnostics=tuple(problems),
        replacement=Replacement(new.name, desired, new, step, calls),
    )
