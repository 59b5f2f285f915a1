"""Detects other managers of an agent pool by its mode and tags.

Azure Service Operator, Cluster API's provider for Azure, and Bicep leave no mark on an agent pool
(kubernetes-sigs/cluster-api-provider-azure azure/services/agentpools/spec.go: only the user's own tags).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import at, texts
from gpukube.core.managers import CROSSPLANE, YOR, Manager, Sign, find_managers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Observed

MODES: Final[Mapping[str, str]] = {"Machines": "node auto-provisioning", "ManagedSystem": "AKS itself"}
"""Mode of pools that the user does not manage -> manager (armcontainerservice AgentPoolMode;
Azure/AKS release notes: aksmanagedap)."""
SIGNS: Final = (
    Sign(
        "Cluster API",
        "sigs.k8s.io_cluster-api-provider-azure_*",
        "kubernetes-sigs/cluster-api-provider-azure api/v1beta1/tags.go",
    ),
    CROSSPLANE,
    YOR,
)


def managers_of(observed: Observed) -> tuple[Manager, ...]:
    """Return the other managers of a live agent pool."""
    mode = str(at(observed.native, "properties", "mode") or "")
    by_mode = (Manager(MODES[mode], f"mode {mode}"),) if mode in MODES else ()
    return (*by_mode, *find_managers("tag", texts(observed.native, "properties", "tags"), SIGNS))
