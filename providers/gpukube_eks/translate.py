"""A target in the terms of EKS: normalised fields, labels, taints and the native requests.

Lives here: the way from the spec to the wire. Must not live here: what EKS refuses (`rules`), reading live groups
(`observe`), the content of launch templates (`template`).

One creation is two calls, the launch template and the node group, and one request: the client makes or reuses the
template first. Always sent, because the API's own answer to silence is another one: amiType (silence means an image
without a driver), the instance type, capacityType, all three sizes, and updateConfig (silence starts new machines
before it stops old ones, which scarce GPUs do not allow). nodeRole and subnets are required; where the spec leaves them
open, the live cluster knows (`places`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.core.fields import (
    COUNT,
    DISK_SIZE,
    DISK_TYPE,
    IMAGE,
    INSTANCE_TYPE,
    KUBERNETES_VERSION,
    LEAST,
    MAX_PODS,
    MOST,
    PROTECTION,
    TAINTS,
    ZONES,
    FieldPath,
    known,
    label,
    tag,
)
from gpukube.core.jsontree import tree
from gpukube.core.values import OWNER_LABEL, POOL_LABEL, PROTECT_LABEL, Desired, Request
from gpukube_eks.ami import is_bottlerocket, require_image
from gpukube_eks.bottlerocket import sharing_fields
from gpukube_eks.marks import FORM, copy_tags
from gpukube_eks.native import flatten_native, merge_native
from gpukube_eks.purchase import capacity_fields, capacity_type, is_block
from gpukube_eks.template import make_template, template_name
from gpukube_eks.upgrades import update_config, upgrade_fields, upgrade_members

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.values import ClusterRef, Observed, Ownership, Promise, Taint, Target
    from gpukube.gpu.catalogue import Machine

__all__ = [
    "ACCELERATOR_LABEL",
    "CREATE",
    "DELETE",
    "EFFECTS",
    "LEFTOVER",
    "OPERANDS_LABEL",
    "RESOURCE_FIELD",
    "RESOURCE_TAG",
    "accelerator_name",
    "group_of",
    "native_taint",
    "resource_tags",
    "size_fields",
    "tag_fields",
    "translate_delete",
    "translate_pool",
    "translate_recreate",
    "with_place",
]

CREATE: Final = "create_nodegroup"
DELETE: Final = "delete_nodegroup"

LEFTOVER: Final = "LeftoverTemplate"
"""Status of a pool of which only the launch template is there."""
ACCELERATOR_LABEL: Final = "k8s.amazonaws.com/accelerator"
"""Without it the cluster autoscaler takes a node for one without GPUs until the plugin has registered, and starts
another (kubernetes/autoscaler#1949, cluster-autoscaler/cloudprovider/aws GPULabel)."""
RESOURCE_TAG: Final = "k8s.io/cluster-autoscaler/node-template/resources/"
"""Tag of a node group: devices of a node that is not there yet (cluster-autoscaler 1.28, aws_manager.go)."""
RESOURCE_FIELD: Final = ("nodes", "autoscaling", "resources")
"""Path above the fields of tags that tell of NVIDIA devices: these are ours alone, other tags may be anybody's."""
EFFECTS: Final[Mapping[str, str]] = {
    "NoSchedule": "NO_SCHEDULE",
    "PreferNoSchedule": "PREFER_NO_SCHEDULE",
    "NoExecute": "NO_EXECUTE",
}
"""Effect in Kubernetes -> TaintEffect of EKS."""
OPERANDS_LABEL: Final = "nvidia.com/gpu.deploy.operands"
"""Keeps a GPU Operator, which goes to every node with an NVIDIA device, off nodes that run a plugin of their own
(NVIDIA/cloud-native-docs, gpu-operator/getting-started; bottlerocket-os/bottlerocket#4309)."""
_VENDOR: Final = "nvidia.com/"
_GPU: Final = "nvidia.com/gpu"
_FIRST_VERSION: Final = "1"
_AUTOSCALER_NAMES: Final[Mapping[str, str]] = {
    "T4": "nvidia-tesla-t4",
    "V100": "nvidia-tesla-v100",
    "A100": "nvidia-tesla-a100",
}
"""Chips that the autoscaler's own list spells otherwise than by nvidia- and the chip (aws_cloud_provider.go)."""


def translate_pool(target: Target, ownership: Ownership, promise: Promise) -> Desired:
    """Translate a checked target; the create call carries our marks, and fails where a group of that name is."""
    labels = {
        ACCELERATOR_LABEL: accelerator_name(target.machine),
        **target.labels,
        **ownership.labels,
        OWNER_LABEL: target.owner,
        POOL_LABEL: target.pool,
    }
    labels |= {PROTECT_LABEL: "true"} if target.protect else {}
    labels |= {OPERANDS_LABEL: "false"} if target.image == "bottlerocket" else {}
    tags = {**target.tags, **resource_tags(target, promise)}
    image = require_image(target.image, target.machine)
    body = _body(target, image.name, labels, {**tags, **copy_tags(target)})
    return Desired(
        target=target,
        ownership=ownership,
        promise=promise,
        fields=_fields(target, image.name, labels, tags),
        labels=labels,
        effective_taints=target.taints,
        create=Request("eks", CREATE, {"launchTemplate": make_template(target, image), "nodegroup": body}),
        copy=FORM.copy_of(target.owner, target.pool, protected=target.protect),
    )


def translate_delete(cluster: ClusterRef, observed: Observed) -> Request:
    """Delete a node group; its template goes when it is gone, or at once where only that is there."""
    path = {"clusterName": cluster.name, "nodegroupName": observed.name}
    template = template_name(cluster.name, observed.name)
    return Request("eks", DELETE, {"nodegroup": path, "launchTemplate": {"LaunchTemplateName": template}})


def translate_recreate(desired: Desired, observed: Observed) -> Request | None:
    """Reuse a template without its group; a failed group itself must be deleted first."""
    return desired.create if observed.status == LEFTOVER else None


def group_of(desired: Desired) -> Mapping[str, object]:
    """Give the arguments of CreateNodegroup."""
    return tree(desired.create.params, "nodegroup")


def with_place(desired: Desired, role: str, subnets: Sequence[str]) -> Desired:
    """Put role and subnets that were left open into the request."""
    group = {**group_of(desired), "nodeRole": role, "subnets": list(subnets)}
    return replace(desired, create=replace(desired.create, params={**desired.create.params, "nodegroup": group}))


def accelerator_name(machine: Machine) -> str:
    """Name the GPU as the cluster autoscaler does: nvidia-tesla-t4, nvidia-l40s, nvidia-h100."""
    chip = machine.model.chip
    return _AUTOSCALER_NAMES.get(chip, f"nvidia-{chip.lower()}")


def size_fields(minimum: int, maximum: int) -> dict[FieldPath, object]:
    """Name the sizes of a group: a fixed count where both are one, else bounds.

    EKS keeps no word on who moves the number: a group with equal bounds is a fixed one, whoever made it.
    """
    if minimum == maximum:
        return {COUNT: minimum}
    return {LEAST: minimum, MOST: maximum}


def tag_fields(tags: Mapping[str, str]) -> dict[FieldPath, object]:
    """Name the tags of a group: those that tell the autoscaler of NVIDIA devices apart from all others."""
    prefix = f"{RESOURCE_TAG}{_VENDOR}"
    return {
        FieldPath(*RESOURCE_FIELD, key.removeprefix(RESOURCE_TAG)) if key.startswith(prefix) else tag(key): value
        for key, value in tags.items()
    }


def native_taint(taint: Taint) -> dict[str, str]:
    """Write a taint as EKS does; an effect that it has no word for stays as it is."""
    value = {"value": taint.value} if taint.value else {}
    return {"key": taint.key, **value, "effect": EFFECTS.get(taint.effect, taint.effect)}


def _sizes(target: Target) -> dict[str, int]:
    """EKS wants a largest size of 1 at least, for an empty group too (botocore eks NodegroupScalingConfig)."""
    nodes = target.nodes
    return {"minSize": nodes.minimum, "maxSize": max(1, nodes.maximum), "desiredSize": nodes.count}


def resource_tags(target: Target, promise: Promise) -> dict[str, str]:
    """Tell the autoscaler of devices that the instance type does not tell it; a fraction of a GPU counts 0 there."""
    known = {_GPU: 0 if target.machine.is_fractional else target.machine.devices}
    return {
        f"{RESOURCE_TAG}{name}": str(count)
        for name, count in promise.per_node.items()
        if known.get(name) != count
    }  # fmt: skip


def _body(target: Target, ami_type: str, labels: Mapping[str, str], tags: Mapping[str, str]) -> dict[str, object]:
    template = {"name": template_name(target.cluster.name, target.name), "version": _FIRST_VERSION}
    body: dict[str, object] = {
        "clusterName": target.cluster.name,
        "nodegroupName": target.name,
        "scalingConfig": _sizes(target),
        "instanceTypes": [target.machine.name],
        "amiType": ami_type,
        "capacityType": capacity_type(target.capacity),
        "launchTemplate": template,
        "labels": dict(sorted(labels.items())),
        "updateConfig": update_config(target),
    }
    if is_block(target.capacity):
        del body["instanceTypes"]  # EKS takes it in the launch template only (docs: eks/capacity-blocks-mng)
    if target.kubernetes_version:
        body["version"] = target.kubernetes_version
    if target.taints:
        body["taints"] = [native_taint(taint) for taint in sorted(target.taints)]
    body["tags"] = dict(sorted(tags.items()))
    return merge_native(body, target.native)


def _fields(
    target: Target, ami_type: str, labels: Mapping[str, str], tags: Mapping[str, str]
) -> dict[FieldPath, object]:
    sizes = _sizes(target)
    fields: dict[FieldPath, object] = {
        INSTANCE_TYPE: target.machine.name,
        IMAGE: ami_type,
        **capacity_fields(target.capacity),
        KUBERNETES_VERSION: target.kubernetes_version or None,
        MAX_PODS: target.max_pods,
        ZONES: tuple(sorted(target.zones)) or None,
        DISK_SIZE: target.disk.size_gib,
        DISK_TYPE: target.disk.type,
        TAINTS: tuple(sorted(str(taint) for taint in target.taints)),
        PROTECTION: target.protect,
        **(sharing_fields(target.sharing) if is_bottlerocket(ami_type) else {}),
        **size_fields(sizes["minSize"], sizes["maxSize"]),
        **{label(key): value for key, value in labels.items() if key != PROTECT_LABEL},
        **tag_fields(tags),
        **upgrade_fields(upgrade_members(target)),
        **flatten_native(target.native),
    }
    return known(fields)
