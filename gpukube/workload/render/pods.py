"""The pod of every kind of manifest: its container, device, selector and tolerations.

In scope: what all kinds share. Out of scope: the kinds (batch, ray, kueue).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.tolerations import pod_tolerations
from gpukube.workload.render.intent import CUDA_IMAGE
from gpukube.workload.render.text import Flow, Noted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.core.values import Toleration
    from gpukube.workload.offers import PoolOffer
    from gpukube.workload.render.intent import Fitted

TEMPLATE_LABEL: Final = "app.kubernetes.io/name"
_GPU: Final = "nvidia.com/gpu"
_EVICTING: Final = ("NoSchedule", "NoExecute")


def metadata(fitted: Fitted, name: str = "") -> dict[str, object]:
    """Name an object."""
    namespace = fitted.intent.namespace
    return {"name": name or fitted.intent.name, **({"namespace": namespace} if namespace else {})}


def pod_spec(fitted: Fitted, command: Sequence[str], restart: str = "Never") -> dict[str, object]:
    """Write a pod with one container that has the devices."""
    container: dict[str, object] = {
        "name": "main",
        "image": fitted.intent.image or CUDA_IMAGE,
        "command": list(fitted.intent.command or command),
        "resources": resources(fitted),
    }
    volumes: dict[str, object] = {}
    if fitted.intent.gpus > 1:
        # NVIDIA/nccl, docs: user guide, troubleshooting: between GPUs of a node it goes through /dev/shm.
        container["volumeMounts"] = [Flow(name="shm", mountPath="/dev/shm")]  # noqa: S108 - in the container
        shm = Flow(name="shm", emptyDir={"medium": "Memory"})
        volumes = {"volumes": [Noted(shm, "NCCL needs more than the usual 64 MiB; counts as memory of the container")]}
    return {"restartPolicy": restart, **placement(fitted), "containers": [container], **volumes}


def placement(fitted: Fitted) -> dict[str, object]:
    """Bring a pod to the pool: the labels that choose its nodes, and all their taints tolerated."""
    tolerations = [
        _toleration(fitted, needed) for needed in pod_tolerations(fitted.offer.desired, tolerates_resources=False)
    ]
    return {"nodeSelector": _selector(fitted), **({"tolerations": tolerations} if tolerations else {})}


def resources(fitted: Fitted, *, limit_cpu: bool = False) -> dict[str, object]:
    """Request devices, processors and memory; devices and memory are limited to what is requested."""
    devices = {
        fitted.resource: Noted(fitted.intent.gpus, why) if (why := _about_device(fitted)) else fitted.intent.gpus
    }
    cpu = {"cpu": fitted.cpu}
    memory = {"memory": fitted.memory}
    return {
        "requests": {**cpu, **memory, fitted.resource: fitted.intent.gpus},
        "limits": {**(cpu if limit_cpu else {}), **memory, **devices},
    }


def away(fitted: Fitted, beside: Sequence[PoolOffer]) -> dict[str, object]:
    """Keep a pod without devices off GPU nodes that no taint keeps it off.

    Args:
        fitted: Its pool.
        beside: All pools of the cluster.
    """
    key = next(iter(fitted.offer.selector))
    open_pools = [offer for offer in beside if not any(taint.effect in _EVICTING for taint in offer.real.taints)]
    names = sorted(offer.selector[key] for offer in open_pools if key in offer.selector)
    if not names:
        return {}
    rule = Noted(Flow(key=key, operator="NotIn", values=names), "GPU pools without a taint")
    required = {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def _selector(fitted: Fitted) -> dict[str, object]:
    pool, *others = fitted.offer.selector.items()
    first = Noted(pool[1], "known to the autoscaler while the pool is empty") if fitted.starts_empty else pool[1]
    return {pool[0]: first, **{key: Noted(value, "how this cloud's nodes divide a GPU") for key, value in others}}


def _toleration(fitted: Fitted, needed: Toleration) -> object:
    value = {"value": needed.value} if needed.operator == "Equal" else {}
    written = Flow(key=needed.key, operator=needed.operator, **value, effect=needed.effect)
    why = _about_taint(fitted, needed)
    return Noted(written, why) if why else written


def _about_taint(fitted: Fitted, needed: Toleration) -> str:
    target, of_device = fitted.offer.desired.target, needed.key.startswith("nvidia.com/")
    if fitted.offer.tolerates_resources and of_device and needed.effect == "NoSchedule":
        if needed.key == fitted.resource:
            return "the cluster adds it too"
        return f"the cluster adds one for {fitted.resource} only"
    if all(taint.key != needed.key for taint in target.taints):
        return "the cloud taints these nodes itself"
    return ""


def _about_device(fitted: Fitted) -> str:
    sharing = fitted.offer.desired.target.sharing
    cut, slicing = sharing.mig, sharing.slicing
    of = "a GPU"
    found = []
    if cut and cut.strategy == "mixed":
        found.append("strategy mixed: each MIG profile is a resource of its own")
        of = "a MIG instance"
    elif cut:
        found.append(f"MIG: each {cut.profile} instance counts as one GPU")
        of = "an instance"
    if slicing:
        memory = "its memory is not divided" if slicing.mode == "time-slicing" else "by MPS"
        found.append(f"one of {slicing.replicas} shares of {of}; {memory}")
    return "; ".join(found)
