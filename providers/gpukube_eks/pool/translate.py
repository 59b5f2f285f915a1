"""Translates a target to EKS: normalized fields, labels, taints, and native requests.

In scope: spec to request. Out of scope: what EKS rejects (`rules.checks`), reading live groups (`observe`), the content
of launch templates (`template`).

A creation is one request with two calls, for the launch template and the node group: the client creates or reuses the
template first. Always sent, because the API has other defaults: amiType (the default image has no driver), the instance
type, capacityType, all three sizes, and updateConfig (the default starts new machines before it stops old ones, which
scarce GPUs do not allow). nodeRole and subnets are required; if the spec omits them, they come from the live cluster
(`placement`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.core.binding import body, desired_fields
from gpukube.core.fields import PLACEMENT, known
from gpukube.core.jsontree import text, tree, trees
from gpukube.core.values import PROTECT_LABEL, Desired, Request
from gpukube_eks.facts.images import CUSTOM, is_bottlerocket, require_image
from gpukube_eks.facts.network import fabric_of
from gpukube_eks.pool.fields import BINDINGS, RESOURCE_TAG, GroupDraft
from gpukube_eks.pool.launch import group_members
from gpukube_eks.pool.marks import FORM
from gpukube_eks.pool.native import flatten_native
from gpukube_eks.pool.own_image import own_image
from gpukube_eks.pool.placement_groups import COMPACT, group_in
from gpukube_eks.pool.settings import TEMPLATE_DATA, carried, has_carried
from gpukube_eks.pool.template import make_placement_group, make_template, tags_of_others, template_name
from gpukube_eks.userdata.bottlerocket import sharing_fields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.values import ClusterRef, Observed, Ownership, Promise, Target
    from gpukube.gpu.catalog import Machine

CREATE: Final = "create_nodegroup"
DELETE: Final = "delete_nodegroup"
KEEP: Final = "create_launch_template"
KEPT: Final = "kept by gpukube for the next node group"
"""Description of a template's version that outlives the deletion of a group that does not use it."""

LEFTOVER: Final = "LeftoverTemplate"
"""Status of a pool that has only its launch template."""
ACCELERATOR_LABEL: Final = "k8s.amazonaws.com/accelerator"
"""Node label for the cluster autoscaler. Without it, it treats a node as one without GPUs until the plugin registers,
and starts another (kubernetes/autoscaler#1949, cluster-autoscaler/cloudprovider/aws GPULabel)."""
OPERANDS_LABEL: Final = "nvidia.com/gpu.deploy.operands"
"""Node label that keeps the GPU Operator, which runs on all nodes with NVIDIA devices, off nodes with their own plugin
(NVIDIA/cloud-native-docs, gpu-operator/getting-started; bottlerocket-os/bottlerocket#4309)."""
_GPU: Final = "nvidia.com/gpu"
_FIRST_VERSION: Final = "1"
_AUTOSCALER_NAMES: Final[Mapping[str, str]] = {
    "T4": "nvidia-tesla-t4",
    "V100": "nvidia-tesla-v100",
    "A100": "nvidia-tesla-a100",
}
"""Chips whose name in the autoscaler's list is not just nvidia- and the chip (aws_cloud_provider.go)."""


def translate_pool(target: Target, ownership: Ownership, promise: Promise) -> Desired:
    """Translate a checked target; the creation sets gpukube's labels, and fails if the group already exists."""
    # To the autoscaler, a node with this label and without nvidia.com/gpu is not ready (gpu_processor.go).
    accelerator = {} if target.plugin_owner == "dra" else {ACCELERATOR_LABEL: accelerator_name(target.machine)}
    labels = {
        **accelerator,
        **target.labels,
        **ownership.labels,
        **target.marks,
    }
    labels |= {PROTECT_LABEL: "true"} if target.protect else {}
    labels |= {OPERANDS_LABEL: "false"} if target.image == "bottlerocket" else {}
    tags = {**target.tags, **resource_tags(target, promise)}
    ami_type = CUSTOM if own_image(target) else require_image(target.image, target.machine).name
    draft = GroupDraft(target, labels, tags, ami_type)
    sharing = sharing_fields(draft.target.sharing) if is_bottlerocket(draft.ami_type) else {}
    return Desired(
        target=target,
        ownership=ownership,
        promise=promise,
        fields=known({**desired_fields(BINDINGS, draft), **sharing, **flatten_native(draft.target.native)}),
        labels=labels,
        effective_taints=target.taints,
        create=Request(
            "eks", CREATE, _params(target, make_template(target, rocket=is_bottlerocket(ami_type)), _body(draft))
        ),
        copy=FORM.copy_of(target.owner, target.pool, protected=target.protect),
        fabric=fabric_of(target),
    )


