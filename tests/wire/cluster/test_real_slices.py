"""Pools of NVIDIA's DRA driver on a real control plane: slices written as the driver writes them, and counted."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.kube.api_types import CLAIM_TEMPLATES, JOBS, RELEASE_TYPES, RESOURCE_CLAIMS, ApiType
from gpukube.cluster.names import DRA_DRIVER, NAMESPACE, NAMESPACE_LABELS
from gpukube.cluster.proof.claim_probe import ADMIN_LABEL, claim_template, claimed_device
from gpukube.cluster.proof.probe import probe_job
from gpukube.cluster.state.published import held_devices, published
from gpukube.core.jsontree import text
from gpukube.core.values import Nodes
from gpukube.engine.change.proving import summarise
from gpukube_sandbox.kube.controlplane import find_assets
from sandbox_tests.waiting import PATIENCE_S, wait_for
from tests.unit.cluster.builders import claimed
from tests.unit.cluster.claiming import BAD, CUT, cut_gpus, gpu, gpus
from tests.wire.cluster.test_real_fabric import NAMES, Plane, plane

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube.cluster.kube.slices import DeviceView
    from gpukube.core.jsontree import Tree
    from gpukube.core.values import Desired

__all__ = ["plane"]
pytestmark = [
    pytest.mark.kube,
    pytest.mark.skipif(find_assets() is None, reason="KUBEBUILDER_ASSETS names no directory with a control plane"),
]
TWO = Nodes(2, 2, 2, autoscaled=False)
ROOM = {"cpu": "96", "memory": "1000Gi", "pods": "110"}
CLASSES = ApiType("resource.k8s.io", "v1", "DeviceClass", "deviceclasses", namespaced=False)
SLICES = ApiType("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", namespaced=False)
TYPES = {"gpu.nvidia.com": "gpu", "mig.nvidia.com": "mig"}
VERSIONS = ("driverVersion",)


def device_class(name: str) -> Tree:
    """Make a DeviceClass as the driver's chart does."""
    kind = f"device.attributes['gpu.nvidia.com'].type == '{TYPES[name]}'"
    expression = f"device.driver == 'gpu.nvidia.com' && {kind}"
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def driver_daemonset() -> Tree:
    labels = {"dra-driver-nvidia-gpu-component": "kubelet-plugin"}
    pods = {
        "tolerations": [{"operator": "Exists"}],
        "nodeSelector": {"gpukube.io/advertiser": "dra"},
        "containers": [{"name": DRA_DRIVER.container, "image": "registry.k8s.io/dra-driver-nvidia/x:v0.4.1"}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": DRA_DRIVER.plugin, "namespace": NAMESPACE},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pods}},
    }


def slice_object(node: str, name: str, devices: Iterable[DeviceView], generation: int = 1, count: int = 1) -> Tree:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": "gpu.nvidia.com",
            "nodeName": node,
            "pool": {"name": node, "generation": generation, "resourceSliceCount": count},
            "devices": [device_object(device) for device in devices],
        },
    }


def device_object(device: DeviceView) -> Tree:
    names = {full.removeprefix("gpu.nvidia.com/"): value for full, value in device.attributes.items()}
    attributes = {name: {"version" if name in VERSIONS else "string": value} for name, value in names.items()}
    capacity = {full.removeprefix("gpu.nvidia.com/"): {"value": value} for full, value in device.capacity.items()}
    taints = [{"key": taint.key, "value": taint.value, "effect": taint.effect} for taint in device.taints]
    return {
        "name": device.name,
        "attributes": attributes,
        "capacity": capacity,
        **({"taints": taints} if taints else {}),
    }


def served(plane: Plane, pool: Desired) -> None:
    """Join two nodes and let the driver's pods run on them, as far as the API shows."""
    plane.kube.ensure_namespace(NAMESPACE, NAMESPACE_LABELS)
    plane.join(pool, {"nvidia.com/mig.config.state": "success"} if pool.target.sharing.mig else {})
    for name in NAMES:
        plane.advertise(name, ROOM)
    plane.kube.create_object(RELEASE_TYPES["DaemonSet"], driver_daemonset())
    for name in TYPES:
        plane.kube.create_object(CLASSES, device_class(name))

    def pods() -> list[Tree]:
        found = asyncio.run_coroutine_threadsafe(plane.cluster.api.list("pods"), plane.loop).result(PATIENCE_S)
        return [pod for pod in found if text(pod, "spec", "nodeName")]

    wait_for(lambda: len(pods()) == len(NAMES))
    ready = {"type": "Ready", "status": "True"}
    for pod in pods():
        status = {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}, ready]}
        asyncio.run_coroutine_threadsafe(plane.cluster.api.patch_status("pods", dict(pod), status), plane.loop).result(
            PATIENCE_S
        )


