"""`pool verify --probe`: runs one pod per pool that asks for one device, reads what it saw, and takes it away again.

Nothing stays: the Job is deleted whatever happens, Ctrl-C included. One that a killed run left is deleted by the next,
and the cluster ends and removes it by itself (cluster.probe).
"""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.api_types import JOBS, PODS
from gpukube.cluster.names import NAMESPACE
from gpukube.cluster.proof.outcome import Probe
from gpukube.cluster.proof.probe import (
    PROBE_IMAGE,
    Attempt,
    free_devices,
    is_left_over,
    judge_attempt,
    judge_output,
    parse_listing,
    probe_job,
    probe_marks,
    probed_resource,
    read_attempt,
)
from gpukube.cluster.proof.verify import nodes_of
from gpukube.core.jsontree import text
from gpukube.core.values import OWNER_LABEL, POOL_LABEL
from gpukube.engine.run.clock import Stopped
from gpukube.engine.run.lasting import Lasting
from gpukube.errors import AccessError, ClusterError, GpukubeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.cluster.kube.client import Kube
    from gpukube.cluster.proof.outcome import PoolProof
    from gpukube.core.values import Desired
    from gpukube.engine.run.context import Run
    from gpukube.engine.run.session import Session

_LIMIT_S: Final = 300.0
"""For pulling the image and running it, on nodes that are there."""
_LINES: Final = 200
_NEEDED: Final = (
    ("create", "jobs", "batch"),
    ("delete", "jobs", "batch"),
    ("list", "jobs", "batch"),
    ("list", "pods", ""),
)
_FALLBACK: Final = "default"
"""Namespace on clusters where nothing of ours is installed: it is always there."""


@dataclass(frozen=True, slots=True)
class Probing:
    """How to probe.

    Attributes:
        image: What to run nvidia-smi in; "" for the pinned one.
        scale_up: Probe also where that makes the autoscaler start a node.
    """

    image: str = ""
    scale_up: bool = False


@dataclass(frozen=True, slots=True)
class _Task:
    """One probe: whose, where, by what means, how long in all, and how long while it is stuck."""

    desired: Desired
    session: Session
    run: Run
    namespace: str
    image: str
    limit_s: float
    patience_s: float

    @property
    def kube(self) -> Kube:
        return self.session.kube()

    def report(self, message: str) -> None:
        self.run.report("verify", message, self.desired.target.cluster.key, self.desired.target.pool)


def probe_pool(desired: Desired, proof: PoolProof, session: Session, run: Run, how: Probing) -> PoolProof:
    """Probe a pool whose nodes are as promised.

    Returns:
        The proof with the probe in it; broken when the pod saw something else.

    Raises:
        AccessError: We may not do what it takes; names all that is missing.
        ClusterError: The API did not answer.
        Stopped: The run was stopped; the Job is gone all the same.
    """
    resource, image = probed_resource(desired), how.image or PROBE_IMAGE
    why_not = _reason_to_skip(desired, proof, session.kube(), how)
    if why_not:
        return replace(proof, probe=Probe("skipped", why_not, resource, image))
    limit_s = run.pace.verify_s if how.scale_up else min(_LIMIT_S, run.pace.verify_s)
    patience_s = limit_s if how.scale_up else min(limit_s, run.pace.settle_s)
    namespace = _FALLBACK if session.kube().namespace_labels(NAMESPACE) is None else NAMESPACE
    task = _Task(
        desired=desired,
        session=session,
        run=run,
        namespace=namespace,
        image=image,
        limit_s=limit_s,
        patience_s=patience_s,
    )
    _require_permissions(task)
    task.report(f"probing: a pod requests one {resource}")
    with _running(task) as job:
        attempt = _follow(task, job)
        output = task.kube.pod_log(task.namespace, attempt.pod, _LINES) if attempt.exit_code is not None else ()
    probe = _judge(task, attempt, output, proof)
    return replace(proof, probe=probe, status=proof.status if probe.status == "passed" else "broken")


