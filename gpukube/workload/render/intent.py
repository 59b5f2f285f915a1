"""Matches a requested workload with a pool: device, resources of a pod, how many pods fit.

In scope: the defaults and the errors. Out of scope: any manifest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NoReturn

from gpukube.core.hugepages import HUGE, SIZES, pages_text
from gpukube.errors import SpecError, Where
from gpukube.gpu.refusal import nearest, one_of
from gpukube.workload.quantity import cpu_text, memory_text, parse_quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.workload.offers import PoolOffer

CUDA_IMAGE: Final = "nvcr.io/nvidia/cuda:12.4.1-base-ubuntu22.04"
"""Image that `--probe` also uses: small, pinned, for x86 and Arm."""
NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
NAME_LENGTH: Final = 47
"""KubeRay's limit for a RayJob or RayService; JobSet's pod names need as much (kuberay utils/validation.go)."""
_SHARE: Final = 0.9
"""Share of a node's capacity for pods: the rest is for the user's own DaemonSets."""
_GUESSED_CPU: Final = 1000
_GUESSED_MEMORY: Final = 4 << 30
_RAY_INIT: Final = (200, 256 << 20)
"""Requests of the init container that KubeRay adds to each worker (kuberay controllers/ray/common/pod.go)."""
_JOBS: Final = ("job", "jobset")
_USED: Final = 5120 << 20
"""Huge pages that a job uses with all GPUs of a node with EFA (docs: eks/node-efa; awslabs/awsome-distributed-training,
nccl-tests)."""
_GIB: Final = 1 << 30
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """The requested workload, from the command line.

    Attributes:
        kind: Kind of manifest.
        gpus: Devices per pod.
        same_gpu: Whether all MIG devices of a pod are on one GPU.
        resource: Device resource, for nodes with several kinds; "" for the only one.
        image: Image; "" for the kind's default.
        name, namespace: "" for the pool's name, and for no namespace.
        replicas: Number of pods; None for the kind's default.
        least, most: Limits of a Ray group; None for those of the pool.
        cpu, memory: Per pod, as quantities; "" for a fair share.
        command: Command to run; () for the kind's default.
        runtime_env: Runtime environment of a RayJob or RayService; {} for none.
        working_dir: For the same kinds: address of an archive with the code; "" for none.
    """

    kind: str
    gpus: int = 1
    same_gpu: bool = False
    resource: str = ""
    image: str = ""
    name: str = ""
    namespace: str = ""
    replicas: int | None = None
    least: int | None = None
    most: int | None = None
    cpu: str = ""
    memory: str = ""
    command: tuple[str, ...] = ()
    runtime_env: Mapping[str, object] = field(default_factory=dict)
    working_dir: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A requested workload matched with its pool.

    Attributes:
        intent: The request, with a name.
        offer: The pool.
        resource: Name of the device resource that pods request.
        cpu, memory: Per pod, as quantities.
        per_node: Number of pods that fill a node.
        notes: Human-readable notes.
        fabric: Devices of the fast network per pod, by resource; {} for pods that communicate with no others.
        hugepages: Huge pages per pod, as a quantity by resource.
    """

    intent: Intent
    offer: PoolOffer
    resource: str
    cpu: str
    memory: str
    per_node: int
    notes: tuple[str, ...]
    fabric: Mapping[str, int] = field(default_factory=dict)
    hugepages: Mapping[str, str] = field(default_factory=dict)

    @property
    def capacity(self) -> int:
        """Number of pods that fill the pool at its maximum."""
        return self.per_node * self.offer.desired.target.nodes.maximum

    @property
    def starts_empty(self) -> bool:
        """Whether the autoscaler may have to start the first node."""
        nodes = self.offer.desired.target.nodes
        return nodes.autoscaled and nodes.minimum == 0

    def replicas(self) -> int:
        """Number of pods that run concurrently; one by default.

        Raises:
            SpecError: The pool has no room for them.
        """
        count = 1 if self.intent.replicas is None else self.intent.replicas
        if count > self.capacity:
            self.refuse("--replicas", count)
        return count

    def refuse(self, option: str, count: int) -> NoReturn:
        """Raise an error for more pods than the pool ever has room for."""
        nodes = self.offer.desired.target.nodes.maximum
        refuse(
            option,
            f"{option} is {count}, but {self.offer.name} has room for {self.capacity} such pods: {self.per_node} on "
            f"each of {nodes} node{'s' * (nodes != 1)}",
            f"write {option} {self.capacity} or less, request less per pod, or raise the pool's node count",
        )


def refuse(option: str, message: str, fix: str, why: str = "") -> NoReturn:
    """Raise an error about an option."""
    raise SpecError(message, where=Where(option), fix=fix, why=why, code="workload-option")


