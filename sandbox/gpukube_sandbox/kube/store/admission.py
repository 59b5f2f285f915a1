"""Admission that depends on other objects.

In scope: of pods, priority, service account, runtime class, quotas; of device claims, admin access. Out of scope:
rules on an object alone (`validation`), storage.

Source: kubernetes plugin/pkg/admission/{priority,serviceaccount,runtimeclass,resourcequota}, pkg/quota/v1.
"""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store import kinds, problems
from gpukube_sandbox.kube.store.objects import labels, meta, name_of, namespace_of, spec, status
from gpukube_sandbox.kube.store.problems import ApiProblem
from gpukube_sandbox.kube.store.quantities import canonical, is_native, parse_quantity
from gpukube_sandbox.kube.store.validation.deviceclaims import ADMIN_ACCESS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpukube_sandbox.kube.store.holding import Holding
    from gpukube_sandbox.kube.store.kinds import Kind
    from gpukube_sandbox.kube.store.objects import JsonObject

CRITICAL = ("system-node-critical", "system-cluster-critical")
"""Priority classes that GKE admits outside kube-system only if a quota names them (NVIDIA/cloud-native-docs,
gpu-operator/google-gke)."""
_CLASS = "cloud.google.com/compute-class"
_COUNTED = frozenset({"pods", "count/pods"})


def admit_pod(store: Holding, pod: JsonObject) -> None:
    """Set a pod's priority, overhead and tolerations; reject it if an object that it names is missing or a quota used.

    Raises:
        ApiProblem: 403.
    """
    _set_priority(store, pod)
    if store.limits_critical_pods:
        _limit_critical(store, pod)
    if store.tolerates_compute_classes:
        _tolerate_class(pod)
    account = pod["spec"]["serviceAccountName"]
    if store.find(kinds.CORE["serviceaccounts"], namespace_of(pod), account) is None:
        place = f"{namespace_of(pod)}/{account}"
        raise _refused(pod, f'error looking up service account {place}: serviceaccount "{account}" not found')
    _set_runtime(store, pod)
    for quota in store.all_of(kinds.CORE["resourcequotas"], namespace_of(pod)):
        if _applies_to(quota, pod):
            _check_quota(store, quota, pod)


def _refused(pod: JsonObject, message: str) -> ApiProblem:
    """403: an admission plugin rejects a pod; a pod without a name is identified by its generateName."""
    name = meta(pod).get("generateName") or name_of(pod)
    return ApiProblem(403, "Forbidden", f'pods "{name}" is forbidden: {message}', {"name": name, "kind": "pods"})


def _set_priority(store: Holding, pod: JsonObject) -> None:
    """Set priority and preemption policy from the pod's priority class, or from the global default."""
    pod_spec = pod["spec"]
    named = pod_spec.get("priorityClassName")
    if named:
        found = store.find(kinds.CORE["priorityclasses"], "", named)
        if found is None:
            raise _refused(pod, f"no PriorityClass with name {named} was found")
    else:
        defaults = [item for item in store.all_of(kinds.CORE["priorityclasses"]) if item.get("globalDefault")]
        found = min(defaults, key=lambda item: int(item.get("value", 0)), default={})
        if found:
            pod_spec["priorityClassName"] = name_of(found)
    priority, preempts = found.get("value", 0), found.get("preemptionPolicy", "PreemptLowerPriority")
    rule = "must not be provided in pod spec; priority admission controller computed"
    if pod_spec.get("priority", priority) != priority:
        words = f"the integer value of priority ({pod_spec['priority']}) {rule} {priority}"
        raise _refused(pod, f"{words} from the given PriorityClass name")
    if pod_spec.get("preemptionPolicy", preempts) != preempts:
        words = f"the string value of PreemptionPolicy ({pod_spec['preemptionPolicy']}) {rule} {preempts}"
        raise _refused(pod, f"{words} from the given PriorityClass name")
    pod_spec |= {"priority": priority, "preemptionPolicy": preempts}


