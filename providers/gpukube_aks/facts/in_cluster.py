"""What AKS installs in its clusters, for checks of nodes and DaemonSets. Data only.

Sources: docs: aks/use-labels, aks/use-nvidia-gpu; Azure/AgentBaker cse_config.sh (the plugin as a service of systemd).
"""

from __future__ import annotations

from typing import Final

from gpukube.core.in_cluster import InClusterFacts, KubeSubject, NodePlugin
from gpukube_aks.facts.network import PARTS

_UNHEALTHY: Final = "UnhealthyNvidiaDevicePlugin"

IN_CLUSTER: Final = InClusterFacts(
    fabric_parts=PARTS,
    pool_label="kubernetes.azure.com/agentpool",
    gpu_labels={"kubernetes.azure.com/accelerator": "nvidia", "accelerator": "nvidia"},
    label_domains=("kubernetes.azure.com/",),
    label_keys=("agentpool", "accelerator"),
    conditions=(_UNHEALTHY,),
    node_plugins=(
        NodePlugin(
            kind="aks-managed",
            title="the systemd service of AKS-managed GPU nodes",
            label=("kubernetes.azure.com/dcgm-exporter", "enabled"),
            condition=_UNHEALTHY,
            keep="let AKS advertise: write devicePlugin.owner: cloud",
            remove="create a new pool without gpuProfile.nvidia.managementMode: Managed (it cannot be changed)",
        ),
    ),
    subject=KubeSubject(
        note="replace IDENTITY with the object id of the user or service principal in Entra (az ad sp show --id APP "
        "--query id); on clusters without Entra every kubeconfig has administrator rights that no role limits",
    ),
)
"""The label_keys are older names of the same labels."""