def fit_intent(intent: Intent, offer: PoolOffer, *, of_ray: bool = False) -> Fitted:
    """Apply defaults, and check the request against the pool.

    Args:
        intent: The requested workload.
        offer: The pool.
        of_ray: Whether KubeRay creates the pods: Ray counts CPUs in integers.

    Raises:
        SpecError: workload-option; the pool does not support it.
    """
    _check_counts(intent)
    resource = _resource(intent, offer)
    notes = [*_check_devices(intent, offer, resource)]
    _check_zero(intent, offer, resource)
    real = offer.real
    share = _SHARE * intent.gpus / sum(offer.gpus.values())
    cpu = _quantity("--cpu", intent.cpu, 1000) or _tidy_cpu(real.cpu, share, whole=of_ray)
    memory = _quantity("--memory", intent.memory) or _tidy_memory(real.memory, share)
    if real.cpu is None and not (intent.cpu and intent.memory):
        notes.append(
            f"the catalog has no CPU and memory of {offer.desired.target.machine.name}: the requests of a "
            "pod are a guess; write --cpu and --memory"
        )
    fabric = _fabric(intent, offer)
    limits = [_most_pods(intent, offer, resource), *(offer.real.devices[name] // fabric[name] for name in fabric)]
    least_cpu, least_memory = _RAY_INIT if of_ray else (1, 1)
    for option, requested, room, shown in (
        ("--cpu", max(cpu, least_cpu), real.cpu, cpu_text),
        ("--memory", max(memory, least_memory), real.memory, memory_text),
    ):
        if room is not None and requested > room:
            refuse(
                option,
                f"{option} is {shown(requested)}, but a node of {offer.name} has {shown(room)} for pods",
                f"write {option} {shown(int(room * _SHARE))} or less",
                "cloud and kubelet reserve part of a machine",
            )
        limits += [] if room is None else [room // requested]
    limits += [] if real.pods is None else [real.pods]
    return Fitted(
        intent=intent,
        offer=offer,
        resource=resource,
        cpu=intent.cpu or cpu_text(cpu),
        memory=intent.memory or memory_text(memory),
        per_node=min(limits),
        notes=(*notes, *_about_pods(limits, offer), *_about_fabric(intent, offer)),
        fabric=fabric,
        hugepages=_hugepages(intent, offer) if fabric else {},
    )


def usual_name(pool: str) -> str:
    """Return a manifest name based on a pool's name."""
    name = re.sub(r"[^a-z0-9-]+", "-", pool.lower()).strip("-")
    return (name if NAME.fullmatch(name) else f"gpu-{name}")[:NAME_LENGTH].rstrip("-")


def _check_counts(intent: Intent) -> None:
    for option, text in (("--name", intent.name), ("--namespace", intent.namespace)):
        if text and not (NAME.fullmatch(text) and len(text) <= NAME_LENGTH):
            refuse(
                option,
                f'"{text}" is not a name that Kubernetes accepts for every kind',
                f"write at most {NAME_LENGTH} lower-case letters, digits and dashes, starting with a letter",
            )
    for option, count in (("--gpus", intent.gpus), ("--replicas", intent.replicas), ("--max", intent.most)):
        if count is not None and count < 1:
            refuse(option, f"{option} is {count}", f"write {option} 1 or more")
    if intent.least is not None and intent.most is not None and intent.least > intent.most:
        refuse("--min", f"--min {intent.least} is more than --max {intent.most}", f"write --min {intent.most} or less")


def _resource(intent: Intent, offer: PoolOffer) -> str:
    devices = offer.gpus
    if intent.resource:
        if intent.resource not in devices:
            close = one_of(nearest(intent.resource, devices))
            refuse("--resource", f'nodes of {offer.name} have no "{intent.resource}"', f"write --resource {close}")
        return intent.resource
    if len(devices) > 1:
        shown = ", ".join(f"{count} {name}" for name, count in sorted(devices.items()))
        refuse(
            "--resource",
            f"nodes of {offer.name} have several kinds of devices: {shown}",
            f"add --resource {one_of(sorted(devices))}",
        )
    return next(iter(devices))


def _check_devices(intent: Intent, offer: PoolOffer, resource: str) -> list[str]:
    gpus, has, sharing = intent.gpus, offer.gpus[resource], offer.desired.target.sharing
    if gpus > has:
        refuse(
            "--gpus",
            f"--gpus is {gpus}, but a node of {offer.name} has {has} {resource}",
            f"write --gpus {has}{' or less' * (has > 1)}; for more, several pods or a pool of larger machines",
            "all devices of a pod are on one node",
        )
    if gpus > 1 and offer.single:
        refuse(
            "--gpus",
            f"--gpus is {gpus}, but {offer.name} allows at most one share per container",
            "write --gpus 1, or choose a pool whose GPUs are not shared",
            "the device plugin rejects the pod on the node, and it stays there as failed",
        )
    notes = []
    if gpus > 1 and sharing.slicing:
        notes.append(f"{gpus} shares may be on one GPU, and provide no more compute than one")
    elif gpus > 1 and sharing.mig:
        notes.append(f"a CUDA process uses one of the {gpus} MIG instances; a larger profile provides more")
    if offer.on_request and not (intent.kind == "kueue" and offer.provisioning):
        notes.append(f"a pod alone does not start a node of {offer.name}: that requires {offer.on_request}")
    if not offer.desired.managed:
        notes.append(
            f"devicePlugin.owner of {offer.name} is none: whether its nodes advertise {resource} depends on the plugin "
            "that you install"
        )
    return notes


def _most_pods(intent: Intent, offer: PoolOffer, resource: str) -> int:
    """Return for how many pods the devices of a node suffice."""
    count, machine = offer.gpus[resource], offer.desired.target.machine
    if not intent.same_gpu:
        return count // intent.gpus
    each = count // machine.devices
    if not offer.by_claims or offer.desired.target.sharing.mig is None:
        refuse(
            "--same-gpu",
            f"--same-gpu is for MIG devices that pods claim, and {offer.name} has none",
            "remove it, or choose a pool with MIG and devicePlugin.owner: dra",
            "a device plugin takes the devices of a pod from any GPU",
        )
    if intent.gpus > each:
        refuse(
            "--gpus",
            f"--gpus is {intent.gpus} with --same-gpu, but a GPU of {offer.name} has {each} {resource}",
            f"write --gpus {each}{' or less' * (each > 1)}, or remove --same-gpu",
        )
    return each // intent.gpus * machine.devices


def _about_pods(limits: list[int], offer: PoolOffer) -> list[str]:
    """Return a note if only the number of pods leaves devices unused."""
    if offer.real.pods is None or offer.desired.target.max_pods or offer.real.pods >= min(limits[:-1]):
        return []
    text = (
        f"a node of {offer.name} is assumed to fit {offer.real.pods} pods in addition to the cloud's own: the "
        "cluster's network may allow no more; write maxPodsPerNode in the pool to use all its devices"
    )
    return [text]


def _is_connected(intent: Intent) -> bool:
    """Return whether the pods use the network between GPUs: several GPUs each, or a job of several pods."""
    return intent.gpus > 1 or (intent.kind in _JOBS and (intent.replicas or 1) > 1)


def _fabric(intent: Intent, offer: PoolOffer) -> dict[str, int]:
    """Return a pod's share of the devices of a node's fast network: as large as its share of the GPUs."""
    fabric = offer.desired.fabric
    if fabric is None or not fabric.request or not _is_connected(intent):
        return {}
    return {fabric.request: max(1, int(fabric.names[fabric.request] * _part(intent, offer)))}


def _hugepages(intent: Intent, offer: PoolOffer) -> dict[str, str]:
    """Return a pod's share of the huge pages that jobs on such nodes use, if the pool has them."""
    fabric = offer.desired.fabric
    found: dict[str, str] = {}
    for name in fabric.hugepages if fabric else ():
        page = SIZES[name.removeprefix(HUGE)]
        size = int(min(_USED, offer.real.others.get(name, 0)) * _part(intent, offer)) // page * page
        found |= {name: pages_text(size)} if size else {}
    return found


def _part(intent: Intent, offer: PoolOffer) -> float:
    return intent.gpus / sum(offer.gpus.values())


def _about_fabric(intent: Intent, offer: PoolOffer) -> list[str]:
    fabric = offer.desired.fabric
    if fabric is None or not fabric.setup or not _is_connected(intent):
        return []
    return [f"to use {fabric.title}, {fabric.setup}"]


def _check_zero(intent: Intent, offer: PoolOffer, resource: str) -> None:
    nodes, fabric = offer.desired.target.nodes, offer.desired.fabric
    if not nodes.autoscaled or nodes.minimum:
        return
    for name, count in {resource: intent.gpus, **_fabric(intent, offer)}.items():
        expected = offer.expected.all_devices.get(name, 0)
        if expected < count:
            other = f", or --gpus {expected} or less" if expected else ""
            if name != resource:
                other = f", or {fabric.from_zero}" if fabric and fabric.from_zero else ""
            refuse(
                "--gpus",
                f"while {offer.name} is empty, its autoscaler expects {expected} {name} of a node, but a pod requests "
                f"{count}: no pod would start the first node",
                f"write nodes.autoscaling.min: 1 in the pool{other}",
            )


def _quantity(option: str, text: str, times: int = 1) -> int | None:
    if not text:
        return None
    try:
        amount = int(parse_quantity(text) * times)
    except ValueError:
        amount = 0
    if amount <= 0:
        example = "4 or 500m" if option == "--cpu" else "16Gi"
        refuse(option, f'"{text}" is not an amount', f"write {option} {example}")
    return amount


def _tidy_cpu(room: int | None, share: float, *, whole: bool) -> int:
    if room is None:
        return _GUESSED_CPU
    cpu = int(room * share)
    step = 10 if cpu < 1000 else 500 if cpu < 4000 and not whole else 1000  # noqa: PLR2004 - millicores
    return max(10, cpu - cpu % step)


def _tidy_memory(room: int | None, share: float) -> int:
    if room is None:
        return _GUESSED_MEMORY
    memory = int(room * share)
    step = _GIB if memory >= 4 * _GIB else 128 * _MIB if memory >= _GIB else 16 * _MIB
    return max(16 * _MIB, memory - memory % step)
