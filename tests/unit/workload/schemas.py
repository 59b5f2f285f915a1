"""What the APIs take of the manifests that are rendered: unknown fields and wrong types are found.

Kubernetes' own kinds are checked against lightkube's models, which are generated from its OpenAPI. No package carries
the schemas of KubeRay, JobSet and Kueue: what is rendered of them is below. It was compared, strictly, with the CRDs of
KubeRay 1.7.0, JobSet and Kueue of August 2026.
"""

from __future__ import annotations

from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, Union, get_args, get_origin, get_type_hints

from lightkube.models import apps_v1, batch_v1, core_v1, meta_v1, networking_v1, resource_v1
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ANY: Final = "*"
"""Stands for every key."""

_META: Final = {"name": str, "namespace": str}
_PODS: Final = core_v1.PodTemplateSpec
_RAY_CLUSTER: Final = {
    "rayVersion": str,
    "enableInTreeAutoscaling": bool,
    "autoscalerOptions": {"version": str, "idleTimeoutSeconds": int, "upscalingMode": str},
    "headGroupSpec": {"rayStartParams": {ANY: str}, "template": _PODS},
    "workerGroupSpecs": [
        {
            "groupName": str,
            "replicas": int,
            "minReplicas": int,
            "maxReplicas": int,
            "rayStartParams": {ANY: str},
            "template": _PODS,
        }
    ],
}
_RAY_JOB: Final = {
    "entrypoint": str,
    "runtimeEnvYAML": str,
    "shutdownAfterJobFinishes": bool,
    "ttlSecondsAfterFinished": int,
    "activeDeadlineSeconds": int,
    "submitterPodTemplate": _PODS,
    "rayClusterSpec": _RAY_CLUSTER,
}
_RAY_SERVICE: Final = {"serveConfigV2": str, "upgradeStrategy": {"type": str}, "rayClusterConfig": _RAY_CLUSTER}
_JOB_SET: Final = {
    "failurePolicy": {"maxRestarts": int},
    "replicatedJobs": [{"name": str, "replicas": int, "template": batch_v1.JobTemplateSpec}],
}
_QUOTA: Final = {"name": str, "nominalQuota": (int, str)}
_QUEUE: Final = {
    "namespaceSelector": meta_v1.LabelSelector,
    "admissionChecksStrategy": {"admissionChecks": [{"name": str}]},
    "resourceGroups": [{"coveredResources": [str], "flavors": [{"name": str, "resources": [_QUOTA]}]}],
}
_SPECS: Final[Mapping[tuple[str, str], object]] = {
    ("ray.io/v1", "RayCluster"): _RAY_CLUSTER,
    ("ray.io/v1", "RayJob"): _RAY_JOB,
    ("ray.io/v1", "RayService"): _RAY_SERVICE,
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): _JOB_SET,
    ("kueue.x-k8s.io/v1beta2", "ResourceFlavor"): {"nodeLabels": {ANY: str}, "tolerations": [core_v1.Toleration]},
    ("kueue.x-k8s.io/v1beta2", "ClusterQueue"): _QUEUE,
    ("kueue.x-k8s.io/v1beta2", "LocalQueue"): {"clusterQueue": str},
    ("kueue.x-k8s.io/v1beta2", "AdmissionCheck"): {
        "controllerName": str,
        "parameters": {"apiGroup": str, "kind": str, "name": str},
    },
    ("kueue.x-k8s.io/v1beta2", "ProvisioningRequestConfig"): {
        "provisioningClassName": str,
        "managedResources": [str],
        "podSetUpdates": {"nodeSelector": [{"key": str, "valueFromProvisioningClassDetail": str}]},
    },
}
_MODELS: Final[Mapping[tuple[str, str], type]] = {
    ("v1", "Pod"): core_v1.Pod,
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): resource_v1.ResourceClaimTemplate,
    ("v1", "Service"): core_v1.Service,
    ("v1", "ServiceAccount"): core_v1.ServiceAccount,
    ("v1", "ConfigMap"): core_v1.ConfigMap,
    ("v1", "PersistentVolumeClaim"): core_v1.PersistentVolumeClaim,
    ("batch/v1", "CronJob"): batch_v1.CronJob,
    ("networking.k8s.io/v1", "NetworkPolicy"): networking_v1.NetworkPolicy,
    ("batch/v1", "Job"): batch_v1.Job,
    ("apps/v1", "Deployment"): apps_v1.Deployment,
    ("apps/v1", "StatefulSet"): apps_v1.StatefulSet,
}


def problems(document: Mapping[str, Any]) -> list[str]:
    """Compare one object with the schema of its kind."""
    kind = (document["apiVersion"], document["kind"])
    shape = _MODELS.get(kind) or {"apiVersion": str, "kind": str, "metadata": _META, "spec": _SPECS[kind]}
    return list(_compare(document, shape, document["kind"]))


def _compare(value: object, shape: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - a table's entry
    if isinstance(shape, list):
        if not isinstance(value, list):
            yield f"{path}: a list is needed"
            return
        for index, item in enumerate(value):
            yield from _compare(item, shape[0], f"{path}[{index}]")
    elif isinstance(shape, dict):
        known = value if isinstance(value, dict) else {}
        if known is not value:
            yield f"{path}: an object is needed"
        for key, item in known.items():
            if key in shape or ANY in shape:
                yield from _compare(item, shape.get(key, shape.get(ANY)), f"{path}.{key}")
            else:
                yield f"{path}.{key}: unknown field"
    elif isinstance(shape, type) and issubclass(shape, Struct):
        yield from _compare(value, _fields(shape), path)
    elif shape is not None and not (isinstance(value, shape) and (shape is bool or not isinstance(value, bool))):
        yield f"{path}: {value!r} is of the wrong type"


@cache
def _fields(model: type[Struct]) -> dict[str, Any]:
    """Read the fields of a model by their names on the wire."""
    hints = get_type_hints(model)
    names = zip(model.__struct_encode_fields__, model.__struct_fields__, strict=True)
    return {wire: _shape(hints[name]) for wire, name in names}


def _shape(hint: Any) -> Any:  # noqa: ANN401 - a type hint
    """Read a type hint of a model; None for what takes anything."""
    if get_origin(hint) in (Union, UnionType):
        choices = [choice for choice in get_args(hint) if choice is not type(None)]
        return _shape(choices[0]) if len(choices) == 1 else None
    if get_origin(hint) is list:
        return [_shape(get_args(hint)[0])]
    if get_origin(hint) is dict or hint in (dict, Any, object):
        return None
    return hint
