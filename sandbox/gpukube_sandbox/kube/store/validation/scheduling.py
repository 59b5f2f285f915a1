"""Scheduling rules of pods (tolerations, affinity, spread), and taints of nodes.

Source: kubernetes pkg/apis/core/validation/validation.go (ValidateTolerations, validateAffinity,
validateTopologySpreadConstraints, ValidateNodeSelectorRequirement, validateNodeTaints).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpukube_sandbox.kube.store.validation.fields import (
    dns_label,
    duplicate,
    forbidden,
    invalid,
    label_selector,
    label_value,
    one_of,
    qualified_name,
    required,
    unsupported,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.validation.fields import Cause

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_MAX_WEIGHT = 100
_ANYWAY = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES = ("Honor", "Ignore")


def check_tolerations(tolerations: list[JsonObject], path: str) -> Iterator[Cause]:
    """Reject invalid tolerations."""
    for at, one in enumerate(tolerations):
        place, key, value = f"{path}[{at}]", one.get("key") or "", one.get("value") or ""
        operator, effect = one.get("operator") or "Equal", one.get("effect") or ""
        if key:
            yield from qualified_name(f"{place}.key", key)
        elif operator != "Exists":
            text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield invalid(f"{place}.operator", operator, text)
        if one.get("tolerationSeconds") is not None and effect != "NoExecute":
            yield invalid(f"{place}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
        if operator == "Equal":
            yield from label_value(f"{place}.operator", value)
        elif operator == "Exists":
            if value:
                yield invalid(f"{place}.operator", value, "value must be empty when `operator` is 'Exists'")
        else:
            yield unsupported(f"{place}.operator", operator, ("Equal", "Exists"))
        if effect:
            yield from one_of(f"{place}.effect", effect, EFFECTS)


def check_taints(taints: list[JsonObject], path: str) -> Iterator[Cause]:
    """Reject invalid taints, and two taints with the same key and effect."""
    seen = set()
    for at, taint in enumerate(taints):
        place, effect = f"{path}[{at}]", taint.get("effect") or ""
        yield from qualified_name(f"{place}.key", taint.get("key") or "")
        if taint.get("value"):
            yield from label_value(f"{place}.value", taint["value"])
        if not effect:
            yield required(f"{place}.effect")
        else:
            yield from one_of(f"{place}.effect", effect, EFFECTS)
        if (taint.get("key"), effect) in seen:
            yield duplicate(place, taint)
        seen.add((taint.get("key"), effect))


def check_affinity(affinity: JsonObject, path: str) -> Iterator[Cause]:
    """Reject empty or invalid affinity terms."""
    of_nodes = affinity.get("nodeAffinity") or {}
    if of_nodes.get(_REQUIRED) is not None:
        yield from check_node_selector(of_nodes[_REQUIRED], f"{path}.nodeAffinity.{_REQUIRED}")
    for at, one in enumerate(of_nodes.get(_PREFERRED) or ()):
        place = f"{path}.nodeAffinity.{_PREFERRED}[{at}]"
        yield from _weight(one, place)
        yield from _node_term(one.get("preference") or {}, f"{place}.preference")
    for kind in ("podAffinity", "podAntiAffinity"):
        of_pods = affinity.get(kind) or {}
        for at, one in enumerate(of_pods.get(_REQUIRED) or ()):
            yield from _pod_term(one, f"{path}.{kind}.{_REQUIRED}[{at}]")
        for at, one in enumerate(of_pods.get(_PREFERRED) or ()):
            place = f"{path}.{kind}.{_PREFERRED}[{at}]"
            yield from _weight(one, place)
            yield from _pod_term(one.get("podAffinityTerm") or {}, f"{place}.podAffinityTerm")


def _weight(preferred: JsonObject, place: str) -> Iterator[Cause]:
    weight = preferred.get("weight") or 0
    if not 0 < weight <= _MAX_WEIGHT:
        yield invalid(f"{place}.weight", weight, "must be in the range 1-100")


def check_node_selector(selector: JsonObject, path: str) -> Iterator[Cause]:
    """Reject a node selector without terms, or with an invalid term."""
    terms = selector.get("nodeSelectorTerms") or ()
    if not terms:
        yield required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for at, term in enumerate(terms):
        yield from _node_term(term, f"{path}.nodeSelectorTerms[{at}]")


def _node_term(term: JsonObject, path: str) -> Iterator[Cause]:
    for at, expression in enumerate(term.get("matchExpressions") or ()):
        yield from _match_expression(expression, f"{path}.matchExpressions[{at}]")
    for at, requirement in enumerate(term.get("matchFields") or ()):
        yield from _match_field(requirement, f"{path}.matchFields[{at}]")


def _match_expression(expression: JsonObject, path: str) -> Iterator[Cause]:
    values = expression.get("values") or []
    match expression.get("operator", ""):
        case "In" | "NotIn":
            if not values:
                yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist":
            if values:
                text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield forbidden(f"{path}.values", text)
        case "Gt" | "Lt":
            if len(values) != 1:
                text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
                yield required(f"{path}.values", text)
        case other:
            yield invalid(f"{path}.operator", other, "not a valid selector operator")
    yield from qualified_name(f"{path}.key", expression.get("key", ""))
    for number, value in enumerate(values):
        yield from label_value(f"{path}.values[{number}]", str(value))


def _match_field(requirement: JsonObject, path: str) -> Iterator[Cause]:
    if requirement.get("operator") not in {"In", "NotIn"}:
        yield invalid(f"{path}.operator", requirement.get("operator", ""), "not a valid selector operator")
    elif len(requirement.get("values") or []) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required(f"{path}.values", text)
    if requirement.get("key") != "metadata.name":
        yield invalid(f"{path}.key", requirement.get("key", ""), "not a valid field selector key")


def _pod_term(term: JsonObject, path: str) -> Iterator[Cause]:
    yield from label_selector(f"{path}.labelSelector", term.get("labelSelector"))
    yield from label_selector(f"{path}.namespaceSelector", term.get("namespaceSelector"))
    for name in term.get("namespaces") or ():
        yield from dns_label(f"{path}.namespace", name)
    matched, mismatched = term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or ()
    for key in ("matchLabelKeys", "mismatchLabelKeys"):
        if term.get(key) and term.get("labelSelector") is None:
            yield forbidden(f"{path}.{key}", "must not be specified when labelSelector is not set")
    for at, key in enumerate(matched):
        if key in mismatched:
            yield invalid(f"{path}.matchLabelKeys[{at}]", key, "exists in both matchLabelKeys and mismatchLabelKeys")
    if not term.get("topologyKey"):
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from qualified_name(f"{path}.topologyKey", term.get("topologyKey") or "")


def check_spread(constraints: list[JsonObject], path: str) -> Iterator[Cause]:
    """Reject constraints that are incomplete, contradictory, or duplicate."""
    seen: set[tuple[Any, Any]] = set()
    for at, one in enumerate(constraints):
        place, when = f"{path}[{at}]", one.get("whenUnsatisfiable") or ""
        skew, minimum = one.get("maxSkew") or 0, one.get("minDomains")
        if skew <= 0:
            yield invalid(f"{place}.maxSkew", skew, "must be greater than zero")
        if not one.get("topologyKey"):
            yield required(f"{place}.topologyKey", "can not be empty")
        else:
            yield from qualified_name(f"{place}.topologyKey", one["topologyKey"])
        if when not in _ANYWAY:
            yield unsupported(f"{place}.whenUnsatisfiable", when, _ANYWAY)
        if (one.get("topologyKey"), when) in seen:
            yield duplicate(f"{place}.{{topologyKey, whenUnsatisfiable}}", f"{{{one.get('topologyKey')}, {when}}}")
        seen.add((one.get("topologyKey"), when))
        if minimum is not None and minimum <= 0:
            yield invalid(f"{place}.minDomains", minimum, "must be greater than zero")
        elif minimum is not None and when != "DoNotSchedule":
            text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {when}"
            yield invalid(f"{place}.minDomains", minimum, text)
        for key in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            yield from one_of(f"{place}.{key}", one.get(key), _POLICIES)
        selector = one.get("labelSelector")
        yield from label_selector(f"{place}.labelSelector", selector)
        if one.get("matchLabelKeys") and selector is None:
            yield forbidden(f"{place}.matchLabelKeys", "must not be specified when labelSelector is not set")
