"""Estimates what a scale-up of a group would achieve, and why it would not help.

In scope: template nodes, packing pending pods on them, reasons; pure. Out of scope: time, back-off, the API
(`scaler`).

Source: kubernetes-sigs/cluster-autoscaler pkg/core/scaleup/orchestrator, pkg/estimator/binpacking_estimator.go.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.controllers.daemonsets import should_run
from gpukube_sandbox.kube.matching import allocatable_of
from gpukube_sandbox.kube.scheduler.allocation import AllocationError
from gpukube_sandbox.kube.scheduler.filters import NodeFilters
from gpukube_sandbox.kube.scheduler.snapshot import NodeView, Snapshot
from gpukube_sandbox.kube.store.objects import name_of, spec, status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube_sandbox.kube.autoscaler.groups import Group
    from gpukube_sandbox.kube.store.objects import JsonObject

GPU = "nvidia.com/gpu"
_ITS_TAINTS = frozenset({"ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler"})
_TEMPORARY = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", *_ITS_TAINTS})


@dataclass(frozen=True, slots=True)
class Template:
    """What a new node of a group will be like.

    Attributes:
        node: The node.
        slices: ResourceSlices of the node: of a live one, or those that the cloud's autoscaler expects.
    """

    node: JsonObject
    slices: tuple[JsonObject, ...] = ()

    def slices_of(self, name: str) -> list[JsonObject]:
        """Return the slices of a new node of this name."""
        return [
            {
                "metadata": {"name": f"{name}-{number}"},
                "spec": {**spec(item), "nodeName": name, "pool": {**spec(item)["pool"], "name": name}},
            }
            for number, item in enumerate(self.slices)
        ]


@dataclass(frozen=True, slots=True)
class Option:
    """A possible scale-up of one group.

    Attributes:
        template: One of its nodes.
        count: Nodes to add.
        pods: Pods that would fit on them.
        gpus: GPUs per node.
    """

    group: Group
    template: Template
    count: int
    pods: list[JsonObject] = field(default_factory=list)
    gpus: int = 0

    @property
    def rank(self) -> tuple[int, int, int, str]:
        """Sort key: most pods, then fewest GPUs, then fewest nodes."""
        return -len(self.pods), self.gpus * self.count, self.count, self.group.name


def cleaned(node: JsonObject) -> JsonObject:
    """Return a template from a live node, without properties of that node alone."""
    taints = [taint for taint in spec(node).get("taints") or () if taint["key"] not in _TEMPORARY]
    return {**node, "spec": {"taints": taints}}


def fresh_node(template: JsonObject, name: str, daemonsets: Iterable[JsonObject]) -> NodeView:
    """Return a new node from a template, including its DaemonSet pods."""
    node = copy.copy(template)
    marks = {**template["metadata"]["labels"], "kubernetes.io/hostname": name}
    node["metadata"] = {"name": name, "labels": marks}
    view = NodeView(node, room=allocatable_of(node))
    for daemonset in daemonsets:
        body = spec(daemonset)["template"]
        if should_run(body["spec"], node)[0]:
            namespace = daemonset["metadata"]["namespace"]
            view.take({"metadata": {**(body.get("metadata") or {}), "namespace": namespace}, "spec": body["spec"]})
    return view


@dataclass(slots=True)
class Estimator:
    """Packs pending pods on new nodes.

    Attributes:
        snapshot: The cluster, including upcoming nodes.
        version: Minor version of Kubernetes, which determines the wording of reasons.
        daemonsets: DaemonSets that place a pod on every matching new node.
    """

    snapshot: Snapshot
    version: tuple[int, int]
    daemonsets: list[JsonObject]

    def reasons(self, pod: JsonObject, template: Template) -> tuple[str, ...]:
        """Return why a pod would not fit on an empty node of a group."""
        name = f"template-{name_of(template.node)}"
        view = fresh_node(template.node, name, self.daemonsets)
        return self._try(pod, view, self.snapshot.added(view, template.slices_of(name)))

    def _try(self, pod: JsonObject, view: NodeView, snapshot: Snapshot) -> tuple[str, ...]:
        """Return why a pod does not fit on a node; if it does, give it its devices there."""
        filters = NodeFilters(pod, snapshot, self.version)
        try:
            verdict = filters.check(view)
        except AllocationError as problem:
            return (str(problem),)
        if verdict is None and view.name in filters.claims.grants:
            snapshot.devices.take(filters.claims.grants[view.name].allocations)
        return verdict.reasons if verdict else ()

    def offer(self, group: Group, template: Template, pods: list[JsonObject], room: int) -> Option:
        """Return how many new nodes, at most `room`, would fit which of the pods."""
        packed: list[JsonObject] = []
        left, count = list(pods), 0
        before = self.snapshot
        while left and count < room:
            name = f"{group.name}-new-{count}"
            view = fresh_node(template.node, name, self.daemonsets)
            snapshot = self.snapshot.added(view, template.slices_of(name))
            taken = []
            for pod in left:
                if not self._try(pod, view, snapshot):
                    view.take(pod)
                    taken.append(pod)
            if not taken:
                break
            self.snapshot = snapshot
            packed += taken
            left = [pod for pod in left if not any(pod is other for other in taken)]
            count += 1
        self.snapshot = before
        gpus = int((status(template.node).get("allocatable") or {}).get(GPU, 0))
        gpus += sum(len(spec(item).get("devices") or ()) for item in template.slices)
        return Option(group, template, count, packed, gpus)
