"""The fields of an EKS node group: one row each, from the spec to the wire format and back.

In scope: the table, and the small functions that unusual rows need. Out of scope: what EKS rejects (`rules.checks`),
calls (`change`), native members (`native`), which a spec writes with the API's names.

A group is two objects. `wire` is a path in the group; disk, user data, and reservation are in the launch template, so
their rows only read it, and `template` writes it. Not in the table: Bottlerocket's settings for a sharing (several at
once: `bottlerocket`), the names of group and template, and role and subnets, which come from the live cluster.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, cast

from gpukube.core import fields as paths
from gpukube.core.binding import Binding, Draft, Effect, abilities, adjust_taints
from gpukube.core.fields import FieldPath, label, tag
from gpukube.core.jsontree import integer, strings, text, texts, tree, trees
from gpukube.core.owners import ADVERTISER_LABEL, CONFIG_LABEL, MIG_CONFIG_LABEL
from gpukube.core.values import PROTECT_LABEL, Ability, Taint
from gpukube_eks.facts.images import CUSTOM
from gpukube_eks.pool.disks import is_encrypted
from gpukube_eks.pool.marks import FORM, copy_tags
from gpukube_eks.pool.network import read_network
from gpukube_eks.pool.placement_groups import read_placement
from gpukube_eks.pool.purchase import capacity_fields, capacity_type, is_block, read_capacity
from gpukube_eks.pool.settings import node_settings
from gpukube_eks.pool.template import template_fields, template_name
from gpukube_eks.pool.upgrades import NO_SURGE, SURGE, update_config, upgrade_fields, upgrade_members

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpukube.core.values import Change, Disk, TaintEffect, Target, UpdateRow

UPDATE_CONFIG: Final = "update_nodegroup_config"
UPDATE_VERSION: Final = "update_nodegroup_version"
TAG: Final = "tag_resource"
UNTAG: Final = "untag_resource"
RESOURCE_TAG: Final = "k8s.io/cluster-autoscaler/node-template/resources/"
"""Tag of a node group: devices of a future node (cluster-autoscaler 1.28, aws_manager.go)."""
RESOURCE_FIELD: Final = ("nodes", "autoscaling", "resources")
"""Path above the fields of tags for NVIDIA devices: gpukube owns these, other tags may have any owner."""
BLOCK_FIELD: Final = FieldPath("capacity", "reserved", "eks", "capacityBlock")
RESERVATION_FIELD: Final = FieldPath("capacity", "reserved", "eks", "capacityReservation")
EFFECTS: Final[Mapping[str, str]] = {
    "NoSchedule": "NO_SCHEDULE",
    "PreferNoSchedule": "PREFER_NO_SCHEDULE",
    "NoExecute": "NO_EXECUTE",
}
"""Effect in Kubernetes -> TaintEffect of EKS."""
_OUR_TAGS: Final = f"{RESOURCE_TAG}nvidia.com/"
_SYSTEM: Final = "eks.amazonaws.com/"


@dataclass(frozen=True, slots=True)
class GroupDraft(Draft):
    """A pool during translation.

    Attributes:
        tags: As sent, without the copy of gpukube's labels.
        ami_type: The image.
    """

    tags: Mapping[str, str]
    ami_type: str


@dataclass(frozen=True, slots=True)
class Live:
    """A live group.

    Attributes:
        group: As DescribeNodegroup returns it.
        data: LaunchTemplateData of its template's version; empty without a template.
        zones: Subnet id -> Availability Zone.
        template: The comparable fields of the data.
    """

    group: Mapping[str, object]
    data: Mapping[str, object]
    zones: Mapping[str, str]
    template: Mapping[FieldPath, object]

    @classmethod
    def of(
        cls, group: Mapping[str, object], data: Mapping[str, object], zones: Mapping[str, str], cluster_group: str = ""
    ) -> Live:
        """Return a live group; parses the template's fields once.

        Args:
            group: See the attribute.
            data: See the attribute.
            zones: See the attribute.
            cluster_group: The cluster's own security group; "" if unknown.
        """
        fields = {**template_fields(data, text(group, "amiType")), **read_network(data, cluster_group)}
        if data:
            own = template_name(text(group, "clusterName"), text(group, "nodegroupName"))
            fields[paths.PLACEMENT] = read_placement(data, own)
        return cls(group, data, zones, fields)


# Both ways


def native_taint(taint: Taint) -> dict[str, str]:
    """Return a taint in EKS's form; an effect without an EKS name stays unchanged."""
    value = {"value": taint.value} if taint.value else {}
    return {"key": taint.key, **value, "effect": EFFECTS.get(taint.effect, taint.effect)}


