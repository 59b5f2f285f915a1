"""Disruption budgets, quotas, limit ranges, priority classes, and runtime classes.

Source: kubernetes pkg/apis/policy/validation, pkg/apis/core/validation (ValidateResourceQuota, ValidateLimitRange),
pkg/apis/scheduling/validation, pkg/apis/node/validation.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.quantities import is_native, parse_quantity
from gpukube_sandbox.kube.store.validation.fields import (
    dns_label,
    duplicate,
    forbidden,
    invalid,
    label_selector,
    label_value,
    one_of,
    qualified_name,
    required,
)
from gpukube_sandbox.kube.store.validation.resources import check_amount, check_name
from gpukube_sandbox.kube.store.validation.scheduling import check_tolerations
from gpukube_sandbox.kube.store.validation.workloads import share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.validation.fields import Cause

_SCOPES = frozenset(
    {"Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity"}
    | {"VolumeAttributesClass"}
)
_CONFLICTS = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_STANDARD = frozenset(
    {
        "cpu", "memory", "ephemeral-storage", "requests.cpu", "requests.memory", "requests.storage", "limits.cpu",
        "requests.ephemeral-storage", "limits.memory", "limits.ephemeral-storage", "pods", "services", "secrets",
        "replicationcontrollers", "resourcequotas", "configmaps", "persistentvolumeclaims", "services.nodeports",
        "services.loadbalancers",
    }
)  # fmt: skip
_COUNTS = frozenset({"pods", "services", "secrets", "replicationcontrollers", "resourcequotas", "configmaps"})
_COMPUTE = frozenset({"cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"})
_ORDER = {"min": "min", "defaultRequest": "default request", "default": "default", "max": "max"}
"""Amounts of a LimitRange in ascending order -> their names in messages."""
_HIGHEST = 1_000_000_000


def check_budget(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject a PodDisruptionBudget with both minAvailable and maxUnavailable, or with an invalid one."""
    del old
    spec = new.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")
    yield from share("spec.minAvailable", spec.get("minAvailable"))
    yield from share("spec.maxUnavailable", spec.get("maxUnavailable"))
    yield from label_selector("spec.selector", spec.get("selector"))
    policy = spec.get("unhealthyPodEvictionPolicy")
    yield from one_of("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget"))


