"""Virtual machines of a pool as Kubernetes nodes: names, labels, taints, GPUs.

In scope: what AKS sets on a node that joins. Out of scope: when nodes are created and deleted (`lifecycle`).

Source of labels: docs: aks/use-labels, docs: aks/use-nvidia-gpu.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube_sandbox.aks.keys import labels_of, taints_of
from gpukube_sandbox.aks.nodesettings import node_settings
from gpukube_sandbox.aks.sizes import VmSize, find_size, mig_layout
from gpukube_sandbox.kube.nodes.fabric import INFINIBAND
from gpukube_sandbox.kube.nodes.shapes import GpuShape, NodeShape, Taint
from gpukube_sandbox.kube.store.objects import spec

if TYPE_CHECKING:
    from gpukube_sandbox.aks.answers import Json
    from gpukube_sandbox.kube.cluster import KubeCluster

IMAGE_DATE = "202607.31.1"
"""Date of the initial images."""
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_SYSTEMS = {
    "Ubuntu2204": ("Ubuntu 22.04.5 LTS", "5.15.0-1117-azure", "1.7.34"),
    "Ubuntu2404": ("Ubuntu 24.04.4 LTS", "6.8.0-1063-azure", "2.3.3"),
}
_AZURE_LINUX = ("Microsoft Azure Linux 3.0", "6.6.144.1-1.azl3", "2.2.4")
"""Name, kernel, and containerd of the images of `IMAGE_DATE` (Azure/AgentBaker, vhdbuilder/release-notes)."""
_IMAGES = {"Ubuntu2204": "AKSUbuntu-2204gen2containerd", "AzureLinux": "AKSAzureLinux-V3gen2"}
_OF_THE_IMAGE = ("nodeImageVersion", "osSKU", "enableFIPS", "currentOrchestratorVersion")
_UBUNTU_24_FROM = 34  # Ubuntu means 24.04 from Kubernetes 1.34 on (docs: aks/node-auto-provisioning-aksnodeclass)


def effective_sku(pool: Json) -> str:
    """Return the image family of an osSKU: for `Ubuntu` it depends on the Kubernetes version."""
    sku = str(pool.get("osSKU", "Ubuntu"))
    if sku != "Ubuntu":
        return sku
    minor = int(str(pool["currentOrchestratorVersion"]).split(".")[1])
    return "Ubuntu2404" if minor >= _UBUNTU_24_FROM else "Ubuntu2204"


def image_version(pool: Json, date: str = IMAGE_DATE) -> str:
    """Return the NodeImageVersion that the service would choose now, if the newest images are of this date."""
    sku = effective_sku(pool)
    family = next((image for start, image in _IMAGES.items() if sku.startswith(start)), "AKSUbuntu-2404gen2containerd")
    if pool.get("enableFIPS"):
        family = family.replace("gen2", "gen2fips")
    return f"{family}-{date}"


def node_name(cluster: str, pool: str, index: int) -> str:
    """Return `aks-<pool>-<8 digits>-vmss<6 of base 36>`, the name format of scale set members."""
    digest = int(hashlib.sha256(f"{cluster}/{pool}".encode()).hexdigest(), 16) % 10**8
    number, text = index, ""
    for _ in range(6):
        number, digit = divmod(number, len(_DIGITS))
        text = _DIGITS[digit] + text
    return f"aks-{pool}-{digest:08d}-vmss{text}"


def machine_id(place: Place, pool: str, index: int) -> str:
    """Return the ARM id of a scale set's member."""
    return (
        f"/subscriptions/{place.subscription}/resourceGroups/{place.node_group.lower()}/providers/Microsoft.Compute"
        f"/virtualMachineScaleSets/{scale_set_name(place.cluster, pool)}/virtualMachines/{index}"
    )


def index_of(node: str) -> int:
    """Return a member's index from its name."""
    return int(node.rpartition("vmss")[2], len(_DIGITS))


def scale_set_name(cluster: str, pool: str) -> str:
    """Return the name of the pool's scale set, which is the prefix of its members' names."""
    name = node_name(cluster, pool, 0)
    return name[: name.rindex("vmss") + 4]


def node_labels(pool_name: str, pool: Json, node_group: str) -> dict[str, str]:
    """Return all labels that the pool sets on its nodes: the user's and the cloud's."""
    size = _size_of(pool)
    spot = pool.get("scaleSetPriority") == "Spot"
    labels = labels_of(pool) | {
        "agentpool": pool_name,
        "kubernetes.azure.com/agentpool": pool_name,
        "kubernetes.azure.com/cluster": node_group,
        "kubernetes.azure.com/mode": str(pool["mode"]).lower(),
        "kubernetes.azure.com/role": "agent",
        "kubernetes.azure.com/os-sku": "Ubuntu" if str(pool["osSKU"]).startswith("Ubuntu") else str(pool["osSKU"]),
        "kubernetes.azure.com/os-sku-requested": str(pool["osSKU"]),
        "kubernetes.azure.com/os-sku-effective": effective_sku(pool),
        "kubernetes.azure.com/node-image-version": str(pool["nodeImageVersion"]),
        "kubernetes.azure.com/nodepool-type": str(pool["type"]),
        "kubernetes.azure.com/priority": "spot" if spot else "regular",
        "kubernetes.azure.com/storageprofile": str(pool["osDiskType"]).lower(),
        "kubernetes.azure.com/sku-cpu": str(size.vcpus),
        "kubernetes.azure.com/sku-memory": str(size.memory_gib * 1024),
    }
    if pool.get("enableFIPS"):
        labels["kubernetes.azure.com/fips_enabled"] = "true"
    if size.gpus:
        labels |= {"accelerator": "nvidia", "kubernetes.azure.com/accelerator": "nvidia"}
    if is_managed(pool):
        labels["kubernetes.azure.com/dcgm-exporter"] = "enabled"
    return labels


