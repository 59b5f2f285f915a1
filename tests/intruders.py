"""What others put into a cluster: pods and workloads beside ours, made and taken away through the Kubernetes API.

In scope: the objects and the hands. Out of scope: which of them is a fault, and what is to be said of it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lightkube import ApiError
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import DaemonSet, Deployment
from lightkube.resources.core_v1 import Namespace, Pod, ResourceQuota

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lightkube import Client

Body = dict[str, Any]  # objects of the Kubernetes API as YAML has them

TEAM = "team-vision"
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
TOLERATES_GPU = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]

_KINDS: Mapping[str, type[Pod | DaemonSet | Deployment | ResourceQuota]] = {
    "Pod": Pod,
    "DaemonSet": DaemonSet,
    "Deployment": Deployment,
    "ResourceQuota": ResourceQuota,
}


def put_in(client: Client, *bodies: Body) -> None:
    """Create objects, and the namespaces that they name."""
    for body in bodies:
        with suppress(ApiError):
            client.create(Namespace(metadata=ObjectMeta(name=body["metadata"]["namespace"])))
        made = _KINDS[body["kind"]].from_dict(body)
        assert isinstance(made, (Pod, DaemonSet, Deployment, ResourceQuota))
        client.create(made)


def take_out(client: Client, *bodies: Body) -> None:
    """Delete them again, without waiting."""
    for body in bodies:
        meta = body["metadata"]
        client.delete(_KINDS[body["kind"]], meta["name"], namespace=meta["namespace"], grace_period=0)


def gpu_pod(name: str, resource: str, count: int, **spec: object) -> Body:
    """Make a pod of a team that asks for devices."""
    asked = {"limits": {resource: str(count)}, "requests": {resource: str(count)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": TEAM},
        "spec": {
            "tolerations": TOLERATES_GPU,
            "containers": [{"name": "main", "image": "nvidia/cuda:12.9.0-base-ubuntu24.04", "resources": asked}],
            **spec,
        },
    }


def workload(kind: str, name: str, namespace: str, labels: Body, command: str, **spec: object) -> Body:
    """Make a DaemonSet or Deployment whose one container runs a command."""
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name, **labels}},
                "spec": {"containers": [{"name": "main", "image": "example/image:1", "command": [command]}], **spec},
            },
        },
    }
