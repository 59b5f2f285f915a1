"""Checks a target against the live cluster, which is only read.

In scope: the cluster's relevant state, and pure checks of a target against it. Out of scope: calls (`live.client`),
checks that need no cluster (`checks`).
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
    """State of the cluster that the checks use.

    Attributes:
        version: Version of the control plane, "1.34.2"; "" if unknown.
        provisions_nodes: Whether node auto-provisioning is on.
        identity: "SystemAssigned" or "UserAssigned"; "" if unknown.
    """

    version: str
    provisions_nodes: bool
    identity: str


def read_cluster(native: Mapping[str, object]) -> ClusterState:
    """Parse a managed cluster in wire form."""
    properties = tree(native, "properties")
    return ClusterState(
        version=str(properties.get("currentKubernetesVersion") or properties.get("kubernetesVersion") or ""),
        provisions_nodes=at(properties, "nodeProvisioningProfile", "mode") == "Auto",
        identity=str(at(native, "identity", "type") or ""),
    )


def check_cluster(target: Target, state: ClusterState) -> list[Finding]:
    """Report what AKS would reject in this pool on this cluster."""
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
