"""The autoscaler of one cluster: adds machines for pending pods, and removes idle nodes.

In scope: when to scale which group, events. Out of scope: packing (`estimating`), choosing (`expanding`), clouds.

Source: kubernetes-sigs/cluster-autoscaler pkg/core (static_autoscaler, scaleup, scaledown), pkg/clusterstate (failed
and late nodes), pkg/processors/status/eventing_scale_up_processor.go; kubernetes/autoscaler cluster-autoscaler/FAQ.md.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.autoscaler import expanding
from gpukube_sandbox.kube.autoscaler.backoff import BackOff
from gpukube_sandbox.kube.autoscaler.classes import class_of, ranked
from gpukube_sandbox.kube.autoscaler.estimating import GPU, Estimator, Option, Template, cleaned, fresh_node
from gpukube_sandbox.kube.autoscaler.groups import MINUTE_S, Failure
from gpukube_sandbox.kube.autoscaler.priorities import CONFIG_MAP, prefer
from gpukube_sandbox.kube.controllers.deviceclaims import read_devices
from gpukube_sandbox.kube.events import Recorder
from gpukube_sandbox.kube.matching import allocatable_of, is_ready, pod_requests
from gpukube_sandbox.kube.scheduler.allocation import AllocationError
from gpukube_sandbox.kube.scheduler.filters import NodeFilters
from gpukube_sandbox.kube.scheduler.snapshot import Snapshot, take_snapshot
from gpukube_sandbox.kube.scheduler.verdicts import place
from gpukube_sandbox.kube.store.eviction import covers
from gpukube_sandbox.kube.store.objects import annotations_of, labels, meta, name_of, namespace_of, spec, status

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator

    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.autoscaler.groups import Group, Groups, Profile
    from gpukube_sandbox.kube.scheduler.devices import DeviceState
    from gpukube_sandbox.kube.scheduler.snapshot import NodeView
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject

SCAN_S = 10.0
FASTEST = 600.0
"""Speed (sandbox seconds per wall second) above which idle nodes stay: ten idle minutes would pass unnoticed."""
_IDLE_BELOW = 0.5
_MAX_UNREADY, _MAX_UNREADY_SHARE = 3, 0.45
_DELETED = "ToBeDeletedByClusterAutoscaler"
_STAYS = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
_SAFE = "cluster-autoscaler.kubernetes.io/safe-to-evict"
_AT_MAXIMUM, _BACKS_OFF = "max node group size reached", "in backoff after failed scale-up"
_OF_NO_RANK = "not in the pod's ComputeClass"


class Autoscaler:
    """Scales the groups of a cluster to its pods.

    Args:
        api: The cluster's API.
        clock: The sandbox's time.
        groups: The cloud's node groups.
        version: Minor version of Kubernetes.
        begin: Starts a background task, such as the growth of a group.

    Attributes:
        version: As given; an upgrade changes it.
    """

    watches = ("pods", "nodes")

    def __init__(
        self,
        api: ObjectApi,
        clock: Clock,
        groups: Groups,
        version: tuple[int, int],
        begin: Callable[[str, Coroutine[None, None, None]], None],
    ) -> None:
        self._api = api
        self._clock = clock
        self._groups = groups
        self.version = version
        self._begin = begin
        self._events = Recorder(api, clock, "cluster-autoscaler")
        self._scanned = self._added = -1e9
        self._growths = itertools.count(1)
        self._growing: Counter[str] = Counter()
        self._seen: dict[str, Template] = {}
        self._back_off = BackOff()
        self._chance = random.Random(1)  # noqa: S311 -- no secret, and every sandbox makes the same choices
        self._idle: dict[str, float] = {}
        self._explained: dict[str, str] = {}

    async def reconcile(self) -> float | None:
        """Scan every ten seconds while there are groups; return the time of the next scan."""
        groups = {group.name: group for group in self._groups.listed()}
        profile = await self._groups.profile() if groups else None
        if profile is None:
            return None
        now = self._clock.now()
        if now < self._scanned + SCAN_S:
            return self._scanned + SCAN_S
        self._scanned = now
        await self._release_failed(groups.values(), profile)
        groups = {group.name: group for group in self._groups.listed()}
        nodes = {name_of(node): node for node in await self._api.list("nodes")}
        pods = await self._api.list("pods")
        devices = await read_devices(self._api)
        ready = {name: node for name, node in nodes.items() if _counts_as_ready(node, profile, devices)}
        for group in groups.values():
            seen = next((ready[name] for name in group.nodes if name in ready), None)
            if seen:
                self._seen[group.name] = Template(cleaned(seen), devices.slices_on(name_of(seen)))
        since = now - profile.provision_s
        unready = {name for name, node in nodes.items() if name not in ready and _created(node) < since}
        due = [now + SCAN_S] if self._growing.total() else []
        if len(unready) <= max(_MAX_UNREADY, len(nodes) * _MAX_UNREADY_SHARE):
            due += await self._scale_up(groups, ready, unready, pods, devices, profile)
        due += await self._scale_down(groups, nodes, pods, profile, devices)
        return min(due, default=None)

    async def _release_failed(self, groups: Iterable[Group], profile: Profile) -> None:
        """Give up machines that the cloud cannot create, whoever requested them, down to a group's minimum."""
        for group in groups:
            missing = group.target - max(len(group.nodes), group.low)
            if group.error and missing > 0 and not self._growing[group.name]:
                self._groups.release(group.name)
                self._back_off.begin(group.name, self._clock.now())
                await self._record_failure(group, Failure(group.error, missing, "machines"), [], profile)

    # up

    async def _scale_up(  # noqa: PLR0913, PLR0917 -- the whole state of the cluster
        self,
        groups: dict[str, Group],
        ready: dict[str, JsonObject],
        unready: set[str],
        pods: list[JsonObject],
        devices: DeviceState,
        profile: Profile,
    ) -> list[float]:
        waiting = [pod for pod in pods if _is_unschedulable(pod)]
        uids = {meta(pod)["uid"] for pod in waiting}
        self._explained = {uid: text for uid, text in self._explained.items() if uid in uids}
        if not waiting:
            return []
        daemonsets = await self._api.list("daemonsets")
        snapshot = take_snapshot(ready.values(), pods, await self._api.list("namespaces"), devices)
        for view, slices in self._upcoming_nodes(groups.values(), {*ready, *unready}, daemonsets):
            snapshot = snapshot.added(view, slices)
        left = [pod for pod in waiting if not self._fits(pod, snapshot)]
        if not left:
            return []
        estimator = Estimator(snapshot, self.version, daemonsets)
        taken = False
        for wanted in sorted({class_of(pod) for pod in left}):
            own = [pod for pod in left if class_of(pod) == wanted]
            ranks = await self._ranks(wanted, groups)
            useful = self._options(estimator, ranks, own, groups)
            taken = taken or bool(useful)
            if useful and (best := await self._choose(useful, profile)):
                await self._take(best, groups)
            allowed = {group.name for rank in ranks for group in rank}
            for pod in own:
                if not any(pod is other for offer in useful for other in offer.pods):
                    await self._explain(pod, groups, estimator, allowed)
        return [self._clock.now() + SCAN_S] if taken else self._back_off.ends_after(self._clock.now())

    async def _ranks(self, wanted: str, groups: dict[str, Group]) -> list[list[Group]]:
        """Return the groups that may grow for pods of a ComputeClass, in its order; without a class, all at once."""
        if not wanted:
            return [list(groups.values())]
        known = {name: (group, self._template(group).node) for name, group in groups.items()}
        return ranked(wanted, await self._api.get("computeclasses", wanted), known, self.version)

    def _options(
        self, estimator: Estimator, ranks: list[list[Group]], pods: list[JsonObject], groups: dict[str, Group]
    ) -> list[Option]:
        """Return the scale-ups of the first rank that would help any of the pods."""
        for rank in ranks:
            offers = [estimator.offer(group, self._template(group), pods, self._room(group, groups)) for group in rank]
            if useful := [offer for offer in offers if offer.pods]:
                return useful
        return []

    def _upcoming_nodes(
        self, groups: Iterable[Group], registered: set[str], daemonsets: list[JsonObject]
    ) -> Iterator[tuple[NodeView, list[JsonObject]]]:
        for group in groups:
            coming = [name for name in group.nodes if name not in registered]
            for number in range(len(coming) + max(0, group.target - len(group.nodes))):
                name, template = f"{group.name}-upcoming-{number}", self._template(group)
                yield fresh_node(template.node, name, daemonsets), template.slices_of(name)

    def _fits(self, pod: JsonObject, snapshot: Snapshot) -> bool:
        """Place the pod on an existing or upcoming node if it fits one, as the scheduler will."""
        found = place(pod, snapshot, self.version)
        if not found.nodes:
            return False
        chosen = found.nodes[0]
        snapshot.nodes[chosen].take(pod)
        if chosen in found.grants:
            snapshot.devices.take(found.grants[chosen].allocations)
        return True

    def _template(self, group: Group) -> Template:
        """Return a template from a node of the group or, before the first one, from the cloud's description."""
        if seen := self._seen.get(group.name):
            return seen
        return Template(self._groups.template_node(group.name), tuple(self._groups.template_slices(group.name)))

    def _room(self, group: Group, groups: dict[str, Group]) -> int:
        """Return how many nodes the group can still get; balanced groups of a pool are filled together."""
        if self._is_blocked(group):
            return 0
        alike = [other for other in groups.values() if other.pool == group.pool] if group.balanced else [group]
        return sum(max(0, other.high - other.size) for other in alike if not self._is_blocked(other))

    def _is_blocked(self, group: Group) -> bool:
        return self._back_off.holds(group.name, self._clock.now())

    async def _choose(self, options: list[Option], profile: Profile) -> Option | None:
        """Return what the chain of expanders leaves; of several options, any."""
        for name in profile.expanders:
            if name == expanding.PRIORITY:
                options = await self._preferred(options, profile)
            elif name in expanding.FILTERS:
                options = expanding.FILTERS[name](options)
            if len(options) <= 1:
                break
        return expanding.pick(options, self._chance) if options else None

    async def _preferred(self, options: list[Option], profile: Profile) -> list[Option]:
        config = await self._api.get("configmaps", CONFIG_MAP, profile.namespace)
        found = prefer(config, [option.group.name for option in options])
        for reason, message in found.warnings:
            await self._events.record("configmaps", config or {}, reason, message, warning=True)
        if found.is_unusable and profile.needs_priorities:
            return []
        return [option for option in options if found.chosen is None or option.group.name in found.chosen]

    async def _take(self, offer: Option, groups: dict[str, Group]) -> None:
        shares: Counter[str] = Counter()
        alike = [offer.group]
        if offer.group.balanced:
            alike = [other for other in groups.values() if other.pool == offer.group.pool]
        for _ in range(offer.count):
            free = [one for one in alike if one.size + shares[one.name] < one.high and not self._is_blocked(one)]
            if free:
                shares[min(free, key=lambda one: (one.size + shares[one.name], one.name)).name] += 1
        text = " ".join(
            f"{{{name} {groups[name].size}->{groups[name].size + count} (max: {groups[name].high})}}"
            for name, count in sorted(shares.items())
        )
        for pod in offer.pods:
            await self._events.record("pods", pod, "TriggeredScaleUp", f"pod triggered scale-up: [{text}]")
        self._added = self._clock.now()
        for name, count in shares.items():
            self._begin(f"boot/{name} {next(self._growths)}", self._grow(groups[name], count, offer.pods))

    async def _grow(self, group: Group, count: int, pods: list[JsonObject]) -> None:
        self._growing[group.name] += 1
        try:
            failure = await self._groups.grow(group.name, count)
        finally:
            self._growing[group.name] -= 1
        if not failure:
            self._back_off.end(group.name)
            return
        self._back_off.begin(group.name, self._clock.now())
        if profile := await self._groups.profile():
            await self._record_failure(group, failure, pods, profile)

    async def _record_failure(self, group: Group, failure: Failure, pods: list[JsonObject], profile: Profile) -> None:
        if profile.notifies_pods:
            message = (
                f"Node scale up in zones {group.zone} associated with this pod failed: {failure.message}. "
                "Pod is at risk of not being scheduled."
            )
            for pod in pods:
                await self._events.record("pods", pod, "FailedScaleUp", message, warning=True)
            return
        about = {"metadata": {"name": "cluster-autoscaler-status", "namespace": profile.namespace}}
        reason, message = _failure_event(group.name, failure, profile)
        await self._events.record("configmaps", about, reason, message, warning=True)

    async def _explain(
        self, pod: JsonObject, groups: dict[str, Group], estimator: Estimator, allowed: Collection[str]
    ) -> None:
        counted: Counter[str] = Counter()
        for group in groups.values():
            reasons = estimator.reasons(pod, self._template(group))
            if not reasons and group.name not in allowed:
                reasons = (_OF_NO_RANK,)
            elif not reasons:
                reasons = (_BACKS_OFF,) if self._is_blocked(group) else (_AT_MAXIMUM,)
            counted.update(reasons)
        text = ", ".join(f"{count} {reason}" for reason, count in sorted(counted.items()))
        message = f"pod didn't trigger scale-up: {text}"
        if self._explained.get(meta(pod)["uid"]) != message:
            self._explained[meta(pod)["uid"]] = message
            await self._events.record("pods", pod, "NotTriggerScaleUp", message)

    # down

    async def _scale_down(
        self,
        groups: dict[str, Group],
        nodes: dict[str, JsonObject],
        pods: list[JsonObject],
        profile: Profile,
        devices: DeviceState,
    ) -> list[float]:
        if self._clock.speed > FASTEST:
            return []
        now = self._clock.now()
        candidates = [
            (group, name) for group in groups.values() for name in group.nodes if len(group.nodes) > group.low
        ]
        if not candidates:
            self._idle.clear()
            return []
        snapshot = take_snapshot(nodes.values(), pods, await self._api.list("namespaces"), devices)
        budgets = await self._api.list("poddisruptionbudgets")
        due: list[float] = []
        over: list[tuple[Group, NodeView]] = []
        idle: dict[str, float] = {}
        for group, name in candidates:
            view = snapshot.nodes.get(name)
            if view is None or group.target > len(group.nodes) or not self._is_unneeded(view, snapshot, budgets):
                continue
            since = idle[name] = self._idle.get(name, now)
            patience = profile.unneeded_s if _counts_as_ready(view.node, profile, devices) else profile.unready_s
            moment = max(since + patience, self._added + profile.after_add_s)
            if now < moment:
                due.append(moment)
            else:
                over.append((group, view))
        self._idle = idle
        if over:  # one node at a time: the rest is re-evaluated
            await self._remove(*over[0])
            due.append(now + SCAN_S)
        return due

    def _is_unneeded(self, view: NodeView, snapshot: Snapshot, budgets: list[JsonObject]) -> bool:
        if annotations_of(view.node).get(_STAYS) == "true" or not is_ready(view.node):
            return False
        own = [pod for pod in view.pods if not _is_daemon(pod)]
        used = snapshot.devices.utilization(view.name)
        if used is None:
            used = _utilization(view, own)
        if used >= _IDLE_BELOW or any(not _is_movable(pod, budgets) for pod in own):
            return False
        rest = {name: other for name, other in snapshot.nodes.items() if name != view.name}
        elsewhere = Snapshot(rest, snapshot.namespaces, snapshot.devices)
        return all(self._has_room(pod, elsewhere) for pod in own)

    def _has_room(self, pod: JsonObject, snapshot: Snapshot) -> bool:
        filters = NodeFilters(pod, snapshot, self.version)
        try:
            return any(filters.check(view) is None for view in snapshot.nodes.values())
        except AllocationError:
            return False

    async def _remove(self, group: Group, view: NodeView) -> None:
        node = view.node
        taint = {"key": _DELETED, "value": str(int(self._clock.now())), "effect": "NoSchedule"}
        await self._api.patch("nodes", node, {"spec": {"taints": [*(spec(node).get("taints") or ()), taint]}})
        await self._events.record("nodes", node, "ScaleDown", "marked the node as toBeDeleted/unschedulable")
        for pod in view.pods:
            if not _is_daemon(pod):
                await self._events.record("pods", pod, "ScaleDown", "deleting pod for node scale down")
                await self._api.delete("pods", pod)
        await self._events.record("nodes", node, "ScaleDown", "node removed by cluster autoscaler")
        await self._groups.shrink(group.name, name_of(node))


