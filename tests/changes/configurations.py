"""Node pools that people have published, as the requests of the tools that make them.

Each has the public file that it follows, re-written in the members of the request that eksctl, Terraform, az or gcloud
sends for it. Left out is what no request of a pool holds: clusters, networks, roles, add-ons.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = dict[str, Any]


@dataclass(frozen=True)
class Configuration:
    """A pool.

    Attributes:
        source: Repository and file.
        body: Members of the request: CreateNodegroup, the properties of a PUT, or nodePool.
        template: LaunchTemplateData that goes with it, on EKS.
    """

    source: str
    body: Json
    template: Json = field(default_factory=dict)


# EKS

_RAID: Final = base64.b64encode(
    b'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n\n--b\nContent-Type: application/node.eks.aws\n\n'
    b"apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  instance:\n    localStorage:\n"
    b"      strategy: RAID0\n\n--b--\n"
).decode()
_HOPS: Final = {"HttpTokens": "required", "HttpPutResponseHopLimit": 2}
_EKSCTL_DISK: Final = {
    "DeviceName": "/dev/xvda",
    "Ebs": {"VolumeSize": 80, "VolumeType": "gp3", "Iops": 3000, "Throughput": 125},
}
_EFA_GROUP: Final = "sg-0123456789abcdef0"
_EFA: Final = [{"DeviceIndex": 0, "NetworkCardIndex": 0, "InterfaceType": "efa", "Groups": [_EFA_GROUP]}]
_BLUEPRINTS: Final = "aws-ia/terraform-aws-eks-blueprints patterns/"
_ADT: Final = "awslabs/awsome-distributed-training 1.architectures/4.amazon-eks/"


def _size(desired: int, low: int, high: int) -> Json:
    return {"desiredSize": desired, "minSize": low, "maxSize": high}


def _eksctl(source: str, name: str, body: Json, **template: object) -> Configuration:
    """As eksctl's stack makes it: tags and labels of its own, a disk of 80 GiB, IMDSv2."""
    own = {"alpha.eksctl.io/nodegroup-name": name, "alpha.eksctl.io/cluster-name": "train"}
    body = {
        "amiType": "AL2023_x86_64_NVIDIA",
        **body,
        "labels": {**own, **body.get("labels", {})},
        "tags": {
            "alpha.eksctl.io/nodegroup-name": name,
            "alpha.eksctl.io/nodegroup-type": "managed",
            **body.get("tags", {}),
        },
    }
    return Configuration(source, body, {"BlockDeviceMappings": [_EKSCTL_DISK], "MetadataOptions": _HOPS, **template})


def _blueprint(pattern: str, body: Json, **template: object) -> Configuration:
    """As terraform-aws-modules/eks makes it: a template without a disk, the taint nvidia.com/gpu=true."""
    tags = {"Blueprint": pattern, "GithubRepo": "github.com/aws-ia/terraform-aws-eks-blueprints"}
    common = {
        "amiType": "AL2023_x86_64_NVIDIA",
        "labels": {"vpc.amazonaws.com/efa.present": "true", "nvidia.com/gpu.present": "true"},
        "taints": [{"key": "nvidia.com/gpu", "value": "true", "effect": "NO_SCHEDULE"}],
        "updateConfig": {"maxUnavailablePercentage": 33},
        "tags": {"Name": pattern, **tags},
    }
    data = {"MetadataOptions": _HOPS, "UserData": _RAID, "NetworkInterfaces": _EFA, **template}
    return Configuration(f"{_BLUEPRINTS}{pattern}/eks.tf", {**common, **body}, data)


def _reserved(identity: str) -> Json:
    return {"CapacityReservationTarget": {"CapacityReservationId": identity}}


