"""`pool verify --probe`: runs one pod per pool that requests one device, reads its output, and deletes it.

Nothing remains: the Job, and the template of its claim, are deleted in any case, even on Ctrl-C. The next run deletes
those of a killed run; otherwise the cluster ends and removes them (cluster.probe).
"""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.api_types import CLAIM_TEMPLATES, JOBS, PODS, RESOURCE_CLAIMS
from gpukube.cluster.names import NAMESPACE
from gpukube.cluster.proof.claim_probe import (
    ADMIN_LABEL,
    claim_template,
    claimed_device,
    claimed_profile,
    free_nodes,
    judge_device,
)
from gpukube.cluster.proof.outcome import Probe
from gpukube.cluster.proof.probe import (
    PROBE_IMAGE,
    PROBE_LABEL,
    Attempt,
    free_devices,
    free_fabric,
    is_left_over,
    judge_attempt,
    judge_interfaces,
    judge_output,
    parse_listing,
    probe_job,
    probe_marks,
    probed_resource,
    read_attempt,
    usable_interfaces,
)
from gpukube.cluster.proof.verify import nodes_of
from gpukube.cluster.state.published import published
from gpukube.core.jsontree import text
from gpukube.core.values import OWNER_LABEL, POOL_LABEL
from gpukube.engine.run.clock import Stopped
from gpukube.engine.run.lasting import Lasting
from gpukube.errors import AccessError, ClusterError, GpukubeError
from gpukube.gpu.claims import is_claimable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.cluster.kube.client import Kube
    from gpukube.cluster.kube.views import NodeView
    from gpukube.cluster.proof.outcome import PoolProof, ProbeStatus
    from gpukube.core.values import Desired
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session

_LIMIT_S: Final = 300.0
"""Maximum time to pull the image and run it on existing nodes."""
_LINES: Final = 200
_NEEDED: Final = (
    ("create", "jobs", "batch"),
    ("delete", "jobs", "batch"),
    ("list", "jobs", "batch"),
    ("list", "pods", ""),
)
_NEEDED_TO_CLAIM: Final = (
    ("create", "resourceclaimtemplates", "resource.k8s.io"),
    ("delete", "resourceclaimtemplates", "resource.k8s.io"),
    ("get", "resourceclaims", "resource.k8s.io"),
)
_FALLBACK: Final = "default"
"""Namespace for clusters without a gpukube release: it always exists."""


@dataclass(frozen=True, slots=True)
class Probing:
    """Options of a probe.

    Attributes:
        image: Image to run nvidia-smi in; "" for the pinned one.
        scale_up: Probe even if that makes the autoscaler start a node.
    """

    image: str = ""
    scale_up: bool = False


@dataclass(frozen=True, slots=True)
class _Task:
    """One probe.

    Attributes:
        limit_s, patience_s: Time limits, the second while it is stuck.
        fabric: Resource of the fast network to request too; "" for none.
        profile: Profile to claim as the driver spells it; "" if none is published.
        admin: Whether it observes a device that others use (adminAccess).
    """

    desired: Desired
    session: Session
    run: Run
    namespace: str
    image: str
    limit_s: float
    patience_s: float
    fabric: str
    profile: str
    admin: bool

    @property
    def resource(self) -> str:
        return probed_resource(self.desired)

    @property
    def claims(self) -> bool:
        return is_claimable(self.resource)

    @property
    def requested(self) -> str:
        return f"one device of {self.resource}" if self.claims else f"one {self.resource}"

    @property
    def kube(self) -> Kube:
        return self.session.kube()

    def report(self, message: str) -> None:
        self.run.report("verify", message, self.desired.target.cluster.key, self.desired.target.pool)


