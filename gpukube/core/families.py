"""A family: a pool and its alternatives on one cluster, of which one has the nodes.

Pure. In scope: which pools are a family, whether the same pods run on all of them, and how they differ. Out of scope:
which of them has the nodes (engine.plan.families), getting nodes (engine.change.families).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube.core.values import Desired, Target


FamilyKey = tuple[str, str, str]
"""Owner, name, and cluster of a family; the cluster is "" if the family is on any of several."""


def family_key(desired: Desired) -> FamilyKey | None:
    """Return the family of a declared pool; None for a pool of no family, or of an autoscaled one."""
    target = desired.target
    if not target.family or target.nodes.autoscaled:
        return None
    return target.owner, target.family, "" if target.place == "any" else target.cluster.key


def families(pools: Iterable[Desired]) -> dict[tuple[str, str], list[Desired]]:
    """Return the families among the declared pools of one cluster: (owner, name) -> its pools by rank."""
    found: dict[tuple[str, str], list[Desired]] = {}
    for pool in sorted(pools, key=lambda pool: pool.target.rank):
        if pool.target.family:
            found.setdefault((pool.target.owner, pool.target.family), []).append(pool)
    return found


def check_families(pools: Iterable[Desired]) -> Iterator[Finding]:
    """Report alternatives on which the pods of the first pool would not run, or which the autoscaler cannot swap."""
    for first, *others in families(pools).values():
        for other in others:
            here, there = _devices(first), _devices(other)
            if here.keys() != there.keys():
                yield _differs(other, f"pods see {_listed(there)} on it, but {_listed(here)} on {first.target.pool}")
            elif first.target.machine.arch != other.target.machine.arch:
                arches = (
                    f"an {other.target.machine.arch} CPU, but {first.target.pool} an {first.target.machine.arch} CPU"
                )
                yield _differs(other, f"{other.target.machine.name} has {arches}")
            elif first.target.nodes.autoscaled and here != there:
                counts = f"{_counted(there)} per node, but {first.target.pool} has {_counted(here)}"
                yield _differs(other, f"it has {counts}, and the family is autoscaled")


def differences(first: Target, other: Target) -> list[str]:
    """Describe how an alternative differs from the first pool for pods, and in what it costs: "type: a -> b"."""
    pairs = {
        "type": (first.machine.name, other.machine.name),
        "GPUs": (_gpus(first), _gpus(other)),
        "capacity": (_bought(first), _bought(other)),
        "zones": (", ".join(first.zones) or "any", ", ".join(other.zones) or "any"),
        "sharing": (str(first.sharing.mig or "whole GPUs"), str(other.sharing.mig or "whole GPUs")),
        "taints": (_taints(first), _taints(other)),
    }
    return [f"{what}: {here} -> {there}" for what, (here, there) in pairs.items() if here != there]


def _devices(pool: Desired) -> dict[str, int]:
    return dict(pool.promise.per_node)


def _listed(devices: Iterable[str]) -> str:
    return ", ".join(sorted(devices)) or "no GPU"


def _counted(devices: dict[str, int]) -> str:
    return ", ".join(f"{name}: {count}" for name, count in sorted(devices.items()))


def _gpus(target: Target) -> str:
    return f"{target.machine.gpus:g} x {target.machine.model}"


def _bought(target: Target) -> str:
    reservation = target.capacity.reservation
    return f"{target.capacity.type} ({reservation.form})" if reservation else target.capacity.type


def _taints(target: Target) -> str:
    return ", ".join(sorted(map(str, target.taints))) or "none"


def _differs(pool: Desired, seen: str) -> Finding:
    target = pool.target
    return Finding(
        "alternative-differs",
        target.locator.at("name"),
        f"{target.where}: {seen}",
        fix="write sharing for the alternative, or an alternative with the same GPUs; or make it a pool of its own",
        why="the same pods run on every alternative of a pool",
    )
