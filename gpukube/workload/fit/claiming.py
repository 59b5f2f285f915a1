"""The claims of a cluster while pods are placed: what they ask for, and which of them have devices.

Pure. In scope: resolving a pod's claims, shared claims, extended resources that a class serves. Out of scope: the
search (`allocation`), devices of a node (`nodes`).

Source: kubernetes/kubernetes pkg/scheduler/framework/plugins/dynamicresources (1.36).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpukube.gpu.capacity import GPU_RESOURCE
from gpukube.workload.claims import STANDARD_CLASSES, Choice, Claims, ClaimSpec, DeviceRequest, PodClaim
from gpukube.workload.fit.allocation import Verdict, allocate
from gpukube.workload.selectors import matches_term

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from gpukube.core.jsontree import Tree
    from gpukube.workload.devices import Published
    from gpukube.workload.fit.allocation import DeviceKey
    from gpukube.workload.fit.pods import Pod
    from gpukube.workload.offers import NodeShape

_UNSURE: Final = "whether the cluster serves {} by claims, as Kubernetes 1.36 and newer do"


@dataclass(slots=True)
class _Held:
    """A claim with devices.

    Attributes:
        devices: The devices.
        node: The node where it got them; "" for a live one.
        terms: Node selector terms of a live one; () for any node.
        users: Pods that were placed with it.
    """

    devices: tuple[DeviceKey, ...]
    node: str = ""
    terms: tuple[Tree, ...] = ()
    users: int = 0

    def reaches(self, node: str, labels: Mapping[str, str]) -> bool:
        """Return whether a node has the devices."""
        if self.node:
            return self.node == node
        return not self.terms or any(matches_term(term, labels, node) for term in self.terms)


class Board:
    """The claims of one cluster.

    Args:
        claims: Claims, templates, and classes of the files, and of a live cluster.
        live: Whether the cluster was read, so that what is not there does not exist.
    """

    def __init__(self, claims: Claims | None = None, *, live: bool = False) -> None:
        self._claims = claims or Claims()
        self._live = live
        self._classes = self._claims.classes if live else {**STANDARD_CLASSES, **self._claims.classes}
        self._held: dict[str, _Held] = {
            f"{space}/{name}": _Held(found.devices, terms=found.terms)
            for (space, name), found in self._claims.allocated.items()
        }

    @property
    def allocated(self) -> Iterator[DeviceKey]:
        """Devices of live claims."""
        return (device for found in self._claims.allocated.values() for device in found.devices)

    def claims_of(self, pod: Pod, shape: NodeShape) -> tuple[PodClaim, ...]:
        """Return a pod's claims on a node, with one for each extended resource that claims may serve there."""
        found = {claim.shared or f"#{number}": claim for number, claim in enumerate(pod.claims)}
        served = tuple(self._served(pod, shape)) if shape.published.devices else ()
        return (*found.values(), *served)

    def _served(self, pod: Pod, shape: NodeShape) -> Iterator[PodClaim]:
        """Yield claims for extended resources that a node does not advertise itself."""
        for name, count in pod.request.devices.items():
            if shape.count(name) != 0:
                continue
            if device_class := self._claims.extended.get(name):
                choice = Choice(name=name, device_class=device_class, count=count)
                yield PodClaim(name, ClaimSpec((DeviceRequest(name, (choice,)),)), resource=name)
            elif not self._live and name == GPU_RESOURCE:  # that of the chart's class gpu.nvidia.com
                yield PodClaim(name, None, missing=_UNSURE.format(name), resource=name)

    def verdict(
        self,
        claims: Sequence[PodClaim],
        published: Published,
        in_use: Collection[DeviceKey],
        node: str,
        labels: Mapping[str, str],
    ) -> Verdict:
        """Return which devices of a node the claims get that have none yet."""
        for claim in claims:
            held = self._held.get(claim.shared)
            if held is not None and not held.reaches(node, labels):
                return Verdict(why=f"{claim.shared} has its devices on another node")
        waiting = self.open(claims)
        if waiting and not self._live and not published.devices:
            return Verdict(why="the node has no devices that claims get")
        specs: list[ClaimSpec] = []
        for claim in waiting:
            spec = claim.spec or self._live_spec(claim)
            if spec is not None:
                specs.append(spec)
            elif self._live:
                return Verdict(why=f"{claim.missing} is neither among the files nor in the cluster")
            else:
                return Verdict(unknown=claim.missing if claim.resource else f"{claim.missing} is not among the files")
        return allocate(specs, published, in_use, self._classes, classes_known=self._live)

    def open(self, claims: Sequence[PodClaim]) -> list[PodClaim]:
        """Return the claims that have no devices yet."""
        return [claim for claim in claims if claim.shared not in self._held]

    def hold(self, claim: PodClaim, node: str, devices: tuple[DeviceKey, ...]) -> None:
        """Note that a shared claim got devices on a node."""
        self._held[claim.shared] = _Held(devices, node)

    def use(self, claims: Sequence[PodClaim]) -> None:
        """Note that one more pod uses its shared claims."""
        for claim in claims:
            if claim.shared in self._held:
                self._held[claim.shared].users += 1

    def leave(self, claims: Sequence[PodClaim]) -> Iterator[tuple[DeviceKey, ...]]:
        """Note that a pod is gone; yield the devices of shared claims that no placed pod uses any more."""
        for claim in claims:
            held = self._held.get(claim.shared)
            if held is None:
                continue
            held.users -= 1
            if not held.users and held.node:
                del self._held[claim.shared]
                yield held.devices

    def _live_spec(self, claim: PodClaim) -> ClaimSpec | None:
        """Return a claim that is not among the files from the cluster."""
        space, _, name = (claim.shared or claim.template).partition("/")
        return (self._claims.claims if claim.shared else self._claims.templates).get((space, name))
