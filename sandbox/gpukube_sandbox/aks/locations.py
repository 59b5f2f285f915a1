"""Azure's locations, in all its clouds.

Source: docs: azure/reliability/regions-list, as of May 2026, plus the early-access and announced locations that
Azure's service tags name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpukube_sandbox.shapes import WrongEntry, check_known

if TYPE_CHECKING:
    from collections.abc import Mapping

_ALL: Final = """
    australiacentral australiacentral2 australiaeast australiasoutheast austriaeast belgiumcentral brazilsouth
    brazilsoutheast canadacentral canadaeast centralindia centralus centraluseuap chilecentral denmarkeast eastasia
    eastus eastus2 eastus2euap eastus3 francecentral francesouth germanynorth germanywestcentral indiasouthcentral
    indonesiacentral israelcentral israelnorthwest italynorth japaneast japanwest jioindiacentral jioindiawest
    koreacentral koreasouth malaysiasouth malaysiawest mexicocentral newzealandnorth northcentralus northeastus5
    northeurope norwayeast norwaywest polandcentral qatarcentral saudiarabiaeast southafricanorth southafricawest
    southcentralus southcentralus2 southeastasia southeastasia3 southeastus southeastus3 southeastus5 southindia
    southwestus spaincentral swedencentral swedensouth switzerlandnorth switzerlandwest taiwannorth taiwannorthwest
    uaecentral uaenorth uksouth ukwest westcentralus westeurope westindia westus westus2 westus3
    usgovvirginia usgovarizona usgovtexas usgoviowa usdodeast usdodcentral
    chinaeast chinaeast2 chinaeast3 chinanorth chinanorth2 chinanorth3
"""
LOCATIONS: Final = frozenset(_ALL.split())


_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def is_location(name: str) -> bool:
    """Return whether a location exists, by name or display name ("East US")."""
    return name.replace(" ", "").lower() in LOCATIONS


def check_subscription(entry: Mapping[str, object]) -> None:
    """Reject an entry whose `subscription` is not an id or whose `location` does not exist.

    Raises:
        WrongEntry: The first mistake.
    """
    if not _UUID.fullmatch(str(entry["subscription"])):
        example = "11111111-2222-3333-4444-555555555555"
        raise WrongEntry(
            f"subscription is {entry['subscription']}; it must be a UUID such as {example}", "subscription"
        )
    if not is_location(str(entry.get("location") or "eastus")):
        check_known(entry.get("location"), LOCATIONS, "location")
