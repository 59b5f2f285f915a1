"""Builds the picture of a cluster from its plan, its pods and its claims. Pure.

In scope: states of nodes and devices, and counts of each node. Out of scope: pods (`pods`), prices (`pricing`), calls
(`reading`).
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.views import timestamp
from gpukube.cluster.state.node_drift import UNINITIALIZED, belongs_to_pool
from gpukube.cluster.state.published import PARENT, UUID, device_name, published
from gpukube.core.fields import CAPACITY_TYPE
from gpukube.core.live import live_machine
from gpukube.engine.documents.map_sums import add_counts
from gpukube.engine.plan.regions import region_of
from gpukube.gpu.capacity import GPU_RESOURCE, SHARED_SUFFIX
from gpukube.gpu.catalog import find_machine
from gpukube.gpu.claims import GPU_CLASS, is_claimable
from gpukube.gpu.mig import RESOURCE_PREFIX
from gpukube.usage.pods import SLOW_S, Pods
from gpukube.usage.units import Hints, is_gpu, unit_of
from gpukube.usage.world import Cluster, Device, Node, PodUse, Pool, Stock

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpukube.cluster.kube.slices import DeviceView
    from gpukube.cluster.kube.views import NodeView
    from gpukube.cluster.state.published import Published
    from gpukube.core.values import Desired, Observed
    from gpukube.engine.plan.planning import ClusterPlan
    from gpukube.gpu.machine import Machine
    from gpukube.usage.world import DeviceState, NodeState, Unit

_LEAVING: Final = ("ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted")
"""Taints of nodes that an autoscaler removes (kubernetes/autoscaler cluster-autoscaler utils/taints; karpenter.sh docs,
Disruption)."""
_ZONE: Final = "topology.kubernetes.io/zone"
_TYPE: Final = "node.kubernetes.io/instance-type"


def build_cluster(plan: ClusterPlan, pods: Pods, now: float, globs: Sequence[str] = ()) -> Cluster:
    """Return a cluster with its GPU pools, their nodes, and the pods that wait.

    Args:
        plan: The cluster as it was read.
        pods: Its pods and claims.
        now: Seconds since the epoch.
        globs: Only pools whose name in the spec, family, or cloud name matches; all if empty.
    """
    provider = plan.cluster.provider
    nodes = plan.seen.nodes if plan.seen else ()
    there = published(plan.seen.slices) if plan.seen else {}
    builder = _Builder(plan, pods, there, now)
    taken: set[str] = set()
    pools: list[Pool] = []
    for live in plan.live:
        own = [node for node in nodes if belongs_to_pool(node, live) and node.name not in taken]
        taken |= {node.name for node in own}
        machine = live_machine(provider, live)
        shown = _is_shown(globs, live.pool, live.family, live.name)
        if shown and (machine or live.owner or any(_devices(node, there) for node in own)):
            pools.append(builder.pool(live, machine, own))
    others = [node for node in nodes if node.name not in taken and _devices(node, there)]
    if others and not globs:
        pools.append(builder.rest(others))
    waiting = [pod for pod in pods.waiting if not pod.pool or _is_shown(globs, pod.pool)]
    region = region_of(plan.cluster, plan.facts.location if plan.facts else "")
    return Cluster(plan.cluster, region, tuple(pools), tuple(waiting), plan.error, plan.unknown)


def _is_shown(globs: Sequence[str], *names: str) -> bool:
    return not globs or any(fnmatchcase(name, glob) for name in names if name for glob in globs)


def _devices(node: NodeView, there: Mapping[str, Published]) -> bool:
    """Return whether a node shows GPUs."""
    counts = any(is_gpu(name) and value != "0" for name, value in node.capacity.items())
    return counts or (node.name in there and bool(there[node.name].devices))


class _Builder:
    """Builds pools and nodes of one cluster."""

    def __init__(self, plan: ClusterPlan, pods: Pods, there: Mapping[str, Published], now: float) -> None:
        self._provider = plan.cluster.provider
        self._known = plan.seen is not None
        self._desired = {(one.target.owner, one.target.pool): one for one in plan.desired}
        self._there = there
        self._pods = pods
        self._now = now
        self._on: dict[str, list[PodUse]] = {}
        for pod in pods.bound.values():
            if pod.devices:
                use = PodUse(pod.namespace, pod.name, pod.devices, pod.trouble)
                self._on.setdefault(pod.node, []).append(use)

    def pool(self, live: Observed, machine: Machine | None, nodes: Sequence[NodeView]) -> Pool:
        """Return a live pool."""
        expected = len(nodes) if live.nodes is None or not self._known else live.nodes
        desired = self._desired.get((live.owner, live.pool)) if live.owner else None
        return Pool(
            name=live.name,
            pool=live.pool,
            owner=live.owner,
            family=live.family,
            state=live.state,
            instance_type=live.instance_type,
            capacity=str(live.fields.get(CAPACITY_TYPE) or "on-demand"),
            machine=machine,
            node_count=live.nodes,
            nodes=tuple(self._node(node, machine, live, desired) for node in nodes),
            starting=0 if live.state == "deleting" else max(0, expected - len(nodes)),
        )

    def rest(self, nodes: Sequence[NodeView]) -> Pool:
        """Return the nodes of no pool, such as Karpenter's."""
        return Pool(
            name="", pool="", owner="", family="", state="", instance_type="", capacity="", machine=None,
            node_count=None, nodes=tuple(self._node(node, None, None, None) for node in nodes),
        )  # fmt: skip

    def _node(self, node: NodeView, machine: Machine | None, live: Observed | None, desired: Desired | None) -> Node:
        # A pool may have several instance types; the node knows its own.
        own = find_machine(self._provider, node.labels.get(_TYPE, "")) or machine
        pieces = self._published(node)
        state, reason = self._state(node, live, shows=_devices(node, self._there))
        hints = Hints(own, node.labels, live.fields if live else {}, desired.target.sharing if desired else None)
        usable = state == "ready"
        uses = [*self._on.get(node.name, ()), *self._by_claims(pieces)]
        merged = _merged(uses)
        requested = add_counts(*(use.devices for use in self._on.get(node.name, ())))
        promised = desired.promise.per_node if desired else {}
        if not promised and not pieces and own:
            promised = {GPU_RESOURCE: own.devices}
        stocks = [
            *_counted(node, requested, hints, promised, usable=usable),
            *_claimable(pieces, hints, promised, usable=usable),
        ]
        return Node(
            name=node.name,
            state=state,
            reason=reason,
            zone=node.labels.get(_ZONE, ""),
            machine=own,
            stocks=tuple(stocks),
            devices=tuple(piece if usable or piece.state != "free" else _closed(piece) for piece in pieces),
            pods=merged,
        )

    def _state(self, node: NodeView, live: Observed | None, *, shows: bool) -> tuple[NodeState, str]:
        taint = next((taint.key for taint in node.taints if taint.key in _LEAVING), "")
        if taint or (live and live.state == "deleting"):
            return "leaving", taint or "its pool is being deleted"
        created = timestamp(node.created)
        young = created is not None and self._now - created < SLOW_S
        if any(taint.key == UNINITIALIZED for taint in node.taints):
            return "starting", "the cloud has not initialized it"
        if not node.ready:
            why = node.condition_views.get("Ready")
            return ("starting" if young else "notReady"), str(why or "")
        if node.cordoned:
            return "cordoned", ""
        if young and not shows:
            return "starting", "nothing advertises its GPUs yet"
        return "ready", ""

    def _published(self, node: NodeView) -> tuple[Device, ...]:
        """Return the devices that the DRA driver publishes on a node, each with its state."""
        there = self._there.get(node.name)
        if there is None:
            return ()
        real = {id(device) for device in there.devices}
        all_of = [(pool, device) for pool in there.pools for device in pool.devices if device_name(device)]
        # Of a GPU whose instances are made for claims, only those that exist count; then it is no whole GPU any more.
        cut = {
            str(device.attributes.get(PARENT, ""))
            for pool, device in all_of
            if (pool.name, device.name) in self._pods.holders
        }
        found = []
        for pool, device in all_of:
            holders = self._pods.holders.get((pool.name, device.name), ())
            uuid = str(device.attributes.get(UUID, ""))
            if (id(device) not in real and not holders) or (device_name(device) == GPU_CLASS and uuid in cut - {""}):
                continue
            state, reason = _device_state(device, missing=pool.expected - pool.found, held=bool(holders))
            name = device_name(device)
            _, _, profile = name.partition("/")
            gpu = str(device.attributes.get(PARENT, "")) or uuid
            found.append(Device(gpu, device.name, name, profile, state, reason, holders))
        return tuple(sorted(found, key=lambda one: (one.gpu, one.name)))

    def _by_claims(self, devices: Iterable[Device]) -> list[PodUse]:
        found: list[PodUse] = []
        for device in devices:
            for holder in device.holders:
                bound = self._pods.bound.get((holder.namespace, holder.pod))
                name = holder.pod or holder.claim
                trouble = bound.trouble if bound else "" if holder.pod else "no pod uses this claim"
                found.append(PodUse(holder.namespace, name, {device.resource: 1}, trouble, not holder.pod))
        return found


