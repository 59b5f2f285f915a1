"""Public parameters of Systems Manager: the newest releases of EKS's images.

In scope: GetParameter and GetParameters for those. Out of scope: HTTP (`routes`), the images themselves (`images`).

Source: docs: eks/retrieve-ami-id, eks/retrieve-ami-id-bottlerocket; botocore ssm/2014-11-06; awslabs/amazon-eks-ami#531
(the value of `recommended`, and an error without a message), #423.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from gpukube_sandbox.eks.clusters import LATEST_PATCH
from gpukube_sandbox.eks.images import AL_DATE, IMAGES, image_id, release_version
from gpukube_sandbox.eks.wire.answers import AwsError, strings_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube_sandbox.eks.images import Image
    from gpukube_sandbox.eks.service import EksService
    from gpukube_sandbox.eks.wire.answers import Json
    from gpukube_sandbox.eks.wire.identity import Caller

TARGET = "AmazonSSM."
"""Prefix of the operation in X-Amz-Target."""
_FORMS = (
    re.compile(
        r"/aws/service/eks/optimized-ami/(?P<minor>1\.\d+)/amazon-linux-2023/(?P<arch>x86_64|arm64)/"
        r"(?P<variant>standard|nvidia|neuron)/recommended(?:/(?P<key>image_id|image_name|release_version))?"
    ),
    re.compile(
        r"/aws/service/bottlerocket/aws-k8s-(?P<minor>1\.\d+)(?P<variant>-nvidia)?/(?P<arch>x86_64|arm64)/latest/"
        r"(?P<key>image_id|image_version)"
    ),
)
_VARIANTS = {"standard": "_STANDARD", "nvidia": "_NVIDIA", "neuron": "_NEURON", "-nvidia": "_NVIDIA", None: ""}
_MAX_NAMES = 10


def get_parameter(service: EksService, caller: Caller, body: object) -> Json:
    """Return a parameter.

    Raises:
        AwsError: 400 ParameterNotFound, without a message, like the service's.
    """
    name = str(body.get("Name", "")) if isinstance(body, dict) else ""
    found = _parameter(service, caller, name)
    if found is None:
        raise AwsError("ParameterNotFound", "")
    return {"Parameter": found}


def get_parameters(service: EksService, caller: Caller, body: object) -> Json:
    """Return up to ten parameters, and the names of those that do not exist.

    Raises:
        AwsError: 400 for more than ten (botocore ssm ParameterNameList; the message has the service's form).
    """
    names = strings_in(body.get("Names")) if isinstance(body, dict) else []
    if not 1 <= len(names) <= _MAX_NAMES:
        bound = f"less than or equal to {_MAX_NAMES}" if names else "greater than or equal to 1"
        text = f"1 validation error detected: Value '[{', '.join(names)}]' at 'names' failed to satisfy constraint: "
        raise AwsError("ValidationException", f"{text}Member must have length {bound}")
    found = {name: _parameter(service, caller, name) for name in names}
    return {
        "Parameters": [one for one in found.values() if one],
        "InvalidParameters": [name for name, one in found.items() if not one],
    }


def _parameter(service: EksService, caller: Caller, name: str) -> Json | None:
    for form in _FORMS:
        if parts := form.fullmatch(name):
            system = "AL2023" if "optimized-ami" in name else "BOTTLEROCKET"
            arch = "ARM_64" if parts["arch"] == "arm64" else "x86_64"
            image = IMAGES.get(f"{system}_{arch}{_VARIANTS[parts['variant']]}")
            return _value(service, caller, name, parts, image) if image else None
    return None


def _value(service: EksService, caller: Caller, name: str, parts: re.Match[str], image: Image) -> Json:
    clusters = service.in_region(caller.account, caller.region)
    same = next((one for one in clusters if one.version == parts["minor"]), None)
    patch = same.kubernetes_version if same else f"{parts['minor']}.{LATEST_PATCH}"
    release = release_version(image, patch, max((one.image_date for one in clusters), default=AL_DATE))
    known = {
        "image_id": image_id(image, release),
        "image_name": f"amazon-eks-node-al2023-{parts['arch']}-{parts['variant']}-{parts['minor']}-v{release[-8:]}",
        "release_version": release,
        "image_version": release,
    }
    shown = {key: known[key] for key in ("image_id", "image_name", "release_version")}
    value = known[parts["key"]] if parts["key"] else json.dumps({"schema_version": "2", **shown})
    arn = f"arn:aws:ssm:{caller.region}::parameter{name}"
    return {"Name": name, "Type": "String", "Value": value, "Version": 1, "ARN": arn, "DataType": "text"}


OPERATIONS: dict[str, Callable[[EksService, Caller, object], Json]] = {
    "GetParameter": get_parameter,
    "GetParameters": get_parameters,
}
