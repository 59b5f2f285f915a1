"""Kubernetes object types, named as in the API's paths.

In scope: the value, and a table of the types in gpukube's releases. Out of scope: API calls (calls).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ApiType:
    """A type of Kubernetes objects."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True


NODES: Final = ApiType("", "v1", "Node", "nodes", namespaced=False)
PODS: Final = ApiType("", "v1", "Pod", "pods")
JOBS: Final = ApiType("batch", "v1", "Job", "jobs")
REPLICA_SETS: Final = ApiType("apps", "v1", "ReplicaSet", "replicasets")
STATEFUL_SETS: Final = ApiType("apps", "v1", "StatefulSet", "statefulsets")
REPLICATION_CONTROLLERS: Final = ApiType("", "v1", "ReplicationController", "replicationcontrollers")
EVENTS: Final = ApiType("", "v1", "Event", "events")
BUDGETS: Final = ApiType("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
RESOURCE_CLAIMS: Final = ApiType("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims")
CLAIM_TEMPLATES: Final = ApiType("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates")
LEASES: Final = ApiType("coordination.k8s.io", "v1", "Lease", "leases")

_RBAC: Final = "rbac.authorization.k8s.io"
RELEASE_TYPES: Final = {
    kind.kind: kind
    for kind in (
        ApiType("apps", "v1", "DaemonSet", "daemonsets"),
        ApiType("apps", "v1", "Deployment", "deployments"),
        ApiType("", "v1", "ConfigMap", "configmaps"),
        ApiType("", "v1", "ServiceAccount", "serviceaccounts"),
        ApiType("", "v1", "Service", "services"),
        ApiType("", "v1", "ResourceQuota", "resourcequotas"),
        ApiType(_RBAC, "v1", "Role", "roles"),
        ApiType(_RBAC, "v1", "RoleBinding", "rolebindings"),
        ApiType(_RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False),
        ApiType(_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
        ApiType("nvidia.com", "v1", "ClusterPolicy", "clusterpolicies", namespaced=False),
        ApiType("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", namespaced=False),
        *(
            ApiType("admissionregistration.k8s.io", "v1", kind, plural, namespaced=False)
            for kind, plural in (
                ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
                ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
            )
        ),
    )
}
"""Kind -> type of the objects that the charts render (rendered charts nvidia-device-plugin 0.20.0, gpu-operator
v26.7.0, dra-driver-nvidia-gpu 0.4.1) and that determine whether GPUs are advertised."""
