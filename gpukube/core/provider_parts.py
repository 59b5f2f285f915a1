"""Parts of a provider: requests for live pools, and optional extras.

In scope: their types, and defaults of missing ones. Out of scope: any one cloud; loading parts (gpukube.provider).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from gpukube.core.in_cluster import InClusterFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpukube.core.capacity_sources import CloudCapacity
    from gpukube.core.cloud_catalog import CloudCatalog
    from gpukube.core.cloud_check import Diagnosis
    from gpukube.core.durations import CloudDurations
    from gpukube.core.exporting import Exporter
    from gpukube.core.fields import FieldPath
    from gpukube.core.managers import Manager
    from gpukube.core.members import Chosen
    from gpukube.core.permissions import CloudPolicy, PolicyScope
    from gpukube.core.quotas import CloudQuotas
    from gpukube.core.scaling_order import ClassOrder, GroupOrder
    from gpukube.core.upgrades import NodeMarks, NodeOffer, NodeSystem, UpgradeTerms
    from gpukube.core.values import Change, ClusterFacts, ClusterRef, Desired, Nodes, Observed, Request
    from gpukube.errors import Finding


def _none(*_: object) -> None:
    return None


def _unchanged(desired: Desired, _: Observed) -> Desired:
    return desired


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRequests:
    """Functions that build requests for live pools; the create request is part of `Provider.desired`. Pure.

    Attributes:
        delete: Deletes this pool.
        update: Changes the pool in place, with calls in the order in which they must be sent: one call per group of
            fields that the cloud changes together. Each contains only the changed fields or, if the cloud accepts only
            the whole pool, the observed pool with the changes merged in, guarded by its etag. After each call the
            engine re-reads the pool and calls this again for the remaining changes, so only the first call is sent as
            returned; the plan shows all. The changes are those whose row is in-place or disruptive, including gpukube's
            labels if a pool is adopted. Raises SpecError if the live pool does not allow a change.
        scale: Changes only the size or bounds of a live pool. Numbers are totals of the pool: bounds if it is
            autoscaled, else the count. Raises SpecError if the cloud does not support the number, such as a total that
            is not a multiple of the zones.
        release: Only removes gpukube's labels and tags from a live pool; empty if it has none. The copy in the tags is
            removed before the labels: if the run is killed in between, gpukube still owns the pool. RELEASED_LABEL
            remains, with the pool's name in its spec; if the cloud cannot change the copy, the label invalidates it,
            and `Observed.copy` of such a pool is None.
        carry: Adds to a live pool's replacement what it takes over without a field of the spec: content of others that
            gpukube neither interprets nor shows. Returns the desired pool unchanged if there is none. Raises SpecError
            if the new pool cannot have it next to what the spec says.
        keep: Writes what `carry` added where it survives a kill between deleting the live pool and creating it again;
            sent before the deletion. None if there is nothing to keep. The next run reads it as a pool without fields.
        recreate: Repairs gpukube's pool after a failed creation; None if it must be deleted first.
        follow_up: The next call that a new pool needs because creation could not include it, or None. Called again
            after each such call, and for each of gpukube's existing pools on create: so the next run completes one that
            was killed.
        copy: Copies a live pool's gpukube.io labels to its tags; sent before a second pool with the same labels is
            created, as the copies distinguish the two from pools that others copied. None if the copy exists or is
            another pool's, or if the cloud sets it only at creation, or not at all.
        freeze: Fixes a live pool at its current size; None if that changes nothing. Sent before the pool is drained:
            an autoscaler would add nodes to it for the evicted pods.
    """

    delete: Callable[[ClusterRef, Observed], Request]
    update: Callable[[Desired, Observed, Sequence[Change]], tuple[Request, ...]]
    scale: Callable[[ClusterRef, Observed, Nodes], Request]
    release: Callable[[ClusterRef, Observed], tuple[Request, ...]]
    carry: Callable[[Desired, Observed], Desired] = _unchanged
    keep: Callable[[Desired, Observed], Request | None] = _none
    recreate: Callable[[Desired, Observed], Request | None] = _none
    follow_up: Callable[[Desired, Observed], Request | None] = _none
    copy: Callable[[ClusterRef, Observed], Request | None] = _none
    freeze: Callable[[ClusterRef, Observed], Request | None] = _none


class NodeUpgrades(Protocol):
    """A provider's support for upgrades of live pools."""

    def system(self, observed: Observed) -> NodeSystem:
        """Return the version and image of the nodes."""

    def terms(self, observed: Observed, facts: ClusterFacts) -> UpgradeTerms:
        """Describe the effect of an upgrade on this pool's nodes and their pods."""

    def upgraded(self, desired: Desired, observed: Observed, offer: NodeOffer) -> Desired:
        """Declare the offered versions if the spec names none: the differences are then ordinary changes.

        Newer live versions are kept.
        """

    def marks(self, observed: Observed) -> NodeMarks:
        """Describe how to recognize nodes with this pool's current configuration."""

    def unfinished(self, observed: Observed) -> str:
        """Describe the sign that a failed pool's upgrade is incomplete and that repairing the pool continues it.

        Returns:
            "" if there is no such sign, or the cloud would not continue.
        """


