"""Additional networks of GKE nodes as resources: which Network objects a node serves.

In scope: the resources. Out of scope: the objects' types (`gke.networks`), which networks a pool has.

Source: docs: kubernetes-engine/how-to/setup-multinetwork (a Device network is one resource, an L3 network its
addresses); GoogleCloudPlatform/gke-networking-api apis/network/v1. How a node counts addresses is unconfirmed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube_sandbox.kube.store.objects import name_of, spec

if TYPE_CHECKING:
    from gpukube_sandbox.kube.nodes.machines import Machine
    from gpukube_sandbox.kube.store.objectapi import ObjectApi

NETWORKS, PARAMETERS = "networks", "gkenetworkparamsets"
_PREFIX: Final = "networking.gke.io.networks/"
_OWNER: Final = "gke-networking"
_ADDRESSES: Final = 128


async def register_networks(api: ObjectApi, machine: Machine) -> None:
    """Register the networks of a machine for which the cluster has a Network and its parameters."""
    if not machine.shape.networks:
        return
    parameters = {name_of(one): spec(one) for one in await api.list(PARAMETERS)}
    found: dict[str, int] = {}
    for network in await api.list(NETWORKS):
        given = parameters.get((spec(network).get("parametersRef") or {}).get("name", ""), {})
        if (given.get("vpc"), given.get("vpcSubnet")) not in machine.shape.networks:
            continue
        name, is_device = f"{_PREFIX}{name_of(network)}", spec(network).get("type") == "Device"
        found |= {name: 1, f"{name}.IP": 1} if is_device else {f"{name}.IP": _ADDRESSES}
    gone = {name for name, owner in machine.owners.items() if owner == _OWNER} - found.keys()
    machine.unregister(frozenset(gone))
    machine.register(_OWNER, found, frozenset())
