"""The part of the store's interface that rules use.

It is separate so that rules do not depend on the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.kinds import Kind
    from gpukube_sandbox.kube.store.objects import JsonObject


class Holding(Protocol):
    """The objects of a cluster (`store.Store`).

    Attributes:
        limits_critical_pods: Critical pods outside kube-system require a quota that names their class, as on GKE.
        tolerates_compute_classes: Pods that select a ComputeClass tolerate its taint, as on GKE.
    """

    limits_critical_pods: bool
    tolerates_compute_classes: bool

    def find(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        """Return an object, if it exists."""

    def all_of(self, kind: Kind, namespace: str = "") -> list[JsonObject]:
        """Return the objects of a type."""

    def create(self, kind: Kind, obj: JsonObject) -> JsonObject:
        """Store a new object."""