class PoolMembers(Protocol):
    """A provider's view of every member of a live pool's API object."""

    def chosen(self, observed: Observed) -> tuple[Chosen, ...]:
        """Return the members whose value differs from what the service fills in for a pool made without them."""

    def lost(self, observed: Observed, desired: Desired) -> tuple[Chosen, ...]:
        """Return the chosen members that a new pool, made by `desired.create`, would not have."""


class Extras:
    """Optional parts of a cloud. A provider overrides them in a subclass; the defaults mean "none"."""

    pools_at_once: int = 1
    """How many pools of one cluster may change at the same time; 1 if the cloud serializes them."""
    starts_empty: bool = False
    """Whether a pool can be created with no nodes and then scaled, so that a stock-out leaves no failed pool."""
    capacity_wait_s: float = 1800
    """How long to wait for the machines of a pool of fixed size before its next alternative is tried."""
    outcome_ttl_s: float = 180.0
    """How long a refusal for lack of machines counts before the same place is tried again."""
    tolerates_resources: bool = False
    """Whether its clusters run Kubernetes' admission plugin ExtendedResourceToleration, which lets a pod tolerate
    NoSchedule taints whose key is the name of a resource that the pod requests."""
    claims_advice: str = ""
    """Where the cloud advises the DRA driver for new pools, from `claims.OLDEST_KUBERNETES` on; "" if it does not."""
    in_cluster: InClusterFacts = InClusterFacts()
    """What the cloud installs in its clusters: labels, conditions, and device plugins that identify it."""
    diagnosis: Diagnosis | None = None
    """The doctor's checks of this cloud's pools."""
    catalog: CloudCatalog | None = None
    """This cloud's part of `gpukube catalog`, and how it is refreshed."""
    capacity: CloudCapacity | None = None
    """What it reports about the machines that are available now, for `gpukube capacity find`."""
    order: GroupOrder | ClassOrder | None = None
    """What gives its autoscaler the order of the pools of an autoscaled family; None if nothing does."""
    quotas: CloudQuotas | None = None
    """Quotas that its nodes count against; read by `Cloud.quotas`."""
    durations: CloudDurations | None = None
    """How long changes of pools take."""
    exporters: Mapping[str, Exporter] = MappingProxyType({})
    """Exporters for `gpukube pool export --to`, by target."""
    upgrades: NodeUpgrades | None = None
    """Its support for newer versions of live pools' nodes; read by `Cloud.newest`."""
    policies: Callable[[PolicyScope], tuple[CloudPolicy, ...]] = staticmethod(lambda _: ())
    """Returns the least-privilege policies that gpukube needs for these clusters: at least one per account,
    subscription, or project. Makes no call."""
    members: PoolMembers | None = None
    """Classifies every member of live pools, so that imports and replacements report each one that they lose."""
    carried: Callable[[Observed], str] = staticmethod(lambda _: "")
    """Describes what a replacement takes over from a live pool without a field of the spec, as a clause without values
    that may be secret; "" for nothing."""
    managers: Callable[[Observed], tuple[Manager, ...]] = staticmethod(lambda _: ())
    """Returns other managers of a live pool, by signs in its API object. Such a tool can revert gpukube's changes, so
    the pool is adopted only on request."""
    chosen_fields: Callable[[Observed], Mapping[FieldPath, object]] = staticmethod(lambda observed: observed.fields)
    """Returns the fields of a live pool that a person chose, in the spec's form: without the cloud's defaults, and
    without values that follow from another field."""
    check_coexistence: Callable[[Desired, Observed], list[Finding]] = staticmethod(lambda _successor, _observed: [])
    """Returns obstacles to a live pool and its replacement existing at the same time: errors are certain, warnings
    cannot be verified in advance. Names are checked by `Provider.check`."""
