"""What the API server fills in when an object is written.

In scope: defaulting. Out of scope: storage, what is refused (`validation`, `admission`).
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.quantities import is_extended

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube_sandbox.kube.store.kinds import Kind
    from gpukube_sandbox.kube.store.objects import JsonObject

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"

_RBAC_GROUP = "rbac.authorization.k8s.io"
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def fill_defaults(kind: Kind, obj: JsonObject, now: str) -> None:
    """Set the type's defaults, in place; what records a time gets `now`."""
    fill = _DEFAULTS.get(kind.kind)
    if fill and not kind.custom:
        fill(obj)
    if kind.kind == "ResourceSlice":
        for device in (obj.get("spec") or {}).get("devices") or ():
            for taint in device.get("taints") or ():
                taint.setdefault("timeAdded", now)


def _pod_spec(spec: JsonObject) -> None:
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("securityContext", {})
    if spec.get("serviceAccountName"):
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
    for volume in spec.get("volumes") or ():
        if not any(value is not None for key, value in volume.items() if key != "name"):
            volume["emptyDir"] = {}
    for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        tag = str(container.get("image", "")).rpartition(":")[2]
        container.setdefault("imagePullPolicy", "Always" if tag == "latest" else "IfNotPresent")
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")
        container.setdefault("resources", {})
        for port in container.get("ports") or ():
            port.setdefault("protocol", "TCP")
        for probe in (container.get(name) for name in _PROBES):
            if probe:
                _fill_probe(probe)


def _fill_probe(probe: JsonObject) -> None:
    for key, value in (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)):
        probe.setdefault(key, value)
    if probe.get("grpc") is not None:
        probe["grpc"].setdefault("service", "")
    if probe.get("httpGet") is not None:
        probe["httpGet"].setdefault("path", "/")
        probe["httpGet"].setdefault("scheme", "HTTP")


def tolerate_extended_resources(pod: JsonObject) -> None:
    """Add tolerations for taints whose keys are the extended resources that a pod requests.

    Source:
        kubernetes plugin/pkg/admission/extendedresourcetoleration: resource names of all containers.
    """
    spec = pod["spec"]
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    requested = {name for item in containers for name in (item.get("resources") or {}).get("requests") or {}}
    tolerations = spec.setdefault("tolerations", [])
    for name in sorted(filter(is_extended, requested)):
        desired = {"key": name, "operator": "Exists", "effect": "NoSchedule"}
        if desired not in tolerations:
            tolerations.append(desired)


def _pod(obj: JsonObject) -> None:
    spec = obj.setdefault("spec", {})
    _pod_spec(spec)
    for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        for name, limit in (container["resources"].get("limits") or {}).items():
            container["resources"].setdefault("requests", {}).setdefault(name, limit)
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
    spec.setdefault("enableServiceLinks", True)
    tolerations = spec.setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(
            item.get("key") in {key, None} and item.get("effect") in {"NoExecute", None} for item in tolerations
        ):
            tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
    obj.setdefault("status", {}).setdefault("phase", "Pending")