def check_quota(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject a ResourceQuota of resources that cannot be counted, and changes of its scopes."""
    spec = new.get("spec") or {}
    yield from _hard_limits(spec)
    yield from _scopes(spec)
    yield from _scope_selector(spec)
    if old is not None and (old.get("spec") or {}).get("scopes") != spec.get("scopes"):
        yield invalid("spec.scopes", spec.get("scopes"), "field is immutable")


def _hard_limits(spec: JsonObject) -> Iterator[Cause]:
    for name, value in (spec.get("hard") or {}).items():
        field, amount = f"spec.hard[{name}]", parse_quantity(value)
        yield from qualified_name(field, name)
        if "/" not in name and name not in _STANDARD and not name.startswith(("hugepages-", "requests.hugepages-")):
            yield invalid(field, name, "must be a standard resource type or fully qualified")
            yield invalid(field, name, "must be a standard resource for quota")
        if amount < 0:
            yield invalid(field, str(value), "must be greater than or equal to 0")
        whole = name in _COUNTS or name.startswith("count/") or "/" in name
        if whole and amount != amount.to_integral_value():
            yield invalid(field, str(value), "must be an integer")


def _scopes(spec: JsonObject) -> Iterator[Cause]:
    scopes = set(spec.get("scopes") or ())
    for scope in sorted(scopes & _SCOPES):
        countable = {"pods"} if scope == "BestEffort" else {"pods", *_COMPUTE}
        if _STANDARD & (spec.get("hard") or {}).keys() - countable and scope != "VolumeAttributesClass":
            yield invalid("spec.scopes", spec["scopes"], "unsupported scope applied to resource")
    if scopes - _SCOPES:
        yield invalid("spec.scopes", spec["scopes"], "unsupported scope")
    if any(pair <= scopes for pair in _CONFLICTS):
        yield invalid("spec.scopes", spec["scopes"], "conflicting scopes")


def _scope_selector(spec: JsonObject) -> Iterator[Cause]:
    for requested in (spec.get("scopeSelector") or {}).get("matchExpressions") or ():
        field = "spec.scopeSelector.matchExpressions"
        if requested.get("scopeName") not in _SCOPES:
            yield invalid(f"{field}.scopeName", requested.get("scopeName"), "unsupported scope")
        operator, values = requested.get("operator"), requested.get("values")
        if requested.get("scopeName") in _SCOPES - {"PriorityClass", "VolumeAttributesClass"} and operator != "Exists":
            text = (
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
                "ResourceQuotaScopeCrossNamespacePodAffinity"
            )
            yield invalid(f"{field}.operator", operator, text)
        if operator in {"In", "NotIn"} and not values:
            text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            yield required(f"{field}.values", text)
        elif operator in {"Exists", "DoesNotExist"} and values:
            text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            yield invalid(f"{field}.values", values, text)
        elif operator not in {"In", "NotIn", "Exists", "DoesNotExist"}:
            yield invalid(f"{field}.operator", operator, "not a valid selector operator")


def check_limit_range(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject a LimitRange of resources that cannot be limited, or with contradictory amounts."""
    del old
    seen = set()
    for at, limit in enumerate((new.get("spec") or {}).get("limits") or ()):
        path, kind = f"spec.limits[{at}]", limit.get("type") or ""
        yield from qualified_name(f"{path}.type", kind)
        if kind in seen:
            yield duplicate(f"{path}.type", kind)
        seen.add(kind)
        yield from _limited(limit, kind, path)
        yield from _amounts(limit, path)


def _limited(limit: JsonObject, kind: str, path: str) -> Iterator[Cause]:
    for key in ("default", "defaultRequest"):
        if limit.get(key) and kind == "Pod":
            yield forbidden(f"{path}.{key}", "may not be specified when `type` is 'Pod'")
    for bag in (*_ORDER, "maxLimitRequestRatio"):
        for name in limit.get(bag) or () if kind in {"Container", "Pod"} else ():
            yield from check_name(name, f"{path}.{bag}[{name}]")
    if kind == "PersistentVolumeClaim" and "storage" not in {*(limit.get("min") or ()), *(limit.get("max") or ())}:
        text = "either minimum or maximum storage value is required, but neither was provided"
        yield required(f"{path}.limits", text)


def _amounts(limit: JsonObject, path: str) -> Iterator[Cause]:
    for name, ratio in (limit.get("maxLimitRequestRatio") or {}).items():
        if parse_quantity(ratio) < 1:
            yield invalid(f"{path}.maxLimitRequestRatio[{name}]", str(ratio), f"ratio {ratio} is less than 1")
    for name in (limit.get("default") or {}).keys() & (limit.get("defaultRequest") or {}).keys():
        requested, maximum = limit["defaultRequest"][name], limit["default"][name]
        if not is_native(name) and parse_quantity(requested) != parse_quantity(maximum):
            text = f"default value {maximum} must equal to defaultRequest value {requested} in {name}"
            yield invalid(f"{path}.defaultRequest[{name}]", str(requested), text)
    for lower, upper in itertools.combinations(_ORDER, 2):
        for name in (limit.get(lower) or {}).keys() & (limit.get(upper) or {}).keys():
            small, large = limit[lower][name], limit[upper][name]
            if parse_quantity(small) > parse_quantity(large):
                text = f"{_ORDER[lower]} value {small} is greater than {_ORDER[upper]} value {large}"
                yield invalid(f"{path}.{lower}[{name}]", str(small), text)


def check_priority_class(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject a PriorityClass with a system name or value, and changes of its value."""
    name, value = str((new.get("metadata") or {}).get("name", "")), new.get("value") or 0
    if old is not None and (old.get("value") or 0) != value:
        yield forbidden("value", "may not be changed in an update.")
    if old is not None and old.get("preemptionPolicy") != new.get("preemptionPolicy"):
        yield invalid("preemptionPolicy", new.get("preemptionPolicy"), "field is immutable")
    if name not in {"system-node-critical", "system-cluster-critical"}:
        if name.startswith("system-"):
            text = "priority class names with 'system-' prefix are reserved for system use only"
            yield forbidden("metadata.name", text)
        if value > _HIGHEST:
            yield forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST}")
    yield from one_of("preemptionPolicy", new.get("preemptionPolicy"), ("PreemptLowerPriority", "Never"))


def check_runtime_class(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject a RuntimeClass with an invalid handler, and changes of the handler."""
    yield from dns_label("handler", str(new.get("handler") or ""))
    if old is not None and old.get("handler") != new.get("handler"):
        yield invalid("handler", new.get("handler"), "field is immutable")
    for name, value in ((new.get("overhead") or {}).get("podFixed") or {}).items():
        yield from check_amount(name, value, f"overhead.limits[{name}]")
    placed = new.get("scheduling") or {}
    for key, text in (placed.get("nodeSelector") or {}).items():
        yield from qualified_name("scheduling.nodeSelector", key)
        yield from label_value("scheduling.nodeSelector", text)
    yield from check_tolerations(placed.get("tolerations") or [], "scheduling.tolerations")