def node_taints(pool: Json) -> tuple[Taint, ...]:
    """Return the pool's taints; AKS adds none for GPUs, and a Spot pool has its taint in its own list."""
    return tuple(Taint.parse(text) for text in taints_of(pool))


def is_managed(pool: Json) -> bool:
    """Return whether AKS runs the device plugin, as a service of the host (docs: aks/aks-managed-gpu-nodes)."""
    return _nvidia(pool).get("managementMode") == "Managed"


@dataclass(frozen=True, slots=True)
class Place:
    """Location of a machine.

    Attributes:
        cluster: ARM id of the cluster.
        node_group: nodeResourceGroup, which contains the scale sets.
        has_fabric: Whether InfiniBand adapters work.
        zone: Logical zone; "" for none.
    """

    cluster: str
    subscription: str
    node_group: str
    location: str
    has_fabric: bool = True
    zone: str = ""


def node_shape(place: Place, pool_name: str, pool: Json, index: int, boot_s: float) -> NodeShape:
    """Return a machine that is about to boot.

    Args:
        place: Location of the machine.
        pool_name: Agent pool.
        pool: Its wire properties.
        index: Index in the scale set.
        boot_s: Sandbox seconds until it registers.
    """
    name = node_name(place.cluster, pool_name, index)
    size = _size_of(pool)
    zone = f"{place.location}-{place.zone}" if place.zone else "0"
    labels = node_labels(pool_name, pool, place.node_group)
    labels["topology.disk.csi.azure.com/zone"] = zone if zone != "0" else ""
    labels |= {"topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": place.location}
    system, kernel, containerd = _SYSTEMS.get(effective_sku(pool), _AZURE_LINUX)
    return NodeShape(
        name=name,
        pool=pool_name,
        machine=size.name,
        labels=labels,
        taints=node_taints(pool),
        cpu=size.vcpus,
        memory_gib=float(size.memory_gib),
        gpu=_gpu_shape(pool, size),
        boot_s=boot_s,
        provider_id=f"azure://{machine_id(place, pool_name, index)}",
        os_image=system,
        kernel=kernel,
        runtime=f"containerd://{containerd}",
        max_pods=int(str(pool["maxPods"])),
        zone=zone,
        kubelet=str(pool["currentOrchestratorVersion"]),
        settings=node_settings(pool),
        fabric={INFINIBAND: size.infiniband} if size.infiniband and place.has_fabric else {},
    )


def _size_of(pool: Json) -> VmSize:
    size = find_size(str(pool["vmSize"]))
    if size is None:
        message = f"pool of unknown size {pool['vmSize']}"
        raise LookupError(message)
    return size


def _nvidia(pool: Json) -> Json:
    profile = pool.get("gpuProfile")
    nvidia = profile.get("nvidia") if isinstance(profile, dict) else None
    return nvidia if isinstance(nvidia, dict) else {}


def _gpu_shape(pool: Json, size: VmSize) -> GpuShape | None:
    if not size.gpus:
        return None
    profile = pool.get("gpuProfile")
    driver = not (isinstance(profile, dict) and profile.get("driver") == "None")
    managed = is_managed(pool)
    layout = mig_layout(size, str(pool["gpuInstanceProfile"])) if "gpuInstanceProfile" in pool else ()
    strategy = str(_nvidia(pool).get("migStrategy", "None")).lower()
    return GpuShape(
        model=size.gpu,
        count=size.gpus,
        mig_layout=layout,
        mig_reboot=bool(layout),
        driver=driver or managed,  # driver None is ignored on a managed pool
        runtime="nvidia-container-runtime" if driver or managed else "",  # Azure/AgentBaker pkg/agent/baker.go
        host_plugin=managed,
        host_strategy="single" if strategy == "single" else "mixed" if strategy == "mixed" else "none",
    )


def with_image_of(pool: Json, before: Json) -> Json:
    """Return a pool's properties as its existing machines have them before they are replaced: image fields stay old."""
    return pool | {key: before[key] for key in _OF_THE_IMAGE}


async def retouch_node(
    kube: KubeCluster,
    name: str,
    labels: tuple[dict[str, str], dict[str, str]],
    taints: tuple[tuple[Taint, ...], tuple[Taint, ...]],
) -> None:
    """Change a node's pool labels and taints from the old to the new ones; others stay.

    Args:
        kube: The cluster; a node that does not exist (yet) is skipped.
        name: Node name.
        labels: The pool's old and new labels.
        taints: The pool's old and new taints.
    """
    node = await kube.api.get("nodes", name)
    if node is None:
        return
    gone = {key: None for key in labels[0] if key not in labels[1]}
    given = {taint.key for taint in (*taints[0], *taints[1])}
    others = [taint for taint in spec(node).get("taints") or () if taint["key"] not in given]
    own = [{"key": t.key, "value": t.value, "effect": t.effect} for t in taints[1]]
    change = {"metadata": {"labels": {**gone, **labels[1]}}, "spec": {"taints": [*others, *own] or None}}
    await kube.api.patch("nodes", node, change)
