"""What limits and ranks pods: disruption budgets, quotas, limit ranges, priority and runtime classes.

Source: kubernetes pkg/apis/policy/validation, pkg/apis/core/validation (ValidateResourceQuota, ValidateLimitRange),
pkg/apis/scheduling/validation, pkg/apis/node/validation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.quantities import parse_quantity
from gpukube_sandbox.kube.store.validation.fields import (
    dns_label,
    duplicate,
    forbidden,
    invalid,
    label_selector,
    one_of,
    required,
)
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
_HIGHEST = 1_000_000_000


def check_budget(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Refuse a PodDisruptionBudget of two promises, or of one that cannot be read."""
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
    """Refuse a ResourceQuota of what nobody counts."""
    del old
    spec = new.get("spec") or {}
    yield from _hard_limits(spec)
    yield from _scopes(spec)


def _hard_limits(spec: JsonObject) -> Iterator[Cause]:
    for name, value in (spec.get("hard") or {}).items():
        field, amount = f"spec.hard[{name}]", parse_quantity(value)
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
    if scopes - _SCOPES:
        yield invalid("spec.scopes", spec["scopes"], "unsupported scope")
    if any(pair <= scopes for pair in _CONFLICTS):
        yield invalid("spec.scopes", spec["scopes"], "conflicting scopes")
    for asked in (spec.get("scopeSelector") or {}).get("matchExpressions") or ():
        field = "spec.scopeSelector.matchExpressions"
        if asked.get("scopeName") not in _SCOPES:
            yield invalid(f"{field}.scopeName", asked.get("scopeName"), "unsupported scope")
        if asked.get("operator") in {"In", "NotIn"} and not asked.get("values"):
            text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            yield required(f"{field}.values", text)


def check_limit_range(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Refuse a LimitRange whose numbers contradict each other."""
    del old
    seen = set()
    for at, limit in enumerate((new.get("spec") or {}).get("limits") or ()):
        path = f"spec.limits[{at}]"
        if limit.get("type") in seen:
            yield duplicate(f"{path}.type", limit.get("type"))
        seen.add(limit.get("type"))
        if limit.get("type") == "Pod":
            for key in ("default", "defaultRequest"):
                if limit.get(key):
                    yield forbidden(f"{path}.{key}", "may not be specified when `type` is 'Pod'")
        order = ("min", "defaultRequest", "default", "max")
        words = {"min": "min", "defaultRequest": "default request", "default": "default", "max": "max"}
        for lower, upper in ((a, b) for i, a in enumerate(order) for b in order[i + 1 :]):
            for name in (limit.get(lower) or {}).keys() & (limit.get(upper) or {}).keys():
                small, large = limit[lower][name], limit[upper][name]
                if parse_quantity(small) > parse_quantity(large):
                    text = f"{words[lower]} value {small} is greater than {words[upper]} value {large}"
                    yield invalid(f"{path}.{lower}[{name}]", str(small), text)


def check_priority_class(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Refuse a PriorityClass of the system's rank or name, and changes of its value."""
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
    """Refuse a RuntimeClass whose handler is none, and changes of it."""
    yield from dns_label("handler", str(new.get("handler") or ""))
    if old is not None and old.get("handler") != new.get("handler"):
        yield invalid("handler", new.get("handler"), "field is immutable")
    for name, value in ((new.get("overhead") or {}).get("podFixed") or {}).items():
        if parse_quantity(value) < 0:
            yield invalid(f"overhead.limits[{name}]", str(value), "must be greater than or equal to 0")
