"""Pools of GPUs that people have published, with what large pools need, as the requests of the tools that make them.

Each has the public file that it follows, rewritten in the members of the request that its tool sends: eksctl (by
`pkg/cfn/builder`), terraform-aws-modules/eks (`modules/eks-managed-node-group`), Cluster Toolkit
(`modules/compute/gke-node-pool`), terraform-google-modules, az, and azurerm. Left out is what no request of a pool
holds. `CLUSTER` stands for the security group of the cluster, `ZONE_A` and `ZONE_B` for its private subnets.

In scope: the requests, and what no spec says of them. Out of scope: making and reading the pools (`makers`),
configurations without these members (tests.changes.configurations).
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Json = dict[str, Any]

CLUSTER: Final = "sg-of-the-cluster"
ZONE_A, ZONE_B, ZONE_C = "subnet-a", "subnet-b", "subnet-c"


@dataclass(frozen=True)
class Published:
    """A pool.

    Attributes:
        source: Repository and file.
        body: Members of CreateNodegroup, of the properties of an agent pool, or of a node pool.
        template: LaunchTemplateData that goes with it, on EKS.
        lost: What a new pool would not have, by the path that gpukube shows -> beginnings of the wire paths.
        idle: Beginnings of the wire paths of members without effect, which a new pool need not have.
        how: How a pool in its place is made: some cannot run beside it.
        version: Of the control plane.
    """

    source: str
    body: Json
    template: Json = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)
    idle: tuple[str, ...] = ()
    how: str = "surge"
    version: str = ""


# EKS

_ADT: Final = "awslabs/awsome-distributed-training "
_DO_EKS: Final = "aws-samples/aws-do-eks wd/conf/eksctl/yaml/"
_MODULE: Final = "terraform-aws-modules/terraform-aws-eks "
EFA_GROUP: Final = "sg-0123456789abcdef0"
NODE_GROUP: Final = "sg-0fedcba9876543210"
NVIDIA: Final = "AL2023_x86_64_NVIDIA"
_RAID0: Final = """apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  instance:
    localStorage:
      strategy: RAID0
"""
_NAME: Final = {"tags[Name]": "template.TagSpecifications.instance.Name"}
"""A tag of machines alone: those of the group become tags of the machines, not the other way around."""
_DESCRIPTION: Final = {"eks.launchTemplate.NetworkInterfaces.Description": "template.NetworkInterfaces.Description"}


def mime(*parts: tuple[str, str]) -> str:
    """Write user data of these parts, base64."""
    written = "".join(f"--//\nContent-Type: {kind}\n\n{content}\n" for kind, content in parts)
    head = 'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="//"\n\n'
    return base64.b64encode(f"{head}{written}--//--\n".encode()).decode()


def _nodeadm(config: str) -> str:
    return mime(("application/node.eks.aws", config))


def _sized(low: int, desired: int, high: int) -> Json:
    return {"minSize": low, "desiredSize": desired, "maxSize": high}


def _named(name: str, **tags: str) -> list[Json]:
    found = [{"Key": key, "Value": value} for key, value in {"Name": name, **tags}.items()]
    return [{"ResourceType": kind, "Tags": found} for kind in ("instance", "volume", "network-interface")]


def _reserved(identity: str) -> Json:
    return {"CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": identity}}}


def _block(identity: str, kind: str) -> Json:
    """As eksctl makes it: the type in the template, the market, and the reservation."""
    return {"InstanceType": kind, "InstanceMarketOptions": {"MarketType": "capacity-block"}, **_reserved(identity)}


def _eksctl(  # noqa: PLR0913 - what eksctl's files differ in
    source: str,
    name: str,
    body: Json,
    *,
    efa: int = 0,
    disk: int = 80,
    groups: tuple[str, ...] = (),
    how: str = "surge",
    **template: object,
) -> Published:
    """As eksctl's stack makes it: an EFA interface per card, a disk of gp3, tags with the name of the machines."""
    security = [CLUSTER, *groups, *([EFA_GROUP] if efa else [])]
    interfaces = [
        {"DeviceIndex": min(card, 1), "NetworkCardIndex": card, "InterfaceType": "efa", "Groups": security}
        for card in range(efa)
    ]
    own = {"alpha.eksctl.io/nodegroup-name": name, "alpha.eksctl.io/cluster-name": "train"}
    body = {
        "amiType": NVIDIA,
        "labels": own,
        "tags": {"alpha.eksctl.io/nodegroup-name": name, "alpha.eksctl.io/nodegroup-type": "managed"},
        **body,
    }
    data = {
        "BlockDeviceMappings": [
            {
                "DeviceName": "/dev/xvda",
                "Ebs": {"VolumeSize": disk, "VolumeType": "gp3", "Iops": 3000, "Throughput": 125},
            }
        ],
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 2},
        "TagSpecifications": _named(f"train-{name}-Node"),
        **({"NetworkInterfaces": interfaces} if efa else {"SecurityGroupIds": security}),
        **template,
    }
    return Published(source, body, data, {"tags[Name]": "template.TagSpecifications"}, how=how)