def read_taint(native: Mapping[str, object]) -> Taint:
    """Parse the result of `native_taint`."""
    word = str(native.get("effect"))
    effect = next((ours for ours, theirs in EFFECTS.items() if theirs == word), word)
    return Taint(str(native.get("key", "")), str(native.get("value") or ""), cast("TaintEffect", effect))


def _size(sizes: Mapping[str, object], path: FieldPath) -> int | None:
    """Return a fixed count if both bounds are equal, else a bound.

    EKS does not record who changes the size: a group with equal bounds counts as fixed, whoever created it.
    """
    least, most = integer(sizes, "minSize"), integer(sizes, "maxSize")
    if least is None or most is None:
        return None
    if least == most:
        return least if path == paths.COUNT else None
    return {paths.LEAST: least, paths.MOST: most}.get(path)


def _sizes(target: Target) -> dict[str, object]:
    """Return the sizes; EKS requires a maxSize of at least 1, even if empty (botocore eks NodegroupScalingConfig)."""
    nodes = target.nodes
    return {"minSize": nodes.minimum, "maxSize": max(1, nodes.maximum), "desiredSize": nodes.count}


def _devices(tags: Mapping[str, str]) -> dict[str, str]:
    return {key.removeprefix(RESOURCE_TAG): value for key, value in tags.items() if key.startswith(_OUR_TAGS)}


def _others(tags: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in tags.items() if not key.startswith(_OUR_TAGS)}


def written_fields(tags: frozenset[str]) -> frozenset[FieldPath]:
    """Return the fields of tags."""
    return frozenset(
        FieldPath(*RESOURCE_FIELD, key.removeprefix(RESOURCE_TAG)) if key.startswith(_OUR_TAGS) else tag(key)
        for key in tags
    )


# Reading a live group


def instance_type_of(native: Mapping[str, object], data: Mapping[str, object]) -> str:
    """Return the first instance type: the group's own, or else its template's."""
    types = strings(native, "instanceTypes")
    return types[0] if types else str(data.get("InstanceType") or "")


def _live_zones(live: Live) -> tuple[str, ...] | None:
    names = strings(live.group, "subnets")
    return tuple(sorted({live.zones[name] for name in names if name in live.zones})) or None


def _live_labels(live: Live) -> dict[str, str]:
    found = texts(live.group, "labels")
    return {key: value for key, value in found.items() if not key.startswith(_SYSTEM) and key != PROTECT_LABEL}


def _live_tags(live: Live) -> dict[str, str]:
    found = texts(live.group, "tags")
    return {key: value for key, value in found.items() if not (key.startswith("aws:") or FORM.is_own(key))}


def _bought(live: Live, path: FieldPath) -> object:
    return read_capacity(live.group.get("capacityType"), live.data).get(path)


def _disk_size(live: Live) -> object:
    """Return the disk size; EKS omits it from groups with a launch template."""
    size = live.template.get(paths.DISK_SIZE)
    return live.group.get("diskSize") if size is None else size


def _settings(draft: GroupDraft, above: str) -> dict[str, object]:
    return {path.key: value for path, value in node_settings(draft.target).items() if path[0] == above}


def _live_settings(live: Live, above: str) -> dict[str, object]:
    return {path.key: value for path, value in live.template.items() if path[0] == above}


def _local_storage(live: Live) -> object:
    """Return how the machine's disks are used; without a setting they are left to pods."""
    return live.template.get(paths.LOCAL_STORAGE, "raw" if live.data else None)


# Adjusting a row to the values of a change


def _version(change: Change, row: UpdateRow) -> UpdateRow:
    """Reject downgrades: EKS accepts only the cluster's version (docs: eks/update-managed-node-group)."""
    old, new = _minor(change.old), _minor(change.new)
    if old and new and new < old:
        sentence = f"a node group cannot go back to an older version: {change.new} is before {change.old}"
        return replace(row, kind="refused", sentence=sentence, call="")
    return row


def _minor(value: object) -> tuple[int, ...]:
    found = re.fullmatch(r"(\d+)\.(\d+)", str(value))
    return tuple(map(int, found.groups())) if found else ()


def _count(change: Change, row: UpdateRow) -> UpdateRow:
    """Mark a smaller size disruptive: EKS terminates nodes despite PDBs (docs: eks/update-managed-node-group)."""
    old, new = change.old, change.new
    if isinstance(old, int) and isinstance(new, int) and new < old:
        return replace(row, kind="disruptive", sentence="EKS terminates nodes at once, with the pods on them")
    return row


