"""The resource types that this API serves, as a table.

In scope: group, version, names, and scope of every type; a CustomResourceDefinition adds a row at run time.
Out of scope: behavior of a type.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """One resource type.

    Attributes:
        group: API group; "" for the core group.
        version: The only served version.
        kind: "DaemonSet".
        plural: "daemonsets", as in the path.
        namespaced: Whether objects belong to a namespace.
        short: Short names for kubectl.
        subresources: Paths below an object, such as status, scale, log, eviction, binding, exec.
        custom: Defined by a CustomResourceDefinition.
        idle: Listed in discovery as in every cluster, but without a controller here, so objects are rejected.
    """

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    short: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    custom: bool = False
    idle: bool = False

    @property
    def api_version(self) -> str:
        """Value of apiVersion in its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def key(self) -> tuple[str, str]:
        """Its key in the store."""
        return (self.group, self.plural)


_STATUS = ("status",)
_OF_PODS = ("status", "log", "eviction", "binding", "exec", "attach", "portforward")
_SCALED = ("status", "scale")
_RBAC, _ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"

BUILT_IN: tuple[Kind, ...] = (
    Kind("", "v1", "Namespace", "namespaces", namespaced=False, short=("ns",), subresources=_STATUS),
    Kind("", "v1", "Node", "nodes", namespaced=False, short=("no",), subresources=_STATUS),
    Kind("", "v1", "Pod", "pods", short=("po",), subresources=_OF_PODS),
    Kind("", "v1", "ConfigMap", "configmaps", short=("cm",)),
    Kind("", "v1", "Secret", "secrets"),
    Kind("", "v1", "ServiceAccount", "serviceaccounts", short=("sa",), subresources=("token",)),
    Kind("", "v1", "Service", "services", short=("svc",), subresources=_STATUS),
    Kind("", "v1", "Endpoints", "endpoints", short=("ep",)),
    Kind("", "v1", "Event", "events", short=("ev",)),
    Kind("", "v1", "ResourceQuota", "resourcequotas", short=("quota",), subresources=_STATUS),
    Kind("", "v1", "LimitRange", "limitranges", short=("limits",)),
    Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", short=("pvc",), subresources=_STATUS),
    Kind("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False, short=("pv",), subresources=_STATUS),
    Kind("", "v1", "ReplicationController", "replicationcontrollers", short=("rc",), subresources=_SCALED),
    Kind("apps", "v1", "DaemonSet", "daemonsets", short=("ds",), subresources=_STATUS),
    Kind("apps", "v1", "Deployment", "deployments", short=("deploy",), subresources=_SCALED),
    Kind("apps", "v1", "ReplicaSet", "replicasets", short=("rs",), subresources=_SCALED),
    Kind("apps", "v1", "StatefulSet", "statefulsets", short=("sts",), subresources=_SCALED),
    Kind("apps", "v1", "ControllerRevision", "controllerrevisions"),
    Kind("batch", "v1", "Job", "jobs", subresources=_STATUS),
    Kind("batch", "v1", "CronJob", "cronjobs", short=("cj",), subresources=_STATUS),
    Kind(_RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False),
    Kind(_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    Kind(_RBAC, "v1", "Role", "roles"),
    Kind(_RBAC, "v1", "RoleBinding", "rolebindings"),
    Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", short=("pdb",), subresources=_STATUS),
    Kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", short=("netpol",)),
    Kind("networking.k8s.io", "v1", "Ingress", "ingresses", short=("ing",), subresources=_STATUS),
    Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False, short=("pc",)),
    Kind("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", namespaced=False),
    Kind("coordination.k8s.io", "v1", "Lease", "leases"),
    Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False, short=("sc",)),
    Kind("apiregistration.k8s.io", "v1", "APIService", "apiservices", namespaced=False, subresources=_STATUS),
    Kind(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        namespaced=False,
        short=("crd", "crds"),
        subresources=_STATUS,
    ),
    Kind("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", namespaced=False),
    Kind("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", namespaced=False),
    Kind("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", subresources=_STATUS),
    Kind("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates"),
    Kind(
        _ADMISSION, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False,
        subresources=_STATUS,
    ),
    Kind(
        _ADMISSION, "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", namespaced=False
    ),
    Kind("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False),
    Kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False),
    Kind("authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", namespaced=False),
    Kind("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False),
    Kind("", "v1", "ComponentStatus", "componentstatuses", namespaced=False, short=("cs",), idle=True),
    Kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", short=("hpa",), idle=True),
    Kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", idle=True),
    Kind(
        "certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", namespaced=False,
        short=("csr",), idle=True,
    ),
    Kind(
        _ADMISSION, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced=False,
        idle=True,
    ),
    Kind(
        _ADMISSION, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False, idle=True
    ),
)  # fmt: skip

CORE: dict[str, Kind] = {kind.plural: kind for kind in BUILT_IN}
"""Plural -> type; plurals of built-in types are unique."""

NOT_EMULATED = frozenset({
    ("", "podtemplates"), ("", "bindings"), ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"), ("events.k8s.io", "events"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"), ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
    ("networking.k8s.io", "ingressclasses"), ("networking.k8s.io", "ipaddresses"),
    ("networking.k8s.io", "servicecidrs"), ("storage.k8s.io", "csidrivers"), ("storage.k8s.io", "csinodes"),
    ("storage.k8s.io", "csistoragecapacities"), ("storage.k8s.io", "volumeattachments"),
    ("storage.k8s.io", "volumeattributesclasses"),
})  # fmt: skip
"""Group and plural of types that every real cluster has but the sandbox lacks.

Source: `kubectl get --raw /apis/GROUP/VERSION` of a kube-apiserver 1.36.2.
"""
NOT_EMULATED_PARTS = frozenset({("pods", "ephemeralcontainers"), ("pods", "resize"), ("pods", "proxy"),
                                ("services", "proxy"), ("nodes", "proxy")})  # fmt: skip
"""Subresources that the sandbox lacks."""

NODE_FEATURE = Kind("nfd.k8s-sigs.io", "v1alpha1", "NodeFeature", "nodefeatures", custom=True)
"""Node Feature Discovery's type; served once its chart has installed the CustomResourceDefinition."""

CLUSTER_POLICY = Kind(
    "nvidia.com", "v1", "ClusterPolicy", "clusterpolicies", namespaced=False, subresources=_STATUS, custom=True
)
"""The GPU Operator's type; served once its chart has installed the CustomResourceDefinition."""

RAY = tuple(
    Kind("ray.io", "v1", kind, f"{kind.lower()}s", subresources=_STATUS, custom=True)
    for kind in ("RayCluster", "RayJob", "RayService")
)
"""KubeRay's types; served once its chart has installed their CustomResourceDefinitions."""

GKE_NETWORKS = tuple(
    Kind("networking.gke.io", "v1", kind, f"{kind.lower()}s", namespaced=False, subresources=_STATUS, custom=True)
    for kind in ("Network", "GKENetworkParamSet")
)
"""Additional networks of GKE nodes; only clusters of GKE serve them."""

COMPUTE_CLASS = Kind(
    "cloud.google.com", "v1", "ComputeClass", "computeclasses", namespaced=False, subresources=_STATUS, custom=True
)
"""GKE's order of node pools; only clusters of GKE serve it."""

_CUSTOM = {kind.plural: kind for kind in (NODE_FEATURE, CLUSTER_POLICY, *RAY, *GKE_NETWORKS, COMPUTE_CLASS)}


def kind_named(plural: str) -> Kind:
    """Return a type that the controllers use."""
    return _CUSTOM.get(plural) or CORE[plural]
