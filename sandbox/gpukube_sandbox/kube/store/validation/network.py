"""Services and Ingresses.

Source: kubernetes pkg/apis/core/validation (validateService), pkg/apis/networking/validation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.validation.fields import (
    dns_label,
    duplicate,
    forbidden,
    invalid,
    label_value,
    one_of,
    qualified_name,
    required,
    subdomain,
    unsupported,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.validation.fields import Cause

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_MOST_PORT = 65535


def check_service(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Refuse a Service without ports, of ports that collide, and of fields that its type has not."""
    del old
    spec = new.get("spec") or {}
    kind, ports, headless = spec.get("type") or "ClusterIP", spec.get("ports") or [], spec.get("clusterIP") == "None"
    if not ports and not headless and kind != "ExternalName":
        yield required("spec.ports")
    if headless and kind in {"LoadBalancer", "NodePort"}:
        yield invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind == "ExternalName":
        name = str(spec.get("externalName") or "").removesuffix(".")
        yield from subdomain("spec.externalName", name) if name else [required("spec.externalName")]
    yield from _service_ports(ports, kind)
    for key, value in (spec.get("selector") or {}).items():
        yield from qualified_name("spec.selector", key)
        yield from label_value("spec.selector", str(value))
    yield from one_of("spec.sessionAffinity", spec.get("sessionAffinity"), ("ClientIP", "None"))
    yield from one_of("spec.type", spec.get("type"), _TYPES)


def _service_ports(ports: list[JsonObject], kind: str) -> Iterator[Cause]:
    seen: set[tuple[str, str]] = set()
    for at, port in enumerate(ports):
        yield from _port(f"spec.ports[{at}]", port, several=len(ports) > 1)
        if port.get("nodePort") and kind == "ClusterIP":
            yield forbidden(f"spec.ports[{at}].nodePort", "may not be used when `type` is 'ClusterIP'")
        own = {("name", str(port.get("name"))), ("port", f"{port.get('port')}/{port.get('protocol') or 'TCP'}")}
        if ("name", str(port.get("name"))) in seen and port.get("name"):
            yield duplicate(f"spec.ports[{at}].name", port["name"])
        if any(key == "port" for key, _ in own & seen):
            yield duplicate(f"spec.ports[{at}]", {"port": port.get("port"), "protocol": port.get("protocol")})
        seen |= own


def _port(field: str, port: JsonObject, *, several: bool) -> Iterator[Cause]:
    if port.get("name"):
        yield from dns_label(f"{field}.name", str(port["name"]))
    elif several:
        yield required(f"{field}.name")
    for key in ("port", "targetPort"):
        number = port.get(key)
        if isinstance(number, int) and not 1 <= number <= _MOST_PORT:
            yield invalid(f"{field}.{key}", number, f"must be between 1 and {_MOST_PORT}, inclusive")
    yield from one_of(f"{field}.protocol", port.get("protocol"), _PROTOCOLS)


def check_ingress(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Refuse an Ingress that leads nowhere."""
    del old
    spec = new.get("spec") or {}
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        yield invalid("spec", spec.get("rules"), "either `defaultBackend` or `rules` must be specified")
    if spec.get("defaultBackend") is not None:
        yield from _backend("spec.defaultBackend", spec["defaultBackend"])
    for at, rule in enumerate(spec.get("rules") or ()):
        field, host = f"spec.rules[{at}]", str(rule.get("host") or "")
        if host and "*" not in host:
            yield from subdomain(f"{field}.host", host)
        if rule.get("http") is not None and not rule["http"].get("paths"):
            yield required(f"{field}.http.paths")
        for index, path in enumerate((rule.get("http") or {}).get("paths") or ()):
            yield from _path(f"{field}.http.paths[{index}]", path)


def _path(field: str, path: JsonObject) -> Iterator[Cause]:
    kind, text = path.get("pathType"), str(path.get("path") or "")
    if kind is None:
        yield required(f"{field}.pathType", "pathType must be specified")
        return
    if kind not in _PATH_TYPES:
        yield unsupported(f"{field}.pathType", kind, _PATH_TYPES)
    elif not text.startswith("/") and (text or kind != "ImplementationSpecific"):
        yield invalid(f"{field}.path", text, "must be an absolute path")
    yield from _backend(f"{field}.backend", path.get("backend") or {})


def _backend(field: str, backend: JsonObject) -> Iterator[Cause]:
    service = backend.get("service")
    if service is not None and backend.get("resource") is not None:
        yield invalid(field, "", "cannot set both resource and service backends")
    elif service is not None:
        port = service.get("port") or {}
        if not service.get("name"):
            yield required(f"{field}.service.name")
        if port.get("name") and port.get("number"):
            yield invalid(field, "", "cannot set both port name & port number")
        elif not port.get("name") and not port.get("number"):
            yield required(field, "port name or number is required")
        elif port.get("number") and not 1 <= port["number"] <= _MOST_PORT:
            text = f"must be between 1 and {_MOST_PORT}, inclusive"
            yield invalid(f"{field}.service.port.number", port["number"], text)
    elif backend.get("resource") is None:
        yield invalid(field, "", "resource or service backend is required")
