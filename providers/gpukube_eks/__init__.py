"""Amazon Elastic Kubernetes Service for gpukube; the entry point `eks` of the group `gpukube.providers`."""

from gpukube_eks.provider import EksProvider

__all__ = ["EksProvider"]
