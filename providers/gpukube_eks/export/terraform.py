"""Exports node groups as Terraform resources of hashicorp/aws: aws_eks_node_group and aws_launch_template.

Argument names: schema of hashicorp/aws 5.100.0 (terraform providers schema -json); newer ones: its changelog. A launch
template that gpukube did not create is only referenced. A clean plan needs `latest_version`: "$Latest" always shows a
difference (hashicorp/terraform-provider-aws, docs of aws_eks_node_group).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.exporting import Losses
from gpukube.core.hcl import Block, Expression, block, import_block, render, resource_name
from gpukube.core.jsontree import at, strings, text, texts, tree, trees
from gpukube_eks.export.request import group_of, placement_of, template_of
from gpukube_eks.facts.images import is_bottlerocket
from gpukube_eks.pool.settings import TEMPLATE_DATA
from gpukube_eks.pool.template import tags_of, template_name
from gpukube_eks.userdata.merging import has_others

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.core.exporting import ExportedPool
    from gpukube.core.hcl import Argument
    from gpukube.core.values import ClusterRef

GROUP: Final = "aws_eks_node_group"
TEMPLATE: Final = "aws_launch_template"
PLACEMENT_GROUP: Final = "aws_placement_group"
_KNOWN_DATA: Final = frozenset(
    {
        "BlockDeviceMappings",
        "CapacityReservationSpecification",
        "EbsOptimized",
        "ImageId",
        "InstanceMarketOptions",
        "InstanceType",
        "KeyName",
        "MetadataOptions",
        "Monitoring",
        "NetworkInterfaces",
        "Placement",
        "SecurityGroupIds",
        "TagSpecifications",
        "UserData",
    }
)
_PLACEMENT: Final = {"GroupName": "group_name", "Tenancy": "tenancy"}
_INTERFACE: Final = frozenset(
    {
        "AssociatePublicIpAddress",
        "DeleteOnTermination",
        "DeviceIndex",
        "Groups",
        "InterfaceType",
        "NetworkCardIndex",
    }
)
_REPAIR: Final = {
    "maxParallelNodesRepairedCount": "max_parallel_nodes_repaired_count",
    "maxParallelNodesRepairedPercentage": "max_parallel_nodes_repaired_percentage",
    "maxUnhealthyNodeThresholdCount": "max_unhealthy_node_threshold_count",
    "maxUnhealthyNodeThresholdPercentage": "max_unhealthy_node_threshold_percentage",
}
_OVERRIDE: Final = {
    "minRepairWaitTimeMins": "min_repair_wait_time_mins",
    "nodeMonitoringCondition": "node_monitoring_condition",
    "nodeUnhealthyReason": "node_unhealthy_reason",
    "repairAction": "repair_action",
}
_OVERRIDES: Final = "nodeRepairConfigOverrides"


_SERVICE: Final = frozenset(
    {
        TEMPLATE_DATA,
        "createdAt",
        "diskSize",
        "health",
        "modifiedAt",
        "nodegroupArn",
        "releaseVersion",
        "resources",
        "status",
        "version",
    }
)
"""Members of a live group that the service sets, and its disk, which the provider reads if it is omitted."""
_WRITTEN: Final = frozenset(
    {
        "amiType",
        "capacityType",
        "clusterName",
        "instanceTypes",
        "labels",
        "launchTemplate",
        "nodeRepairConfig",
        "nodeRole",
        "nodegroupName",
        "scalingConfig",
        "subnets",
        "tags",
        "taints",
        "updateConfig",
    }
)


def write_hcl(cluster: ClusterRef, pools: Sequence[ExportedPool], losses: Losses) -> str:
    """Return the resources of the pools, with import blocks for live ones."""
    account, region = cluster.identity["account"], cluster.identity["region"]
    losses.note(f'the provider: hashicorp/aws, configured for account {account} and region = "{region}"')
    return render(resource for pool in pools for resource in resources_of(cluster, pool, losses))


def resource_of(cluster: ClusterRef, pool: ExportedPool) -> Block:
    """Return the resource block of the pool itself."""
    return resources_of(cluster, pool, Losses())[-1]


def resources_of(cluster: ClusterRef, pool: ExportedPool, losses: Losses) -> list[Block]:
    """Return all blocks of one pool, including imports."""
    name, live = resource_name(pool.name), tree(pool.live.native) if pool.live else {}
    group = _live_group(live) if live else group_of(pool)
    template, data = _template(cluster, pool, live)
    imports = [import_block(GROUP, name, f"{cluster.name}:{pool.name}")] if live else []
    found = []
    if template:
        identity = text(live, "launchTemplate", "id")
        imports += [import_block(TEMPLATE, name, identity)] if live else []
        if placement := placement_of(pool):
            imports += [import_block(PLACEMENT_GROUP, name, str(placement["GroupName"]))] if live else []
            found.append(_placement_block(name, placement))
        found.append(_template_block(name, pool, template, data, losses))
    elif live and tree(live, "launchTemplate"):
        losses.note(
            f"{pool.name}: its launch template {text(live, 'launchTemplate', 'name')} was not created by gpukube and "
            "is only referenced"
        )
    found.append(_group_block(name, group, own_template=bool(template)))
    if live:
        losses.note_unwritten(pool, live, _SERVICE | _WRITTEN)
    for argument, release in _newer(group):
        losses.note(f"{pool.name}: {argument} needs hashicorp/aws {release} or newer")
    for member in sorted(tree(group, "nodeRepairConfig").keys() - {"enabled", *_REPAIR, _OVERRIDES}):
        losses.note(f"{pool.name}: nodeRepairConfig.{member} is not written")
    return [*imports, *found]


def _placement_block(name: str, group: Mapping[str, object]) -> Block:
    tags = tags_of(tree(group, "TagSpecifications", 0))
    body = [("name", group.get("GroupName")), ("strategy", group.get("Strategy")), ("tags", tags)]
    return Block("resource", (PLACEMENT_GROUP, name), body)


def _live_group(live: Mapping[str, object]) -> dict[str, object]:
    """Return a live group's members as of its creation; versions are left to the service."""
    return {name: value for name, value in live.items() if name not in ("version", "releaseVersion", TEMPLATE_DATA)}


