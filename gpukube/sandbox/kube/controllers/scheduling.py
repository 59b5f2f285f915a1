"""Where a pod may run.

Lives here: taints and tolerations, node selectors and affinity, quantities and requests; all pure.
Must not live here: placing pods (`scheduler`, `daemonsets`).

Source: docs concepts/scheduling-eviction/{taint-and-toleration,assign-pod-node}.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gpukube.sandbox.kube.store.objects import conditions, labels, name_of, spec, status
from gpukube.sandbox.kube.store.quantities import parse_quantity
from gpukube.sandbox.kube.store.selectors import matches_expressions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from gpukube.sandbox.kube.store.objects import JsonObject

HARD_EFFECTS = frozenset({"NoSchedule", "NoExecute"})


def untolerated(
    pod_spec: JsonObject, taints: Iterable[JsonObject], effects: Collection[str] = HARD_EFFECTS
) -> JsonObject | None:
    """Find the first taint of the given effects that the pod does not tolerate."""
    tolerations = pod_spec.get("tolerations") or []
    for taint in taints:
        if taint.get("effect") in effects and not any(_tolerates(item, taint) for item in tolerations):
            return taint
    return None


def _tolerates(toleration: JsonObject, taint: JsonObject) -> bool:
    if toleration.get("effect") not in {None, "", taint.get("effect")}:
        return False
    key, operator = toleration.get("key"), toleration.get("operator") or "Equal"
    if not key:
        return operator == "Exists"
    if key != taint.get("key"):
        return False
    return operator == "Exists" or (toleration.get("value") or "") == (taint.get("value") or "")


def matches_node(pod_spec: JsonObject, node: JsonObject) -> bool:
    """Test nodeSelector and the required node affinity (terms are alternatives)."""
    marks = labels(node)
    wanted: dict[str, str] = pod_spec.get("nodeSelector") or {}
    if any(marks.get(key) != value for key, value in wanted.items()):
        return False
    affinity = ((pod_spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if not affinity:
        return True
    return any(_term(term, node) for term in affinity.get("nodeSelectorTerms") or ())


def _term(term: JsonObject, node: JsonObject) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    # A term without expressions matches nothing.
    if not expressions and not fields:
        return False
    named = {"metadata.name": name_of(node)}
    return matches_expressions(labels(node), expressions) and matches_expressions(named, fields)


def pod_requests(pod: JsonObject) -> Counter[str]:
    """Add up what a pod asks for, in base units; "pods" counts itself.

    Init containers count where they ask for more.
    """
    total: Counter[str] = Counter({"pods": 1})
    for container in spec(pod).get("containers") or ():
        total.update(_requests(container))
    for container in spec(pod).get("initContainers") or ():
        for name, value in _requests(container).items():
            total[name] = max(total[name], value)
    return total


def _requests(container: JsonObject) -> Counter[str]:
    resources = container.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return Counter({name: _in_base_units(name, value) for name, value in asked.items()})


def _in_base_units(name: str, value: str | float) -> int:
    quantity = parse_quantity(value)
    return int(quantity * 1000) if name == "cpu" else int(quantity)


def allocatable_of(node: JsonObject) -> Counter[str]:
    """Give what a node has to offer, in the units of `pod_requests` (cpu in thousandths)."""
    return Counter(
        {name: _in_base_units(name, value) for name, value in (status(node).get("allocatable") or {}).items()}
    )


def is_ready(obj: JsonObject) -> bool:
    """Say whether a node or pod has condition Ready."""
    return conditions(obj).get("Ready") == "True"


def is_terminal(pod: JsonObject) -> bool:
    """Say whether a pod has run to its end."""
    return status(pod).get("phase") in {"Succeeded", "Failed"}
