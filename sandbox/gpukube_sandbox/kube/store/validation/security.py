"""Security contexts of pods and containers: users, groups, profiles, privileges, sysctls.

Source: kubernetes pkg/apis/core/validation/validation.go (validatePodSpecSecurityContext, ValidateSecurityContext,
validateSeccompProfileField, validateSysctls).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.validation.fields import duplicate, invalid, one_of, required, unsupported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.validation.fields import Cause

_LARGEST_ID = 2**31 - 1
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_SYSCTL_PART = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"^({_SYSCTL_PART}[\./])*{_SYSCTL_PART}$"
_LONGEST_SYSCTL = 253


def check_pod_rights(pod: JsonObject, path: str) -> Iterator[Cause]:
    """Reject an invalid security context of a pod."""
    rights, place = pod.get("securityContext") or {}, f"{path}.securityContext"
    yield from _common(rights, place)
    yield from _id(f"{place}.fsGroup", rights.get("fsGroup"))
    policy = rights.get("fsGroupChangePolicy")
    yield from one_of(f"{place}.fsGroupChangePolicy", policy, ("Always", "OnRootMismatch"))
    if pod.get("shareProcessNamespace") and pod.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield invalid(f"{place}.shareProcessNamespace", value=True, detail=text)
    seen = set()
    for at, sysctl in enumerate(rights.get("sysctls") or ()):
        name, field = sysctl.get("name") or "", f"{place}.sysctls[{at}].name"
        if not name:
            yield required(field)
        elif len(name) > _LONGEST_SYSCTL or not re.fullmatch(_SYSCTL, name):
            text = f"must have at most {_LONGEST_SYSCTL} characters and match regex {_SYSCTL}"
            yield invalid(field, name, text)
        elif name in seen:
            yield duplicate(field, name)
        seen.add(name)


def check_rights(container: JsonObject, path: str) -> Iterator[Cause]:
    """Reject an invalid security context of a container."""
    rights, place = container.get("securityContext") or {}, f"{path}.securityContext"
    yield from _common(rights, place)
    mount = rights.get("procMount")
    yield from one_of(f"{place}.procMount", mount, ("Default", "Unmasked"))
    if rights.get("allowPrivilegeEscalation") is False:
        text = "cannot set `allowPrivilegeEscalation` to false and"
        if rights.get("privileged"):
            yield invalid(place, rights, f"{text} `privileged` to true")
        if "CAP_SYS_ADMIN" in ((rights.get("capabilities") or {}).get("add") or ()):
            yield invalid(place, rights, f"{text} `capabilities.Add` CAP_SYS_ADMIN")


def _common(rights: JsonObject, place: str) -> Iterator[Cause]:
    for key in ("runAsUser", "runAsGroup"):
        yield from _id(f"{place}.{key}", rights.get(key))
    profile, field = rights.get("seccompProfile"), f"{place}.seccompProfile"
    if profile is None:
        return
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    if not kind:
        yield required(f"{field}.type", "type is required when seccompProfile is set")
    elif kind not in _PROFILES:
        yield unsupported(f"{field}.type", kind, _PROFILES)
    if kind == "Localhost" and local is None:
        yield required(f"{field}.localhostProfile", "must be set when seccomp type is Localhost")
    elif kind != "Localhost" and local is not None:
        yield invalid(f"{field}.localhostProfile", profile, "can only be set when seccomp type is Localhost")


def _id(field: str, number: int | None) -> Iterator[Cause]:
    if number is not None and not 0 <= number <= _LARGEST_ID:
        yield invalid(field, number, f"must be between 0 and {_LARGEST_ID}, inclusive")
