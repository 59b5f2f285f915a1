"""EKS's checks of a node group with the right shape, in the order in which the service runs them.

In scope: rules over one request, pure. Out of scope: types and choices (`schema`), labels, taints, and tags
(`keys`), named resources (`references`), states (`service`).

Every rule names its source; "unconfirmed" marks a message or code that no public log shows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpukube_sandbox.eks.groups import type_names
from gpukube_sandbox.eks.images import IMAGES, check_pairing, check_release
from gpukube_sandbox.eks.instances import TYPES
from gpukube_sandbox.eks.keys import check_labels, check_tags, check_taints, labels_of
from gpukube_sandbox.eks.launchrules import check_launch
from gpukube_sandbox.eks.references import check_references
from gpukube_sandbox.eks.reservations import check_block, is_block, requested_reservation
from gpukube_sandbox.eks.wire.answers import AwsError, Json, bad_parameter, bad_request, strings_in, whole

if TYPE_CHECKING:
    from gpukube_sandbox.eks.clusters import EksCluster

_NAME = re.compile(r"[0-9A-Za-z][A-Za-z0-9\-_]{0,62}")
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}):role/[\w+=,.@/-]+")
_MAX_TYPES = 20
_AL_SNAPSHOT_GIB = 20
_NOT_WITH_AN_IMAGE = {
    # pulumi/pulumi-eks#1463, rancher/eks-operator#161
    "amiType": "You cannot specify an AMI Type other than CUSTOM, when specifying an image id in your launch template.",
    # terraform-aws-modules/terraform-aws-eks#3459
    "version": (
        "You cannot specify a kubernetes version to use when specifying an image id to use within the launch template."
    ),
    # unconfirmed
    "releaseVersion": "You cannot specify releaseVersion when the launch template specifies an image id.",
}
_FORBIDDEN_IN_TEMPLATE = {
    "IamInstanceProfile": "IAM instance profile",
    "HibernationOptions": "hibernation options",
    "InstanceInitiatedShutdownBehavior": "shutdown behavior",
}


def requested_template(body: Json) -> tuple[str, str, str]:
    """Return the template's id, name, and version in a request; ("", "", "") for none.

    Raises:
        AwsError: 400 if both id and name are given, or neither (hashicorp/terraform-provider-aws node_group.go).
    """
    template = body.get("launchTemplate")
    if not isinstance(template, dict):
        return "", "", ""
    identity, name = str(template.get("id") or ""), str(template.get("name") or "")
    if bool(identity) == bool(name):
        raise bad_parameter("Either provide launch template ID or launch template name in the request.")
    return identity, name, str(template.get("version") or "")


def check_group(body: Json, data: Json | None, cluster: EksCluster) -> None:
    """Check the request for a new group.

    Args:
        body: Members, checked by `schema`.
        data: Data of the launch template's version in the request; None without a template.
        cluster: Cluster of the group.

    Raises:
        AwsError: The first rule that fails.
    """
    name = str(body["nodegroupName"])
    if not _NAME.fullmatch(name):  # docs: eks/create-managed-node-group; message unconfirmed
        message = f"Nodegroup name {name} must be 1 to 63 letters, digits, - and _, and begin with a letter or digit"
        raise bad_parameter(message)
    check_labels(labels_of(body))
    check_taints(body.get("taints"))
    tags = body.get("tags")
    check_tags(tags if isinstance(tags, dict) else {})
    check_scaling(body.get("scalingConfig"), cluster, creating=True)
    check_settings(body)
    _check_template(body, data)
    _check_role(str(body["nodeRole"]), cluster)
    if not strings_in(body["subnets"]):
        raise bad_parameter("subnets cannot be empty")  # message unconfirmed
    check_references({"nodegroup": body, "template": data}, cluster)
    _check_types(body, data, cluster)
    check_launch(data or {}, [TYPES[name] for name in type_names(body, data)], strings_in(body["subnets"]), cluster)
    _check_capacity(body, data, cluster)
    _check_version(body, data, cluster)


def check_scaling(scaling: object, cluster: EksCluster, *, creating: bool) -> None:
    """Reject sizes in the wrong order, incomplete sizes at creation, and more nodes than the quota.

    Raises:
        AwsError: 400 (terraform-aws-modules/terraform-aws-eks#748 for the first message; the others unconfirmed).
    """
    if not isinstance(scaling, dict):
        return
    absent = [key for key in ("minSize", "maxSize", "desiredSize") if key not in scaling]
    if absent and creating:
        raise bad_parameter(f"scalingConfig must have minSize, maxSize and desiredSize; {', '.join(absent)} is absent")
    minimum, maximum, desired = (whole(scaling[key]) for key in ("minSize", "maxSize", "desiredSize"))
    if minimum > desired:
        raise bad_parameter(f"Minimum capacity {minimum} can't be greater than desired size {desired}")
    if desired > maximum:
        raise bad_parameter(f"Desired capacity {desired} can't be greater than max size {maximum}")
    if maximum > cluster.options.node_quota:
        message = f"Max size {maximum} exceeds the limit of {cluster.options.node_quota} nodes per managed node group"
        raise AwsError("ResourceLimitExceededException", message)


def check_settings(body: Json) -> None:
    """Reject mutually exclusive members of updateConfig, nodeRepairConfig, and warmPoolConfig.

    Source:
        botocore eks, documentation of the three shapes; messages unconfirmed.
    """
    pairs = (
        ("updateConfig", "maxUnavailable", "maxUnavailablePercentage"),
        ("nodeRepairConfig", "maxUnhealthyNodeThresholdCount", "maxUnhealthyNodeThresholdPercentage"),
        ("nodeRepairConfig", "maxParallelNodesRepairedCount", "maxParallelNodesRepairedPercentage"),
    )
    for key, first, second in pairs:
        value = body.get(key)
        if isinstance(value, dict) and first in value and second in value:
            raise bad_parameter(f"{key} cannot have both {first} and {second}")


def check_settings_update(body: Json) -> None:
    """Reject an updateConfig without maxUnavailable or maxUnavailablePercentage.

    Raises:
        AwsError: 400 (botocore eks NodegroupUpdateConfig, "required to have a value"; message unconfirmed).
    """
    value = body.get("updateConfig")
    if isinstance(value, dict) and not {"maxUnavailable", "maxUnavailablePercentage"} & value.keys():
        raise bad_parameter("updateConfig must have maxUnavailable or maxUnavailablePercentage")


def check_labels_update(body: Json) -> None:
    """Reject invalid updates of labels and taints.

    Raises:
        AwsError: 400.
    """
    labels, taints = body.get("labels"), body.get("taints")
    if isinstance(labels, dict):
        check_labels(labels_of({"labels": labels.get("addOrUpdateLabels")}))
    if isinstance(taints, dict):
        check_taints(taints.get("addOrUpdateTaints"))
        check_taints(taints.get("removeTaints"))


def _check_template(body: Json, data: Json | None) -> None:
    """Reject forbidden members of a launch template, and members that exclude one.

    Source:
        docs: eks/launch-templates; crossplane-contrib/provider-upjet-aws#866 (disk), getmoto/moto (remote access),
        terraform-aws-modules/terraform-aws-eks#1386 (instance types); other messages unconfirmed.
    """
    if data is None:
        if body.get("amiType") == "CUSTOM":
            raise bad_parameter("amiType CUSTOM needs a launch template that specifies an image id.")
        return
    if "diskSize" in body:
        raise bad_parameter("Disk size must be specified within the launch template.")
    if "remoteAccess" in body:
        raise bad_parameter("Remote access configuration cannot be specified with a launch template.")
    if body.get("instanceTypes") and data.get("InstanceType"):
        raise bad_request("Cannot specify instance types in launch template and API request")
    if data.get("ImageId"):
        for key, text in _NOT_WITH_AN_IMAGE.items():
            if key in body and body[key] != "CUSTOM":
                raise bad_parameter(text)
    elif body.get("amiType") == "CUSTOM":
        raise bad_parameter("amiType CUSTOM needs a launch template that specifies an image id.")
    found = [text for key, text in _FORBIDDEN_IN_TEMPLATE.items() if data.get(key)]
    market = data.get("InstanceMarketOptions")
    found += ["spot market options"] if isinstance(market, dict) and market.get("MarketType") == "spot" else []
    if found:
        raise bad_parameter(f"The launch template must not specify {found[0]}.")


def _check_role(role: str, cluster: EksCluster) -> None:
    """Check that a role is an ARN of the cluster's account (the first message is unconfirmed)."""
    found = _ROLE.fullmatch(role)
    if not found:
        raise bad_parameter(f"Invalid node role {role}: it is not the ARN of an IAM role")
    if found[1] != cluster.account:
        raise AwsError("AccessDeniedException", "Cross-account pass role is not allowed.")


def _check_types(body: Json, data: Json | None, cluster: EksCluster) -> None:
    """Check for known types of one architecture that the image supports, and a disk large enough for its snapshot.

    Source:
        eksctl-io/eksctl#7754 (pairing), cilium/cilium#43051 (disk); other messages unconfirmed.
    """
    names = type_names(body, data)
    if len(names) > _MAX_TYPES:
        raise bad_parameter(f"instanceTypes has {len(names)} entries; at most {_MAX_TYPES} are allowed")
    unknown = [name for name in names if name not in TYPES]
    if unknown:
        raise bad_parameter(f"The following supplied instance types do not exist: [{', '.join(unknown)}]")
    types = [TYPES[name] for name in names]
    if len({entry.arch for entry in types}) > 1:
        raise bad_parameter("Instance types of different architectures cannot be in one node group")
    image = IMAGES.get(str(body.get("amiType", "")))
    if image:
        check_pairing(image, types, cluster.kubernetes_version)
    disk = body.get("diskSize")
    if disk is not None and whole(disk) < _AL_SNAPSHOT_GIB:
        message = f"Volume of size {disk}GB is smaller than snapshot, expect size >= {_AL_SNAPSHOT_GIB}GB"
        raise bad_request(message)


def _check_capacity(body: Json, data: Json | None, cluster: EksCluster) -> None:
    """Check that a Capacity Block has its market, reservation, and one instance type in the template, and its zone.

    Source:
        docs: eks/capacity-blocks-mng ("the request is rejected"); messages unconfirmed.
    """
    if body.get("capacityType") != "CAPACITY_BLOCK":
        return
    inside = data or {}
    if not is_block(inside):
        raise bad_parameter("CAPACITY_BLOCK needs a launch template with market type capacity-block.")
    if not requested_reservation(inside)[0]:
        raise bad_parameter("CAPACITY_BLOCK needs a launch template with a capacity reservation id.")
    if not inside.get("InstanceType") or body.get("instanceTypes"):
        raise bad_parameter("CAPACITY_BLOCK needs exactly one instance type, in the launch template.")
    check_block(inside, strings_in(body["subnets"]), cluster)


def _check_version(body: Json, data: Json | None, cluster: EksCluster) -> None:
    """Require the cluster's version, and no warm pool with a custom image (messages unconfirmed)."""
    version = body.get("version")
    if version is not None and version != cluster.version:
        raise bad_parameter(f"Requested Nodegroup version {version} is not the cluster's version {cluster.version}")
    image = IMAGES.get(str(body.get("amiType", "")))
    check_release("", str(body.get("releaseVersion") or ""), cluster.version, image)
    warm = body.get("warmPoolConfig")
    if isinstance(warm, dict) and (data or {}).get("ImageId"):
        raise bad_parameter("warmPoolConfig is not supported with a custom AMI.")
    on_bottlerocket = isinstance(warm, dict) and image is not None and image.system == "bottlerocket"
    if on_bottlerocket and isinstance(warm, dict) and _is_too_warm(warm):
        raise bad_parameter("Bottlerocket supports neither HIBERNATED warm pools nor reuseOnScaleIn.")


def _is_too_warm(pool: Json) -> bool:
    return pool.get("poolState") == "HIBERNATED" or bool(pool.get("reuseOnScaleIn"))