def probe_pool(desired: Desired, proof: PoolProof, session: Session, run: Run, how: Probing) -> PoolProof:
    """Probe a pool whose nodes match the spec.

    Returns:
        The proof with the probe's result; broken if the pod saw something else.

    Raises:
        AccessError: Permissions are missing; names all of them.
        ClusterError: The API did not answer.
        Stopped: The run was stopped; the Job is deleted anyway.
    """
    resource, image = probed_resource(desired), how.image or PROBE_IMAGE
    namespace_labels = session.kube().namespace_labels(NAMESPACE)
    room = _find_room(desired, session.kube(), how) if desired.managed and resource and proof.nodes_seen else _Room()
    observable = is_claimable(resource) and (namespace_labels or {}).get(ADMIN_LABEL) == "true"
    admin = observable and proof.nodes_seen > 0 and not room.free and not how.scale_up
    why_not = "" if admin else _reason_to_skip(desired, proof, how, free=room.free)
    if why_not:
        return replace(proof, probe=Probe("skipped", why_not, resource, image))
    limit_s = run.pace.verify_s if how.scale_up else min(_LIMIT_S, run.pace.verify_s)
    patience_s = limit_s if how.scale_up else min(limit_s, run.pace.settle_s)
    namespace = _FALLBACK if namespace_labels is None else NAMESPACE
    task = _Task(
        desired=desired,
        session=session,
        run=run,
        namespace=namespace,
        image=image,
        limit_s=limit_s,
        patience_s=patience_s,
        fabric=room.fabric,
        profile=room.profile,
        admin=admin,
    )
    _require_permissions(task)
    task.report(f"probing: a pod {'claims' if task.claims else 'requests'} {task.requested}")
    with _running(task) as job:
        attempt = _follow(task, job)
        over = attempt.listed or attempt.exit_code is not None
        output = task.kube.pod_log(task.namespace, attempt.pod, _LINES) if over else ()
    probe = _judge(task, attempt, output, proof)
    return replace(proof, probe=probe, status=proof.status if probe.status == "passed" else "broken")


def _reason_to_skip(desired: Desired, proof: PoolProof, how: Probing, *, free: bool) -> str:
    """Explain why a probe would show nothing, or would cost a node; "" if it can run."""
    if not desired.managed or not probed_resource(desired):
        return "no device is expected"
    if how.scale_up and desired.promise.nodes.autoscaled:
        return ""
    if proof.status == "empty":
        return "the pool has no node, and a probe would start one; add --probe-scale-up"
    if free:
        return ""
    if not desired.promise.nodes.autoscaled:
        return "every device is in use"
    return "every device is in use, and a probe would start a node; add --probe-scale-up"


@dataclass(frozen=True, slots=True)
class _Room:
    """What a probe could use: whether a device is free, and which resource of the fast network is beside it."""

    free: bool = False
    fabric: str = ""
    profile: str = ""


def _find_room(desired: Desired, kube: Kube, how: Probing) -> _Room:
    marks = {OWNER_LABEL: desired.target.owner, POOL_LABEL: desired.target.pool}
    nodes, resource = nodes_of(desired, kube.nodes(marks)), probed_resource(desired)
    if not is_claimable(resource):
        # With a scale-up a probe runs anyway, so pods are not read for it.
        free = how.scale_up or any(
            free_devices(resource, [node], {node.name: kube.pods("", node=node.name)}) for node in nodes
        )
        return _Room(free, _free_fabric(desired, nodes, kube))
    there = published(kube.resource_slices(), {node.name for node in nodes})
    claims = kube.objects(RESOURCE_CLAIMS) or ()
    others = (claim for claim in claims if not text(claim, "metadata", "labels", PROBE_LABEL))
    having = free_nodes(desired, nodes, there, others)
    return _Room(bool(having), _free_fabric(desired, having, kube), claimed_profile(desired, there.values()))


def _free_fabric(desired: Desired, nodes: Sequence[NodeView], kube: Kube) -> str:
    if desired.fabric is None:
        return ""
    found = (free_fabric(desired, [node], {node.name: kube.pods("", node=node.name)}) for node in nodes)
    return next(filter(None, found), "")


def _require_permissions(task: _Task) -> None:
    missing = [
        f"{verb} {resource}"
        for verb, resource, group in (*_NEEDED, *(_NEEDED_TO_CLAIM if task.claims else ()))
        if not task.kube.may(verb, resource, group=group, namespace=task.namespace)
    ]
    if missing:
        raise AccessError(
            f"not allowed in namespace {task.namespace}: {', '.join(missing)}",
            where=task.desired.target.where,
            why="a probe is a Job with one pod, which gpukube deletes afterwards",
            fix="get a role that allows it (kubectl create rolebinding NAME --clusterrole=edit --user=YOU "
            f"--namespace={task.namespace}), or run without --probe",
            code="probe-permissions",
        )


