"""The workloads that belong to the NVIDIA stack, whoever installed them, and the nodes that have GPUs.

In scope: the parts as the checks name them, based on cluster.stack, and how to recognize GPU nodes. Out of scope:
problems with them (the checks).

Sources: names, labels, images and commands of NVIDIA/k8s-device-plugin v0.20.0 (chart and static manifest),
NVIDIA/gpu-operator v26.7.0 (assets), kubernetes-sigs/node-feature-discovery v0.19.0 (chart),
kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1 (chart) and GoogleCloudPlatform/container-engine-accelerators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from gpukube.cluster.kube.views import NO_IMAGE, NO_MOUNT, devices_of
from gpukube.cluster.names import DRA_DRIVER
from gpukube.cluster.state.advertisers import node_plugin_evidence
from gpukube.cluster.state.components import is_plugin_image, role_of
from gpukube.cluster.state.dra_drivers import publishes_gpus
from gpukube.cluster.state.scheduling import lands_on
from gpukube.core.jsontree import items, text, tree
from gpukube.core.owners import ADVERTISER_LABEL
from gpukube.core.values import OWNER_LABEL
from gpukube.gpu.catalog import machines
from gpukube.gpu.claims import DRIVER
from gpukube.provider import in_cluster_facts

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gpukube.cluster.kube.views import ContainerState, NodeView, WorkloadView
    from gpukube.cluster.state.components import Role
    from gpukube.core.jsontree import Tree
    from gpukube.doctor.evidence import Evidence, PodFacts

Failure = Literal["config", "crash", "image", "mount"]
Part = Literal[
    "plugin", "dra", "gfd", "mps", "mig-manager", "operator", "nfd-worker", "nfd-master", "validator", "dcgm"
]

NFD_LABELS: Final = tuple(
    f"feature.node.kubernetes.io/{name}.present" for name in ("pci-10de", "pci-0302_10de", "pci-0300_10de")
)
"""NFD labels of a node with an NVIDIA device, with its default configuration or with that of NVIDIA's charts."""
_PRESENT: Final = "nvidia.com/gpu.present"
_CRASHES: Final = ("CrashLoopBackOff", "Error", "RunContainerError", "StartError")
_PARTS: Final[Mapping[Role, Part]] = {
    "plugin": "plugin",
    "cloud-plugin": "plugin",
    "gfd": "gfd",
    "mps": "mps",
    "mig-manager": "mig-manager",
    "nfd-worker": "nfd-worker",
    "validator": "validator",
    "dcgm": "dcgm",
}
"""Role of a DaemonSet, whoever created it -> part."""
_DEPLOYED: Final[tuple[tuple[str, Part], ...]] = (
    ("nfd-master", "nfd-master"),
    ("node-feature-discovery-master", "nfd-master"),
    ("gpu-operator", "operator"),
)
"""Program, or end of the name, of a Deployment -> part."""


def part_of(workload: WorkloadView) -> Part | None:
    """Return the part of the stack that a workload runs; None for other workloads."""
    if workload.kind == "DaemonSet":
        if publishes_gpus(workload):
            return "dra"
        if role := role_of(workload):
            return _PARTS.get(role)
        # A plugin with a custom name and command.
        return "plugin" if any(map(is_plugin_image, workload.images)) else None
    words = {word.rsplit("/")[-1] for container in workload.containers for word in container.command[:1]}
    return next((part for name, part in _DEPLOYED if name in words or workload.name.endswith(name)), None)


def workloads_of(evidence: Evidence, *parts: Part) -> tuple[WorkloadView, ...]:
    """Return the DaemonSets and Deployments that run one of these parts."""
    everything = (*evidence.seen.daemonsets, *evidence.seen.deployments)
    return tuple(item for item in everything if part_of(item) in parts)


def plugins(evidence: Evidence) -> tuple[WorkloadView, ...]:
    """Return the DaemonSets that advertise devices as nvidia.com/*."""
    return tuple(item for item in evidence.seen.daemonsets if part_of(item) == "plugin")


def dra_drivers(evidence: Evidence) -> tuple[WorkloadView, ...]:
    """Return the DaemonSets that publish GPUs in ResourceSlices."""
    return tuple(item for item in evidence.seen.daemonsets if part_of(item) == "dra")


def candidates(evidence: Evidence, node: NodeView) -> tuple[WorkloadView, ...]:
    """Return the DaemonSets that could advertise a node's GPUs: its label of gpukube chooses their kind."""
    advertiser = node.labels.get(ADVERTISER_LABEL, "")
    if advertiser == DRA_DRIVER.advertiser:
        return dra_drivers(evidence)
    return plugins(evidence) if advertiser else (*plugins(evidence), *dra_drivers(evidence))


def failure_of(state: ContainerState) -> Failure | None:
    """Return how a waiting container fails; None if it runs, has ended, or is just starting."""
    if state.waiting in NO_IMAGE:
        return "image"
    if state.waiting in NO_MOUNT:
        return "mount"
    if state.waiting in _CRASHES:
        chooses = state.init or "sidecar" in state.name or "config-manager" in state.name
        return "config" if chooses else "crash"
    return None


def is_failing(state: ContainerState) -> bool:
    """Return whether a container fails, in any way that the kubelet reports."""
    return failure_of(state) is not None


