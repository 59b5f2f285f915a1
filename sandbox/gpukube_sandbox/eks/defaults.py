"""Defaults that EKS uses for members that a request for a node group omits.

In scope: the members of a new group. Out of scope: its state (`groups`), rules (`rules`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.eks.groups import type_names
from gpukube_sandbox.eks.images import IMAGES, release_version
from gpukube_sandbox.eks.instances import TYPES

if TYPE_CHECKING:
    from gpukube_sandbox.eks.clusters import EksCluster
    from gpukube_sandbox.eks.wire.answers import Json

_PLAIN = {"x86_64": "AL2023_x86_64_STANDARD", "arm64": "AL2023_ARM_64_STANDARD"}
_SCALING = {"minSize": 1, "maxSize": 2, "desiredSize": 2}  # unconfirmed: defaults of a group without scalingConfig
_NOT_KEPT = frozenset({"nodegroupName", "tags", "clientRequestToken", "launchTemplate"})


def with_defaults(sent: Json, data: Json | None, template: Json | None, cluster: EksCluster) -> Json:
    """Return the members of a new group, with EKS's defaults.

    Args:
        sent: Checked members of the request.
        data: Data of the launch template's version; None without a template.
        template: The template as EKS returns it: id, name, and number.
        cluster: Cluster of the group.

    Source:
        botocore eks (defaults in the documentation of CreateNodegroupRequest), docs: eks/launch-templates (what is null
        with a template); scaling without a scalingConfig is unconfirmed.
    """
    custom = bool((data or {}).get("ImageId"))
    names = type_names(sent, data)
    arch = TYPES[names[0]].arch if names[0] in TYPES else "x86_64"
    kind = "CUSTOM" if custom else str(sent.get("amiType") or _PLAIN[arch])
    image = IMAGES[kind]
    plain: Json = {key: value for key, value in sent.items() if key not in _NOT_KEPT}
    found: Json = {
        "capacityType": "ON_DEMAND",
        "labels": {},
        "taints": [],
        "scalingConfig": dict(_SCALING),
        **plain,
        "amiType": kind,
        "version": cluster.version,
        "updateConfig": {"maxUnavailable": 1, "updateStrategy": "DEFAULT", **_given(sent, "updateConfig")},
        "nodeRepairConfig": {"enabled": False, **_given(sent, "nodeRepairConfig")},
    }
    if "maxUnavailablePercentage" in _given(sent, "updateConfig"):
        found["updateConfig"] = {"updateStrategy": "DEFAULT", **_given(sent, "updateConfig")}
    release = release_version(image, cluster.kubernetes_version, cluster.image_date)
    found["releaseVersion"] = str((data or {}).get("ImageId")) if custom else str(sent.get("releaseVersion") or release)
    if template is None:
        found["instanceTypes"] = names
        found["diskSize"] = sent.get("diskSize") or image.disk_gib
    else:
        found["launchTemplate"] = template
        if "instanceTypes" not in sent and not (data or {}).get("InstanceType"):
            found["instanceTypes"] = names
    return found


def _given(sent: Json, key: str) -> Json:
    value = sent.get(key)
    return value if isinstance(value, dict) else {}
