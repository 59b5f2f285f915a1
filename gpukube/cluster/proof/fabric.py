"""Counts what nodes have besides GPUs: devices of the fast network, and huge pages.

In scope: a declared pool, its live nodes, and one snapshot -> findings; pure. Out of scope: what provides the network
in a cluster (state.fabric), and GPUs (counts).

gpukube does not install the network's parts, so a missing one is not a failure of the pool: its GPUs are proven, and
the result says what is missing. A part that runs and advertises too few devices is a failure like a missing GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.cluster.proof.outcome import Check, missing
from gpukube.cluster.state.fabric import (
    TWICE,
    allocators,
    nodes_place,
    one_allocator,
    part_states,
    remedy,
    why_not_there,
)
from gpukube.cluster.state.reach import live_place
from gpukube.core.hugepages import hugepages_of, pages_text
from gpukube.core.jsontree import number
from gpukube.workload.quantity import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.cluster.kube.views import NodeView
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.fabric import Fabric
    from gpukube.core.values import Desired
    from gpukube.errors import Finding

_WITHOUT: Final = "its GPUs work; pods that request the network stay Pending, others communicate over TCP"


def fabric_devices(fabric: Fabric, node: NodeView) -> dict[str, int]:
    """Return a node's allocatable devices of a fast network, by name; none of them 0."""
    found = {name: number(node.allocatable, name) for name in sorted(node.allocatable) if fabric.covers(name)}
    return {name: count for name, count in found.items() if count}


def counted(desired: Desired, node: NodeView) -> tuple[dict[str, int], dict[str, int]]:
    """Return the expected and the allocatable devices of the fast network of a node, for its result.

    A name that only the cluster knows is shown if it is the only one, otherwise the sum of all.
    """
    fabric = desired.fabric
    if fabric is None:
        return {}, {}
    devices = fabric_devices(fabric, node)
    total = sum(devices.values())
    if len(devices) == 1 and total >= fabric.count:
        return devices, devices
    return {fabric.resource: max(fabric.count, total)}, {fabric.resource: total}


def fabric_findings(desired: Desired, nodes: Sequence[NodeView], seen: Snapshot) -> Iterator[Finding]:
    """Find what of a pool's fast network does not run on its nodes, or would not on future ones; one per part."""
    fabric = desired.fabric
    if fabric is None:
        return
    ready = [node for node in nodes if node.ready]
    found = [(live_place(node), _lacks(fabric, node, seen)) for node in ready] or [(nodes_place(desired), True)]
    reported = set()
    for place, lacks in found:
        for index, state in enumerate(part_states(fabric, place, seen.daemonsets)):
            # The right count, or slices, prove that something provides the devices, whatever its name.
            needed = lacks or not any(part.advertises or part.driver for part in state.choices)
            if index not in reported and needed and not state.landing and not state.coming:
                reported.add(index)
                what = f"{fabric.title} is not available to pods: {why_not_there(state)}"
                yield missing(place.name, "fabric", "hint", what, _WITHOUT, remedy(state, place.taints))


def _lacks(fabric: Fabric, node: NodeView, seen: Snapshot) -> bool:
    drivers = {part.driver for choices in fabric.parts for part in choices if part.driver}
    if any(item.node == node.name for item in seen.slices if item.driver in drivers):
        return False
    return sum(fabric_devices(fabric, node).values()) < fabric.count


def node_fabric_findings(desired: Desired, node: NodeView, seen: Snapshot) -> Iterator[Finding]:
    """Compare a node's huge pages and devices of the fast network with the spec, once its GPUs match."""
    yield from hugepage_findings(desired, node)
    yield from short_findings(desired, node, seen)
    for state in part_states(desired.fabric, live_place(node), seen.daemonsets) if desired.fabric else ():
        if twice := allocators(state):
            yield missing(node.name, "fabric", "error", twice, TWICE, one_allocator(state))


def short_findings(desired: Desired, node: NodeView, seen: Snapshot) -> Iterator[Finding]:
    """Count a node's devices of the fast network: a hint if what provides them does not run there."""
    fabric = desired.fabric
    if fabric is None or not _lacks(fabric, node, seen):
        return
    states = part_states(fabric, live_place(node), seen.daemonsets)
    devices = fabric_devices(fabric, node)
    named = f" ({', '.join(devices)})" if devices and fabric.resource not in devices else ""
    what = f"{fabric.resource} is {sum(devices.values())}{named}, not {fabric.count}"
    if all(state.landing or state.coming for state in states):
        waits = [why_not_there(state) for state in states if state.coming]
        means = "; ".join([*waits, fabric.short])
        yield missing(node.name, "fabric", "warning", what, means, f"kubectl describe node {node.name}")
    else:  # fabric_findings has the reason
        yield missing(node.name, "fabric", "hint", what)


def hugepage_findings(desired: Desired, node: NodeView) -> Iterator[Finding]:
    """Compare a node's huge pages with the spec; a hint if the image lost those that the network usually has."""
    declared = hugepages_of(desired.target)
    for name, size in _lacking_pages(declared, node):
        what = f"{name} is {pages_text(_bytes(node, name))}, not {pages_text(size)}"
        means = "the node reserved its huge pages at boot, and had too little free memory, or was created before"
        yield missing(node.name, "hugepages", "error", what, means, f"drain and replace node {node.name}")
    fabric = desired.fabric
    if fabric is None or declared:
        return
    for name in fabric.hugepages:
        if name in node.allocatable and not _bytes(node, name):
            what = f"{name} is 0; node images usually reserve some for {fabric.title}"
            means, fix = "pods that request them stay Pending", "write hugepages in the pool"
            yield missing(node.name, "hugepages", "hint", what, means, fix)


def hugepage_checks(desired: Desired, node: NodeView) -> Iterator[Check]:
    """Compare the huge pages of the spec with those of a node."""
    for name, size in sorted(hugepages_of(desired.target).items()):
        has = _bytes(node, name)
        yield Check(name, pages_text(size), pages_text(has), holds=has >= size)


def _lacking_pages(expected: Mapping[str, int], node: NodeView) -> Iterator[tuple[str, int]]:
    for name, size in sorted(expected.items()):
        if _bytes(node, name) < size:
            yield name, size


def _bytes(node: NodeView, name: str) -> int:
    try:
        return int(parse_quantity(node.allocatable.get(name, "0")))
    except ValueError:
        return 0
