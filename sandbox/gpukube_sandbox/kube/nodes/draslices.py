"""ResourceSlices of NVIDIA's DRA driver: written while its plugin runs on a node, deleted by the kubelet afterwards.

In scope: one pool per node, its generation, when slices appear and disappear. Out of scope: which devices are in them
(`dradriver`), allocation.

Source: k8s.io/dynamic-resource-allocation resourceslice (generation, recreation of deleted slices), kubernetes
pkg/kubelet/cm/dra/plugin/dra_plugin_manager.go (deletion at the kubelet's start, and 30 s after a plugin is gone).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube_sandbox.kube.nodes.dradriver import DRIVER_NAME, discover
from gpukube_sandbox.kube.nodes.machines import Machine
from gpukube_sandbox.kube.store.objects import name_of, spec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube_sandbox.kube.nodes.podruns import PodRun
    from gpukube_sandbox.kube.nodes.processes import NodeFaults
    from gpukube_sandbox.kube.nodes.shapes import NodeShape
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject

SLICES: Final = "resourceslices"
WIPE_S: Final = 30.0
"""Sandbox seconds without a plugin after which the kubelet deletes its slices."""
_MOST, _MOST_TAINTED = 128, 64
"""Devices in a slice; fewer if any has taints."""


def plugin_of(machine: Machine) -> PodRun | None:
    """Return the pod that serves the driver's claims on a machine: of two, the kubelet uses the latest."""
    running = [run for run in machine.pods.values() if run.offer and run.runs("dra-plugin")]
    return max(running, key=lambda run: run.born, default=None)


def concerns(machine: Machine) -> bool:
    """Return whether the kubelet must look at slices: at its start, and for a plugin that runs or has run."""
    return not machine.has_wiped or machine.serves_claims or plugin_of(machine) is not None


async def serve_slices(  # noqa: PLR0913 -- the node's state in three parts
    api: ObjectApi, machine: Machine, node: JsonObject, on_node: list[JsonObject], now: float, *, faults: NodeFaults
) -> list[float]:
    """Write or delete the slices of a machine; return the time of the next step.

    Args:
        api: The cluster's API.
        machine: The machine.
        node: Its node.
        on_node: The slices of all drivers for this node.
        now: Sandbox time.
        faults: Takes a fault's action and a pool, and returns whether it strikes a node of the pool.
    """
    if not machine.has_wiped:
        machine.has_wiped, machine.has_slices = True, False
        await _delete(api, on_node)
        on_node = []
    live = [item for item in on_node if spec(item)["driver"] == DRIVER_NAME]
    plugin = plugin_of(machine)
    if plugin is not None:
        machine.serves_claims, machine.plugin_gone_at = True, 0.0
        await _publish(api, plugin, node, live)
        return []
    if not machine.serves_claims:
        return []
    machine.plugin_gone_at = machine.plugin_gone_at or now
    if now < machine.plugin_gone_at + WIPE_S:
        return [machine.plugin_gone_at + WIPE_S]
    machine.serves_claims, machine.plugin_gone_at = False, 0.0
    if not faults("stale-slice", machine.shape.pool):
        await _delete(api, live)
    return []


def expected_slices(shape: NodeShape) -> list[JsonObject]:
    """Return the slices of a machine that does not exist yet, once its driver and the plugin run."""
    if shape.gpu is None:
        return []
    machine = Machine(replace(shape, gpu=replace(shape.gpu, driver=True)))
    pool = {"name": shape.name, "generation": 1, "resourceSliceCount": 1}
    return [_slice({"metadata": {"name": shape.name, "uid": ""}}, pool, [one.body for one in discover(machine)])]


def slice_of(node: JsonObject, driver: str, pool: JsonObject, devices: list[JsonObject], **named: str) -> JsonObject:
    """Return a slice of a node, which owns it; its `name` or `generateName` is given by keyword."""
    name = name_of(node)
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"], "controller": True}
    return {
        "metadata": {**named, "ownerReferences": [owner]},
        "spec": {"driver": driver, "nodeName": name, "pool": pool, **({"devices": devices} if devices else {})},
    }


async def orphan_slices(api: ObjectApi, node: str) -> None:
    """Let the slices of a node outlive it: the garbage collector deletes those that it owns."""
    for item in await api.list(SLICES, fields=f"spec.nodeName={node}"):
        await api.patch(SLICES, item, {"metadata": {"ownerReferences": None}})


async def _delete(api: ObjectApi, items: Iterable[JsonObject]) -> None:
    for item in items:
        await api.delete(SLICES, item)


async def _publish(api: ObjectApi, plugin: PodRun, node: JsonObject, live: list[JsonObject]) -> None:
    """Write the slices at the plugin's start, and those again that somebody has deleted since."""
    offer = plugin.offer
    if offer is None or (offer.is_published and live):
        return
    if offer.is_lost:
        await _delete(api, live)
        return
    bodies = [device.body for device in offer.devices]
    most = _MOST_TAINTED if any(body.get("taints") for body in bodies) else _MOST
    chunks = [bodies[at : at + most] for at in range(0, len(bodies), most)] or [[]]
    count = len(chunks) + offer.missing
    is_same = [spec(item).get("devices") or [] for item in live] == chunks and all(
        spec(item)["pool"]["resourceSliceCount"] == count for item in live
    )
    offer.is_published = True
    if is_same:
        return
    generation = 1 + max((int(spec(item)["pool"]["generation"]) for item in live), default=0)
    pool = {"name": name_of(node), "generation": generation, "resourceSliceCount": count}
    for item, devices in zip(live, chunks, strict=False):
        await api.patch(SLICES, item, {"spec": {"pool": pool, "devices": devices or None}})
    await _delete(api, live[len(chunks) :])
    for devices in chunks[len(live) :]:
        await api.create(SLICES, _slice(node, pool, devices))


def _slice(node: JsonObject, pool: JsonObject, devices: list[JsonObject]) -> JsonObject:
    return slice_of(node, DRIVER_NAME, pool, devices, generateName=f"{name_of(node)}-{DRIVER_NAME}-")
