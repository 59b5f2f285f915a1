"""The claims of one pod: whether the scheduler tries it, and which devices it would get on a node.

In scope: named and generated claims, claims that are allocated already, extended resources that a class serves.
Out of scope: the search (`allocation`), writing to the API.

Source: kubernetes pkg/scheduler/framework/plugins/dynamicresources (1.36).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.scheduler.allocation import InvalidPools, allocate, choices_of
from gpukube_sandbox.kube.scheduler.devices import IMPLICIT
from gpukube_sandbox.kube.scheduler.extended import extended_claim
from gpukube_sandbox.kube.store.gates import EXTENDED_RESOURCES
from gpukube_sandbox.kube.store.objects import labels, meta, name_of, namespace_of, owner_uids, spec, status
from gpukube_sandbox.kube.store.quantities import is_extended
from gpukube_sandbox.kube.store.selectors import matches_term

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_sandbox.kube.scheduler.devices import DeviceState
    from gpukube_sandbox.kube.scheduler.snapshot import NodeView
    from gpukube_sandbox.kube.store.objects import JsonObject

_MOST_CHOICES = 8


@dataclass(frozen=True, slots=True)
class Grant:
    """What a pod gets on one node.

    Attributes:
        allocations: Claims that are not allocated yet, with their allocation.
        extended: The claim to create for extended resources, if any, whose allocation is the last one; and which
            container uses which of its requests.
        rank: How much the first choices of `firstAvailable` were preferred; more is better.
    """

    allocations: tuple[tuple[JsonObject, JsonObject], ...] = ()
    extended: tuple[JsonObject, list[JsonObject]] | None = None
    rank: int = 0


@dataclass(slots=True)
class PodClaims:
    """The claims of a pod that is not bound.

    Attributes:
        requested: Resources that the pod requests.
        grants: Name of a node that was checked -> what the pod gets there.
    """

    pod: JsonObject
    requested: Mapping[str, int]
    state: DeviceState
    version: tuple[int, int]
    grants: dict[str, Grant] = field(default_factory=dict)
    _claims: list[JsonObject] = field(init=False)
    _delegated: dict[str, str] = field(init=False)
    _far: list[JsonObject] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        found = (self.state.claims.get((namespace_of(self.pod), name)) for name in claim_names(self.pod).values())
        self._claims = [claim for claim in found if claim is not None]
        self._delegated = self._find_delegated()

    def _find_delegated(self) -> dict[str, str]:
        """Return the extended resources that a pod requests and a class serves, with the class."""
        if self.version < EXTENDED_RESOURCES or not self.state.classes:
            return {}
        names = [name for name, amount in self.requested.items() if amount and _is_extended_of_class(name)]
        found = {name: self.state.class_for(name) for name in names}
        return {name: kind for name, kind in found.items() if kind}

    @property
    def is_empty(self) -> bool:
        """Whether the pod has nothing to do with claims."""
        return not self._claims and not self._delegated

    @property
    def blocked(self) -> str:
        """Return why the pod fits no node: a class that does not exist; "" if nothing prevents it."""
        for claim in self._unallocated():
            for request in (spec(claim).get("devices") or {}).get("requests") or ():
                for name, one in choices_of(request):
                    if one.get("deviceClassName") not in self.state.classes:
                        return f"request {name}: device class {one.get('deviceClassName')} does not exist"
        return ""

    def _unallocated(self) -> list[JsonObject]:
        return [claim for claim in self._claims if not status(claim).get("allocation")]

    def serves(self, resource: str, view: NodeView) -> bool:
        """Return whether devices of a class serve an extended resource on a node that does not advertise it."""
        return resource in self._delegated and not view.room[resource]

    def refuses(self, view: NodeView) -> str:
        """Return why the pod cannot have its devices on a node; "" if it can, then `grants` has them.

        Raises:
            AllocationError: No node can be tried.
        """
        if self.is_empty:
            return ""
        claims = self._unallocated()
        extended = None
        served = {name: kind for name, kind in self._delegated.items() if self.serves(name, view)}
        if served:
            extended = extended_claim(self.pod, served)
            claims = [*claims, extended[0]]
        found: list[JsonObject] | None = []
        if claims:
            try:
                found = allocate(view.node, claims, self.state)
            except InvalidPools:
                return "invalid resource pools were encountered"
        if found is None:
            return "cannot allocate all claims"
        far = [claim for claim in self._claims if not _is_near(claim, view.node)]
        if far:
            self._far += far
            return "resourceclaim not available on the node"
        pairs = tuple(zip(claims, found, strict=True))
        self.grants[view.name] = Grant(pairs, extended, sum(_preference(*pair) for pair in pairs))
        return ""

    @property
    def idle(self) -> JsonObject | None:
        """A claim that no other pod uses and whose devices keep the pod off a node that was checked."""
        own = {meta(self.pod).get("uid")}
        return next(
            (claim for claim in self._far if {one.get("uid") for one in status(claim).get("reservedFor") or ()} <= own),
            None,
        )


def has_missing_claim(pod: JsonObject, state: DeviceState) -> bool:
    """Return whether a claim is missing, leaving, or another pod's: the scheduler skips such a pod without an event."""
    names = claim_names(pod)
    for item in spec(pod).get("resourceClaims") or ():
        claim = state.claims.get((namespace_of(pod), names.get(item["name"], "")))
        if claim is None or meta(claim).get("deletionTimestamp"):
            return True
        if item.get("resourceClaimTemplateName") and meta(pod).get("uid") not in owner_uids(claim):
            return True
    return False


def _is_extended_of_class(name: str) -> bool:
    """Return whether a resource name may be one that a class serves, explicitly or by its own name."""
    return is_extended(name) or name.startswith(IMPLICIT)


def claim_names(pod: JsonObject) -> dict[str, str]:
    """Return the pod's name of each claim -> name of the ResourceClaim, of those that exist."""
    generated = {
        item["name"]: item.get("resourceClaimName") or "" for item in status(pod).get("resourceClaimStatuses") or ()
    }
    named = {
        item["name"]: item.get("resourceClaimName") or generated.get(item["name"], "")
        for item in spec(pod).get("resourceClaims") or ()
    }
    return {name: claim for name, claim in named.items() if claim}


def _is_near(claim: JsonObject, node: JsonObject) -> bool:
    """Return whether the devices of an allocated claim are available on a node."""
    selector = (status(claim).get("allocation") or {}).get("nodeSelector")
    if not selector:
        return True
    return any(matches_term(term, labels(node), name_of(node)) for term in selector.get("nodeSelectorTerms") or ())


def _preference(claim: JsonObject, allocation: JsonObject) -> int:
    chosen = {result["request"] for result in allocation["devices"]["results"]}
    return sum(
        _MOST_CHOICES - number
        for request in spec(claim)["devices"].get("requests") or ()
        for number, one in enumerate(request.get("firstAvailable") or ())
        if f"{request['name']}/{one['name']}" in chosen
    )
