"""Takes a release away for good: uninstalled, its plugin's pods gone, its records dropped.

In scope: the order of these steps, each of which may be done again. Out of scope: whether it may go
(migration, adoption), and how Helm is run.
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

_LOOKS: Final = 180
"""A pod has 30 s to end (terminationGracePeriodSeconds), and a node that does not answer keeps it for longer."""
_LOOK_AGAIN_S: Final = 1.0


@contextmanager
def kubeconfig_file(access: KubeAccess) -> Iterator[Path]:
    """Write a kubeconfig for one run of Helm: readable by us alone, removed at its end, or by the next run."""
    with Scratch("kube") as directory:
        path = directory / "config"
        path.touch(mode=0o600)
        path.write_text(access.kubeconfig, encoding="utf-8")
        yield path


def uninstall_release(engine: Engine, access: KubeAccess, kube: Kube, outgoing: OutgoingRelease) -> bool:
    """Uninstall a release; False when it was not there. Of ours the records go too, of others the history stays.

    NFD's clean-up job runs after everything else is deleted. In a cluster without a node it never ends, and Helm keeps
    the release as "uninstalling": its records are dropped then. The operator's own clean-up job runs before anything is
    deleted (NVIDIA/gpu-operator v26.7.0 templates/cleanup_gpucluster.yaml, in every release): where it does not end,
    the release stands as it was, and the error names the job.

    Raises:
        HelmError: Helm failed before the objects were gone.
        AccessError, ClusterError: The cluster.
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
    """Name the job that has to end before the release may be deleted; "" when none is under way."""
    for job in kube.objects(JOBS, outgoing.namespace) or ():
        labels, notes = texts(job, "metadata", "labels"), texts(job, "metadata", "annotations")
        ours = labels.get("app.kubernetes.io/instance") == outgoing.name
        if ours and "pre-delete" in notes.get("helm.sh/hook", "") and not number(job, "status", "succeeded"):
            return text(job, "metadata", "name")
    return ""


def _waiting_error(job: str, outgoing: OutgoingRelease) -> HelmError:
    return HelmTimeout(
        f"{outgoing.title} cannot be uninstalled: its clean-up job {job} has not finished",
        where=outgoing.address,
        why="the chart runs it before anything is deleted; no node accepts its pod, or the image is "
        "still being pulled. The release is unchanged",
        fix=f"kubectl describe pods --namespace {outgoing.namespace} --selector job-name={job} shows why",
    )


def forget_release(kube: Kube, outgoing: OutgoingRelease) -> None:
    """Drop the records of a release that was uninstalled; doing it again is fine, and what stands stays.

    Raises:
        AccessError, ClusterError: The cluster.
    """
    live = newest(release_history(kube, outgoing.name, outgoing.namespace))
    if not is_there(live) or _is_gone(kube, outgoing):
        _forget(kube, outgoing)


def _is_gone(kube: Kube, outgoing: OutgoingRelease) -> bool:
    """Return whether the objects of a release are gone although Helm reports a failure."""
    live = newest(release_history(kube, outgoing.name, outgoing.namespace))
    left = any(item.name == outgoing.plugin for item in kube.daemonsets(outgoing.namespace))
    kept = outgoing.kind is not None and kube.config_map(outgoing.namespace, outgoing.kind.config_map) is not None
    return live is None or (live.status == "uninstalling" and not left and not kept)


def _forget(kube: Kube, outgoing: OutgoingRelease) -> None:
    for item in release_history(kube, outgoing.name, outgoing.namespace):
        kube.delete_secret(item.namespace, secret_name(item.name, item.revision))


def await_pods_gone(
    kube: Kube, outgoing: OutgoingRelease, pause: Callable[[float], None], notify: Callable[[str], None]
) -> None:
    """Wait until no pod of a plugin runs any more: two on one node would advertise the same GPUs.

    Args:
        kube: The cluster.
        outgoing: What was uninstalled.
        pause: Waits some seconds.
        notify: Told what is waited for.

    Raises:
        Conflict: They do not go; names their nodes.
        AccessError, ClusterError: The cluster.
    """
    nodes: list[str] = []
    # Helm does not wait for pods, and a kubelet that is busy or gone keeps them: only a look shows that a node is free.
    for look in range(_LOOKS):
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
        why="the next plugin is installed once no node has the former one",
        fix=f"kubectl delete daemonset {outgoing.plugin} --namespace {outgoing.namespace}, and check these nodes "
        "(kubectl describe node); then run again",
        code="release-migration",
    )
