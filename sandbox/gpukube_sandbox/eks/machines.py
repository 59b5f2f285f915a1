"""EC2 instances of a node group as Kubernetes nodes: names, labels, taints, GPUs.

In scope: what EKS sets on a node that joins. Out of scope: when nodes are created and deleted (`lifecycle`).

Source of labels: docs: eks/managed-node-groups, eks/managed-node-update-behavior; cloud-provider-aws for the zone.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from gpukube_sandbox.eks.bottlerocket import GpuSettings, UserDataError, decoded, read_settings
from gpukube_sandbox.eks.cards import disks_of, efa_count
from gpukube_sandbox.eks.groups import Instance, image_of
from gpukube_sandbox.eks.instances import POD_ADDRESSES
from gpukube_sandbox.eks.keys import EFFECTS, labels_kubelet_rejects, labels_of
from gpukube_sandbox.eks.userdata import Setup, read_setup
from gpukube_sandbox.eks.wire.answers import objects_in, strings_in, whole
from gpukube_sandbox.kube.nodes.fabric import EFA
from gpukube_sandbox.kube.nodes.settings import NodeSettings
from gpukube_sandbox.kube.nodes.shapes import GpuShape, NodeShape, Taint
from gpukube_sandbox.kube.store.gates import parse_minor
from gpukube_sandbox.kube.store.objects import spec

if TYPE_CHECKING:
    from gpukube_sandbox.eks.clusters import EksCluster
    from gpukube_sandbox.eks.groups import NodeGroup
    from gpukube_sandbox.eks.instances import InstanceType
    from gpukube_sandbox.eks.launching import Slot
    from gpukube_sandbox.eks.wire.answers import Json
    from gpukube_sandbox.kube.cluster import KubeCluster

_SYSTEMS = {
    "al2": "Amazon Linux 2",
    "al2023": "Amazon Linux 2023.9.20260714",
    "bottlerocket": "Bottlerocket OS {release} ({variant})",
    "windows": "Windows Server 2022 Datacenter",
    "custom": "Amazon Linux 2023.9.20260714",
}
_FEW_PODS, _MANY_PODS, _MANY_VCPUS = 110, 250, 30
_RAID10_DISKS = 4
_LABELLED_SINCE = (1, 35)
_EFA_PAGES, _PAGES_PER_CPU = 5128, 110
_GB, _GIB = 10**9, 2**30
_ARCH = {"x86_64": "amd64", "arm64": "arm64"}


def node_labels(group: NodeGroup) -> dict[str, str]:
    """Return all labels that the group sets on its nodes: the user's and the cloud's."""
    found = labels_of(group.members) | {
        "eks.amazonaws.com/nodegroup": group.name,
        "eks.amazonaws.com/nodegroup-image": image_of(group),
        "eks.amazonaws.com/capacityType": str(group.members["capacityType"]),
    }
    template = group.members.get("launchTemplate")
    if isinstance(template, dict):
        found["eks.amazonaws.com/sourceLaunchTemplateId"] = str(template["id"])
        found["eks.amazonaws.com/sourceLaunchTemplateVersion"] = str(template["version"])
    return found


def node_taints(members: Json) -> tuple[Taint, ...]:
    """Return the group's taints in Kubernetes' spelling; EKS adds none for GPUs."""
    return tuple(
        Taint(str(taint["key"]), str(taint.get("value") or ""), EFFECTS[str(taint["effect"])])
        for taint in objects_in(members.get("taints"))
    )


def cannot_join(cluster: EksCluster, group: NodeGroup) -> str:
    """Return why no node of this group can register; "" if nodes can.

    Source:
        docs: eks/launch-templates, aws/aws-parallelcluster#7457 (no public address with several interfaces);
        terraform-aws-modules/terraform-aws-eks#3533 (such nodes never join).
    """
    several = len(objects_in((group.data or {}).get("NetworkInterfaces"))) > 1
    public = [name for name in strings_in(group.members["subnets"]) if cluster.is_public(name)]
    if several and public:
        return f"instances with several network interfaces get no public IP address, which {public[0]} needs"
    wrong = labels_kubelet_rejects(labels_of(group.members))
    if wrong:
        return f"kubelet refuses labels {', '.join(wrong)}"
    try:
        setup = read_setup(_user_data(group), group.image.system)
        if group.image.has_plugin:
            read_settings(_user_data(group), group.types[0].gpu, str(group.members["releaseVersion"]))
    except UserDataError as error:
        return str(error)
    disks = disks_of(group.types[0])
    if setup.raid == "RAID10" and disks and disks.count < _RAID10_DISKS:
        return f"localStorage RAID10 needs {_RAID10_DISKS} disks; {group.types[0].name} has {disks.count}"
    wrong = labels_kubelet_rejects(setup.labels)
    return f"kubelet refuses labels {', '.join(wrong)}" if wrong else ""


def node_shape(cluster: EksCluster, group: NodeGroup, slot: Slot, boot_s: float) -> NodeShape:
    """Return an instance that is about to boot.

    Args:
        cluster: Cluster of the group.
        group: Its node group.
        slot: Its type, its zone, and how it was bought.
        boot_s: Sandbox seconds until it registers.
    """
    kind, zone = slot.kind, slot.zone
    index, group.next_index = group.next_index, group.next_index + 1
    digest = hashlib.sha256(f"{group.arn}/{index}".encode()).digest()
    instance = f"i-0{digest.hex()[:16]}"
    area = "ec2.internal" if cluster.region == "us-east-1" else f"{cluster.region}.compute.internal"
    name = f"ip-10-0-{digest[0]}-{digest[1]}-{digest[2:4].hex()}.{area}"  # the last digits make it unique here
    group.instances[name] = Instance(instance, f"{cluster.region}{zone}", kind.name, slot.market, slot.reservation)
    setup = _setup(group)
    labels = (
        setup.labels
        | _labels_of_nodeadm(cluster, group, kind)
        | node_labels(group)
        | {
            "topology.kubernetes.io/region": cluster.region,
            "failure-domain.beta.kubernetes.io/region": cluster.region,
            "failure-domain.beta.kubernetes.io/zone": f"{cluster.region}{zone}",
            "topology.kubernetes.io/zone": f"{cluster.region}{zone}",
            "k8s.io/cloud-provider-aws": cluster.digest("cloud-provider"),
        }
    )
    return NodeShape(
        name=name,
        pool=group.name,
        machine=kind.name,
        labels=labels,
        # EKS adds a taint to a node that has it already, from its kubelet, no second time.
        taints=tuple(dict.fromkeys((*node_taints(group.members), *map(Taint.parse, setup.taints)))),
        cpu=kind.vcpus,
        memory_gib=kind.memory_gib,
        gpu=_gpu_shape(group, kind),
        boot_s=boot_s,
        provider_id=f"aws:///{cluster.region}{zone}/{instance}",
        os_image=_system(group),
        runtime="containerd://2.1.4",
        max_pods=_max_pods(setup, kind),
        zone=f"{cluster.region}{zone}",
        arch=_ARCH[kind.arch],
        kubelet=_kubelet(cluster, group),
        kernel="6.12.40-64.114.amzn2023" if group.image.system == "al2023" else "6.12.37",
        settings=NodeSettings(setup.kubelet, setup.sysctls, {**_efa_pages(group, kind), **setup.hugepages}),
        storage_gib=_storage_gib(group, kind, setup),
        fabric={EFA: efa_count(group.data)} if efa_count(group.data) else {},
    )


def _labels_of_nodeadm(cluster: EksCluster, group: NodeGroup, kind: InstanceType) -> dict[str, str]:
    """Return the label that nodeadm sets on machines with NVIDIA's devices, driver or not, from kubelet 1.35.

    Source:
        awslabs/amazon-eks-ami nodeadm/internal/kubelet/config.go, labels.go.
    """
    has_nodeadm = group.image.system in {"al2023", "custom"}
    is_labelled = has_nodeadm and kind.is_nvidia and parse_minor(_kubelet(cluster, group)) >= _LABELLED_SINCE
    return {"nvidia.com/gpu.present": "true"} if is_labelled else {}


def _max_pods(setup: Setup, kind: InstanceType) -> int:
    """Return the user data's maximum of pods, or the maximum by addresses; at most a managed group's maximum.

    Source:
        awsdocs/amazon-eks-user-guide#663: 110 below 30 vCPUs, 250 otherwise.
    """
    maximum = _FEW_PODS if kind.vcpus < _MANY_VCPUS else _MANY_PODS
    configured = setup.kubelet.get("maxPods")
    return min(configured if isinstance(configured, int) else POD_ADDRESSES.get(kind.name, maximum), maximum)


def _setup(group: NodeGroup) -> Setup:
    """Return what the user data makes of a node; nothing if no node starts with it."""
    try:
        return read_setup(_user_data(group), group.image.system)
    except UserDataError:
        return Setup()


def _efa_pages(group: NodeGroup, kind: InstanceType) -> dict[str, int]:
    """Return the huge pages that the image preallocates for EFA interfaces.

    Source:
        awslabs/awsome-distributed-training (the EFA installer's, on AL2023's accelerated images);
        bottlerocket-os/bottlerocket-core-kit sources/corndog (by CPU).
    """
    if not efa_count(group.data):
        return {}
    if group.image.system == "bottlerocket":
        return {"2Mi": _PAGES_PER_CPU * kind.vcpus}
    return {"2Mi": _EFA_PAGES} if group.image.has_driver else {}


def _storage_gib(group: NodeGroup, kind: InstanceType, setup: Setup) -> float:
    """Return the size of the disk with images and pods: joined local disks, or the template's volume; 0 if unknown.

    Source:
        awslabs/amazon-eks-ami templates/al2023/runtime/bin/setup-local-disks (mirrored disks count half; a machine
        without disks keeps its volume); docs: eks/launch-templates (Bottlerocket's data are on /dev/xvdb).
    """
    disks = disks_of(kind)
    if setup.raid and disks:
        return disks.count * disks.gb * _GB / _GIB / (2 if setup.raid == "RAID10" else 1)
    device = "/dev/xvdb" if group.image.system == "bottlerocket" else "/dev/xvda"
    for mapping in objects_in((group.data or {}).get("BlockDeviceMappings")):
        ebs = mapping.get("Ebs")
        if mapping.get("DeviceName") == device and isinstance(ebs, dict) and ebs.get("VolumeSize"):
            return float(whole(ebs["VolumeSize"]))
    return 0.0


def _kubelet(cluster: EksCluster, group: NodeGroup) -> str:
    """Return the kubelet's version: a release of AL2023 starts with it."""
    version, release = str(group.members["version"]), str(group.members["releaseVersion"])
    return release.partition("-")[0] if release.startswith(f"{version}.") else cluster.patched(version)


def _system(group: NodeGroup) -> str:
    variant = f"aws-k8s-{group.members['version']}" + ("-nvidia" if group.image.has_driver else "")
    release = str(group.members["releaseVersion"]).partition("-")[0]
    return _SYSTEMS[group.image.system].format(variant=variant, release=release)


def _gpu_shape(group: NodeGroup, kind: InstanceType) -> GpuShape | None:
    """Return the GPUs of a node; without NVIDIA GPUs on AMD and Neuron machines."""
    if not kind.is_nvidia:
        return None
    image = group.image
    if not image.has_plugin:
        return GpuShape(kind.gpu, kind.devices, driver=image.has_driver or image.system == "custom")
    try:
        found = read_settings(_user_data(group), kind.gpu, str(group.members["releaseVersion"]))
    except UserDataError:
        found = GpuSettings()
    return GpuShape(
        kind.gpu,
        kind.devices,
        mig_layout=found.layout,
        host_plugin=found.runs,
        host_strategy="single" if found.layout else "none",  # slices are advertised as plain nvidia.com/gpu
        host_sharing=found.sharing,
    )


def _user_data(group: NodeGroup) -> str:
    return decoded((group.data or {}).get("UserData"))


async def retouch_node(
    kube: KubeCluster,
    name: str,
    labels: tuple[dict[str, str], dict[str, str]],
    taints: tuple[tuple[Taint, ...], tuple[Taint, ...]],
) -> None:
    """Change a node's group labels and taints from the old to the new ones; others stay.

    Args:
        kube: The cluster; a node that does not exist (yet) is skipped.
        name: Node name.
        labels: The group's old and new labels.
        taints: The group's old and new taints; key and effect identify a taint (hashicorp/terraform-provider-aws
            node_group.go).
    """
    node = await kube.api.get("nodes", name)
    if node is None:
        return
    gone = {key: None for key in labels[0] if key not in labels[1]}
    given = {(taint.key, taint.effect) for taint in (*taints[0], *taints[1])}
    others = [taint for taint in spec(node).get("taints") or () if (taint["key"], taint["effect"]) not in given]
    own = [{"key": t.key, "value": t.value, "effect": t.effect} for t in taints[1]]
    change = {"metadata": {"labels": {**gone, **labels[1]}}, "spec": {"taints": [*others, *own] or None}}
    await kube.api.patch("nodes", node, change)
