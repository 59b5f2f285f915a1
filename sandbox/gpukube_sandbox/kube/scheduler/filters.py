"""The default scheduler's filters, in its order and with its messages.

In scope: every filter that depends on a single node, and the order of all filters. Out of scope: filters that depend on
pods of other nodes (`topology`), combined messages (`verdicts`).

Source: kubernetes pkg/scheduler/framework/plugins (1.36), pkg/scheduler/apis/config/v1/default_plugins.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpukube_sandbox.kube.matching import matches_node, pod_requests, tolerates, untolerated
from gpukube_sandbox.kube.scheduler.claims import PodClaims
from gpukube_sandbox.kube.scheduler.topology import Affinity, Spread
from gpukube_sandbox.kube.store.objects import spec

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from gpukube_sandbox.kube.scheduler.snapshot import NodeView, Snapshot
    from gpukube_sandbox.kube.store.objects import JsonObject

UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
_UNNAMED_TAINTS = (1, 35)
"""First version whose message no longer names the taint (observed in 1.36; 1.34 names it)."""


class Verdict(NamedTuple):
    """Why a pod does not fit a node.

    Attributes:
        reasons: Reasons as the scheduler words them.
        for_good: Removing pods from the node would not help.
    """

    reasons: tuple[str, ...]
    is_final: bool = True


class NodeFilters:
    """The filters for one pod.

    Args:
        pod: An unbound pod.
        snapshot: The cluster.
        version: Minor version of Kubernetes, (1, 34).

    Attributes:
        claims: The pod's claims, and what it gets on the nodes that were checked.
    """

    def __init__(self, pod: JsonObject, snapshot: Snapshot, version: tuple[int, int]) -> None:
        self._pod = pod
        self._names_taints = version < _UNNAMED_TAINTS
        self._requested: Counter[str] = pod_requests(pod)
        self._ports = set(_host_ports(pod))
        self._spread = Spread(pod, snapshot)
        self._affinity = Affinity(pod, snapshot)
        self.claims = PodClaims(pod, self._requested, snapshot.devices, version)

    def check(self, view: NodeView) -> Verdict | None:
        """Return why the pod does not fit a node, by the first filter that rejects it; None if it fits.

        Raises:
            AllocationError: The pod's claims allow no decision on any node.
        """
        found = self._check_node(view) or self._check_resources(view) or self._check_topology(view)
        if found:
            return found
        reason = self.claims.refuses(view)
        return Verdict((reason,)) if reason else None

    def _check_node(self, view: NodeView) -> Verdict | None:
        desired = spec(self._pod)
        if spec(view.node).get("unschedulable") and not tolerates(desired, UNSCHEDULABLE):
            return Verdict(("node(s) were unschedulable",))
        taint = untolerated(desired, spec(view.node).get("taints") or ())
        if taint:
            named = f"taint {{{taint['key']}: {taint.get('value', '')}}}"
            return Verdict((f"node(s) had untolerated {named if self._names_taints else 'taint(s)'}",))
        if not matches_node(desired, view.node):
            return Verdict(("node(s) didn't match Pod's node affinity/selector",))
        return None

    def _check_resources(self, view: NodeView) -> Verdict | None:
        if self._ports and _conflicts(self._ports, {port for pod in view.pods for port in _host_ports(pod)}):
            return Verdict(("node(s) didn't have free ports for the requested pod ports",), is_final=False)
        free = {name: view.room[name] - view.used[name] for name in self._requested}
        lacking = [
            name
            for name, amount in self._requested.items()
            if amount > free[name] and amount and not self.claims.serves(name, view)
        ]
        if not lacking:
            return None
        reasons = tuple("Too many pods" if name == "pods" else f"Insufficient {name}" for name in lacking)
        never = any(name != "pods" and self._requested[name] > view.room[name] for name in lacking)
        return Verdict(reasons, is_final=never)

    def _check_topology(self, view: NodeView) -> Verdict | None:
        found = self._spread.refuses(view) or self._affinity.refuses(view)
        return Verdict((found[0],), is_final=found[1]) if found else None


def _host_ports(pod: JsonObject) -> Iterator[tuple[str, str, int]]:
    sidecars = [item for item in spec(pod).get("initContainers") or () if item.get("restartPolicy") == "Always"]
    for container in [*(spec(pod).get("containers") or ()), *sidecars]:
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield str(port.get("hostIP") or "0.0.0.0"), str(port.get("protocol") or "TCP"), int(port["hostPort"])  # noqa: S104 - any address


def _conflicts(desired: set[tuple[str, str, int]], taken: set[tuple[str, str, int]]) -> bool:
    return any(
        (protocol, port) == (other[1], other[2]) and (address == other[0] or "0.0.0.0" in {address, other[0]})  # noqa: S104
        for address, protocol, port in desired
        for other in taken
    )