_GROUP_ARN: Final = "arn:aws:resource-groups:us-east-1:111122223333:group/odcr-p5-odcr"
EKS_THINGS: Final[Json] = {
    "securityGroups": [_EFA_GROUP],
    "reservations": [
        {"id": "cr-0000000000000a4de", "type": "p4de.24xlarge", "zone": "b"},
        {"id": "cr-000000000000000a5", "type": "p5.48xlarge", "zone": "a"},
        {"id": "cr-000000000000000b5", "type": "p5.48xlarge", "zone": "a", "block": True},
        {"id": "cr-0000000000000a5e0", "type": "p5e.48xlarge", "zone": "b", "block": True},
        {"id": "cr-000000000000000f5", "type": "p5.48xlarge", "zone": "a", "groups": [_GROUP_ARN]},
    ],
}
"""What the groups name: it has to be there."""
_OVERRIDES: Final = [
    {
        "nodeMonitoringCondition": "AcceleratedInstanceNotReady",
        "nodeUnhealthyReason": "NvidiaXID13Error",
        "minRepairWaitTimeMins": 5,
        "repairAction": "Replace",
    },
    {
        "nodeMonitoringCondition": "NetworkNotReady",
        "nodeUnhealthyReason": "InterfaceNotUp",
        "minRepairWaitTimeMins": 15,
        "repairAction": "Reboot",
    },
]
_SPOT_LABELS: Final = {"lifecycle": "Ec2Spot", "aws.amazon.com/spot": "true", "gpu-count": "1"}

EKS: Final[Mapping[str, Configuration]] = {
    "repair": _eksctl(
        "eksctl-io/eksctl examples/44-node-repair.yaml",
        "gpu-repair-ng",
        {
            "instanceTypes": ["g4dn.xlarge"],
            "scalingConfig": _size(4, 2, 8),
            "nodeRepairConfig": {
                "enabled": True,
                "maxUnhealthyNodeThresholdPercentage": 25,
                "maxParallelNodesRepairedCount": 1,
                "nodeRepairConfigOverrides": _OVERRIDES,
            },
        },
    ),
    "kubeflow-spot": _eksctl(
        "eksctl-io/eksctl examples/23-kubeflow-spot-instance.yaml, as a managed group",
        "1-gpu-spot-g5-xlarge",
        {
            "instanceTypes": ["g5.xlarge"],
            "capacityType": "SPOT",
            "scalingConfig": _size(0, 0, 10),
            "labels": _SPOT_LABELS,
            "taints": [{"key": "spotInstance", "value": "true", "effect": "PREFER_NO_SCHEDULE"}],
            "tags": {"k8s.io/cluster-autoscaler/enabled": "true"},
        },
    ),
    "eksctl-plain": _eksctl(
        "eksctl-io/eksctl userdocs/src/usage/gpu-support.md",
        "ng-1",
        {"instanceTypes": ["g5.xlarge"], "scalingConfig": _size(2, 2, 2)},
    ),
    "adt-g4dn": _eksctl(
        f"{_ADT}eks-g4dn.yaml",
        "g4dn",
        {"instanceTypes": ["g4dn.8xlarge"], "scalingConfig": _size(2, 0, 10)},
        NetworkInterfaces=_EFA,
        UserData=_RAID,
    ),
    "adt-g5-repair": _eksctl(
        f"{_ADT}eks-g5-node-autorepair.yaml",
        "g5",
        {
            "instanceTypes": ["g5.8xlarge"],
            "scalingConfig": _size(2, 0, 10),
            "nodeRepairConfig": {"enabled": True},
        },
        NetworkInterfaces=_EFA,
        UserData=_RAID,
    ),
    "adt-p4de": _eksctl(
        f"{_ADT}eks-p4de-odcr.yaml",
        "p4de-odcr",
        {"instanceTypes": ["p4de.24xlarge"], "scalingConfig": _size(2, 0, 10)},
        CapacityReservationSpecification=_reserved("cr-0000000000000a4de"),
        NetworkInterfaces=_EFA,
        UserData=_RAID,
    ),
    "adt-p5": _eksctl(
        f"{_ADT}eks-p5-odcr-vpc.yaml",
        "p5-ocdr",
        {"instanceTypes": ["p5.48xlarge"], "scalingConfig": _size(1, 0, 10)},
        CapacityReservationSpecification=_reserved("cr-000000000000000a5"),
        NetworkInterfaces=_EFA,
        UserData=_RAID,
    ),
    "adt-p5-block": _eksctl(
        f"{_ADT}eks-p5-capacity-block.yaml",
        "p5-cbr",
        {"capacityType": "CAPACITY_BLOCK", "scalingConfig": _size(1, 0, 10)},
        InstanceType="p5.48xlarge",
        CapacityReservationSpecification=_reserved("cr-000000000000000b5"),
        InstanceMarketOptions={"MarketType": "capacity-block"},
        NetworkInterfaces=_EFA,
        UserData=_RAID,
    ),
    "bp-efa": _blueprint("nvidia-gpu-efa", {"instanceTypes": ["p5.48xlarge"], "scalingConfig": _size(2, 2, 2)}),
    "bp-vllm": _blueprint("multi-node-vllm", {"instanceTypes": ["g6e.8xlarge"], "scalingConfig": _size(2, 2, 5)}),
    "bp-block": _blueprint(
        "ml-capacity-block",
        {"capacityType": "CAPACITY_BLOCK", "scalingConfig": _size(2, 2, 2)},
        InstanceType="p5e.48xlarge",
        CapacityReservationSpecification=_reserved("cr-0000000000000a5e0"),
        InstanceMarketOptions={"MarketType": "capacity-block"},
    ),
    "bp-odcr": _blueprint(
        "targeted-odcr",
        {"instanceTypes": ["p5.48xlarge"], "scalingConfig": _size(4, 4, 5)},
        CapacityReservationSpecification={
            "CapacityReservationTarget": {"CapacityReservationResourceGroupArn": _GROUP_ARN}
        },
    ),
}

