"""ResourceSlices and DeviceClasses, and what they share with claims: names, selectors, configuration.

Source: kubernetes pkg/apis/resource/validation/validation.go (1.36).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from gpukube_sandbox.kube.store.cel.selectors import CelSyntaxError, compile_selector
from gpukube_sandbox.kube.store.cel.values import is_version
from gpukube_sandbox.kube.store.quantities import is_extended, parse_quantity
from gpukube_sandbox.kube.store.validation.fields import (
    Cause,
    dns_label,
    duplicate,
    forbidden,
    invalid,
    label_value,
    positive,
    qualified_name,
    required,
    subdomain,
    too_long,
    too_many,
    unsupported,
)
from gpukube_sandbox.kube.store.validation.scheduling import check_node_selector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gpukube_sandbox.kube.store.objects import JsonObject

_LONGEST_DRIVER: Final = 63
_LONGEST_POOL: Final = 253
_LONGEST_VALUE: Final = 64
_LONGEST_IDENTIFIER: Final = 32
_LONGEST_EXPRESSION: Final = 10 * 1024
_LONGEST_PARAMETERS: Final = 10 * 1024
MOST: Final = 32
"""Most requests, constraints, configurations, selectors of a claim or class, and results of an allocation."""
_MOST_DEVICES: Final = 128
_MOST_ADVANCED: Final = 64
"""Most devices of a slice if one has taints or counters."""
_MOST_PROPERTIES: Final = 32
_MOST_COUNTER_SETS: Final = 8
_MOST_CONSUMPTIONS: Final = 2
_MOST_TAINTS: Final = 16
_MOST_CONDITIONS: Final = 4
EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_IDENTIFIER_RULE: Final = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    "or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
_ON_NODES: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE_OF: Final = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_ONE_OF_DEVICE: Final = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true "
    "in the ResourceSlice spec"
)


def check_slice(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject an invalid ResourceSlice, and changes of its driver, pool or node."""
    spec, was = new.get("spec") or {}, (old or {}).get("spec") or {}
    pool = spec.get("pool") or {}
    yield from driver_name(spec.get("driver") or "", "spec.driver")
    yield from pool_name(pool.get("name") or "", "spec.pool.name")
    yield from positive("spec.pool.resourceSliceCount", pool.get("resourceSliceCount") or 0, minimum=1)
    if (generation := pool.get("generation") or 0) < 0:
        yield invalid("spec.pool.generation", generation, "must be greater than or equal to zero")
    if old is not None:
        before = was.get("pool") or {}
        pairs = (
            ("spec.pool.name", pool.get("name"), before.get("name")),
            ("spec.driver", spec.get("driver"), was.get("driver")),
            ("spec.nodeName", spec.get("nodeName"), was.get("nodeName")),
        )
        for field, value, previous in pairs:
            if value != previous:
                yield invalid(field, value, "field is immutable")
    yield from _nodes(spec, "spec", _ON_NODES, _ONE_OF)
    devices, counters = spec.get("devices"), spec.get("sharedCounters")
    if devices is not None and counters is not None:
        yield invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    advanced = any(device.get("taints") or device.get("consumesCounters") for device in devices or ())
    per_device = spec.get("perDeviceNodeSelection") is True
    yield from each(
        devices or (), "spec.devices", _MOST_ADVANCED if advanced else _MOST_DEVICES,
        lambda device, path: _device(device, path, per_device=per_device), by="name",
    )  # fmt: skip
    yield from each(counters or (), "spec.sharedCounters", _MOST_COUNTER_SETS, _counter_set, by="name")


def each(
    items: Sequence[Any],
    path: str,
    most: int,
    check: Callable[[Any, str], Iterator[Cause]],
    *,
    by: str | None = None,
) -> Iterator[Cause]:
    """Check every item of a list, its length, and, by a key ("" for the item itself), that none occurs twice."""
    if len(items) > most:
        yield too_many(path, len(items), most)
        return
    for at, item in enumerate(items):
        yield from check(item, f"{path}[{at}]")
    seen = set()
    for at, item in enumerate(items if by is not None else ()):
        key = item.get(by) or "" if by else item
        if key in seen:
            yield duplicate(f"{path}[{at}]", key)
        seen.add(key)


