"""A snapshot of a cluster: everything that the pure modules of this package need, read at once.

In scope: `Snapshot` and `look`. Out of scope: conclusions.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube.cluster.kube.releases import DEPLOYED, newest, release_history
from gpukube.cluster.names import ALL_KINDS, DEVICE_PLUGIN, DRA_DRIVER, GPU_OPERATOR, NAMESPACE
from gpukube.cluster.state.release_objects import live_objects

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.cluster.kube.client import Kube
    from gpukube.cluster.kube.releases import Release
    from gpukube.cluster.kube.slices import SliceView
    from gpukube.cluster.kube.views import NodeView, PodView, WorkloadView
    from gpukube.cluster.names import ReleaseKind
    from gpukube.core.jsontree import Tree

_AT_ONCE = 5
"""Maximum number of concurrent calls in one snapshot; each waits for the network, not for the CPU."""
_DRA_VERSIONS = ("v1", "v1beta2", "v1beta1")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """State of a cluster at one moment.

    Attributes:
        history: Revisions of gpukube's device-plugin release, oldest first; empty if not installed.
        config_map: Entries of that release's ConfigMap; None if it does not exist.
        operator_history: The same as history, for gpukube's GPU Operator release.
        operator_config_map: The same as config_map, for that release.
        pods: Pods in gpukube's namespace.
        cluster_policies: ClusterPolicy objects of the GPU Operator.
        objects: Live objects of gpukube's deployed releases; None if not read.
        device_classes: DeviceClasses of DRA.
        slices: ResourceSlices of DRA, of all drivers.
        dra_history: The same as history, for gpukube's release of the DRA driver.
    """

    nodes: tuple[NodeView, ...] = ()
    daemonsets: tuple[WorkloadView, ...] = ()
    deployments: tuple[WorkloadView, ...] = ()
    pods: tuple[PodView, ...] = ()
    history: tuple[Release, ...] = ()
    config_map: Mapping[str, str] | None = None
    operator_history: tuple[Release, ...] = ()
    operator_config_map: Mapping[str, str] | None = None
    cluster_policies: tuple[str, ...] = ()
    device_classes: tuple[str, ...] = ()
    slices: tuple[SliceView, ...] = ()
    objects: tuple[Tree, ...] | None = None
    dra_history: tuple[Release, ...] = ()

    def release_of(self, kind: ReleaseKind) -> Release | None:
        """Return the newest revision of one of gpukube's releases; None if not installed."""
        histories = {GPU_OPERATOR: self.operator_history, DRA_DRIVER: self.dra_history}
        return newest(histories.get(kind, self.history))

    def entries_of(self, kind: ReleaseKind) -> Mapping[str, str] | None:
        """Return the config entries of one of gpukube's releases; None if it has no ConfigMap."""
        if kind is DRA_DRIVER:
            return None
        return self.operator_config_map if kind is GPU_OPERATOR else self.config_map

    def plugin_of(self, kind: ReleaseKind) -> WorkloadView | None:
        """Return the DaemonSet that advertises for one of gpukube's releases; None if it does not exist."""
        desired = (NAMESPACE, kind.plugin)
        return next((item for item in self.daemonsets if (item.namespace, item.name) == desired), None)

    def sliced_by(self, driver: str) -> frozenset[str]:
        """Return the names of the nodes on which a DRA driver has published slices, with devices or without."""
        return frozenset(item.node for item in self.slices if item.driver == driver)


def look(kube: Kube) -> Snapshot:
    """Read a cluster: ten calls, none of them for all pods, and one per object type of a deployed release.

    Raises:
        AccessError: A list is forbidden; the message names it.
        ClusterError: The API did not answer.
    """
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        nodes = threads.submit(kube.nodes)
        daemonsets = threads.submit(kube.daemonsets)
        deployments = threads.submit(kube.deployments)
        pods = threads.submit(kube.pods, NAMESPACE)
        history = threads.submit(release_history, kube, "", NAMESPACE)
        config_map = threads.submit(kube.config_map, NAMESPACE, DEVICE_PLUGIN.config_map)
        operator_map = threads.submit(kube.config_map, NAMESPACE, GPU_OPERATOR.config_map)
        policies = threads.submit(kube.object_names, "nvidia.com", "clusterpolicies", ("v1",))
        classes = threads.submit(kube.object_names, "resource.k8s.io", "deviceclasses", _DRA_VERSIONS)
        slices = threads.submit(kube.resource_slices)
    found = history.result()
    releases = [newest(_of(found, kind)) for kind in ALL_KINDS]
    deployed = [release for release in releases if release and release.status == DEPLOYED]
    objects = tuple(obj for release in deployed for obj in live_objects(kube, release)) if deployed else None
    return Snapshot(
        nodes=nodes.result(),
        daemonsets=daemonsets.result(),
        deployments=deployments.result(),
        pods=pods.result(),
        history=_of(found, DEVICE_PLUGIN),
        config_map=config_map.result(),
        operator_history=_of(found, GPU_OPERATOR),
        operator_config_map=operator_map.result(),
        dra_history=_of(found, DRA_DRIVER),
        cluster_policies=policies.result() or (),
        device_classes=classes.result() or (),
        slices=slices.result(),
        objects=objects,
    )


def has_entry(kube: Kube, kind: ReleaseKind, key: str) -> bool:
    """Return, with one call, whether a release currently has a config entry.

    Call this right before nodes get a label that names it: a label without its entry makes the plugin exit there.

    Raises:
        AccessError, ClusterError: See look.
    """
    return key in (kube.config_map(NAMESPACE, kind.config_map) or {})


def _of(releases: Sequence[Release], kind: ReleaseKind) -> tuple[Release, ...]:
    return tuple(release for release in releases if release.name == kind.name)
