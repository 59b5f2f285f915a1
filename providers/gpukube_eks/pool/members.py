"""Every member of a node group and of its launch template: what gpukube does with it.

In scope: the table, and which members of a live group a person chose or a new group would lack. Out of scope: the
rules for the members that a spec may set under `eks:` (native), their effect (updates).

A group is two objects: CreateNodegroupRequest and Nodegroup (botocore eks/2017-11-01), and RequestLaunchTemplateData
(ec2/2016-11-15). A test compares the table with the installed SDK. Lists of EC2 count by what their items are about:
disks by device, interfaces by their type, tags by kind and key (`_shape`).

Sources of the defaults: docs: eks/launch-templates, botocore's texts of both shapes; a test compares them with what the
sandbox fills in.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import text, tree, trees
from gpukube.core.members import Chosen, Member, chosen_members, is_declared, set_members
from gpukube.core.values import MARKS, RELEASED_LABEL
from gpukube_eks.facts.images import is_bottlerocket
from gpukube_eks.pool.disks import disk_device
from gpukube_eks.pool.fields import BLOCK_FIELD, RESERVATION_FIELD, RESOURCE_TAG
from gpukube_eks.pool.launch import MEMBERS as LAUNCH_MEMBERS
from gpukube_eks.pool.marks import FORM
from gpukube_eks.pool.native import NATIVE, REFUSED
from gpukube_eks.pool.network import SECURITY_GROUPS
from gpukube_eks.pool.settings import TEMPLATE_DATA
from gpukube_eks.pool.template import tags_of, template_name
from gpukube_eks.userdata.merging import digest_of_others, own_fields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.jsontree import Tree
    from gpukube.core.members import Members
    from gpukube.core.values import Desired, Observed

_GROUP: Final = "eks"
_TEMPLATE: Final = "eks.launchTemplate"
"""First steps of the paths of members that no field of the spec sets."""
_BY_SERVICE: Final = Member("server")


def _field(spec: str, *, default: object = None) -> Member:
    return Member("field", spec, defaults=(default,))


def _native(path: str, *, default: object = None) -> Member:
    return Member("native", f"eks.{path}", defaults=(default,))


def _no(reason: str, *, default: object = None) -> Member:
    return Member("unsupported", reason=reason, defaults=(default,))


_EC2_ONLY: Final = "EC2 has it, and nothing says that EKS accepts it for GPU nodes"
_MANAGED: Final = "EKS rejects it in the launch template of a node group"
_OF_MACHINES: Final = Member("field", "tags[*]", reason="only the machines have it; in a spec it is the group's too")

GROUP: Final[Members] = {
    # Identity, and what the service makes.
    **dict.fromkeys(
        (
            *("clusterName", "nodegroupName", "nodegroupArn", "createdAt", "modifiedAt", "status", "health"),
            *("resources", "clientRequestToken", "launchTemplate", "releaseVersion"),
        ),
        _BY_SERVICE,
    ),
    # Fields of the spec.
    "version": _BY_SERVICE,
    "scalingConfig": _field("nodes"),
    "diskSize": _field("disk.sizeGiB", default=20),
    "instanceTypes": _field("instanceType"),
    "amiType": _field("image"),
    "capacityType": _field("capacity.type", default="ON_DEMAND"),
    "labels.*": _field("labels[*]"),
    "taints": _field("taints"),
    "tags.*": _field("tags[*]"),
    # A replacement is created in the live group's subnets, or in others if those do not offer its machine (placement).
    "subnets": _BY_SERVICE,
    # Native fields.
    "nodeRole": _native("nodeRole"),
    "updateConfig.maxUnavailable": _field("upgrade.maxUnavailable", default=1),
    "updateConfig.maxUnavailablePercentage": _field("upgrade.maxUnavailable"),
    "updateConfig.updateStrategy": _field("upgrade.maxSurge", default="DEFAULT"),
    "nodeRepairConfig.enabled": _native("nodeRepairConfig.enabled", default=False),
    **{
        path: _native(path)
        for path in NATIVE
        if path.startswith("nodeRepairConfig.") and path != "nodeRepairConfig.enabled"
    },
    # Not supported.
    "remoteAccess": _no(REFUSED["remoteAccess"]),
    "warmPoolConfig": _no(REFUSED["warmPoolConfig"]),
}
"""Members of the group. Its release moves with every update, and its version with the cluster's."""

