"""What rules need of the store that they are asked by.

In scope: that face of it, so that a rule does not know the store. Out of scope: a rule, or an object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.kinds import Kind
    from gpukube_sandbox.kube.store.objects import JsonObject


class Holding(Protocol):
    """The objects of a cluster (`store.Store`).

    Attributes:
        limits_critical_pods: Critical pods outside kube-system need a quota that names their class, as on GKE.
    """

    limits_critical_pods: bool

    def find(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        """Look one object up."""

    def all_of(self, kind: Kind, namespace: str = "") -> list[JsonObject]:
        """Return the objects of a type."""

    def create(self, kind: Kind, obj: JsonObject) -> JsonObject:
        """Store a new object."""
