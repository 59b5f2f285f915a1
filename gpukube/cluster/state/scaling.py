"""Checks whether anything in a cluster starts and removes the nodes of its autoscaled pools.

In scope: a snapshot and pools -> what is missing; pure. Out of scope: what an autoscaler expects of a pool
(core.autoscaler_template), and which clouds scale on their own (Extras.in_cluster).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding
from gpukube.provider import load_provider

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cluster.kube.views import WorkloadView
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.in_cluster import Scaler
    from gpukube.core.values import ClusterRef, Desired

NOTHING_SCALES: Final = "nothing-scales"


def missing_scaler(cluster: ClusterRef, seen: Snapshot) -> Scaler | None:
    """Return the autoscaler that a cluster lacks; None if it runs, or if the cloud itself scales the pools."""
    scaler = load_provider(cluster.provider).extras.in_cluster.scaler
    return None if scaler is None or running_scaler(cluster, seen) else scaler


def running_scaler(cluster: ClusterRef, seen: Snapshot) -> WorkloadView | None:
    """Return the Deployment of the autoscaler; None if none runs, or if the cloud itself scales the pools."""
    scaler = load_provider(cluster.provider).extras.in_cluster.scaler
    if scaler is None:
        return None
    return next((item for item in seen.deployments if _runs(scaler.program, item)), None)


def command_of(scaler: WorkloadView) -> tuple[str, ...]:
    """Return the words of an autoscaler's command line."""
    return tuple(word for container in scaler.containers for word in container.command)


def _runs(program: str, item: WorkloadView) -> bool:
    """Return whether a workload runs a program, by image or command: its Deployment may have any name."""
    images = (image.rpartition("/")[2] for image in item.images)
    commands = (container.command[0].rpartition("/")[2] for container in item.containers if container.command)
    return item.replicas > 0 and (program in commands or any(image.startswith(program) for image in images))


def install_command(scaler: Scaler, cluster: ClusterRef) -> str:
    """Return the command that installs an autoscaler."""
    return scaler.install.format(**{**cluster.identity, "name": cluster.name})


def scaler_warnings(seen: Snapshot, pools: Sequence[Desired]) -> list[Finding]:
    """Warn about a cluster in which nothing scales the declared pools: once, with all their names."""
    scaled = [pool for pool in pools if pool.promise.nodes.autoscaled]
    scaler = missing_scaler(scaled[0].target.cluster, seen) if scaled else None
    if scaler is None:
        return []
    target = scaled[0].target
    names = ", ".join(pool.target.pool for pool in scaled)
    return [
        Finding(
            NOTHING_SCALES,
            target.where,
            f"nothing in cluster {target.cluster.key} starts or ends the nodes of {names}",
            f"{scaler.advice}: {install_command(scaler, target.cluster)}",
            scaler.why,
            "warning",
        )
    ]
