"""The pod in every kind of manifest: container, device, selector, and tolerations.

In scope: what all kinds share. Out of scope: the kinds (batch, ray, kueue).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.tolerations import pod_tolerations
from gpukube.workload.render.claims import container_claims, pod_claims
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
    """Return the metadata of an object."""
    namespace = fitted.intent.namespace
    return {"name": name or fitted.intent.name, **({"namespace": namespace} if namespace else {})}


def pod_spec(fitted: Fitted, command: Sequence[str], restart: str = "Never") -> dict[str, object]:
    """Return a pod spec with one container that has the devices."""
    container: dict[str, object] = {
        "name": "main",
        "image": fitted.intent.image or CUDA_IMAGE,
        "command": list(fitted.intent.command or command),
        "resources": resources(fitted),
        **security(fitted),
    }
    volumes: dict[str, object] = {}
    if fitted.intent.gpus > 1:
        # NVIDIA/nccl, docs: user guide, troubleshooting: NCCL uses /dev/shm between GPUs of a node.
        container["volumeMounts"] = [Flow(name="shm", mountPath="/dev/shm")]  # noqa: S108 - in the container
        shm = Flow(name="shm", emptyDir={"medium": "Memory"})
        volumes = {
            "volumes": [Noted(shm, "NCCL needs more than the default 64 MiB; counts as memory of the container")]
        }
    return {"restartPolicy": restart, **placement(fitted), **pod_claims(fitted), "containers": [container], **volumes}


def placement(fitted: Fitted) -> dict[str, object]:
    """Return the selector for the pool's nodes, and tolerations for all their taints."""
    tolerations = [
        _toleration(fitted, needed) for needed in pod_tolerations(fitted.offer.desired, tolerates_resources=False)
    ]
    return {"nodeSelector": _selector(fitted), **({"tolerations": tolerations} if tolerations else {})}


def resources(fitted: Fitted, *, limit_cpu: bool = False) -> dict[str, object]:
    """Return requests of devices, CPU, and memory; limits equal requests for devices and memory."""
    number = {} if fitted.offer.by_claims else {fitted.resource: fitted.intent.gpus}
    devices = {name: Noted(count, why) if (why := _about_device(fitted)) else count for name, count in number.items()}
    cpu = {"cpu": fitted.cpu}
    memory = {"memory": fitted.memory}
    network = {**fitted.hugepages, **fitted.fabric}
    return {
        "requests": {**cpu, **memory, **number, **network},
        "limits": {**(cpu if limit_cpu else {}), **memory, **devices, **_network(fitted)},
        **container_claims(fitted),
    }


def _network(fitted: Fitted) -> dict[str, object]:
    """Return limits of the fast network and its huge pages, with their reasons."""
    fabric = fitted.offer.desired.fabric
    if fabric is None:
        return {}
    title = fabric.title
    pages = {
        name: Noted(size, f"for the buffers of {title}; in addition to memory")
        for name, size in fitted.hugepages.items()
    }
    named = fabric.about_request
    devices = {
        name: Noted(count, f"{title}: {_share(count, fabric.names[name])}" + (f"; {named}" if named else ""))
        for name, count in fitted.fabric.items()
    }
    return {**pages, **devices}


def _share(count: int, of: int) -> str:
    return "all of a node" if count == of else f"its share of the node's {of}"


def security(fitted: Fitted) -> dict[str, object]:
    """Return the container's security context; {} if it needs none."""
    fabric = fitted.offer.desired.fabric
    if fabric is None or not fitted.fabric or not fabric.locks_memory:
        return {}
    lock = Noted(Flow(capabilities={"add": ["IPC_LOCK"]}), f"{fabric.title} needs memory that is never swapped out")
    return {"securityContext": lock}


def avoid_gpu_nodes(pools: Sequence[PoolOffer]) -> dict[str, object]:
    """Return the affinity that keeps a pod without devices off GPU nodes without a taint.

    Args:
        pools: All pools of the cluster.
    """
    open_pools = [offer for offer in pools if not any(taint.effect in _EVICTING for taint in offer.real.taints)]
    names: dict[str, list[str]] = {}
    for offer in open_pools:
        key, value = next(iter(offer.selector.items()))
        names.setdefault(key, []).append(value)
    if not names:
        return {}
    rules = [
        Noted(Flow(key=key, operator="NotIn", values=sorted(values)), "GPU pools without a taint")
        for key, values in names.items()
    ]
    required = {"nodeSelectorTerms": [{"matchExpressions": rules}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def _selector(fitted: Fitted) -> dict[str, object]:
    pool, *others = fitted.offer.selector.items()
    first = Noted(pool[1], "known to the autoscaler while the pool is empty") if fitted.starts_empty else pool[1]
    return {pool[0]: first, **{key: Noted(value, "how nodes of this cloud share a GPU") for key, value in others}}


def _toleration(fitted: Fitted, needed: Toleration) -> object:
    value = {"value": needed.value} if needed.operator == "Equal" else {}
    written = Flow(key=needed.key, operator=needed.operator, **value, effect=needed.effect)
    why = _about_taint(fitted, needed)
    return Noted(written, why) if why else written


def _about_taint(fitted: Fitted, needed: Toleration) -> str:
    target, of_device = fitted.offer.desired.target, needed.key.startswith("nvidia.com/")
    if fitted.offer.tolerates_resources and of_device and needed.effect == "NoSchedule":
        if fitted.offer.by_claims:
            return "the cluster adds none for claims"
        if needed.key == fitted.resource:
            return "the cluster adds it too"
        return f"the cluster adds one only for {fitted.resource}"
    if all(taint.key != needed.key for taint in target.taints):
        return "the cloud sets this taint"
    return ""


def _about_device(fitted: Fitted) -> str:
    sharing = fitted.offer.desired.target.sharing
    cut, slicing = sharing.mig, sharing.slicing
    of = "a GPU"
    found = []
    if cut and cut.strategy == "mixed":
        found.append("strategy mixed: each MIG profile is a separate resource")
        of = "a MIG instance"
    elif cut:
        found.append(f"MIG: each {cut.profile} instance counts as one GPU")
        of = "an instance"
    if slicing:
        memory = "memory is not divided" if slicing.mode == "time-slicing" else "by MPS"
        found.append(f"one of {slicing.replicas} shares of {of}; {memory}")
    return "; ".join(found)
