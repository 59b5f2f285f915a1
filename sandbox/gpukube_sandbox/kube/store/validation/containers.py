"""Validation of a pod's containers.

In scope: names, images, variables, mounts, ports. Out of scope: probes and hooks (`handlers`), requests and limits
(`resources`), security contexts (`security`).

Source: kubernetes pkg/apis/core/validation/validation.go (validateContainers, validateInitContainers,
validateContainerCommon, ValidateEnv, ValidateEnvFrom, ValidateVolumeMounts, validateContainerPorts).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gpukube_sandbox.kube.store.validation.fields import (
    dns_label,
    duplicate,
    forbidden,
    invalid,
    not_found,
    one_of,
    port,
    relative_path,
    required,
)
from gpukube_sandbox.kube.store.validation.handlers import check_handlers
from gpukube_sandbox.kube.store.validation.resources import check_resources
from gpukube_sandbox.kube.store.validation.security import check_rights

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.validation.fields import Cause

_PULLS = ("Always", "IfNotPresent", "Never")
_GRACE_S = 30
_AMOUNTS = tuple(f"{part}.{name}" for part in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory"))
_OF_VARIABLES = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_POD_FIELDS = re.compile(
    r"metadata\.(name|namespace|uid|labels|annotations)(\['[^']+'\])?"
    r"|spec\.(nodeName|serviceAccountName)|status\.(hostIP|hostIPs|podIP|podIPs)"
)
"""Fields that the downward API provides to variables."""


def check_containers(pod: JsonObject, path: str) -> Iterator[Cause]:
    """Reject invalid containers, and names or ports that two containers share."""
    volumes = {volume.get("name") for volume in pod.get("volumes") or ()}
    claims = {claim.get("name") for claim in pod.get("resourceClaims") or ()}
    grace = pod.get("terminationGracePeriodSeconds", _GRACE_S)
    seen: set[str] = set()
    taken: set[tuple[Any, ...]] = set()
    for part in ("containers", "initContainers"):
        for at, container in enumerate(pod.get(part) or ()):
            place, name = f"{path}.{part}[{at}]", container.get("name") or ""
            if not name:
                yield required(f"{place}.name")
            else:
                yield from dns_label(f"{place}.name", name)
            if name in seen:
                yield duplicate(f"{place}.name", name)
            seen.add(name)
            restarts = container.get("restartPolicy") == "Always"
            yield from _common(container, place)
            yield from _mounts(container, f"{place}.volumeMounts", volumes)
            yield from _devices(container.get("volumeDevices") or [], f"{place}.volumeDevices", pod)
            yield from _ports(container.get("ports") or [], f"{place}.ports", pod, taken)
            yield from check_resources(container.get("resources") or {}, f"{place}.resources", claims)
            yield from check_rights(container, place)
            yield from check_handlers(container, place, ends=part == "initContainers" and not restarts, grace=grace)
    if not pod.get("containers"):
        yield required(f"{path}.containers")


def _common(container: JsonObject, place: str) -> Iterator[Cause]:
    image = container.get("image") or ""
    if not image:
        yield required(f"{place}.image")
    elif image != image.strip():
        yield invalid(f"{place}.image", image, "must not have leading or trailing whitespace")
    yield from one_of(f"{place}.imagePullPolicy", container.get("imagePullPolicy"), _PULLS)
    for at, variable in enumerate(container.get("env") or ()):
        yield from _variable(variable, f"{place}.env[{at}]")
    for at, source in enumerate(container.get("envFrom") or ()):
        yield from _variables(source, f"{place}.envFrom", at)
    policy = container.get("terminationMessagePolicy")
    yield from one_of(f"{place}.terminationMessagePolicy", policy, ("FallbackToLogsOnError", "File"))
    for requested in container.get("resizePolicy") or ():
        name = requested.get("resourceName")
        yield from one_of(f"{place}.resizePolicy", name, ("cpu", "memory"))


def _variable(variable: JsonObject, place: str) -> Iterator[Cause]:
    name, source = variable.get("name") or "", variable.get("valueFrom")
    if not name:
        yield required(f"{place}.name")
    elif "=" in name:
        yield invalid(f"{place}.name", name, _OF_VARIABLES)
    if source is not None and variable.get("value"):
        yield invalid(f"{place}.valueFrom", "", "may not be specified when `value` is not empty")
    if source is not None:
        yield from _value_from(source, f"{place}.valueFrom")


def _value_from(source: JsonObject, place: str) -> Iterator[Cause]:
    given = [key for key, value in source.items() if value is not None]
    if len(given) != 1:
        text = "may not have more than one field specified at a time" if given else "must specify one of: `fieldRef`"
        yield invalid(place, "", text)
    for kind in ("configMapKeyRef", "secretKeyRef"):
        for key in ("name", "key") if source.get(kind) is not None else ():
            if not source[kind].get(key):
                yield required(f"{place}.{kind}.{key}")
    if source.get("resourceFieldRef") is not None:
        requested = source["resourceFieldRef"].get("resource") or ""
        if not requested.startswith(("limits.hugepages-", "requests.hugepages-")):
            yield from one_of(f"{place}.resourceFieldRef.resource", requested, _AMOUNTS)
    if source.get("fieldRef") is not None:
        requested = source["fieldRef"].get("fieldPath") or ""
        if not requested:
            yield required(f"{place}.fieldRef.fieldPath")
        elif not _POD_FIELDS.fullmatch(requested):
            text = f"error converting fieldPath: field label not supported: {requested}"
            yield invalid(f"{place}.fieldRef.fieldPath", requested, text)


def _variables(source: JsonObject, path: str, at: int) -> Iterator[Cause]:
    if "=" in (source.get("prefix") or ""):
        yield invalid(f"{path}[{at}].prefix", source["prefix"], _OF_VARIABLES)
    given = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
    if len(given) != 1:
        text = "may not have more than one field specified at a time"
        yield invalid(path, "", text if given else "must specify one of: `configMapRef` or `secretRef`")
    for kind in given:
        if not source[kind].get("name"):
            yield required(f"{path}[{at}].{kind}.name")


def _mounts(container: JsonObject, path: str, volumes: set[Any]) -> Iterator[Cause]:
    seen = set()
    for at, mount in enumerate(container.get("volumeMounts") or ()):
        name, where, spread = mount.get("name") or "", mount.get("mountPath") or "", mount.get("mountPropagation")
        if not name:
            yield required(f"{path}[{at}].name")
        elif name not in volumes:
            yield not_found(f"{path}[{at}].name", name)
        if not where:
            yield required(f"{path}[{at}].mountPath")
        if where in seen:
            yield invalid(f"{path}[{at}].mountPath", where, "must be unique")
        seen.add(where)
        # The real server omits the index in these.
        for key in ("subPath", "subPathExpr"):
            yield from relative_path(f"{path}.{key}", mount.get(key) or "")
        if mount.get("subPath") and mount.get("subPathExpr"):
            text = "subPathExpr and subPath are mutually exclusive"
            yield invalid(f"{path}[{at}].subPathExpr", mount["subPathExpr"], text)
        yield from one_of(f"{path}.mountPropagation", spread, ("Bidirectional", "HostToContainer", "None"))
        if spread == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
            text = "Bidirectional mount propagation is available only to privileged containers"
            yield forbidden(f"{path}.mountPropagation", text)


def _devices(devices: list[JsonObject], path: str, pod: JsonObject) -> Iterator[Cause]:
    volumes = {volume.get("name"): volume for volume in pod.get("volumes") or ()}
    for at, device in enumerate(devices):
        name = device.get("name") or ""
        if name not in volumes:
            yield not_found(f"{path}[{at}].name", name)
        elif not {"persistentVolumeClaim", "ephemeral"} & volumes[name].keys():
            text = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            yield invalid(f"{path}[{at}].name", name, text)
        if not device.get("devicePath"):
            yield required(f"{path}[{at}].devicePath")


def _ports(ports: list[JsonObject], path: str, pod: JsonObject, taken: set[tuple[Any, ...]]) -> Iterator[Cause]:
    names = set()
    for at, one in enumerate(ports):
        place, number, host = f"{path}[{at}]", one.get("containerPort") or 0, one.get("hostPort")
        if name := one.get("name"):
            yield from port(f"{place}.name", name)
            if name in names:
                yield duplicate(f"{place}.name", name)
            names.add(name)
        if not number:
            yield required(f"{place}.containerPort")
        else:
            yield from port(f"{place}.containerPort", number)
        protocol = one.get("protocol") or "TCP"
        yield from one_of(f"{place}.protocol", protocol, ("TCP", "UDP", "SCTP"))
        if not host:
            continue
        yield from port(f"{place}.hostPort", host)
        if pod.get("hostNetwork") and host != number:
            yield invalid(f"{place}.hostPort", host, "must match `containerPort` when `hostNetwork` is true")
        if (protocol, one.get("hostIP") or "", host) in taken:
            yield duplicate(f"{place}.hostPort", f"{protocol}/{one.get('hostIP') or ''}/{host}")
        taken.add((protocol, one.get("hostIP") or "", host))