def _template(
    cluster: ClusterRef, pool: ExportedPool, live: Mapping[str, object]
) -> tuple[Mapping[str, object], Mapping[str, object]]:
    """Return the launch template's creation and data, or a live template's; empty for another owner's template."""
    template = template_of(pool)
    if not live:
        return template, tree(template, "LaunchTemplateData")
    if text(live, "launchTemplate", "name") != template_name(cluster.name, pool.name):
        return {}, {}
    return template, tree(live, TEMPLATE_DATA)


def _group_block(name: str, group: Mapping[str, object], *, own_template: bool) -> Block:
    sizes, repair = tree(group, "scalingConfig"), tree(group, "nodeRepairConfig")
    if own_template:
        version = Expression(f"{TEMPLATE}.{name}.latest_version")
        template = [block("launch_template", ("id", Expression(f"{TEMPLATE}.{name}.id")), ("version", version))]
    else:
        identity = tree(group, "launchTemplate")
        pair = block("launch_template", ("id", identity.get("id")), ("version", identity.get("version")))
        template = [pair] if identity else []
    is_scaled = sizes.get("minSize") != sizes.get("maxSize")
    moved = [Expression("scaling_config[0].desired_size")]
    body: list[Block | Argument] = [
        ("cluster_name", group.get("clusterName")),
        ("node_group_name", group.get("nodegroupName")),
        ("node_role_arn", group.get("nodeRole")),
        ("subnet_ids", strings(group, "subnets")),
        ("ami_type", group.get("amiType")),
        ("capacity_type", group.get("capacityType")),
        ("instance_types", strings(group, "instanceTypes") or None),
        ("version", group.get("version")),
        ("release_version", group.get("releaseVersion")),
        ("labels", texts(group, "labels")),
        ("tags", texts(group, "tags")),
        *template,
        block(
            "scaling_config",
            ("desired_size", sizes.get("desiredSize")),
            ("max_size", sizes.get("maxSize")),
            ("min_size", sizes.get("minSize")),
        ),
        *(
            block("taint", ("key", taint.get("key")), ("value", taint.get("value")), ("effect", taint.get("effect")))
            for taint in trees(group, "taints")
        ),
        *_optional("update_config", _update(tree(group, "updateConfig"))),
        *_optional(
            "node_repair_config",
            {"enabled": repair.get("enabled"), **{name: repair.get(member) for member, name in _REPAIR.items()}},
            *(
                block("node_repair_config_overrides", *((name, one.get(member)) for member, name in _OVERRIDE.items()))
                for one in trees(repair, _OVERRIDES)
            ),
        ),
        *([block("lifecycle", ("ignore_changes", moved))] if is_scaled else []),
    ]
    return Block("resource", (GROUP, name), body)


def _update(config: Mapping[str, object]) -> dict[str, object]:
    return {
        "max_unavailable": config.get("maxUnavailable"),
        "max_unavailable_percentage": config.get("maxUnavailablePercentage"),
        "update_strategy": config.get("updateStrategy"),
    }


