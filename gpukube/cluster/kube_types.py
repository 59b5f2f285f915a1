"""Makes lightkube's types ready before threads use them.

Lives here: that alone. Must not live here: calls of the API.

msgspec (0.22) works out a type at its first decoding and runs Python code on the way; another thread that decodes the
same type, or one that shares a part with it (Pod and DaemonSet share the whole pod), meets it half made and the
process dies of a segmentation fault. Whatever threads decode is therefore decoded once here, by one of them.
"""

from __future__ import annotations

import threading
from typing import Final

from lightkube.core.decoders import decode_list, decode_status
from lightkube.resources.apps_v1 import DaemonSet, Deployment
from lightkube.resources.authorization_v1 import SelfSubjectAccessReview
from lightkube.resources.core_v1 import ConfigMap, Namespace, Node, Pod, Secret

__all__ = ["DECODED", "prepare_type", "prepare_types"]

DECODED: Final = (
    ConfigMap,
    DaemonSet,
    Deployment,
    Namespace,
    Node,
    Pod,
    Secret,
    SelfSubjectAccessReview,
)
"""Every resource that our calls read or get back."""

_lock = threading.Lock()
_prepared: set[type] = set()


def prepare_types() -> None:
    """Decode every type once, 17 ms in all that the first calls would take otherwise; later calls do nothing."""
    with _lock:
        for resource in DECODED:
            _prepare(resource)
        decode_status(b"{}")


def prepare_type(resource: type) -> None:
    """Decode one more type once: one that was described at run time, before the first thread lists its objects."""
    with _lock:
        _prepare(resource)


def _prepare(resource: type) -> None:
    if resource not in _prepared:
        decode_list(b'{"items":[],"metadata":{}}', resource)
        _prepared.add(resource)
