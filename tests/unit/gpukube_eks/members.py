"""Every member of the requests that make or change a node group: what a change of it does, or why it is never sent.

A test walks botocore's own models and fails on a member that is not here, so that a new one is decided on and never
guessed. What may be written natively is in gpukube_eks.pool.native, the sentences of the rows in
gpukube_eks.pool.updates.

A path names structures by dots and items of lists by []. A member with a reason answers for everything below it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a request.

    Attributes:
        row: Key of the row in `updates` that says what a change does; "" when the spec cannot change it.
        reason: Why no field of the spec changes it; "" when one does.
    """

    row: str = ""
    reason: str = ""


def _rows(rows: Mapping[str, str], prefix: str = "") -> dict[str, Member]:
    return {f"{prefix}{path}": Member(row=row) for path, row in rows.items()}


def _reasons(reasons: Mapping[str, str]) -> dict[str, Member]:
    """Of a reason for several members, separated by blanks."""
    return {path: Member(reason=reason) for paths, reason in reasons.items() for path in paths.split()}


_PATH: Final = _reasons(
    {
        "clusterName": "says which cluster; a pool does not move",
        "nodegroupName": "says which group; another name is another pool",
        "clientRequestToken": "each attempt has its own",
    }
)
_SCALING: Final = _rows(
    {
        "scalingConfig.minSize": "nodes.autoscaling.min",
        "scalingConfig.maxSize": "nodes.autoscaling.max",
        "scalingConfig.desiredSize": "nodes.count",
    }
)
_UPDATE: Final = _rows(
    {
        "updateConfig.maxUnavailable": "upgrade.maxUnavailable",
        "updateConfig.maxUnavailablePercentage": "upgrade.maxUnavailable",
        "updateConfig.updateStrategy": "upgrade.maxSurge",
    }
)
_REPAIR: Final = _rows(
    dict.fromkeys(
        (
            "enabled",
            "maxUnhealthyNodeThresholdCount",
            "maxUnhealthyNodeThresholdPercentage",
            "maxParallelNodesRepairedCount",
            "maxParallelNodesRepairedPercentage",
            "nodeRepairConfigOverrides[].nodeMonitoringCondition",
            "nodeRepairConfigOverrides[].nodeUnhealthyReason",
            "nodeRepairConfigOverrides[].minRepairWaitTimeMins",
            "nodeRepairConfigOverrides[].repairAction",
        ),
        "eks.nodeRepairConfig",
    ),
    "nodeRepairConfig.",
)
_WARM: Final = _reasons({"warmPoolConfig": "what stopped GPU machines cost and show is not known to gpukube"})
_TAINT: Final[Mapping[str, str]] = dict.fromkeys(("key", "value", "effect"), "taints")

_CREATE: Final[Mapping[str, Member]] = {
    **_PATH,
    **_SCALING,
    **_UPDATE,
    **_REPAIR,
    **_WARM,
    **_rows(_TAINT, "taints[]."),
    **_rows(
        {
            "instanceTypes[]": "instanceType",
            "amiType": "image",
            "capacityType": "capacity.type",
            "subnets[]": "eks.subnets",
            "nodeRole": "eks.nodeRole",
            "version": "kubernetesVersion",
            "releaseVersion": "eks.releaseVersion",
            "labels": "labels[*]",
            "tags": "tags[*]",
        }
    ),
    **_reasons(
        {
            "diskSize": "EKS refuses it beside a launch template, which holds the disk",
            "remoteAccess": "EKS takes it on node groups without a launch template only",
            "launchTemplate": "every pool has a launch template of gpukube's own",
        }
    ),
}

_UPDATE_CONFIG: Final[Mapping[str, Member]] = {
    **_PATH,
    **_SCALING,
    **_UPDATE,
    **_REPAIR,
    **_WARM,
    **_rows(dict.fromkeys(("labels.addOrUpdateLabels", "labels.removeLabels[]"), "labels[*]")),
    **_rows(_TAINT, "taints.addOrUpdateTaints[]."),
    **_rows(_TAINT, "taints.removeTaints[]."),
}