def _counts_as_ready(node: JsonObject, profile: Profile, devices: DeviceState) -> bool:
    """Return whether a node counts as ready; a GPU node only once it has allocatable `nvidia.com/gpu` or slices.

    So nodes with other resource names only (MIG mixed, renamed shares) never count (kubernetes/autoscaler#8095).
    """
    if not is_ready(node):
        return False
    has_gpus = allocatable_of(node)[GPU] > 0 or bool(devices.slices_on(name_of(node)))
    return profile.gpu_label not in labels(node) or has_gpus


def _failure_event(group: str, failure: Failure, profile: Profile) -> tuple[str, str]:
    """Return reason and message of the event about a failed scale-up."""
    if failure.seen == "refused":
        return "FailedToScaleUpGroup", f"Scale-up failed for group {group}: {failure.message}"
    if failure.seen == "time":
        waited = f"{profile.provision_s / MINUTE_S:g}m0s"
        return "ScaleUpTimedOut", f"Nodes added to group {group} failed to register within {waited}"
    why = f"OutOfResource.placeholder-cannot-be-fulfilled; source errors: {failure.message}"
    return "ScaleUpFailed", f"Failed adding {failure.missing} nodes to group {group} due to {why}"


def _created(node: JsonObject) -> float:
    return datetime.fromisoformat(meta(node)["creationTimestamp"]).timestamp()


