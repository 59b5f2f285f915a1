"""Checks of the order that an autoscaler has for autoscaled families: the priority expander's map, or classes.

In scope: pure checks. Out of scope: writing an order (engine.plan.orders).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.expander import (
    KEY,
    NAME,
    OrderError,
    broken_patterns,
    parse_priorities,
    recorded,
)
from gpukube.core.faults import fault
from gpukube.core.jsontree import at, strings, text, trees
from gpukube.core.live import is_autoscaled
from gpukube.core.scaling_order import ClassOrder, GroupOrder
from gpukube.doctor.check import APPLY, Checks
from gpukube.engine.plan.orders import MANAGED_NAMESPACE, wrong_expander

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.expander import Priorities
    from gpukube.core.faults import Fault
    from gpukube.core.jsontree import Tree
    from gpukube.core.values import Observed
    from gpukube.doctor.evidence import Evidence

_README: Final = "https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/expander/priority/readme.md"

_ANY_NAME: Final = "NAME"

CHECKS: Final = Checks(needs=("cloud", "pools", "order"))


def scaled_members(pools: tuple[Observed, ...]) -> list[Observed]:
    """Return the live pools of autoscaled families that have alternatives."""
    scaled = [pool for pool in pools if pool.family and is_autoscaled(pool)]
    keys = [(pool.owner, pool.family) for pool in scaled]
    return [pool for pool, key in zip(scaled, keys, strict=True) if keys.count(key) > 1]


@CHECKS.add(
    "order-invalid",
    title="priorities of the autoscaler that it cannot read",
    consequence="it ignores the order, and before version 1.26 adds no node at all",
    link=_README,
)
def _invalid(evidence: Evidence) -> Iterator[Fault]:
    if not _map_of(evidence):
        return
    try:
        broken = broken_patterns(_priorities(evidence))
    except OrderError as error:
        seen = f"its {KEY} cannot be read: {error}"
    else:
        if not broken:
            return
        seen = f"{', '.join(broken)} is no pattern" if len(broken) == 1 else f"{', '.join(broken)} are no patterns"
    yield fault(where=_place(evidence), seen=seen, fix=_edit(evidence))


@CHECKS.add(
    "order-stale",
    title="priorities of the autoscaler that name pools which are gone, or lack pools of a family",
    consequence="a group that no line names is not used while another one could grow",
    link=_README,
    severity="warning",
)
def _stale(evidence: Evidence) -> Iterator[Fault]:
    how = evidence.provider.extras.order
    members = scaled_members(evidence.live)
    if isinstance(how, ClassOrder):
        yield from _stale_classes(evidence, how, members)
    if not isinstance(how, GroupOrder) or not (_map_of(evidence) or members):
        return
    try:
        written = {one for patterns in _priorities(evidence).values() for one in patterns}
    except OrderError:
        return  # order-invalid
    names = {pool.name for pool in evidence.live if pool.fields}  # without fields, it is a remainder
    before, _, after = how.group(_ANY_NAME).partition(_ANY_NAME)
    named = [one[len(before) : -len(after)] for one in written if one.startswith(before) and one.endswith(after)]
    if gone := sorted(name for name in named if name not in names):
        yield fault(
            where=_place(evidence),
            seen=f"it names {', '.join(gone)}, which no longer {'exists' if len(gone) == 1 else 'exist'}",
            fix=_rewrite(evidence),
        )
    if lacking := [pool.name for pool in members if how.group(pool.name) not in written]:
        yield fault(
            where=_place(evidence),
            seen=f"it has no line for {', '.join(lacking)}" if written else f"there is none for {', '.join(lacking)}",
            fix=_rewrite(evidence),
            evidence=tuple(f"{name}: {how.group(name)}" for name in lacking),
        )


def _stale_classes(evidence: Evidence, how: ClassOrder, members: list[Observed]) -> Iterator[Fault]:
    """Report the classes of live families, as `_stale` does the ConfigMap; a missing one too."""
    names = {pool.name for pool in evidence.live}
    classes = {text(found, "metadata", "name"): found for found in evidence.orders}
    for family in dict.fromkeys(pool.family for pool in members):
        own = [pool.name for pool in members if pool.family == family]
        ranks = trees(at(classes.get(family), "spec", "priorities"))
        listed = [name for rank in ranks for name in strings(rank.get("nodepools"))]
        if gone := sorted(set(listed) - names):
            verb = "exists" if len(gone) == 1 else "exist"
            yield fault(f"{how.kind} {family}", f"it names {', '.join(gone)}, which no longer {verb}", APPLY)
        if lacking := [name for name in own if name not in listed]:
            seen = f"it does not name {', '.join(lacking)}" if listed else f"there is none for {', '.join(lacking)}"
            yield fault(f"{how.kind} {family}", seen, APPLY)


@CHECKS.add(
    "order-ignored",
    title="families whose order the autoscaler does not read",
    consequence="it chooses among all alternatives on which a pod fits, also the most expensive one",
    link=_README,
    severity="warning",
    needs=("cloud", "pools", "deployments"),
)
def _ignored(evidence: Evidence) -> Iterator[Fault]:
    how, members = evidence.provider.extras.order, scaled_members(evidence.live)
    if not isinstance(how, GroupOrder) or not members or evidence.facts is None:
        return
    if wrong := wrong_expander(evidence.cluster, evidence.facts, evidence.seen, how):
        families = ", ".join(dict.fromkeys(pool.family for pool in members))
        expander, fix = wrong
        yield fault(
            where=f"cluster {evidence.cluster.key}",
            seen=f"the autoscaler ignores the order of {families}: its expander is {expander}",
            fix=fix,
        )


def _priorities(evidence: Evidence) -> Priorities:
    found = _map_of(evidence)
    return parse_priorities(text(found, "data", KEY)) if found else {}


def _map_of(evidence: Evidence) -> Tree | None:
    """Return the ConfigMap of the priority expander, where the autoscaler reads one."""
    is_read = isinstance(evidence.provider.extras.order, GroupOrder)
    return next(iter(evidence.orders), None) if is_read else None


def _place(evidence: Evidence) -> str:
    return f"ConfigMap {text(_map_of(evidence), 'metadata', 'namespace') or MANAGED_NAMESPACE}/{NAME}"


def _rewrite(evidence: Evidence) -> str:
    """Return how the map gets right: gpukube writes its own."""
    found = _map_of(evidence)
    ours = found is None or recorded(found) is not None
    return APPLY if ours else _edit(evidence)


def _edit(evidence: Evidence) -> str:
    namespace = text(_map_of(evidence), "metadata", "namespace")
    return f"correct it: kubectl edit configmap {NAME} --namespace {namespace}"