_UPDATE_VERSION: Final[Mapping[str, Member]] = {
    **_PATH,
    **_rows(
        {
            "version": "kubernetesVersion",
            "releaseVersion": "eks.releaseVersion",
            "launchTemplate.version": "disk.sizeGiB",
        }
    ),
    **_reasons(
        {
            "launchTemplate.id": "always the live one: a group keeps its template",
            "launchTemplate.name": "the id is sent, and EKS refuses both",
            "force": "would end pods against their disruption budgets",
        }
    ),
}

_TEMPLATE_DATA: Final[Mapping[str, Member]] = {
    **_rows(
        {
            "BlockDeviceMappings[].Ebs.VolumeSize": "disk.sizeGiB",
            "BlockDeviceMappings[].Ebs.VolumeType": "disk.type",
            "TagSpecifications[].Tags[].Key": "tags[*]",
            "TagSpecifications[].Tags[].Value": "tags[*]",
            "UserData": "sharing.*",
            "InstanceType": "instanceType",
            "InstanceMarketOptions.MarketType": "capacity.type",
            "CapacityReservationSpecification.CapacityReservationPreference": "capacity.type",
            "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId": (
                "capacity.reserved.eks.capacityReservation"
            ),
            "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationResourceGroupArn": (
                "capacity.reserved.eks.capacityReservation"
            ),
        }
    ),
    **_reasons(
        {
            "BlockDeviceMappings[].DeviceName": "the disk that the image works on",
            "BlockDeviceMappings[].VirtualName BlockDeviceMappings[].NoDevice": "kept as it is live",
            "BlockDeviceMappings[].Ebs.DeleteOnTermination": "always true: a node's disk ends with it",
            "BlockDeviceMappings[].Ebs.Encrypted BlockDeviceMappings[].Ebs.Iops BlockDeviceMappings[].Ebs.KmsKeyId "
            "BlockDeviceMappings[].Ebs.SnapshotId BlockDeviceMappings[].Ebs.Throughput "
            "BlockDeviceMappings[].Ebs.VolumeInitializationRate BlockDeviceMappings[].Ebs.EbsCardIndex": (
                "kept as it is live"
            ),
            "TagSpecifications[].ResourceType": "machines and their disks, always",
            "MetadataOptions": "always tokens, and two hops so that pods reach them",
            "ImageId": "EKS stops managing images of a group whose template names one",
            "InstanceRequirements": "a pool has one instance type",
            "IamInstanceProfile NetworkInterfaces SecurityGroupIds SecurityGroups": (
                "EKS gives role, subnets and security group, and refuses or stops doing so when a template has them"
            ),
            "HibernationOptions InstanceInitiatedShutdownBehavior DisableApiStop DisableApiTermination": (
                "EKS ends machines itself"
            ),
            "InstanceMarketOptions.SpotOptions": "EKS asks for Spot itself, and refuses a template that does",
            "KernelId RamDiskId ElasticGpuSpecifications ElasticInferenceAccelerators CreditSpecification": (
                "not for machines with NVIDIA GPUs"
            ),
            "KeyName": "nodes are not logged in to by a key of gpukube's",
            "LicenseSpecifications Monitoring EbsOptimized CpuOptions EnclaveOptions MaintenanceOptions Placement "
            "PrivateDnsNameOptions NetworkPerformanceOptions SecondaryInterfaces": "kept as EC2 has it by default",
            "Operator": "says who manages a template; gpukube's are its own",
        }
    ),
}

_TAGS: Final[Mapping[str, Member]] = {**_reasons({"resourceArn": "says which group"}), **_rows({"tags": "tags[*]"})}
_UNTAG: Final[Mapping[str, Member]] = {
    **_reasons({"resourceArn": "says which group"}),
    **_rows({"tagKeys[]": "nodes.autoscaling.resources[*]"}),
}

SHAPES: Final[Mapping[tuple[str, str], Mapping[str, Member]]] = {
    ("eks", "CreateNodegroupRequest"): _CREATE,
    ("eks", "UpdateNodegroupConfigRequest"): _UPDATE_CONFIG,
    ("eks", "UpdateNodegroupVersionRequest"): _UPDATE_VERSION,
    ("eks", "TagResourceRequest"): _TAGS,
    ("eks", "UntagResourceRequest"): _UNTAG,
    ("ec2", "RequestLaunchTemplateData"): _TEMPLATE_DATA,
}
"""Service and shape in botocore 1.44.5 -> its members."""
