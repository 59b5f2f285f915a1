"""Exports each node group as a NodePool and an EC2NodeClass, from which Karpenter creates the same nodes.

Names: aws/karpenter-provider-aws pkg/apis/crds (karpenter.sh/v1, karpenter.k8s.aws/v1). These nodes belong to no node
group, so gpukube does not recognize them as a pool: they have no gpukube.io labels.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Final

from gpukube.core.fields import MAX_PODS
from gpukube.core.jsontree import at, strings, text, texts, tree, trees
from gpukube.core.values import MARKS
from gpukube_eks.export.eksctl import dump
from gpukube_eks.export.request import group_of, template_of
from gpukube_eks.facts.images import is_bottlerocket
from gpukube_eks.pool.network import declared_groups
from gpukube_eks.pool.own_image import own_image
from gpukube_eks.pool.placement_groups import NONE
from gpukube_eks.pool.settings import node_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpukube.core.exporting import ExportedPool, Losses
    from gpukube.core.values import ClusterRef, Target

_GPU: Final = "nvidia.com/gpu"
_NOT_NAME: Final = re.compile(r"[^a-z0-9-]+")
_IDLE: Final = "10m"
"""Time after which an empty node is removed; the cluster autoscaler's default (kubernetes/autoscaler FAQ,
scale-down-unneeded-time)."""


def write_manifests(cluster: ClusterRef, pools: Sequence[ExportedPool], losses: Losses) -> str:
    """Return the two objects of each pool."""
    owned = f"kubernetes.io/cluster/{cluster.name}"
    losses.note(f"security groups: those with the tag {owned}: owned, which EKS sets on the cluster's own")
    losses.note("the nodes' role: Karpenter requires its name, in the cluster's account, and an access entry for it")
    losses.note("Karpenter's nodes belong to no node group: gpukube neither lists nor verifies them as a pool")
    found = []
    for pool in pools:
        _check(pool, losses)
        found += [_node_pool(pool, losses), _node_class(pool, owned)]
    return "---\n".join(map(dump, found))


def _check(pool: ExportedPool, losses: Losses) -> None:
    """Reject pools for which Karpenter would never start a node."""
    target, reservation = pool.desired.target, pool.desired.target.capacity.reservation
    claimed = pool.desired.ownership.advertiser == "dra"
    if claimed and target.nodes.autoscaled:
        losses.refuse(
            pool,
            "devicePlugin.owner",
            "Karpenter starts nodes for pods with claims only from 1.15 on, with alpha features of its own",
            "write a fixed nodes.count, or devicePlugin.owner: auto",
        )
    elif not claimed and (others := sorted(pool.desired.promise.per_node.keys() - {_GPU})):
        losses.refuse(
            pool,
            "sharing.mig.strategy" if target.sharing.mig else "sharing",
            f"Karpenter starts no node for pods that request {', '.join(others)}: it supports only whole GPUs",
            "write mig: {strategy: single}, or whole GPUs",
        )
    if reservation is not None and not reservation.id.startswith("cr-"):
        losses.refuse(
            pool,
            f"capacity.reserved.eks.{reservation.form}",
            "Karpenter selects reservations by id, not by resource group",
            "write the id of a reservation, cr-...",
        )
    if not claimed and (target.sharing.mig or target.sharing.slicing):
        count = pool.desired.promise.per_node.get(_GPU, 0)
        losses.note(
            f"{pool.name}: Karpenter counts {target.machine.gpus:g} GPUs on a node where pods see {count}, so it "
            "starts more nodes than they need"
        )


def _node_pool(pool: ExportedPool, losses: Losses) -> dict[str, object]:
    target, name = pool.desired.target, _name(pool)
    if target.nodes.minimum and target.nodes.autoscaled:
        losses.note(f"{pool.name}: nodes.autoscaling.min {target.nodes.minimum}: Karpenter starts from no nodes")
    if not target.nodes.autoscaled:
        losses.note(f"{pool.name}: nodes.count: replicas needs Karpenter's feature gate StaticCapacity")
    for field, why in _unwritten(target):
        losses.note(f"{pool.name}: {field}: {why}")
    labels = {key: value for key, value in texts(group_of(pool), "labels").items() if key not in MARKS}
    spec: dict[str, object] = {
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": name},
                "requirements": _requirements(target),
                "taints": [
                    {"key": taint.key, **({"value": taint.value} if taint.value else {}), "effect": taint.effect}
                    for taint in sorted(target.taints)
                ],
                "expireAfter": "Never",
            },
        },
        "disruption": {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": _IDLE,
            "budgets": [{"nodes": target.upgrade.max_unavailable or "1"}],
        },
    }
    if target.nodes.autoscaled:
        spec["limits"] = {_GPU: str(int(target.machine.devices * target.nodes.maximum))}
    else:
        spec["replicas"] = target.nodes.count
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}


def _unwritten(target: Target) -> Iterator[tuple[str, str]]:
    if target.high_speed:
        yield "network.highSpeed", "Karpenter attaches EFA to nodes for pods that request vpc.amazonaws.com/efa"
    if target.placement not in ("", NONE):
        yield "placement", "Karpenter's nodes are in no placement group"
    if "keyName" in target.native:
        yield "eks.keyName", "Karpenter's nodes have no SSH key"
    if own_image(target) and node_settings(target).keys() - {MAX_PODS}:
        yield "settings of the nodes", "write them as NodeConfig in userData of the EC2NodeClass"


def _requirements(target: Target) -> list[dict[str, object]]:
    wanted = {
        "node.kubernetes.io/instance-type": [machine.name for machine in target.all_machines],
        "karpenter.sh/capacity-type": [target.capacity.type],
        "topology.kubernetes.io/zone": sorted(target.zones),
    }
    return [{"key": key, "operator": "In", "values": values} for key, values in wanted.items() if values]


def _node_class(pool: ExportedPool, owned: str) -> dict[str, object]:
    target, group = pool.desired.target, group_of(pool)
    data = tree(template_of(pool), "LaunchTemplateData")
    rocket, reservation = is_bottlerocket(text(group, "amiType")), target.capacity.reservation
    metadata = tree(data, "MetadataOptions")
    written, settings = text(data, "UserData"), node_settings(target).keys()
    # The whole user data of an own image names the cluster, which Karpenter does itself.
    own_data = written and not own_image(target) and (rocket or settings - {MAX_PODS})
    spec: dict[str, object] = {
        "role": text(group, "nodeRole").rpartition("/")[2],
        **_image(data, rocket=rocket),
        "subnetSelectorTerms": [{"id": subnet} for subnet in strings(group, "subnets")],
        "securityGroupSelectorTerms": [
            {"tags": {owned: "owned"}},
            *({"id": group} for group in declared_groups(target)),
        ],
        "detailedMonitoring": True if at(data, "Monitoring", "Enabled") else None,
        "capacityReservationSelectorTerms": [{"id": reservation.id}] if reservation else None,
        "kubelet": {"maxPods": target.max_pods} if target.max_pods else None,
        # On Amazon Linux the maximum pods alone are `kubelet`; Karpenter merges other settings as EKS does.
        "userData": base64.b64decode(written).decode() if own_data else None,
        "blockDeviceMappings": [_device(device) for device in trees(data, "BlockDeviceMappings")],
        "metadataOptions": {
            "httpTokens": metadata.get("HttpTokens"),
            "httpPutResponseHopLimit": metadata.get("HttpPutResponseHopLimit"),
        },
        "tags": dict(sorted(target.tags.items())),
    }
    kept = {key: value for key, value in spec.items() if value not in (None, {}, [])}
    api = "karpenter.k8s.aws/v1"
    return {"apiVersion": api, "kind": "EC2NodeClass", "metadata": {"name": _name(pool)}, "spec": kept}


def _image(data: Mapping[str, object], *, rocket: bool) -> dict[str, object]:
    """Return the image; Karpenter itself writes the user data with which nodes of an own image join."""
    if own := data.get("ImageId"):
        return {"amiFamily": "AL2023", "amiSelectorTerms": [{"id": own}]}
    return {"amiSelectorTerms": [{"alias": "bottlerocket@latest" if rocket else "al2023@latest"}]}


def _device(device: Mapping[str, object]) -> dict[str, object]:
    disk = tree(device, "Ebs")
    ebs = {
        "volumeSize": f"{disk['VolumeSize']}Gi" if "VolumeSize" in disk else None,
        "volumeType": disk.get("VolumeType"),
        "iops": disk.get("Iops"),
        "throughput": disk.get("Throughput"),
        "encrypted": disk.get("Encrypted"),
        "kmsKeyID": disk.get("KmsKeyId"),
        "deleteOnTermination": disk.get("DeleteOnTermination"),
    }
    kept = {name: value for name, value in ebs.items() if value is not None}
    return {"deviceName": device.get("DeviceName"), "ebs": kept}


def _name(pool: ExportedPool) -> str:
    """Return an object name: lower-case letters, digits, and hyphens."""
    return _NOT_NAME.sub("-", pool.name.lower()).strip("-")
