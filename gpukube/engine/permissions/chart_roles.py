"""Permissions of the roles that the charts create.

Kubernetes lets nobody create a role that allows more than their own permissions (RBAC's escalation check), so whoever
installs a chart needs these rules too. The alternative, the verbs escalate and bind, would allow everything.

Source: the objects of the rendered charts nvidia-device-plugin 0.20.0 with node-feature-discovery 0.19.0, gpu-operator
v26.7.0, and dra-driver-nvidia-gpu 0.4.1, each rule copied unchanged; a test compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class RoleRule:
    """One rule of a role: space-separated verbs and resources in one API group; for named objects only, if named."""

    verbs: str
    resources: str
    group: str = ""
    names: tuple[str, ...] = ()


_NFD: Final = "nfd.k8s-sigs.io"
_READ: Final = "get list watch"
_MOST: Final = "create get list watch update delete"
_ALL: Final = "create get list watch update patch delete"

_NFD_EVERYWHERE: Final = (
    RoleRule("watch list", "namespaces"),
    RoleRule("get patch update list", "nodes nodes/status"),
    RoleRule(_READ, "nodefeatures nodefeaturerules nodefeaturegroups", _NFD),
    RoleRule("patch update", "nodefeaturegroups/status", _NFD),
    RoleRule("create", "leases", "coordination.k8s.io"),
    RoleRule("get update", "leases", "coordination.k8s.io", ("nfd-master.nfd.kubernetes.io",)),
    RoleRule("list watch", "nodes"),
    RoleRule("delete list", "noderesourcetopologies", "topology.node.k8s.io"),
    RoleRule("delete list", "nodefeatures", _NFD),
)
_NFD_OURS: Final = (RoleRule("create get update delete", "nodefeatures", _NFD), RoleRule("get", "pods"))

PLUGIN_EVERYWHERE: Final = (
    *_NFD_EVERYWHERE,
    RoleRule(_READ, "nodes"),
    RoleRule("get list watch create update", "nodefeatures", _NFD),
    RoleRule("get", "pods"),
)
PLUGIN_OURS: Final = _NFD_OURS

OPERATOR_EVERYWHERE: Final = (
    *_NFD_EVERYWHERE,
    RoleRule(_READ, "clusterversions proxies", "config.openshift.io"),
    RoleRule(_READ, "imagestreams", "image.openshift.io"),
    RoleRule(f"{_ALL} use", "securitycontextconstraints", "security.openshift.io"),
    RoleRule(_ALL, "clusterroles clusterrolebindings", "rbac.authorization.k8s.io"),
    RoleRule("get list watch update patch", "nodes namespaces"),
    RoleRule("create get list watch delete", "events"),
    RoleRule("create patch", "events", "events.k8s.io"),
    RoleRule("get list watch patch", "pods"),
    RoleRule("create", "pods/eviction"),
    RoleRule(_READ, "daemonsets", "apps"),
    RoleRule(
        f"{_ALL} deletecollection",
        "clusterpolicies clusterpolicies/finalizers clusterpolicies/status gpuclusters gpuclusters/finalizers "
        "gpuclusters/status nvidiadrivers nvidiadrivers/finalizers nvidiadrivers/status",
        "nvidia.com",
    ),
    RoleRule("get list watch create", "priorityclasses", "scheduling.k8s.io"),
    RoleRule(_MOST, "runtimeclasses", "node.k8s.io"),
    RoleRule("get list watch update patch create", "customresourcedefinitions", "apiextensions.k8s.io"),
    RoleRule("get list watch update patch", "computedomains computedomains/status", "resource.nvidia.com"),
    RoleRule("get list watch create update patch", "computedomaincliques", "resource.nvidia.com"),
    RoleRule("get create update", "leases", "coordination.k8s.io"),
    RoleRule(_READ, "resourceclaims", "resource.k8s.io"),
    RoleRule(_MOST, "resourceclaimtemplates deviceclasses resourceslices", "resource.k8s.io"),
    RoleRule(
        _MOST, "validatingadmissionpolicies validatingadmissionpolicybindings", "admissionregistration.k8s.io"
    ),
)  # fmt: skip
OPERATOR_OURS: Final = (
    *_NFD_OURS,
    RoleRule(_ALL, "roles rolebindings", "rbac.authorization.k8s.io"),
    RoleRule(_READ, "controllerrevisions", "apps"),
    RoleRule(_ALL, "daemonsets deployments", "apps"),
    RoleRule(
        _ALL, "configmaps endpoints pods pods/eviction secrets services services/finalizers serviceaccounts"
    ),
    RoleRule(_ALL, "leases", "coordination.k8s.io"),
    RoleRule(_MOST, "servicemonitors prometheusrules", "monitoring.coreos.com"),
    RoleRule("get list watch create update", "nodefeatures", _NFD),
)  # fmt: skip

_DOMAINS: Final = "resource.nvidia.com"
DRA_EVERYWHERE: Final = (
    RoleRule("get list watch update patch", "computedomains computedomains/status", _DOMAINS),
    RoleRule("get list watch create update patch", "computedomaincliques", _DOMAINS),
    RoleRule("get list watch patch", "pods"),
    RoleRule("get list watch update", "nodes"),
    RoleRule("get create update", "leases", "coordination.k8s.io"),
    RoleRule(_READ, "resourceclaims", "resource.k8s.io"),
    RoleRule(_MOST, "resourceclaimtemplates resourceslices", "resource.k8s.io"),
)
DRA_OURS: Final = (
    RoleRule(_ALL, "daemonsets", "apps"),
    RoleRule("get list watch update", "computedomaincliques", _DOMAINS),
)