TEMPLATE: Final[Members] = {
    "InstanceType": _field("instanceType"),
    "UserData": _no("gpukube never copies user data into a spec"),
    "Disk.VolumeSize": _field("disk.sizeGiB"),
    "Disk.VolumeType": _field("disk.type", default="gp2"),
    "Disk.Iops": _field("disk.iops", default=3000),
    "Disk.Throughput": _field("disk.throughput", default=125),
    "Disk.Encrypted": _field("disk.encrypted"),
    "Disk.KmsKeyId": _field("disk.kmsKey"),
    "Disk.DeleteOnTermination": _no("EC2 deletes gpukube's disks with the machine", default=True),
    "Disk.SnapshotId": _no("a snapshot replaces the content of the disk"),
    "Disk.VolumeInitializationRate": _no("it applies only to disks created from a snapshot"),
    "Disk.EbsCardIndex": _no("gpukube does not choose the EBS card"),
    "BlockDeviceMappings.*": _no("gpukube's nodes have one disk besides the machine's own"),
    "NetworkInterfaces.efa": _field("network.highSpeed"),
    "NetworkInterfaces.other": _no("gpukube sets interfaces for network.highSpeed only"),
    "NetworkInterfaces.*": _no("gpukube's interfaces have only their type, card, and security groups"),
    "Placement.GroupName": _field("placement"),
    "Placement.GroupId": _field("placement"),
    "Placement": _no("only placement groups are supported"),
    "InstanceMarketOptions": _field("capacity.reserved.eks.capacityBlock"),
    "CapacityReservationSpecification.CapacityReservationTarget": _field("capacity.reserved.eks.capacityReservation"),
    "CapacityReservationSpecification.CapacityReservationPreference": _no(
        "a pool uses only the reservation that it names", default="open"
    ),
    "TagSpecifications.instance.*": _OF_MACHINES,
    "TagSpecifications.volume.*": _OF_MACHINES,
    "TagSpecifications.*": _no("gpukube tags machines and disks"),
    "SecurityGroupIds": _native("securityGroups"),
    **{".".join(wire): _native(path) for path, wire in LAUNCH_MEMBERS.items()},
    "MetadataOptions.HttpEndpoint": _no("gpukube leaves the metadata service on", default="enabled"),
    "MetadataOptions.HttpProtocolIpv6": _no(
        "gpukube leaves the IPv6 endpoint of the metadata service off", default="disabled"
    ),
    "MetadataOptions.InstanceMetadataTags": _native("metadataOptions.instanceMetadataTags", default="disabled"),
    "Monitoring.Enabled": _native("monitoring.enabled", default=False),
    "Monitoring.MetricCategoryIds": _no("gpukube leaves it at EC2's default"),
    "EbsOptimized": _native("ebsOptimized", default=True),
    **dict.fromkeys(
        (
            *("KernelId", "RamDiskId", "ElasticGpuSpecifications", "ElasticInferenceAccelerators", "SecurityGroups"),
            *("CreditSpecification", "CpuOptions", "LicenseSpecifications", "EnclaveOptions", "PrivateDnsNameOptions"),
            *("MaintenanceOptions", "DisableApiTermination", "DisableApiStop", "Operator", "NetworkPerformanceOptions"),
            "SecondaryInterfaces",
        ),
        _no(_EC2_ONLY, default=False),
    ),
    **dict.fromkeys(
        (
            *("IamInstanceProfile", "InstanceInitiatedShutdownBehavior", "HibernationOptions"),
            "InstanceRequirements",
        ),
        _no(_MANAGED),
    ),
}
"""Members of the launch template's data, lists as `_shape` returns them."""

_SET: Final = ("NetworkCardIndex", "DeviceIndex", "InterfaceType", "DeleteOnTermination", "Groups")
"""Members of an interface with EFA that follow from network.highSpeed and the security groups."""
_OTHERS_MARKS: Final = ("aws:", "alpha.eksctl.io/", "eksctl.cluster.k8s.io/", "eks.amazonaws.com/", "eks:")
"""Prefixes of labels and tags with which EKS and eksctl mark their groups."""


