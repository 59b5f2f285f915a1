"""What the API server refuses in a pod or a pod template.

In scope: rules on the resources of containers. Out of scope: rules on other kinds (`defaults`), what depends on
other objects (`store`).

Source: kubernetes pkg/apis/core/validation (validateResourceRequirements, validateContainerResourceName).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpukube_sandbox.kube.store.problems import ApiProblem
from gpukube_sandbox.kube.store.quantities import is_extended, is_native, is_qualified, parse_quantity, written

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpukube_sandbox.kube.store.kinds import Kind
    from gpukube_sandbox.kube.store.objects import JsonObject

_OF_CONTAINERS = frozenset({"cpu", "memory", "ephemeral-storage"})


class Cause(NamedTuple):
    """One thing that is wrong, as a Status tells it."""

    reason: str
    field: str
    text: str


def check_resources(kind: Kind, name: str, pod_spec: JsonObject, path: str) -> None:
    """Refuse containers whose resources are misnamed, fractions of devices, negative, or other than their limits.

    Args:
        kind: The object's type.
        name: The object's name.
        pod_spec: Of the pod or the template.
        path: Where that is in the object: "spec" or "spec.template.spec".

    Raises:
        ApiProblem: 422, with all causes.
    """
    causes = [
        cause
        for part in ("initContainers", "containers")
        for at, container in enumerate(pod_spec.get(part) or ())
        for cause in _of_container(container.get("resources") or {}, f"{path}.{part}[{at}].resources")
    ]
    if not causes:
        return
    told = [f"{cause.field}: {cause.text}" for cause in causes]
    message = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    shown = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    details: JsonObject = {
        "name": name,
        "kind": kind.kind,
        "causes": [{"reason": cause.reason, "message": cause.text, "field": cause.field} for cause in causes],
    }
    raise ApiProblem(422, "Invalid", f'{shown} "{name}" is invalid: {message}', details)


def _of_container(resources: JsonObject, path: str) -> Iterator[Cause]:
    limits: Mapping[str, str] = resources.get("limits") or {}
    requests: Mapping[str, str] = resources.get("requests") or {}
    for name, value in sorted(limits.items()):
        yield from _of_value(name, value, f"{path}.limits[{name}]")
    for name, value in sorted(requests.items()):
        yield from _of_value(name, value, f"{path}.requests[{name}]")
        may_overcommit = is_native(name) and not name.startswith("hugepages-")
        if name not in limits:
            if not may_overcommit:
                text = "Required value: Limit must be set for non overcommitable resources"
                yield Cause("FieldValueRequired", f"{path}.limits", text)
            continue
        asked, most = parse_quantity(value), parse_quantity(limits[name])
        if asked != most if not may_overcommit else asked > most:
            rule = "must be less than or equal to" if may_overcommit else "must be equal to"
            text = f"{rule} {name} limit of {written(limits[name])}"
            yield _invalid(f"{path}.requests", written(value), text)


def _of_value(name: str, value: str, field: str) -> Iterator[Cause]:
    if "/" not in name:
        if name not in _OF_CONTAINERS and not name.startswith("hugepages-"):
            yield _invalid(field, name, "must be a standard resource type or fully qualified")
            yield _invalid(field, name, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name) and is_qualified(name):
        yield _invalid(field, name, "doesn't follow extended resource name standard")
    amount = parse_quantity(value)
    if amount < 0:
        yield _invalid(field, written(value), "must be greater than or equal to 0")
    if is_extended(name) and amount != amount.to_integral_value():
        yield _invalid(field, written(value), "must be an integer")


def _invalid(field: str, value: str, text: str) -> Cause:
    return Cause("FieldValueInvalid", field, f'Invalid value: "{value}": {text}')
