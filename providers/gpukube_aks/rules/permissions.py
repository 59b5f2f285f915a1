"""The Azure role definitions that specs need: per subscription up to three, one for each kind of scope.

In scope: which permissions apply, and where their roles can be assigned. Out of scope: the permissions themselves
(`facts.permissions`).

A role assigned on a resource group allows nothing outside of it; but quotas and operations belong to the subscription,
and subnets often to another group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import at, text
from gpukube.core.permissions import CloudPolicy
from gpukube_aks.facts.permissions import PERMISSIONS, PLACEMENT, PREFIXES, RESERVED, SUBNETS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpukube.core.permissions import ClusterPools, PolicyScope

_LINKED: Final = {
    "vnetSubnetID": SUBNETS,
    "podSubnetID": SUBNETS,
    "nodePublicIPPrefixID": PREFIXES,
    "proximityPlacementGroupID": PLACEMENT,
    "capacityReservationGroupID": RESERVED,
}
"""Members that reference external resources -> `when` of the rows that they need."""
_UNDOCUMENTED: Final = ("hostGroupID", "creationData", "networkProfile.applicationSecurityGroups")
_SCOPES: Final = {"group": "", "subscription": "-subscription", "linked": "-linked"}
"""Kind of scope -> suffix of names."""
_WORDS: Final = {
    "group": "the clusters' resource groups",
    "subscription": "the subscription",
    "linked": "resources that pools reference",
}


def write_policies(scope: PolicyScope) -> tuple[CloudPolicy, ...]:
    """Return the role definitions of each subscription."""
    places = scope.by("subscription").items()
    return tuple(policy for place, clusters in places for policy in _policies(place, clusters, scope))


def _policies(subscription: str, clusters: Sequence[ClusterPools], scope: PolicyScope) -> Iterator[CloudPolicy]:
    linked = _linked(clusters)
    chosen = scope.choose(PERMISSIONS, {_LINKED[member] for member, _ in linked})
    groups = sorted(
        {f"/subscriptions/{subscription}/resourceGroups/{item.cluster.identity['resourceGroup']}" for item in clusters}
    )
    places = {
        "group": groups,
        "subscription": [f"/subscriptions/{subscription}"],
        "linked": sorted({resource for _, resource in linked}),
    }
    for kind, ending in _SCOPES.items():
        rows = tuple(row for row in chosen if row.scope == kind)
        if not rows:
            continue
        name = f"gpukube {scope.level}{ending} {subscription}"
        file = f"aks-{subscription}-{scope.level}{ending}.json"
        # The smallest scope of a role definition is a resource group (docs: custom-roles).
        yield CloudPolicy(
            title=f"Azure role for {_WORDS[kind]} ({subscription})",
            place=subscription,
            clusters=tuple(item.cluster.key for item in clusters),
            file=file,
            documents=(
                {
                    "Name": name,
                    "IsCustom": True,
                    "Description": f"gpukube {scope.level}: {_WORDS[kind]}",
                    "Actions": sorted({row.name for row in rows}),
                    "NotActions": [],
                    "DataActions": [],
                    "NotDataActions": [],
                    "AssignableScopes": sorted({"/".join(place.split("/")[:5]) for place in places[kind]}),
                },
            ),
            commands=(
                f"az role definition create --role-definition @{file}",
                *(f'az role assignment create --assignee IDENTITY --role "{name}" --scope {p}' for p in places[kind]),
            ),
            permissions=rows,
            notes=tuple(_notes(kind, clusters, scope)),
        )


def _linked(clusters: Sequence[ClusterPools]) -> list[tuple[str, str]]:
    """List the pools' members that reference external resources, with the ids."""
    return [
        (member, linked)
        for item in clusters
        for pool in item.desired
        for member in _LINKED
        if (linked := text(pool.create.params, "body", "properties", member))
    ]


def _notes(kind: str, clusters: Sequence[ClusterPools], scope: PolicyScope) -> Iterator[str]:
    pools = [pool for item in clusters for pool in item.desired]
    if kind == "subscription":
        missing = "quotas are not checked" + (
            "" if scope.level == "plan" else ", and a failed change shows fewer details"
        )
        yield f"optional: without it {missing}"
    if kind != "group" or scope.level != "apply":
        return
    if any(pool.target.capacity.reservation for pool in pools):
        yield (
            "the cluster's own identity uses the capacity reservation group and needs a role on it "
            "(docs: aks/use-capacity-reservation-groups)"
        )
    for member in _UNDOCUMENTED:
        if any(at(pool.target.native, *member.split(".")) for pool in pools):
            yield f"aks.{member} may need a permission on the resource it references; Azure does not document it"
