"""Filters that depend on pods of other nodes: topology spread, pod affinity, and anti-affinity.

In scope: counting matching pods per domain, once per pod to schedule. Out of scope: other filters.

Source: kubernetes pkg/scheduler/framework/plugins/{podtopologyspread,interpodaffinity}/filtering.go.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from gpukube_sandbox.kube.matching import matches_node, untolerated
from gpukube_sandbox.kube.store.objects import labels, meta, namespace_of, spec
from gpukube_sandbox.kube.store.selectors import matches_selector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube_sandbox.kube.scheduler.snapshot import NodeView, Snapshot
    from gpukube_sandbox.kube.store.objects import JsonObject

_SPREAD = "node(s) didn't match pod topology spread constraints"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

Refusal = tuple[str, bool]
"""The reason, and whether removing pods from the node would not help."""


class Spread:
    """The hard spread constraints (`DoNotSchedule`) of one pod."""

    def __init__(self, pod: JsonObject, snapshot: Snapshot) -> None:
        given = spec(pod).get("topologySpreadConstraints") or ()
        self._pod = pod
        self._rules = [rule for rule in given if rule.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"]
        self._counts: list[Counter[str]] = [Counter() for _ in self._rules]
        if self._rules:
            for view in snapshot.nodes.values():
                self._count(view)

    def _count(self, view: NodeView) -> None:
        marks = view.marks
        if any(rule["topologyKey"] not in marks for rule in self._rules):
            return
        for rule, counts in zip(self._rules, self._counts, strict=True):
            if self._includes(rule, view):
                # A domain without a matching pod counts as a domain.
                counts[marks[rule["topologyKey"]]] += sum(self._matches(rule, other) for other in view.pods)

    def _includes(self, rule: JsonObject, view: NodeView) -> bool:
        if rule.get("nodeAffinityPolicy", "Honor") == "Honor" and not matches_node(spec(self._pod), view.node):
            return False
        honours_taints = rule.get("nodeTaintsPolicy", "Ignore") == "Honor"
        return not (honours_taints and untolerated(spec(self._pod), spec(view.node).get("taints") or ()))

    def _matches(self, rule: JsonObject, other: JsonObject) -> bool:
        if meta(other).get("deletionTimestamp") or namespace_of(other) != namespace_of(self._pod):
            return False
        return self._selects(rule, other, empty=False)

    def _selects(self, rule: JsonObject, other: JsonObject, *, empty: bool) -> bool:
        """Match the selector plus the pod's own values of `matchLabelKeys`; return `empty` for an empty selector."""
        selector = rule.get("labelSelector")
        own = labels(self._pod)
        keys = {key: own[key] for key in rule.get("matchLabelKeys") or () if key in own}
        if selector is None:
            return False
        if not selector.get("matchLabels") and not selector.get("matchExpressions") and not keys:
            return empty
        found = labels(other)
        return all(found.get(key) == value for key, value in keys.items()) and selects(selector, found)

    def refuses(self, view: NodeView) -> Refusal | None:
        """Return the constraint that the pod would violate on a node."""
        for rule, counts in zip(self._rules, self._counts, strict=True):
            domain = view.marks.get(rule["topologyKey"])
            if domain is None:
                return f"{_SPREAD} (missing required label)", True
            minimum = min(counts.values(), default=2**31 - 1)
            if len(counts) < int(rule.get("minDomains") or 1):
                minimum = 0
            itself = int(self._selects(rule, self._pod, empty=True))
            if counts[domain] + itself - minimum > int(rule["maxSkew"]):
                return _SPREAD, False
        return None


class Affinity:
    """One pod's affinity and anti-affinity terms, and other pods' anti-affinity terms against it."""

    def __init__(self, pod: JsonObject, snapshot: Snapshot) -> None:
        self._pod = pod
        self._namespaces = snapshot.namespaces
        self._near, self._apart = terms(pod, "podAffinity"), terms(pod, "podAntiAffinity")
        self._beside: Counter[tuple[str, str]] = Counter()
        self._away: Counter[tuple[str, str]] = Counter()
        self._forbidden: set[tuple[str, str]] = set()
        for view in snapshot.nodes.values():
            self._count(view)

    def _count(self, view: NodeView) -> None:
        marks = view.marks
        for other in view.pods:
            if self._near and all(self._matches(term, self._pod, other) for term in self._near):
                self._beside.update(_domains(self._near, marks))
            self._away.update(_domains([term for term in self._apart if self._matches(term, self._pod, other)], marks))
            theirs = terms(other, "podAntiAffinity")
            if theirs:
                matching = [term for term in theirs if self._matches(term, other, self._pod)]
                self._forbidden.update(_domains(matching, marks))

    def _matches(self, term: JsonObject, owner: JsonObject, other: JsonObject) -> bool:
        """Return whether a term of one pod matches another."""
        chosen, selector = term.get("namespaces") or [], term.get("namespaceSelector")
        if not chosen and selector is None:
            chosen = [namespace_of(owner)]
        namespace = namespace_of(other)
        in_place = namespace in chosen or (
            selector is not None and selects(selector, self._namespaces.get(namespace, {}))
        )
        return in_place and term.get("labelSelector") is not None and selects(_with_keys(term, owner), labels(other))

    def refuses(self, view: NodeView) -> Refusal | None:
        """Return the rule that the pod would violate on a node."""
        marks = view.marks
        if not self._has_affine_pods(marks):
            return "node(s) didn't match pod affinity rules", True
        if any(self._away[pair] for pair in _domains(self._apart, marks)):
            return "node(s) didn't match pod anti-affinity rules", False
        if any((key, value) in self._forbidden for key, value in marks.items()):
            return "node(s) didn't satisfy existing pods anti-affinity rules", False
        return None

    def _has_affine_pods(self, marks: dict[str, str]) -> bool:
        if any(term["topologyKey"] not in marks for term in self._near):
            return False
        if all(self._beside[pair] for pair in _domains(self._near, marks)):
            return True
        # The first pod of a group with affinity to itself may run anywhere.
        return not +self._beside and all(self._matches(term, self._pod, self._pod) for term in self._near)


def terms(pod: JsonObject, kind: str) -> list[JsonObject]:
    """Return the required terms of podAffinity or podAntiAffinity."""
    found: list[JsonObject] = ((spec(pod).get("affinity") or {}).get(kind) or {}).get(_REQUIRED) or []
    return found


def selects(selector: dict[str, Any], labels_of: dict[str, str]) -> bool:
    """Return whether a LabelSelector matches labels; an empty one matches everything."""
    has_tests = selector.get("matchLabels") or selector.get("matchExpressions")
    return matches_selector(labels_of, selector) if has_tests else True


def _with_keys(term: JsonObject, owner: JsonObject) -> JsonObject:
    """Return the term with its (mis)matchLabelKeys resolved against the owner's labels, as the API server does."""
    own, selector = labels(owner), term["labelSelector"]
    added = [
        {"key": key, "operator": operator, "values": [own[key]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for key in term.get(field) or ()
        if key in own
    ]
    return {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *added]} if added else selector


def _domains(listed: Iterable[JsonObject], marks: dict[str, str]) -> list[tuple[str, str]]:
    return [(term["topologyKey"], marks[term["topologyKey"]]) for term in listed if term["topologyKey"] in marks]
