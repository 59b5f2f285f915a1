"""Makes lightkube's types ready before threads use them.

In scope: that alone. Out of scope: calls of the API.

msgspec (0.22) works out a type at its first decoding or conversion and runs Python code on the way; another thread that
needs the same type, or one that shares a part with it (Pod and DaemonSet share the whole pod), meets it half made and
the process dies of a segmentation fault. Whatever threads decode or convert is therefore made ready once here, by one
of them: the resources, the API's own Status, and the parts of a kubeconfig.
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
"""Every resource that our calls read or get back."""

_KUBECONFIG: Final = {
    "current-context": "c",
    "clusters": [{"name": "c", "cluster": {"server": "https://c"}}],
    "users": [{"name": "c", "user": {}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
}
_lock = threading.Lock()
_prepared: set[type] = set()


def prepare_types() -> None:
    """Use every type once, 17 ms in all that the first calls would take otherwise; later calls do next to nothing."""
    with _lock:
        if not _prepared.issuperset(DECODED):
            KubeConfig.from_dict(_KUBECONFIG)
            decode_status(b"{}")
        for resource in DECODED:
            _prepare(resource)


def prepare_type(resource: type) -> None:
    """Decode one more type once: one that was described at run time, before the first thread lists its objects."""
    with _lock:
        _prepare(resource)


def _prepare(resource: type) -> None:
    if resource not in _prepared:
        decode_list(b'{"items":[],"metadata":{}}', resource)
        _prepared.add(resource)
