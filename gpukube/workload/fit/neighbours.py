"""Filters that count pods on other nodes: topology spread, pod affinity and anti-affinity.

Pure. In scope: counting matching pods per domain. Out of scope: filters for a single node (`predicates`).

Source: kubernetes/kubernetes pkg/scheduler/framework/plugins/{podtopologyspread,interpodaffinity}/filtering.go.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from gpukube.workload.fit.predicates import Obstacle, selects, tolerates

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gpukube.workload.fit.nodes import Node
    from gpukube.workload.fit.pods import Company, Pod, Spread

_NO_DOMAINS: Final = 2**31 - 1


class Neighbours:
    """The pods of a cluster, from the viewpoint of a pod that is about to be placed.

    Args:
        pod: A pod that is not placed yet.
        nodes: Nodes of its cluster, in their current state.
        namespaces: Name -> labels; a missing one has its name as its only label, as Kubernetes sets it.
        known: Cache of which rules apply to which pods; equal pods are one object.
    """

    def __init__(
        self,
        pod: Pod,
        nodes: Sequence[Node],
        namespaces: Mapping[str, Mapping[str, str]],
        known: dict[tuple[int, Pod], bool] | None = None,
    ) -> None:
        self._pod = pod
        self._namespaces = namespaces
        self._known = {} if known is None else known
        self._spread = [(spread, self._count(spread, nodes)) for spread in pod.spreads]
        self._beside: set[tuple[str, str]] = set()
        self._away: set[tuple[str, str]] = set()
        self._unwanted: dict[tuple[str, str], str] = {}
        for node in nodes:
            for other in node.pods:
                if pod.near and all(self._applies_to(term, other) for term in pod.near):
                    self._beside.update(_domains(pod.near, node))
                self._away.update(_domains((term for term in pod.apart if self._applies_to(term, other)), node))
                forbidding = (term for term in other.apart if self._applies_to(term, pod))
                self._unwanted.update(dict.fromkeys(_domains(forbidding, node), other.name))

    def obstacles(self, node: Node) -> Iterator[Obstacle]:
        """Yield which rules about other pods the pod would break on a node."""
        for spread, counts in self._spread:
            yield from self._too_many(spread, counts, node)
        if self._pod.near and not self._has_company(node):
            keys = ", ".join(sorted({term.key for term in self._pod.near}))
            yield Obstacle(
                "pod-affinity", f"the pods that its pod affinity requires are missing ({keys})", keys, lasting=False
            )
        for key, value in _domains(self._pod.apart, node):
            if (key, value) in self._away:
                yield Obstacle("pod-anti-affinity", f"its pod anti-affinity forbids it ({key})", key, lasting=False)
        for pair in node.labels.items():
            if pair in self._unwanted:
                whose = f"pod anti-affinity of {self._unwanted[pair]}"
                yield Obstacle("pod-anti-affinity", f"the {whose} forbids it ({pair[0]})", pair[0], lasting=False)

    def _too_many(self, spread: Spread, counts: Counter[str], node: Node) -> Iterator[Obstacle]:
        domain = node.labels.get(spread.key)
        if domain is None:
            yield Obstacle("spread", f"no label {spread.key}, which topology spread requires", spread.key)
            return
        least = min(counts.values(), default=_NO_DOMAINS) if len(counts) >= spread.min_domains else 0
        itself = int(spread.selector is not None and spread.selector.matches(self._pod.labels))
        if counts[domain] + itself - least > spread.max_skew:
            seen = f"{counts[domain]} of its pods are in {domain}, {least} elsewhere, maxSkew is {spread.max_skew}"
            yield Obstacle("spread", f"topology spread: {seen}", spread.key, lasting=False)

    def _count(self, spread: Spread, nodes: Sequence[Node]) -> Counter[str]:
        """Count the pods that match a constraint, per domain; one without such pods counts as a domain."""
        keys = [other.key for other in self._pod.spreads]
        # A selector without requirements counts no pods, but matches the pod itself.
        counting = spread.selector is not None and not spread.selector.empty
        counts: Counter[str] = Counter()
        for node in nodes:
            if all(key in node.labels for key in keys) and self._is_domain(spread, node):
                counts[node.labels[spread.key]] += (
                    sum(count for other, count in node.pods.items() if self._is_counted(spread, other))
                    if counting
                    else 0
                )
        return counts

    def _is_counted(self, spread: Spread, other: Pod) -> bool:
        if other.ending or other.namespace != self._pod.namespace:
            return False
        key = (id(spread), other)
        if key not in self._known:
            self._known[key] = spread.selector is not None and spread.selector.matches(other.labels)
        return self._known[key]

    def _is_domain(self, spread: Spread, node: Node) -> bool:
        if spread.honours_affinity and not selects(self._pod, node):
            return False
        return not spread.honours_taints or all(
            taint.effect == "PreferNoSchedule" or tolerates(self._pod, node, taint) for taint in node.shape.taints
        )

    def _has_company(self, node: Node) -> bool:
        pod = self._pod
        if any(term.key not in node.labels for term in pod.near):
            return False
        if all(domain in self._beside for domain in _domains(pod.near, node)):
            return True
        # The first of several pods with affinity to each other may go anywhere.
        return not self._beside and all(self._applies_to(term, pod) for term in pod.near)

    def _applies_to(self, term: Company, other: Pod) -> bool:
        """Return whether a term applies to a pod."""
        key = (id(term), other)
        if key not in self._known:
            meant = term.selector is not None and term.selector.matches(other.labels)
            self._known[key] = meant and self._is_in(term, other.namespace)
        return self._known[key]

    def _is_in(self, term: Company, namespace: str) -> bool:
        if namespace in term.namespaces:
            return True
        labels = self._namespaces.get(namespace, {"kubernetes.io/metadata.name": namespace})
        return term.namespace_selector is not None and term.namespace_selector.matches(labels)


def _domains(terms: Iterable[Company], node: Node) -> list[tuple[str, str]]:
    return [(term.key, node.labels[term.key]) for term in terms if term.key in node.labels]