def translate_delete(cluster: ClusterRef, observed: Observed) -> Request:
    """Return the request that deletes a node group, then its own placement group and template.

    At once if only the template is left.
    """
    path = {"clusterName": cluster.name, "nodegroupName": observed.name}
    name = template_name(cluster.name, observed.name)
    params: dict[str, object] = {"nodegroup": path, "launchTemplate": {"LaunchTemplateName": name}}
    if observed.fields.get(PLACEMENT) == COMPACT:
        params["placementGroup"] = {"GroupName": name}
    return Request("eks", DELETE, params)


def translate_carry(desired: Desired, observed: Observed) -> Desired:
    """Return a pool whose creation has what others wrote into the live launch template: user data, and some tags.

    Raises:
        SpecError: The new pool cannot have it.
    """
    desired, kept = carried(desired, observed), tags_of_others(tree(observed.native, TEMPLATE_DATA))
    if not kept:
        return desired
    template = tree(desired.create.params, "launchTemplate")
    data = tree(template, "LaunchTemplateData")
    data["TagSpecifications"] = [*trees(data, "TagSpecifications"), *kept]
    params = {**desired.create.params, "launchTemplate": {**template, "LaunchTemplateData": data}}
    return replace(desired, create=replace(desired.create, params=params))


def translate_keep(desired: Desired, observed: Observed) -> Request | None:
    """Return the call that writes the new group's launch template before the old group is deleted.

    Only if it has content of others: with the old group, nothing would name the template that has it.
    """
    if not has_carried(desired, observed) and not tags_of_others(template_data(desired)):
        return None
    template = {**tree(desired.create.params, "launchTemplate"), "VersionDescription": KEPT}
    group = {"nodegroupName": text(desired.create.params, "nodegroup", "nodegroupName")}
    return Request("eks", KEEP, {"launchTemplate": template, "nodegroup": group})


def translate_recreate(desired: Desired, observed: Observed) -> Request | None:
    """Return the creation that reuses a template without its group; None for a failed group: delete it first."""
    return desired.create if observed.status == LEFTOVER else None


def group_of(desired: Desired) -> Mapping[str, object]:
    """Return the arguments of CreateNodegroup."""
    return tree(desired.create.params, "nodegroup")


def template_data(desired: Desired) -> Mapping[str, object]:
    """Return the data of the launch template in the creation."""
    return tree(desired.create.params, "launchTemplate", "LaunchTemplateData")


def with_data(desired: Desired, data: Mapping[str, object]) -> Desired:
    """Return the pool with other data of the launch template, and its own placement group only if the data names it."""
    params = desired.create.params
    template = {**tree(params, "launchTemplate"), "LaunchTemplateData": data}
    changed = _params(desired.target, template, tree(params, "nodegroup"))
    return replace(desired, create=replace(desired.create, params=changed))


def with_place(desired: Desired, role: str, subnets: Sequence[str]) -> Desired:
    """Add role and subnets that the spec omits to the request."""
    group = {**group_of(desired), "nodeRole": role, "subnets": list(subnets)}
    return replace(desired, create=replace(desired.create, params={**desired.create.params, "nodegroup": group}))


def accelerator_name(machine: Machine) -> str:
    """Return the cluster autoscaler's name of the GPU: nvidia-tesla-t4, nvidia-l40s, nvidia-h100."""
    chip = machine.model.chip
    return _AUTOSCALER_NAMES.get(chip, f"nvidia-{chip.lower()}")


def resource_tags(target: Target, promise: Promise) -> dict[str, str]:
    """Return tags for devices that the autoscaler cannot derive from the instance type; it counts a fraction as 0.

    No tag describes devices of the DRA driver.
    """
    if target.plugin_owner == "dra":
        return {}
    known = {_GPU: 0 if target.machine.is_fractional else target.machine.devices}
    return {
        f"{RESOURCE_TAG}{name}": str(count)
        for name, count in promise.per_node.items()
        if known.get(name) != count
    }  # fmt: skip


def _params(target: Target, template: Mapping[str, object], group: Mapping[str, object]) -> dict[str, object]:
    """Return the parameters of a creation."""
    params: dict[str, object] = {"launchTemplate": template, "nodegroup": group}
    if group_in(tree(template, "LaunchTemplateData")) == template["LaunchTemplateName"]:
        params["placementGroup"] = make_placement_group(target)
    return params


def _body(draft: GroupDraft) -> dict[str, object]:
    target = draft.target
    template = {"name": template_name(target.cluster.name, target.name), "version": _FIRST_VERSION}
    names = {"clusterName": target.cluster.name, "nodegroupName": target.name, "launchTemplate": template}
    return {
        **names,
        **body(BINDINGS, draft),
        **group_members(target.native),
    }  # a structure in the spec replaces the default
