"""Resource requests and limits of containers, and resource names.

Source: kubernetes pkg/apis/core/validation (validateResourceRequirements, validateContainerResourceName,
validateResourceClaimNames).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpukube_sandbox.kube.store.quantities import canonical, is_extended, is_native, parse_quantity
from gpukube_sandbox.kube.store.validation.fields import (
    duplicate,
    forbidden,
    invalid,
    not_found,
    qualified_name,
    required,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.validation.fields import Cause

_OF_CONTAINERS = frozenset({"cpu", "memory", "ephemeral-storage"})
_HUGE = "hugepages-"


def check_resources(resources: JsonObject, path: str, claims: set[Any]) -> Iterator[Cause]:
    """Reject resources that are misnamed, negative, fractions of devices, or inconsistent with their limits.

    Args:
        resources: A container's requests, limits and claims.
        path: Their path in the object.
        claims: Names of the pod's claims.
    """
    limits: Mapping[str, str] = resources.get("limits") or {}
    requests: Mapping[str, str] = resources.get("requests") or {}
    for name, value in sorted(limits.items()):
        yield from check_amount(name, value, f"{path}.limits[{name}]")
    for name, value in sorted(requests.items()):
        yield from check_amount(name, value, f"{path}.requests[{name}]")
        may_overcommit = is_native(name) and not name.startswith(_HUGE)
        if name not in limits:
            if not may_overcommit:
                yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
            continue
        requested, maximum = parse_quantity(value), parse_quantity(limits[name])
        if requested != maximum if not may_overcommit else requested > maximum:
            rule = "must be less than or equal to" if may_overcommit else "must be equal to"
            yield invalid(f"{path}.requests", canonical(value), f"{rule} {name} limit of {canonical(limits[name])}")
    names = {*limits, *requests}
    if any(name.startswith(_HUGE) for name in names) and not {"cpu", "memory"} & names:
        yield forbidden(path, "HugePages require cpu or memory")
    seen = set()
    for at, claim in enumerate(resources.get("claims") or ()):
        name, field = claim.get("name") or "", f"{path}.claims[{at}]"
        if not name:
            yield required(f"{field}.name")
        elif name not in claims:
            yield not_found(field, name)
        if (name, claim.get("request")) in seen:
            yield duplicate(field, name)
        seen.add((name, claim.get("request")))


def check_amount(name: str, value: str, field: str) -> Iterator[Cause]:
    """Reject a resource that a container cannot request, and an invalid amount."""
    yield from check_name(name, field)
    yield from check_count(name, value, field)
    if name.startswith(_HUGE) and parse_quantity(value) % parse_quantity(name.removeprefix(_HUGE)):
        yield invalid(field, canonical(value), "must be a multiple of the page size")


def check_count(name: str, value: str, field: str) -> Iterator[Cause]:
    """Reject negative amounts, and fractions of resources that are counted in integers."""
    amount = parse_quantity(value)
    if amount < 0:
        yield invalid(field, canonical(value), "must be greater than or equal to 0")
    if is_extended(name) and amount != amount.to_integral_value():
        yield invalid(field, canonical(value), "must be an integer")


def check_name(name: str, field: str) -> Iterator[Cause]:
    """Reject a name that is not a container resource."""
    faults = list(qualified_name(field, name))
    yield from faults
    if "/" not in name:
        if name not in _OF_CONTAINERS and not name.startswith(_HUGE):
            if not faults:
                yield invalid(field, name, "must be a standard resource type or fully qualified")
            yield invalid(field, name, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        yield invalid(field, name, "doesn't follow extended resource name standard")
