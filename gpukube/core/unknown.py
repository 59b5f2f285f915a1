"""Generates examples of a pool with mistakes, so that rules can check its other fields.

Pure. A field with a wrong value is unknown. Findings that do not depend on it are the same in every example; findings
in only some examples depend on it and wait for the next run. A few examples suffice if they differ in all unknown
fields at once.
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
"""Minimum number of examples: one each of a fixed size, scaling from zero, and scaling from one."""


@cache
def example_machines(provider: str, model: str) -> list[Machine]:
    """Return a diverse set of a cloud's machines.

    Args:
        provider: The cloud.
        model: GPU model, as in the spec; if the cloud has machines with it, all examples have it.
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
    """Return variants of a pool that differ in its unknown fields.

    Args:
        targets: The pool, once with each candidate machine.
        unknown: Paths of its wrong fields.
        cluster: Paths of its cluster's wrong fields.
        sharing_is_wrong: Whether its sharing is invalid, for each target.

    Returns:
        Examples; a single unchanged one if no field that rules depend on is unknown.
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
    """Return a sharing that the target's machine supports, similar to the requested one."""
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