def _device_state(device: DeviceView, *, missing: int, held: bool) -> tuple[DeviceState, str]:
    taint = ", ".join(str(taint) for taint in device.taints if taint.keeps_off)
    if held:
        return "held", taint
    if missing:
        return "notAdvertised", f"{missing} slices of its pool are missing"
    return ("unhealthy", taint) if taint else ("free", "")


def _closed(device: Device) -> Device:
    return Device(device.gpu, device.name, device.resource, device.profile, "unusable", device.reason, device.holders)


def _merged(uses: Iterable[PodUse]) -> tuple[PodUse, ...]:
    """Add up what each pod holds."""
    found: dict[tuple[str, str, bool], PodUse] = {}
    for use in uses:
        key = use.namespace, use.name, use.claim_only
        before = found.get(key)
        devices = add_counts(before.devices if before else {}, use.devices)
        found[key] = PodUse(use.namespace, use.name, devices, use.trouble, use.claim_only)
    return tuple(found[key] for key in sorted(found))


def _counted(
    node: NodeView, requested: Mapping[str, int], hints: Hints, promised: Mapping[str, int], *, usable: bool
) -> list[Stock]:
    """Return the devices that device plugins advertise, and those of the machine that none does."""
    healthy = _numbers(node.allocatable)
    alive = {_kind(name) for name, count in healthy.items() if count}
    # After a change of the sharing the kubelet keeps the former names for a while, with no healthy device: the same
    # GPUs are advertised under other names.
    shown = {
        name: count
        for name, count in _numbers(node.capacity).items()
        if count and (healthy.get(name) or requested.get(name) or not alive - {_kind(name)})
    }
    by_name = {name: count for name, count in promised.items() if not is_claimable(name)}
    names = dict.fromkeys([*shown, *requested])
    if names.keys() <= by_name.keys():  # otherwise the node shows something else than the spec declares
        names |= dict.fromkeys(by_name)
    found = []
    for name in names:
        count, held = shown.get(name, 0), requested.get(name, 0)
        unit = unit_of(name, count or by_name.get(name, 0), hints)
        derived = hints.machine.devices * unit.per_gpu if hints.machine and unit.per_gpu is not None else 0
        expected = derived or by_name.get(name, 0)
        found.append(_stock(name, unit, (held, min(healthy.get(name, 0), count), count, expected), usable=usable))
    return found