@contextmanager
def _running(task: _Task) -> Iterator[str]:
    """Create the Job, yield its name, and delete it at the end, along with those that killed runs left."""
    made = probe_job(task.desired, task.namespace, secrets.token_hex(3), task.image, task.fabric)
    name = text(made, "metadata", "name")
    try:
        created = task.kube.create_object(JOBS, made)
        if task.claims:
            template = claim_template(task.desired, created, task.profile, admin=task.admin)
            task.kube.create_object(CLAIM_TEMPLATES, template)
        # After creating our Job, whose creation time is the API's: much older ones were left by killed runs.
        for job in task.kube.objects(JOBS, task.namespace, probe_marks(task.desired)) or ():
            if is_left_over(job, created):
                _remove(task, text(job, "metadata", "name"))
        yield name
    finally:
        _remove(task, name)


def _remove(task: _Task, name: str) -> None:
    """Delete a Job; a failure does not lose the result, as the cluster deletes it later."""
    try:
        for kind in (JOBS, CLAIM_TEMPLATES) if task.claims else (JOBS,):
            task.kube.cleaning().delete_object(kind, name, task.namespace)
    except (GpukubeError, Stopped) as error:
        by_hand = f"kubectl -n {task.namespace} delete job {name}"
        why = str(error) or "stopped"
        task.report(f"the probe's Job was not deleted ({why}); the cluster removes it, or run: {by_hand}")


def _follow(task: _Task, job: str) -> Attempt:
    """Watch the pod until it ends, stays stuck, or the limit; a brief API outage is not an error."""
    clock = task.run.clock
    end = clock.now() + task.limit_s
    shown, stuck = "", Lasting(task.run.pace.poll_s)
    last = Attempt()
    # A stuck pod may recover (a slow image pull, a node that joins): only a lasting state counts.
    while True:
        seen = _look(task, job)
        now = clock.now()
        if isinstance(seen, Attempt):
            if last.pod and not seen.pod:
                return last  # somebody, or the Job's own deadline, deleted the pod
            last = seen = replace(seen, device=seen.device or last.device)
        is_stuck = not isinstance(seen, GpukubeError) and seen.stuck
        stuck.note(now, holds=is_stuck)
        if isinstance(seen, GpukubeError):
            if now >= end:
                raise seen
        elif seen.over or now >= end or (is_stuck and stuck.seconds >= task.patience_s):
            return seen
        message = str(seen)
        if message != shown:
            task.report(message)
            shown = message
        clock.wait(min(task.run.pace.poll_s, max(0.0, end - now)))


def _look(task: _Task, job: str) -> Attempt | GpukubeError:
    kube = None
    try:
        kube = task.kube
        attempt = read_attempt(kube.objects(PODS, task.namespace, {"job-name": job}) or ())
        return _with_claim(task, attempt, kube) if attempt.claim else attempt
    except AccessError as error:
        task.session.renew(kube)
        return error
    except ClusterError as error:
        return error


def _with_claim(task: _Task, attempt: Attempt, kube: Kube) -> Attempt:
    """Add the device of the pod's claim while it is allocated, and whether the pod has listed what it sees."""
    device = claimed_device(kube.find_object(RESOURCE_CLAIMS, attempt.claim, task.namespace))
    lines = kube.pod_log(task.namespace, attempt.pod, _LINES) if device and attempt.phase == "Running" else ()
    return replace(attempt, device=device, listed=bool(parse_listing(lines)))


def _judge(task: _Task, attempt: Attempt, output: tuple[str, ...], proof: PoolProof) -> Probe:
    listed = parse_listing(output)
    if attempt.phase == "Succeeded" or attempt.listed:
        findings = judge_output(task.desired, attempt.node, listed)
        if task.fabric:
            findings += judge_interfaces(attempt.node, task.fabric, output)
        if task.claims and not findings:
            there = published(task.kube.resource_slices(), {attempt.node})
            findings += judge_device(attempt.node, attempt.device, there, listed)
    else:
        findings = (judge_attempt(task.desired, attempt, task.namespace, proof),)
    status: ProbeStatus = "failed" if findings else "passed"
    return Probe(
        status=status,
        message=findings[0].seen if findings else _seen(task, attempt, output),
        resource=task.resource,
        image=task.image,
        node=attempt.node,
        output=output,
        findings=findings,
    )


def _seen(task: _Task, attempt: Attempt, output: tuple[str, ...]) -> str:
    device = parse_listing(output)[-1]
    message = f"a pod with {task.requested} on {attempt.node} sees {device.name} ({device.uuid})"
    if attempt.device:
        message += f", as its claim has it ({attempt.device.device})"
    if task.admin:
        message += "; every device is in use, so this one is shared by adminAccess: a weaker proof"
    if task.fabric:
        message += f", and with one {task.fabric} {', '.join(usable_interfaces(output))}"
    return message