def _terraform(source: str, name: str, body: Json, *, efa: Sequence[str] = (), **template: object) -> Published:
    """As terraform-aws-modules/eks makes it: the group of the nodes, tags, a hop limit of 1, an interface per card."""
    security = [CLUSTER, NODE_GROUP]
    interfaces = [
        {
            "AssociatePublicIpAddress": False,
            "DeleteOnTermination": True,
            "Description": f"EFA Network Interface {card}",
            "DeviceIndex": min(card, 1),
            "NetworkCardIndex": card,
            "InterfaceType": kind,
            "Groups": security,
        }
        for card, kind in enumerate(efa)
    ]
    body = {"amiType": NVIDIA, "updateConfig": {"maxUnavailablePercentage": 33}, "tags": {"Name": name}, **body}
    data = {
        "MetadataOptions": {"HttpEndpoint": "enabled", "HttpTokens": "required", "HttpPutResponseHopLimit": 1},
        "TagSpecifications": _named(name),
        **({"NetworkInterfaces": interfaces} if efa else {"SecurityGroupIds": security}),
        **template,
    }
    return Published(source, body, data, _DESCRIPTION if efa else {})


_GPU_TAINT: Final = [{"key": "nvidia.com/gpu", "value": "true", "effect": "NO_SCHEDULE"}]
_EFA_LABELS: Final = {"vpc.amazonaws.com/efa.present": "true", "nvidia.com/gpu.present": "true"}
_KMS: Final = "arn:aws:kms:us-east-1:111122223333:key/36c0b54e-64ed-4f2d-a1c7-96558764311e"
_MAX_PODS: Final = """---
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    config:
      maxPods: 110
    flags:
      - --node-labels=nvidia.com/gpu=true
"""
_GRACE: Final = """---
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    config:
      shutdownGracePeriod: 30s
"""
_ROCKET: Final = """[settings.host-containers.admin]
enabled = false

[settings.host-containers.control]
enabled = true

[settings.kernel]
lockdown = "integrity"

[settings.kubernetes.node-labels]
label1 = "foo"
label2 = "bar"

[settings.kubernetes.node-taints]
dedicated = "experimental:PreferNoSchedule"
"""