def _is_unschedulable(pod: JsonObject) -> bool:
    conditions: Iterable[JsonObject] = status(pod).get("conditions") or ()
    scheduled = next((item for item in conditions if item["type"] == "PodScheduled"), {})
    is_new = not spec(pod).get("nodeName") and not meta(pod).get("deletionTimestamp")
    return is_new and scheduled.get("reason") == "Unschedulable" and not status(pod).get("nominatedNodeName")


def _is_daemon(pod: JsonObject) -> bool:
    owners = meta(pod).get("ownerReferences") or ()
    return any(owner["kind"] in {"DaemonSet", "Node"} for owner in owners)


def _is_movable(pod: JsonObject, budgets: list[JsonObject]) -> bool:
    """Return whether a pod may be evicted to remove a node (FAQ: what types of pods can prevent ...)."""
    safe = annotations_of(pod).get(_SAFE)
    if safe == "false":
        return False
    covering = [budget for budget in budgets if covers(budget, pod)]
    if any(status(budget).get("disruptionsAllowed", 0) < 1 for budget in covering):
        return False
    if safe == "true":
        return True
    return bool(meta(pod).get("ownerReferences")) and (namespace_of(pod) != "kube-system" or bool(covering))


def _utilization(view: NodeView, own: list[JsonObject]) -> float:
    """Return the requested share of a node: of its GPUs if it has any, else of CPU or memory."""
    used: Counter[str] = Counter()
    for pod in own:
        used.update(pod_requests(pod))
    names = [GPU] if view.room[GPU] else ["cpu", "memory"]
    return max(used[name] / view.room[name] if view.room[name] else 0.0 for name in names)
