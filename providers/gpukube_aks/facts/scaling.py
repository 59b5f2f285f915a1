"""Names of the scale sets of node pools, for the order of a family in the autoscaler.

Sources: docs: aks/cluster-autoscaler-overview (the ConfigMap in kube-system); azure-mgmt-containerservice Expander;
Azure/AKS docs: scale sets are named aks-POOL-NUMBER-vmss.
"""

from __future__ import annotations

import re
from typing import Final

from gpukube.core.scaling_order import GroupOrder


def _group(name: str) -> str:
    return rf"^aks-{re.escape(name)}-[0-9]+-vmss$"


ORDER: Final = GroupOrder(
    group=_group,
    profile="az aks update --subscription {subscription} --resource-group {resourceGroup} --name {name} "
    "--cluster-autoscaler-profile expander=priority",
)
