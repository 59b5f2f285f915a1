"""Replacing a pool by a second one: the names of the two, which of two live ones is the old one, what is left to do.

A field that cannot change on a live pool takes a new pool. Its name is the declared one or its alternate, whichever
the live pool does not have: two names that take turns, so that no name grows. Both pools carry one mark until the old
one is gone; nothing else remembers a replacement. So whoever finds two live pools of one mark finds out from the spec
which is which: the one that matches it, but for what can change in place, is the new one.

Pure. Out of scope: whether there is room for both (engine.plan), doing it (engine.change).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpukube.core.marks import doubt_of
from gpukube.spec.poolnames import alternate_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from gpukube.core.values import Desired, Observed, Ownership, Promise, Request, SurgeStep, Target


@dataclass(frozen=True, slots=True)
class Pair:
    """Two live pools of one mark, told apart."""

    old: Observed
    new: Observed


def successor_name(declared: str, live: str) -> str:
    """Return the name of the pool that would take the place of a live one."""
    return alternate_name(declared) if live == declared else declared


def renamed(translate: Callable[[Target, Ownership, Promise], Desired], desired: Desired, name: str) -> Desired:
    """Translate a declared pool under another name in the cloud; `translate` is Provider.desired."""
    if desired.target.name == name:
        return desired
    return translate(replace(desired.target, name=name), desired.ownership, desired.promise)


def doubt_among(
    declared: str, live: Sequence[Observed], forms: Callable[[str], Desired] | None = None, taken: Collection[str] = ()
) -> tuple[str, str] | None:
    """Explain why several live pools of one mark are no unfinished replacement, so that none of them is changed.

    They are one only if one has the declared name and the other its alternate, and each has a copy of the marks that
    was written for it, with which a replacement begins. Where copies are written at creation only, a pool that was
    adopted under the declared name may have none: there it cannot be told from one with copied labels.

    Args:
        declared: Name of the pool in the cloud, by the spec.
        live: The pools, two or more.
        forms: Gives the declared pool under another name; None where no spec declares it.
        taken: Names in the cloud of other pools of the spec on this cluster: none of them is an alternate.

    Returns:
        The name of a strange pool, and why, in words that follow the names of all; None if nothing is against it.
    """
    alternate = alternate_name(declared)
    if {pool.name for pool in live} != {declared, alternate} or alternate in taken:
        stranger = next((pool.name for pool in live if pool.name not in (declared, alternate)), alternate)
        return stranger, f"only one is expected, or two while {declared} is replaced by {alternate}"
    for pool in live:
        desired = forms(pool.name) if forms else None
        required = pool.name == alternate or desired is None or not desired.copy_is_fixed
        if why := doubt_of(pool, required=required, desired=desired):
            return pool.name, why
    return None


def tell_apart(live: Sequence[Observed], fits: Callable[[Observed], bool]) -> Pair | str:
    """Return which of several live pools of one mark is the old one.

    Args:
        live: The two pools.
        fits: Whether a pool matches the spec but for what can change in place.

    Returns:
        The pair; or why it cannot be told, in words that follow the names of the pools.
    """
    first, second = live
    # What has no fields is what a killed run left of a pool: of the new one if the other is to be replaced.
    fitting = [pool for pool in live if pool.fields and fits(pool)]
    if len(fitting) == len(live):
        fitting = [pool for pool in live if pool.state != "deleting"]
    if len(fitting) == 1:
        return Pair(second, first) if fitting[0] is first else Pair(first, second)
    left = [pool for pool in live if not pool.fields]
    if not fitting and len(left) == 1:
        return Pair(second, first) if left[0] is first else Pair(first, second)
    return "both match the spec" if fitting else "neither matches the spec"


def surge_doubt(declared: str, old: Observed, form: Callable[[str], Desired], taken: Collection[str] = ()) -> str:
    """Explain why the live pool could not be told from its replacement; "" where it can.

    Args:
        declared: Name of the pool in the cloud, by the spec.
        old: The live pool.
        form: Gives the declared pool under another name.
        taken: As for `doubt_among`.
    """
    alternate = alternate_name(declared)
    if alternate in taken:
        return f'another pool of the spec has the cloud name "{alternate}"'
    if old.name not in (declared, alternate):
        return f"{old.name} is live under another name than {declared} and {alternate}, which take turns"
    desired = form(old.name)
    return doubt_of(old, required=old.name == alternate or not desired.copy_is_fixed, desired=desired)


def next_step(old: Observed, new: Observed | None) -> SurgeStep:
    """Tell by what the cloud reports of both how far a replacement is; whether nodes are cordoned it does not know."""
    if new is None or new.state != "ready" or not new.fields:
        return "create"
    return "delete" if old.state == "deleting" or not old.fields else "prove"


def requests_left(
    create: Sequence[Request], freeze: Request | None, delete: Request, old: Observed, copy: Request | None = None
) -> tuple[Request, ...]:
    """Put together the calls that are left.

    The one that writes the old pool's copy, those of the new pool, the one that stops the old one's autoscaler, its
    end.
    """
    if old.state == "deleting":
        return tuple(create)
    return (*([copy] if copy else []), *create, *([freeze] if freeze and old.fields else []), delete)
