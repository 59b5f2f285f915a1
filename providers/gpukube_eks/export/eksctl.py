"""Exports node groups as a ClusterConfig of eksctl.

Names: eksctl-io/eksctl pkg/apis/eksctl.io/v1alpha5/assets/schema.json (ManagedNodeGroup). eksctl creates its
own CloudFormation stack and launch template for each group, so it cannot manage a group that it did not create.
"""

from __future__ import annotations

import base64
import tomllib
from typing import TYPE_CHECKING, Final

import yaml

from gpukube.core.fields import MAX_PODS
from gpukube.core.jsontree import at, strings, text, texts, tree, trees
from gpukube_eks.export.request import group_of, placement_of, template_of
from gpukube_eks.facts.fabric import cards_of, efa_cards
from gpukube_eks.facts.images import is_bottlerocket
from gpukube_eks.pool.fields import read_taint
from gpukube_eks.pool.network import declared_groups, has_efa
from gpukube_eks.pool.placement_groups import group_in
from gpukube_eks.pool.settings import node_settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.exporting import ExportedPool, Losses
    from gpukube.core.values import ClusterRef

_RESERVATION: Final = {
    "CapacityReservationId": "capacityReservationID",
    "CapacityReservationResourceGroupArn": "capacityReservationResourceGroupARN",
}
_REPAIR: Final = (
    "enabled",
    "maxUnhealthyNodeThresholdCount",
    "maxUnhealthyNodeThresholdPercentage",
    "maxParallelNodesRepairedCount",
    "maxParallelNodesRepairedPercentage",
    "nodeRepairConfigOverrides",
)


def write_config(cluster: ClusterRef, pools: Sequence[ExportedPool], losses: Losses) -> str:
    """Return one ClusterConfig with all pools."""
    losses.note(
        "creating the groups: eksctl create nodegroup -f FILE --install-nvidia-plugin=false; without this option "
        "eksctl also installs its own device plugin"
    )
    losses.note(
        "a cluster that eksctl did not create: add its VPC and the security group of its control plane to the file "
        "(vpc.id, vpc.securityGroup)"
    )
    document = {
        "apiVersion": "eksctl.io/v1alpha5",
        "kind": "ClusterConfig",
        "metadata": {"name": cluster.name, "region": cluster.identity["region"]},
        "managedNodeGroups": [_group(pool, losses) for pool in pools],
    }
    return dump(document)


def dump(document: Mapping[str, object]) -> str:
    """Return a document as YAML, with the keys in their order."""
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)


def _group(pool: ExportedPool, losses: Losses) -> dict[str, object]:
    group, data = group_of(pool), tree(template_of(pool), "LaunchTemplateData")
    sizes, disk = tree(group, "scalingConfig"), tree(data, "BlockDeviceMappings", 0, "Ebs")
    rocket = is_bottlerocket(text(group, "amiType"))
    found: dict[str, object] = {
        "name": pool.name,
        **_types(group, data),
        "ami": data.get("ImageId"),
        "amiFamily": "Bottlerocket" if rocket else "AmazonLinux2023",
        "releaseVersion": group.get("releaseVersion"),
        "minSize": sizes.get("minSize"),
        "maxSize": sizes.get("maxSize"),
        "desiredCapacity": sizes.get("desiredSize"),
        "subnets": list(strings(group, "subnets")),
        "iam": {"instanceRoleARN": group.get("nodeRole")},
        "volumeSize": disk.get("VolumeSize"),
        "volumeType": disk.get("VolumeType"),
        "volumeIOPS": disk.get("Iops"),
        "volumeThroughput": disk.get("Throughput"),
        "volumeEncrypted": disk.get("Encrypted"),
        "volumeKmsKeyID": disk.get("KmsKeyId"),
        "disableIMDSv1": True,
        "spot": True if group.get("capacityType") == "SPOT" else None,
        **_bought(data),
        **_network(pool, data, losses),
        "enableDetailedMonitoring": at(data, "Monitoring", "Enabled"),
        "ebsOptimized": data.get("EbsOptimized"),
        "ssh": {"publicKeyName": data["KeyName"]} if "KeyName" in data else None,
        "labels": texts(group, "labels"),
        "tags": texts(group, "tags"),
        "taints": [_taint(taint) for taint in trees(group, "taints")],
        "updateConfig": {key: value for key, value in tree(group, "updateConfig").items() if key != "updateStrategy"},
        "nodeRepairConfig": {key: value for key, value in tree(group, "nodeRepairConfig").items() if key in _REPAIR},
        **_settings(pool, text(data, "UserData"), losses, rocket=rocket),
    }
    if at(group, "updateConfig", "updateStrategy") == "MINIMAL":
        losses.note(
            f"{pool.name}: updateStrategy MINIMAL (upgrade.maxSurge 0): eksctl has no field for it, so EKS "
            "starts new nodes before it stops old ones"
        )
    if version := text(group, "version"):
        losses.note(f"{pool.name}: kubernetesVersion {version}: eksctl creates nodes with the cluster's version")
    if pool.desired.target.tags:
        losses.note(f"{pool.name}: tags: eksctl's own launch template decides whether machines and disks get them")
    return {key: value for key, value in found.items() if value not in (None, [], {})}


