"""Uninstalls a release completely: objects deleted, its plugin's pods gone, its records deleted.

In scope: the order of these steps, each of which can be repeated. Out of scope: whether it may be uninstalled
(migration, adoption), and running Helm.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.api_types import JOBS
from gpukube.cluster.kube.releases import newest, release_history, secret_name
from gpukube.cluster.process.scratch import Scratch
from gpukube.cluster.release.migration import is_there
from gpukube.core.jsontree import number, text, texts
from gpukube.errors import Conflict, HelmError, HelmTimeout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gpukube.cluster.helm.engine import Engine
    from gpukube.cluster.kube.client import Kube
    from gpukube.cluster.release.migration import OutgoingRelease
    from gpukube.core.values import KubeAccess

_POLLS: Final = 180
"""Checks until pods must be gone: a pod has 30 s to end (terminationGracePeriodSeconds), on an unresponsive node
longer."""
_LOOK_AGAIN_S: Final = 1.0


@contextmanager
def kubeconfig_file(access: KubeAccess) -> Iterator[Path]:
    """Write a kubeconfig for one Helm run: private, deleted at the end of the run, or by the next run."""
    with Scratch("kube") as directory:
        path = directory / "config"
        path.touch(mode=0o600)
        path.write_text(access.kubeconfig, encoding="utf-8")
        yield path


def uninstall_release(engine: Engine, access: KubeAccess, kube: Kube, outgoing: OutgoingRelease) -> bool:
    """Uninstall a release; return False if it did not exist. gpukube's records are deleted, the user's history is kept.

    NFD's cleanup job runs after everything else is deleted. In a cluster without nodes it never ends, and Helm keeps
    the release as "uninstalling": its records are then deleted here. The operator's own cleanup job runs before
    anything is deleted (NVIDIA/gpu-operator v26.7.0 templates/cleanup_gpucluster.yaml, in every release): if it does
    not end, the release is unchanged, and the error names the job.

    Raises:
        HelmError: Helm failed before the objects were gone.
        AccessError, ClusterError: The call failed.
    """
    if not is_there(newest(release_history(kube, outgoing.name, outgoing.namespace))):
        return False
    try:
        with kubeconfig_file(access) as path:
            engine.uninstall(path, outgoing.name, outgoing.namespace, keep_history=outgoing.kind is None)
    except HelmError as error:
        if not _is_gone(kube, outgoing):
            waiting = _waiting_hook(kube, outgoing)
            if not waiting:
                raise
            raise _waiting_error(waiting, outgoing) from error
        if outgoing.kind:
            _forget(kube, outgoing)
    return True


def _waiting_hook(kube: Kube, outgoing: OutgoingRelease) -> str:
    """Return the job that must end before the release can be deleted; "" if none is running."""
    for job in kube.objects(JOBS, outgoing.namespace) or ():
        labels, notes = texts(job, "metadata", "labels"), texts(job, "metadata", "annotations")
        belongs = labels.get("app.kubernetes.io/instance") == outgoing.name
        if belongs and "pre-delete" in notes.get("helm.sh/hook", "") and not number(job, "status", "succeeded"):
            return text(job, "metadata", "name")
    return ""


def _waiting_error(job: str, outgoing: OutgoingRelease) -> HelmError:
    return HelmTimeout(
        f"{outgoing.title} cannot be uninstalled: its cleanup job {job} has not finished",
        where=outgoing.address,
        why="the chart runs it before anything is deleted; no node accepts its pod, or the image is "
        "still being pulled. The release is unchanged",
        fix=f"kubectl describe pods --namespace {outgoing.namespace} --selector job-name={job} shows why",
    )


def forget_release(kube: Kube, outgoing: OutgoingRelease) -> None:
    """Delete the records of an uninstalled release; repeating it is harmless, and an installed release stays.

    Raises:
        AccessError, ClusterError: The call failed.
    """
    live = newest(release_history(kube, outgoing.name, outgoing.namespace))
    if not is_there(live) or _is_gone(kube, outgoing):
        _forget(kube, outgoing)


def _is_gone(kube: Kube, outgoing: OutgoingRelease) -> bool:
    """Return whether a release's objects are gone although Helm reports a failure."""
    live = newest(release_history(kube, outgoing.name, outgoing.namespace))
    left = any(item.name == outgoing.plugin for item in kube.daemonsets(outgoing.namespace))
    config_map = outgoing.kind.config_map if outgoing.kind else ""
    kept = bool(config_map) and kube.config_map(outgoing.namespace, config_map) is not None
    return live is None or (live.status == "uninstalling" and not left and not kept)


def _forget(kube: Kube, outgoing: OutgoingRelease) -> None:
    for item in release_history(kube, outgoing.name, outgoing.namespace):
        kube.delete_secret(item.namespace, secret_name(item.name, item.revision))


def await_pods_gone(
    kube: Kube, outgoing: OutgoingRelease, pause: Callable[[float], None], notify: Callable[[str], None]
) -> None:
    """Wait until no pod of a plugin is running: two on one node would advertise the same GPUs.

    Args:
        kube: The cluster.
        outgoing: The uninstalled release.
        pause: Waits some seconds.
        notify: Called with what the run is waiting for.

    Raises:
        Conflict: The pods do not terminate; the message names their nodes.
        AccessError, ClusterError: The call failed.
    """
    nodes: list[str] = []
    # Helm does not wait for pods, and a busy or lost kubelet keeps them: only a list of pods shows that a node is free.
    for look in range(_POLLS):
        pods = kube.pods(outgoing.namespace)
        nodes = sorted(
            {pod.node or pod.name for pod in pods if (pod.owner_kind, pod.owner) == ("DaemonSet", outgoing.plugin)}
        )
        if not nodes:
            return
        if look % 15 == 0:
            notify(f"waiting until {outgoing.plugin} has left {', '.join(nodes[:3])}")
        pause(_LOOK_AGAIN_S)
    raise Conflict(
        f"pods of DaemonSet {outgoing.namespace}/{outgoing.plugin} stay on {', '.join(nodes)}",
        where=outgoing.address,
        why="the next plugin is installed once no node has the previous one",
        fix=f"kubectl delete daemonset {outgoing.plugin} --namespace {outgoing.namespace}, and check these nodes "
        "(kubectl describe node); then run again",
        code="release-migration",
    )