# AKS

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
"""What `az aks nodepool add` always sends (az 2.91.0, as a recording server saw it)."""
_SKU: Final = {"nodeTaints": ["sku=gpu:NoSchedule"]}
_T4: Final = "Standard_NC4as_T4_v3"
_AKS_DOCS: Final = "MicrosoftDocs/azure-aks-docs articles/aks/"


def _az(source: str, size: str, **body: object) -> Configuration:
    return Configuration(source, {**_AZ, "vmSize": size, **body})


def _dns(protocol: str, destination: str) -> Json:
    return {
        "queryLogging": "Error",
        "protocol": protocol,
        "forwardDestination": destination,
        "forwardPolicy": "Sequential",
        "maxConcurrent": 1000,
        "cacheDurationInSeconds": 3600,
        "serveStaleDurationInSeconds": 3600,
        "serveStale": "Verify",
    }


def _range(low: int, high: int) -> Json:
    return {"enableAutoScaling": True, "minCount": low, "maxCount": high}


AKS: Final[Mapping[str, Configuration]] = {
    "ubuntu": _az(f"{_AKS_DOCS}use-nvidia-gpu.md, Ubuntu", _T4, **_SKU, **_range(1, 3)),
    "azurelinux": _az(f"{_AKS_DOCS}use-nvidia-gpu.md, Azure Linux", _T4, osSKU="AzureLinux", **_SKU, **_range(1, 3)),
    "nodriver": _az(
        f"{_AKS_DOCS}use-nvidia-gpu.md, without driver", _T4, gpuProfile={"driver": "None"}, **_range(1, 3)
    ),
    "keda": _az(f"{_AKS_DOCS}autoscale-gpu-workloads-with-keda.md", "Standard_NC40ads_H100_v5", **_SKU, **_range(0, 3)),
    "mig": _az(f"{_AKS_DOCS}gpu-multi-instance.md", "Standard_ND96asr_v4", gpuInstanceProfile="MIG1g"),
    "operator": _az(f"{_AKS_DOCS}nvidia-gpu-operator.md", _T4, gpuProfile={"driver": "None"}, **_SKU),
    "managed": _az(
        f"{_AKS_DOCS}aks-managed-gpu-nodes.md, Ubuntu",
        _T4,
        gpuProfile={"driver": "Install", "nvidia": {"managementMode": "Managed"}},
        **_SKU,
    ),
    "managedlinux": _az(
        f"{_AKS_DOCS}aks-managed-gpu-nodes.md, Azure Linux",
        _T4,
        osSKU="AzureLinux",
        gpuProfile={"driver": "Install", "nvidia": {"managementMode": "Managed"}},
        **_SKU,
    ),
    "unmanaged": _az(f"{_AKS_DOCS}aks-managed-gpu-nodes.md, device plugin by hand", _T4, **_SKU),
    "rdma": _az(
        "Azure/aks-rdma-infiniband website/docs/getting-started/02-prerequisites.md",
        "Standard_ND96asr_v4",
        count=2,
        osSKU="Ubuntu",
        gpuProfile={"driver": "None"},
    ),
    "nodeconfig": _az(
        f"{_AKS_DOCS}custom-node-configuration.md, linuxkubeletconfig.json and linuxosconfig.json",
        _T4,
        kubeletConfig={
            "cpuManagerPolicy": "static",
            "cpuCfsQuota": True,
            "cpuCfsQuotaPeriod": "200ms",
            "imageGcHighThreshold": 90,
            "imageGcLowThreshold": 70,
            "topologyManagerPolicy": "best-effort",
            "allowedUnsafeSysctls": ["kernel.msg*", "net.*"],
            "failSwapOn": False,
        },
        linuxOSConfig={
            "transparentHugePageEnabled": "madvise",
            "transparentHugePageDefrag": "defer+madvise",
            "swapFileSizeMB": 1500,
            "sysctls": {
                "netCoreSomaxconn": 163849,
                "netIpv4TcpTwReuse": True,
                "netIpv4IpLocalPortRange": "32000 60000",
            },
        },
    ),
    "hostports": _az(
        f"{_AKS_DOCS}use-node-public-ips.md",
        _T4,
        enableNodePublicIP=True,
        networkProfile={
            "allowedHostPorts": [
                {"portStart": 80, "portEnd": 80, "protocol": "TCP"},
                {"portStart": 40000, "portEnd": 60000, "protocol": "TCP"},
                {"portStart": 53, "portEnd": 53, "protocol": "UDP"},
            ],
            "nodePublicIPTags": [{"ipTagType": "RoutingPreference", "tag": "Internet"}],
        },
    ),
    "localdns": _az(
        f"{_AKS_DOCS}localdns-custom.md",
        _T4,
        localDNSProfile={
            "mode": "Required",
            "vnetDNSOverrides": {
                ".": _dns("PreferUDP", "VnetDNS"),
                "cluster.local": _dns("ForceTCP", "ClusterCoreDNS"),
            },
            "kubeDNSOverrides": {".": _dns("PreferUDP", "ClusterCoreDNS")},
        },
    ),
    "streaming": _az(f"{_AKS_DOCS}artifact-streaming.md", _T4, artifactStreamingProfile={"enabled": True}),
    "motd": _az("azure-cli 2.91.0, az aks nodepool add --message-of-the-day", _T4, messageOfTheDay="aGVsbG8K"),
    "dranet": _az(
        "azure-cli 2.91.0, az aks nodepool add --enable-managed-dranet",
        "Standard_ND96isr_H100_v5",
        networkProfile={"dranet": {"mode": "Managed"}},
    ),
    "confidential": _az("Azure's size Standard_NCC40ads_H100_v5", "Standard_NCC40ads_H100_v5"),
}

