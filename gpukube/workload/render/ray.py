"""KubeRay's kinds: a head without a GPU, and one worker group on the pool.

In scope: RayCluster, RayJob, RayService. Sources: ray-project/kuberay v1.7.0, apis/ray/v1 and controllers/ray/common;
Ray 2.60 autoscaler/_private/kuberay/autoscaling_config.py.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

import yaml

from gpukube.workload.render.claims import pod_claims
from gpukube.workload.render.intent import refuse
from gpukube.workload.render.pods import avoid_gpu_nodes, metadata, placement, resources, security
from gpukube.workload.render.text import Flow, Noted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.workload.offers import PoolOffer
    from gpukube.workload.render.intent import Fitted

_VERSION: Final = "2.58.0"
_HEAD_IMAGE: Final = f"rayproject/ray:{_VERSION}-py312"
_WORKER_IMAGE: Final = f"rayproject/ray:{_VERSION}-py312-gpu"
"""Pinned; the head's image has no CUDA. rayproject/ray-ml is no longer published (ray-project/ray#46378)."""
_IN_TAG: Final = re.compile(r":v?(\d+\.\d+\.\d+)(?![\d.])[^/]*$")
_API: Final = "ray.io/v1"
_IDLE_S: Final = 60
_TTL_S: Final = 300
_DEADLINE_S: Final = 24 * 3600
_SAMPLES: Final = (
    "https://github.com/ray-project/serve_config_examples/archive/b8af221bc0e5d6cc7daa0dd071295fd9e456e671.zip"
)
_STABLE_DIFFUSION: Final = "stable_diffusion.stable_diffusion:entrypoint"
_REMOTE: Final = re.compile(r"[a-z][a-z0-9]*://\S+\.(zip|jar)")
"""Remote URIs in docs.ray.io, ray-core/handling-dependencies; file:// is a path in the image."""
_UNBROKEN: Final = 1 << 30
_ENTRYPOINT: Final = (
    "python -c 'import ray; ray.init(); "
    'print(ray.get(ray.remote(num_gpus=1)(lambda: __import__("subprocess").getoutput("nvidia-smi -L")).remote()))\''
)


def render_raycluster(fitted: Fitted, pools: Sequence[PoolOffer]) -> list[dict[str, object]]:
    """Return a RayCluster.

    Raises:
        SpecError: A command is set.
    """
    if fitted.intent.command:
        refuse("COMMAND", "a RayCluster runs no command", "submit a job to it, or render a rayjob")
    return [_object("RayCluster", fitted, _cluster(fitted, pools))]


def render_rayjob(fitted: Fitted, pools: Sequence[PoolOffer]) -> list[dict[str, object]]:
    """Return a RayJob that releases its GPUs when it is done."""
    command = fitted.intent.command
    keep = avoid_gpu_nodes(pools)
    submitter = {"restartPolicy": "Never", **keep, "containers": [_small("submitter", fitted, "500m", "512Mi")]}
    spec = {
        "entrypoint": (command[0] if len(command) == 1 else shlex.join(command)) if command else _ENTRYPOINT,
        **({"runtimeEnvYAML": _yaml(environment)} if (environment := _environment(fitted)) else {}),
        "shutdownAfterJobFinishes": Noted(value=True, comment="the default keeps the cluster and its GPUs"),
        "ttlSecondsAfterFinished": _TTL_S,
        "activeDeadlineSeconds": Noted(_DEADLINE_S, "a day; a job that hangs releases its GPUs"),
        **({"submitterPodTemplate": {"spec": submitter}} if keep else {}),
        "rayClusterSpec": _cluster(fitted, pools),
    }
    return [_object("RayJob", fitted, spec)]


def render_rayservice(fitted: Fitted, pools: Sequence[PoolOffer]) -> list[dict[str, object]]:
    """Return a RayService; an upgrade starts a second cluster only if the pool has room for both."""
    _, _, most = _bounds(fitted)
    twice = 2 * most <= fitted.capacity
    upgrade = (
        "NewCluster" if twice else Noted("None", f"an upgrade with a second cluster needs {2 * most} workers at once")
    )
    spec: dict[str, object] = {
        "serveConfigV2": _serve_config(fitted),
        "upgradeStrategy": {"type": upgrade},
        "rayClusterConfig": _cluster(fitted, pools),
    }
    return [_object("RayService", fitted, spec)]


def _object(kind: str, fitted: Fitted, spec: dict[str, object]) -> dict[str, object]:
    return {"apiVersion": _API, "kind": kind, "metadata": metadata(fitted), "spec": spec}


def _cluster(fitted: Fitted, pools: Sequence[PoolOffer]) -> dict[str, object]:
    replicas, least, most = _bounds(fitted)
    scaled = least < most
    options = {"version": "v2", "idleTimeoutSeconds": _IDLE_S, "upscalingMode": "Default"}
    head = {**_small("ray-head", fitted, "2", "8Gi")}
    worker = {
        "name": "ray-worker",
        "image": fitted.intent.image or _WORKER_IMAGE,
        "resources": resources(fitted, limit_cpu=True),
        **security(fitted),
    }
    return {
        "rayVersion": _ray_version(fitted),
        **({"enableInTreeAutoscaling": True, "autoscalerOptions": options} if scaled else {}),
        "headGroupSpec": {
            "rayStartParams": {
                "num-cpus": Noted("0", "no tasks on the head"),
                "num-gpus": Noted("0", "otherwise Ray counts every GPU that it sees"),
            },
            "template": {"spec": {**avoid_gpu_nodes(pools), "containers": [head]}},
        },
        "workerGroupSpecs": [
            {
                "groupName": "gpu",
                "replicas": replicas,
                "minReplicas": least,
                "maxReplicas": _most(fitted, most),
                "rayStartParams": _start_params(fitted),
                "template": {"spec": {**placement(fitted), **pod_claims(fitted), "containers": [worker]}},
            }
        ],
    }


