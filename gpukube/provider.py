"""The seam between gpukube and a cloud: two protocols, and how a provider is found.

A provider comes in two halves. `Provider` is pure: it needs no SDK, no network and no clock, so plan and
tests run without them. `Cloud` is what `Provider.connect` returns: the live half, one per cluster.

A provider package announces itself by an entry point in the group `gpukube.providers`; nothing in gpukube
names one. It is loaded when a spec names its cloud, never to list what exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Literal, Protocol

from gpukube.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import (
        Change,
        ClusterFacts,
        ClusterRef,
        Desired,
        KubeAccess,
        NodeStack,
        Observed,
        Operation,
        Ownership,
        Progress,
        Promise,
        Request,
        Settings,
        Target,
        UpdateRow,
    )
    from gpukube.errors import Diagnostic

__all__ = ["ENTRY_POINT_GROUP", "FEATURES", "Ability", "Cloud", "Provider", "load_provider", "provider_names"]

ENTRY_POINT_GROUP = "gpukube.providers"

FEATURES = (
    "nodes.count",
    "nodes.autoscaling",
    "capacity.spot",
    "zones",
    "disk.size",
    "disk.type",
    "sharing.mig.single",
    "sharing.mig.mixed",
    "sharing.timeSlicing",
    "sharing.mps",
    "taints",
    "gpuTaint",
    "labels",
    "tags",
    "deletionProtection",
)
"""Features of the spec that every provider must judge in `Provider.abilities`: none may be silent."""


@dataclass(frozen=True, slots=True)
class Ability:
    """How faithfully a cloud does a feature of the spec.

    Attributes:
        fidelity: "exact", "emulated" (by the substitute named) or "missing".
        substitute: What is done instead; "" when exact.
        reason: Why; "" when exact.
    """

    fidelity: Literal["exact", "emulated", "missing"]
    substitute: str = ""
    reason: str = ""


class Provider(Protocol):
    """The pure half of a cloud. Constructed without arguments; holds no state."""

    @property
    def name(self) -> str:
        """Name in the spec: `provider: aks`."""

    @property
    def pools_at_once(self) -> int:
        """How many pools of one cluster may change at the same time; 1 where the cloud serialises them."""

    def abilities(self) -> Mapping[str, Ability]:
        """Say for every feature of the spec ("sharing.mig", "capacity.spot", ...) how faithful this cloud is."""

    def check(self, target: Target) -> list[Diagnostic]:
        """Find what this cloud would refuse, before any call: names, limits, combinations. Empty when all is well."""

    def stack(self, target: Target) -> NodeStack:
        """Say what the nodes of this pool bring before anything is installed."""

    def desired(self, target: Target, ownership: Ownership, promise: Promise) -> Desired:
        """Translate a checked target. The create request carries our ownership marks."""

    def delete_request(self, cluster: ClusterRef, observed: Observed) -> Request:
        """Make the call that deletes this pool."""

    def recreate_request(self, desired: Desired, observed: Observed) -> Request | None:
        """Make the call that repairs a pool of ours that failed at creation, or None when it must be deleted first."""

    def follow_up(self, desired: Desired, observed: Observed) -> Request | None:
        """Make the call that a fresh pool still needs because creation could not carry it, or None.

        Asked again after each such call, and for every pool of ours that create finds: a run that was killed in
        between is completed by the next.
        """

    def update_row(self, change: Change) -> UpdateRow:
        """Say what changing this field does. Every key of Desired.fields has a row."""

    def connect(self, cluster: ClusterRef, settings: Settings) -> Cloud:
        """Make the live half. Imports the SDK; makes no call yet.

        Raises:
            MissingExtra: The SDK is not installed; the fix names the extra.
        """


class Cloud(Protocol):
    """The live half: one cluster, thread-safe, made once and shared.

    All methods raise our errors only: AccessError, CapacityError, QuotaError, Conflict, CloudError.
    """

    def identify(self) -> ClusterFacts:
        """Check that we are who the spec says and that the cluster is there.

        Raises:
            AccessError: Not authenticated, not authorised, or another account or subscription than the spec names.
            CloudError: No such cluster; endpoint unreachable.
        """

    def pools(self) -> tuple[Observed, ...]:
        """List every pool of the cluster, of all owners, all pages."""

    def complete(self, desired: Desired) -> Desired:
        """Fill in what only the live cluster knows (a role, subnets, a zone) and the user left open.

        Reads only. Returns the argument where nothing is open.

        Raises:
            SpecError: What is open has no answer or several; names the candidates.
        """

    def send(self, request: Request) -> Operation:
        """Start a change and return at once.

        A create of a pool that exists raises Conflict (observe, then decide). A delete of a missing pool
        returns an operation that is already done. A busy cluster raises Conflict with code "busy" after
        the SDK's own retries.
        """

    def poll(self, operation: Operation) -> Progress:
        """Look once at a running operation. Never raises for a failed operation: Progress.error carries it."""

    def kube_access(self) -> KubeAccess:
        """Get a complete kubeconfig for the cluster's Kubernetes API, without any cloud command line tool."""

    def close(self) -> None:
        """Close connections; the object is not used afterwards."""


@cache
def provider_names() -> tuple[str, ...]:
    """List the installed providers by name without loading any."""
    return tuple(sorted({point.name for point in entry_points(group=ENTRY_POINT_GROUP)}))


@cache
def load_provider(name: str) -> Provider:
    """Load one provider by its name in the spec.

    Raises:
        MissingExtra: No installed package announces this provider; names those that are installed.
    """
    for point in entry_points(group=ENTRY_POINT_GROUP, name=name):
        provider: Provider = point.load()()
        return provider
    known = ", ".join(provider_names()) or "none"
    raise MissingExtra(
        f'no provider for "{name}" is installed',
        where=name,
        fix=f"use one of the installed providers ({known}), or install the package that brings {name}",
        code="no-provider",
    )
