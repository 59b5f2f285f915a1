"""Finds the single change with which pods that do not fit would fit, by trying changes, the smallest first.

Pure. In scope: possible changes of a workload or a pool, and trying them. Out of scope: placing (`packing`), changing a
spec (`changes`). Each suggested change was tried: with it, all pods of the workload fit, and no other workload loses a
place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gpukube.core.tolerations import as_toleration
from gpukube.workload.fit.changes import (
    lowered,
    with_label,
    with_other_device,
    with_soft_spread,
    with_toleration,
    without_required,
)
from gpukube.workload.fit.demand import read_demand
from gpukube.workload.fit.packing import pack
from gpukube.workload.fit.predicates import obstacles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.core.values import Nodes
    from gpukube.workload.fit.changes import Change
    from gpukube.workload.fit.demand import Demand
    from gpukube.workload.fit.filling import ClusterView
    from gpukube.workload.fit.nodes import Node
    from gpukube.workload.fit.packing import Packing
    from gpukube.workload.fit.predicates import Obstacle
    from gpukube.workload.offers import PoolOffer

_MOST_TRIALS: Final = 40
"""Maximum trials per workload: a change that is not among the first is not a small one."""
_MOST_PLACED: Final = 20_000
"""Pods that all trials of a run may place, a few seconds: if many workloads do not fit, the first show the cause."""
_MOST_NODES: Final = 1000
"""Maximum nodes per pool; no cloud allows more (docs: AKS and GKE 1,000 nodes per pool, EKS 450 per node group)."""
_AFFINITIES: Final = {"affinity": "nodeAffinity", "pod-affinity": "podAffinity", "pod-anti-affinity": "podAntiAffinity"}


@dataclass(frozen=True, slots=True)
class Edit:
    """A change.

    Attributes:
        where: Changed object: "Deployment/web", "train-eks/whole".
        text: What to write.
    """

    where: str
    text: str


@dataclass(frozen=True, slots=True)
class _Trial:
    """A change to try; `size` orders them, the smallest first."""

    edit: Edit
    size: int
    views: Sequence[ClusterView]
    demands: Sequence[Demand]


def find_edits(views: Sequence[ClusterView], demands: Sequence[Demand], packing: Packing) -> dict[Demand, Edit]:
    """Find one change for each demand with pods that do not fit; omit demands for which there is none."""
    search = _Search(views, demands, packing)
    lacking = [demand for demand, placed in packing.placed.items() if placed.never]
    found = {demand: search.find(demand) for demand in lacking}
    return {demand: trial.edit for demand, trial in found.items() if trial is not None}


class _Search:
    """Searches for changes, for one demand after another."""

    def __init__(self, views: Sequence[ClusterView], demands: Sequence[Demand], packing: Packing) -> None:
        self._views = views
        self._demands = demands
        self._before = packing.placed
        self._left = _MOST_PLACED // (
            len(demands) + sum(placed.nodes.total() for placed in packing.placed.values()) + 1
        )

    def find(self, demand: Demand) -> _Trial | None:
        """Return the smallest change for a demand; None if there is none, or no time left to search."""
        if self._left <= 0:
            return None
        self._demand = demand
        self._placed = self._before[demand]
        self._cluster = self._placed.cluster
        each = {trial.edit: trial for trial in self.small()}
        small = sorted(each.values(), key=lambda trial: trial.size)[:_MOST_TRIALS]
        found = next((trial for trial in small if self.works(trial)), None)
        return found or self.bigger_pool() or self.fewer_pods()

    def works(self, trial: _Trial) -> bool:
        """Place everything with a change; return whether the whole demand fits, and no other loses a place."""
        self._left -= 1
        if self._left < 0:
            return False
        found = pack(trial.views, trial.demands, roll_outs=False).placed
        after = {id(demand.template): placed for demand, placed in found.items()}
        mine = after[id(self._demand.template)]
        return not (mine.never or mine.elsewhere or mine.unknown) and all(
            after[id(demand.template)].unfit <= placed.unfit for demand, placed in self._before.items()
        )

    def small(self) -> Iterator[_Trial]:
        """Yield changes that cost nothing or little, whether or not they work."""
        pod = self._demand.pod
        fresh_nodes = [(offer, self._cluster.fresh(offer)) for offer in self._cluster.view.offers]
        suited = any(not any(obstacles(pod, fresh)) for _, fresh in fresh_nodes)
        for offer, fresh in fresh_nodes:
            lasting = list(obstacles(pod, fresh))
            for obstacle in lasting:
                # If a pool matches the pods and is full, requesting fewer devices does not help.
                if not (suited and obstacle.kind in {"resource", "share"}):
                    yield from self._around(obstacle, fresh, offer)
            if lasting:
                continue
            if not self._cluster.is_expected(pod, offer):
                nodes = replace(offer.desired.target.nodes, minimum=1)
                yield self._of_pool(offer, "nodes.autoscaling.min: 1", 5, nodes)
            for obstacle in self._cluster.rules_broken(pod, offer):
                yield from self._around(obstacle, fresh, offer)
            for node in self._cluster.more(offer):
                for obstacle in self._cluster.refusals(pod, node):
                    yield from self._around(obstacle, node, offer)
            yield from self._denser(fresh)
        own = [demand for demand in self._demands if demand.workload is self._demand.workload]
        rest = [demand for demand in self._demands if demand.workload is not self._demand.workload]
        if rest and self._demands[0] is not own[0]:
            yield _Trial(Edit(str(self._demand.workload), "apply it before the others"), 9, self._views, [*own, *rest])

    def _around(self, obstacle: Obstacle, node: Node, offer: PoolOffer) -> Iterator[_Trial]:
        subject = obstacle.subject
        match obstacle.kind:
            case "taint":
                taint = next(taint for taint in node.shape.taints if str(taint) == subject)
                added = as_toleration(taint)
                value = f", value: {added.value}" if added.value else ""
                written = f"{{key: {added.key}, operator: {added.operator}{value}, effect: {added.effect}}}"
                yield self._of_pod(f"add the toleration {written}", 1, with_toleration(added))
            case "selector":
                value = offer.selector.get(subject, node.labels.get(subject, ""))
                if value:
                    yield self._of_pod(f"write {subject}: {value} in its nodeSelector", 2, with_label(subject, value))
                yield self._of_pod(f"remove {subject} from its nodeSelector", 3, with_label(subject, None))
            case "resource":
                for name in node.shape.devices if subject in self._demand.pod.request.devices else ():
                    # A device of another vendor is no substitute.
                    if name not in self._demand.pod.names and name.partition("/")[0] == subject.partition("/")[0]:
                        change = with_other_device(subject, name)
                        yield self._of_pod(f"request {name} instead of {subject}", 4, change)
                yield from self._lower(subject, _has(node, subject))
            case "share":
                for name in self._demand.pod.request.devices:
                    yield from self._lower(name, 1)
            case "spread":
                text = f"write whenUnsatisfiable: ScheduleAnyway for the topology key {subject}"
                yield self._of_pod(text, 8, with_soft_spread(subject))
            case "affinity" | "pod-affinity" | "pod-anti-affinity":
                kind = _AFFINITIES[obstacle.kind]
                yield self._of_pod(f"remove what its {kind} requires", 7, without_required(kind))

    def _lower(self, name: str, most: int | None, size: int = 6) -> Iterator[_Trial]:
        found = lowered(self._demand.template.spec, name, most) if most else None
        if found:
            container, amount, change = found
            yield self._of_pod(f'request {name}: {amount} in container "{container}"', size, change)

    def _denser(self, node: Node) -> Iterator[_Trial]:
        """Lower the request that prevents one more pod on each node, if it is CPU or memory."""
        request, fitting = self._demand.pod.request, _capacity(self._demand, node)
        for name, free, wanted in (
            ("cpu", node.free_cpu(), request.cpu),
            ("memory", node.free_memory(), request.memory),
        ):
            if free and wanted and free // wanted == fitting:
                yield from self._lower(name, free // (fitting + 1), 8)

    def bigger_pool(self) -> _Trial | None:
        """Find the smallest number of additional nodes in one pool with which it works."""
        for offer in self._cluster.view.offers:
            fresh = self._cluster.fresh(offer)
            if any(obstacles(self._demand.pod, fresh)):
                continue
            target = offer.desired.target
            step = len(target.zones) if target.nodes.scope == "zone" and target.zones else 1
            for per_node in {_capacity(self._demand, fresh), 1}:  # 1: rules about other pods may allow only one
                low, high = 0, -(-self._placed.never // (per_node * step))
                if target.nodes.maximum + high * step > _MOST_NODES or not self.works(self._raised(offer, high * step)):
                    continue
                while high - low > 1:
                    middle = (low + high) // 2
                    low, high = (low, middle) if self.works(self._raised(offer, middle * step)) else (middle, high)
                return self._raised(offer, high * step)
        return None

    def fewer_pods(self) -> _Trial | None:
        """Check whether it works with only the pods that fit."""
        demand, count = self._demand, self._placed.nodes.total()
        hosts = demand.hosts
        count -= count % hosts
        if not count or demand.daemon:
            return None
        least = min(demand.least, count)
        most = None if demand.most is None else count
        trial = self._with(replace(demand, least=least, most=most), _replicas_text(demand, count // hosts), 11)
        return trial if self.works(trial) else None

    def _raised(self, offer: PoolOffer, more: int) -> _Trial:
        nodes = offer.desired.target.nodes
        count = max(nodes.maximum, self._cluster.size(offer)) + more
        if nodes.autoscaled:
            return self._of_pool(offer, f"nodes.autoscaling.max: {count}", 10, replace(nodes, maximum=count))
        fixed = replace(nodes, count=count, minimum=count, maximum=count)
        return self._of_pool(offer, f"nodes.count: {count}", 10, fixed)

    def _of_pool(self, offer: PoolOffer, text: str, size: int, nodes: Nodes) -> _Trial:
        desired = offer.desired
        target = replace(desired.target, nodes=nodes)
        changed = replace(offer, desired=replace(desired, target=target))
        views = [
            replace(view, offers=tuple(changed if one is offer else one for one in view.offers)) for view in self._views
        ]
        return _Trial(Edit(offer.name, f"write {text}"), size, views, self._demands)

    def _of_pod(self, text: str, size: int, change: Change) -> _Trial:
        template = self._demand.template
        return self._with(read_demand(template, change(template.spec), claims=self._demand.pod.claims), text, size)

    def _with(self, changed: Demand, text: str, size: int) -> _Trial:
        demands = [changed if demand is self._demand else demand for demand in self._demands]
        return _Trial(Edit(str(self._demand.template), text), size, self._views, demands)


def _capacity(demand: Demand, node: Node) -> int:
    """Return how many of the equal pods fit an empty node."""
    request = demand.pod.request
    pairs = [(node.free_cpu(), request.cpu), (node.free_memory(), request.memory), (node.free_pods(), 1)]
    pairs += [(free, request.devices[name]) for name, free in node.free_devices().items() if name in request.devices]
    claimed = sum(choice.count or 1 for claim in demand.pod.claims if claim.spec for choice in claim.spec.firsts)
    pairs.append((len(node.shape.published.devices) - len(node.in_use), claimed))
    return max(1, min((free // wanted for free, wanted in pairs if free is not None and wanted), default=1))


def _has(node: Node, name: str) -> int | None:
    if name == "cpu":
        return node.free_cpu()
    return node.free_memory() if name == "memory" else node.free_devices().get(name, 0)


def _replicas_text(demand: Demand, count: int) -> str:
    match demand.template.role:
        case "ray-worker" if demand.least != demand.most:
            return (
                f"write maxReplicas: {count}"
                if demand.least <= count
                else f"write minReplicas and maxReplicas: {count}"
            )
        case "job":
            return f"write parallelism: {count}"
    return f"write replicas: {count}"