def _bounds(fitted: Fitted) -> tuple[int, int, int]:
    """Return the initial, minimum, and maximum number of workers.

    An autoscaled pool gets a group that scales with it from zero; a fixed pool gets a group of fixed size. --replicas
    and
    --min, --max override this.
    """
    intent, grows = fitted.intent, fitted.offer.desired.target.nodes.autoscaled
    if intent.least is None and intent.most is None and (intent.replicas is not None or not grows):
        count = fitted.replicas()
        return count, count, count
    most = fitted.capacity if intent.most is None else intent.most
    least = intent.least or 0
    if most > fitted.capacity:
        fitted.refuse("--max", most)
    if least > most:
        fitted.refuse("--min", least)
    replicas = least if intent.replicas is None else intent.replicas
    if not least <= replicas <= most:
        refuse(
            "--replicas",
            f"--replicas is {replicas}, but the group has {least} to {most} workers",
            f"write a number from {least} to {most}",
            "KubeRay silently moves it within the limits",
        )
    return replicas, least, most


def _most(fitted: Fitted, most: int) -> object:
    nodes = fitted.offer.desired.target.nodes.maximum
    whole = most == fitted.capacity and fitted.intent.most is None and most > 0
    return Noted(most, f"{nodes} nodes x {fitted.per_node} workers") if whole and nodes > 1 else most


def _start_params(fitted: Fitted) -> dict[str, object]:
    """Return the GPU count for Ray if its autoscaler, or the operator, does not recognize the resource name.

    Source:
        The autoscaler recognizes names that end in "gpu", the operator also mig-<n>g.<n>gb (kuberay
        utils/resources.go).
    """
    if fitted.offer.by_claims:
        return {"num-gpus": Noted(str(fitted.intent.gpus), "Ray counts no GPU of a claim")}
    if fitted.resource.endswith("gpu"):
        return {}
    return {"num-gpus": Noted(str(fitted.intent.gpus), f"Ray's autoscaler does not know {fitted.resource}")}


def _small(name: str, fitted: Fitted, cpu: str, memory: str) -> dict[str, object]:
    """Return a container without a GPU; by default CUDA images request all GPUs of the node from the runtime."""
    amounts = {"cpu": cpu, "memory": memory}
    void = Flow(name="NVIDIA_VISIBLE_DEVICES", value="void")
    return {
        "name": name,
        "image": fitted.intent.image or _HEAD_IMAGE,
        "env": [Noted(void, "no GPU, whatever image and node")],
        "resources": {"requests": amounts, "limits": dict(amounts)},
    }


def _ray_version(fitted: Fitted) -> object:
    found = _IN_TAG.search(fitted.intent.image)
    if found or not fitted.intent.image:
        return found[1] if found else _VERSION
    return Noted(_VERSION, "must be the version of Ray in the image")


def _environment(fitted: Fitted) -> dict[str, object]:
    """Return Ray's runtime environment.

    Raises:
        SpecError: The directory is set twice, or no pod can download it.
    """
    found, directory = dict(fitted.intent.runtime_env), fitted.intent.working_dir
    if directory and "working_dir" in found:
        refuse("--working-dir", "the file of --runtime-env also has a working_dir", "set it in one of the two")
    if directory:
        found = {"working_dir": directory, **found}
    place = found.get("working_dir")
    if place is not None and not (isinstance(place, str) and _REMOTE.fullmatch(place)):
        refuse(
            "--working-dir" if directory else "--runtime-env",
            f"working_dir is {place}, which is not the address of an archive",
            "write the URI of a .zip or .jar that the pods can read: https://..., s3://..., gs://...",
            "the pods cannot read local directories (docs.ray.io: ray-core/handling-dependencies, Remote URIs)",
        )
    return found


def _serve_config(fitted: Fitted) -> str:
    path = fitted.intent.command[0] if fitted.intent.command else _STABLE_DIFFUSION
    environment = _environment(fitted)
    if not fitted.intent.command and not environment:
        environment = {
            "working_dir": _SAMPLES,
            "pip": ["torch", "diffusers==0.32.2", "transformers==4.48.2", "accelerate"],
        }
    application = {"name": fitted.intent.name, "import_path": path}
    return _yaml({"applications": [application | ({"runtime_env": environment} if environment else {})]})


def _yaml(value: Mapping[str, object]) -> str:
    text: str = yaml.dump(value, Dumper=_Indented, sort_keys=False, allow_unicode=True, width=_UNBROKEN)
    return text


class _Indented(yaml.SafeDumper):
    """Indents lists below their key, as is usual in manifests."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - PyYAML's signature
        super().increase_indent(flow, indentless=False)