# GKE

_ACCOUNT: Final = "nodes@ml-prod.iam.gserviceaccount.com"
_ZONES: Final = ["us-central1-a", "us-central1-b", "us-central1-c"]
_SCOPES: Final = ["https://www.googleapis.com/auth/cloud-platform"]
_PLATFORMS: Final = "GoogleCloudPlatform/accelerated-platforms platforms/gke/base/core/container_node_pool/gpu/region/"
_TOOLKIT: Final = "GoogleCloudPlatform/cluster-toolkit examples/"


def _accelerator(kind: str, count: int, driver: str = "DEFAULT", **more: object) -> Json:
    install = {"gpuDriverInstallationConfig": {"gpuDriverVersion": driver}}
    return {"acceleratorType": kind, "acceleratorCount": str(count), **install, **more}


def _platform(file: str, machine: str, model: str, accelerator: Json, **more: Json) -> Configuration:
    """As the platform's Terraform makes it; its node pools differ in how machines are bought."""
    config = {
        "machineType": machine,
        "labels": {"resource-model": model, "resource-type": "gpu", "resource-variant": "base"},
        "serviceAccount": _ACCOUNT,
        "oauthScopes": _SCOPES,
        "gcfsConfig": {"enabled": True},
        "accelerators": [accelerator],
        "gvnic": {"enabled": True},
        "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
        "shieldedInstanceConfig": {"enableIntegrityMonitoring": True, "enableSecureBoot": True},
        "taints": [{"effect": "NO_SCHEDULE", "key": "on-demand", "value": "true"}],
        **more.pop("config", {}),
    }
    body = {
        "initialNodeCount": 0,
        "locations": _ZONES,
        "autoscaling": {
            "enabled": True,
            "locationPolicy": "ANY",
            "totalMinNodeCount": 0,
            "totalMaxNodeCount": 1000,
        },
        "management": {"autoUpgrade": True, "autoRepair": True},
        "networkConfig": {"enablePrivateNodes": True},
        "config": config,
        **more,
    }
    return Configuration(f"{_PLATFORMS}us-central1/{file}", body)


