"""Replacing a pool by a second one: the names of the two, which of two live ones is the old one, what is left to do.

A field that cannot change on a live pool takes a new pool. Its name is the declared one or its alternate, whichever
the live pool does not have: two names that take turns, so that no name grows. Both pools carry one mark until the old
one is gone; nothing else remembers a replacement. So whoever finds two live pools of one mark finds out from the spec
which is which: the one that matches it, but for what can change in place, is the new one.

Pure. Must not live here: whether there is room for both (engine.plan), doing it (engine.change).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpukube.core.values import Desired, Observed, Ownership, Promise, Request, SurgeStep, Target

_SUFFIX: Final = "b"
_PAIR: Final = 2


@dataclass(frozen=True, slots=True)
class Pair:
    """Two live pools of one mark, told apart."""

    old: Observed
    new: Observed


def alternate_name(declared: str) -> str:
    """Return the other name that a pool may live under."""
    return f"{declared}{_SUFFIX}"


def successor_name(declared: str, live: str) -> str:
    """Return the name of the pool that would take the place of a live one."""
    return alternate_name(declared) if live == declared else declared


def renamed(translate: Callable[[Target, Ownership, Promise], Desired], desired: Desired, name: str) -> Desired:
    """Translate a declared pool under another name in the cloud; `translate` is Provider.desired."""
    if desired.target.name == name:
        return desired
    return translate(replace(desired.target, name=name), desired.ownership, desired.promise)


def tell_apart(declared: str, live: Sequence[Observed], fits: Callable[[Observed], bool]) -> Pair | str:
    """Tell which of several live pools of one mark is the old one.

    Args:
        declared: Name of the pool in the cloud, by the spec.
        live: The pools, two or more.
        fits: Whether a pool matches the spec but for what can change in place.

    Returns:
        The pair; or why it cannot be told, in words that follow the names of the pools.
    """
    if len(live) > _PAIR or not {pool.name for pool in live} & {declared, alternate_name(declared)}:
        return f"only one is expected, or two while {declared} is replaced"
    first, second = live
    # What has no fields is what a killed run left of a pool: of the new one if the other is to be replaced.
    fitting = [pool for pool in live if pool.fields and fits(pool)]
    if len(fitting) == _PAIR:
        fitting = [pool for pool in live if pool.state != "deleting"]
    if len(fitting) == 1:
        return Pair(second, first) if fitting[0] is first else Pair(first, second)
    left = [pool for pool in live if not pool.fields]
    if not fitting and len(left) == 1:
        return Pair(second, first) if left[0] is first else Pair(first, second)
    return "both match the spec" if fitting else "neither matches the spec"


def next_step(old: Observed, new: Observed | None) -> SurgeStep:
    """Tell by what the cloud reports of both how far a replacement is; whether nodes are cordoned it does not know."""
    if new is None or new.state != "ready" or not new.fields:
        return "create"
    return "delete" if old.state == "deleting" or not old.fields else "prove"


def requests_left(
    create: Sequence[Request], freeze: Request | None, delete: Request, old: Observed
) -> tuple[Request, ...]:
    """Put together the calls that are left: the new pool's, the one that stops the old one's autoscaler, its end."""
    if old.state == "deleting":
        return tuple(create)
    return (*create, *([freeze] if freeze and old.fields else []), delete)
