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

from gpukube.core.fields import HIGH_SPEED, PLACEMENT
from gpukube.core.jsontree import at, merged, text, tree, trees
from gpukube.core.values import OWNER_LABEL, POOL_LABEL
from gpukube_eks.facts.images import is_bottlerocket
from gpukube_eks.pool.disks import changed_disks, new_disks, read_disk
from gpukube_eks.pool.launch import changed_launch, launch_data, read_launch
from gpukube_eks.pool.network import SECURITY_GROUPS, changed_network, declared_groups, new_network
from gpukube_eks.pool.own_image import changes_joining, joins_by_gpukube
from gpukube_eks.pool.placement_groups import STRATEGY, changed_placement, new_placement
from gpukube_eks.pool.purchase import bought_data
from gpukube_eks.pool.settings import NAMES, TEMPLATE_DATA, changed_user_data, user_data
from gpukube_eks.userdata.merging import is_setting, read_fields

if TYPE_CHECKING:
    from collections.abc import Collection

    from gpukube.core.fields import FieldPath
    from gpukube.core.jsontree import Tree
    from gpukube.core.values import Observed, Target

CLUSTER_TAG: Final = "gpukube.io/cluster"
"""Tag of a template: name of the cluster; used to find templates."""
GROUP_TAG: Final = "gpukube.io/nodegroup"
"""Tag of a template: name of the node group it is for."""

_TAGGED: Final = ("instance", "volume")
"""What gpukube tags: tags of a node group reach neither its machines nor their disks (docs: eks/eks-using-tags)."""
_HOPS: Final = 2
"""Hop limit: pods are one hop farther from the metadata service than the node (docs: eks/best-practices, IMDS)."""
_LONGEST_NAME: Final = 128
_DIGITS: Final = 24


def template_name(cluster: str, group: str) -> str:
    """Return the template's name: one per cluster and node group, at most 128 characters.

    Neither name can contain a slash, so two groups never share a template (docs: AWSEC2/APIReference
    CreateLaunchTemplate).
    """
    name = f"{NAMES}{cluster}/{group}"
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{NAMES}{sha256(cluster.encode()).hexdigest()[:_DIGITS]}/{group}"


def make_template(target: Target, *, rocket: bool) -> dict[str, object]:
    """Return the arguments of CreateLaunchTemplate; the client adds a new ClientToken per attempt."""
    name = template_name(target.cluster.name, target.name)
    data: dict[str, object] = {
        "BlockDeviceMappings": new_disks(target.disk, rocket=rocket),
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": _HOPS},
    }
    if target.tags:
        data["TagSpecifications"] = [_tag(kind, target.tags) for kind in _TAGGED]
    if settings := user_data(target, rocket=rocket):
        data["UserData"] = settings
    data |= bought_data(target) | new_network(target) | new_placement(target, name)
    return {
        "LaunchTemplateName": name,
        "LaunchTemplateData": merged(data, launch_data(target.native)),
        "TagSpecifications": [_tag("launch-template", _marked(target))],
    }


def make_placement_group(target: Target) -> dict[str, object]:
    """Return the arguments of CreatePlacementGroup for the pool's own group."""
    return {
        "GroupName": template_name(target.cluster.name, target.name),
        "Strategy": STRATEGY,
        "TagSpecifications": [_tag("placement-group", _marked(target))],
    }


def changed_data(
    target: Target, observed: Observed, fields: Collection[FieldPath], new: Tree
) -> dict[str, object]:  # fmt: skip
    """Return the data of a new version based on the live one: the changed members, each as a whole; None removes one.

    Args:
        target: What is declared.
        observed: The live group, with the data of its template.
        fields: The changed fields.
        new: Data of the template with which the pool would be created.

    Raises:
        SpecError: The user data of others does not allow a change.
    """
    live = tree(observed.native, TEMPLATE_DATA)
    rocket = is_bottlerocket(str(observed.native.get("amiType")))
    data: dict[str, object] = {}
    if any(field.is_below("disk") for field in fields):
        data["BlockDeviceMappings"] = changed_disks(target.disk, trees(live, "BlockDeviceMappings"), rocket=rocket)
    if joins_by_gpukube(observed):
        data |= {"UserData": text(new, "UserData")} if changes_joining(fields) else {}
    elif changed := [field for field in fields if field.is_below("sharing") or is_setting(field)]:
        data["UserData"] = changed_user_data(target, observed, text(live, "UserData"), changed)
    if any(field.is_below("capacity") for field in fields):
        data |= bought_data(target, is_first=False)
    if any(field in (HIGH_SPEED, SECURITY_GROUPS) for field in fields):
        data |= changed_network(new, live, declared=bool(declared_groups(target)))
    if PLACEMENT in fields:
        data |= changed_placement(new, live)
    data |= changed_launch(target.native, live, fields)
    if target.tags:
        is_own = at(observed.native, "launchTemplate", "name") == template_name(target.cluster.name, observed.name)
        data["TagSpecifications"] = _retagged(target.tags, {} if is_own else live)
    return data


def tags_of_others(live: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the tags of what gpukube does not tag: network interfaces. A replacement takes them over as they are."""
    return [one for one in trees(live, "TagSpecifications") if one.get("ResourceType") not in _TAGGED]


def template_fields(data: Mapping[str, object], ami_type: str) -> dict[FieldPath, object]:
    """Return the comparable fields of a live template's data that it sets, without groups of other objects."""
    rocket = is_bottlerocket(ami_type)
    settings = read_fields(text(data, "UserData"), rocket=rocket)
    return {**read_disk(data, rocket=rocket), **settings, **read_launch(data)}


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


def _marked(target: Target) -> dict[str, str]:
    """Return the tags of an object that gpukube creates next to the node group."""
    marks = {OWNER_LABEL: target.owner, POOL_LABEL: target.pool}
    return {**target.tags, **marks, CLUSTER_TAG: target.cluster.name, GROUP_TAG: target.name}


def _retagged(tags: Mapping[str, str], live: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the tags of machines and disks: the declared ones, and those of another owner's template."""
    found = {str(one.get("ResourceType")): tags_of(one) for one in trees(live, "TagSpecifications")}
    found |= {kind: {**found.get(kind, {}), **tags} for kind in ("instance", "volume")}
    return [_tag(kind, given) for kind, given in sorted(found.items())]


def _tag(kind: str, tags: Mapping[str, str]) -> dict[str, object]:
    return {"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in sorted(tags.items())]}
