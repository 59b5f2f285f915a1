"""Pools whose nodes start from an image of the user's own, `eks.imageId`.

In scope: the user data with which their nodes join, and which changes it depends on. Out of scope: what EKS rejects
beside an image (`rules.images`).

EKS merges nothing into the user data of such a group, chooses no release, and applies labels and taints only after a
node has joined (docs: eks/launch-templates, "Specifying an AMI"). So gpukube writes the whole NodeConfig, with labels
and taints for the kubelet, and a change of them needs new nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.core.fields import TAINTS
from gpukube.core.jsontree import text, tree
from gpukube.core.values import MARKS
from gpukube.errors import CloudError
from gpukube_eks.facts.images import CUSTOM
from gpukube_eks.pool.settings import IMAGE_ID, TEMPLATE_DATA, node_settings
from gpukube_eks.userdata.encoding import encode
from gpukube_eks.userdata.merging import has_others, is_setting
from gpukube_eks.userdata.nodeconfig import joining_message

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gpukube.core.fields import FieldPath
    from gpukube.core.values import Desired, Observed, Target


def own_image(target: Target) -> str:
    """Return the id of the pool's own image; "" if EKS chooses one."""
    return text(target.native, IMAGE_ID)


def joining_data(desired: Desired, cluster: Mapping[str, object]) -> str:
    """Return the user data of nodes that join a cluster.

    Args:
        desired: A pool with an own image.
        cluster: As DescribeCluster returns it.

    Raises:
        CloudError: The cluster has no endpoint yet.
    """
    network = tree(cluster, "kubernetesNetworkConfig")
    found = {
        "name": text(cluster, "name"),
        "apiServerEndpoint": text(cluster, "endpoint"),
        "certificateAuthority": text(cluster, "certificateAuthority", "data"),
        "cidr": text(network, "serviceIpv4Cidr") or text(network, "serviceIpv6Cidr"),
    }
    if missing := sorted(name for name, value in found.items() if not value):
        raise CloudError(
            f"the cluster has no {', '.join(missing)} yet, which nodes of an own image need",
            where=desired.target.where,
            fix="wait until the cluster is ACTIVE",
            code="kube-endpoint",
        )
    return encode(joining_message(node_settings(desired.target), found, _flags(desired)))


def joins_by_gpukube(observed: Observed) -> bool:
    """Return whether gpukube wrote the user data with which nodes of an own image join."""
    data = text(observed.native, TEMPLATE_DATA, "UserData")
    return observed.native.get("amiType") == CUSTOM and bool(data) and not has_others(data, rocket=False)


def changes_joining(fields: Collection[FieldPath]) -> bool:
    """Return whether changed fields are in the user data of an own image."""
    return any(field == TAINTS or field.is_below("labels") or is_setting(field) for field in fields)


def _flags(desired: Desired) -> list[str]:
    """Return labels and taints as the kubelet's flags; gpukube's marks are for the group alone."""
    labels = ",".join(f"{key}={value}" for key, value in sorted(desired.labels.items()) if key not in MARKS)
    taints = ",".join(map(str, sorted(desired.effective_taints)))
    flags = {"--node-labels": labels, "--register-with-taints": taints}
    return [f"{name}={value}" for name, value in flags.items() if value]