def _daemonset(obj: JsonObject) -> None:
    spec = obj.setdefault("spec", {})
    strategy = spec.setdefault("updateStrategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)
    _pod_spec(spec.setdefault("template", {}).setdefault("spec", {}))


def _deployment(obj: JsonObject) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec.setdefault("strategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    _pod_spec(spec.setdefault("template", {}).setdefault("spec", {}))


def _replicaset(obj: JsonObject) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    _pod_spec(spec.setdefault("template", {}).setdefault("spec", {}))


def _job(obj: JsonObject) -> None:
    spec = obj.setdefault("spec", {})
    if "parallelism" not in spec:  # with parallelism only, the Job is a work queue without completions
        spec.setdefault("completions", 1)
    for key, value in (("parallelism", 1), ("backoffLimit", 6), ("suspend", False)):
        spec.setdefault(key, value)
    spec.setdefault("completionMode", "NonIndexed")
    uid = str((obj.get("metadata") or {}).get("uid", ""))
    spec.setdefault("selector", {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}})
    template = spec.setdefault("template", {})
    marks = template.setdefault("metadata", {}).setdefault("labels", {})
    marks.setdefault("batch.kubernetes.io/controller-uid", uid)
    marks.setdefault("batch.kubernetes.io/job-name", str(obj["metadata"].get("name", "")))
    marks.setdefault("job-name", str(obj["metadata"].get("name", "")))
    _pod_spec(template.setdefault("spec", {}))


def _statefulset(obj: JsonObject) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("revisionHistoryLimit", 10)
    strategy = spec.setdefault("updateStrategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    _pod_spec(spec.setdefault("template", {}).setdefault("spec", {}))


def _namespace(obj: JsonObject) -> None:
    obj["metadata"].setdefault("labels", {}).setdefault("kubernetes.io/metadata.name", obj["metadata"]["name"])
    obj.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    obj.setdefault("status", {"phase": "Active"})


def _node(obj: JsonObject) -> None:
    obj.setdefault("spec", {})


def _binding(obj: JsonObject) -> None:
    obj.setdefault("roleRef", {}).setdefault("apiGroup", _RBAC_GROUP)
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in {"User", "Group"}:
            subject["apiGroup"] = subject.get("apiGroup") or _RBAC_GROUP


def _secret(obj: JsonObject) -> None:
    obj.setdefault("type", "Opaque")
    given = obj.pop("stringData", None) or {}
    if given:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in given.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}


def _service(obj: JsonObject) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    spec.setdefault("internalTrafficPolicy", "Cluster")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port["port"])


def _device_claim(obj: JsonObject) -> None:
    obj.setdefault("status", {})
    _device_requests(obj.get("spec") or {})


def _device_requests(spec: JsonObject) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        for one in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if one is None:
                continue
            one["allocationMode"] = one.get("allocationMode") or "ExactCount"
            if one["allocationMode"] == "ExactCount":
                one["count"] = one.get("count") or 1
            for toleration in one.get("tolerations") or ():
                toleration["operator"] = toleration.get("operator") or "Equal"


def _device_claim_template(obj: JsonObject) -> None:
    obj.setdefault("spec", {}).setdefault("metadata", {})
    _device_requests(obj["spec"].get("spec") or {})


def set_address(kind: Kind, obj: JsonObject) -> None:
    """Set the address of a Service, in place; the API server does so after it has recorded field owners."""
    spec = obj.get("spec") or {}
    if kind.kind != "Service" or spec["type"] == "ExternalName":
        return
    place = f"{obj['metadata'].get('namespace')}/{obj['metadata'].get('name')}"
    digest = hashlib.sha256(place.encode()).digest()
    spec.setdefault("clusterIP", f"10.0.{digest[0]}.{digest[1]}")
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")


_DEFAULTS: dict[str, Callable[[JsonObject], None]] = {
    "ClusterRoleBinding": _binding,
    "Pod": _pod,
    "DaemonSet": _daemonset,
    "Deployment": _deployment,
    "ReplicaSet": _replicaset,
    "Job": _job,
    "StatefulSet": _statefulset,
    "Namespace": _namespace,
    "Node": _node,
    "ResourceClaim": _device_claim,
    "ResourceClaimTemplate": _device_claim_template,
    "RoleBinding": _binding,
    "Secret": _secret,
    "Service": _service,
}


def count_template(kind: Kind, old: JsonObject | None, new: JsonObject) -> None:
    """Set the template generation of a DaemonSet, in place, ignoring the client's value.

    Source:
        kubernetes pkg/registry/apps/daemonset/strategy.go and pkg/apis/apps/v1/conversion.go.
    """
    if kind.kind != "DaemonSet":
        return
    number = 1
    if old is not None:
        number = int((old["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, "1"))
        number += old["spec"]["template"] != new["spec"]["template"]
    notes = new["metadata"].get("annotations") or {}
    new["metadata"]["annotations"] = {**notes, TEMPLATE_GENERATION: str(number)}
