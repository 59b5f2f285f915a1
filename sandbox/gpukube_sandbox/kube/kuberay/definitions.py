"""The definitions of RayCluster, RayJob, and RayService in the stand-in chart.

In scope: their schemas. Out of scope: what the operator does with the objects (`controller`).

Pod templates have the fields of lightkube's models, like those of built-in workloads. Options that the sandbox does not
emulate are accepted with any content.

Source: ray-project/kuberay v1.7.0 ray-operator/apis/ray/v1.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, get_args, get_origin

from gpukube_sandbox.kube.store.schema import field_hints, is_optional, model_of, required_hint

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.objects import JsonObject

_SCALARS = {str: "string", int: "integer", bool: "boolean", float: "number"}
_QUANTITIES = frozenset({"limits", "requests"})
_INT_OR_STRING: JsonObject = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_ONE_QUANTITY = frozenset({"sizeLimit", "divisor"})
_STRING, _BOOL, _NUMBER = {"type": "string"}, {"type": "boolean"}, {"type": "number"}
_STRINGS: JsonObject = {"type": "object", "additionalProperties": _STRING}
_OPEN: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_MAX = 2147483647


def _count(default: int | None = None, **more: object) -> JsonObject:
    return {"type": "integer", "format": "int32", **({} if default is None else {"default": default}), **more}


def _choice(*values: str, **more: object) -> JsonObject:
    return {"type": "string", "enum": list(values), **more}


def _record(required: tuple[str, ...] = (), **fields: JsonObject) -> JsonObject:
    return {"type": "object", "properties": fields} | ({"required": list(required)} if required else {})


def _list(items: JsonObject) -> JsonObject:
    return {"type": "array", "items": items}


@functools.cache
def _pod_template() -> JsonObject:
    model = model_of("", "PodTemplateSpec")
    return _of_model(model) if model else _OPEN


def _of_model(model: type) -> JsonObject:
    if model.__name__ == "ObjectMeta":
        return _record(
            name=_STRING, namespace=_STRING, labels=_STRINGS, annotations=_STRINGS, finalizers=_list(_STRING)
        )
    hints = field_hints(model)
    needed = tuple(name for name, hint in hints.items() if not is_optional(hint))
    return _record(needed, **{name: _of_hint(hint, name) for name, hint in hints.items()})


def _of_hint(hint: Any, name: str) -> JsonObject:  # noqa: ANN401 -- any type hint
    hint = required_hint(hint)
    if get_origin(hint) is list:
        return _list(_of_hint(get_args(hint)[0], ""))
    if hint is dict:
        return {"type": "object", "additionalProperties": _INT_OR_STRING if name in _QUANTITIES else _STRING}
    if name in _ONE_QUANTITY or set(get_args(hint)) >= {int, str}:
        return _INT_OR_STRING
    return {"type": _SCALARS[hint]} if hint in _SCALARS else _of_model(hint)


def _worker_group() -> JsonObject:
    return _record(
        ("groupName", "maxReplicas", "minReplicas", "template"),
        groupName=_STRING,
        suspend=_BOOL,
        replicas=_count(0),
        minReplicas=_count(0),
        maxReplicas=_count(_MAX),
        numOfHosts=_count(1),
        idleTimeoutSeconds=_count(),
        priority=_count(0),
        resources=_STRINGS,
        labels=_STRINGS,
        rayStartParams=_STRINGS,
        template=_pod_template(),
        scaleStrategy=_record(workersToDelete=_list(_STRING)),
    )


def _cluster_spec() -> JsonObject:
    head = _record(
        ("template",),
        template=_pod_template(),
        headService=_OPEN,
        enableIngress=_BOOL,
        ingressOptions=_OPEN,
        resources=_STRINGS,
        labels=_STRINGS,
        rayStartParams=_STRINGS,
        serviceType=_STRING,
    )
    autoscaler = _record(
        resources=_OPEN,
        image=_STRING,
        imagePullPolicy=_STRING,
        securityContext=_OPEN,
        idleTimeoutSeconds=_count(),
        upscalingMode=_choice("Default", "Aggressive", "Conservative"),
        version=_choice("v1", "v2"),
        env=_list(_OPEN),
        envFrom=_list(_OPEN),
        volumeMounts=_list(_OPEN),
        command=_list(_STRING),
        args=_list(_STRING),
    )
    return _record(
        ("headGroupSpec",),
        upgradeStrategy=_record(type=_choice("Recreate", "None")),
        authOptions=_OPEN,
        suspend=_BOOL,
        managedBy=_choice("ray.io/kuberay-operator", "kueue.x-k8s.io/multikueue"),
        autoscalerOptions=autoscaler,
        headServiceAnnotations=_STRINGS,
        enableInTreeAutoscaling=_BOOL,
        gcsFaultToleranceOptions=_OPEN,
        historyServerOptions=_OPEN,
        networkPolicy=_OPEN,
        tlsOptions=_OPEN,
        headGroupSpec=head,
        rayVersion=_STRING,
        workerGroupSpecs=_list(_worker_group()),
    )


def _job_spec() -> JsonObject:
    return _record(
        activeDeadlineSeconds=_count(),
        backoffLimit=_count(0),
        rayClusterSpec=_cluster_spec(),
        submitterPodTemplate=_pod_template(),
        metadata=_STRINGS,
        clusterSelector=_STRINGS,
        submitterConfig=_record(backoffLimit=_count()),
        managedBy=_choice("ray.io/kuberay-operator", "kueue.x-k8s.io/multikueue"),
        deletionStrategy=_OPEN,
        entrypoint=_STRING,
        runtimeEnvYAML=_STRING,
        jobId=_STRING,
        submissionMode={**_STRING, "default": "K8sJobMode"},
        entrypointResources=_STRING,
        entrypointNumCpus=_NUMBER,
        entrypointNumGpus=_NUMBER,
        ttlSecondsAfterFinished=_count(0),
        preRunningDeadlineSeconds=_count(minimum=1),
        shutdownAfterJobFinishes=_BOOL,
        suspend=_BOOL,
    )


def _service_spec() -> JsonObject:
    return _record(
        ("rayClusterConfig",),
        rayClusterDeletionDelaySeconds=_count(minimum=0),
        serviceUnhealthySecondThreshold=_count(),
        deploymentUnhealthySecondThreshold=_count(),
        serveService=_OPEN,
        upgradeStrategy=_record(type=_STRING, clusterUpgradeOptions=_OPEN),
        managedBy=_choice("ray.io/kuberay-operator", "kueue.x-k8s.io/multikueue"),
        serveConfigV2=_STRING,
        rayClusterConfig=_cluster_spec(),
        excludeHeadPodFromServeSvc=_BOOL,
        suspend=_BOOL,
    )


_AGE = ("age", "date", ".metadata.creationTimestamp")
_COLUMNS = {
    "RayCluster": (
        ("desired workers", "integer", ".status.desiredWorkerReplicas"),
        ("available workers", "integer", ".status.availableWorkerReplicas"),
        ("cpus", "string", ".status.desiredCPU"),
        ("memory", "string", ".status.desiredMemory"),
        ("gpus", "string", ".status.desiredGPU"),
        ("status", "string", ".status.state"),
        _AGE,
    ),
    "RayJob": (
        ("job status", "string", ".status.jobStatus"),
        ("deployment status", "string", ".status.jobDeploymentStatus"),
        ("ray cluster name", "string", ".status.rayClusterName"),
        ("start time", "string", ".status.startTime"),
        ("end time", "string", ".status.endTime"),
        _AGE,
    ),
    "RayService": (
        ("service status", "string", ".status.serviceStatus"),
        ("num serve endpoints", "string", ".status.numServeEndpoints"),
    ),
}
_SPECS = {"RayCluster": _cluster_spec, "RayJob": _job_spec, "RayService": _service_spec}


def definitions() -> list[JsonObject]:
    """Return the CustomResourceDefinitions."""
    return [_definition(kind) for kind in _SPECS]


def _definition(kind: str) -> JsonObject:
    singular, columns = kind.lower(), _COLUMNS[kind]
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [{"name": name, "type": form, "jsonPath": path} for name, form, path in columns],
        "schema": {"openAPIV3Schema": _record(spec=_SPECS[kind](), status=_OPEN)},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{singular}s.ray.io"},
        "spec": {
            "group": "ray.io",
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": f"{singular}s",
                "singular": singular,
                "categories": ["all"],
            },
            "versions": [version],
        },
    }
