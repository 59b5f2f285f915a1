"""The probe of a pool: one pod that requests one promised device and lists what it got.

In scope: the Job as the API expects it, the meaning of its pod's state, parsing `nvidia-smi -L`, and comparing it with
the promise; pure. Out of scope: creating, following, and deleting it (engine.probing).

It is a Job and not a bare pod so that the cluster cleans up after a killed gpukube: a pod's own deadline counts from
    its scheduling, a Job's from its creation, and a finished Job is deleted with its pod (Kubernetes documentation,
    "Jobs": activeDeadlineSeconds, ttlSecondsAfterFinished).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from gpukube.cluster.kube.views import NO_IMAGE
from gpukube.cluster.proof.fabric import fabric_devices
from gpukube.cluster.proof.outcome import code_of_step, missing
from gpukube.core.jsontree import items, number, text, tree
from gpukube.core.values import OWNER_LABEL, POOL_LABEL
from gpukube.gpu.capacity import shared_name
from gpukube.gpu.claims import is_claimable, mig_devices
from gpukube.gpu.mig import is_same_profile, resource_name
from gpukube.gpu.models import is_product

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpukube.cluster.kube.views import NodeView, PodView
    from gpukube.cluster.proof.outcome import PoolProof
    from gpukube.core.jsontree import Tree
    from gpukube.core.values import Desired
    from gpukube.errors import Finding

PROBE_IMAGE: Final = "nvcr.io/nvidia/cuda:12.4.1-base-ubuntu22.04"
"""NVIDIA's smallest CUDA image, for x86 and Arm; the node's container runtime adds nvidia-smi, and the image's PATH
includes GKE's location of it. Pinned: `latest` is deprecated for these images."""
PROBE_LABEL: Final = "gpukube.io/probe"
_DEADLINE_S: Final = 1800
_KEPT_S: Final = 3600
"""Seconds that a finished Job stays for slow readers; a gpukube that exits normally deletes it immediately."""
_STALE: Final = timedelta(seconds=_DEADLINE_S)
_COMMAND: Final = ("nvidia-smi", "-L")
_INTERFACES: Final = ("/dev/infiniband", "/sys/class/infiniband")
_WITH_FABRIC: Final = (
    "sh",
    "-c",
    " && ".join([" ".join(_COMMAND), *(f"echo {path}: $(ls {path} 2>&1)" for path in _INTERFACES)]),
)
"""Lists the RDMA devices too: those that the container may use, and those of the node. The image has no fi_info."""
_STAYS_S: Final = 120
"""Seconds that a pod with a claim stays after it has listed its device, so that its claim can be read."""
_USABLE: Final = "uverbs"
"""Prefix of the devices by which programs use an RDMA interface (kernel documentation, infiniband/user_verbs)."""
_GPU: Final = re.compile(r"GPU (?P<index>\d+): (?P<name>.+?) \(UUID: (?P<uuid>GPU-[^)\s]+)\)\s*")
_MIG: Final = re.compile(r"\s+MIG (?P<name>\S+)\s+Device\s+(?P<index>\d+): \(UUID: (?P<uuid>MIG-[^)]+)\)\s*")
_MIG_PREFIX: Final = "nvidia.com/mig-"
_NAME_ROOM: Final = 63  # pods have their Job's name as a label, whose value has at most 63 characters


@dataclass(frozen=True, slots=True)
class Listed:
    """A device that `nvidia-smi -L` lists: a GPU, or a MIG instance on it.

    Attributes:
        kind: Whether it is a GPU or a MIG instance.
        name: Product ("NVIDIA A100-SXM4-40GB") or profile ("1g.5gb").
        uuid: "GPU-..." or "MIG-...".
    """

    kind: Literal["gpu", "mig"]
    name: str
    uuid: str


class Claimed(NamedTuple):
    """A device of the DRA driver: its pool of devices, and its name there."""

    pool: str
    device: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """State of the probe's pod.

    Attributes:
        pod: Its name; "" if it does not exist yet.
        node: Its node; "" before it is scheduled.
        phase: "Pending", "Running", "Succeeded" or "Failed"; "" without a pod.
        reason, message: Of the pod, or why it is not scheduled, or why its container does not run.
        exit_code: Exit code of the container; None until it has finished.
        claim: Name of its ResourceClaim; "" if it has none yet.
        device: The device of that claim; None if it was never seen allocated.
        listed: Whether its claim and its output were read, and it need not go on.
    """

    pod: str = ""
    node: str = ""
    phase: str = ""
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    claim: str = ""
    device: Claimed | None = None
    listed: bool = False

    @property
    def over(self) -> bool:
        """Whether it has ended, is no longer needed, or will not start without a change."""
        return self.listed or self.phase in ("Succeeded", "Failed") or self.reason in _HOPELESS

    def __str__(self) -> str:
        """Render the state in one line."""
        return " ".join(filter(None, ("the probe's pod", self.pod or "does not exist yet", self.phase, self.reason)))

    @property
    def stuck(self) -> bool:
        """Whether it seldom recovers from this state on its own."""
        return self.reason in _STUCK


