"""Feasible nodes for a pod, victims of preemption, and the message if neither exists.

In scope: node selection, preemption, the message of `FailedScheduling`.
Out of scope: single filters (`filters`, `topology`), writing to the API.

Source: kubernetes pkg/scheduler/{schedule_one,framework/types}.go, framework/preemption, plugins/defaultpreemption.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.matching import tolerates
from gpukube_sandbox.kube.scheduler.allocation import AllocationError
from gpukube_sandbox.kube.scheduler.filters import NodeFilters, Verdict
from gpukube_sandbox.kube.store.objects import meta, spec
from gpukube_sandbox.kube.store.selectors import matches_term

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from gpukube_sandbox.kube.scheduler.claims import Grant, PodClaims
    from gpukube_sandbox.kube.scheduler.snapshot import NodeView, Snapshot
    from gpukube_sandbox.kube.store.objects import JsonObject

CLAIMS = (1, 34)
"""First version with resource claims enabled by default, which its messages mention."""
NO_NODES = "no nodes available to schedule pods"
_HOPELESS = "Preemption is not helpful for scheduling"
_NO_VICTIMS = "No preemption victims found for incoming pod"


@dataclass(frozen=True, slots=True)
class Placing:
    """The scheduler's decision about one pod.

    Attributes:
        nodes: Nodes that it fits, best first.
        message: Why it fits none.
        makes_room: Node that would have room without `victims`; "" for none.
        victims: Lower-priority pods to remove from that node.
        grants: What the pod's claims get on each of the nodes.
        frees: Claim that no pod uses, to deallocate because its devices keep the pod off all nodes.
        is_error: The scheduler could not decide, because of a claim or a class.
    """

    nodes: tuple[str, ...] = ()
    message: str = ""
    makes_room: str = ""
    victims: tuple[JsonObject, ...] = field(default=())
    grants: Mapping[str, Grant] = field(default_factory=dict)
    frees: JsonObject | None = None
    is_error: bool = False


def place(pod: JsonObject, snapshot: Snapshot, version: tuple[int, int]) -> Placing:
    """Evaluate all nodes for a pod.

    Args:
        pod: An unbound pod.
        snapshot: The cluster.
        version: Minor version of Kubernetes, (1, 34).
    """
    if not snapshot.nodes:
        return Placing(message=NO_NODES)
    named = _named_nodes(pod)
    if named is not None and not named:
        return _refused(pod, snapshot, version, {}, before="pod affinity terms conflict")
    filters = NodeFilters(pod, snapshot, version)
    if blocked := filters.claims.blocked:
        return _refused(pod, snapshot, version, {}, before=blocked)
    verdicts: dict[str, Verdict] = {}
    free: list[NodeView] = []
    for name, view in snapshot.nodes.items():
        if named is not None and name not in named:
            verdicts[name] = Verdict(("node(s) didn't satisfy plugin(s) [NodeAffinity]",))
            continue
        try:
            found = filters.check(view)
        except AllocationError as problem:
            return Placing(message=f'running "DynamicResources" filter plugin: {problem}', is_error=True)
        if found:
            verdicts[name] = found
        else:
            free.append(view)
    if not free:
        return _refused(pod, snapshot, version, verdicts, claims=filters.claims)
    grants = filters.claims.grants
    best = sorted(free, key=lambda view: _rank(pod, view, grants.get(view.name)))
    return Placing(tuple(view.name for view in best), grants=grants)


def _named_nodes(pod: JsonObject) -> set[str] | None:
    """Return the nodes that the required affinity names; None if a term names no node."""
    required = _node_affinity(pod).get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    found: set[str] = set()
    for term in required.get("nodeSelectorTerms") or ():
        named = [
            set(item.get("values") or ())
            for item in term.get("matchFields") or ()
            if item.get("key") == "metadata.name" and item.get("operator") == "In"
        ]
        if not named:
            return None
        found |= set.intersection(*named)
    return found if required.get("nodeSelectorTerms") else None


def _node_affinity(pod: JsonObject) -> JsonObject:
    return (spec(pod).get("affinity") or {}).get("nodeAffinity") or {}


def _rank(pod: JsonObject, view: NodeView, grant: Grant | None) -> tuple[int, int, int, int, str]:
    """Sort key: fewest soft taints, then the pod's preference, then that of its claims, then fewest pods."""
    taints = spec(view.node).get("taints") or ()
    soft = sum(item.get("effect") == "PreferNoSchedule" and not tolerates(spec(pod), item) for item in taints)
    preferred = _node_affinity(pod).get("preferredDuringSchedulingIgnoredDuringExecution") or ()
    preference = sum(
        int(item["weight"]) for item in preferred if matches_term(item["preference"], view.marks, view.name)
    )
    return soft, -preference, -grant.rank if grant else 0, len(view.pods), view.name