def _set_runtime(store: Holding, pod: JsonObject) -> None:
    """Set overhead, node selector, and tolerations from the pod's runtime class."""
    pod_spec, named = pod["spec"], pod["spec"].get("runtimeClassName")
    found = store.find(kinds.CORE["runtimeclasses"], "", named) if named else {}
    if found is None:
        raise _refused(pod, f'pod rejected: RuntimeClass "{named}" not found')
    overhead = (found.get("overhead") or {}).get("podFixed")
    if overhead is None and pod_spec.get("overhead") is not None:
        raise _refused(pod, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
    if pod_spec.get("overhead") and _amounts(pod_spec["overhead"]) != _amounts(overhead):
        raise _refused(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    if overhead is not None:
        pod_spec["overhead"] = dict(overhead)
    places = found.get("scheduling") or {}
    chosen: dict[str, str] = pod_spec.get("nodeSelector") or {}
    for key, value in sorted((places.get("nodeSelector") or {}).items()):
        if chosen.get(key, value) != value:
            conflict = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}"
            raise _refused(pod, f"conflict: {conflict}; pod.spec.nodeSelector[{key}] = {chosen[key]}")
    if places.get("nodeSelector"):
        pod_spec["nodeSelector"] = {**chosen, **places["nodeSelector"]}
    tolerated = pod_spec.get("tolerations") or []
    if added := [item for item in places.get("tolerations") or () if item not in tolerated]:
        pod_spec["tolerations"] = [*tolerated, *added]


def _tolerate_class(pod: JsonObject) -> None:
    """Let a pod that selects a ComputeClass tolerate the taint of its nodes (docs: about-custom-compute-classes)."""
    if wanted := (pod["spec"].get("nodeSelector") or {}).get(_CLASS):
        toleration = {"key": _CLASS, "operator": "Equal", "value": wanted, "effect": "NoSchedule"}
        tolerated = pod["spec"].get("tolerations") or []
        if toleration not in tolerated:
            pod["spec"]["tolerations"] = [*tolerated, toleration]


def _amounts(resources: Mapping[str, str] | None) -> dict[str, Decimal]:
    return {name: parse_quantity(value) for name, value in (resources or {}).items()}


def _limit_critical(store: Holding, pod: JsonObject) -> None:
    """Reject a critical pod outside kube-system if no quota names its class.

    Source:
        docs: concepts/policy/resource-quotas (limit priority class consumption by default).
    """
    priority = pod["spec"].get("priorityClassName")
    if priority not in CRITICAL or namespace_of(pod) == "kube-system":
        return
    quotas = store.all_of(kinds.CORE["resourcequotas"], namespace_of(pod))
    named = [quota for quota in quotas if any(item["scopeName"] == "PriorityClass" for item in _scopes(quota))]
    if not any(_applies_to(quota, pod) for quota in named):
        scopes = f"[{{PriorityClass In [{' '.join(CRITICAL)}]}}]"
        raise _refused(pod, f"insufficient quota to match these scopes: {scopes}")


def _scopes(quota: JsonObject) -> list[JsonObject]:
    named = [{"scopeName": name, "operator": "Exists"} for name in spec(quota).get("scopes") or ()]
    return [*named, *((spec(quota).get("scopeSelector") or {}).get("matchExpressions") or ())]


def _applies_to(quota: JsonObject, pod: JsonObject) -> bool:
    return all(_matches(scope, pod) for scope in _scopes(quota))


def _matches(scope: JsonObject, pod: JsonObject) -> bool:
    if scope["scopeName"] == "PriorityClass":
        named = spec(pod).get("priorityClassName") or ""
        listed, operator = scope.get("values") or (), scope.get("operator", "In")
        by_operator = {"In": named in listed, "NotIn": named not in listed, "Exists": bool(named)}
        return by_operator.get(operator, not named)
    ends = spec(pod).get("activeDeadlineSeconds") is not None
    asks = any(item.get("resources") for item in spec(pod)["containers"])
    found = {"Terminating": ends, "NotTerminating": not ends, "BestEffort": not asks, "NotBestEffort": asks}
    return found.get(scope["scopeName"], False)


def usage(pods: Iterable[JsonObject], names: Iterable[str]) -> dict[str, Decimal]:
    """Return pods' usage of the resources in a quota ("requests.nvidia.com/gpu", "limits.cpu", "pods")."""
    living = [pod for pod in pods if status(pod).get("phase") not in {"Succeeded", "Failed"}]
    takes = [_usage_of(pod) for pod in living]
    return {name: sum((item[name] for item in takes), Decimal(0)) for name in names}


def _usage_of(pod: JsonObject) -> dict[str, Decimal]:
    found: defaultdict[str, Decimal] = defaultdict(Decimal, {name: Decimal(1) for name in _COUNTED})
    for container in spec(pod)["containers"]:
        resources = container.get("resources") or {}
        for part in ("requests", "limits"):
            values: Mapping[str, str] = resources.get(part) or {}
            for name, value in values.items():
                found[f"{part}.{name}"] += parse_quantity(value)
                if part == "requests" and is_native(name):
                    found[name] += parse_quantity(value)
    for name, amount in _amounts(spec(pod).get("overhead")).items():
        found[f"requests.{name}"] += amount
        found[name] += amount
        if found[f"limits.{name}"]:  # overhead does not add a limit to a pod without one
            found[f"limits.{name}"] += amount
    return found


def _check_quota(store: Holding, quota: JsonObject, pod: JsonObject) -> None:
    hard: dict[str, str] = spec(quota).get("hard") or {}
    counted = [item for item in store.all_of(kinds.CORE["pods"], namespace_of(pod)) if _applies_to(quota, item)]
    used, requested = usage(counted, hard), usage([pod], hard)
    missing = [name for name in sorted(hard) if _must_be_set(name) and not _is_set(pod, name)]
    if missing:
        first = spec(pod)["containers"][0]["name"]
        raise _refused(pod, f"failed quota: {name_of(quota)}: must specify {','.join(missing)} for: {first}")
    over = [
        name for name in sorted(hard) if requested[name] and used[name] + requested[name] > parse_quantity(hard[name])
    ]
    if over:
        totals = [",".join(f"{name}={canonical(str(item[name]))}" for name in over) for item in (requested, used, hard)]
        limits = f"requested: {totals[0]}, used: {totals[1]}, limited: {totals[2]}"
        raise _refused(pod, f"exceeded quota: {name_of(quota)}, {limits}")


def _must_be_set(name: str) -> bool:
    """Return whether a quota on a resource requires a value in every container: CPU and memory do, devices do not."""
    return name.removeprefix("requests.").removeprefix("limits.") in {"cpu", "memory"}


def _is_set(pod: JsonObject, name: str) -> bool:
    part, _, resource = name.partition(".") if "." in name else ("requests", "", name)
    return all(resource in ((item.get("resources") or {}).get(part) or {}) for item in spec(pod)["containers"])


def admit_device_claim(store: Holding, kind: Kind, claim: JsonObject) -> None:
    """Reject a claim with admin access to devices unless its namespace allows it.

    Raises:
        ApiProblem: 422.

    Source: kubernetes pkg/registry/resource/utils.go, AuthorizedForAdmin.
    """
    if kind.kind not in {"ResourceClaim", "ResourceClaimTemplate"}:
        return
    inner = claim.get("spec") or {}
    inner = inner if kind.kind == "ResourceClaim" else inner.get("spec") or {}
    for at, request in enumerate((inner.get("devices") or {}).get("requests") or ()):
        if (request.get("exactly") or {}).get("adminAccess"):
            namespace = store.find(kinds.CORE["namespaces"], "", namespace_of(claim)) or {}
            if labels(namespace).get(ADMIN_ACCESS) == "true":
                return
            text = f"admin access to devices requires the `{ADMIN_ACCESS}: true` label on the containing namespace"
            field = f"spec.devices.requests[{at}].adminAccess: Forbidden: {text}"
            raise problems.invalid(kind.kind, name_of(claim), field, kind.group)
