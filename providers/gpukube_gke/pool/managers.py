"""Detects other managers of a node pool: GKE's node auto-provisioning, and tools by their resource labels and metadata.

Config Connector's mapping of a node pool does not write its label (GoogleCloudPlatform/k8s-config-connector
config/servicemappings/container.yaml); the label is checked in case a user added it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import at, texts
from gpukube.core.managers import CROSSPLANE, Manager, Sign, find_managers

if TYPE_CHECKING:
    from gpukube.core.values import Observed

SIGNS: Final = (
    Sign("Config Connector", "managed-by-cnrm", "GoogleCloudPlatform/k8s-config-connector pkg/label/const.go"),
    Sign(
        "Cluster API",
        "capg-cluster-*",
        "kubernetes-sigs/cluster-api-provider-gcp cloud/scope/managedmachinepool.go NodePoolResourceLabels",
    ),
    Sign(
        "Terraform (Cluster Toolkit)",
        "ghpc_*",
        "GoogleCloudPlatform/cluster-toolkit modules/compute/gke-node-pool/main.tf",
    ),
    CROSSPLANE,
)
_MODULE: Final = "Terraform (terraform-google-modules/kubernetes-engine)"
"""This module writes both into metadata and labels of each pool (its cluster.tf)."""
_MODULE_KEYS: Final = frozenset({"cluster_name", "node_pool"})


def managers_of(observed: Observed) -> tuple[Manager, ...]:
    """Return the other managers of a live node pool."""
    found = find_managers("resource label", texts(observed.native, "config", "resourceLabels"), SIGNS)
    if at(observed.native, "autoscaling", "autoprovisioned"):
        found = (Manager("node auto-provisioning", "autoscaling.autoprovisioned"), *found)
    if texts(observed.native, "config", "metadata").keys() >= _MODULE_KEYS:
        found = (*found, Manager(_MODULE, "metadata cluster_name, node_pool"))
    return found
