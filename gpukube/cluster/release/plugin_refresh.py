"""Makes the GPU Operator's plugin reload its config entries.

In scope: restarting DaemonSets that do not notice a new entry. Out of scope: the entries (shared_values).

The operator's config-manager reads the mounted ConfigMap when a node's label changes, and does not watch it: a label
that names an entry newer than its pod causes an error, and the previous sharing stays (docs: gpu-operator/gpu-sharing,
"Changing the ConfigMap"). The device plugin's own chart restarts its pods by a checksum.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from gpukube.cluster.kube.api_types import ApiType
from gpukube.cluster.names import GPU_OPERATOR, NAMESPACE
from gpukube.core.jsontree import pointer, text, tree

if TYPE_CHECKING:
    from gpukube.cluster.kube.client import Kube
    from gpukube.core.jsontree import Tree

_ANNOTATION: Final = "gpukube.io/config-digest"
"""Annotation on the pod template: digest of the entries that the pods started with; pods without it may be older."""
_READERS: Final = (GPU_OPERATOR.plugin, "gpu-feature-discovery")
"""DaemonSets with a config-manager (NVIDIA/gpu-operator v26.7.0 assets)."""
_DAEMONSETS: Final = ApiType("apps", "v1", "DaemonSet", "daemonsets", namespaced=True)
_ATTEMPTS: Final = 5
"""Maximum attempts to patch an object while others write to it."""


def refresh_plugin(kube: Kube) -> bool:
    """Restart the operator's plugin if its pods may not have read the current entries.

    Running pods keep their GPUs; new ones wait for the moment that the plugin needs to register again. Call this before
    pointing a node's label at another entry. Repeating it changes nothing.

    Returns:
        Whether anything was restarted.

    Raises:
        AccessError: DaemonSets may not be patched.
        ClusterError: The API did not answer.
    """
    entries = kube.config_map(NAMESPACE, GPU_OPERATOR.config_map) or {}
    digest = sha256(json.dumps(dict(entries), sort_keys=True).encode()).hexdigest()[:16]
    restarted = [_restart(kube, name, digest) for name in _READERS]
    return any(restarted)


def _restart(kube: Kube, name: str, digest: str) -> bool:
    # The patch applies only to the version that was read: the operator writes its DaemonSets too.
    for _ in range(_ATTEMPTS):
        live = kube.find_object(_DAEMONSETS, name, NAMESPACE)
        if live is None or text(live, "spec", "template", "metadata", "annotations", _ANNOTATION) == digest:
            return False
        if kube.change_object(_DAEMONSETS, live, [_operation(live, digest)]):
            return True
    return False


def _operation(live: Tree, digest: str) -> Tree:
    path = ("spec", "template", "metadata", "annotations")
    if tree(live, *path):
        return {"op": "add", "path": pointer(*path, _ANNOTATION), "value": digest}
    return {"op": "add", "path": pointer(*path), "value": {_ANNOTATION: digest}}
