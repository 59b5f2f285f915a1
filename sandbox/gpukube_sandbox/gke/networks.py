"""Additional networks of a pool: their names on nodes, and the types that every GKE cluster has for them.

In scope: the CustomResourceDefinitions, and a pool's networks. Out of scope: the resources of nodes
(`kube.nodes.gkenetworks`), which networks exist (`references`).

Source: GoogleCloudPlatform/gke-networking-api apis/network/v1; docs: kubernetes-engine/how-to/setup-multinetwork.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from google.cloud import container_v1 as wire

    from gpukube_sandbox.kube.cluster import KubeCluster
    from gpukube_sandbox.kube.store.objects import JsonObject

_GROUP = "networking.gke.io"
_KINDS = {"Network": "networks", "GKENetworkParamSet": "gkenetworkparamsets"}


def networks_of(pool: wire.NodePool) -> tuple[tuple[str, str], ...]:
    """Return VPC and subnet of a pool's additional networks, by their last names, as GKENetworkParamSets name them."""
    cards = pool.network_config.additional_node_network_configs
    return tuple((card.network.rpartition("/")[2], card.subnetwork.rpartition("/")[2]) for card in cards)


async def apply_network_types(kube: KubeCluster) -> None:
    """Apply the types of additional networks."""
    for kind, plural in _KINDS.items():
        await kube.api.create("customresourcedefinitions", _definition(kind, plural))


def _definition(kind: str, plural: str) -> JsonObject:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{_GROUP}"},
        "spec": {"group": _GROUP, "scope": "Cluster", "names": names, "versions": [version]},
    }
