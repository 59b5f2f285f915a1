"""Probes and lifecycle hooks of containers.

Source: kubernetes pkg/apis/core/validation/validation.go (validateProbe, validateHandler, validateLifecycle).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox.kube.store.validation.fields import forbidden, invalid, one_of, port, positive, required

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.kube.store.objects import JsonObject
    from gpukube_sandbox.kube.store.validation.fields import Cause

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_TIMES = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def check_handlers(container: JsonObject, place: str, *, ends: bool, grace: int) -> Iterator[Cause]:
    """Reject invalid probes and hooks of a container.

    Args:
        container: The container.
        place: Its path in the object.
        ends: It is an init container that finishes, which must not have probes or hooks.
        grace: The pod's termination grace period in seconds.
    """
    for name in ("lifecycle", *_PROBES):
        if ends and container.get(name) is not None:
            yield forbidden(f"{place}.{name}", "may not be set for init containers without restartPolicy=Always")
    if ends:
        return
    for name in ("postStart", "preStop"):
        hook = (container.get("lifecycle") or {}).get(name)
        if hook is not None:
            yield from _handler(hook, f"{place}.lifecycle.{name}", grace)
    for name in _PROBES:
        if container.get(name) is not None:
            yield from _probe(name, container[name], f"{place}.{name}", grace)


def _probe(name: str, probe: JsonObject, place: str, grace: int) -> Iterator[Cause]:
    yield from _handler(probe, place, grace)
    for key in _TIMES:
        yield from positive(f"{place}.{key}", probe.get(key))
    own = probe.get("terminationGracePeriodSeconds")
    if own is not None and own <= 0:
        yield invalid(f"{place}.terminationGracePeriodSeconds", own, "must be greater than 0")
    if name == "readinessProbe":
        if own is not None:
            yield invalid(f"{place}.terminationGracePeriodSeconds", own, "must not be set for readinessProbes")
    elif probe.get("successThreshold") not in {None, 1}:
        yield invalid(f"{place}.successThreshold", probe["successThreshold"], "must be 1")


def _handler(given: JsonObject, place: str, grace: int) -> Iterator[Cause]:
    kinds = [kind for kind in _HANDLERS if given.get(kind) is not None]
    if not kinds:
        yield required(place, "must specify a handler type")
    for kind in kinds[1:]:
        yield forbidden(f"{place}.{kind}", "may not specify more than 1 handler type")
    for kind in kinds[:1]:
        handler, path = given[kind], f"{place}.{kind}"
        if kind == "exec" and not handler.get("command"):
            yield required(f"{path}.command")
        elif kind == "sleep" and not 0 <= handler.get("seconds", 0) <= grace:
            text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            yield invalid(path, handler["seconds"], text)
        elif kind in {"httpGet", "tcpSocket", "grpc"}:
            yield from port(f"{path}.port", handler.get("port", 0))
            yield from one_of(f"{path}.scheme", handler.get("scheme"), ("HTTP", "HTTPS"))
