"""The launch template that gpukube creates with every node group.

In scope: its name, content, and tags, and reading a live one. Out of scope: calls.

A node group created without a template can never get one, and disk, metadata options, and user data can be changed only
in it (docs: eks/launch-templates). It contains no image, security group, subnet, or role: EKS adds those, and rejects
or stops managing them if a template has them. It contains an instance type only for a Capacity Block.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from gpukube.core.fields import DISK_SIZE, DISK_TYPE, FieldPath
from gpukube.core.jsontree import at, text, tree, trees
from gpukube.core.values import OWNER_LABEL, POOL_LABEL
from gpukube_eks.facts.images import is_bottlerocket
from gpukube_eks.pool.purchase import bought_data
from gpukube_eks.pool.settings import TEMPLATE_DATA, changed_user_data, user_data
from gpukube_eks.userdata.merging import is_setting, read_fields

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from gpukube.core.jsontree import Tree
    from gpukube.core.values import Observed, Target
    from gpukube_eks.facts.images import Image

CLUSTER_TAG: Final = "gpukube.io/cluster"
"""Tag of a template: name of the cluster; used to find templates."""
GROUP_TAG: Final = "gpukube.io/nodegroup"
"""Tag of a template: name of the node group it is for."""

DEFAULT_DISK_GIB: Final = 100
"""Default disk size: a few GPU images fill EKS's default of 20 GiB, and pods are evicted (eksctl-io/eksctl#780)."""
DEFAULT_DISK_TYPE: Final = "gp3"
_HOPS: Final = 2
"""Hop limit: pods are one hop farther from the metadata service than the node (docs: eks/best-practices, IMDS)."""
_LONGEST_NAME: Final = 128
_DIGITS: Final = 24


def template_name(cluster: str, group: str) -> str:
    """Return the template's name: one per cluster and node group, at most 128 characters.

    Neither name can contain a slash, so two groups never share a template (docs: AWSEC2/APIReference
    CreateLaunchTemplate).
    """
    name = f"gpukube/{cluster}/{group}"
    if len(name) <= _LONGEST_NAME:
        return name
    return f"gpukube/{sha256(cluster.encode()).hexdigest()[:_DIGITS]}/{group}"


def make_template(target: Target, image: Image) -> dict[str, object]:
    """Return the arguments of CreateLaunchTemplate; the client adds a new ClientToken per attempt."""
    marks = {
        OWNER_LABEL: target.owner,
        POOL_LABEL: target.pool,
        CLUSTER_TAG: target.cluster.name,
        GROUP_TAG: target.name,
    }
    data: dict[str, object] = {
        "BlockDeviceMappings": [
            {
                "DeviceName": _device(bottlerocket=image.system == "bottlerocket"),
                "Ebs": {
                    "VolumeSize": target.disk.size_gib or DEFAULT_DISK_GIB,
                    "VolumeType": target.disk.type or DEFAULT_DISK_TYPE,
                    "DeleteOnTermination": True,
                },
            }
        ],
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": _HOPS},
    }
    if target.tags:
        # Tags of a node group reach neither its machines nor their disks (docs: eks/eks-using-tags).
        data["TagSpecifications"] = [_tag(kind, target.tags) for kind in ("instance", "volume")]
    if settings := user_data(target, rocket=image.system == "bottlerocket"):
        data["UserData"] = settings
    return {
        "LaunchTemplateName": template_name(target.cluster.name, target.name),
        "LaunchTemplateData": data | bought_data(target),
        "TagSpecifications": [_tag("launch-template", {**target.tags, **marks})],
    }


