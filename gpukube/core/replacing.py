"""Replacing a pool by a second one: their names, which of two live pools is the old one, and the remaining steps.

A field that cannot change on a live pool requires a new pool. Its name is the declared one or its alternate, whichever
the live pool does not have: the two names alternate, so that no name grows. Both pools have the same marks until the
old one is deleted; a replacement has no other record. So of two live pools with the same marks, the new one is the one
that matches the spec, apart from fields that can change in place.

Pure. Out of scope: capacity for both (engine.plan), executing the replacement (engine.change).
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
    """The old and the new of two live pools with the same marks."""

    old: Observed
    new: Observed


def successor_name(declared: str, live: str) -> str:
    """Return the name of the pool that would replace a live one."""
    return alternate_name(declared) if live == declared else declared


def renamed(translate: Callable[[Target, Ownership, Promise], Desired], desired: Desired, name: str) -> Desired:
    """Return a declared pool under another cloud name; `translate` is Provider.desired."""
    if desired.target.name == name:
        return desired
    return translate(replace(desired.target, name=name), desired.ownership, desired.promise)


def doubt_among(
    declared: str, live: Sequence[Observed], forms: Callable[[str], Desired] | None = None, taken: Collection[str] = ()
) -> tuple[str, str] | None:
    """Return why several live pools with the same marks are not an unfinished replacement, and so must not change.

    They are one only if one has the declared name, the other its alternate, and each has its own copy of the marks,
    which a replacement writes first. If a cloud writes copies only at creation, a pool adopted under the declared name
    may have none and is indistinguishable from one with copied labels.

    Args:
        declared: Declared cloud name of the pool.
        live: The pools, two or more.
        forms: Returns the declared pool under another name; None if no spec declares it.
        taken: Cloud names of the spec's other pools on this cluster; none of them is an alternate.

    Returns:
        The name of an unexpected pool, and the reason as a clause that follows the names of all; None if there is none.
    """
    alternate = alternate_name(declared)
    if {pool.name for pool in live} != {declared, alternate} or alternate in taken:
        unexpected = next((pool.name for pool in live if pool.name not in (declared, alternate)), alternate)
        return unexpected, f"only one is expected, or two while {declared} is replaced by {alternate}"
    for pool in live:
        desired = forms(pool.name) if forms else None
        required = pool.name == alternate or desired is None or not desired.copy_is_fixed
        if why := doubt_of(pool, required=required, desired=desired):
            return pool.name, why
    return None


def tell_apart(live: Sequence[Observed], fits: Callable[[Observed], bool]) -> Pair | str:
    """Return which of two live pools with the same marks is the old one.

    Args:
        live: The two pools.
        fits: Returns whether a pool matches the spec, apart from fields that can change in place.

    Returns:
        The pair; or why it is unclear, as a clause that follows the names of the pools.
    """
    first, second = live
    # A pool without fields is left over from a killed run: it is the new one if the other needs a replacement.
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
    """Return why the live pool would be indistinguishable from its replacement; "" if it is not.

    Args:
        declared: Declared cloud name of the pool.
        old: The live pool.
        form: Returns the declared pool under another name.
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
    """Return the next step of a replacement by the cloud's status of both pools, which does not include cordons."""
    if new is None or new.state != "ready" or not new.fields:
        return "create"
    return "delete" if old.state == "deleting" or not old.fields else "prove"


def requests_left(
    create: Sequence[Request], freeze: Request | None, delete: Request, old: Observed, copy: Request | None = None
) -> tuple[Request, ...]:
    """Return the remaining calls: write the old pool's copy, create the new pool, freeze the old one, delete it."""
    if old.state == "deleting":
        return tuple(create)
    return (*([copy] if copy else []), *create, *([freeze] if freeze and old.fields else []), delete)