def driver_name(name: str, path: str) -> Iterator[Cause]:
    """Reject a name that no driver can have."""
    if not name:
        yield required(path)
        return
    if len(name) > _LONGEST_DRIVER:
        yield too_long(path, _LONGEST_DRIVER)
    for cause in subdomain(path, name.lower()):
        yield Cause(cause.reason, cause.field, cause.text.replace(json.dumps(name.lower()), json.dumps(name), 1))


def pool_name(name: str, path: str) -> Iterator[Cause]:
    """Reject a name that is not one or more subdomains between slashes."""
    if not name:
        yield required(path)
        return
    if len(name) > _LONGEST_POOL:
        yield too_long(path, _LONGEST_POOL)
    for part in name.split("/"):
        yield from subdomain(path, part)


def _nodes(given: JsonObject, path: str, choices: Sequence[str], rule: str) -> Iterator[Cause]:
    """Reject a selection of nodes unless exactly one of the choices makes it."""
    used: list[str] = []
    for name in choices:
        value, field = given.get(name), f"{path}.{name}"
        if value is None:
            continue
        if name == "nodeName":
            used += [f"`{name}`"] if value else []
            yield from subdomain(field, value) if value else iter([invalid(field, value, _empty(choices))])
        elif name == "nodeSelector":
            used.append(f"`{name}`")
            yield from check_node_selector(value, field)
            terms = value.get("nodeSelectorTerms")
            if choices is _ON_NODES and len(terms or ()) != 1:
                yield invalid(f"{field}.nodeSelectorTerms", terms, "must have exactly one node selector term")
        else:
            used += [f"`{name}`"] if value else []
            if not value:
                yield invalid(field, value, "must be either unset or set to true")
    if not used:
        yield required(path, rule)
    elif len(used) > 1:
        more = ", but multiple fields are set" if choices is _ON_NODES else ""
        yield invalid(path, f"{{{', '.join(used)}}}", rule + more)


def _empty(choices: Sequence[str]) -> str:
    return "must be either unset or set to a non-empty string" if choices is _ON_NODES else "must not be empty"


def _device(device: JsonObject, path: str, *, per_device: bool) -> Iterator[Cause]:
    yield from dns_label(f"{path}.name", device.get("name") or "")
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    if (count := len(attributes) + len(capacity)) > _MOST_PROPERTIES:
        text = f"the total number of attributes and capacities must not exceed {_MOST_PROPERTIES}"
        yield invalid(path, count, text)
    for name, attribute in attributes.items():
        yield from property_name(name, f"{path}.attributes")
        yield from _attribute(attribute, f"{path}.attributes[{name}]")
    for name, amount in capacity.items():
        yield from property_name(name, f"{path}.capacity")
        parse_quantity(amount.get("value", ""))
        if amount.get("requestPolicy") and not device.get("allowMultipleAllocations"):
            yield forbidden(f"{path}.capacity[{name}].requestPolicy", "allowMultipleAllocations must be true")
    yield from each(device.get("taints") or (), f"{path}.taints", _MOST_TAINTS, _taint)
    yield from each(
        device.get("consumesCounters") or (), f"{path}.consumesCounters", _MOST_CONSUMPTIONS,
        lambda use, place: _counters(use, place, "counterSet"), by="counterSet",
    )  # fmt: skip
    choices = ("nodeName", "nodeSelector", "allNodes")
    if per_device:
        yield from _nodes(device, path, choices, _ONE_OF_DEVICE)
    elif any(device.get(name) is not None for name in choices):
        text = (
            "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in "
            "the ResourceSlice spec"
        )
        yield invalid(path, None, text)
    yield from _conditions(device, path)


def property_name(full: str, path: str) -> Iterator[Cause]:
    """Reject a name that no attribute or capacity can have: an identifier, maybe with a domain."""
    domain, slash, name = full.partition("/")
    if slash:
        yield from driver_name(domain, path) if domain else iter([invalid(path, "", "the domain must not be empty")])
    else:
        name = full
    if not name and slash:
        yield invalid(path, "", "the name must not be empty")
        return
    if len(name) > _LONGEST_IDENTIFIER:
        yield too_long(path, _LONGEST_IDENTIFIER)
    if not _IDENTIFIER.fullmatch(name):
        yield invalid(path, name, _IDENTIFIER_RULE)


