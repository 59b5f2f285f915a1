"""A kubelet's state of a pod, and the status it reports.

In scope: the state of containers, crash back-off, the status object. Out of scope: what programs do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from gpukube_sandbox.clock import timestamp
from gpukube_sandbox.kube.nodes.containers import Role, role_of
from gpukube_sandbox.kube.store.objects import name_of, namespace_of, spec

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.objects import JsonObject

Device: TypeAlias = "tuple[int, int | None]"
"""Index of a GPU and of an instance on it; None means the whole GPU."""

_FIRST_BACKOFF_S = 10.0
_LONGEST_BACKOFF_S = 300.0


@dataclass(slots=True)
class ContainerRun:
    """One container.

    Attributes:
        state: waiting, running, done (succeeded), or failed (failed and not restarted).
        retry_at: Sandbox time of the next start, or of a running program's own next retry; 0 for none.
        seen: The last configuration change (`PodRun.reloads`) that it has applied.
        since: Sandbox time of its last start; likewise `ended` of its last exit.
        exit_code: Exit code of its last exit; `reason` and `message` describe a final failure.
        holds: It is running but waits for something on the node, so an init container does not finish.
    """

    name: str
    role: Role
    body: JsonObject
    state: Literal["waiting", "running", "done", "failed"] = "waiting"
    reason: str = "ContainerCreating"
    message: str = ""
    restarts: int = 0
    backoff_s: float = _FIRST_BACKOFF_S
    retry_at: float = 0.0
    seen: int = 0
    since: float = 0.0
    ended: float = 0.0
    exit_code: int = 0
    holds: bool = False

    @property
    def pullable(self) -> bool:
        """Whether its image can be pulled: from any registry except below .invalid, which never exists (RFC 2606)."""
        host = str(self.body.get("image", "")).partition("/")[0].partition(":")[0]
        return not host.endswith(".invalid")

    def wait_for_image(self) -> None:
        """Mark the image as unavailable; the kubelet keeps retrying."""
        self.state, self.reason = "waiting", "ImagePullBackOff"
        self.message = f'Back-off pulling image "{self.body.get("image", "")}": no such host'

    def finish(self, now: float) -> None:
        """Mark the container as succeeded."""
        self.state, self.ended = "done", now

    def fail(self, reason: str, message: str, code: int) -> None:
        """Mark the container as failed at its start, without a restart."""
        self.state, self.reason, self.message, self.exit_code = "failed", reason, message, code
        self.ended = self.since

    def run(self, now: float) -> None:
        """Mark the container as running."""
        self.state, self.reason, self.message, self.retry_at, self.since = "running", "", "", 0.0, now

    def crash(self, pod: JsonObject, now: float) -> None:
        """Mark the container as crashed; the kubelet restarts it after the back-off."""
        self.state, self.reason = "waiting", "CrashLoopBackOff"
        place = f"{name_of(pod)}_{namespace_of(pod)}({pod['metadata']['uid']})"
        self.message = f"back-off {int(self.backoff_s)}s restarting failed container={self.name} pod={place}"
        self.retry_at, self.ended = now + self.backoff_s, now
        self.backoff_s = min(self.backoff_s * 2, _LONGEST_BACKOFF_S)
        self.restarts += 1


@dataclass(frozen=True, slots=True)
class GpuDevice:
    """A device that the DRA driver's plugin offers.

    Attributes:
        place: The GPU, and the instance on it.
        body: The device in a ResourceSlice.
    """

    place: Device
    body: JsonObject

    @property
    def name(self) -> str:
        """Name in its pool."""
        return str(self.body["name"])


@dataclass(slots=True)
class Offer:
    """What the DRA driver's running plugin offers: found at its start, and never again.

    Attributes:
        gates: Gate -> whether it is on.
        missing: Number of slices that are announced but not written.
        is_lost: The kubelet has deleted the slices, and the plugin does not write them again.
        is_published: The slices have been written.
    """

    devices: list[GpuDevice]
    gates: dict[str, bool]
    missing: int = 0
    is_lost: bool = False
    is_published: bool = False


@dataclass(slots=True)
class PodRun:
    """One pod on a node.

    Attributes:
        born: Sandbox time at which the kubelet first saw it.
        config: Key that /config/config.yaml points to; None for no config.
        label: Value of the node's config label that config-manager applied last.
        reloads: Number of config changes while it was running.
        advertised: Extended resources it has registered.
        held: Extended resource -> its allocated devices; a shared device can occur twice.
        claimed: Container -> the GPUs and instances of its claims.
        offer: What it offers to claims, as the DRA driver's running plugin.
        refusal: Why the kubelet rejected it, as a message; `refusal_reason` is the reason in one word.
        reported: Events recorded about it: reason and message.
        end_at: Sandbox time at which a deleted pod has terminated; 0 if it is not deleted.
    """

    uid: str
    born: float
    inits: list[ContainerRun]
    mains: list[ContainerRun]
    started: bool = False
    config: str | None = None
    label: str = ""
    reloads: int = 0
    advertised: frozenset[str] = field(default=frozenset())
    held: dict[str, list[Device]] = field(default_factory=dict)
    claimed: dict[str, list[Device]] = field(default_factory=dict)
    offer: Offer | None = None
    refusal: str = ""
    refusal_reason: str = "UnexpectedAdmissionError"
    reported: set[tuple[str, str]] = field(default_factory=set)
    end_at: float = 0.0

    @property
    def initialized(self) -> bool:
        """Whether all init containers have succeeded."""
        return all(item.state == "done" for item in self.inits)

    @property
    def over(self) -> bool:
        """Whether it has finished and released its devices."""
        states = {item.state for item in self.mains}
        return bool(self.refusal) or "failed" in states or states == {"done"}

    def runs(self, role: Role) -> bool:
        """Return whether a container with that role is running."""
        return any(item.role == role and item.state == "running" for item in self.mains)


def start_run(pod: JsonObject, now: float) -> PodRun:
    """Return the initial state of a pod."""
    inits, mains = (
        [ContainerRun(body["name"], role_of(body), body) for body in spec(pod).get(key) or ()]
        for key in ("initContainers", "containers")
    )
    return PodRun(pod["metadata"]["uid"], now, inits, mains)


def pod_status(run: PodRun, host_ip: str) -> JsonObject:
    """Return the status that the kubelet reports."""
    started = timestamp(run.born)
    if run.refusal:
        message = f"Pod was rejected: {run.refusal}"
        return {"phase": "Failed", "reason": run.refusal_reason, "message": message, "startTime": started}
    ready = run.initialized and bool(run.mains) and all(item.state == "running" for item in run.mains)
    phase = _phase(run)
    became = timestamp(max(item.since for item in run.mains)) if ready else started
    waiting = "" if ready else "ContainersNotReady"
    conditions = {
        "Initialized": (run.initialized, "" if run.initialized else "ContainersNotInitialized"),
        "Ready": (ready, "PodCompleted" if phase == "Succeeded" else waiting),
        "ContainersReady": (ready, "PodCompleted" if phase == "Succeeded" else waiting),
        "PodScheduled": (True, ""),
    }
    status: JsonObject = {
        "phase": phase,
        "startTime": started,
        "hostIP": host_ip,
        "conditions": [
            {"type": name, "status": str(holds), "lastTransitionTime": became if "Ready" in name else started}
            | ({"reason": reason} if reason else {})
            for name, (holds, reason) in conditions.items()
        ],
        "containerStatuses": [_container_status(item, shown=run.initialized) for item in run.mains],
    }
    if run.inits:
        status["initContainerStatuses"] = [_container_status(item, shown=True, init=True) for item in run.inits]
    return status


def _phase(run: PodRun) -> str:
    states = {item.state for item in run.mains}
    never_ran = any(item.state == "waiting" and not item.restarts for item in run.mains)
    if not run.started or not run.initialized or never_ran:
        return "Pending"
    if states == {"done"}:
        return "Succeeded"
    return "Failed" if "failed" in states else "Running"


def _container_status(item: ContainerRun, *, shown: bool, init: bool = False) -> JsonObject:
    times = {"startedAt": timestamp(min(item.since, item.ended)), "finishedAt": timestamp(item.ended)}
    crashed = {"exitCode": 1, "reason": "Error", **times}
    state: JsonObject
    if item.state == "running":
        state = {"running": {"startedAt": timestamp(item.since)}}
    elif item.state in {"done", "failed"}:
        reason = "Completed" if item.state == "done" else item.reason
        ended = {"exitCode": item.exit_code, "reason": reason, **times}
        state = {"terminated": ended | ({"message": item.message} if item.message else {})}
    else:
        reason = item.reason if shown else "PodInitializing"
        state = {"waiting": {"reason": reason} | ({"message": item.message} if item.message else {})}
    return {
        "name": item.name,
        "image": item.body.get("image", ""),
        "imageID": "",
        "ready": item.state == "running" or (item.state == "done" and init),
        "started": item.state == "running",
        "restartCount": item.restarts,
        "state": state,
        "lastState": {"terminated": crashed} if item.restarts else {},
    }