def _stock(name: str, unit: Unit, counts: tuple[int, int, int, int], *, usable: bool) -> Stock:
    """Divide the devices of a resource among the states; `counts` are held, allocatable, capacity, expected."""
    held, alive, count, expected = counts
    free = max(0, alive - held)
    return Stock(
        resource=name,
        unit=unit,
        held=held,
        free=free if usable else 0,
        unusable=0 if usable else free,
        unhealthy=max(0, count - max(alive, held)),
        not_advertised=max(0, expected - max(count, held)),
        held_unhealthy=max(0, min(held, count) - alive),
    )


def _claimable(
    devices: Sequence[Device], hints: Hints, promised: Mapping[str, int], *, usable: bool
) -> list[Stock]:  # fmt: skip
    """Return the devices that pods claim, and those of the machine that the driver does not publish."""
    by_class = {name: count for name, count in promised.items() if is_claimable(name)}
    names = dict.fromkeys(device.resource for device in devices)
    if names.keys() <= by_class.keys():
        names |= dict.fromkeys(by_class)
    if devices and by_class.keys() <= {GPU_CLASS}:  # a GPU of which nothing is published is a whole one
        names[GPU_CLASS] = None
    cut = {device.gpu for device in devices if device.resource != GPU_CLASS}
    found = []
    for name in sorted(names):
        own = [device for device in devices if device.resource == name]
        states = [device.state for device in own]
        whole = hints.machine.devices - len(cut) if hints.machine else 0
        expected = whole if name == GPU_CLASS else by_class.get(name, 0)
        missing = max(0, expected - len(own))
        found.append(
            Stock(
                resource=name,
                unit=unit_of(name, len(own), hints),
                held=states.count("held"),
                free=states.count("free") if usable else 0,
                unusable=0 if usable else states.count("free"),
                unhealthy=states.count("unhealthy"),
                not_advertised=states.count("notAdvertised") + missing,
                held_unhealthy=sum(bool(device.reason) for device in own if device.state == "held"),
            )
        )
    return [stock for stock in found if stock.total]


def _kind(resource: str) -> tuple[bool, bool]:
    """Return what tells the names of one way of sharing from those of another: MIG profiles, shares."""
    return resource.startswith(RESOURCE_PREFIX), resource.endswith(SHARED_SUFFIX)


def _numbers(resources: Mapping[str, str]) -> dict[str, int]:
    return {name: int(value) for name, value in resources.items() if is_gpu(name) and value.isdecimal()}
