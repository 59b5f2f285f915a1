"""Validation of pods and pod templates: policies, gates, claims.

In scope: the pod as a whole. Out of scope: its containers (`containers`), its volumes (`volumes`), where it may
go (`scheduling`), what of a live one may change (`updates`), what depends on other objects (`store.admission`).

Source: kubernetes pkg/apis/core/validation/validation.go (ValidatePodSpec, validatePodDNSConfig,
validateSchedulingGates).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.validation.containers import check_containers
from gpukube_sandbox.kube.store.validation.fields import (
    address,
    dns_label,
    duplicate,
    forbidden,
    invalid,
    label_value,
    one_of,
    qualified_name,
    required,
    subdomain,
)
from gpukube_sandbox.kube.store.validation.metadata import check_marks
from gpukube_sandbox.kube.store.validation.scheduling import check_affinity, check_spread, check_tolerations
from gpukube_sandbox.kube.store.validation.security import check_pod_rights
from gpukube_sandbox.kube.store.validation.volumes import check_volumes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.validation.fields import Cause

_RESTARTS = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_LONGEST_DEADLINE = 2**31 - 1
_MAX_SERVERS = 3


def check_pod(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject a pod with an invalid spec."""
    pod = new.get("spec") or {}
    yield from check_pod_spec(pod, "spec")
    if old is None and pod.get("nodeName") and pod.get("schedulingGates"):
        yield forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")
    if old is None and pod.get("ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")


def check_template(template: JsonObject, path: str, restarts: tuple[str, ...] = ("Always",)) -> Iterator[Cause]:
    """Reject a template whose pods would be rejected, or whose restart policy its workload does not allow."""
    yield from check_marks(template.get("metadata") or {}, f"{path}.metadata")
    pod = template.get("spec") or {}
    yield from check_pod_spec(pod, f"{path}.spec")
    if pod.get("ephemeralContainers"):
        yield forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template")
    policy = pod.get("restartPolicy") or "Always"
    if policy in _RESTARTS and policy not in restarts:
        if restarts == ("Always",):
            yield from one_of(f"{path}.spec.restartPolicy", policy, restarts)
        else:
            yield required(f"{path}.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
    if restarts == ("Always",) and pod.get("activeDeadlineSeconds") is not None:
        yield forbidden(f"{path}.spec.activeDeadlineSeconds", "activeDeadlineSeconds in ReplicaSet is not Supported")


def check_pod_spec(pod: JsonObject, path: str) -> Iterator[Cause]:
    """Reject an invalid pod spec."""
    yield from check_volumes(pod.get("volumes") or [], f"{path}.volumes")
    yield from check_containers(pod, path)
    yield from one_of(f"{path}.restartPolicy", pod.get("restartPolicy"), _RESTARTS)
    yield from one_of(f"{path}.dnsPolicy", pod.get("dnsPolicy"), _DNS)
    yield from _dns(pod, f"{path}.dnsConfig")
    deadline, grace = pod.get("activeDeadlineSeconds"), pod.get("terminationGracePeriodSeconds")
    if deadline is not None and not 0 < deadline <= _LONGEST_DEADLINE:
        text = f"must be between 1 and {_LONGEST_DEADLINE}, inclusive"
        yield invalid(f"{path}.activeDeadlineSeconds", deadline, text)
    if grace is not None and grace < 0 and grace != -1:  # -1 is stored as 1
        yield invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than or equal to 0")
    for key, value in (pod.get("nodeSelector") or {}).items():
        yield from qualified_name(f"{path}.nodeSelector", key)
        yield from label_value(f"{path}.nodeSelector", str(value))
    for key in ("hostname", "subdomain"):
        if pod.get(key):
            yield from dns_label(f"{path}.{key}", pod[key])
    for key in ("serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"):
        if pod.get(key):
            yield from subdomain(f"{path}.{key}", pod[key])
    for at, alias in enumerate(pod.get("hostAliases") or ()):
        yield from address(f"{path}.hostAliases[{at}].ip", alias.get("ip") or "")
    for at, gate in enumerate(pod.get("readinessGates") or ()):
        yield from qualified_name(f"{path}.readinessGates[{at}].conditionType", gate.get("conditionType") or "")
    yield from one_of(f"{path}.os", (pod.get("os") or {}).get("name"), ("linux", "windows"))
    yield from check_pod_rights(pod, path)
    if pod.get("hostNetwork") and pod.get("hostUsers") is False:
        yield forbidden(f"{path}.hostNetwork", "when `hostUsers` is false")
    yield from check_tolerations(pod.get("tolerations") or [], f"{path}.tolerations")
    yield from check_affinity(pod.get("affinity") or {}, f"{path}.affinity")
    yield from check_spread(pod.get("topologySpreadConstraints") or [], f"{path}.topologySpreadConstraints")
    yield from _gates(pod.get("schedulingGates") or [], f"{path}.schedulingGates")
    yield from _claims(pod, path)
    yield from one_of(f"{path}.preemptionPolicy", pod.get("preemptionPolicy"), ("PreemptLowerPriority", "Never"))


def _dns(pod: JsonObject, path: str) -> Iterator[Cause]:
    config = pod.get("dnsConfig")
    servers = (config or {}).get("nameservers") or []
    if pod.get("dnsPolicy") == "None" and config is None:
        yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
    elif pod.get("dnsPolicy") == "None" and not servers:
        yield required(f"{path}.nameservers", "must provide at least one DNS nameserver when `dnsPolicy` is None")
    if len(servers) > _MAX_SERVERS:
        yield invalid(f"{path}.nameservers", servers, f"must not have more than {_MAX_SERVERS} nameservers")
    for at, server in enumerate(servers):
        yield from address(f"{path}.nameservers[{at}]", server)


def _gates(gates: list[JsonObject], path: str) -> Iterator[Cause]:
    seen = set()
    for at, gate in enumerate(gates):
        name = gate.get("name") or ""
        yield from qualified_name(f"{path}[{at}].name", name)
        if name in seen:
            yield duplicate(f"{path}[{at}].name", name)
        seen.add(name)


def _claims(pod: JsonObject, path: str) -> Iterator[Cause]:
    seen = set()
    for at, claim in enumerate(pod.get("resourceClaims") or ()):
        place, name = f"{path}.resourceClaims[{at}]", claim.get("name") or ""
        if not name:
            yield required(f"{place}.name")
        else:
            yield from dns_label(f"{place}.name", name)
        if name in seen:
            yield duplicate(f"{place}.name", name)
        seen.add(name)
        given = [key for key in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(key)]
        if len(given) != 1:
            text = "at most one of" if given else "must specify one of:"
            yield invalid(place, claim, f"{text} `resourceClaimName`, `resourceClaimTemplateName`")
