"""Initializes lightkube's types before threads use them.

In scope: only that. Out of scope: API calls.

msgspec (0.22) analyzes a type on first use and runs Python code meanwhile; if another thread then uses the same type,
or one that shares a part with it (Pod and DaemonSet share the whole pod), it sees a half-initialized type and the
process segfaults. So one thread initializes here, once, everything that threads decode or convert: the resources, the
API's own Status, and the parts of a kubeconfig.
"""

from __future__ import annotations

import threading
from typing import Final

from lightkube import KubeConfig
from lightkube.core.decoders import decode_list, decode_status
from lightkube.resources.apps_v1 import DaemonSet, Deployment
from lightkube.resources.authorization_v1 import SelfSubjectAccessReview
from lightkube.resources.core_v1 import ConfigMap, Namespace, Node, Pod, Secret

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
"""Every resource that gpukube's calls read or get back."""

_KUBECONFIG: Final = {
    "current-context": "c",
    "clusters": [{"name": "c", "cluster": {"server": "https://c"}}],
    "users": [{"name": "c", "user": {}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
}
_lock = threading.Lock()
_prepared: set[type] = set()


def prepare_types() -> None:
    """Use every type once; takes 17 ms that the first calls would take otherwise. Later calls are nearly free."""
    with _lock:
        if not _prepared.issuperset(DECODED):
            KubeConfig.from_dict(_KUBECONFIG)
            decode_status(b"{}")
        for resource in DECODED:
            _prepare(resource)


def prepare_type(resource: type) -> None:
    """Decode one more type once: one registered at run time, before the first thread lists its objects."""
    with _lock:
        _prepare(resource)


def _prepare(resource: type) -> None:
    if resource not in _prepared:
        decode_list(b'{"items":[],"metadata":{}}', resource)
        _prepared.add(resource)
