"""Selectors of devices: expressions about one device of a ResourceSlice.

In scope: compiling an expression, matching it with a device. Out of scope: which devices are free (`kube.scheduler`).

Source: k8s.io/dynamic-resource-allocation cel/compile.go.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from gpukube_sandbox.kube.store.cel.checking import DEVICE, check
from gpukube_sandbox.kube.store.cel.evaluation import evaluate
from gpukube_sandbox.kube.store.cel.syntax import CelSyntaxError, parse
from gpukube_sandbox.kube.store.cel.values import CelError, Quantity, parse_version
from gpukube_sandbox.kube.store.quantities import parse_quantity

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.cel.syntax import Node
    from gpukube_sandbox.kube.store.objects import JsonObject

__all__ = ["CelError", "CelSyntaxError", "compile_selector", "matches_device", "split_name"]


@functools.lru_cache(maxsize=512)
def compile_selector(expression: str) -> Node:
    """Parse and check an expression about a device.

    Raises:
        CelSyntaxError: The API server would refuse it.
    """
    tree = parse(expression)
    kind = check(tree, {"device": DEVICE})
    if kind not in {"bool", "dyn"}:
        raise CelSyntaxError(f"must evaluate to bool or the unknown type, not {kind}")
    return tree


def matches_device(expression: str, driver: str, device: JsonObject) -> bool:
    """Return whether a device matches.

    Args:
        expression: CEL with the variable `device`.
        driver: Driver that publishes the device; the domain of its names without one.
        device: An entry of `devices` in a ResourceSlice.

    Raises:
        CelSyntaxError: The expression does not compile.
        CelError: It fails for this device, for example because an attribute is missing.
    """
    found = evaluate(compile_selector(expression), {"device": _variable(driver, device)})
    if not isinstance(found, bool):
        raise CelError("CEL result could not be converted to bool")
    return found


class _Domains(dict[str, dict[str, Any]]):
    """Domain -> name -> value; a domain that the device lacks is empty."""

    def __missing__(self, domain: str) -> dict[str, Any]:
        return {}

    def __contains__(self, domain: object) -> bool:
        return True


def _variable(driver: str, device: JsonObject) -> dict[str, Any]:
    attributes: dict[str, dict[str, Any]] = defaultdict(dict)
    for full, attribute in (device.get("attributes") or {}).items():
        domain, name = split_name(full, driver)
        attributes[domain][name] = _value(attribute)
    capacity: dict[str, dict[str, Any]] = defaultdict(dict)
    for full, amount in (device.get("capacity") or {}).items():
        domain, name = split_name(full, driver)
        capacity[domain][name] = Quantity(parse_quantity(amount["value"]))
    return {
        "driver": driver,
        "attributes": _Domains(attributes),
        "capacity": _Domains(capacity),
        "allowMultipleAllocations": bool(device.get("allowMultipleAllocations")),
    }


def _value(attribute: JsonObject) -> Any:  # noqa: ANN401 - an attribute's value
    if "version" in attribute:
        return parse_version(str(attribute["version"]))
    return next(iter(attribute.values()))


def split_name(full: str, driver: str) -> tuple[str, str]:
    """Split the name of an attribute or capacity into domain and name; without a domain it is the driver's."""
    domain, slash, name = full.partition("/")
    return (domain, name) if slash else (driver, full)
