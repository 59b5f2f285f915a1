"""Tolerations that the pods of a pool must declare because the cluster does not add them.

Pure. In scope: the nodes' future taints minus what the cluster's admission adds. Out of scope: what a cloud's admission
does (its provider), and output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.core.values import Toleration

if TYPE_CHECKING:
    from collections.abc import Collection

    from gpukube.core.values import Desired, Taint

_NVIDIA = "nvidia.com/"


def pod_tolerations(desired: Desired, *, tolerates_resources: bool) -> tuple[Toleration, ...]:
    """Return the tolerations that a pod requesting a device of the pool must declare; usually none.

    Kubernetes' admission plugin ExtendedResourceToleration adds {key: RESOURCE, operator: Exists, effect: NoSchedule}
    for each resource that a pod requests (kubernetes/kubernetes plugin/pkg/admission/extendedresourcetoleration). So a
    pod that requests nvidia.com/gpu tolerates the usual GPU taint, and one that requests nvidia.com/mig-1g.5gb or
    nvidia.com/gpu.shared does not.

    Args:
        desired: The pool, with its promise and effective taints.
        tolerates_resources: Whether the cluster runs that plugin.
    """
    resources = desired.promise.per_node.keys()
    return tuple(
        as_toleration(taint)
        for taint in desired.effective_taints
        if taint.effect != "PreferNoSchedule" and not (tolerates_resources and _is_added(taint, resources))
    )


def _is_added(taint: Taint, resources: Collection[str]) -> bool:
    """Return whether admission adds the toleration for every resource of the pool."""
    return taint.effect == "NoSchedule" and all(taint.key == resource for resource in resources)


def as_toleration(taint: Taint) -> Toleration:
    """Return a toleration; it matches any value of NVIDIA's keys, like the admission plugin's, as values vary."""
    if taint.key.startswith(_NVIDIA) or not taint.value:
        return Toleration(taint.key, "Exists", "", taint.effect)
    return Toleration(taint.key, "Equal", taint.value, taint.effect)
