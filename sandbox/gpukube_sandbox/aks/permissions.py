"""Azure RBAC permissions that each ARM call needs, and the errors if they are missing.

In scope: the map from call to action, and the messages. Out of scope: which permissions are denied (`permits`).

Sources: docs: role-based-access-control/permissions/containers, permissions/compute and permissions/general (the
operations of Microsoft.ContainerService, Microsoft.Compute, Microsoft.Resources); the built-in roles Azure Kubernetes
Service Agent Pool Manager Role and Azure Kubernetes Service Contributor Role. The action of placement scores, which
the Compute Recommendations Role contains, is unconfirmed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

from gpukube_sandbox.aks.answers import ArmError, arm_error
from gpukube_sandbox.permits import Need

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from starlette.responses import Response
    from starlette.types import Scope

_CONTAINERS, _COMPUTE = "Microsoft.ContainerService", "Microsoft.Compute"
_RESERVATIONS = f"{_COMPUTE}/capacityReservationGroups/capacityReservations/read"
_POOLS = f"{_CONTAINERS}/managedClusters/agentPools"

_OF_SUBSCRIPTIONS: dict[tuple[str, str], str] = {
    ("GET", ""): "Microsoft.Resources/subscriptions/read",
    ("GET", "locations"): "Microsoft.Resources/subscriptions/locations/read",
    ("GET", "resourcegroups"): "Microsoft.Resources/subscriptions/resourceGroups/read",
    ("GET", "resourcegroups/*"): "Microsoft.Resources/subscriptions/resourceGroups/read",
    ("GET", "providers/microsoft.compute/skus"): f"{_COMPUTE}/skus/read",
    ("GET", "providers/microsoft.compute/locations/*/usages"): f"{_COMPUTE}/locations/usages/read",
    ("POST", "providers/microsoft.compute/locations/*/placementscores/*/generate"): (
        f"{_COMPUTE}/locations/placementScores/generate/action"
    ),
    ("GET", "providers/microsoft.compute/capacityreservationgroups"): f"{_COMPUTE}/capacityReservationGroups/read",
    ("GET", "resourcegroups/*/providers/*/capacityreservationgroups"): f"{_COMPUTE}/capacityReservationGroups/read",
    ("GET", "resourcegroups/*/providers/*/capacityreservationgroups/*"): f"{_COMPUTE}/capacityReservationGroups/read",
    ("GET", "resourcegroups/*/providers/*/capacityreservationgroups/*/capacityreservations"): _RESERVATIONS,
    ("GET", "resourcegroups/*/providers/*/capacityreservationgroups/*/capacityreservations/*"): _RESERVATIONS,
    ("GET", "providers/microsoft.containerservice/locations/*/kubernetesversions"): (
        f"{_CONTAINERS}/locations/kubernetesVersions/read"
    ),
    ("GET", "providers/microsoft.containerservice/managedclusters"): f"{_CONTAINERS}/managedClusters/read",
    (
        "GET",
        "providers/microsoft.containerservice/locations/*/operations/*",
    ): f"{_CONTAINERS}/locations/operations/read",
    ("GET", "providers/microsoft.containerservice/locations/*/operationresults/*"): (
        f"{_CONTAINERS}/locations/operationresults/read"
    ),
}
"""Method and path below a subscription, with `*` for names -> action."""
_OF_CLUSTERS: dict[tuple[str, str], str] = {
    ("GET", ""): f"{_CONTAINERS}/managedClusters/read",
    ("PUT", ""): f"{_CONTAINERS}/managedClusters/write",
    ("GET", "upgradeprofiles/*"): f"{_CONTAINERS}/managedClusters/upgradeProfiles/read",
    ("GET", "agentpools"): f"{_POOLS}/read",
    ("GET", "agentpools/*"): f"{_POOLS}/read",
    ("PUT", "agentpools/*"): f"{_POOLS}/write",
    ("DELETE", "agentpools/*"): f"{_POOLS}/delete",
    ("POST", "agentpools/*/abort"): f"{_POOLS}/abort/action",
    # The list of operations also has /write, which does nothing (MicrosoftDocs/azure-docs#112369).
    ("POST", "agentpools/*/upgradenodeimageversion"): f"{_POOLS}/upgradeNodeImageVersion/action",
    ("GET", "agentpools/*/upgradeprofiles/*"): f"{_POOLS}/upgradeProfiles/read",
    ("GET", "availableagentpoolversions"): f"{_CONTAINERS}/managedClusters/availableAgentPoolVersions/read",
    ("POST", "listclusterusercredential"): f"{_CONTAINERS}/managedClusters/listClusterUserCredential/action",
    ("POST", "listclusteradmincredential"): f"{_CONTAINERS}/managedClusters/listClusterAdminCredential/action",
}
"""Method and path below a cluster, with `*` for names -> action."""
_LINKED: dict[str, str] = {
    "vnetSubnetID": "Microsoft.Network/virtualNetworks/subnets/join/action",
    "podSubnetID": "Microsoft.Network/virtualNetworks/subnets/join/action",
    "nodePublicIPPrefixID": "Microsoft.Network/publicIPPrefixes/join/action",
    "proximityPlacementGroupID": f"{_COMPUTE}/proximityPlacementGroups/write",
}
"""Agent pool property that names a resource -> action that the caller needs on it (docs: aks/aks-service-permissions,
"Identity creating and operating the cluster"). For capacity reservation groups and host groups, the cluster's own
identity needs it (docs: aks/use-capacity-reservation-groups, aks/use-azure-dedicated-hosts)."""
KNOWN = frozenset({*_OF_SUBSCRIPTIONS.values(), *_OF_CLUSTERS.values(), *_LINKED.values()})
"""All actions that calls of the emulated ARM need."""
_GROUP_PARTS, _CLUSTER_PARTS = 4, 8
_CLIENT, _OBJECT = "00000000-0000-0000-0000-0000000000cc", "00000000-0000-0000-0000-0000000000bb"


def needs(scope: Scope, body: bytes) -> list[Need]:
    """List what a request needs, the permission for the call itself first."""
    parts = [part for part in scope["path"].split("/") if part]
    if len(parts) < 2 or parts[0].lower() != "subscriptions":  # noqa: PLR2004 - subscriptions, its id
        return []
    below = [part.lower() for part in parts[2:]]
    if below[:1] == ["resourcegroups"] and below[2:5] == ["providers", "microsoft.containerservice", "managedclusters"]:
        return list(_on_cluster(scope["method"], parts, body))
    path = "/".join("*" if _is_name(below, at) else part for at, part in enumerate(below))
    action = _OF_SUBSCRIPTIONS.get((scope["method"], path))
    of_subscription = below[:1] == ["providers"]
    return [Need(action, "/" + "/".join(parts[: 2 if of_subscription else None]))] if action else []


def _is_name(parts: list[str], at: int) -> bool:
    """Return whether a path segment is a name; after providers/NAMESPACE, types and names alternate."""
    if parts[:1] == ["providers"]:
        return at > 1 and at % 2 == 1
    return at % 2 == 1


def _on_cluster(method: str, parts: list[str], body: bytes) -> Iterator[Need]:
    below = parts[_CLUSTER_PARTS:]
    path = "/".join("*" if at % 2 else part.lower() for at, part in enumerate(below))
    action = _OF_CLUSTERS.get((method, path))
    if action is None:
        return
    scope = "/" + "/".join(parts[: _CLUSTER_PARTS + (2 if len(below) > 1 else 0)])
    yield Need(action, scope)
    if method == "PUT":
        for key, identity in _properties(body).items():
            if key in _LINKED and isinstance(identity, str) and identity:
                yield Need(_LINKED[key], identity, action, scope)


def _properties(body: bytes) -> Mapping[str, object]:
    try:
        sent = json.loads(body or b"{}")
    except ValueError:
        return {}
    properties = sent.get("properties") if isinstance(sent, dict) else None
    return properties if isinstance(properties, dict) else {}


def answer(need: Need, scope: Scope) -> Response:
    """Return the response to a call without the permission."""
    del scope
    found = permission_error(need)
    return JSONResponse(found.body(), found.status)


def permission_error(need: Need) -> ArmError:
    """Return the error of a missing permission.

    Sources: Azure/azure-docs issues and rancher/rancher#11473 (AuthorizationFailed), Azure/aad-pod-identity#1279 and
    microsoft/planetary-computer-hub#25 (LinkedAuthorizationFailed).
    """
    who = f"The client '{_CLIENT}' with object id '{_OBJECT}'"
    if not need.by:
        message = (
            f"{who} does not have authorization to perform action '{need.permission}' over scope '{need.resource}' or "
            "the scope is invalid. If access was recently granted, please refresh your credentials."
        )
        return arm_error(403, "AuthorizationFailed", message)
    message = (
        f"{who} has permission to perform action '{need.by}' on scope '{need.at}'; however, it does not have "
        f"permission to perform action '{need.permission}' on the linked scope(s) '{need.resource}' or the linked "
        "scope(s) are invalid."
    )
    return arm_error(403, "LinkedAuthorizationFailed", message)
