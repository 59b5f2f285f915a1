"""Azure's locations, and the Kubernetes versions of a location and of a cluster.

In scope: the responses to `az account list-locations`, `az aks get-versions`, and `az aks get-upgrades`. Out of scope:
HTTP (`routes`), versions of a single pool (`service`).

The sandbox invents no versions: it offers those that its clusters run.

Sources: docs: rest/api/resources/subscriptions/list-locations, rest/api/aks/managed-clusters/list-kubernetes-versions,
rest/api/aks/managed-clusters/get-upgrade-profile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.aks.answers import arm_error
from gpukube_sandbox.aks.locations import LOCATIONS, is_location

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube_sandbox.aks.answers import Json
    from gpukube_sandbox.aks.clusters import Cluster


def require_location(location: str, api_version: str, resource_type: str) -> None:
    """Reject a location that does not exist.

    Raises:
        ArmError: 400 NoRegisteredProviderFound (Azure/azure-cli#2003).
    """
    if is_location(location):
        return
    message = (
        f"No registered resource provider found for location '{location}' and API version '{api_version}' for type "
        f"'{resource_type}'. The supported api-versions are '{api_version}'. The supported locations are "
        f"'{', '.join(sorted(LOCATIONS))}'."
    )
    raise arm_error(400, "NoRegisteredProviderFound", message)


def locations(subscription: str) -> Json:
    """Return all locations in the form of a subscription's list."""
    return {
        "value": [
            {
                "id": f"/subscriptions/{subscription}/locations/{name}",
                "name": name,
                "type": "Region",
                "displayName": name,
                "regionalDisplayName": name,
                "metadata": {"regionType": "Physical"},
            }
            for name in sorted(LOCATIONS)
        ]
    }


def versions(clusters: Iterable[Cluster]) -> Json:
    """Return versions by minor version, each patch with its possible upgrades."""
    known = sorted({cluster.kubernetes_version for cluster in clusters}, key=_parts)
    minors: dict[str, list[str]] = {}
    for version in known:
        minors.setdefault(version.rpartition(".")[0], []).append(version)
    return {
        "values": [
            {
                "version": minor,
                "isDefault": minor == known[-1].rpartition(".")[0],
                "isPreview": None,
                "capabilities": {"supportPlan": ["KubernetesOfficial"]},
                "patchVersions": {patch: {"upgrades": _above(patch, known)} for patch in patches},
            }
            for minor, patches in minors.items()
        ]
    }


def upgrade_profile(cluster: Cluster, clusters: Iterable[Cluster]) -> Json:
    """Return the versions that a control plane and its pools can be upgraded to."""
    known = sorted({other.kubernetes_version for other in clusters}, key=_parts)
    plane = {
        "kubernetesVersion": cluster.kubernetes_version,
        "osType": "Linux",
        "upgrades": [{"kubernetesVersion": version} for version in _above(cluster.kubernetes_version, known)],
    }
    return {
        "id": f"{cluster.id}/upgradeprofiles/default",
        "name": "default",
        "type": "Microsoft.ContainerService/ManagedClusters/upgradeprofiles",
        "properties": {"controlPlaneProfile": plane, "agentPoolProfiles": None},
    }


def _above(version: str, known: list[str]) -> list[str]:
    """List the versions above one, up to the next minor (docs: aks/upgrade-aks-cluster: no skipping)."""
    last_minor = _parts(version)[1] + 1
    return [other for other in known if _parts(other) > _parts(version) and _parts(other)[1] <= last_minor]


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
