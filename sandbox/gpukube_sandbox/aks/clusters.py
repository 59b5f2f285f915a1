"""One managed cluster: its facts, its pools, its operations, its credentials.

In scope: the state of a cluster and its wire form. Out of scope: HTTP, lifecycles (`lifecycle`).
"""

from __future__ import annotations

import base64
import json
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube_sandbox.aks.answers import Json, aks_error
from gpukube_sandbox.aks.machines import IMAGE_DATE
from gpukube_sandbox.aks.rules import ClusterFacts
from gpukube_sandbox.aks.scalerprofile import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube_sandbox.aks.operations import Operation
    from gpukube_sandbox.aks.pools import Pool, Source
    from gpukube_sandbox.kube.cluster import KubeCluster

AZURE_KUBERNETES_SERVER_APP = "6dae42f8-4368-4678-94ff-3960e28e3630"
"""Entra application of the AKS API server in all clouds (docs: aks/kubelogin-authentication)."""
_CLIENT_APP = "80faf920-1908-4b52-b5ef-a8e7bedfc67a"


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """Settings that a cluster was created with.

    Attributes:
        disable_local_accounts: Whether requests for static credentials are rejected.
        aad: Whether users authenticate with Entra; the user kubeconfig then runs kubelogin.
        node_provisioning_mode: Manual or Auto.
        tenant: Entra tenant.
        identity: UserAssigned or SystemAssigned.
        foreign_plugin: Whether the static device-plugin manifest of the AKS how-to is already applied.
        infiniband: Whether the subscription has the feature AKSInfinibandSupport, without which nodes of InfiniBand
            sizes have no adapter that works (Azure/aks-rdma-infiniband).
    """

    disable_local_accounts: bool = False
    aad: bool = False
    node_provisioning_mode: str = "Manual"
    tenant: str = "00000000-0000-0000-0000-0000000000aa"
    identity: str = "UserAssigned"
    foreign_plugin: bool = False
    infiniband: bool = True


