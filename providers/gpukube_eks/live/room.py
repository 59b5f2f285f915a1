"""Checks limits for one more node group: free addresses, and groups per cluster.

In scope: the calls, and parsing their responses. Out of scope: quotas of machines (`quotas`).

A node needs at least one address in its subnet; how many more its pods need depends on the VPC CNI's settings. So only
what cannot work at all is reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import number, strings, trees
from gpukube.errors import Finding, GpukubeError, Where
from gpukube_eks.live.failures import explained
from gpukube_eks.live.quotas import read_limit
from gpukube_eks.pool.translate import group_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.core.values import ClusterRef, Desired
    from gpukube_eks.live.sdk import Aws

GROUPS_PER_CLUSTER: Final = "L-6D54EA21"
"""Code of the quota "Managed node groups per cluster" (docs: general/eks)."""
_RECREATE: Final = "use --replace recreate, which deletes the pool first"


def read_room(aws: Aws, cluster: ClusterRef, successor: Desired, pools: int) -> list[Finding]:
    """Return problems of one more node group in the cluster; a failed read is a warning, with the reason."""
    where = successor.target.where
    return [
        *_guarded("node groups per cluster", where, lambda: _groups(aws, cluster, where, pools)),
        *_guarded("free addresses", where, lambda: _addresses(aws, cluster, successor)),
    ]


def _groups(aws: Aws, cluster: ClusterRef, where: Where, pools: int) -> Iterator[Finding]:
    most = read_limit(aws, GROUPS_PER_CLUSTER, cluster.key, service="eks")
    if pools < most:
        return
    increase = f"aws service-quotas request-service-quota-increase --service-code eks --quota-code {GROUPS_PER_CLUSTER}"
    yield Finding(
        "surge-impossible",
        where,
        f"the cluster has {pools} node groups, the maximum (quota {GROUPS_PER_CLUSTER})",
        fix=f"raise it: {increase} --desired-value {pools + 1}; or {_RECREATE}",
    )


def _addresses(aws: Aws, cluster: ClusterRef, successor: Desired) -> Iterator[Finding]:
    names, nodes = strings(group_of(successor), "subnets"), successor.target.nodes.count
    if not names or not nodes:
        return
    with explained(cluster.key):
        answer = aws.ec2.describe_subnets(Filters=[{"Name": "subnet-id", "Values": sorted(names)}])
    free = sum(number(item, "AvailableIpAddressCount") for item in trees(answer, "Subnets"))
    if free < nodes:
        yield Finding(
            "surge-impossible",
            successor.target.where,
            f"its {nodes} nodes need an address each, but {', '.join(sorted(names))} have {free} left",
            fix=f"write other subnets (eks.subnets); or {_RECREATE}",
        )


def _guarded(what: str, where: Where, read: Callable[[], Iterator[Finding]]) -> list[Finding]:
    try:
        return list(read())
    except GpukubeError as error:
        return [Finding("surge-impossible", where, f"{what}: {error}", severity="warning")]
