"""Examples of what a pool with mistakes may turn out to be, so that the rest of it can be judged.

Pure. A field whose value is wrong is unknown. Rules that do not depend on it find the same in every example; what they
find in some of them only depends on it, and is left for the next run. Few examples do, when they differ in all that is
unknown at once.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

from gpukube.core.values import Capacity, Nodes, Upgrade
from gpukube.gpu.catalog import CatalogError, machines, parse_model
from gpukube.gpu.mig import profiles as profiles_of
from gpukube.gpu.sharing import MigCut, Sharing
from gpukube.spec.source.positions import is_unknown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.core.values import Target
    from gpukube.gpu.catalog import Machine
    from gpukube.spec.source.positions import Path

_NODES: Final = (Nodes(2, 2, 2, autoscaled=False), Nodes(0, 0, 3, autoscaled=True), Nodes(1, 1, 3, autoscaled=True))
_CAPACITIES: Final = (Capacity("on-demand"), Capacity("spot"), Capacity("reserved"))
_OTHER_PLACES: Final = {
    "account": "999999999999",
    "region": "eu-west-3",
    "location": "europe-west4",
    "project": "another",
    "subscription": "99999999-9999-9999-9999-999999999999",
    "resourceGroup": "another",
}
_LEAST: Final = 3
"""Examples at least: one each of what is fixed, scaled from zero and from one."""


@cache
def example_machines(provider: str, model: str) -> list[Machine]:
    """Return machines of a cloud that differ as much as machines do.

    Args:
        provider: The cloud.
        model: As the spec names it; where the cloud has machines with it, all are such.
    """
    usable = [m for m in machines(provider) if m.status != "retired" and "*" not in m.name]
    try:
        same = [m for m in usable if m.model == parse_model(model)] if model else []
    except CatalogError:
        same = []
    kinds = {(m.is_fractional, bool(m.mig_capable), m.arch, m.devices > 1): m for m in same or usable}
    found = list(kinds.values())
    return found if len(found) > 1 else [*found, *(m for m in usable if m not in found)][:2]


def vary(
    targets: Sequence[Target], unknown: frozenset[Path], cluster: frozenset[Path], *, sharing_is_wrong: Sequence[bool]
) -> list[Target]:
    """Vary what is unknown of a pool.

    Args:
        targets: The pool, once with each machine that it may have.
        unknown: Paths of its wrong fields.
        cluster: Paths of those of its cluster.
        sharing_is_wrong: Whether its GPUs cannot be shared so, for each target.

    Returns:
        Examples; one, unchanged, where nothing is unknown that rules go by.
    """
    nodes = is_unknown(("nodes",), unknown)
    capacity = is_unknown(("capacity",), unknown)
    sharing = is_unknown(("sharing",), unknown)
    varies = nodes or capacity or sharing or cluster or is_unknown(("upgrade",), unknown)
    if len(targets) == 1 and not varies and not any(sharing_is_wrong):
        return list(targets)
    examples = []
    for number in range(max(_LEAST, len(targets))):
        target = targets[number % len(targets)]
        if nodes:
            target = replace(target, nodes=_NODES[number % len(_NODES)])
        if capacity:
            target = replace(target, capacity=_CAPACITIES[number % len(_CAPACITIES)])
        if is_unknown(("upgrade",), unknown):
            target = replace(target, upgrade=Upgrade())
        if sharing or sharing_is_wrong[number % len(targets)]:
            target = replace(target, sharing=_example_sharing(target, number))
        if cluster and number % 2:
            identity = {key: _OTHER_PLACES.get(key, value) for key, value in target.cluster.identity.items()}
            target = replace(target, cluster=replace(target.cluster, identity=identity))
        examples.append(target)
    return examples


def _example_sharing(target: Target, number: int) -> Sharing:
    """Share a target in a way that its machine can, near to the one that is asked for."""
    cut, slicing = target.sharing.mig, target.sharing.slicing
    profiles = profiles_of(target.machine.model) if target.machine.mig_capable else ()
    names = [profile.name for profile in profiles]
    if cut and names:
        name = names[number % min(2, len(names))]
        strategy = ("single", "mixed")[number % 2] if cut.layout else cut.strategy
        cut = MigCut("" if cut.layout else name, strategy, (name,) if cut.layout else ())
    else:
        cut = None
    if slicing:
        slicing = None if cut and slicing.mode == "mps" else replace(slicing, replicas=2 + number % 2)
    return Sharing(cut, slicing)
