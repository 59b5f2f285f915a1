"""Public parameters of Systems Manager: the newest releases of EKS's images.

Lives here: GetParameter for those. Must not live here: HTTP (`routes`), which images there are (`images`).

Source: docs: eks/retrieve-ami-id, eks/retrieve-ami-id-bottlerocket; botocore ssm/2014-11-06.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpukube_sandbox.eks.images import AL_DATE, IMAGES, release_version
from gpukube_sandbox.eks.wire.answers import Refusal

if TYPE_CHECKING:
    from gpukube_sandbox.eks.clusters import EksCluster
    from gpukube_sandbox.eks.service import EksService
    from gpukube_sandbox.eks.wire.answers import Json
    from gpukube_sandbox.eks.wire.identity import Caller

TARGET = "AmazonSSM."
"""What stands before the operation in X-Amz-Target."""
_AL2023 = r"/aws/service/eks/optimized-ami/(1\.\d+)/amazon-linux-2023/(x86_64|arm64)/nvidia"
_FORMS = {
    "AL2023": rf"{_AL2023}/recommended/release_version",
    "BOTTLEROCKET": r"/aws/service/bottlerocket/aws-k8s-(1\.\d+)-nvidia/(x86_64|arm64)/latest/image_version",
}
_LATEST_PATCH = 5
"""Of every minor version but those that clusters have; which patches there are is no rule of the service."""


def get_parameter(service: EksService, caller: Caller, body: object) -> Json:
    """One parameter.

    Raises:
        Refusal: 400 ParameterNotFound.
    """
    name = str(body.get("Name", "")) if isinstance(body, dict) else ""
    for system, form in _FORMS.items():
        if found := re.fullmatch(form, name):
            image = IMAGES[f"{system}_{'ARM_64' if found[2] == 'arm64' else 'x86_64'}_NVIDIA"]
            clusters = service.in_region(caller.account, caller.region)
            same = next((one for one in clusters if one.version == found[1]), None)
            patch = same.kubernetes_version if same else f"{found[1]}.{_LATEST_PATCH}"
            date = max((one.image_date for one in clusters), default=AL_DATE)
            return {"Parameter": {"Name": name, "Type": "String", "Value": release_version(image, patch, date)}}
    raise Refusal("ParameterNotFound", "")


def patched(cluster: EksCluster, version: str) -> str:
    """A minor version with its patch."""
    return cluster.kubernetes_version if version == cluster.version else f"{version}.{_LATEST_PATCH}"