_HOPELESS: Final = ("InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError")
_STUCK: Final = ("ImagePullBackOff", "ErrImagePull", "Unschedulable")


def probed_resource(desired: Desired) -> str:
    """Return the resource that the probe requests: the first of the promised ones."""
    return min(desired.promise.per_node, default="")


def probe_marks(desired: Desired) -> dict[str, str]:
    """Return the labels by which a later run finds the Jobs that an earlier one left."""
    return {PROBE_LABEL: "true", OWNER_LABEL: desired.target.owner, POOL_LABEL: desired.target.pool}


def probe_job(
    desired: Desired, namespace: str, suffix: str, image: str = PROBE_IMAGE, fabric: str = ""
) -> dict[str, object]:
    """Return the Job.

    Args:
        desired: The pool; its labels select the nodes, its effective taints are tolerated.
        namespace: Namespace of the Job.
        suffix: Distinguishes its name from earlier ones.
        image: Image with `nvidia-smi -L`.
        fabric: Resource of the fast network that it also requests one of; "" for none.
    """
    marks = probe_marks(desired)
    stem = f"gpukube-probe-{desired.target.pool}"[: _NAME_ROOM - len(suffix) - 1].rstrip("-.")
    name = f"{stem}-{suffix}"
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "labels": marks},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": _DEADLINE_S,
            "ttlSecondsAfterFinished": _KEPT_S,
            "template": {"metadata": {"labels": marks}, "spec": _pod(desired, name, image, fabric)},
        },
    }


