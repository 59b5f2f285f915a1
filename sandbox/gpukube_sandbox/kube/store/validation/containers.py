"""What a pod's containers may say.

Source: kubernetes pkg/apis/core/validation/validation.go (validateContainers, validateInitContainers,
validateContainerCommon, validateProbe, ValidateEnv, ValidateVolumeMounts, validateContainerPorts,
ValidateSecurityContext, ValidateContainerResourceRequirements).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gpukube_sandbox.kube.store.quantities import parse_quantity
from gpukube_sandbox.kube.store.validation.fields import (
    Cause,
    dns_label,
    duplicate,
    forbidden,
    invalid,
    one_of,
    required,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.kube.store.objects import JsonObject

_PULLS = ("Always", "IfNotPresent", "Never")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("exec", "grpc", "httpGet", "tcpSocket")
_POD_FIELDS = re.compile(
    r"metadata\.(name|namespace|uid|labels|annotations)(\['[^']+'\])?"
    r"|spec\.(nodeName|serviceAccountName)|status\.(hostIP|hostIPs|podIP|podIPs)"
)
"""What the downward API gives to variables."""
_MOST_PORT = 65535
_OF_PORT = "must be between 1 and 65535, inclusive"


def check_containers(pod: JsonObject, path: str) -> Iterator[Cause]:
    """Refuse what is wrong with the containers of a pod, and names or ports that two of them share."""
    volumes = {volume.get("name") for volume in pod.get("volumes") or ()}
    claims = {claim.get("name") for claim in pod.get("resourceClaims") or ()}
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
            yield from _mounts(container.get("volumeMounts") or [], f"{place}.volumeMounts", volumes)
            yield from _ports(container.get("ports") or [], f"{place}.ports", pod, taken)
            yield from _claimed(container, place, claims)
            yield from _probes(container, place, restarts=part == "containers" or restarts)
    if not pod.get("containers"):
        yield required(f"{path}.containers")
    used = [
        resource
        for container in pod.get("containers") or ()
        for resource in (container.get("resources") or {}).get("limits") or ()
    ]
    if any(resource.startswith("hugepages-") for resource in used) and not {"cpu", "memory"} & set(used):
        yield forbidden(f"{path}.containers[0].resources", "HugePages require cpu or memory")


def _common(container: JsonObject, place: str) -> Iterator[Cause]:
    image = container.get("image") or ""
    if not image:
        yield required(f"{place}.image")
    elif image != image.strip():
        yield invalid(f"{place}.image", image, "must not have leading or trailing whitespace")
    yield from one_of(f"{place}.imagePullPolicy", container.get("imagePullPolicy"), _PULLS)
    for at, variable in enumerate(container.get("env") or ()):
        yield from _variable(variable, f"{place}.env[{at}]")
    rights = container.get("securityContext") or {}
    if rights.get("privileged") and rights.get("allowPrivilegeEscalation") is False:
        text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        yield invalid(f"{place}.securityContext", rights, text)
    if (rights.get("runAsUser") or 0) < 0:
        text = "must be between 0 and 2147483647, inclusive"
        yield invalid(f"{place}.securityContext.runAsUser", rights["runAsUser"], text)


def _variable(variable: JsonObject, place: str) -> Iterator[Cause]:
    name, source = variable.get("name") or "", variable.get("valueFrom")
    if not name:
        yield required(f"{place}.name")
    elif "=" in name:
        text = "a valid environment variable name must consist only of printable ASCII characters other than '='"
        yield invalid(f"{place}.name", name, text)
    if source is None:
        return
    if variable.get("value"):
        yield invalid(f"{place}.valueFrom", "", "may not be specified when `value` is not empty")
    given = [key for key, value in source.items() if value is not None]
    if len(given) != 1:
        text = "may not have more than one field specified at a time" if given else "must specify one of: `fieldRef`"
        yield invalid(f"{place}.valueFrom", "", text)
    if source.get("fieldRef") is not None:
        asked = source["fieldRef"].get("fieldPath") or ""
        if not asked:
            yield required(f"{place}.valueFrom.fieldRef.fieldPath")
        elif not _POD_FIELDS.fullmatch(asked):
            text = f"error converting fieldPath: field label not supported: {asked}"
            yield invalid(f"{place}.valueFrom.fieldRef.fieldPath", asked, text)


def _mounts(mounts: list[JsonObject], path: str, volumes: set[Any]) -> Iterator[Cause]:
    seen = set()
    for at, mount in enumerate(mounts):
        name, where = mount.get("name") or "", mount.get("mountPath") or ""
        if not name:
            yield required(f"{path}[{at}].name")
        elif name not in volumes:
            yield _not_found(f"{path}[{at}].name", name)
        if not where:
            yield required(f"{path}[{at}].mountPath")
        if where in seen:
            yield invalid(f"{path}[{at}].mountPath", where, "must be unique")
        seen.add(where)
        if ".." in str(mount.get("subPath") or "").split("/"):
            yield invalid(f"{path}[{at}].subPath", mount["subPath"], "must not contain '..'")


def _not_found(field: str, value: str) -> Cause:
    return Cause("FieldValueNotFound", field, f'Not found: "{value}"')


def _ports(ports: list[JsonObject], path: str, pod: JsonObject, taken: set[tuple[Any, ...]]) -> Iterator[Cause]:
    for at, port in enumerate(ports):
        place, number, host = f"{path}[{at}]", port.get("containerPort") or 0, port.get("hostPort")
        if not number:
            yield required(f"{place}.containerPort")
        elif not 0 < number <= _MOST_PORT:
            yield invalid(f"{place}.containerPort", number, _OF_PORT)
        protocol = port.get("protocol") or "TCP"
        yield from one_of(f"{place}.protocol", protocol, ("TCP", "UDP", "SCTP"))
        if not host:
            continue
        if not 0 < host <= _MOST_PORT:
            yield invalid(f"{place}.hostPort", host, _OF_PORT)
        elif pod.get("hostNetwork") and host != number:
            yield invalid(f"{place}.hostPort", host, "must match `containerPort` when `hostNetwork` is true")
        if (protocol, port.get("hostIP") or "", host) in taken:
            yield duplicate(f"{place}.hostPort", f"{protocol}/{port.get('hostIP') or ''}/{host}")
        taken.add((protocol, port.get("hostIP") or "", host))


def _claimed(container: JsonObject, place: str, claims: set[Any]) -> Iterator[Cause]:
    seen = set()
    for at, claim in enumerate((container.get("resources") or {}).get("claims") or ()):
        name = claim.get("name") or ""
        field = f"{place}.resources.claims[{at}]"
        if not name:
            yield required(f"{field}.name")
        elif name not in claims:
            yield _not_found(field, name)
        if (name, claim.get("request")) in seen:
            yield duplicate(field, name)
        seen.add((name, claim.get("request")))
    for name, value in ((container.get("resources") or {}).get("limits") or {}).items():
        if name.startswith("hugepages-") and parse_quantity(value) % parse_quantity(name.partition("-")[2]):
            yield invalid(f"{place}.resources.limits[{name}]", str(value), "must be a multiple of the page size")


def _probes(container: JsonObject, place: str, *, restarts: bool) -> Iterator[Cause]:
    for name in _PROBES:
        probe = container.get(name)
        if probe is None:
            continue
        field = f"{place}.{name}"
        if not restarts:
            yield forbidden(field, "may not be set for init containers without restartPolicy=Always")
            continue
        given = [handler for handler in _HANDLERS if probe.get(handler) is not None]
        if not given:
            yield required(field, "must specify a handler type")
        for handler in given[1:]:
            yield forbidden(f"{field}.{handler}", "may not specify more than 1 handler type")
        for key in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
            if (probe.get(key) or 0) < 0:
                yield invalid(f"{field}.{key}", probe[key], "must be greater than or equal to 0")
        if name != "readinessProbe" and probe.get("successThreshold") not in {None, 1}:
            yield invalid(f"{field}.successThreshold", probe["successThreshold"], "must be 1")