def _blueprint_pool(file: str, machine: str, accelerator: Json, config: Json, **more: object) -> Configuration:
    """As the toolkit's module gke-node-pool makes it, with its labels and its defaults."""
    common = {
        "machineType": machine,
        "diskSizeGb": 100,
        "diskType": "hyperdisk-balanced" if machine.startswith(("a3-ultra", "a4", "g4")) else "pd-balanced",
        "imageType": "COS_CONTAINERD",
        "resourceLabels": {
            "ghpc_module": "gke-node-pool",
            "ghpc_role": "compute",
            "ghpc_blueprint": file.rsplit("/", maxsplit=1)[-1].split(".", maxsplit=1)[0],
        },
        "serviceAccount": _ACCOUNT,
        "oauthScopes": _SCOPES,
        "accelerators": [accelerator],
        "shieldedInstanceConfig": {"enableIntegrityMonitoring": True, "enableSecureBoot": True},
        "gvnic": {"enabled": True},
        "workloadMetadataConfig": {"mode": "GKE_METADATA"},
        "metadata": {"disable-legacy-endpoints": "true"},
        "taints": [{"effect": "NO_SCHEDULE", "key": "nvidia.com/gpu", "value": "present"}],
        **config,
    }
    body = {
        "initialNodeCount": 1,
        "locations": ["us-central1-a"],
        "management": {"autoUpgrade": True, "autoRepair": True},
        "upgradeSettings": {"strategy": "SURGE", "maxSurge": 0, "maxUnavailable": 1},
        "config": common,
        **more,
    }
    return Configuration(f"{_TOOLKIT}{file}", body)


def _of_reservation(name: str) -> Json:
    return {
        "reservationAffinity": {
            "consumeReservationType": "SPECIFIC_RESERVATION",
            "key": "compute.googleapis.com/reservation-name",
            "values": [name],
        }
    }


_SINGLE: Final = {"config": {"taints": [{"effect": "NO_SCHEDULE", "key": "spot", "value": "true"}], "spot": True}}
_A100: Final = _accelerator("nvidia-tesla-a100", 2)
_L4: Final = _accelerator("nvidia-l4", 2)
_FLEX_SCALING: Final = {"enabled": True, "locationPolicy": "ANY", "totalMinNodeCount": 0, "totalMaxNodeCount": 1000}

