"""Spot placement scores of Microsoft.Compute.

In scope: the check of a request and its response. Out of scope: HTTP (`routes`), counting machines (`stock`).

Sources: azure-mgmt-computerecommender SpotPlacementScoresInput and SpotPlacementScoresResponse, docs:
virtual-machine-scale-sets/spot-placement-score (limits, scores). Codes and messages of errors, and the spelling of the
scores for sizes without one, are unconfirmed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.aks.answers import ArmError, arm_error
from gpukube_sandbox.aks.locations import is_location
from gpukube_sandbox.aks.sizes import find_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube_sandbox.aks.answers import Json
    from gpukube_sandbox.aks.restrictions import Restrictions
    from gpukube_sandbox.aks.sizes import VmSize

    Free = Callable[[str, str, str], int | None]
    """Zone ("eastus-1") or location, size, kind of stock -> machines that are available now; None without limit."""
    HasQuota = Callable[[str, int], bool]
    """Location, vCPUs -> whether the Spot quota has room for them."""

VERSIONS = ("2025-02-01-preview", "2025-06-05")
_MAX_LOCATIONS, _MAX_SIZES = 8, 5
_MAX_COUNT = 1000
_RESTRICTED, _NO_DATA = "Restricted SKU", "Data Not Found"


def spot_scores(subscription: str, body: object, free: Free, has_quota: HasQuota, barred: Restrictions) -> Json:
    """Return the input and a score for each size and location, or for each of its zones.

    Raises:
        ArmError: 400 for too many or missing locations or sizes, or a count out of bounds.
    """
    sent = body if isinstance(body, dict) else {}
    places, sizes = _texts(sent.get("desiredLocations")), _texts(_skus(sent.get("desiredSizes")))
    count, zonal = sent.get("desiredCount", 1), sent.get("availabilityZones") is True
    for name, given, maximum in (("desiredLocations", places, _MAX_LOCATIONS), ("desiredSizes", sizes, _MAX_SIZES)):
        if not 0 < len(given) <= maximum:
            raise _refusal(f"{name} has {len(given)} entries. It must have 1 to {maximum}.")
    if type(count) is not int or not 0 < count <= _MAX_COUNT:
        raise _refusal(f"desiredCount is {count}. It must be 1 to {_MAX_COUNT}.")
    found: list[Json] = []
    for place in places:
        for name in sizes:
            size = find_size(name)
            zones = list(size.zones) if size and zonal else [""]
            for zone in zones:
                score = _score(subscription, place, zone, size, count, free, barred) if size else _NO_DATA
                fits = size is not None and has_quota(place, count * size.vcpus)
                one: Json = {"sku": name, "region": place, "availabilityZone": zone or None}
                found.append({**one, "score": score, "isQuotaAvailable": fits})
    return {
        "desiredLocations": places,
        "desiredSizes": [{"sku": name} for name in sizes],
        "desiredCount": count,
        "availabilityZones": zonal,
        "placementScores": found,
    }


def _score(  # noqa: PLR0913, PLR0917 - one cell of the response
    subscription: str, place: str, zone: str, size: VmSize, count: int, free: Free, barred: Restrictions
) -> str:
    if not is_location(place):
        return _NO_DATA
    if size.restricted or barred.bars(subscription, place, size.name, zone):
        return _RESTRICTED
    left = free(f"{place}-{zone}" if zone else place, size.name, "spot")
    if left is None or left >= 3 * count:
        return "High"
    return "Medium" if left >= count else "Low"


def _skus(given: object) -> object:
    return [one.get("sku") for one in given if isinstance(one, dict)] if isinstance(given, list) else None


def _texts(given: object) -> list[str]:
    return [str(one) for one in given] if isinstance(given, list) else []


def _refusal(message: str) -> ArmError:
    return arm_error(400, "InvalidParameter", message)
