"""Checks whether a ResourceQuota in gpukube's namespace would block the release's pods.

In scope: evaluating quotas, pure. Out of scope: the call, and how to react.

The plugin's pods have the priority class system-node-critical (chart values, 0.20.0; operands of NVIDIA/gpu-operator
v26.7.0). An exhausted quota blocks a DaemonSet's pods without any sign in its status. GKE requires such a quota outside
kube-system before it admits the class at all (docs: gpu-operator/google-gke); there the operator's release includes one
that is never exhausted (values of the provider).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import items, text, texts, tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.core.jsontree import Tree

_CLASS: Final = "system-node-critical"
_COUNTED: Final = ("pods", "count/pods")
"""Resources of a quota that both count pods (Kubernetes documentation, "Resource Quotas")."""


def quota_shortage(quotas: Sequence[Tree], needed: int) -> str:
    """Return which quota has no room for this many more pods; "" if all have.

    Args:
        quotas: ResourceQuota objects of the namespace.
        needed: Number of additional pods.
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
    """Return whether a quota counts the release's pods: one without scopes counts all; other scopes are unknown."""
    scopes = [tree(item) for item in items(quota, "spec", "scopeSelector", "matchExpressions")]
    if not scopes:
        return not items(quota, "spec", "scopes")
    return all(text(scope, "scopeName") == "PriorityClass" and _names_ours(scope) for scope in scopes)


def _names_ours(scope: Tree) -> bool:
    listed = _CLASS in [str(value) for value in items(scope, "values")]
    operator = text(scope, "operator")
    return operator == "Exists" or (operator == "In" and listed) or (operator == "NotIn" and not listed)