def _newer(group: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Return the arguments that older provider releases reject, each with the first release that supports it.

    Source:
        CHANGELOG.md of hashicorp/terraform-provider-aws (#41487, #44894).
    """
    if at(group, "updateConfig", "updateStrategy") is not None:
        yield "update_config.update_strategy", "6.26.0"
    if tree(group, "nodeRepairConfig").keys() & {*_REPAIR, _OVERRIDES}:
        yield "node_repair_config with more than enabled", "6.20.0"


def _template_block(
    name: str, pool: ExportedPool, template: Mapping[str, object], data: Mapping[str, object], losses: Losses
) -> Block:
    unknown = sorted(data.keys() - _KNOWN_DATA)
    unknown += [f"Placement.{member}" for member in sorted(tree(data, "Placement").keys() - _PLACEMENT.keys())]
    inside = {member for one in trees(data, "NetworkInterfaces") for member in one}
    unknown += [f"NetworkInterfaces.{member}" for member in sorted(inside - _INTERFACE)]
    for member in unknown:
        losses.note(f"{pool.name}: member {member} of its launch template is not written")
    target = tree(data, "CapacityReservationSpecification", "CapacityReservationTarget")
    reserved = {
        "capacity_reservation_id": target.get("CapacityReservationId"),
        "capacity_reservation_resource_group_arn": target.get("CapacityReservationResourceGroupArn"),
    }
    preference = at(data, "CapacityReservationSpecification", "CapacityReservationPreference")
    metadata = tree(data, "MetadataOptions")
    foreign = _has_foreign_data(pool, data)
    if foreign:  # it may be secret
        losses.note(f"{pool.name}: user data of others is not written; ignore_changes keeps it")
    body: list[Block | Argument] = [
        ("name", template.get("LaunchTemplateName")),
        ("instance_type", data.get("InstanceType")),
        ("image_id", data.get("ImageId")),
        ("key_name", data.get("KeyName")),
        ("ebs_optimized", _word(data.get("EbsOptimized"))),
        ("vpc_security_group_ids", strings(data, "SecurityGroupIds") or None),
        ("user_data", None if foreign else text(data, "UserData") or None),
        ("tags", tags_of(tree(template, "TagSpecifications", 0))),
        *(_device(device) for device in trees(data, "BlockDeviceMappings")),
        *_optional(
            "capacity_reservation_specification",
            {"capacity_reservation_preference": preference},
            *_optional("capacity_reservation_target", reserved),
        ),
        *_optional("instance_market_options", {"market_type": at(data, "InstanceMarketOptions", "MarketType")}),
        *_optional(
            "metadata_options",
            {
                "http_put_response_hop_limit": metadata.get("HttpPutResponseHopLimit"),
                "http_tokens": metadata.get("HttpTokens"),
                "instance_metadata_tags": metadata.get("InstanceMetadataTags"),
            },
        ),
        *_optional("monitoring", {"enabled": at(data, "Monitoring", "Enabled")}),
        *(_interface(one) for one in trees(data, "NetworkInterfaces")),
        *_optional("placement", {name: at(data, "Placement", member) for member, name in _PLACEMENT.items()}),
        *(
            block("tag_specifications", ("resource_type", one.get("ResourceType")), ("tags", tags_of(one)))
            for one in trees(data, "TagSpecifications")
        ),
        *([block("lifecycle", ("ignore_changes", [Expression("user_data")]))] if foreign else []),
    ]
    return Block("resource", (TEMPLATE, name), body)


def _has_foreign_data(pool: ExportedPool, data: Mapping[str, object]) -> bool:
    """Return whether anybody but gpukube wrote into the user data of a pool."""
    written, rocket = text(data, "UserData"), is_bottlerocket(text(group_of(pool), "amiType"))
    return bool(written) and has_others(written, rocket=rocket)


def _interface(interface: Mapping[str, object]) -> Block:
    body = {
        "network_card_index": interface.get("NetworkCardIndex"),
        "device_index": interface.get("DeviceIndex"),
        "interface_type": interface.get("InterfaceType"),
        "associate_public_ip_address": _word(interface.get("AssociatePublicIpAddress")),
        "delete_on_termination": _word(interface.get("DeleteOnTermination")),
        "security_groups": strings(interface, "Groups") or None,
    }
    return block("network_interfaces", *((name, value) for name, value in body.items() if value is not None))


def _device(device: Mapping[str, object]) -> Block:
    disk = tree(device, "Ebs")
    ebs = {
        "delete_on_termination": _word(disk.get("DeleteOnTermination")),
        "encrypted": _word(disk.get("Encrypted")),
        "iops": disk.get("Iops"),
        "kms_key_id": disk.get("KmsKeyId"),
        "snapshot_id": disk.get("SnapshotId"),
        "throughput": disk.get("Throughput"),
        "volume_size": disk.get("VolumeSize"),
        "volume_type": disk.get("VolumeType"),
    }
    return block("block_device_mappings", ("device_name", device.get("DeviceName")), *_optional("ebs", ebs))


def _word(value: object) -> str | None:
    """Return a boolean as a string, as in the provider's schema; unset differs from "false"."""
    return None if value is None else "true" if value else "false"


def _optional(kind: str, arguments: Mapping[str, object], *blocks: Block) -> list[Block]:
    """Return a block, or none if all of its arguments are missing."""
    found = [(name, value) for name, value in arguments.items() if value is not None]
    return [block(kind, *found, *blocks)] if found or blocks else []
