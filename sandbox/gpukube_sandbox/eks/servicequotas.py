"""The calls of Service Quotas: an account's quotas and their defaults.

In scope: the operations. Out of scope: HTTP (`routes`), the quotas and their usage (`quotas`).

Source: botocore service-quotas/2019-06-24.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.eks.quotas import QUOTAS
from gpukube_sandbox.eks.wire.answers import AwsError, Json
from gpukube_sandbox.pages import WrongToken, cut

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube_sandbox.eks.clusters import Known
    from gpukube_sandbox.eks.quotas import Quota
    from gpukube_sandbox.eks.service import EksService
    from gpukube_sandbox.eks.wire.identity import Caller

TARGET = "ServiceQuotasV20190624."
"""Prefix of the operation in X-Amz-Target."""
_SERVICES = {
    "ec2": "Amazon Elastic Compute Cloud (Amazon EC2)",
    "eks": "Amazon Elastic Kubernetes Service (Amazon EKS)",
}


def _requested_quota(body: Json) -> Quota:
    found = QUOTAS.get(str(body.get("QuotaCode")))
    if found is None or found.service != body.get("ServiceCode"):
        raise _missing()
    return found


def _missing() -> AwsError:
    return AwsError("NoSuchResourceException", "The request failed because the specified resource doesn't exist.")


def _applied(known: Known, quota: Quota) -> float | None:
    """Return the account's value: always one for EC2, for other services only if it was set.

    Source:
        docs: API_GetServiceQuota ("if the applied quota value is not available ..."); aws/aws-cli#6629: such a quota is
        neither returned nor listed.
    """
    return known.quotas.get(quota.code, quota.default if quota.service == "ec2" else None)


def _quota(service: EksService, caller: Caller, body: Json) -> Json:
    quota = _requested_quota(body)
    value = _applied(service.known(caller.account, caller.region), quota)
    if value is None:
        raise _missing()
    return {"Quota": _shown(caller, quota, value)}


def _default(service: EksService, caller: Caller, body: Json) -> Json:
    del service
    quota = _requested_quota(body)
    return {"Quota": _shown(caller, quota, quota.default)}


def _listed(service: EksService, caller: Caller, body: Json) -> Json:
    own = [quota for quota in QUOTAS.values() if quota.service == body.get("ServiceCode")]
    if not own:
        raise _missing()
    known = service.known(caller.account, caller.region)
    found = [_shown(caller, quota, value) for quota in own if (value := _applied(known, quota)) is not None]
    try:
        size = int(str(body.get("MaxResults") or 100))
        page, following = cut("ListServiceQuotas", found, str(body.get("NextToken") or ""), size)
    except WrongToken as error:
        raise AwsError("InvalidPaginationTokenException", "Invalid token.") from error
    return {"Quotas": list(page), **({"NextToken": following} if following else {})}


def _shown(caller: Caller, quota: Quota, value: float) -> Json:
    return {
        "ServiceCode": quota.service,
        "ServiceName": _SERVICES[quota.service],
        "QuotaArn": f"arn:aws:servicequotas:{caller.region}:{caller.account}:{quota.service}/{quota.code}",
        "QuotaCode": quota.code,
        "QuotaName": quota.name,
        "Value": value,
        "Unit": "None",
        "Adjustable": True,
        "GlobalQuota": False,
    }


OPERATIONS: dict[str, Callable[[EksService, Caller, Json], Json]] = {
    "GetServiceQuota": _quota,
    "GetAWSDefaultServiceQuota": _default,
    "ListServiceQuotas": _listed,
}
