"""Services and Ingresses.

Source: kubernetes pkg/apis/core/validation (validateService), pkg/apis/networking/validation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.validation.fields import (
    address,
    dns_label,
    duplicate,
    forbidden,
    invalid,
    label_value,
    one_of,
    port,
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
_MAX_PORT = 65535
_NODE_PORTS = range(30000, 32768)
_TRAFFIC = ("Cluster", "Local")
_FAMILIES = ("PreferDualStack", "RequireDualStack", "SingleStack")


def check_service(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject a Service without ports, with conflicting ports, or with fields that its type does not allow."""
    yield from dns_label("metadata.name", str((new.get("metadata") or {}).get("name") or ""))
    spec = new.get("spec") or {}
    was = ((old or {}).get("spec") or {}).get("clusterIP")
    if was and spec.get("clusterIP") != was and spec.get("type") != "ExternalName":
        yield invalid("spec.clusterIPs[0]", [spec.get("clusterIP")], "may not change once set")
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
    yield from _traffic(spec, kind)
    if spec.get("clusterIP") and not headless:
        yield from address("spec.clusterIPs[0]", spec["clusterIP"])
    for at, text in enumerate(spec.get("externalIPs") or ()):
        yield from address(f"spec.externalIPs[{at}]", text)


def _traffic(spec: JsonObject, kind: str) -> Iterator[Cause]:
    external = spec.get("externalTrafficPolicy")
    yield from one_of("spec.externalTrafficPolicy", external, _TRAFFIC)
    if external and kind not in {"LoadBalancer", "NodePort"}:
        yield invalid("spec.externalTrafficPolicy", external, "may only be set for externally-accessible services")
    yield from one_of("spec.internalTrafficPolicy", spec.get("internalTrafficPolicy"), _TRAFFIC)
    yield from one_of("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), _FAMILIES)


def _service_ports(ports: list[JsonObject], kind: str) -> Iterator[Cause]:
    seen: set[tuple[str, str]] = set()
    for at, one in enumerate(ports):
        yield from _port(f"spec.ports[{at}]", one, several=len(ports) > 1)
        if one.get("nodePort") and kind == "ClusterIP":
            yield forbidden(f"spec.ports[{at}].nodePort", "may not be used when `type` is 'ClusterIP'")
        own = {("name", str(one.get("name"))), ("port", f"{one.get('port')}/{one.get('protocol') or 'TCP'}")}
        if ("name", str(one.get("name"))) in seen and one.get("name"):
            yield duplicate(f"spec.ports[{at}].name", one["name"])
        if any(key == "port" for key, _ in own & seen):
            yield duplicate(f"spec.ports[{at}]", {"port": one.get("port"), "protocol": one.get("protocol")})
        seen |= own


def _port(field: str, one: JsonObject, *, several: bool) -> Iterator[Cause]:
    if one.get("name"):
        yield from dns_label(f"{field}.name", str(one["name"]))
    elif several:
        yield required(f"{field}.name")
    for key in ("port", "targetPort"):
        if one.get(key) is not None:
            yield from port(f"{field}.{key}", one[key])
    if one.get("nodePort") and one["nodePort"] not in _NODE_PORTS:
        text = "provided port is not in the valid range. The range of valid ports is 30000-32767"
        yield invalid(f"{field}.nodePort", one["nodePort"], text)
    yield from one_of(f"{field}.protocol", one.get("protocol"), _PROTOCOLS)


def check_ingress(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Reject an Ingress without a valid backend."""
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
        elif port.get("number") and not 1 <= port["number"] <= _MAX_PORT:
            text = f"must be between 1 and {_MAX_PORT}, inclusive"
            yield invalid(f"{field}.service.port.number", port["number"], text)
    elif backend.get("resource") is None:
        yield invalid(field, "", "resource or service backend is required")
