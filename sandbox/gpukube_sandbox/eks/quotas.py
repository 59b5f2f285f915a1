"""Quotas of an account: vCPUs per region, limits and usage; node groups per cluster.

In scope: the quotas that limit GPU instances, and the sums. Out of scope: the calls of Service Quotas
(`servicequotas`), when instances are launched (`lifecycle`).

Source: codes and names: gruntwork-io/terraform-aws-utilities, service quotas
generated 2026-01-14. The quota of P6 spot instances is unknown: none applies here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube_sandbox.eks.instances import TYPES

if TYPE_CHECKING:
    from gpukube_sandbox.eks.clusters import Known
    from gpukube_sandbox.eks.groups import NodeGroup
    from gpukube_sandbox.eks.instances import InstanceType

DEFAULT = 100_000.0
"""Default of every quota: more than any test needs. Real accounts often start with 0."""


@dataclass(frozen=True, slots=True)
class Quota:
    """A quota of the account.

    Attributes:
        code: Code in Service Quotas.
        name: Name in Service Quotas.
        families: Regular expression of the instance families that it limits; "" if it limits none.
        market: capacityType of the node groups that it limits.
        service: Service code.
        default: Value if none was set.
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
    """Return the quota that instances of a type count against; None for none, as in a Capacity Block."""
    found = (q for q in QUOTAS.values() if q.market == market and re.fullmatch(q.families, kind.family))
    return next(found, None)


def limit_of(known: Known, quota: Quota) -> float:
    """Return the limit of a quota in its unit, such as vCPUs."""
    return known.quotas.get(quota.code, quota.default)


def room_for(known: Known, group: NodeGroup, kind: InstanceType) -> int | None:
    """Return how many more instances a group may launch; None if no quota limits them."""
    quota = quota_of(kind, str(group.members["capacityType"]))
    if quota is None:
        return None
    used = sum(_vcpus(other, quota) for cluster in known.clusters for other in cluster.groups.values())
    return max(0, int((limit_of(known, quota) - used) // kind.vcpus))


def _vcpus(group: NodeGroup, quota: Quota) -> int:
    """Sum the vCPUs of a group that count against a quota, including instances that are still coming up."""
    market = str(group.members["capacityType"])
    kinds = [TYPES[group.instances[node].type] for node in group.nodes] + [group.types[0]] * group.coming
    return sum(kind.vcpus for kind in kinds if quota_of(kind, market) is quota)