GKE_THINGS: Final[Json] = {
    "serviceAccounts": [_ACCOUNT, "sa@demo-proj.iam.gserviceaccount.com"],
    "reservations": [
        {"name": name, "zone": "us-central1-a", "machineType": machine, "count": 4}
        for name, machine in (("mega", "a3-megagpu-8g"), ("ultra", "a3-ultragpu-8g"), ("four", "a4-highgpu-8g"))
    ],
}
"""What the node pools name: it has to be there."""

GKE: Final[Mapping[str, Configuration]] = {
    "a100": _platform("container_node_pool_gpu_a100.tf", "a2-highgpu-2g", "a100", _A100),
    "a100-spot": _platform("container_node_pool_gpu_a100.tf, spot", "a2-highgpu-2g", "a100", _A100, **_SINGLE),
    "a100-reserved": _platform(
        "container_node_pool_gpu_a100.tf, reservation",
        "a2-highgpu-2g",
        "a100",
        _A100,
        config={
            "reservationAffinity": {"consumeReservationType": "ANY_RESERVATION"},
            "taints": [{"effect": "NO_SCHEDULE", "key": "reservation", "value": "true"}],
        },
    ),
    "a100-dws": _platform(
        "container_node_pool_gpu_a100.tf, DWS",
        "a2-highgpu-2g",
        "a100",
        _A100,
        queuedProvisioning={"enabled": True},
        management={"autoUpgrade": True, "autoRepair": False},
        config={"taints": [{"effect": "NO_SCHEDULE", "key": "dws", "value": "true"}]},
    ),
    "l4": _platform("container_node_pool_gpu_l4_rtx.tf", "g2-standard-24", "l4", _L4),
    "l4-spot": _platform("container_node_pool_gpu_l4_rtx.tf, spot", "g2-standard-24", "l4", _L4, **_SINGLE),
    "h100": _platform("container_node_pool_gpu_h100.tf", "a3-highgpu-8g", "h100", _accelerator("nvidia-h100-80gb", 8)),
    "mega": _blueprint_pool(
        "gke-a3-megagpu/gke-a3-megagpu.yaml",
        "a3-megagpu-8g",
        _accelerator("nvidia-h100-mega-80gb", 8),
        _of_reservation("mega"),
        initialNodeCount=2,
    ),
    "ultra": _blueprint_pool(
        "gke-a3-ultragpu/gke-a3-ultragpu.yaml",
        "a3-ultragpu-8g",
        _accelerator("nvidia-h200-141gb", 8),
        _of_reservation("ultra"),
        initialNodeCount=2,
    ),
    "four": _blueprint_pool(
        "gke-a4/gke-a4.yaml",
        "a4-highgpu-8g",
        _accelerator("nvidia-b200", 8),
        _of_reservation("four"),
        initialNodeCount=2,
    ),
    "flex": _blueprint_pool(
        "gke-consumption-options/dws-flex-start/gke-a3-ultragpu.yaml",
        "a3-ultragpu-8g",
        _accelerator("nvidia-h200-141gb", 8),
        {"flexStart": True, "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"}},
        initialNodeCount=0,
        autoscaling=_FLEX_SCALING,
        management={"autoUpgrade": True, "autoRepair": False},
    ),
    "ml": _blueprint_pool("ml-gke.yaml", "g2-standard-4", _accelerator("nvidia-l4", 1), {}),
    "ray": Configuration(
        "GoogleCloudPlatform/ai-on-gke ray-on-gke/guides/raytrain-with-gcsfusecsi/README.md",
        {
            "initialNodeCount": 4,
            "locations": ["us-central1-a"],
            "management": {"autoUpgrade": True, "autoRepair": True},
            "config": {
                "machineType": "n1-standard-32",
                "accelerators": [{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": "1"}],
                "oauthScopes": _SCOPES,
            },
        },
    ),
}
