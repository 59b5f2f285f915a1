"""Checks whether a pod can be scheduled on a node, and if not, why: node selector, node affinity, taints.

In scope: the Kubernetes scheduler's predicates on labels and taints, as pure functions. Out of scope: resources,
topology spread, priorities, and knowledge of NVIDIA or of a cloud.

Source: Kubernetes documentation, "Assigning Pods to Nodes" and "Taints and Tolerations".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from gpukube.cluster.kube.views import CORDON, Toleration
from gpukube.core.jsontree import at, items, text, tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gpukube.cluster.kube.views import NodeView, Placement, WorkloadView
    from gpukube.core.values import Taint

DAEMON_TOLERATIONS: Final = (
    Toleration("node.kubernetes.io/not-ready", "Exists", effect="NoExecute"),
    Toleration("node.kubernetes.io/unreachable", "Exists", effect="NoExecute"),
    Toleration("node.kubernetes.io/disk-pressure", "Exists", effect="NoSchedule"),
    Toleration("node.kubernetes.io/memory-pressure", "Exists", effect="NoSchedule"),
    Toleration("node.kubernetes.io/pid-pressure", "Exists", effect="NoSchedule"),
    Toleration(CORDON, "Exists", effect="NoSchedule"),
)
"""Tolerations that the DaemonSet controller adds to its pods (Kubernetes documentation, "DaemonSet")."""
_SOFT: Final = "PreferNoSchedule"
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
"""Integers that Gt and Lt can compare (strconv.ParseInt; Python's int accepts more)."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """One reason why a pod cannot be scheduled on a node.

    Attributes:
        kind: Predicate that fails.
        message: Human-readable message, with the values found.
        taint: The taint that is not tolerated.
        keys: Label keys that are required and do not match; for an affinity those of all its terms.
    """

    kind: Literal["selector", "affinity", "taint"]
    message: str
    taint: Taint | None = None
    keys: tuple[str, ...] = ()


def misfits(
    placement: Placement,
    labels: Mapping[str, str],
    taints: Iterable[Taint],
    *,
    name: str = "",
    unknown: Callable[[str], bool] | None = None,
) -> tuple[Misfit, ...]:
    """Return why a pod cannot be scheduled on a node; empty if it can.

    Args:
        placement: The pod's selector, affinity, and tolerations.
        labels: The node's labels.
        taints: The node's taints.
        name: The node's name; "" if it does not exist yet.
        unknown: Returns for an absent label key whether the node may have it anyway; such a key matches. For nodes that
            do not exist yet.
    """
    open_keys = unknown or (lambda _key: False)
    found = [
        Misfit("selector", f"nodeSelector needs {key}={value}, the node has {_seen(labels, key)}", keys=(key,))
        for key, value in placement.node_selector.items()
        if labels.get(key) != value and not (key not in labels and open_keys(key))
    ]
    terms = _terms(placement)
    if terms is not None and not any(_term_matches(term, labels, name, open_keys) for term in terms):
        message = f"node affinity needs {' or '.join(map(_term_text, terms)) or 'nothing'}"
        found.append(Misfit("affinity", message, keys=_failing_keys(terms, labels, name, open_keys)))
    found += [
        Misfit("taint", f"taint {taint} is not tolerated", taint)
        for taint in taints
        if taint.effect != _SOFT and not tolerates(placement.tolerations, taint)
    ]
    return tuple(found)


def daemon_misfits(
    placement: Placement,
    labels: Mapping[str, str],
    taints: Iterable[Taint],
    *,
    name: str = "",
    unknown: Callable[[str], bool] | None = None,
) -> tuple[Misfit, ...]:
    """Like `misfits`, for a pod of a DaemonSet, which tolerates the node's problem taints automatically."""
    hard = [taint for taint in taints if not tolerates(DAEMON_TOLERATIONS, taint)]
    return misfits(placement, labels, hard, name=name, unknown=unknown)


def lands_on(daemonset: WorkloadView, node: NodeView) -> bool:
    """Return whether a DaemonSet runs on a node."""
    return not daemon_misfits(daemonset.placement, node.labels, node.taints, name=node.name)


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Return whether one of the tolerations covers a taint."""
    return any(_covers(toleration, taint) for toleration in tolerations)


def _covers(toleration: Toleration, taint: Taint) -> bool:
    """Match one toleration: no effect means every effect; no key, allowed only with Exists, means every key."""
    if toleration.effect not in ("", taint.effect):
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", taint.key)
    return toleration.operator in ("", "Equal") and (toleration.key, toleration.value) == (taint.key, taint.value)


def _terms(placement: Placement) -> list[object] | None:
    path = ("nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    if at(placement.affinity, *path) is None:
        return None
    return items(placement.affinity, *path, "nodeSelectorTerms")


def _term_matches(term: object, labels: Mapping[str, str], name: str, unknown: Callable[[str], bool]) -> bool:
    """Match one term: all of its expressions must match; an empty term matches no node."""
    present = bool(items(term, "matchExpressions") or items(term, "matchFields"))
    return present and not _failing(term, labels, name, unknown)


def _failing(term: object, labels: Mapping[str, str], name: str, unknown: Callable[[str], bool]) -> list[str]:
    """Return the keys of a term's expressions that do not match; a future node's name matches anything."""
    fields = {"metadata.name": name} if name else {}
    expressions = [(item, labels, unknown) for item in items(term, "matchExpressions")]
    expressions += [(item, fields, lambda _key: not name) for item in items(term, "matchFields")]
    return [text(item, "key") for item, values, may in expressions if not _expression_matches(item, values, may)]


def _failing_keys(
    terms: Iterable[object], labels: Mapping[str, str], name: str, unknown: Callable[[str], bool]
) -> tuple[str, ...]:
    return tuple(dict.fromkeys(key for term in terms for key in _failing(term, labels, name, unknown)))


def _expression_matches(item: object, labels: Mapping[str, str], unknown: Callable[[str], bool]) -> bool:
    key, operator = text(item, "key"), text(item, "operator")
    values = [text(value) for value in items(item, "values")]
    if key not in labels:
        return operator in ("NotIn", "DoesNotExist") or unknown(key)
    value = labels[key]
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Gt" | "Lt":
            return _is_beyond(value, values, sign=1 if operator == "Gt" else -1)
        case _:
            return operator == "Exists"


def _is_beyond(value: str, values: list[str], *, sign: int) -> bool:
    """Compare two integers; anything else is False, and there must be exactly one value to compare with."""
    if len(values) != 1 or not all(_INTEGER.fullmatch(number) for number in (value, *values)):
        return False
    return sign * (int(value) - int(values[0])) > 0


def _term_text(term: object) -> str:
    parts = [_expression_text(item) for item in (*items(term, "matchExpressions"), *items(term, "matchFields"))]
    return " and ".join(parts) or "(an empty term)"


def _expression_text(item: object) -> str:
    values = ",".join(text(value) for value in items(tree(item), "values"))
    return f"{text(item, 'key')} {text(item, 'operator')}" + (f" [{values}]" if values else "")


def _seen(labels: Mapping[str, str], key: str) -> str:
    return f"{key}={labels[key]}" if key in labels else "no such label"