def test_prove_when_slices_come_step_by_step_then_each_step_is_told(plane: Plane) -> None:
    pool = claimed(nodes=TWO)
    served(plane, pool)
    said = [summarise(plane.prove(pool))]

    def write(*args: object, **more: int) -> None:
        plane.kube.create_object(SLICES, slice_object(*args, **more))  # type: ignore[arg-type]  # as it is called
        said.append(summarise(plane.prove(pool)))

    write("node-1", "one", gpus())
    write("node-2", "two-a", gpus(4), count=2)
    write("node-2", "two-b", map(gpu, range(4, 8)), count=2)
    write("node-2", "newer", [*gpus(7), gpu(7, taints=(BAD,))], generation=2)
    write("node-2", "newest", gpus(), generation=3)
    plane.advertise("node-1", {**ROOM, "nvidia.com/gpu": "8"})
    said.append(summarise(plane.prove(pool)))
    plane.advertise("node-1", {**ROOM, "nvidia.com/gpu": "0"})
    said.append(summarise(plane.prove(pool)))
    assert said == [
        "node-1: no ResourceSlice of gpu.nvidia.com for this node",
        "node-2: no ResourceSlice of gpu.nvidia.com for this node",
        "node-2: 1 of 2 ResourceSlices of gpu.nvidia.com exist at generation 1",
        "16 devices of gpu.nvidia.com verified on 2 nodes",
        "node-2: gpu.nvidia.com is 7, not 8; gpu-7 has taint gpu.nvidia.com/xid=79:NoExecute",
        "16 devices of gpu.nvidia.com verified on 2 nodes",
        "node-1: nvidia.com/gpu: 8 is allocatable, and ResourceSlices of gpu.nvidia.com have gpu.nvidia.com: 8",
        "16 devices of gpu.nvidia.com verified on 2 nodes",
    ]


def test_probe_when_its_template_is_created_then_the_scheduler_gives_its_pod_a_device_of_the_profile(
    plane: Plane,
) -> None:
    pool = claimed(cut_by="operator", nodes=TWO, sharing=CUT)
    served(plane, pool)
    for name in NAMES:
        plane.kube.create_object(SLICES, slice_object(name, f"{name}-slice", cut_gpus("1g.5gb", "3g.20gb", count=2)))
    job = plane.kube.create_object(JOBS, probe_job(pool, NAMESPACE, "1"))
    plane.kube.create_object(CLAIM_TEMPLATES, claim_template(pool, job))

    def got() -> object:
        claims = plane.kube.objects(RESOURCE_CLAIMS) or ()
        return next(filter(None, map(claimed_device, claims)), None)

    wait_for(got)
    there = published(plane.kube.resource_slices())
    (held,) = held_devices(there, plane.kube.objects(RESOURCE_CLAIMS) or ()).values()
    assert held == {"mig.nvidia.com/1g.5gb": 1}
    plane.kube.delete_object(JOBS, text(job, "metadata", "name"), NAMESPACE)
    wait_for(lambda: not plane.kube.objects(CLAIM_TEMPLATES, NAMESPACE))  # its owner is gone


def test_template_when_it_observes_then_only_a_namespace_with_the_label_may_have_it(plane: Plane) -> None:
    pool = claimed(nodes=TWO)
    job = {"metadata": {"name": "probe", "namespace": NAMESPACE, "uid": "0b1c"}}
    plane.kube.ensure_namespace(NAMESPACE, {})
    assert not plane.kube.try_object(CLAIM_TEMPLATES, claim_template(pool, job))
    observing = claim_template(pool, job, admin=True)
    assert ADMIN_LABEL in plane.kube.try_object(CLAIM_TEMPLATES, observing)
    plane.kube.ensure_namespace(NAMESPACE, {ADMIN_LABEL: "true"})
    assert not plane.kube.try_object(CLAIM_TEMPLATES, observing)