def running_init(pod: PodFacts) -> str:
    """Return the init container of a pod that is running; "" if none is."""
    states = (state for state in pod.view.containers if state.init and not state.waiting and state.exit_code is None)
    return next((state.name for state in states), "")


def pods_of_deployment(evidence: Evidence, deployment: WorkloadView) -> tuple[PodFacts, ...]:
    """Return a Deployment's pods that are not terminating: those of its ReplicaSets, whose names add a hash."""
    return tuple(
        pod
        for pod in evidence.pods
        if pod.view.owner_kind == "ReplicaSet"
        and (pod.view.namespace, pod.view.owner.rpartition("-")[0]) == (deployment.namespace, deployment.name)
        and not pod.view.terminating
    )


def advertisers_on(evidence: Evidence, node: NodeView) -> tuple[str, ...]:
    """Return what advertises GPUs on a node: DaemonSets, services of the node's image, and what shows only its devices.

    A plugin or a DRA driver that is no DaemonSet is found by its devices beside those of another kind.
    """
    daemons = [str(item) for item in plugins(evidence) if lands_on(item, node)]
    known = (plugin for facts in in_cluster_facts() for plugin in facts.node_plugins)
    services = [plugin.title for plugin in known if node_plugin_evidence(plugin, node)]
    known_drivers = dra_drivers(evidence)
    drivers = [str(item) for item in known_drivers if lands_on(item, node)]
    sliced = bool(evidence.published_on(node.name).pools)
    # Slices are stale where a known driver does not run any more.
    if sliced and not known_drivers and node.labels.get(ADVERTISER_LABEL) != DRA_DRIVER.advertiser:
        drivers = [f"a DRA driver (ResourceSlices of {DRIVER})"]
    if sliced and any(node.devices.values()) and not daemons and not services:
        services = ["an unknown device plugin"]
    return (*daemons, *services, *drivers[:1])  # dra-driver-twice reports a second driver


def release_of(workload: WorkloadView) -> tuple[str, str]:
    """Return (namespace, name) of the Helm release that a workload's labels name; "" as name if there is none."""
    managed = workload.labels.get("app.kubernetes.io/managed-by") == "Helm" or "helm.sh/chart" in workload.labels
    return workload.namespace, workload.labels.get("app.kubernetes.io/instance", "") if managed else ""


def is_gpu_node(node: NodeView, types: Collection[str] = ()) -> bool:
    """Return whether anything shows that a node has NVIDIA GPUs.

    Args:
        node: The node.
        types: Instance types that have NVIDIA GPUs.
    """
    labels = node.labels
    return (
        bool(devices_of(node.capacity))
        or labels.get("node.kubernetes.io/instance-type", "") in types
        or OWNER_LABEL in labels
        or any(labels.get(key) == "true" for key in (*NFD_LABELS, _PRESENT))
        or any(
            key in labels and value in ("", labels[key])
            for facts in in_cluster_facts()
            for key, value in facts.gpu_labels.items()
        )
    )


def gpu_nodes(evidence: Evidence) -> tuple[NodeView, ...]:
    """Return the nodes with GPUs."""
    known = {machine.name for machine in machines(evidence.cluster.provider)}
    return tuple(node for node in evidence.nodes if is_gpu_node(node, known))


def unhealthy_devices(evidence: Evidence, node: NodeView) -> dict[str, tuple[int, int]]:
    """Return the devices that a plugin withholds on a ready node as unhealthy: name -> (allocatable, capacity).

    If none are allocatable, the plugin may be gone, or the name may come from a former MIG layout; both keep the
    capacity for a while. That case counts only if a plugin is ready there and nothing else is allocatable.
    """
    if not node.ready:
        return {}
    there = devices_of(node.capacity)
    served = any(pod.view.ready for item in plugins(evidence) for pod in evidence.pods_on(node.name, item))
    empty = served and not any(node.devices.values())
    return {
        name: (count, there[name])
        for name, count in node.devices.items()
        if count < there.get(name, 0) and (count or empty)
    }


def runtime_class_of(daemonset: Tree) -> str:
    """Return the RuntimeClass that a DaemonSet's pods name; "" if none."""
    return text(daemonset, "spec", "template", "spec", "runtimeClassName")


def config_maps_of(daemonset: Tree) -> set[tuple[str, str]]:
    """Return the ConfigMaps that a DaemonSet's pods mount, as (namespace, name)."""
    namespace = text(daemonset, "metadata", "namespace")
    volumes = items(daemonset, "spec", "template", "spec", "volumes")
    return {(namespace, name) for volume in volumes if (name := text(volume, "configMap", "name"))}


def entries_for(evidence: Evidence, daemonset: WorkloadView) -> Mapping[str, str] | None:
    """Return the config entries that a plugin's DaemonSet mounts; None if it mounts none or they do not exist."""
    mounted = config_maps_of(evidence.manifest(daemonset))
    return next((evidence.config_maps[key] for key in sorted(mounted) if key in evidence.config_maps), None)


def environment_of(daemonset: Tree) -> dict[str, str]:
    """Return the plain environment variables of all containers of a DaemonSet's pods."""
    pod = tree(daemonset, "spec", "template", "spec")
    containers = (*items(pod, "initContainers"), *items(pod, "containers"))
    return {text(one, "name"): text(one, "value") for container in containers for one in items(container, "env")}
