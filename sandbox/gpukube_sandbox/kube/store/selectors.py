"""Label and field selectors.

In scope: parsing selectors in query and object form, and matching. Out of scope: stores.

Source: docs concepts/overview/working-with-objects/labels and field-selectors.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.problems import bad_request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpukube_sandbox.kube.store.objects import JsonObject

_TERM = re.compile(
    r"\s*(?:(?P<no>!)\s*(?P<absent>[\w./-]+)"
    r"|(?P<key>[\w./-]+)\s*(?:(?P<sets>in|notin)\s*\((?P<values>[^)]*)\)|(?P<op>==|=|!=|>|<)\s*(?P<value>[\w.-]*))?)\s*(?:,|$)"
)


def label_test(text: str) -> Callable[[Mapping[str, str]], bool]:
    """Parse a labelSelector of a query.

    Raises:
        ApiProblem: 400 if it cannot be parsed.
    """
    tests: list[tuple[str, str, frozenset[str]]] = []
    at = 0
    while at < len(text):
        found = _TERM.match(text, at)
        if not found or found.end() == at:
            raise bad_request(f"unable to parse requirement: {text!r}")
        at = found.end()
        if (found["key"] or found["absent"]).count("/") > 1:
            raise bad_request(f"unable to parse requirement: {found['key'] or found['absent']!r} is no label key")
        if found["no"]:
            tests.append(("DoesNotExist", found["absent"], frozenset()))
        elif found["sets"]:
            values = frozenset(value.strip() for value in found["values"].split(","))
            tests.append(("In" if found["sets"] == "in" else "NotIn", found["key"], values))
        elif found["op"] in {">", "<"}:
            tests.append(("Gt" if found["op"] == ">" else "Lt", found["key"], frozenset({found["value"]})))
        elif found["op"]:
            tests.append(("NotIn" if found["op"] == "!=" else "In", found["key"], frozenset({found["value"]})))
        else:
            tests.append(("Exists", found["key"], frozenset()))
    return lambda labels: all(_meets(labels, key, operator, values) for operator, key, values in tests)


def _meets(labels: Mapping[str, str], key: str, operator: str, values: frozenset[str]) -> bool:
    if operator == "In":
        return labels.get(key) in values if key in labels else False
    if operator == "NotIn":
        return labels.get(key) not in values
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    bound = next(iter(values), "")
    if key not in labels or not labels[key].lstrip("-").isdigit() or not bound.lstrip("-").isdigit():
        return False
    return int(labels[key]) > int(bound) if operator == "Gt" else int(labels[key]) < int(bound)


def matches_expressions(labels: Mapping[str, str], expressions: list[JsonObject]) -> bool:
    """Return whether labels match the matchExpressions (In, NotIn, Exists, DoesNotExist, Gt, Lt)."""
    return all(
        _meets(labels, item["key"], item.get("operator", "In"), frozenset(item.get("values") or ()))
        for item in expressions
    )


def matches_term(term: JsonObject, labels: Mapping[str, str], name: str) -> bool:
    """Return whether a node selector term matches; an empty term matches nothing."""
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    return matches_expressions(labels, expressions) and matches_expressions({"metadata.name": name}, fields)


def matches_selector(labels: Mapping[str, str], selector: JsonObject | None) -> bool:
    """Return whether a LabelSelector object matches; a missing selector matches nothing."""
    if not selector:
        return False
    desired: dict[str, str] = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in desired.items()) and matches_expressions(
        labels, selector.get("matchExpressions") or []
    )


FIELD_LABELS: Mapping[str, tuple[str, ...]] = {
    "Event": (
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid", "type",
        "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
        "reportingComponent", "source",
    ),
    "Job": ("status.successful",),
    "Namespace": ("status.phase",),
    "Node": ("spec.unschedulable",),
    "Pod": (
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
        "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName",
    ),
    "ReplicaSet": ("status.replicas",),
    "ReplicationController": ("status.replicas",),
    "ResourceSlice": ("spec.nodeName", "spec.driver"),
    "Secret": ("type",),
}  # fmt: skip
"""Type -> supported field selectors, in addition to name and namespace.

Source: kubernetes pkg/apis/core/v1/conversion.go, pkg/apis/{apps,batch,resource}/v1/conversion.go.
"""
_OF_ALL = ("metadata.name", "metadata.namespace")


def field_test(text: str, known: Sequence[str] | None = None) -> Callable[[JsonObject], bool]:
    """Parse a fieldSelector of a query; an absent value is "".

    Args:
        text: The fieldSelector.
        known: Allowed paths in addition to those of all objects; None allows any.

    Raises:
        ApiProblem: 400 if it cannot be parsed.
    """
    tests: list[tuple[list[str], bool, str]] = []
    for term in filter(None, (part.strip() for part in text.split(","))):
        path, operator, value = re.split(r"(==|!=|=)", term, maxsplit=1) if "=" in term else (term, "", "")
        if not operator:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
        if known is not None and path not in known and path not in _OF_ALL:
            raise bad_request(f"field label not supported: {path}")
        tests.append((path.split("."), operator != "!=", value))
    return lambda obj: all((_field(obj, path) == value) is equal for path, equal, value in tests)


def _field(obj: JsonObject, path: list[str]) -> str:
    value: object = obj
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
