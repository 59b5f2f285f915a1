"""Whether a ResourceQuota of our namespace would keep the release's pods away.

In scope: reading quotas, as a pure function. Out of scope: the call, and what to do about it.

The plugin's pods are of priority class system-node-critical (chart values, 0.20.0; operands of NVIDIA/gpu-operator
v26.7.0). A quota that is used up keeps a DaemonSet's pods from being made, without a word in its status. GKE wants such
a quota outside kube-system before it admits the class at all (docs: gpu-operator/google-gke); there the operator's
release brings one that nothing uses up (values of the provider).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import items, text, texts, tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.core.jsontree import Tree

_CLASS: Final = "system-node-critical"
_COUNTED: Final = ("pods", "count/pods")
"""Both count pods (Kubernetes documentation, "Resource Quotas")."""


def quota_shortage(quotas: Sequence[Tree], needed: int) -> str:
    """Return which quota has no room for so many more pods; "" when all have.

    Args:
        quotas: ResourceQuota objects of the namespace.
        needed: Pods to come.
    """
    for quota in quotas:
        hard, used = texts(quota, "spec", "hard"), texts(quota, "status", "used")
        for name in _COUNTED:
            limit = hard.get(name, "")
            there = int(used.get(name, "0")) if used.get(name, "0").isdigit() else 0
            if limit.isdigit() and _counts(quota) and int(limit) - there < needed:
                return (
                    f"ResourceQuota {text(quota, 'metadata', 'name')} allows {limit} pods, {there} exist, and "
                    f"{needed} more are needed"
                )
    return ""


def _counts(quota: Tree) -> bool:
    """Return whether a quota counts our pods: one without scopes counts all; of other scopes nothing can be said."""
    scopes = [tree(item) for item in items(quota, "spec", "scopeSelector", "matchExpressions")]
    if not scopes:
        return not items(quota, "spec", "scopes")
    return all(text(scope, "scopeName") == "PriorityClass" and _names_ours(scope) for scope in scopes)


def _names_ours(scope: Tree) -> bool:
    listed = _CLASS in [str(value) for value in items(scope, "values")]
    operator = text(scope, "operator")
    return operator == "Exists" or (operator == "In" and listed) or (operator == "NotIn" and not listed)