def _reason_to_skip(desired: Desired, proof: PoolProof, kube: Kube, how: Probing) -> str:
    """Explain why a probe would tell nothing, or would cost a node; "" when it can run."""
    if not desired.managed or not probed_resource(desired):
        return "no device is promised"
    if how.scale_up and desired.promise.nodes.autoscaled:
        return ""
    if proof.status == "empty":
        return "the pool has no node, and a probe would start one; add --probe-scale-up"
    marks = {OWNER_LABEL: desired.target.owner, POOL_LABEL: desired.target.pool}
    nodes = nodes_of(desired, kube.nodes(marks))
    for node in nodes:
        if free_devices(probed_resource(desired), [node], {node.name: kube.pods("", node=node.name)}):
            return ""
    if not desired.promise.nodes.autoscaled:
        return "every device is in use"
    return "every device is in use, and a probe would start a node; add --probe-scale-up"


def _require_permissions(task: _Task) -> None:
    missing = [
        f"{verb} {resource}"
        for verb, resource, group in _NEEDED
        if not task.kube.may(verb, resource, group=group, namespace=task.namespace)
    ]
    if missing:
        raise AccessError(
            f"not allowed in namespace {task.namespace}: {', '.join(missing)}",
            where=task.desired.target.where,
            why="a probe is a Job with one pod, which is deleted afterwards",
            fix="get a role that allows it (kubectl create rolebinding NAME --clusterrole=edit --user=YOU "
            f"--namespace={task.namespace}), or run without --probe",
            code="probe-permissions",
        )


@contextmanager
def _running(task: _Task) -> Iterator[str]:
    """Create the Job, give its name, and delete it in the end; also those that killed runs left."""
    made = probe_job(task.desired, task.namespace, secrets.token_hex(3), task.image)
    name = text(made, "metadata", "name")
    try:
        created = task.kube.create_object(JOBS, made)
        # After our own, whose time is that of the API: what is much older than it was left by a killed run.
        for job in task.kube.objects(JOBS, task.namespace, probe_marks(task.desired)) or ():
            if is_left_over(job, created):
                _remove(task, text(job, "metadata", "name"))
        yield name
    finally:
        _remove(task, name)


def _remove(task: _Task, name: str) -> None:
    """Delete a Job; when that fails the cluster does it later, which is no reason to lose the result."""
    try:
        task.kube.cleaning().delete_object(JOBS, name, task.namespace)
    except (GpukubeError, Stopped) as error:
        by_hand = f"kubectl -n {task.namespace} delete job {name}"
        why = str(error) or "stopped"
        task.report(f"the probe's Job was not deleted ({why}); the cluster removes it, or run: {by_hand}")


def _follow(task: _Task, job: str) -> Attempt:
    """Look until the pod has ended, is stuck for good, or until the limit; a moment without an answer is waited out."""
    clock = task.run.clock
    end = clock.now() + task.limit_s
    shown, stuck = "", Lasting(task.run.pace.poll_s)
    last = Attempt()
    # A pod that is stuck may still be helped (an image that is pulled late, a node that comes): only what lasts counts.
    while True:
        seen = _look(task, job)
        now = clock.now()
        if isinstance(seen, Attempt):
            if last.pod and not seen.pod:
                return last  # somebody, or the Job's own deadline, took the pod away
            last = seen
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
        return read_attempt(kube.objects(PODS, task.namespace, {"job-name": job}) or ())
    except AccessError as error:
        task.session.renew(kube)
        return error
    except ClusterError as error:
        return error


def _judge(task: _Task, attempt: Attempt, output: tuple[str, ...], proof: PoolProof) -> Probe:
    resource = probed_resource(task.desired)
    listed = parse_listing(output)
    if attempt.phase == "Succeeded":
        findings = judge_output(task.desired, attempt.node, listed)
    else:
        findings = (judge_attempt(task.desired, attempt, task.namespace, proof),)
    if findings:
        return Probe(
            status="failed",
            message=findings[0].seen,
            resource=resource,
            image=task.image,
            node=attempt.node,
            output=output,
            findings=findings,
        )
    message = f"a pod with one {resource} on {attempt.node} sees {listed[-1].name} ({listed[-1].uuid})"
    return Probe(
        status="passed", message=message, resource=resource, image=task.image, node=attempt.node, output=output
    )