def _most(change: Change, row: UpdateRow) -> UpdateRow:
    """Mark the removal of max disruptive: the size becomes fixed, and nodes above it are terminated."""
    if isinstance(change.old, int) and change.new is None:
        sentence = "EKS terminates the nodes above the fixed size at once, with the pods on them"
        return replace(row, kind="disruptive", sentence=sentence)
    return _count(change, row)


def _advertiser(change: Change, row: UpdateRow) -> UpdateRow:
    if change.old is None:
        return row
    sentence = "the component that advertises the GPUs stops: the nodes have no GPUs until another one runs"
    return replace(row, kind="disruptive", sentence=sentence)


_SDK: Final = "botocore eks/2017-11-01 UpdateNodegroupConfigRequest"
_TERRAFORM: Final = "hashicorp/terraform-provider-aws internal/service/eks/node_group.go (ForceNew)"
TEMPLATES: Final = "docs: eks/launch-templates"
STOPS_FIRST: Final = "draining each; an old node stops before a new one starts unless upgrade.maxSurge is above 0"
"""How EKS replaces nodes with MINIMAL, gpukube's default: a pool of one node has none in the meantime."""
ROLL: Final = f"a new version of the launch template: EKS replaces every node, {STOPS_FIRST}"
_NEXT_UPDATE: Final = Effect(
    "in-place", "takes effect at the next update", f"{_SDK}, NodegroupUpdateConfig", UPDATE_CONFIG
)
_BOUND: Final = Effect(
    "in-place",
    "the Auto Scaling group uses the new bound, and starts or terminates nodes as needed",
    _SDK,
    UPDATE_CONFIG,
)
_NEW_DISK: Final = Effect("disruptive", ROLL, TEMPLATES, UPDATE_VERSION)
_NEW_USER_DATA: Final = Effect("disruptive", ROLL, f"{TEMPLATES} (user data)", UPDATE_VERSION)
_EXACT: Final = Ability("exact")
_NO_FIELD: Final = "EKS has no field for it"
_BY_USER_DATA: Final = "the launch template's user data"
_BY_TEMPLATE: Final = "the disk of the pool's launch template"


def _disk_row(path: FieldPath, get: Callable[[Disk], object]) -> Binding[GroupDraft, Live]:
    """Return the row of a property of the disk in the launch template."""
    return Binding(
        path=path,
        get=lambda draft: get(draft.target.disk),
        read=lambda live: live.template.get(path),
        effect=_NEW_DISK,
        ability=Ability("emulated", _BY_TEMPLATE, _NO_FIELD),
    )


