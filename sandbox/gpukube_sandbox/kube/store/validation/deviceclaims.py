"""ResourceClaims, their status, and ResourceClaimTemplates.

Source: kubernetes pkg/apis/resource/validation/validation.go, pkg/registry/resource/utils.go (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube_sandbox.kube.store.validation.devices import (
    EFFECTS,
    MOST,
    check_configuration,
    check_selectors,
    driver_name,
    each,
    pool_name,
    property_name,
)
from gpukube_sandbox.kube.store.validation.fields import (
    dns_label,
    forbidden,
    invalid,
    label_value,
    positive,
    qualified_name,
    required,
    subdomain,
    unsupported,
)
from gpukube_sandbox.kube.store.validation.metadata import check_marks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.validation.fields import Cause

ADMIN_ACCESS: Final = "resource.kubernetes.io/admin-access"
"""Label of namespaces whose claims may have admin access."""
_MOST_ALTERNATIVES: Final = 8
_MOST_CONSUMERS: Final = 256
_MODES: Final = ("All", "ExactCount")
_OPERATORS: Final = ("Equal", "Exists")
_ONE_OF: Final = "exactly one of `exactly` or `firstAvailable` is required"
_CONSTRAINT: Final = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
_REFERENCE: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_PARTS: Final = 2


def check_device_claim(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject an invalid ResourceClaim, a change of its spec, and an invalid status."""
    spec, was = new.get("spec") or {}, (old or {}).get("spec") or {}
    if old is None:
        yield from _spec(spec, "spec")
    elif spec != was:
        yield invalid("spec", spec, "field is immutable")
    before = (old or {}).get("status") or {}
    if old is not None and (new.get("status") or {}) != before:
        yield from _status(new, before)


