"""One look at a cluster: everything the pure modules of this room need, read at once.

Lives here: `Sighting` and `look`. Must not live here: conclusions.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube.cluster.names import CONFIG_MAP_NAME, NAMESPACE, RELEASE_NAME
from gpukube.cluster.release import newest, release_history

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.cluster.kube import Kube
    from gpukube.cluster.release import Release
    from gpukube.cluster.views import NodeView, PodView, WorkloadView

__all__ = ["Sighting", "look"]

_AT_ONCE = 5
"""Calls under way in one look; each waits for the network, not for us."""
_DRA_VERSIONS = ("v1", "v1beta2", "v1beta1")


@dataclass(frozen=True, slots=True)
class Sighting:
    """What a cluster looked like.

    Attributes:
        history: Revisions of our release, oldest first; empty when it is not there.
        config_map: Entries of our release's ConfigMap; None when it does not exist.
        pods: Pods of our namespace.
        cluster_policies: ClusterPolicy objects of the GPU Operator.
        device_classes: DeviceClasses of DRA.
        slices: (driver, node) of DRA's ResourceSlices.
    """

    nodes: tuple[NodeView, ...] = ()
    daemonsets: tuple[WorkloadView, ...] = ()
    deployments: tuple[WorkloadView, ...] = ()
    pods: tuple[PodView, ...] = ()
    history: tuple[Release, ...] = ()
    config_map: Mapping[str, str] | None = None
    cluster_policies: tuple[str, ...] = ()
    device_classes: tuple[str, ...] = ()
    slices: tuple[tuple[str, str], ...] = ()

    @property
    def release(self) -> Release | None:
        """Newest revision of our release."""
        return newest(self.history)


def look(kube: Kube) -> Sighting:
    """Read a cluster: nine lists, none of them of all pods.

    Raises:
        AccessError: A list is forbidden; the message names which.
        ClusterError: The API did not answer.
    """
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        nodes = threads.submit(kube.nodes)
        daemonsets = threads.submit(kube.daemonsets)
        deployments = threads.submit(kube.deployments)
        pods = threads.submit(kube.pods, NAMESPACE)
        history = threads.submit(release_history, kube, RELEASE_NAME, NAMESPACE)
        config_map = threads.submit(kube.config_map, NAMESPACE, CONFIG_MAP_NAME)
        policies = threads.submit(kube.object_names, "nvidia.com", "clusterpolicies", ("v1",))
        classes = threads.submit(kube.object_names, "resource.k8s.io", "deviceclasses", _DRA_VERSIONS)
        slices = threads.submit(kube.resource_slices)
    return Sighting(
        nodes=nodes.result(),
        daemonsets=daemonsets.result(),
        deployments=deployments.result(),
        pods=pods.result(),
        history=history.result(),
        config_map=config_map.result(),
        cluster_policies=policies.result() or (),
        device_classes=classes.result() or (),
        slices=slices.result(),
    )
