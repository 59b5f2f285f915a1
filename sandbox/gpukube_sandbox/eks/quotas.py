"""Quotas of an account: how many vCPUs it may run in a region, and how many it runs; node groups of a cluster.

Lives here: the quotas that limit GPU instances, the sums, and the calls of Service Quotas. Must not live here: HTTP
(`routes`), when instances are launched (`lifecycle`).

Sources: botocore service-quotas/2019-06-24; codes and names: gruntwork-io/terraform-aws-utilities, service quotas
generated 2026-01-14. Which quota limits P6 on the spot market is not known: none does here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube_sandbox.eks.instances import TYPES
from gpukube_sandbox.eks.wire.answers import Json, Refusal
from gpukube_sandbox.pages import WrongToken, cut

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube_sandbox.eks.groups import NodeGroup
    from gpukube_sandbox.eks.instances import InstanceType
    from gpukube_sandbox.eks.references import Known
    from gpukube_sandbox.eks.service import EksService
    from gpukube_sandbox.eks.wire.identity import Caller

TARGET = "ServiceQuotasV20190624."
"""What stands before the operation in X-Amz-Target."""
DEFAULT = 100_000.0
"""Of every quota that nobody has set: more than any test needs. Real accounts often begin with 0."""


_SERVICES = {
    "ec2": "Amazon Elastic Compute Cloud (Amazon EC2)",
    "eks": "Amazon Elastic Kubernetes Service (Amazon EKS)",
}


@dataclass(frozen=True, slots=True)
class Quota:
    """One quota.

    Attributes:
        code: Of Service Quotas.
        name: Likewise.
        families: Regular expression of the instance families that it limits; "" where it limits none.
        market: capacityType of the node groups that it limits.
        service: Code of the service whose quota it is.
        default: Where nobody has set it.
    """

    code: str
    name: str
    families: str = ""
    market: str = ""
    service: str = "ec2"
    default: float = DEFAULT


QUOTAS = {
    quota.code: quota
    for quota in (
        Quota("L-417A185B", "Running On-Demand P instances", r"p\d.*", "ON_DEMAND"),
        Quota("L-DB2E81BA", "Running On-Demand G and VT instances", r"(gr?|vt)\d.*", "ON_DEMAND"),
        Quota("L-7212CCBC", "All P4, P3 and P2 Spot Instance Requests", r"p[234].*", "SPOT"),
        Quota("L-C4BD4855", "All P5 Spot Instance Requests", r"p5.*", "SPOT"),
        Quota("L-3819A6DF", "All G and VT Spot Instance Requests", r"(gr?|vt)\d.*", "SPOT"),
        Quota("L-6D54EA21", "Managed node groups per cluster", service="eks", default=30),  # docs: general/eks
    )
}


def quota_of(kind: InstanceType, market: str) -> Quota | None:
    """The quota that instances of a type count against; None for none, as in a Capacity Block."""
    found = (q for q in QUOTAS.values() if q.market == market and re.fullmatch(q.families, kind.family))
    return next(found, None)


def limit_of(known: Known, quota: Quota) -> float:
    """Most vCPUs, or whatever else it counts, that there may be."""
    return known.quotas.get(quota.code, quota.default)


def room_for(known: Known, group: NodeGroup, kind: InstanceType) -> int | None:
    """How many more instances a group may launch; None where no quota counts them."""
    quota = quota_of(kind, str(group.members["capacityType"]))
    if quota is None:
        return None
    used = sum(_vcpus(other, quota) for cluster in known.clusters for other in cluster.groups.values())
    return max(0, int((limit_of(known, quota) - used) // kind.vcpus))


def _vcpus(group: NodeGroup, quota: Quota) -> int:
    """Sum the vCPUs of a group that count against a quota, those of instances on their way too."""
    market = str(group.members["capacityType"])
    kinds = [TYPES[group.instances[node].type] for node in group.nodes] + [group.types[0]] * group.coming
    return sum(kind.vcpus for kind in kinds if quota_of(kind, market) is quota)


def _asked(body: Json) -> Quota:
    found = QUOTAS.get(str(body.get("QuotaCode")))
    if found is None or found.service != body.get("ServiceCode"):
        raise _missing()
    return found


def _missing() -> Refusal:
    return Refusal("NoSuchResourceException", "The request failed because the specified resource doesn't exist.")


def _applied(known: Known, quota: Quota) -> float | None:
    """The value that an account has: of EC2 always one, of other quotas only where it was set.

    Source:
        docs: API_GetServiceQuota ("if the applied quota value is not available ..."); aws/aws-cli#6629: such a quota is
        neither got nor listed.
    """
    return known.quotas.get(quota.code, quota.default if quota.service == "ec2" else None)


def _quota(service: EksService, caller: Caller, body: Json) -> Json:
    quota = _asked(body)
    value = _applied(service.known(caller.account, caller.region), quota)
    if value is None:
        raise _missing()
    return {"Quota": _shown(caller, quota, value)}


def _default(service: EksService, caller: Caller, body: Json) -> Json:
    del service
    quota = _asked(body)
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
        raise Refusal("InvalidPaginationTokenException", "Invalid token.") from error
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