def check_claim_template(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject an invalid ResourceClaimTemplate, and a change of its spec."""
    spec = new.get("spec") or {}
    if old is None:
        yield from check_marks(spec.get("metadata") or {}, "spec.metadata")
        yield from _spec(spec.get("spec") or {}, "spec.spec")
    elif spec != (old.get("spec") or {}):
        yield invalid("spec", spec, "field is immutable")


def _spec(spec: JsonObject, path: str) -> Iterator[Cause]:
    devices, place = spec.get("devices") or {}, f"{path}.devices"
    names = _references(devices)
    yield from each(devices.get("requests") or (), f"{place}.requests", MOST, _request, by="name")
    yield from each(
        devices.get("constraints") or (), f"{place}.constraints", MOST,
        lambda one, field: _constraint(one, field, names),
    )  # fmt: skip
    yield from each(devices.get("config") or (), f"{place}.config", MOST, lambda one, field: _config(one, field, names))


def _references(devices: JsonObject) -> set[str]:
    """Return how constraints, configurations and results can name the requests."""
    found: set[str] = set()
    for request in devices.get("requests") or ():
        name = request.get("name") or ""
        found |= {name, *(f"{name}/{one.get('name') or ''}" for one in request.get("firstAvailable") or ())}
    return found


def _request(request: JsonObject, path: str) -> Iterator[Cause]:
    yield from dns_label(f"{path}.name", request.get("name") or "")
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or ()
    if exactly is not None and alternatives:
        yield invalid(path, None, f"{_ONE_OF}, but multiple fields are set")
    elif alternatives:
        yield from each(alternatives, f"{path}.firstAvailable", _MOST_ALTERNATIVES, _alternative, by="name")
    elif exactly is not None:
        yield from _devices(exactly, f"{path}.exactly")
    else:
        yield required(path, _ONE_OF)


def _alternative(request: JsonObject, path: str) -> Iterator[Cause]:
    yield from dns_label(f"{path}.name", request.get("name") or "")
    yield from _devices(request, path)


def _devices(request: JsonObject, path: str) -> Iterator[Cause]:
    name, mode, count = request.get("deviceClassName"), request.get("allocationMode"), request.get("count") or 0
    if not name:
        yield required(f"{path}.deviceClassName")
    else:
        yield from subdomain(f"{path}.deviceClassName", name)
    yield from check_selectors(request.get("selectors") or (), f"{path}.selectors")
    if mode not in _MODES:
        yield unsupported(f"{path}.allocationMode", mode, _MODES)
    elif mode == "All" and count:
        yield invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount":
        yield from positive(f"{path}.count", count, minimum=1)
    for at, toleration in enumerate(request.get("tolerations") or ()):
        yield from _toleration(toleration, f"{path}.tolerations[{at}]")


def _toleration(toleration: JsonObject, path: str) -> Iterator[Cause]:
    operator, effect = toleration.get("operator"), toleration.get("effect")
    if toleration.get("key"):
        yield from qualified_name(f"{path}.key", toleration["key"])
    if operator not in _OPERATORS:
        yield unsupported(f"{path}.operator", operator, _OPERATORS)
    elif operator == "Equal":
        yield from label_value(f"{path}.value", toleration.get("value") or "")
    elif toleration.get("value"):
        yield invalid(f"{path}.value", toleration["value"], "must be empty for operator `Exists`")
    if effect and effect not in EFFECTS:
        yield unsupported(f"{path}.effect", effect, EFFECTS)


def _constraint(constraint: JsonObject, path: str, names: set[str]) -> Iterator[Cause]:
    yield from _named(constraint, path, names)
    kind = next((key for key in ("matchAttribute", "distinctAttribute") if constraint.get(key) is not None), "")
    if not kind:
        yield required(path, _CONSTRAINT)
        return
    field, attribute = f"{path}.{kind}", str(constraint[kind])
    yield from property_name(attribute, field)
    if "/" not in attribute:
        yield invalid(field, attribute, "a fully qualified name must be a domain and a name separated by a slash")


def _config(config: JsonObject, path: str, names: set[str]) -> Iterator[Cause]:
    yield from _named(config, path, names)
    yield from check_configuration(config, path)


def _named(part: JsonObject, path: str, names: set[str]) -> Iterator[Cause]:
    """Reject references to requests that do not exist."""
    requests = part.get("requests") or ()
    yield from each(requests, f"{path}.requests", MOST, lambda name, field: _reference(name, field, names), by="")


def _reference(name: str, path: str, names: set[str]) -> Iterator[Cause]:
    parts = name.split("/")
    if len(parts) <= _PARTS:
        for part in parts:
            yield from dns_label(path, part)
    if name not in names:
        yield invalid(path, name, _REFERENCE)


def _status(claim: JsonObject, before: JsonObject) -> Iterator[Cause]:
    status = claim.get("status") or {}
    consumers, allocation = status.get("reservedFor") or [], status.get("allocation")
    yield from each(consumers, "status.reservedFor", _MOST_CONSUMERS, _consumer, by="uid")
    if consumers and allocation is None:
        yield forbidden("status.reservedFor", "may not be specified when `allocated` is not set")
    elif consumers and (claim.get("metadata") or {}).get("deletionTimestamp"):
        known = {one.get("uid") for one in before.get("reservedFor") or ()}
        if any(one.get("uid") not in known for one in consumers):
            text = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
            yield forbidden("status.reservedFor", text)
    if allocation is None:
        return
    if before.get("allocation") is not None:
        if allocation != before["allocation"]:
            yield invalid("status.allocation", allocation, "field is immutable")
        return
    names = _references((claim.get("spec") or {}).get("devices") or {})
    results = (allocation.get("devices") or {}).get("results") or ()
    yield from each(results, "status.allocation.devices.results", MOST, lambda one, field: _result(one, field, names))


def _consumer(consumer: JsonObject, path: str) -> Iterator[Cause]:
    for key in ("resource", "name", "uid"):
        if not consumer.get(key):
            yield required(f"{path}.{key}")


def _result(result: JsonObject, path: str, names: set[str]) -> Iterator[Cause]:
    yield from _reference(result.get("request") or "", f"{path}.request", names)
    yield from driver_name(result.get("driver") or "", f"{path}.driver")
    yield from pool_name(result.get("pool") or "", f"{path}.pool")
    yield from dns_label(f"{path}.device", result.get("device") or "")
