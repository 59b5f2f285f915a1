"""What a live cluster excludes: checks that need one look at it and no write.

In scope: what is read of the cluster, and pure checks of a target against it. Out of scope: calls
(`live.client`), what can be known without the cluster (`checks`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube.core.jsontree import at, tree
from gpukube.errors import Finding
from gpukube_aks.facts.images import check_skew

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube.core.values import Target


@dataclass(frozen=True, slots=True)
class ClusterState:
    """What the checks go by.

    Attributes:
        version: Of the control plane, "1.34.2"; "" when Azure does not tell.
        provisions_nodes: Whether node auto-provisioning is on.
        identity: "SystemAssigned" or "UserAssigned"; "" when Azure does not tell.
    """

    version: str
    provisions_nodes: bool
    identity: str


def read_cluster(native: Mapping[str, object]) -> ClusterState:
    """Read a managed cluster in its wire form."""
    properties = tree(native, "properties")
    return ClusterState(
        version=str(properties.get("currentKubernetesVersion") or properties.get("kubernetesVersion") or ""),
        provisions_nodes=at(properties, "nodeProvisioningProfile", "mode") == "Auto",
        identity=str(at(native, "identity", "type") or ""),
    )


def check_cluster(target: Target, state: ClusterState) -> list[Finding]:
    """Find what AKS would refuse of this pool on this cluster."""
    return list(_problems(target, state))


def _problems(target: Target, state: ClusterState) -> Iterator[Finding]:
    if skew := check_skew(target, state.version):
        yield skew
    key = target.cluster.key
    if state.provisions_nodes and target.nodes.autoscaled:
        yield Finding(
            "node-auto-provisioning",
            target.locator.at("nodes.autoscaling"),
            f"node auto-provisioning of {key} is enabled, which excludes autoscaled pools",
            fix="write nodes.count, or set the cluster's nodeProvisioningProfile.mode to Manual",
            why="coder/envbuilder#143",
        )
    if state.identity == "SystemAssigned" and target.capacity.type == "reserved":
        yield Finding(
            "reservation-identity",
            target.locator.at("capacity.type"),
            f"{key} has a system-assigned identity, which cannot use capacity reservations",
            fix="assign an identity that is Contributor where the reservation is: az aks update --assign-identity ID",
            why="learn.microsoft.com/azure/aks/use-capacity-reservation-groups",
        )