@dataclass(slots=True)
class Cluster:
    """One managed cluster.

    Attributes:
        supply: Source of its machines.
        operation: The running operation; a cluster runs one at a time.
        background: End, in sandbox time, of a reconcile by the service itself that blocks the cluster, and its name.
        image_date: Date of the newest node images.
        auto_scaler: Settings of the managed autoscaler that differ from its defaults.
    """

    subscription: str
    group: str
    name: str
    location: str
    kubernetes_version: str
    kube: KubeCluster
    kube_url: str
    ca_pem: bytes
    token: str
    supply: Source
    options: ClusterOptions = field(default_factory=ClusterOptions)
    pools: dict[str, Pool] = field(default_factory=dict)
    operation: Operation | None = None
    background: tuple[float, str] = (0.0, "")
    etag: str = field(default_factory=lambda: str(uuid.uuid4()))
    image_date: str = IMAGE_DATE
    auto_scaler: dict[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Return the ARM id."""
        return (
            f"/subscriptions/{self.subscription}/resourceGroups/{self.group}/providers/Microsoft.ContainerService"
            f"/managedClusters/{self.name}"
        )

    @property
    def address(self) -> str:
        """Return the address in the form of gpukube's --cluster."""
        return f"aks:{self.subscription}/{self.group}/{self.name}"

    @property
    def node_group(self) -> str:
        """Return nodeResourceGroup, which contains the scale sets."""
        return f"MC_{self.group}_{self.name}_{self.location}"[:80]

    @property
    def facts(self) -> ClusterFacts:
        """Return the facts that rules may use."""
        mode, identity = self.options.node_provisioning_mode, self.options.identity
        return ClusterFacts(self.subscription, self.location, self.kubernetes_version, mode, identity, self.image_date)

    def require_idle(self, now: float) -> None:
        """Raise if another operation is running: a cluster runs one at a time (docs: aks/upgrade-node-pools).

        Raises:
            ArmError: 409 OperationNotAllowed (Azure/telescope#1213 for a reconcile in the background,
                cilium/cilium#25944 for another pool).
        """
        if self.operation is not None and self.operation.is_running:
            subject = f"agentpool operation ({self.operation.pool} - {self.operation.kind}) is"
        elif now < self.background[0]:
            subject = f"operation ({self.background[1]}) is"
        else:
            return
        message = (
            f"Operation is not allowed: Another {subject} in progress, please wait for it to finish before starting a "
            "new operation. See https://aka.ms/aks-pending-operation for more details"
        )
        raise aks_error("OperationNotAllowed", message, status=409)

    def listed(self, now: float) -> list[Pool]:
        """Return the pools that lists already contain; a new one may be missing for a while."""
        return [pool for pool in self.pools.values() if pool.listed_from <= now]

    def wire(self, now: float) -> Json:
        """Return the resource as GET returns it."""
        state = self.background[1] if now < self.background[0] else "Succeeded"
        profiles: list[Json] = [{"name": pool.name, **pool.shown()} for pool in self.listed(now)]
        properties: Json = {
            "provisioningState": state,
            "powerState": {"code": "Running"},
            "kubernetesVersion": self.kubernetes_version,
            "currentKubernetesVersion": self.kubernetes_version,
            "dnsPrefix": self.name,
            "fqdn": f"{self.name}.hcp.{self.location}.azmk8s.example",
            "agentPoolProfiles": profiles,
            "nodeResourceGroup": self.node_group,
            "enableRBAC": True,
            "supportPlan": "KubernetesOfficial",
            "networkProfile": {"networkPlugin": "azure", "networkPluginMode": "overlay", "loadBalancerSku": "standard"},
            "disableLocalAccounts": self.options.disable_local_accounts,
            "nodeProvisioningProfile": {"mode": self.options.node_provisioning_mode},
            "maxAgentPools": 100,
            "autoScalerProfile": {**DEFAULTS, **self.auto_scaler},
        }
        if self.options.aad:
            properties["aadProfile"] = {"managed": True, "enableAzureRBAC": False, "tenantID": self.options.tenant}
        return {
            "id": self.id,
            "name": self.name,
            "type": "Microsoft.ContainerService/ManagedClusters",
            "location": self.location,
            "eTag": self.etag,
            "identity": {"type": self.options.identity, "tenantId": self.options.tenant},
            "sku": {"name": "Base", "tier": "Standard"},
            "properties": properties,
        }

    def credential(self, *, admin: bool) -> Json:
        """Return the response of listClusterUserCredential or listClusterAdminCredential.

        Raises:
            ArmError: 400 BadRequest if local accounts are disabled (docs: aks/local-accounts).
        """
        if self.options.disable_local_accounts and (admin or not self.options.aad):
            message = "Getting static credential isn't allowed because this cluster is set to disable local accounts."
            raise aks_error("BadRequest", message)
        name = "clusterAdmin" if admin else "clusterUser"
        user: Json = _kubelogin(self.options.tenant) if self.options.aad and not admin else {"token": self.token}
        text = kubeconfig(self, f"{name}_{self.group}_{self.name}", user)
        value = base64.b64encode(text.encode()).decode()
        return {"kubeconfigs": [{"name": name, "value": value}]}


def kubeconfig(cluster: Cluster, user_name: str, user: Json) -> str:
    """Return the kubeconfig of one cluster as JSON text (which is YAML)."""
    document = _document([(cluster.name, cluster, user_name, user)])
    return json.dumps(document, indent=2) + "\n"


def merged_kubeconfig(clusters: list[Cluster]) -> Json:
    """Return one kubeconfig for many clusters, each with its own token.

    Contexts are named as by `az aks get-credentials`: by the cluster, prefixed with the resource group if two clusters
    share a name.
    """
    names = [cluster.name for cluster in clusters]
    entries: list[tuple[str, Cluster, str, Json]] = []
    for cluster in clusters:
        name = cluster.name if names.count(cluster.name) == 1 else f"{cluster.group}-{cluster.name}"
        entries.append((name, cluster, f"clusterUser_{cluster.group}_{cluster.name}", {"token": cluster.token}))
    return _document(entries)


def _document(entries: Sequence[tuple[str, Cluster, str, Json]]) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": name,
                "cluster": {
                    "server": cluster.kube_url,
                    "certificate-authority-data": base64.b64encode(cluster.ca_pem).decode(),
                },
            }
            for name, cluster, _, _ in entries
        ],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}} for name, _, user, _ in entries],
        "current-context": entries[0][0] if entries else "",
        "users": [{"name": name, "user": user} for _, _, name, user in entries],
        "preferences": {},
    }


def _kubelogin(tenant: str) -> Json:
    """Return the exec section of an Entra cluster; the server does not choose the login method (Azure/AKS#4990)."""
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1beta1",
            "command": "kubelogin",
            "args": [
                "get-token", "--environment", "AzurePublicCloud", "--server-id", AZURE_KUBERNETES_SERVER_APP,
                "--client-id", _CLIENT_APP, "--tenant-id", tenant, "--login", "devicecode",
            ],
            "env": None,
            "provideClusterInfo": False,
        }
    }  # fmt: skip