def _pod(desired: Desired, name: str, image: str, fabric: str) -> dict[str, object]:
    target, resource = desired.target, probed_resource(desired)
    claims, devices = is_claimable(resource), {fabric: "1"} if fabric else {}
    resources: dict[str, object] = {"requests": {"cpu": "10m", "memory": "32Mi"}}
    command = list(_WITH_FABRIC if fabric else _COMMAND)
    if claims:
        resources["claims"] = [{"name": "device"}]
        command = ["sh", "-c", f"{command[-1] if fabric else ' '.join(_COMMAND)} && sleep {_STAYS_S}"]
    else:
        devices = {resource: "1", **devices}
    resources["limits"] = {"memory": "256Mi", **devices}
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "nodeSelector": {OWNER_LABEL: target.owner, POOL_LABEL: target.pool},
        "tolerations": [
            {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
            for taint in desired.effective_taints
        ],
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        **({"resourceClaims": [{"name": "device", "resourceClaimTemplateName": name}]} if claims else {}),
        "containers": [
            {
                "name": "probe",
                "image": image,
                "command": command,
                # The image requires a driver for its CUDA version; listing devices needs no particular one.
                "env": [{"name": "NVIDIA_DISABLE_REQUIRE", "value": "true"}],
                "resources": resources,
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ],
    }


def is_left_over(job: Tree, current: Tree) -> bool:
    """Return whether another probe Job of the same pool was left by a killed run.

    By the API's own clock it is so much older than this one that no running gpukube waits for it; two runs may probe a
    pool at once.
    """
    age = _created(current) - _created(job)
    return text(job, "metadata", "name") != text(current, "metadata", "name") and age > _STALE


def _created(job: Tree) -> datetime:
    return datetime.fromisoformat(text(job, "metadata", "creationTimestamp"))


def free_devices(resource: str, nodes: Iterable[NodeView], pods: Mapping[str, Iterable[PodView]]) -> int:
    """Count a resource's free devices on nodes that accept pods; devices of other probes count as free.

    Args:
        resource: Name of the resource.
        nodes: Nodes of the pool.
        pods: Node name -> its pods.
    """
    free = 0
    for node in nodes:
        if not node.ready or node.cordoned:
            continue
        living = [pod for pod in pods.get(node.name, ()) if pod.phase not in ("Succeeded", "Failed")]
        held = sum(pod.devices.get(resource, 0) for pod in living if PROBE_LABEL not in pod.labels)
        free += max(0, node.devices.get(resource, 0) - held)
    return free


def free_fabric(desired: Desired, nodes: Iterable[NodeView], pods: Mapping[str, Iterable[PodView]]) -> str:
    """Return a resource of the fast network that has a free device beside a free GPU; "" if there is none.

    Args:
        desired: The pool.
        nodes: Nodes of the pool; if its devices are claimed, those with a free one.
        pods: Node name -> its pods.
    """
    fabric = desired.fabric
    if fabric is None or not fabric.request:  # pods need more than the resource, such as an annotation
        return ""
    for node in nodes:
        resource = probed_resource(desired)
        if not is_claimable(resource) and not free_devices(resource, [node], pods):
            continue
        living = [pod for pod in pods.get(node.name, ()) if pod.phase not in ("Succeeded", "Failed")]
        for name, count in fabric_devices(fabric, node).items():
            if count > sum(pod.others.get(name, 0) for pod in living if PROBE_LABEL not in pod.labels):
                return name
    return ""


def usable_interfaces(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the RDMA devices that the probe's container may use."""
    listed = next((line for line in lines if line.startswith(f"{_INTERFACES[0]}:")), "")
    return tuple(word for word in listed.split() if word.startswith(_USABLE))


def judge_interfaces(node: str, resource: str, lines: Sequence[str]) -> tuple[Finding, ...]:
    """Check that a container with one device of the fast network can use one; empty if it can."""
    if usable_interfaces(lines):
        return ()
    seen = f"a pod with one {resource} sees no /dev/infiniband/{_USABLE}*"
    return (missing(node, "probe", "error", seen, "its device plugin passed no device to the container"),)


def read_attempt(pods: Sequence[Tree]) -> Attempt:
    """Read the state of the probe's pod, the newest if there are several."""
    if not pods:
        return Attempt()
    pod = max(pods, key=lambda item: text(item, "metadata", "creationTimestamp"))
    status = tree(pod, "status")
    placed = next((item for item in items(status, "conditions") if text(item, "type") == "PodScheduled"), {})
    container = next(iter(items(status, "containerStatuses")), {})
    waiting, ended = tree(container, "state", "waiting"), tree(container, "state", "terminated")
    sources = [status, ended, waiting, placed if text(placed, "status") == "False" else {}]
    source = next((item for item in sources if text(item, "reason")), {})
    return Attempt(
        pod=text(pod, "metadata", "name"),
        node=text(pod, "spec", "nodeName"),
        phase=text(status, "phase") or "Pending",
        reason=text(source, "reason"),
        message=text(source, "message"),
        exit_code=number(ended, "exitCode") if ended else None,
        claim=next((text(item, "resourceClaimName") for item in items(status, "resourceClaimStatuses")), ""),
    )


def parse_listing(lines: Iterable[str]) -> tuple[Listed, ...]:
    """Parse the output of `nvidia-smi -L`; skip other lines."""
    found = []
    for line in lines:
        if gpu := _GPU.fullmatch(line):
            found.append(Listed("gpu", gpu["name"], gpu["uuid"]))
        elif mig := _MIG.fullmatch(line):
            found.append(Listed("mig", mig["name"], mig["uuid"]))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Row:
    reasons: tuple[str, ...]
    means: str
    fix: str


_ROWS: Final = (
    _Row(
        NO_IMAGE,
        "the nodes cannot pull the probe's image",
        "use another image: --probe-image REGISTRY/cuda:TAG",
    ),
    _Row(
        ("UnexpectedAdmissionError",),
        "the kubelet could not allocate the device: its plugin rejected it or was not running",
        "kubectl -n {namespace} describe pod {pod}; then restart the plugin on node {node}",
    ),
    _Row(
        ("StartError", "ContainerCannotRun", "RunContainerError", "CreateContainerError"),
        "the driver, or the NVIDIA container runtime, did not add nvidia-smi to the container",
        "check driver and container runtime of node {node}",
    ),
    _Row(
        ("Unschedulable",),
        "no node of the pool has room for a pod that requests one device",
        "list the pods that use them: kubectl describe nodes -l {label}={pool}",
    ),
    _Row(
        ("DeadlineExceeded",),
        "the pod timed out",
        "run it again; the cluster has stopped this pod",
    ),
)
"""The first row with the pod's reason explains a pod that failed."""
_ENDED: Final = _Row(
    (),
    "nvidia-smi failed: the driver does not answer, or the device is missing",
    "check the driver of node {node}",
)
_NOT_ENDED: Final = _Row((), "it timed out", "kubectl -n {namespace} describe pod {pod}")


_NO_NODE: Final = _Row(
    (),
    "the pool has no node, and its autoscaler started none for this pod",
    "check its events: kubectl get events --all-namespaces --field-selector reason=NotTriggerScaleUp",
)


def judge_attempt(desired: Desired, attempt: Attempt, namespace: str, proof: PoolProof | None = None) -> Finding:
    """Return the finding for a pod that did not succeed.

    Args:
        desired: The pool.
        attempt: State of the pod when last read.
        namespace: Namespace of the pod.
        proof: The pool's earlier result; None if the pool has nodes.
    """
    where = attempt.node or desired.target.where.source
    if not attempt.pod:
        means = "a quota, a limit range or an admission policy of the namespace rejects the pod"
        fix = f"kubectl -n {namespace} get events --sort-by=.lastTimestamp"
        return missing(where, "probe", "error", "the probe's Job created no pod", means, fix)
    cause = ": ".join(part for part in (attempt.reason, next(iter(attempt.message.splitlines()), "")) if part)
    ended = f" with exit code {attempt.exit_code}" if attempt.exit_code else ""
    text = f"the probe's pod is {attempt.phase}{ended}" + (f" ({cause})" if cause else "")
    words = {
        "namespace": namespace,
        "pod": attempt.pod,
        "node": attempt.node,
        "label": POOL_LABEL,
        "pool": desired.target.pool,
    }
    if proof is not None and not proof.nodes_seen and not attempt.node:
        scaling = next((found for found in proof.findings if found.code == code_of_step("node")), None)
        means, fix = (scaling.why, scaling.fix) if scaling else (_NO_NODE.means, _NO_NODE.fix)
        return missing(where, "probe", "error", text, means, fix)
    row = next((row for row in _ROWS if attempt.reason in row.reasons), _ENDED if ended else _NOT_ENDED)
    return missing(where, "probe", "error", text, row.means.format(**words), row.fix.format(**words))


def judge_output(desired: Desired, node: str, listed: Sequence[Listed]) -> tuple[Finding, ...]:
    """Compare what a pod with one device sees with what the pool promises; empty if it matches.

    A whole GPU, even a shared one, is one GPU and nothing else. A MIG device is one instance on its GPU.
    """
    gpus = [item for item in listed if item.kind == "gpu"]
    cuts = [item for item in listed if item.kind == "mig"]
    wrong = _count(desired, gpus, cuts) or _type(desired, gpus, cuts)
    return (missing(node, "probe", "error", wrong[0], wrong[1]),) if wrong else ()


def _count(desired: Desired, gpus: Sequence[Listed], cuts: Sequence[Listed]) -> tuple[str, str] | None:
    seen = f"a pod with one device sees {len(gpus)} GPUs and {len(cuts)} MIG devices"
    mig = desired.target.sharing.mig
    if mig is None:
        if (len(gpus), len(cuts)) == (1, 0):
            return None
        if cuts:
            return f"{seen}, not 1 and 0", "MIG is on, but the pool promises whole GPUs"
        few = "the driver lists no GPU" if not gpus else "the pod sees devices that were not allocated to it"
        return f"{seen}, not 1 and 0", few
    if (len(gpus), len(cuts)) == (1, 1):
        return None
    if not cuts:
        return f"{seen}, not 1 and 1", "MIG is off, or the instance was not passed to the pod"
    return f"{seen}, not 1 and 1", "the pod got a whole GPU with all its instances, or sees devices of others"


def _type(desired: Desired, gpus: Sequence[Listed], cuts: Sequence[Listed]) -> tuple[str, str] | None:
    model = desired.target.machine.model
    if not is_product(model, gpus[0].name):
        return f'the GPU is "{gpus[0].name}", not {model.chip}', "the machine is not the declared one"
    mig = desired.target.sharing.mig
    expected = _requested_profiles(desired)
    if mig is not None and not any(is_same_profile(profile, cuts[0].name) for profile in expected):
        seen = f"the MIG device is {cuts[0].name}, not {' or '.join(expected)}"
        return seen, "the GPUs have another MIG layout than declared"
    return None


def _requested_profiles(desired: Desired) -> tuple[str, ...]:
    """Return the profiles of the resource that the probe requests: all of them if they share one name."""
    sharing = desired.target.sharing
    known = sharing.mig.profiles if sharing.mig else ()
    names = {name: (shared_name(resource_name(name), sharing), mig_devices(name)) for name in known}
    named = tuple(name for name, forms in names.items() if probed_resource(desired) in forms)
    return named or known