EKS: Final[Mapping[str, Published]] = {
    "p5-block": _eksctl(
        f"{_ADT}1.architectures/4.amazon-eks/eks-p5-capacity-block.yaml",
        "p5-cbr",
        {"capacityType": "CAPACITY_BLOCK", "scalingConfig": _sized(0, 1, 10), "subnets": [ZONE_A]},
        efa=32,
        how="recreate",
        UserData=_nodeadm(_RAID0),
        **_block("cr-000000000000000b5", "p5.48xlarge"),
    ),
    "p4de-odcr": _eksctl(
        f"{_ADT}3.test_cases/megatron/nemo1.0/EKS/p4de-cluster-config.yaml",
        "p4de-nodes",
        {"instanceTypes": ["p4de.24xlarge"], "scalingConfig": _sized(2, 2, 10), "subnets": [ZONE_B]},
        efa=4,
        disk=900,
        **_reserved("cr-0000000000000a4de"),
    ),
    "g5-repair": _eksctl(
        f"{_ADT}1.architectures/4.amazon-eks/eks-g5-node-autorepair.yaml",
        "g5",
        {
            "instanceTypes": ["g5.8xlarge"],
            "scalingConfig": _sized(0, 2, 10),
            "nodeRepairConfig": {"enabled": True},
            "subnets": [ZONE_A],
        },
        efa=1,
        UserData=_nodeadm(_RAID0),
        Placement={"GroupName": "eksctl-train-nodegroup-g5-NodeGroupPlacementGroup"},
    ),
    "p5en-block": _eksctl(
        f"{_DO_EKS}eks-gpu-p5en-cbr.yaml",
        "p5en-cbr",
        {"capacityType": "CAPACITY_BLOCK", "scalingConfig": _sized(0, 2, 8), "subnets": [ZONE_B]},
        efa=16,
        disk=500,
        how="recreate",
        **_block("cr-00000000000005e20", "p5en.48xlarge"),
    ),
    "p6-block": _eksctl(
        f"{_DO_EKS}eks-gpu-p6-b200-cbr.yaml",
        "p6-b200-cbr",
        {"capacityType": "CAPACITY_BLOCK", "scalingConfig": _sized(0, 2, 128), "subnets": [ZONE_C]},
        efa=8,
        disk=500,
        how="recreate",
        **_block("cr-0c955b3799653e29d", "p6-b200.48xlarge"),
    ),
    "p5-ssh": _eksctl(
        f"{_DO_EKS}eks-gpu-p5-cbr-ssh.yaml",
        "p5-cbr-ssh",
        {"capacityType": "CAPACITY_BLOCK", "scalingConfig": _sized(0, 1, 8), "subnets": [ZONE_A]},
        efa=32,
        disk=500,
        groups=("sg-000000000000000a7",),
        how="recreate",
        KeyName="eksctl-train-nodegroup-p5-cbr-ssh",
        **_block("cr-00000000000000557", "p5.48xlarge"),
    ),
    "p4d-module": _terraform(
        f"{_MODULE}tests/eks-managed-node-group/main.tf, efa",
        "efa",
        {
            "instanceTypes": ["p4d.24xlarge"],
            "scalingConfig": _sized(0, 0, 1),
            "labels": _EFA_LABELS,
            "taints": _GPU_TAINT,
            "subnets": [ZONE_A],
        },
        efa=["efa", *["efa-only"] * 3],
        UserData=_nodeadm(f"---\n{_RAID0}"),
        Placement={"GroupName": "efa-eks-node-group"},
    ),
    "p5e-module": _terraform(
        f"{_MODULE}docs/UPGRADE-21.0.md",
        "efa",
        {"instanceTypes": ["p5e.48xlarge"], "scalingConfig": _sized(1, 1, 3), "subnets": [ZONE_B]},
        efa=["efa"] * 32,
        Placement={"GroupName": "efa-eks-node-group"},
    ),
    "complete-module": _terraform(
        f"{_MODULE}tests/eks-managed-node-group/main.tf, complete, with types of a GPU and EKS's image",
        "complete-eks-mng",
        {
            "instanceTypes": ["g5.xlarge", "g5.2xlarge", "g5.4xlarge"],
            "capacityType": "SPOT",
            "scalingConfig": _sized(1, 1, 7),
            "labels": {"GithubRepo": "terraform-aws-eks", "GithubOrg": "terraform-aws-modules"},
            "nodeRepairConfig": {"enabled": True},
            "tags": {"Name": "complete-eks-mng", "ExtraTag": "EKS managed node group complete example"},
        },
        UserData=_nodeadm(_GRACE),
        BlockDeviceMappings=[
            {
                "DeviceName": "/dev/xvda",
                "Ebs": {
                    "VolumeSize": 75,
                    "VolumeType": "gp3",
                    "Iops": 3000,
                    "Throughput": 150,
                    "Encrypted": True,
                    "KmsKeyId": _KMS,
                    "DeleteOnTermination": True,
                },
            }
        ],
        EbsOptimized=True,
        Monitoring={"Enabled": True},
        DisableApiTermination=False,
    ),
    "rocket-module": _terraform(
        f"{_MODULE}tests/eks-managed-node-group/main.tf, bottlerocket_custom, with NVIDIA's variant",
        "bottlerocket",
        {
            "amiType": "BOTTLEROCKET_x86_64_NVIDIA",
            "instanceTypes": ["g5.xlarge"],
            "scalingConfig": _sized(1, 1, 3),
        },
        UserData=base64.b64encode(_ROCKET.encode()).decode(),
    ),
    "t4-spot": Published(
        "anyscale/terraform-kubernetes-anyscale-foundation-modules examples/aws/eks-public (T4 of variables.tf, spot)",
        {
            "amiType": NVIDIA,
            "instanceTypes": ["g4dn.xlarge", "g4dn.2xlarge", "g4dn.4xlarge"],
            "capacityType": "SPOT",
            "diskSize": 500,
            "scalingConfig": _sized(0, 0, 10),
            "labels": {"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.count": "1"},
            "taints": [
                {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"},
                {"key": "node.anyscale.com/accelerator-type", "value": "GPU", "effect": "NO_SCHEDULE"},
                {"key": "node.anyscale.com/capacity-type", "value": "SPOT", "effect": "NO_SCHEDULE"},
            ],
            "updateConfig": {"maxUnavailablePercentage": 33},
        },
    ),
    "g6e-cookie": _terraform(
        "clowdhaus/cookiecluster cookiecluster/templates/node-group-accel.tpl, without instance storage in RAID",
        "gpu",
        {
            "instanceTypes": ["g6e.2xlarge", "g6e.4xlarge"],
            "scalingConfig": _sized(2, 2, 5),
            "nodeRepairConfig": {"enabled": True},
            "labels": {"nvidia.com/gpu.present": "true"},
            "taints": _GPU_TAINT,
        },
        BlockDeviceMappings=[
            {
                "DeviceName": "/dev/xvda",
                "Ebs": {"VolumeSize": 256, "VolumeType": "gp3", "DeleteOnTermination": True},
            }
        ],
    ),
    "g4dn-runners": Published(
        "jeanschmidt/pytorch-cloud terraform/modules/eks/main.tf and user-data-gpu.sh.tpl",
        {
            "amiType": NVIDIA,
            "instanceTypes": ["g4dn.xlarge"],
            "scalingConfig": _sized(0, 0, 5),
            "labels": {"role": "gpu", "nvidia.com/gpu": "true"},
            "taints": _GPU_TAINT,
            "tags": {"Name": "train-gpu-nodes"},
        },
        {
            "UserData": mime(
                (
                    "application/node.eks.aws",
                    _MAX_PODS,
                ),
                ('text/x-shellscript; charset="us-ascii"', "#!/bin/bash\nnvidia-smi -pm 1\n"),
            ),
            "BlockDeviceMappings": [
                {
                    "DeviceName": "/dev/xvda",
                    "Ebs": {
                        "VolumeSize": 200,
                        "VolumeType": "gp3",
                        "Iops": 3000,
                        "Throughput": 125,
                        "DeleteOnTermination": True,
                        "Encrypted": True,
                    },
                }
            ],
            "MetadataOptions": {"HttpEndpoint": "enabled", "HttpTokens": "required", "HttpPutResponseHopLimit": 1},
            "TagSpecifications": _named("train-gpu-node")[:1],
        },
        _NAME,
    ),
}

# AKS

_AKS_DOCS: Final = "MicrosoftDocs/azure-aks-docs articles/aks/"
_SPECS: Final = (
    "Azure/azure-rest-api-specs specification/containerservice/resource-manager/Microsoft.ContainerService/aks/stable/"
    "2025-01-01/examples/"
)
_AZ: Final[Json] = {
    "osType": "Linux",
    "enableNodePublicIP": False,
    "count": 1,
    "enableAutoScaling": False,
    "scaleSetPriority": "Regular",
    "nodeTaints": [],
    "upgradeSettings": {"undrainableNodeBehavior": "Schedule"},
    "type": "VirtualMachineScaleSets",
    "enableEncryptionAtHost": False,
    "enableUltraSSD": False,
    "enableFIPS": False,
    "mode": "User",
    "scaleDownMode": "Delete",
}
"""What `az aks nodepool add` always sends (az 2.91.0)."""
_RESOURCES: Final = "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/ml/providers/"


def _az(source: str, size: str, **body: object) -> Published:
    return Published(source, {**_AZ, "vmSize": size, **body})


AKS: Final[Mapping[str, Published]] = {
    "mig-config": Published(
        f"{_SPECS}AgentPoolsCreate_GPUMIG.json, with values that AKS accepts",
        {
            "count": 3,
            "vmSize": "Standard_ND96asr_v4",
            "osType": "Linux",
            "mode": "User",
            "gpuInstanceProfile": "MIG2g",
            "kubeletConfig": {
                "cpuManagerPolicy": "static",
                "cpuCfsQuota": True,
                "cpuCfsQuotaPeriod": "200ms",
                "imageGcHighThreshold": 90,
                "imageGcLowThreshold": 70,
                "topologyManagerPolicy": "best-effort",
                "allowedUnsafeSysctls": ["kernel.msg*", "net.core.somaxconn"],
                "failSwapOn": False,
            },
            "linuxOSConfig": {
                "sysctls": {
                    "netCoreWmemDefault": 212992,
                    "netIpv4TcpTwReuse": True,
                    "netIpv4IpLocalPortRange": "20000 60000",
                    "kernelThreadsMax": 99999,
                },
                "transparentHugePageEnabled": "always",
                "transparentHugePageDefrag": "madvise",
                "swapFileSizeMB": 1500,
            },
        },
    ),
    "infiniband": _az(
        "Azure/aks-rdma-infiniband tests/setup-infra/deploy-aks.sh, the call of its comment",
        "Standard_ND96isr_H100_v5",
        count=2,
        osSKU="Ubuntu",
        gpuProfile={"driver": "None"},
        osDiskSizeGB=48,
    ),
    "confidential": _az(
        f"{_AKS_DOCS}use-confidential-gpus.md",
        "Standard_NCC40ads_H100_v5",
        nodeTaints=["sku=gpu:NoSchedule"],
        gpuProfile={"driver": "None"},
    ),
    "anyscalespot": Published(
        "anyscale/terraform-kubernetes-anyscale-foundation-modules examples/azure/aks-new_cluster/aks.tf, gpu_spot",
        {
            "vmSize": "Standard_NC16as_T4_v3",
            "mode": "User",
            "osType": "Linux",
            "count": 0,
            "enableAutoScaling": True,
            "minCount": 0,
            "maxCount": 10,
            "vnetSubnetID": f"{_RESOURCES}Microsoft.Network/virtualNetworks/ml/subnets/nodes",
            "nodeLabels": {
                "nvidia.com/gpu.product": "Tesla-T4",
                "nvidia.com/gpu.count": "1",
                "kubernetes.azure.com/scalesetpriority": "spot",
            },
            "nodeTaints": [
                "node.anyscale.com/capacity-type=SPOT:NoSchedule",
                "nvidia.com/gpu=present:NoSchedule",
                "node.anyscale.com/accelerator-type=GPU:NoSchedule",
                "kubernetes.azure.com/scalesetpriority=spot:NoSchedule",
            ],
            "scaleSetPriority": "Spot",
            "scaleSetEvictionPolicy": "Delete",
            "spotMaxPrice": -1,
            "tags": {"Environment": "dev"},
        },
    ),
    "nimdisk": _az(
        "NVIDIA/nim-deploy cloud-service-providers/azure/workshops/rag-aks/README.md",
        "Standard_NC24ads_A100_v4",
        count=3,
        gpuProfile={"driver": "None"},
        osDiskSizeGB=2048,
        maxPods=110,
    ),
    "streaming": _az(
        f"{_AKS_DOCS}artifact-streaming.md, with a size that has GPUs",
        "Standard_NC4as_T4_v3",
        artifactStreamingProfile={"enabled": True},
    ),
    "hostports": _az(
        f"{_AKS_DOCS}use-node-public-ips.md, with a size that has GPUs",
        "Standard_NC4as_T4_v3",
        networkProfile={
            "allowedHostPorts": [
                {"portStart": 80, "portEnd": 80, "protocol": "TCP"},
                {"portStart": 40000, "portEnd": 60000, "protocol": "TCP"},
            ],
            "applicationSecurityGroups": [f"{_RESOURCES}Microsoft.Network/applicationSecurityGroups/gpu"],
        },
    ),
    "proximity": Published(
        f"{_SPECS}AgentPoolsCreate_PPG.json, with a size that has GPUs",
        {
            "count": 3,
            "vmSize": "Standard_ND96asr_v4",
            "osType": "Linux",
            "mode": "User",
            "proximityPlacementGroupID": f"{_RESOURCES}Microsoft.Compute/proximityPlacementGroups/near",
        },
    ),
}

# GKE

_TOOLKIT: Final = "GoogleCloudPlatform/cluster-toolkit examples/"
_SCOPES: Final = ["https://www.googleapis.com/auth/cloud-platform"]
_ACCOUNT: Final = "nodes@ml-prod.iam.gserviceaccount.com"


def _networks(*names: str) -> Json:
    return {"additionalNodeNetworkConfigs": [{"network": name, "subnetwork": f"{name}-sub"} for name in names]}


def _reservation(name: str) -> Json:
    return {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [name],
    }


def _accelerator(kind: str, count: int, driver: str = "DEFAULT") -> Json:
    install = {"gpuDriverVersion": driver}
    return {"acceleratorType": kind, "acceleratorCount": str(count), "gpuDriverInstallationConfig": install}


def _toolkit(  # noqa: PLR0913 - what the blueprints differ in
    file: str,
    machine: str,
    accelerator: Json,
    config: Json,
    networks: Sequence[str],
    *,
    idle: tuple[str, ...] = (),
    how: str = "surge",
    version: str = "",
    **more: object,
) -> Published:
    """As Cluster Toolkit's module gke-node-pool makes it, with its defaults."""
    common = {
        "machineType": machine,
        "diskSizeGb": 100,
        "imageType": "COS_CONTAINERD",
        "resourceLabels": {
            "ghpc_module": "gke-node-pool",
            "ghpc_role": "compute",
            "ghpc_blueprint": file.rpartition("/")[2].partition(".")[0],
        },
        "serviceAccount": _ACCOUNT,
        "oauthScopes": _SCOPES,
        "accelerators": [accelerator],
        "shieldedInstanceConfig": {"enableIntegrityMonitoring": True, "enableSecureBoot": True},
        "gvnic": {"enabled": True},
        "workloadMetadataConfig": {"mode": "GKE_METADATA"},
        "metadata": {"disable-legacy-endpoints": "true"},
        "taints": [{"effect": "NO_SCHEDULE", "key": "nvidia.com/gpu", "value": "present"}],
        "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
        **config,
    }
    body = {
        "initialNodeCount": 2,
        "locations": ["us-central1-a"],
        "management": {"autoUpgrade": True, "autoRepair": True},
        "upgradeSettings": {"strategy": "SURGE", "maxSurge": 0, "maxUnavailable": 1},
        "networkConfig": {**_networks(*networks), "enablePrivateNodes": True},
        "config": common,
        **more,
    }
    return Published(f"{_TOOLKIT}{file}", body, idle=idle, how=how, version=version)


_MEGA: Final = _accelerator("nvidia-h100-mega-80gb", 8)
_GPUNETS: Final = [f"ml-gpunet-{at}" for at in range(8)]
_RDMA: Final = ["ml-net-1", *(f"ml-rdma-{at}" for at in range(8))]

GKE: Final[Mapping[str, Published]] = {
    "a3high": _toolkit(
        "gke-a3-highgpu/gke-a3-highgpu.yaml",
        "a3-highgpu-8g",
        _accelerator("nvidia-h100-80gb", 8),
        {"ephemeralStorageLocalSsdConfig": {"localSsdCount": 16}, "reservationAffinity": _reservation("high")},
        _GPUNETS[:4],
    ),
    "a3mega": _toolkit(
        "gke-a3-megagpu/gke-a3-megagpu.yaml",
        "a3-megagpu-8g",
        _MEGA,
        {"ephemeralStorageLocalSsdConfig": {"localSsdCount": 16}, "reservationAffinity": _reservation("mega")},
        _GPUNETS,
    ),
    "a3ultra": _toolkit(
        "gke-a3-ultragpu/gke-a3-ultragpu.yaml",
        "a3-ultragpu-8g",
        _accelerator("nvidia-h200-141gb", 8),
        {
            "diskType": "hyperdisk-balanced",
            "ephemeralStorageLocalSsdConfig": {"localSsdCount": 32},
            "reservationAffinity": _reservation("ultra"),
        },
        _RDMA,
    ),
    "a4": _toolkit(
        "gke-a4/gke-a4.yaml",
        "a4-highgpu-8g",
        _accelerator("nvidia-b200", 8),
        {
            "diskType": "hyperdisk-balanced",
            "ephemeralStorageLocalSsdConfig": {"localSsdCount": 32},
            "reservationAffinity": _reservation("four"),
        },
        _RDMA,
    ),
    "a4x-max": _toolkit(
        "gke-a4x-max-bm/gke-a4x-max-bm.yaml",
        "a4x-maxgpu-4g-metal",
        _accelerator("nvidia-gb300", 4),
        {
            "diskType": "hyperdisk-balanced",
            "reservationAffinity": _reservation("max"),
            "labels": {
                "cloud.google.com/gke-networking-dra-driver": "true",
                "cloud.google.com/gke-dpv2-unified-cni": "cni-migration",
            },
            "linuxNodeConfig": {"hugepages": {"hugepageSize2m": 4096}},
        },
        _RDMA,
        how="recreate",
        version="1.35",
        placementPolicy={"type": "COMPACT", "policyName": "a4x-max-workload-policy"},
    ),
    "g4-numa": _toolkit(
        "gke-g4/gke-g4.yaml",
        "g4-standard-384",
        _accelerator("nvidia-rtx-pro-6000", 8, "LATEST"),
        {
            "diskType": "hyperdisk-balanced",
            "kubeletConfig": {
                "cpuManagerPolicy": "static",
                "topologyManager": {"policy": "restricted"},
                "memoryManager": {"policy": "Static"},
            },
        },
        ["ml-net-1"],
    ),
    "dws": _toolkit(
        "gke-consumption-options/dws-flex-start-queued-provisioning/gke-a3-ultragpu.yaml",
        "a3-ultragpu-8g",
        _accelerator("nvidia-h200-141gb", 8),
        {
            "diskType": "hyperdisk-balanced",
            "flexStart": True,
            "ephemeralStorageLocalSsdConfig": {"localSsdCount": 32},
            "labels": {"cloud.google.com/gke-queued": "true"},
        },
        _RDMA,
        idle=("upgradeSettings",),  # nodes are upgraded when they end
        initialNodeCount=0,
        autoscaling={"enabled": True, "locationPolicy": "ANY", "totalMinNodeCount": 0, "totalMaxNodeCount": 1000},
        queuedProvisioning={"enabled": True},
        management={"autoUpgrade": True, "autoRepair": False},
    ),
    "a3mega-compact": Published(
        "GoogleCloudPlatform/ai-infra-cluster-provisioning a3-mega/terraform/modules/cluster/gke/main.tf",
        {
            "initialNodeCount": 2,
            "locations": ["us-central1-a"],
            "upgradeSettings": {"maxSurge": 0, "maxUnavailable": 1},
            "management": {"autoRepair": True, "autoUpgrade": False},
            "config": {
                "serviceAccount": _ACCOUNT,
                "machineType": "a3-megagpu-8g",
                "imageType": "COS_CONTAINERD",
                "diskSizeGb": 200,
                "diskType": "pd-ssd",
                "accelerators": [_MEGA],
                "ephemeralStorageLocalSsdConfig": {"localSsdCount": 16},
                "shieldedInstanceConfig": {"enableSecureBoot": True, "enableIntegrityMonitoring": True},
                "gvnic": {"enabled": True},
                "workloadMetadataConfig": {"mode": "GKE_METADATA"},
                "metadata": {"disable-legacy-endpoints": "true"},
                "labels": {"cloud.google.com/gke-kdump-enabled": "true"},
                "reservationAffinity": _reservation("mega"),
                "oauthScopes": [*_SCOPES, "https://www.googleapis.com/auth/dataaccessauditlogging"],
            },
            "networkConfig": _networks(*_GPUNETS),
            "placementPolicy": {"type": "COMPACT", "policyName": "ml-np-0"},
        },
        how="recreate",
    ),
    "tf-module": Published(
        "terraform-google-modules/terraform-google-kubernetes-engine examples/node_pool/main.tf, pool-02, with a T4",
        {
            "initialNodeCount": 1,
            "locations": ["us-central1-a"],
            "autoscaling": {"enabled": True, "minNodeCount": 1, "maxNodeCount": 2},
            "management": {"autoRepair": False, "autoUpgrade": True},
            "config": {
                "machineType": "n1-standard-2",
                "diskSizeGb": 30,
                "diskType": "pd-standard",
                "serviceAccount": _ACCOUNT,
                "oauthScopes": _SCOPES,
                "accelerators": [{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": "1"}],
                "labels": {"all-pools-example": "true"},
                "metadata": {"cluster_name": "node-pool-cluster", "node_pool": "pool-02"},
                "taints": [{"key": "all-pools-example", "value": "true", "effect": "PREFER_NO_SCHEDULE"}],
                "tags": ["all-node-example"],
                "loggingConfig": {"variantConfig": {"variant": "MAX_THROUGHPUT"}},
                "linuxNodeConfig": {
                    "sysctls": {"net.core.netdev_max_backlog": "10000"},
                    "cgroupMode": "CGROUP_MODE_V2",
                    "hugepages": {"hugepageSize2m": 1},
                },
            },
        },
    ),
    "confidential": Published(
        "tiktok-privacy-innovation/PrivacyGo-DataCleanRoom resources/gcp/cluster.tf, the version with GPUs",
        {
            "initialNodeCount": 0,
            "locations": ["us-central1-a"],
            "autoscaling": {"enabled": True, "minNodeCount": 0, "maxNodeCount": 3},
            "management": {"autoRepair": False, "autoUpgrade": True},
            "config": {
                "machineType": "a3-highgpu-1g",
                "confidentialNodes": {"enabled": True, "confidentialInstanceType": "TDX"},
                "accelerators": [_accelerator("nvidia-h100-80gb", 1, "INSTALLATION_DISABLED")],
                "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
                "flexStart": True,
                "oauthScopes": _SCOPES,
                "serviceAccount": _ACCOUNT,
                "maxRunDuration": "14400s",
            },
        },
    ),
    "blue-green": Published(
        "cat1544/ING_k8s terraform../modules/node-pool/main.tf, with a GPU",
        {
            "initialNodeCount": 3,
            "locations": ["us-central1-a", "us-central1-b"],
            "maxPodsConstraint": {"maxPodsPerNode": 90},
            "autoscaling": {
                "enabled": True,
                "totalMinNodeCount": 3,
                "totalMaxNodeCount": 6,
                "locationPolicy": "BALANCED",
            },
            "management": {"autoRepair": True, "autoUpgrade": True},
            "networkConfig": {"enablePrivateNodes": True},
            "upgradeSettings": {
                "strategy": "BLUE_GREEN",
                "blueGreenSettings": {
                    "standardRolloutPolicy": {"batchPercentage": 0.5, "batchSoakDuration": "10s"},
                    "nodePoolSoakDuration": "10s",
                },
            },
            "config": {
                "machineType": "g2-standard-8",
                "accelerators": [_accelerator("nvidia-l4", 1)],
                "imageType": "COS_CONTAINERD",
                "diskSizeGb": 100,
                "diskType": "pd-balanced",
                "labels": {"app": "boutique", "env": "dev"},
                "oauthScopes": _SCOPES,
            },
        },
    ),
}