BINDINGS: Final[tuple[Binding[GroupDraft, Live], ...]] = (
    Binding(
        path=paths.COUNT,
        wire=("scalingConfig",),
        spec="nodes",
        get=lambda draft: _size(_sizes(draft.target), paths.COUNT),
        write=lambda draft: _sizes(draft.target),
        read=lambda live: _size(tree(live.group, "scalingConfig"), paths.COUNT),
        effect=Effect("in-place", "EKS adds nodes", _SDK, UPDATE_CONFIG),
        ability=_EXACT,
        adjust=_count,
    ),
    Binding(
        path=paths.LEAST,
        get=lambda draft: _size(_sizes(draft.target), paths.LEAST),
        read=lambda live: _size(tree(live.group, "scalingConfig"), paths.LEAST),
        effect=_BOUND,
    ),
    Binding(
        path=paths.MOST,
        get=lambda draft: _size(_sizes(draft.target), paths.MOST),
        read=lambda live: _size(tree(live.group, "scalingConfig"), paths.MOST),
        effect=_BOUND,
        adjust=_most,
    ),
    Binding(
        path=FieldPath(*RESOURCE_FIELD, "*"),
        get=lambda draft: _devices(draft.tags),
        read=lambda live: _devices(_live_tags(live)),
        effect=Effect(
            "in-place",
            "the cluster autoscaler gets the new device counts of future nodes",
            "kubernetes/autoscaler cluster-autoscaler/cloudprovider/aws aws_manager.go; botocore eks TagResource",
            TAG,
        ),
    ),
    Binding(
        path=paths.INSTANCE_TYPE,
        wire=("instanceTypes",),
        get=lambda draft: draft.target.machine.name,
        # For a block EKS accepts it only in the launch template (docs: eks/capacity-blocks-mng).
        write=lambda draft: None if is_block(draft.target.capacity) else [m.name for m in draft.target.all_machines],
        read=lambda live: instance_type_of(live.group, live.data) or None,
        effect=Effect("replace", "the instance type can be set only at creation", _TERRAFORM),
    ),
    Binding(
        path=paths.INSTANCE_TYPES,
        get=lambda draft: tuple(machine.name for machine in draft.target.machines[1:]) or None,
        read=lambda live: strings(live.group, "instanceTypes")[1:] or None,
        effect=Effect("replace", "the instance types and their order can be set only at creation", _TERRAFORM),
        ability=_EXACT,
    ),
    Binding(
        path=paths.IMAGE,
        wire=("amiType",),
        get=lambda draft: draft.ami_type,
        write=lambda draft: None if draft.ami_type == CUSTOM else draft.ami_type,
        read=lambda live: text(live.group, "amiType") or None,
        effect=Effect("replace", "amiType can be set only at creation", _TERRAFORM),
        ability=_EXACT,
    ),
    Binding(
        path=paths.CAPACITY_TYPE,
        wire=("capacityType",),
        get=lambda draft: draft.target.capacity.type,
        write=lambda draft: capacity_type(draft.target.capacity),
        read=partial(_bought, path=paths.CAPACITY_TYPE),
        words=frozenset({"on-demand", "reserved", "spot"}),
        effect=Effect("replace", "Spot, on-demand, or a Capacity Block can be set only at creation", _TERRAFORM),
        ability=Ability("emulated", "Spot at up to the on-demand price", "EKS has no maximum price"),
        feature="capacity.spot",
    ),
    Binding(
        path=BLOCK_FIELD,
        get=lambda draft: capacity_fields(draft.target.capacity).get(BLOCK_FIELD),
        read=partial(_bought, path=BLOCK_FIELD),
        effect=Effect(
            "replace", "a node group belongs to one Capacity Block, in its zone", "docs: eks/capacity-blocks-mng"
        ),
    ),
    Binding(
        path=RESERVATION_FIELD,
        get=lambda draft: capacity_fields(draft.target.capacity).get(RESERVATION_FIELD),
        read=partial(_bought, path=RESERVATION_FIELD),
        effect=Effect("disruptive", ROLL, f"{TEMPLATES}; EC2 CapacityReservationSpecification", UPDATE_VERSION),
        ability=Ability(
            "emulated", "the launch template's reservation, and capacityType for a Capacity Block", _NO_FIELD
        ),
        feature="capacity.reserved",
    ),
    Binding(
        path=paths.ZONES,
        get=lambda draft: tuple(sorted(draft.target.zones)) or None,
        read=_live_zones,
        effect=Effect("replace", "the subnets can be set only at creation", _TERRAFORM),
        ability=Ability("emulated", "the cluster's subnets in these zones", _NO_FIELD),
    ),
    Binding(
        path=paths.HIGH_SPEED,
        get=lambda draft: draft.target.high_speed or None,
        read=lambda live: live.template.get(paths.HIGH_SPEED),
        effect=Effect("disruptive", ROLL, f"{TEMPLATES}; EC2 RequestLaunchTemplateData", UPDATE_VERSION),
        ability=Ability("emulated", "EFA interfaces in the launch template", _NO_FIELD),
    ),
    Binding(
        path=paths.PLACEMENT,
        get=lambda draft: draft.target.placement or None,
        read=lambda live: live.template.get(paths.PLACEMENT),
        effect=Effect("disruptive", ROLL, f"{TEMPLATES}; EC2 LaunchTemplatePlacementRequest", UPDATE_VERSION),
    ),
    Binding(
        path=paths.DISK_SIZE,
        members=("diskSize",),
        get=lambda draft: draft.target.disk.size_gib,
        read=_disk_size,
        effect=_NEW_DISK,
        ability=Ability("emulated", _BY_TEMPLATE, "EKS accepts the disk only in the launch template"),
        feature="disk.size",
    ),
    _disk_row(paths.DISK_TYPE, lambda disk: disk.type),
    _disk_row(paths.DISK_IOPS, lambda disk: disk.iops),
    _disk_row(paths.DISK_THROUGHPUT, lambda disk: disk.throughput),
    _disk_row(paths.DISK_ENCRYPTED, is_encrypted),
    _disk_row(paths.DISK_KMS_KEY, lambda disk: disk.kms_key or None),
    Binding(
        path=FieldPath("sharing", "*"),
        effect=Effect("disruptive", ROLL, f"{TEMPLATES} (Bottlerocket user data)", UPDATE_VERSION),
    ),
    Binding(
        path=paths.MAX_PODS,
        get=lambda draft: draft.target.max_pods,
        read=lambda live: live.template.get(paths.MAX_PODS),
        effect=_NEW_USER_DATA,
        ability=Ability("emulated", _BY_USER_DATA, _NO_FIELD),
    ),
    Binding(
        path=paths.PLUGIN,
        get=lambda draft: node_settings(draft.target).get(paths.PLUGIN),
        read=lambda live: live.template.get(paths.PLUGIN),
        effect=Effect(
            "replace",
            "user data turns Bottlerocket's device plugin on or off, and pods have its devices",
            TEMPLATES,
        ),
    ),
    Binding(
        path=paths.LOCAL_STORAGE,
        get=lambda draft: draft.target.local_storage or None,
        read=_local_storage,
        effect=_NEW_USER_DATA,
    ),
    Binding(
        path=paths.kubelet("*"),
        get=lambda draft: _settings(draft, "kubelet"),
        read=lambda live: _live_settings(live, "kubelet"),
        effect=_NEW_USER_DATA,
        ability=Ability("emulated", _BY_USER_DATA, _NO_FIELD),
        feature="kubelet",
    ),
    Binding(
        path=paths.sysctl("*"),
        get=lambda draft: _settings(draft, "sysctls"),
        read=lambda live: _live_settings(live, "sysctls"),
        effect=_NEW_USER_DATA,
        ability=Ability("emulated", "a script in the user data; on Bottlerocket its own settings", _NO_FIELD),
        feature="sysctls",
    ),
    Binding(
        path=paths.hugepages("*"),
        get=lambda draft: _settings(draft, "hugepages"),
        read=lambda live: _live_settings(live, "hugepages"),
        effect=_NEW_USER_DATA,
        ability=Ability("emulated", "a script in the user data; on Bottlerocket its own settings", _NO_FIELD),
        feature="hugepages",
    ),
    Binding(
        path=label("*"),
        wire=("labels",),
        get=lambda draft: {key: value for key, value in draft.labels.items() if key != PROTECT_LABEL},
        write=lambda draft: dict(sorted(draft.labels.items())),
        read=_live_labels,
        effect=Effect(
            "in-place", "EKS relabels the nodes", "botocore eks/2017-11-01 UpdateLabelsPayload", UPDATE_CONFIG
        ),
        ability=_EXACT,
        feature="labels",
    ),
    Binding(
        path=label(CONFIG_LABEL),
        effect=Effect(
            "disruptive",
            "the device plugin restarts with another configuration: the number of devices changes while pods run",
            "NVIDIA/k8s-device-plugin README, config-manager",
            UPDATE_CONFIG,
        ),
    ),
    Binding(
        path=label(MIG_CONFIG_LABEL),
        effect=Effect(
            "disruptive",
            "the MIG manager stops the GPU clients of each node and may reboot it",
            "NVIDIA/mig-parted reconfigure-mig.sh, NVIDIA/gpu-operator#1606",
            UPDATE_CONFIG,
        ),
    ),
    Binding(
        path=label(ADVERTISER_LABEL),
        effect=Effect(
            "in-place",
            "the component that this label selects runs on the nodes",
            "NVIDIA/k8s-device-plugin v0.20.0 values.yaml, affinity",
            UPDATE_CONFIG,
        ),
        adjust=_advertiser,
    ),
    Binding(
        path=paths.MAX_SURGE,
        wire=("updateConfig",),
        members=(),
        get=lambda draft: upgrade_fields(upgrade_members(draft.target)).get(paths.MAX_SURGE),
        write=lambda draft: update_config(draft.target),
        read=lambda live: upgrade_fields(live.group.get("updateConfig")).get(paths.MAX_SURGE),
        words=frozenset({SURGE, NO_SURGE}),
        effect=_NEXT_UPDATE,
        ability=Ability("emulated", "updateStrategy: MINIMAL for 0, else DEFAULT; EKS decides how many", _NO_FIELD),
    ),
    Binding(
        path=paths.MAX_UNAVAILABLE,
        get=lambda draft: upgrade_fields(upgrade_members(draft.target)).get(paths.MAX_UNAVAILABLE),
        read=lambda live: upgrade_fields(live.group.get("updateConfig")).get(paths.MAX_UNAVAILABLE),
        effect=_NEXT_UPDATE,
        ability=_EXACT,
    ),
    Binding(
        path=paths.KUBERNETES_VERSION,
        wire=("version",),
        get=lambda draft: draft.target.kubernetes_version or None,
        effect=Effect(
            "disruptive",
            f"EKS replaces every node with one of the newer version, {STOPS_FIRST}",
            "docs: eks/update-managed-node-group",
            UPDATE_VERSION,
        ),
        ability=_EXACT,
        adjust=_version,
    ),
    Binding(
        path=paths.TAINTS,
        wire=("taints",),
        get=lambda draft: tuple(sorted(map(str, draft.target.taints))),
        write=lambda draft: [native_taint(taint) for taint in sorted(draft.target.taints)] or None,
        read=lambda live: tuple(sorted(str(read_taint(taint)) for taint in trees(live.group, "taints"))),
        effect=Effect("in-place", "EKS changes the taints of the nodes", f"{_SDK}, UpdateTaintsPayload", UPDATE_CONFIG),
        ability=_EXACT,
        adjust=adjust_taints,
    ),
    Binding(
        path=tag("*"),
        wire=("tags",),
        get=lambda draft: _others(draft.tags),
        write=lambda draft: dict(sorted({**draft.tags, **copy_tags(draft.target)}.items())),
        read=lambda live: _others(_live_tags(live)),
        effect=Effect(
            "in-place",
            "the tags of the node group change at once, its machines' tags with the next launch template version",
            "botocore eks/2017-11-01 TagResource, docs: eks/eks-using-tags",
            TAG,
        ),
        ability=_EXACT,
        feature="tags",
    ),
    Binding(
        path=paths.PROTECTION,
        get=lambda draft: draft.target.protect,
        read=lambda live: text(live.group, "labels", PROTECT_LABEL) == "true",
        effect=Effect("in-place", "a label of the node group", _SDK, UPDATE_CONFIG),
        ability=Ability("emulated", "the node label gpukube.io/protect", _NO_FIELD),
    ),
)
"""The rows of portable fields."""

