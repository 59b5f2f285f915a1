"""Network interfaces and security groups of the nodes in a launch template: written, changed, and read back.

In scope: converting `network.highSpeed` and `eks.securityGroups` to members and back. Out of scope: which interfaces a
machine needs (`facts.fabric`), what the cluster's network must have (`connectivity`).

With interfaces, security groups belong to each of them; EC2 rejects them beside interfaces. As soon as a template names
a group, EKS no longer adds the cluster's own, so gpukube does (docs: eks/launch-templates; botocore ec2
RequestLaunchTemplateData).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.fields import HIGH_SPEED, FieldPath
from gpukube.core.jsontree import strings, trees
from gpukube_eks.facts.fabric import efa_interfaces

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.jsontree import Tree
    from gpukube.core.values import Target

SECURITY_GROUPS: Final = FieldPath("eks", "securityGroups")
_INTERFACES: Final = "NetworkInterfaces"
_GROUPS: Final = "SecurityGroupIds"
_NAMES: Final = "SecurityGroups"
"""Security groups by name, which only templates of others have."""
_EFA: Final = frozenset({"efa", "efa-only"})


def declared_groups(target: Target) -> tuple[str, ...]:
    """Return the security groups of the spec."""
    return strings(target.native, "securityGroups")


def new_network(target: Target) -> dict[str, object]:
    """Return the members of a new launch template, without the cluster's own security group (`with_cluster_group`)."""
    groups = list(declared_groups(target))
    if not target.high_speed:
        return {_GROUPS: groups} if groups else {}
    interfaces = [
        {
            "NetworkCardIndex": one.card,
            "DeviceIndex": one.device,
            "InterfaceType": one.kind,
            "DeleteOnTermination": True,
            **({"Groups": groups} if groups else {}),
        }
        for one in efa_interfaces(target.machine)
    ]
    return {_INTERFACES: interfaces}


def with_cluster_group(data: Tree, group: str) -> dict[str, object]:
    """Add the cluster's security group to a new launch template that names groups or interfaces."""
    if not (data.get(_INTERFACES) or data.get(_GROUPS)):
        return dict(data)
    return {**data, **_with_groups(data, list(dict.fromkeys([group, *groups_of(data)])))}


def groups_of(data: Tree) -> tuple[str, ...]:
    """Return the security groups of a launch template, by id."""
    interfaces = trees(data, _INTERFACES)
    listed = [*strings(data, _GROUPS), *(group for one in interfaces for group in strings(one, "Groups"))]
    return tuple(dict.fromkeys(listed))


def has_efa(data: Tree) -> bool:
    """Return whether nodes of a launch template have EFA."""
    return any(one.get("InterfaceType") in _EFA for one in trees(data, _INTERFACES))


def changed_network(new: Tree, live: Tree, *, declared: bool) -> dict[str, object]:
    """Return the changed members of a live launch template; None removes a member.

    Args:
        new: Data of the pool's new launch template, with the cluster's security group.
        live: Data of the live one. Its own EFA interfaces stay, with other groups.
        declared: Whether the spec names the groups; otherwise the live ones stay.
    """
    groups = list(groups_of(new) if declared else dict.fromkeys([*groups_of(new), *groups_of(live)]))
    keeps = bool(live.get(_INTERFACES)) and has_efa(live) == has_efa(new)
    if keeps:
        found = _with_groups(live, groups)
    elif has_efa(new):
        found = _with_groups(new, groups)
    else:
        found = {_INTERFACES: None, **({_GROUPS: groups} if groups else {})}
    removed = dict.fromkeys((_GROUPS, _NAMES)) if found.get(_INTERFACES) else {}
    return {name: value for name, value in {**removed, **found}.items() if value is not None or name in live}


def read_network(data: Mapping[str, object], cluster_group: str) -> dict[FieldPath, object]:
    """Return the comparable fields of a live launch template.

    Args:
        data: Its data.
        cluster_group: The cluster's own security group, which no spec has; "" if unknown.
    """
    groups = tuple(sorted({*groups_of(data)} - {cluster_group}))
    found: dict[FieldPath, object] = {HIGH_SPEED: True} if has_efa(data) else {}
    return found | ({SECURITY_GROUPS: groups} if groups else {})


def _with_groups(data: Tree, groups: Sequence[str]) -> dict[str, object]:
    """Return the members with these groups: on each interface if there are any."""
    if interfaces := trees(data, _INTERFACES):
        return {_INTERFACES: [{**one, "Groups": list(groups)} for one in interfaces]}
    return {_GROUPS: list(groups)}