def _refused(  # noqa: PLR0913 -- what the message depends on, by name
    pod: JsonObject,
    snapshot: Snapshot,
    version: tuple[int, int],
    verdicts: dict[str, Verdict],
    *,
    before: str = "",
    claims: PodClaims | None = None,
) -> Placing:
    """Return the message about a pod that fits no node, as in `kubectl describe pod`, or the victims to preempt."""
    total = len(snapshot.nodes)
    refusal = before or _counted(reason for verdict in verdicts.values() for reason in verdict.reasons)
    message = f"0/{total} nodes are available: {refusal}."
    after = "no new claims to deallocate, " if version >= CLAIMS else ""
    frees = claims.idle if claims else None
    if claims and not claims.is_empty:
        after = f"{'deallocation of ResourceClaim completed' if frees else 'still not schedulable'}, "
    if spec(pod).get("preemptionPolicy") == "Never":
        return Placing(message=f"{message} {after}preemption: not eligible due to preemptionPolicy=Never.")
    found: list[tuple[NodeView, list[JsonObject]]] = []
    reasons: list[str] = []
    for name, view in snapshot.nodes.items():
        verdict = verdicts.get(name)
        if verdict is None or verdict.is_final:
            reasons.append(_HOPELESS)
        else:
            victims = _victims(pod, view, snapshot, version)
            if isinstance(victims, Verdict):
                reasons += victims.reasons
            else:
                found.append((view, victims))
    if found:
        view, victims = min(found, key=lambda item: (*_cost(item[1]), item[0].name))
        return Placing(message=message, makes_room=view.name, victims=tuple(victims))
    message += f" {after}preemption: 0/{total} nodes are available: {_counted(reasons)}."
    return Placing(message=message, frees=frees)


def _counted(reasons: Iterable[str]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in Counter(reasons).items()))


def _victims(
    pod: JsonObject, view: NodeView, snapshot: Snapshot, version: tuple[int, int]
) -> list[JsonObject] | Verdict:
    """Return the fewest, least important lower-priority pods without which the pod fits, or why it would not fit."""
    lower = sorted((item for item in view.pods if priority(item) < priority(pod)), key=_importance)
    if not lower:
        return Verdict((_NO_VICTIMS,))
    refused = _without(pod, view, lower, snapshot, version)
    if refused:
        return refused
    gone = list(lower)
    for item in reversed(lower):  # spare the most important ones first
        rest = [other for other in gone if other is not item]
        if not _without(pod, view, rest, snapshot, version):
            gone = rest
    return gone


def _without(
    pod: JsonObject, view: NodeView, gone: Collection[JsonObject], snapshot: Snapshot, version: tuple[int, int]
) -> Verdict | None:
    left = view.without(gone)
    try:
        return NodeFilters(pod, snapshot.replaced(left), version).check(left)
    except AllocationError as problem:
        return Verdict((str(problem),))


def priority(pod: JsonObject) -> int:
    """Return a pod's priority; 0 if it has none."""
    return int(spec(pod).get("priority") or 0)


def _importance(pod: JsonObject) -> tuple[int, str]:
    """Sort key: priority, then age; a younger pod is less important."""
    created = str(meta(pod).get("creationTimestamp", ""))
    return priority(pod), "".join(chr(126 - ord(character) + 32) for character in created)


def _cost(victims: Sequence[JsonObject]) -> tuple[int, int, int]:
    return max(map(priority, victims)), sum(map(priority, victims)), len(victims)
