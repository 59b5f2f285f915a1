"""A pod as the scheduler reads it: what it requests, tolerates, and requires of nodes and of other pods.

Pure. In scope: reading a pod's spec, once. Out of scope: nodes, and whether one fits the pod (`predicates`,
`neighbours`).

Invalid fields count as absent: `gpukube workload lint` reports them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from gpukube.core.jsontree import at, number, strings, text, texts, tree, trees
from gpukube.workload.requests import most_devices, pod_request, requested_names
from gpukube.workload.selectors import Selector, read_selector

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.jsontree import Tree
    from gpukube.workload.claims import PodClaim
    from gpukube.workload.requests import Request

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class Spread:
    """A topology spread constraint that must be satisfied (`DoNotSchedule`).

    Attributes:
        selector: None matches no pod; includes the pod's own values of matchLabelKeys.
        honours_affinity, honours_taints: Whether only nodes that the pod selects, or tolerates, count as domains.
    """

    key: str
    max_skew: int
    min_domains: int
    selector: Selector | None
    honours_affinity: bool
    honours_taints: bool


@dataclass(frozen=True, slots=True)
class Company:
    """A required term of pod affinity or anti-affinity.

    Attributes:
        key: Node label that defines the domains.
        selector: None matches no pod; includes the effect of (mis)matchLabelKeys.
        namespaces: Namespaces of matching pods.
        namespace_selector: Additional namespaces; None for no more.
    """

    key: str
    selector: Selector | None
    namespaces: tuple[str, ...]
    namespace_selector: Selector | None


@dataclass(frozen=True, slots=True, eq=False)
class Pod:
    """A pod, or one of a template's equal pods: two are the same only if they are the same object.

    Attributes:
        name: Human-readable name.
        names: Extended resources that it names, even with a count of 0: the admission uses them.
        largest: Maximum number of devices of one kind that one of its containers requests.
        selector: Its nodeSelector.
        terms: Alternatives of its required node affinity; None if it has none.
        liked: (weight, term) of its preferred node affinity.
        near, apart: Required pod affinity and anti-affinity.
        node_name: Node that it names itself, bypassing the scheduler; "" if it names none.
        claims: Its claims of devices.
        ending: Whether it is being deleted: topology spread no longer counts it.
    """

    name: str
    namespace: str
    labels: Mapping[str, str]
    request: Request
    names: tuple[str, ...] = ()
    largest: int = 0
    tolerations: tuple[Tree, ...] = ()
    selector: Mapping[str, str] = field(default_factory=dict)
    terms: tuple[Tree, ...] | None = None
    liked: tuple[tuple[int, Tree], ...] = ()
    spreads: tuple[Spread, ...] = ()
    near: tuple[Company, ...] = ()
    apart: tuple[Company, ...] = ()
    node_name: str = ""
    claims: tuple[PodClaim, ...] = ()
    ending: bool = False

    @property
    def needs_devices(self) -> bool:
        """Whether it requests or claims devices; other pods can run on nodes outside of the pools."""
        return bool(self.request.devices or self.claims)


def read_pod(
    metadata: object,
    spec: object,
    *,
    name: str = "",
    namespace: str = "",
    claims: tuple[PodClaim, ...] = (),
) -> Pod:
    """Read a pod or a pod template.

    Args:
        metadata: Provides the labels, and name and namespace unless given below.
        spec: Pod spec of any shape.
        name: Human-readable name; "" for that in the metadata.
        namespace: Namespace of a template's pods; "" for that in the metadata.
        claims: Its claims; those of a running pod are found in the claims themselves.
    """
    space = namespace or text(metadata, "namespace") or "default"
    labels = texts(metadata, "labels")
    affinity = tree(spec, "affinity")
    required = at(affinity, "nodeAffinity", REQUIRED)
    return Pod(
        name=name or text(metadata, "name"),
        namespace=space,
        labels=labels,
        request=pod_request(spec),
        names=requested_names(spec),
        largest=most_devices(spec),
        tolerations=tuple(trees(spec, "tolerations")),
        selector=texts(spec, "nodeSelector"),
        terms=None if required is None else tuple(trees(required, "nodeSelectorTerms")),
        liked=tuple(
            (number(item, "weight"), tree(item, "preference")) for item in trees(affinity, "nodeAffinity", PREFERRED)
        ),
        spreads=tuple(
            _spread(item, labels)
            for item in trees(spec, "topologySpreadConstraints")
            if text(item, "whenUnsatisfiable") in {"", "DoNotSchedule"}
        ),
        near=_companies(affinity, "podAffinity", labels, space),
        apart=_companies(affinity, "podAntiAffinity", labels, space),
        node_name=text(spec, "nodeName"),
        claims=claims,
        ending=at(metadata, "deletionTimestamp") is not None,
    )


def _spread(item: Tree, labels: Mapping[str, str]) -> Spread:
    return Spread(
        key=text(item, "topologyKey"),
        max_skew=number(item, "maxSkew") or 1,
        min_domains=number(item, "minDomains") or 1,
        selector=_with_keys(item, labels, ("matchLabelKeys", "In")),
        honours_affinity=text(item, "nodeAffinityPolicy") != "Ignore",
        honours_taints=text(item, "nodeTaintsPolicy") == "Honor",
    )


def _companies(affinity: Tree, kind: str, labels: Mapping[str, str], namespace: str) -> tuple[Company, ...]:
    return tuple(_company(item, labels, namespace) for item in trees(affinity, kind, REQUIRED))


def _company(item: Tree, labels: Mapping[str, str], namespace: str) -> Company:
    named, selector = strings(item, "namespaces"), read_selector(at(item, "namespaceSelector"))
    return Company(
        key=text(item, "topologyKey"),
        selector=_with_keys(item, labels, ("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")),
        namespaces=named or ((namespace,) if selector is None else ()),
        namespace_selector=selector,
    )


def _with_keys(item: Tree, labels: Mapping[str, str], *fields: tuple[str, Literal["In", "NotIn"]]) -> Selector | None:
    """Return a selector with the pod's values of matchLabelKeys and mismatchLabelKeys, as the API server adds them."""
    selector = read_selector(at(item, "labelSelector"))
    if selector is None:
        return None
    added = tuple(
        {"key": key, "operator": operator, "values": [labels[key]]}
        for name, operator in fields
        for key in strings(item, name)
        if key in labels
    )
    return Selector(selector.pairs, (*selector.requirements, *added))