ABILITIES: Final[Mapping[str, Ability]] = MappingProxyType(
    {
        # EC2 DescribeInstanceTypes, ProcessorInfo.SupportedFeatures: amd-sev-snp on m6a, c6a and r6a only
        "confidential": Ability("missing", reason="no EC2 machine with GPUs is confidential"),
        **abilities(BINDINGS),
        "localStorage.ephemeral": Ability(
            "emulated", "one RAID 0 of the machine's disks, by the launch template's user data", _NO_FIELD
        ),
        "localStorage.raw": _EXACT,
        "kubelet.topologyManagerScope": Ability("emulated", _BY_USER_DATA, _NO_FIELD),
        "kubelet.memoryManagerPolicy": Ability("emulated", _BY_USER_DATA, _NO_FIELD),
        "nodes.autoscaling": Ability(
            "emulated",
            "bounds of the Auto Scaling group, within which the cluster's own autoscaler changes the size",
            "EKS itself does not scale node groups",
        ),
        "nodes.autoscaling.scope": Ability(
            "emulated", "bounds of the whole pool: per-zone bounds times the zones", "EKS has no per-zone bounds"
        ),
        "driver.version": Ability(
            "missing",
            "remove it; eks: {releaseVersion: ...} pins the image with its driver",
            "the driver is part of the image",
        ),
        "sharing.mig.single": Ability(
            "emulated",
            "the GPU Operator's MIG manager; on Bottlerocket the node's own settings",
            _NO_FIELD,
        ),
        "sharing.mig.mixed": Ability("emulated", "the GPU Operator's MIG manager", _NO_FIELD),
        "sharing.mig.layout": Ability(
            "emulated", "the GPU Operator's MIG manager, with gpukube's configuration", _NO_FIELD
        ),
        "sharing.timeSlicing": Ability(
            "emulated", "the plugin's sharing.timeSlicing; on Bottlerocket the node's own settings", _NO_FIELD
        ),
        "sharing.mps": Ability(
            "emulated", "the plugin's sharing.mps; on Bottlerocket the node's own settings", _NO_FIELD
        ),
        "gpuTaint": _EXACT,
        "placement.compact": Ability("emulated", "a cluster placement group of the pool", _NO_FIELD),
        "placement.named": Ability("emulated", "the placement group in the launch template", _NO_FIELD),
    }
)
"""How EKS supports each feature (docs: eks/create-managed-node-group, eks/launch-templates, eks/ml-eks-optimized-ami,
eks/managed-node-groups)."""