def _attribute(attribute: JsonObject, path: str) -> Iterator[Cause]:
    if len(attribute) != 1:
        yield invalid(path, attribute or "", "exactly one value must be specified")
    version = attribute.get("version")
    if version is not None and not is_version(str(version)):
        yield invalid(f"{path}.version", version, "must be a string compatible with semver.org spec 2.0.0")
    for form in ("string", "version"):
        if len(str(attribute.get(form) or "")) > _LONGEST_VALUE:
            yield too_long(f"{path}.{form}", _LONGEST_VALUE)


def _taint(taint: JsonObject, path: str) -> Iterator[Cause]:
    yield from qualified_name(f"{path}.key", taint.get("key") or "")
    if taint.get("value"):
        yield from label_value(f"{path}.value", taint["value"])
    if not taint.get("effect"):
        yield required(f"{path}.effect")
    elif taint["effect"] not in EFFECTS:
        yield unsupported(f"{path}.effect", taint["effect"], EFFECTS)


def _counter_set(counters: JsonObject, path: str) -> Iterator[Cause]:
    yield from _counters(counters, path, "name")


def _counters(counters: JsonObject, path: str, key: str) -> Iterator[Cause]:
    if not counters.get(key):
        yield required(f"{path}.{key}")
    else:
        yield from dns_label(f"{path}.{key}", counters[key])
    amounts = counters.get("counters") or {}
    if not amounts:
        yield required(f"{path}.counters")
    elif len(amounts) > MOST:
        yield too_many(f"{path}.counters", len(amounts), MOST)
    for name, amount in amounts.items():
        yield from dns_label(f"{path}.counters", name)
        parse_quantity(amount.get("value", ""))


def _conditions(device: JsonObject, path: str) -> Iterator[Cause]:
    needs, fails = device.get("bindingConditions") or [], device.get("bindingFailureConditions") or []
    for name, found in (("bindingConditions", needs), ("bindingFailureConditions", fails)):
        yield from each(found, f"{path}.{name}", _MOST_CONDITIONS, lambda one, place: qualified_name(place, one), by="")
    for at, one in enumerate(fails):
        if one in needs:
            place = f"{path}.bindingFailureConditions[{at}]"
            yield invalid(place, one, "bindingFailureConditions must not overlap with bindingConditions")
    if fails and not needs:
        text = "bindingConditions are required to use bindingFailureConditions"
        yield invalid(f"{path}.bindingConditions", needs or None, text)
    if needs and not fails:
        text = "bindingFailureConditions are required to use bindingConditions"
        yield invalid(f"{path}.bindingFailureConditions", fails or None, text)


def check_device_class(new: JsonObject, _old: JsonObject | None) -> Iterator[Cause]:
    """Reject an invalid DeviceClass."""
    spec = new.get("spec") or {}
    yield from check_selectors(spec.get("selectors") or (), "spec.selectors")
    yield from each(spec.get("config") or (), "spec.config", MOST, check_configuration)
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended(name):
        yield invalid("spec.extendedResourceName", name, "must be a valid extended resource name")


def check_selectors(selectors: Sequence[JsonObject], path: str) -> Iterator[Cause]:
    """Reject selectors that do not compile."""
    yield from each(selectors, path, MOST, _selector)


def _selector(selector: JsonObject, path: str) -> Iterator[Cause]:
    if selector.get("cel") is None:
        yield required(f"{path}.cel")
        return
    expression, field = str(selector["cel"].get("expression") or ""), f"{path}.cel.expression"
    if len(expression) > _LONGEST_EXPRESSION:
        yield too_long(field, _LONGEST_EXPRESSION)
        return
    try:
        compile_selector(expression)
    except CelSyntaxError as problem:
        prefix = "" if str(problem).startswith("must evaluate") else "compilation failed: "
        yield invalid(field, expression, f"{prefix}{problem}")


def check_configuration(config: JsonObject, path: str) -> Iterator[Cause]:
    """Reject a configuration without a driver or parameters."""
    opaque = config.get("opaque")
    if opaque is None:
        yield required(f"{path}.opaque")
        return
    yield from driver_name(opaque.get("driver") or "", f"{path}.opaque.driver")
    parameters, field = opaque.get("parameters"), f"{path}.opaque.parameters"
    if parameters is None:
        yield required(field)
    elif len(json.dumps(parameters, separators=(",", ":"))) > _LONGEST_PARAMETERS:
        yield too_long(field, _LONGEST_PARAMETERS)
    elif not isinstance(parameters, dict):
        yield invalid(field, "<value omitted>", "must be a valid JSON object")