def changed_data(target: Target, observed: Observed, fields: Collection[FieldPath]) -> dict[str, object]:
    """Return the data of a new version based on the live one: the changed members, each as a whole.

    Args:
        target: What is declared.
        observed: The live group, with the data of its template.
        fields: The changed fields.

    Raises:
        SpecError: The user data of others does not allow a change.
    """
    live = tree(observed.native, TEMPLATE_DATA)
    rocket = is_bottlerocket(str(observed.native.get("amiType")))
    data: dict[str, object] = {}
    if any(field.is_below("disk") for field in fields):
        data["BlockDeviceMappings"] = _changed_disks(
            target, trees(live, "BlockDeviceMappings"), _device(bottlerocket=rocket)
        )
    if changed := [field for field in fields if field.is_below("sharing") or is_setting(field)]:
        data["UserData"] = changed_user_data(target, observed, text(live, "UserData"), changed)
    if any(field.is_below("capacity") for field in fields):
        data |= bought_data(target, is_first=False)
    if target.tags:
        is_own = at(observed.native, "launchTemplate", "name") == template_name(target.cluster.name, observed.name)
        data["TagSpecifications"] = _retagged(target.tags, {} if is_own else live)
    return data


def _changed_disks(target: Target, live: Sequence[Tree], name: str) -> list[dict[str, object]]:
    """Change the nodes' disk among the live ones; throughput and IOPS depend on its type and are dropped with it."""
    ours: Tree = next((device for device in live if device.get("DeviceName") == name), {})
    disk = tree(ours, "Ebs") or {"VolumeType": DEFAULT_DISK_TYPE, "DeleteOnTermination": True}
    if target.disk.type and target.disk.type != disk.get("VolumeType"):
        disk = {key: value for key, value in disk.items() if key not in ("Iops", "Throughput")}
        disk["VolumeType"] = target.disk.type
    disk["VolumeSize"] = target.disk.size_gib or disk.get("VolumeSize") or DEFAULT_DISK_GIB
    return [{**ours, "DeviceName": name, "Ebs": disk}, *(dict(device) for device in live if device is not ours)]


def template_fields(data: Mapping[str, object], ami_type: str) -> dict[FieldPath, object]:
    """Return the comparable fields of a live template's data; None for those that it does not set."""
    disk: Mapping[str, object] = {}
    for device in trees(data, "BlockDeviceMappings"):
        if device.get("DeviceName") == _device(bottlerocket=is_bottlerocket(ami_type)):
            disk = tree(device, "Ebs")
    settings = read_fields(text(data, "UserData"), rocket=is_bottlerocket(ami_type))
    return {DISK_SIZE: disk.get("VolumeSize"), DISK_TYPE: disk.get("VolumeType"), **settings}


def tags_of(template: Mapping[str, object]) -> dict[str, str]:
    """Return the tags of a template from EC2's response."""
    return {str(tag.get("Key")): str(tag.get("Value") or "") for tag in trees(template, "Tags")}


def contains(live: object, desired: object) -> bool:
    """Return whether live data contains all desired data; EC2's additions do not count."""
    if isinstance(desired, Mapping):
        return isinstance(live, Mapping) and all(contains(live.get(key), value) for key, value in desired.items())
    if isinstance(desired, list):
        return (
            isinstance(live, list)
            and len(live) == len(desired)
            and all(contains(one, other) for one, other in zip(live, desired, strict=True))
        )
    return live == desired


def _retagged(tags: Mapping[str, str], live: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the tags of machines and disks: the declared ones, and those of another owner's template."""
    found = {str(one.get("ResourceType")): tags_of(one) for one in trees(live, "TagSpecifications")}
    found |= {kind: {**found.get(kind, {}), **tags} for kind in ("instance", "volume")}
    return [_tag(kind, given) for kind, given in sorted(found.items())]


def _device(*, bottlerocket: bool) -> str:
    """Return the disk for images and pods; Bottlerocket has two (terraform-aws-modules/terraform-aws-eks#3180)."""
    return "/dev/xvdb" if bottlerocket else "/dev/xvda"


def _tag(kind: str, tags: Mapping[str, str]) -> dict[str, object]:
    return {"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in sorted(tags.items())]}
