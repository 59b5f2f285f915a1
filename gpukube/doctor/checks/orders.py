"""Checks of the order that an autoscaler has for the pools of autoscaled families: the priority expander's map.

In scope: pure checks. Out of scope: clouds whose autoscaler reads the order elsewhere; writing it (engine.plan.orders).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cluster.state.scaling import running_scaler
from gpukube.core.expander import (
    EXPANDER,
    KEY,
    NAME,
    OrderError,
    broken_patterns,
    expander_of,
    parse_priorities,
    recorded,
    uses_priorities,
)
from gpukube.core.faults import fault
from gpukube.core.fields import LEAST, MOST
from gpukube.core.jsontree import text
from gpukube.core.scaling_order import GroupOrder
from gpukube.core.values import FAMILY_LABEL
from gpukube.doctor.check import Checks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.expander import Priorities
    from gpukube.core.faults import Fault
    from gpukube.core.values import Observed
    from gpukube.doctor.evidence import Evidence

_README: Final = "https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/expander/priority/readme.md"

_ANY_NAME: Final = "NAME"

CHECKS: Final = Checks(needs=("cloud", "pools", "order"))


def scaled_members(pools: tuple[Observed, ...]) -> list[Observed]:
    """Return the live pools of autoscaled families that have alternatives."""
    scaled = [
        pool for pool in pools if pool.labels.get(FAMILY_LABEL) and pool.fields.get(LEAST) != pool.fields.get(MOST)
    ]
    keys = [(pool.owner, pool.labels[FAMILY_LABEL]) for pool in scaled]
    return [pool for pool, key in zip(scaled, keys, strict=True) if keys.count(key) > 1]


@CHECKS.add(
    "order-invalid",
    title="priorities of the autoscaler that it cannot read",
    consequence="it ignores the order, and before version 1.26 adds no node at all",
    link=_README,
)
def _invalid(evidence: Evidence) -> Iterator[Fault]:
    if not evidence.order_map:
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
    if not isinstance(how, GroupOrder) or not (evidence.order_map or members):
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
    scaler = running_scaler(evidence.cluster, evidence.seen)
    if scaler is None and not how.profile:
        return  # nothing-scales
    words = [word for container in scaler.containers for word in container.command] if scaler else []
    expander = evidence.facts.expander if how.profile else expander_of(words)
    if not uses_priorities(expander):
        families = ", ".join(dict.fromkeys(pool.labels[FAMILY_LABEL] for pool in members))
        cluster = evidence.cluster
        yield fault(
            where=f"cluster {cluster.key}",
            seen=f"the autoscaler ignores the order of {families}: its expander is {expander or 'the default'}",
            fix=how.profile.format_map({**cluster.identity, "name": cluster.name})
            or f"start {scaler} with --expander={EXPANDER},least-waste",
        )


def _priorities(evidence: Evidence) -> Priorities:
    return parse_priorities(text(evidence.order_map, "data", KEY)) if evidence.order_map else {}


def _place(evidence: Evidence) -> str:
    return f"ConfigMap {text(evidence.order_map, 'metadata', 'namespace') or 'kube-system'}/{NAME}"


def _rewrite(evidence: Evidence) -> str:
    """Return how the map gets right: gpukube writes its own."""
    ours = evidence.order_map is None or recorded(evidence.order_map) is not None
    return "gpukube pool apply -f SPEC" if ours else _edit(evidence)


def _edit(evidence: Evidence) -> str:
    namespace = text(evidence.order_map, "metadata", "namespace")
    return f"correct it: kubectl edit configmap {NAME} --namespace {namespace}"
