"""Existing resources that an agent pool names by ARM id. Only declared resources exist.

In scope: rejecting ids of resources that do not exist. Out of scope: other rules (`rules`, `reservations`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube_sandbox.aks.answers import ArmError, Json, aks_error, bad_parameter
from gpukube_sandbox.shapes import Keys, WrongEntry, check_entry

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

_ID = re.compile(
    r"/subscriptions/(?P<subscription>[^/]+)/resourceGroups/(?P<group>[^/]+)/providers/(?P<kind>[^/]+/[^/]+)/(?P<name>[^/]+)"
    r"(?:/subnets/(?P<subnet>[^/]+))?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Reference:
    """A property that names a resource.

    Attributes:
        kind: Resource type; for a subnet, that of its network.
        missing: Returns the error for a missing resource, from the property and the parts of the id.
    """

    property: str
    kind: str
    missing: Callable[[str, re.Match[str]], ArmError]


def _no_subnet(key: str, found: re.Match[str]) -> ArmError:
    """Return the error of a missing subnet (sassoftware/viya4-iac-azure#163; the target is unconfirmed)."""
    message = (
        f"Could not find subnet {found['subnet']} in vnet {found['name']} from resource group {found['group']} of "
        f"subscription {found['subscription']}."
    )
    return aks_error("SubnetNotFound", message, target=f"agentPoolProfile.{key}")


def _no_resource(key: str, found: re.Match[str]) -> ArmError:
    """Return ARM's own error of a missing resource; that AKS passes it on unchanged is unconfirmed."""
    message = (
        f"The Resource '{found['kind']}/{found['name']}' under resource group '{found['group']}' was not found. For "
        "more details please go to https://aka.ms/ARMResourceNotFoundFix"
    )
    return aks_error("ResourceNotFound", message, target=f"agentPoolProfile.{key}")


REFERENCES = (
    Reference("vnetSubnetID", "Microsoft.Network/virtualNetworks", _no_subnet),
    Reference("podSubnetID", "Microsoft.Network/virtualNetworks", _no_subnet),
    Reference("proximityPlacementGroupID", "Microsoft.Compute/proximityPlacementGroups", _no_resource),
    Reference("capacityReservationGroupID", "Microsoft.Compute/capacityReservationGroups", _no_resource),
    Reference("hostGroupID", "Microsoft.Compute/hostGroups", _no_resource),
    Reference("nodePublicIPPrefixID", "Microsoft.Network/publicIPPrefixes", _no_resource),
)


def ids_in(pool: Json) -> list[str]:
    """List the ids that a pool's properties name."""
    return [str(pool[reference.property]) for reference in REFERENCES if pool.get(reference.property)]


def short_id(identity: str) -> str:
    """Return the human-readable part of an id: type and name."""
    return identity.rpartition("/providers/")[2].partition("/")[2] or identity


def read_resources(entry: Json) -> list[str]:
    """Return the ids of `{"resources": [id]}`.

    Raises:
        WrongEntry: Another key, or an id that is not of a resource that a pool can name.
    """
    check_entry(entry, Keys({"resources": [str]}))
    given = entry["resources"]
    ids = [str(item) for item in given] if isinstance(given, list) else []
    kinds = sorted({reference.kind for reference in REFERENCES})
    for at, identity in enumerate(ids):
        found = _ID.fullmatch(identity)
        if not found or found["kind"].lower() not in map(str.lower, kinds):
            text = f"{identity} is not the id of a resource that a pool can name; the types are {', '.join(kinds)}"
            raise WrongEntry(text, "resources", at)
    return ids


def check_references(pool: Json, resources: Collection[str]) -> None:
    """Reject ids of the wrong type and of resources that do not exist.

    Args:
        pool: Wire properties.
        resources: Ids of existing resources, in lowercase.

    Raises:
        ArmError: 400.
    """
    for reference in REFERENCES:
        key, given = reference.property, str(pool.get(reference.property) or "")
        found = _ID.fullmatch(given)
        if not given or given.lower() in resources:
            continue
        is_subnet = reference.missing is _no_subnet
        if not found or found["kind"].lower() != reference.kind.lower() or bool(found["subnet"]) != is_subnet:
            kind = f"{reference.kind}/subnets" if is_subnet else reference.kind
            raise bad_parameter(f"'{given}' is not the ID of a resource of type {kind}.", f"agentPoolProfile.{key}")
        raise reference.missing(key, found)
