"""What a provider is made of besides its few members: the calls for live pools, and extras that a cloud may lack.

In scope: their shapes, and the defaults of what is missing. Out of scope: any cloud; how parts are loaded
(gpukube.provider).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from gpukube.core.in_cluster import InClusterFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpukube.core.cloud_catalog import CloudCatalog
    from gpukube.core.cloud_check import Diagnosis
    from gpukube.core.durations import CloudDurations
    from gpukube.core.exporting import Exporter
    from gpukube.core.fields import FieldPath
    from gpukube.core.managers import Manager
    from gpukube.core.permissions import CloudPolicy, PolicyScope
    from gpukube.core.quotas import CloudQuotas
    from gpukube.core.upgrades import NodeMarks, NodeOffer, NodeSystem, UpgradeTerms
    from gpukube.core.values import Change, ClusterFacts, ClusterRef, Desired, Nodes, Observed, Request
    from gpukube.errors import Finding


def _none(*_: object) -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRequests:
    """How the calls for live pools are made; the create call is part of `Provider.desired`. Pure.

    Attributes:
        delete: Deletes this pool.
        update: Makes these changes in place, in the order in which the calls must be sent: one call per group of fields
            that the cloud changes together. Each carries the changed fields only, or, where the cloud takes nothing
            less than the whole pool, the pool as observed with the changes merged in, guarded by its etag. After each
            call the engine looks again and asks anew for what is still to do, so only the first is sent as it is
            here; all are shown in the plan. The changes are those whose row is in-place or disruptive; our marks are
            among them when a pool is adopted. Raises SpecError where the live pool does not allow one.
        scale: Gives a live pool another size, or other bounds, and changes nothing else. Numbers are totals of the
            pool; of an autoscaled one the bounds count, of another one the count. Raises SpecError where the cloud
            cannot do that number: a total that its zones do not divide.
        release: Takes our marks off a live pool and changes nothing else; empty when it has none. The copy in the tags
            goes before the labels: a run that is killed in between leaves a pool that is still ours. RELEASED_LABEL
            stays with the pool's name in its spec; where the cloud cannot change the copy, the label makes it void,
            and `Observed.copy` of such a pool is None.
        recreate: Repairs a pool of ours that failed at creation; None when it must be deleted first.
        follow_up: What a fresh pool still needs because creation could not carry it, or None. Asked again after each
            such call, and for every pool of ours that create finds: the next run completes one that was killed.
        copy: Writes the copy of a live pool's marks into its tags, as its labels have them; sent before a second pool
            with the same marks is made, as the copies tell the two from pools that others copied. None where the copy
            is there, is that of another pool, or the cloud writes it at creation only, or not at all.
        freeze: Keeps a live pool at the size it has; None where nothing would change it. Sent before the pool is
            emptied: an autoscaler would give it new nodes for the pods that have to leave.
    """

    delete: Callable[[ClusterRef, Observed], Request]
    update: Callable[[Desired, Observed, Sequence[Change]], tuple[Request, ...]]
    scale: Callable[[ClusterRef, Observed, Nodes], Request]
    release: Callable[[ClusterRef, Observed], tuple[Request, ...]]
    recreate: Callable[[Desired, Observed], Request | None] = _none
    follow_up: Callable[[Desired, Observed], Request | None] = _none
    copy: Callable[[ClusterRef, Observed], Request | None] = _none
    freeze: Callable[[ClusterRef, Observed], Request | None] = _none


class NodeUpgrades(Protocol):
    """What a provider knows of upgrades of its live pools."""

    def system(self, observed: Observed) -> NodeSystem:
        """Read what the nodes are made from."""

    def terms(self, observed: Observed, facts: ClusterFacts) -> UpgradeTerms:
        """Describe what an upgrade does to the nodes of this pool and to their pods."""

    def upgraded(self, desired: Desired, observed: Observed, offer: NodeOffer) -> Desired:
        """Declare what is on offer where the spec declares nothing: the differences are then ordinary changes.

        What is newer on the live pool stays.
        """

    def marks(self, observed: Observed) -> NodeMarks:
        """Describe how nodes are known that are made from what this pool says now."""

    def unfinished(self, observed: Observed) -> str:
        """Tell by what a failed pool shows that an upgrade stopped half-way, and that repairing it goes on with that.

        Returns:
            "" where nothing shows it, or the cloud would not go on.
        """


class Extras:
    """What a cloud may have besides. A provider sets what it has in a subclass; the defaults stand for "nothing"."""

    pools_at_once: int = 1
    """How many pools of one cluster may change at the same time; 1 where the cloud serializes them."""
    tolerates_resources: bool = False
    """Whether its clusters run Kubernetes' admission plugin ExtendedResourceToleration, which lets a pod tolerate
    NoSchedule taints whose key is the name of a resource that the pod requests."""
    in_cluster: InClusterFacts = InClusterFacts()
    """What the cloud puts into its clusters: labels, conditions and device plugins by which they are known."""
    diagnosis: Diagnosis | None = None
    """What the doctor checks of this cloud's pools."""
    catalog: CloudCatalog | None = None
    """What `gpukube catalog` knows of this cloud, and how it is refreshed."""
    quotas: CloudQuotas | None = None
    """What its nodes count against; read by `Cloud.quotas`."""
    durations: CloudDurations | None = None
    """How long changes of pools take."""
    exporters: Mapping[str, Exporter] = MappingProxyType({})
    """What `gpukube pool export --to` can write of this cloud's pools, by target."""
    upgrades: NodeUpgrades | None = None
    """What it knows of newer versions for nodes of live pools; read by `Cloud.newest`."""
    policies: Callable[[PolicyScope], tuple[CloudPolicy, ...]] = staticmethod(lambda _: ())
    """Writes the policies of this cloud that allow what gpukube does with these clusters, and nothing more: at least
    one per account, subscription or project. Makes no call."""
    managers: Callable[[Observed], tuple[Manager, ...]] = staticmethod(lambda _: ())
    """Finds what else manages a live pool, by the signs that its API shows. A tool that keeps pools as it made them
    reverts what gpukube changes, so such a pool is adopted on demand only."""
    chosen_fields: Callable[[Observed], Mapping[FieldPath, object]] = staticmethod(lambda observed: observed.fields)
    """Returns the fields of a live pool that a person chose, as a spec writes them: without what the cloud gives by
    itself, and without what follows from another field."""
    check_coexistence: Callable[[Desired, Observed], list[Finding]] = staticmethod(lambda _successor, _observed: [])
    """Finds why a live pool and the one that replaces it cannot exist at the same time: errors are reasons why not,
    warnings what cannot be known before it is tried. Names are judged by `Provider.check`."""