def _types(group: Mapping[str, object], data: Mapping[str, object]) -> dict[str, object]:
    types = strings(group, "instanceTypes") or (text(data, "InstanceType"),)
    return {"instanceTypes": list(types)} if len(types) > 1 else {"instanceType": types[0]}


def _bought(data: Mapping[str, object]) -> dict[str, object]:
    reserved = tree(data, "CapacityReservationSpecification", "CapacityReservationTarget")
    target = {name: reserved[key] for key, name in _RESERVATION.items() if key in reserved}
    market = at(data, "InstanceMarketOptions", "MarketType")
    return {
        "capacityReservation": {"capacityReservationTarget": target} if target else None,
        "instanceMarketOptions": {"marketType": market} if market else None,
    }


def _network(pool: ExportedPool, data: Mapping[str, object], losses: Losses) -> dict[str, object]:
    """Return EFA, security groups, and the placement group; eksctl adds the cluster's own security group."""
    placement = group_in(data)
    if placement_of(pool):
        losses.note(f"{pool.name}: the placement group: aws ec2 create-placement-group --group-name {placement} "
                    "--strategy cluster, before eksctl creates the group")  # fmt: skip
    efa, machine = has_efa(data), pool.desired.target.machine
    on_all_cards = len(efa_cards(machine)) == cards_of(machine)
    if efa and not on_all_cards:
        losses.note(
            f"{pool.name}: network.highSpeed: efaEnabled would put EFA on all network cards of {machine.name}, and "
            "some do not have it (eksctl-io/eksctl#8685)"
        )
    elif efa:
        losses.note(f"{pool.name}: network.highSpeed: eksctl chooses its own EFA interfaces; compare them with plan -v")
    if "metadataOptions" in pool.desired.target.native:
        losses.note(f"{pool.name}: eks.metadataOptions: eksctl requires tokens and sets its own hop limit")
    return {
        "efaEnabled": True if efa and on_all_cards else None,
        "privateNetworking": True if efa else None,
        "placement": {"groupName": placement} if placement else None,
        "securityGroups": {"attachIDs": list(declared_groups(pool.desired.target))}
        if declared_groups(pool.desired.target)
        else None,
    }


def _taint(native: Mapping[str, object]) -> dict[str, str]:
    taint = read_taint(native)
    return {"key": taint.key, **({"value": taint.value} if taint.value else {}), "effect": taint.effect}


def _settings(pool: ExportedPool, user_data: str, losses: Losses, *, rocket: bool) -> dict[str, object]:
    """Return Bottlerocket's settings unchanged; for other images the maximum pods, the only setting of eksctl's."""
    target = pool.desired.target
    if not rocket:
        if others := [str(path) for path in node_settings(target) if path != MAX_PODS]:
            losses.note(f"{pool.name}: {', '.join(others)}: write them as NodeConfig under overrideBootstrapCommand")
        return {"maxPodsPerNode": target.max_pods}
    if not user_data:
        return {}
    settings = tree(tomllib.loads(base64.b64decode(user_data).decode()), "settings")
    kubernetes = tree(settings, "kubernetes")
    pods = kubernetes.pop("max-pods", None)
    settings = {key: value for key, value in (settings | {"kubernetes": kubernetes}).items() if value}
    return {"maxPodsPerNode": pods, "bottlerocket": {"settings": settings} if settings else None}