class EksMembers:
    """Implementation of `gpukube.core.provider_parts.PoolMembers`."""

    def chosen(self, observed: Observed) -> tuple[Chosen, ...]:
        """Return the chosen members of the group and of its launch template."""
        native = observed.native
        group = _group_shape({name: value for name, value in native.items() if name != TEMPLATE_DATA})
        data = _shape(tree(native, TEMPLATE_DATA), str(native.get("amiType")))
        data["SecurityGroupIds"] = observed.fields.get(SECURITY_GROUPS)  # without the cluster's own
        own = template_name(text(native, "clusterName"), observed.name)
        if text(native, "launchTemplate", "name") == own:  # its tags are the spec's, until its next version
            data.pop("TagSpecifications", None)
        is_block = "InstanceMarketOptions" in data
        encoded = text(native, TEMPLATE_DATA, "UserData")
        settings = own_fields(encoded, rocket=is_bottlerocket(str(native.get("amiType"))))
        return (
            *chosen_members(group, GROUP, _GROUP),
            *(_of_block(one) if is_block else one for one in chosen_members(data, TEMPLATE, _TEMPLATE)),
            *(Chosen(str(path), ("UserData", *path), "field", value) for path, value in settings.items()),
        )

    def lost(self, observed: Observed, desired: Desired) -> tuple[Chosen, ...]:
        """Return the chosen members that the creation sets neither in the group nor in the launch template.

        By their paths, as in `core.members.lost_members`: a tag or an instance type may be in either object. A declared
        tag is a difference of the spec only where the group has it: the machines may have had another value.
        """
        params = desired.create.params
        group = tree(params, "nodegroup")
        data = _shape(tree(params, "launchTemplate", "LaunchTemplateData"), str(group.get("amiType")))
        made = (*set_members(_group_shape(group), GROUP, _GROUP), *set_members(data, TEMPLATE, _TEMPLATE))
        same = {(one.path, str(one.value)) for one in made}
        fields = tuple(map(str, desired.fields))
        lost = {
            one.path: one
            for one in self.chosen(observed)
            if (one.path, str(one.value)) not in same
            and (one.wire[0] == "TagSpecifications" or not is_declared(one.path, fields))
        }
        return tuple(lost.values())


def _of_block(one: Chosen) -> Chosen:
    """Return a member under the field of a Capacity Block, whose template has the id of a reservation."""
    return replace(one, path=str(BLOCK_FIELD)) if one.path == str(RESERVATION_FIELD) else one


def _group_shape(group: Tree) -> dict[str, object]:
    """Return a group without the marks of gpukube, EKS, and eksctl in its labels and tags."""
    labels, tags = tree(group, "labels"), tree(group, "tags")
    own = (*MARKS, RELEASED_LABEL)
    labels = {key: value for key, value in labels.items() if key not in own and not key.startswith(_OTHERS_MARKS)}
    tags = {
        key: value
        for key, value in tags.items()
        if not key.startswith((*_OTHERS_MARKS, RESOURCE_TAG)) and not FORM.is_own(key)
    }
    return {**group, "labels": labels, "tags": tags}


def _shape(data: Tree, ami_type: str) -> dict[str, object]:
    """Return a template's data with its lists by what their items are about, as in TEMPLATE."""
    found = dict(data)
    disks = trees(data, "BlockDeviceMappings")
    node_disk = disk_device(rocket=is_bottlerocket(ami_type))
    found["Disk"] = next((tree(disk, "Ebs") for disk in disks if disk.get("DeviceName") == node_disk), {})
    found["BlockDeviceMappings"] = {
        str(disk.get("DeviceName")): disk for disk in disks if disk.get("DeviceName") != node_disk
    }
    found["NetworkInterfaces"] = _interfaces(trees(data, "NetworkInterfaces"))
    # gpukube's own settings are fields; a digest of the rest is enough to see whether a new group has it.
    found["UserData"] = digest_of_others(text(data, "UserData"), rocket=is_bottlerocket(ami_type))
    found["TagSpecifications"] = {
        str(one.get("ResourceType")): _foreign(tags_of(one)) for one in trees(data, "TagSpecifications")
    }
    return found


def _interfaces(interfaces: Sequence[Tree]) -> dict[str, object]:
    """Return interfaces by their type, and the members of those with EFA that gpukube does not set.

    The first interface belongs to those with EFA: it is for IP, and may have EFA or not.
    """
    fast = [one for one in interfaces if str(one.get("InterfaceType")).startswith("efa")]
    if not fast:
        return {"other": list(interfaces)} if interfaces else {}
    first = [one for one in interfaces if one not in fast and not one.get("NetworkCardIndex", 0)]
    others = [one for one in interfaces if one not in fast and one not in first[:1]]
    more: dict[str, object] = {}
    for one in (*fast, *first[:1]):
        more |= {name: value for name, value in one.items() if name not in _SET and value not in (None, False, "")}
    return {**more, "efa": fast, **({"other": others} if others else {})}


def _foreign(tags: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in tags.items() if not key.startswith(_OTHERS_MARKS)}


POOL_MEMBERS: Final = EksMembers()
