"""EC2 quotas that limit GPU instances, and how many extra instances an update launches.

In scope: which quota counts what, and parsing the APIs' responses. Out of scope: the calls (`live.quotas`).

Sources: docs: AWSEC2 ec2-resource-limits and spot-limits; codes: gruntwork-io/terraform-aws-utilities (2026-01-14).
EC2 counts vCPUs. A Capacity Block counts against no quota, and instances in a capacity reservation counted when the
reservation was created.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube.core.fields import MAX_SURGE, MAX_UNAVAILABLE
from gpukube.core.jsontree import number, strings, tree, trees
from gpukube.core.quotas import CloudQuota, CloudQuotas, QuotaDraw, share_of
from gpukube_eks.pool.fields import UPDATE_VERSION
from gpukube_eks.pool.updates import find_row
from gpukube_eks.pool.upgrades import SURGE, has_surge

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpukube.core.values import Capacity, Change, ClusterRef, Desired, Observed
    from gpukube.gpu.catalog import Machine

_LIMITS: Final = "docs: AWSEC2 ec2-resource-limits"
_SPOT_LIMITS: Final = "docs: AWSEC2 using-spot-limits"
_ON_DEMAND: Final = (
    (r"p\d.*", "L-417A185B", "Running On-Demand P instances"),
    (r"(gr?|vt)\d.*", "L-DB2E81BA", "Running On-Demand G and VT instances"),
)
_SPOT: Final = (
    (r"p[234].*", "L-7212CCBC", "All P4, P3 and P2 Spot Instance Requests"),
    (r"p5.*", "L-C4BD4855", "All P5 Spot Instance Requests"),
    (r"(gr?|vt)\d.*", "L-3819A6DF", "All G and VT Spot Instance Requests"),
)
"""Instance families -> quota code and name; AWS does not document which quota limits P6 Spot instances."""
_COUNTED: Final = {
    code: (families, spot) for spot, rows in ((False, _ON_DEMAND), (True, _SPOT)) for families, code, _ in rows
}
_INCREASE: Final = (
    "aws service-quotas request-service-quota-increase --service-code ec2 --quota-code {code} "
    "--desired-value {{value}} --region {region}"
)


def _draws(cluster: ClusterRef, location: str, machine: Machine, capacity: Capacity) -> tuple[QuotaDraw, ...]:
    if capacity.type == "reserved":
        return ()
    spot, family = capacity.type == "spot", machine.name.partition(".")[0]
    rows, source = (_SPOT, _SPOT_LIMITS) if spot else (_ON_DEMAND, _LIMITS)
    code, title = next(((code, title) for pattern, code, title in rows if re.fullmatch(pattern, family)), ("", ""))
    named = f"{family} {'Spot' if spot else 'On-Demand'} Instances"
    unread = "" if code else f"AWS does not document which quota limits {named}"
    if machine.vcpus is None:
        unread = f"the catalog has no vCPUs of {machine.name}"
    quota = CloudQuota(
        provider="eks",
        name=code or named,
        title=title or "unknown quota",
        unit="vCPUs",
        place=f"{cluster.identity['account']}/{location}",
        raise_by=_INCREASE.format(code=code, region=location) if code else "Service Quotas, Amazon EC2",
        source=source,
        unread=unread,
    )
    return (QuotaDraw(quota, machine.vcpus or 0),)


def _surge(desired: Desired, observed: Observed, changes: Sequence[Change]) -> int:
    """Return the extra nodes: twice the zones, or as many as may be unavailable; MINIMAL launches none.

    Source:
        docs: eks/managed-node-update-behavior, scale up phase.
    """
    surges = has_surge(desired.target) or observed.fields.get(MAX_SURGE) == SURGE
    if not surges or all(find_row(change, changes).call != UPDATE_VERSION for change in changes):
        return 0
    zones = len(desired.target.zones or strings(observed.native, "subnets"))
    return max(2 * zones, share_of(str(observed.fields.get(MAX_UNAVAILABLE, "1")), observed.nodes or 0))


QUOTAS: Final = CloudQuotas(draws=_draws, surge=_surge)


def instance_filter() -> list[dict[str, object]]:
    """Return the filter for instances that a quota may count."""
    return [
        {"Name": "instance-state-name", "Values": ["pending", "running"]},
        {"Name": "instance-type", "Values": ["g*", "p*", "vt*"]},
    ]


def used_vcpus(pages: Iterable[Mapping[str, object]], code: str) -> float:
    """Return the total vCPUs of instances that a quota counts; those in a Capacity Block count against none."""
    families, spot = _COUNTED[code]
    total = 0
    for page in pages:
        for reservation in trees(page, "Reservations"):
            for instance in trees(reservation, "Instances"):
                family = str(instance.get("InstanceType")).partition(".")[0]
                lifecycle = instance.get("InstanceLifecycle")
                if re.fullmatch(families, family) and lifecycle == ("spot" if spot else None):
                    cpu = tree(instance, "CpuOptions")
                    total += number(cpu, "CoreCount") * number(cpu, "ThreadsPerCore")
    return total
