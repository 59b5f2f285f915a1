"""DRANET, the DRA driver of network devices: the ResourceSlice of a node on which it runs.

In scope: the devices, and when the slice appears and disappears. Out of scope: allocating them to claims, the driver
that GKE installs, virtual interfaces.

Sources: kubernetes-sigs/dranet pkg/inventory, pkg/apis, install.yaml; aws/eks-charts stable/aws-dranet (image, device
class). PCI addresses and NUMA nodes are the sandbox's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube_sandbox.kube.nodes.draslices import SLICES, slice_of
from gpukube_sandbox.kube.nodes.fabric import EFA, INFINIBAND
from gpukube_sandbox.kube.store.objects import name_of

if TYPE_CHECKING:
    from gpukube_sandbox.kube.nodes.machines import Machine
    from gpukube_sandbox.kube.store.objectapi import ObjectApi
    from gpukube_sandbox.kube.store.objects import JsonObject

DRIVER: Final = "dra.net"
_MODELS: Final = {
    EFA: ("Amazon.com, Inc.", "Elastic Fabric Adapter (EFA)", "rdmap"),
    INFINIBAND: ("Mellanox Technologies", "ConnectX Family mlx5Gen Virtual Function", "mlx5_"),
}
"""Kind of device -> vendor and device as lspci names them, and the start of the RDMA device's name."""


async def publish_slices(api: ObjectApi, machine: Machine, node: JsonObject) -> None:
    """Create the slice of a machine once DRANET runs there, and delete it when it no longer does.

    A kubelet waits 30 seconds before it deletes the slices of a driver that is gone; the sandbox does not.
    """
    runs = any(run.runs("dranet") for run in machine.pods.values())
    if runs == machine.has_slices:
        return
    name = f"{name_of(node)}-{DRIVER}"
    live = await api.get(SLICES, name)
    if not runs and live:
        await api.delete(SLICES, live)
    elif runs and not live and await api.create(SLICES, _slice(name, machine, node)) is None:
        return
    machine.has_slices = runs


def _slice(name: str, machine: Machine, node: JsonObject) -> JsonObject:
    gpus = machine.shape.gpu.count if machine.shape.gpu else 1
    devices = [
        _device(kind, index, count, max(count // gpus, 1))
        for kind, count in machine.shape.fabric.items()
        for index in range(count)
    ]
    pool = {"name": name_of(node), "generation": 1, "resourceSliceCount": 1}
    return slice_of(node, DRIVER, pool, devices, name=name)


def _device(kind: str, index: int, count: int, per_root: int) -> JsonObject:
    """Return one adapter; those near one GPU share a PCIe root."""
    vendor, model, rdma = _MODELS[kind]
    bus = 0x10 + index
    address = f"0000:{bus:02x}:00.0"
    strings = {
        "dra.net/pciAddress": address,
        "dra.net/pciVendor": vendor,
        "dra.net/pciDevice": model,
        "dra.net/rdmaDevice": f"{rdma}{bus if kind == EFA else index}{'s0' if kind == EFA else ''}",
        "resource.kubernetes.io/pciBusID": address,
        "resource.kubernetes.io/pcieRoot": f"pci0000:{0x10 + index // per_root * per_root:02x}",
    }
    attributes: JsonObject = {key: {"string": value} for key, value in strings.items()}
    attributes |= {"dra.net/rdma": {"bool": True}, "dra.net/numaNode": {"int": int(index >= count / 2)}}
    return {"name": f"pci-{address.replace(':', '-').replace('.', '-')}", "attributes": attributes}
