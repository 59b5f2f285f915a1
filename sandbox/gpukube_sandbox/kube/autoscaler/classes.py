"""ComputeClasses of GKE: the order in which the autoscaler tries groups for pods that select a class; pure.

In scope: which groups are of a class, and their ranks. Out of scope: the type (`gke.computeclasses`), packing pods.

Sources: docs: kubernetes-engine/concepts/about-custom-compute-classes (fallback priorities, node pools and
ComputeClasses, whenUnsatisfiable).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube_sandbox.kube.store.objects import labels, spec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube_sandbox.kube.autoscaler.groups import Group
    from gpukube_sandbox.kube.store.objects import JsonObject

CLASS_LABEL: Final = "cloud.google.com/compute-class"
_STOPS: Final = (1, 33)
"""First version in which a class without whenUnsatisfiable adds nothing beyond its ranks."""


def class_of(pod: JsonObject) -> str:
    """Return the class that a pod selects; "" if it selects none."""
    return str((spec(pod).get("nodeSelector") or {}).get(CLASS_LABEL, ""))


def ranked(
    wanted: str, config: JsonObject | None, groups: Mapping[str, tuple[Group, JsonObject]], version: tuple[int, int]
) -> list[list[Group]]:
    """Return the groups that may grow for pods of a class, rank by rank.

    Args:
        wanted: Name of the class.
        config: The ComputeClass; None if it does not exist, so that nothing grows.
        groups: Group name -> group and a node of it.
        version: Minor version of Kubernetes.
    """
    if config is None:
        return []
    own = [group for group, node in groups.values() if _is_of(node, wanted)]
    ranks = [
        [group for group in own if group.pool in (rule.get("nodepools") or ())] for rule in spec(config)["priorities"]
    ]
    otherwise = spec(config).get("whenUnsatisfiable") or ("DoNotScaleUp" if version >= _STOPS else "ScaleUpAnyway")
    return [*ranks, *([own] if otherwise == "ScaleUpAnyway" else [])]


def _is_of(node: JsonObject, wanted: str) -> bool:
    """Return whether a node is of a class: it has its label and its taint."""
    taint = {"key": CLASS_LABEL, "value": wanted, "effect": "NoSchedule"}
    tainted = any(all(one.get(key) == value for key, value in taint.items()) for one in spec(node).get("taints") or ())
    return labels(node).get(CLASS_LABEL) == wanted and tainted
