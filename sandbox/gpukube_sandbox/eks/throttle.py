"""Token buckets of the EC2 API, which launch templates and instance types of node groups use.

In scope: their sizes and their errors. Out of scope: the buckets themselves, faults that throttle on demand.

EKS has none here: AWS publishes no rates for its API.

Source: docs: ec2/latest/devguide/ec2-api-throttling, per account, region, and action; botocore _retry.json (503).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.eks.wire.answers import AwsError
from gpukube_sandbox.throttle import Buckets, Limit

if TYPE_CHECKING:
    from gpukube_sandbox.eks.wire.identity import Caller

LIMITS: dict[str, Limit] = {
    "ec2-read": Limit(100, 20.0),
    "ec2-write": Limit(50, 5.0),
    "ec2-template-change": Limit(100, 5.0),
    "ec2-tags": Limit(100, 10.0),
}
_OWN = {
    "CreateLaunchTemplateVersion": "ec2-template-change",
    "ModifyLaunchTemplate": "ec2-template-change",
    "CreateTags": "ec2-tags",
    "DeleteTags": "ec2-tags",
}


def take_token(buckets: Buckets, caller: Caller, action: str) -> None:
    """Take a token for an action.

    Raises:
        AwsError: 503 RequestLimitExceeded.
    """
    usual = "ec2-read" if action.startswith(("Describe", "Get", "List", "Search")) else "ec2-write"
    if buckets.wait_s(_OWN.get(action, usual), f"{caller.account}/{caller.region}/{action}"):
        raise AwsError("RequestLimitExceeded", "Request limit exceeded.", status=503)
