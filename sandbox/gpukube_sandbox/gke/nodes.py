"""Machines of a pool as Kubernetes nodes: names, labels, taints, GPUs.

In scope: what GKE sets on a node that joins. Out of scope: when nodes are created and deleted (`lifecycle`).

Sources: docs: kubernetes-engine/how-to/gpus, concepts/timesharing-gpus; GKE cluster-autoscaler, package labels.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from google.cloud import container_v1 as wire

from gpukube_sandbox.gke.accelerators import ACCELERATORS
from gpukube_sandbox.gke.networks import networks_of
from gpukube_sandbox.gke.nodesettings import node_settings, storage_gib
from gpukube_sandbox.gke.pools import accelerator_of, machine_of
from gpukube_sandbox.kube.nodes.shapes import GpuShape, NodeShape, Taint
from gpukube_sandbox.kube.store.objects import labels, spec

if TYPE_CHECKING:
    from gpukube_sandbox.gke.pools import Pool
    from gpukube_sandbox.gke.wire.names import Place
    from gpukube_sandbox.kube.cluster import KubeCluster

OPT_OUT = "gke-no-default-nvidia-gpu-device-plugin"
"""Label that disables GKE's device plugin, and with it the managed driver installation, on a node
(NVIDIA/aicr#2047)."""
_LETTERS = "bcdfghjklmnpqrstvwxz0123456789"
_EFFECTS = {
    wire.NodeTaint.Effect.NO_SCHEDULE: "NoSchedule",
    wire.NodeTaint.Effect.PREFER_NO_SCHEDULE: "PreferNoSchedule",
    wire.NodeTaint.Effect.NO_EXECUTE: "NoExecute",
}
_SHARING = {
    wire.GPUSharingConfig.GPUSharingStrategy.TIME_SHARING: "time-sharing",
    wire.GPUSharingConfig.GPUSharingStrategy.MPS: "mps",
}
_DRIVERS = {
    wire.GPUDriverInstallationConfig.GPUDriverVersion.DEFAULT: "default",
    wire.GPUDriverInstallationConfig.GPUDriverVersion.LATEST: "latest",
}
_OS = {
    "COS_CONTAINERD": ("cos", "Container-Optimized OS from Google", "6.12.55+"),
    "UBUNTU_CONTAINERD": ("ubuntu", "Ubuntu 24.04.3 LTS", "6.8.0-1042-gke"),
}
"""Image type -> label, name, and kernel, as on nodes of 1.34 (kubearmor/KubeArmor#2505)."""


def group_name(place: Place, zone: str) -> str:
    """Return the name of a pool's managed instance group in a zone; cluster and pool share 32 characters."""
    digest = hashlib.sha256(f"{place.pool_name}/{zone}".encode()).hexdigest()[:8]
    return f"gke-{f'{place.cluster}-{place.pool}'[:32].rstrip('-')}-{digest}"


def next_name(place: Place, pool: Pool, zone: str) -> str:
    """Return the name of the next machine: the group's name with a suffix of four characters."""
    pool.made += 1
    number = int(hashlib.sha256(f"{place.pool_name}/{pool.made}".encode()).hexdigest(), 16)
    tail = "".join(_LETTERS[number // len(_LETTERS) ** at % len(_LETTERS)] for at in range(4))
    return f"{group_name(place, zone)}-{tail}"


def node_labels(pool: wire.NodePool) -> dict[str, str]:
    """Return all labels that the pool sets on its nodes: the user's and the cloud's."""
    config, machine = pool.config, machine_of(pool)
    way = "spot" if config.spot else "preemptible" if config.preemptible else "standard"
    found = dict(config.labels) | {
        "cloud.google.com/gke-nodepool": pool.name,
        "cloud.google.com/gke-os-distribution": _OS[config.image_type][0],
        "cloud.google.com/gke-boot-disk": config.disk_type,
        "cloud.google.com/gke-container-runtime": "containerd",
        "cloud.google.com/gke-cpu-scaling-level": str(machine.vcpus),
        "cloud.google.com/gke-max-pods-per-node": str(pool.max_pods_constraint.max_pods_per_node),
        "cloud.google.com/gke-provisioning": "flex-start" if config.flex_start else way,
        "cloud.google.com/machine-family": machine.family,
    }
    if config.spot:
        found["cloud.google.com/gke-spot"] = "true"
    if config.preemptible:
        found["cloud.google.com/gke-preemptible"] = "true"
    if config.flex_start:
        found["cloud.google.com/gke-flex-start"] = "true"
    if config.confidential_nodes.enabled:
        kind = config.confidential_nodes.confidential_instance_type
        found["cloud.google.com/gke-confidential-nodes-instance-type"] = kind.name if int(kind) else "SEV"
    if pool.network_config.accelerator_network_profile:
        found["gke.networks.io/accelerator-network-profile"] = pool.network_config.accelerator_network_profile
    return found | _gpu_labels(pool)


def _gpu_labels(pool: wire.NodePool) -> dict[str, str]:
    accelerator = accelerator_of(pool)
    if accelerator is None:
        return {}
    found = {"cloud.google.com/gke-accelerator": accelerator.accelerator_type}
    if accelerator.gpu_partition_size:
        found["cloud.google.com/gke-gpu-partition-size"] = accelerator.gpu_partition_size.replace("+", ".")
    sharing = accelerator.gpu_sharing_config
    if sharing.gpu_sharing_strategy in _SHARING:
        found["cloud.google.com/gke-gpu-sharing-strategy"] = _SHARING[sharing.gpu_sharing_strategy]
        found["cloud.google.com/gke-max-shared-clients-per-gpu"] = str(sharing.max_shared_clients_per_gpu)
    driver = _DRIVERS.get(accelerator.gpu_driver_installation_config.gpu_driver_version)
    return found | ({"cloud.google.com/gke-gpu-driver-version": driver} if driver else {})


def node_taints(pool: wire.NodePool) -> tuple[Taint, ...]:
    """Return the pool's taints, which already include GKE's for GPUs, and those of Arm and queued nodes."""
    own = tuple(Taint(taint.key, taint.value, _EFFECTS[taint.effect]) for taint in pool.config.taints)
    if pool.queued_provisioning.enabled:  # docs: how-to/provisioningrequest
        own = (*own, Taint("cloud.google.com/gke-queued", "true"))
    behavior = wire.TaintConfig.ArchitectureTaintBehavior
    has_taint = pool.config.taint_config.architecture_taint_behavior != behavior.NONE
    return (*own, Taint("kubernetes.io/arch", "arm64")) if machine_of(pool).arm and has_taint else own


def node_shape(place: Place, pool: wire.NodePool, name: str, zone: str, boot_s: float) -> NodeShape:
    """Return a machine that is about to boot.

    Args:
        place: Name of its pool.
        pool: The pool's resource.
        name: Node name.
        zone: Zone of the machine.
        boot_s: Sandbox seconds until it registers.
    """
    machine = machine_of(pool)
    return NodeShape(
        name=name,
        pool=pool.name,
        machine=machine.name,
        labels=node_labels(pool),
        taints=node_taints(pool),
        cpu=machine.vcpus,
        memory_gib=float(machine.memory_gib),
        gpu=_gpu_shape(pool),
        boot_s=boot_s,
        provider_id=f"gce://{place.project}/{zone}/{name}",
        os_image=_OS[pool.config.image_type][1],
        kernel=_OS[pool.config.image_type][2],
        runtime="containerd://2.1.5",
        max_pods=pool.max_pods_constraint.max_pods_per_node,
        zone=zone,
        kubelet=pool.version,
        settings=node_settings(pool.config),
        storage_gib=storage_gib(pool),
        networks=networks_of(pool),
    )


def _gpu_shape(pool: wire.NodePool) -> GpuShape | None:
    accelerator = accelerator_of(pool)
    if accelerator is None:
        return None
    kind = ACCELERATORS[accelerator.accelerator_type]
    size = accelerator.gpu_partition_size
    sharing = accelerator.gpu_sharing_config
    managed = accelerator.gpu_driver_installation_config.gpu_driver_version in _DRIVERS
    return GpuShape(
        model=kind.model,
        count=accelerator.accelerator_count,
        mig_layout=(size,) * kind.partitions[size] if size else (),
        mig_reboot=bool(size) and kind.reboots,
        # The managed installation ends in an init container of the same DaemonSet that the label disables.
        driver=managed and pool.config.labels.get(OPT_OUT) != "true",
        driver_root="/home/kubernetes/bin/nvidia",
        runtime="",  # GKE's plugin mounts the driver itself
        partition=size,
        sharing=_SHARING.get(sharing.gpu_sharing_strategy, ""),
        clients=sharing.max_shared_clients_per_gpu,
    )


async def retouch_node(kube: KubeCluster, name: str, before: wire.NodePool, after: wire.NodePool) -> None:
    """Change a node's labels and taints to match its pool, leaving those of others alone."""
    node = await kube.api.get("nodes", name)
    if node is None:
        return
    old, new = node_labels(before), node_labels(after)
    change: dict[str, str | None] = {key: None for key in old if key not in new and key in labels(node)}
    change |= new
    gone = {(taint.key, taint.effect) for taint in (*node_taints(before), *node_taints(after))}
    kept = [taint for taint in spec(node).get("taints") or () if (taint["key"], taint["effect"]) not in gone]
    mine = [{"key": t.key, "effect": t.effect} | ({"value": t.value} if t.value else {}) for t in node_taints(after)]
    await kube.api.patch("nodes", node, {"metadata": {"labels": change}, "spec": {"taints": [*kept, *mine] or None}})
