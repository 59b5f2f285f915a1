"""Node objects: registration, readiness, and reboots.

In scope: building the Node object of a shape and updating its conditions. Out of scope: pods, advertising GPUs
(`kubelet`, `plugin`).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from gpukube_sandbox.clock import timestamp
from gpukube_sandbox.kube.store.objects import name_of, spec

if TYPE_CHECKING:
    from gpukube_sandbox.clock import Clock
    from gpukube_sandbox.kube.nodes.shapes import NodeShape
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject

NOT_READY_TAINT = "node.kubernetes.io/not-ready"
_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")
_RESERVED_MEMORY = 0.06
_RESERVED_ABOVE = 0.045
_LARGE_GIB = 128
"""Memory above which kernel and kubelet reserve a smaller share: each cloud reserves in decreasing steps."""
_RESERVED_MILLICPU = 100
_DISK_KI, _PERCENT_FREE = 129886128, 90
"""File system of a disk of 128 GB, and the share of a disk that the kubelet gives to pods (evictionHard)."""


def node_object(shape: NodeShape, kubelet_version: str, now: str) -> JsonObject:
    """Return the Node that a kubelet registers: not ready, with the pool's labels and taints, no GPU resources."""
    digest = hashlib.sha256(shape.name.encode()).digest()
    ki, disk_ki = int(shape.memory_gib * 1024 * 1024), int(shape.storage_gib * 1024 * 1024) or _DISK_KI
    free = {
        "cpu": f"{shape.cpu * 1000 - _RESERVED_MILLICPU}m",
        "memory": f"{int(ki - _reserved_ki(ki)) - shape.settings.page_ki}Ki",
        "ephemeral-storage": str(disk_ki * 1024 * _PERCENT_FREE // 100),
        "pods": str(shape.max_pods),
        **shape.settings.page_memory(),
    }
    capacity = free | {"cpu": str(shape.cpu), "memory": f"{ki}Ki", "ephemeral-storage": f"{disk_ki}Ki"}
    taints = [{"key": t.key, "effect": t.effect} | ({"value": t.value} if t.value else {}) for t in shape.taints]
    return {
        "metadata": {
            "name": shape.name,
            "labels": _well_known_labels(shape) | dict(shape.labels),
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        },
        "spec": {
            "providerID": shape.provider_id or f"sandbox:///{shape.name}",
            "taints": [*taints, {"key": NOT_READY_TAINT, "effect": "NoSchedule"}],
        },
        "status": {
            "capacity": capacity,
            "allocatable": free,
            "conditions": _conditions("False", "KubeletNotReady", "container runtime network not ready", now),
            "addresses": [
                {"type": "InternalIP", "address": f"10.224.{digest[0]}.{digest[1]}"},
                {"type": "Hostname", "address": shape.name},
            ],
            "nodeInfo": {
                "architecture": shape.arch,
                "bootID": digest[:16].hex(),
                "containerRuntimeVersion": shape.runtime,
                "kernelVersion": shape.kernel,
                "kubeProxyVersion": "",
                "kubeletVersion": kubelet_version,
                "machineID": digest[16:].hex(),
                "operatingSystem": "linux",
                "osImage": shape.os_image,
                "systemUUID": digest[8:24].hex(),
            },
        },
    }


def _reserved_ki(ki: int) -> float:
    large = max(0, ki - _LARGE_GIB * 1024 * 1024)
    return (ki - large) * _RESERVED_MEMORY + large * _RESERVED_ABOVE


def _well_known_labels(shape: NodeShape) -> dict[str, str]:
    region, _, _ = shape.zone.rpartition("-")
    zoned = {"topology.kubernetes.io/zone": shape.zone, "topology.kubernetes.io/region": region} if shape.zone else {}
    return zoned | {
        "beta.kubernetes.io/arch": shape.arch,
        "beta.kubernetes.io/instance-type": shape.machine,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": shape.arch,
        "kubernetes.io/hostname": shape.name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": shape.machine,
    }


def _conditions(ready: str, reason: str, message: str, now: str) -> list[JsonObject]:
    stamps = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    fine = [
        {
            "type": name,
            "status": "False",
            "reason": f"KubeletHasNo{name}",
            "message": f"kubelet has no {name}",
            **stamps,
        }
        for name in _PRESSURES
    ]
    return [*fine, {"type": "Ready", "status": ready, "reason": reason, "message": message, **stamps}]


async def register(api: ObjectApi, clock: Clock, shape: NodeShape, kubelet_version: str) -> JsonObject:
    """Create the Node object, which is not ready yet."""
    desired = node_object(shape, kubelet_version, timestamp(clock.now()))
    node = await api.create("nodes", desired) or desired
    await api.patch_status("nodes", node, desired["status"])
    await api.create("leases", _lease(node, clock.now() - clock.lead_s))
    return node


def _lease(node: JsonObject, now: float) -> JsonObject:
    """Return the node's lease, which `kubectl describe node` shows; it is not renewed, because machines never fail.

    Args:
        node: The node.
        now: Time by the clients' clock, because the API returns the times of leases as they were written.
    """
    owner = {"apiVersion": "v1", "kind": "Node", "name": name_of(node), "uid": (node.get("metadata") or {}).get("uid")}
    moment = timestamp(now).replace("Z", ".000000Z")
    return {
        "metadata": {
            "name": name_of(node),
            "namespace": "kube-node-lease",
            "ownerReferences": [owner] if owner["uid"] else [],
        },
        "spec": {"holderIdentity": name_of(node), "leaseDurationSeconds": 40, "renewTime": moment},
    }


async def mark_unknown(api: ObjectApi, clock: Clock, name: str) -> None:
    """Mark the node as unknown: its kubelet does not respond during a reboot."""
    await _turn(
        api,
        name,
        ready=False,
        change=_conditions(
            "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.", timestamp(clock.now())
        ),
    )


async def mark_ready(api: ObjectApi, clock: Clock, name: str) -> None:
    """Mark the node as ready and remove the not-ready taint."""
    await _turn(
        api,
        name,
        ready=True,
        change=_conditions("True", "KubeletReady", "kubelet is posting ready status", timestamp(clock.now())),
    )


async def _turn(api: ObjectApi, name: str, *, ready: bool, change: list[JsonObject]) -> None:
    node = await api.get("nodes", name)
    if node is None:
        return
    await api.patch_status("nodes", node, {"conditions": change})
    others = [taint for taint in spec(node).get("taints") or () if taint["key"] != NOT_READY_TAINT]
    mark = [] if ready else [{"key": NOT_READY_TAINT, "effect": "NoSchedule"}]
    await api.patch("nodes", {"metadata": {"name": name_of(node)}}, {"spec": {"taints": [*others, *mark] or None}})
