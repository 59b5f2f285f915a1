"""Azure Kubernetes Service for gpukube; the entry point `aks` of the group `gpukube.providers`."""

from gpukube_aks.provider import AksProvider

__all__ = ["AksProvider"]
