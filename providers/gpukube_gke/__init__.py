"""Google Kubernetes Engine for gpukube; the entry point `gke` of the group `gpukube.providers`."""

from gpukube_gke.provider import GkeProvider

__all__ = ["GkeProvider"]
