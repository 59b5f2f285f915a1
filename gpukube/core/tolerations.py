"""What the pods of a pool must tolerate by themselves, because nothing adds it for them.

Pure. In scope: taints that the nodes will carry x what the cluster's admission adds. Out of scope: what the
admission of a cloud does (its provider), and how it is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.core.values import Toleration

if TYPE_CHECKING:
    from collections.abc import Collection

    from gpukube.core.values import Desired, Taint

_NVIDIA = "nvidia.com/"


def pod_tolerations(desired: Desired, *, tolerates_resources: bool) -> tuple[Toleration, ...]:
    """List the tolerations that a pod which asks for a device of the pool needs and is not given; mostly none.

    Kubernetes' admission plugin ExtendedResourceToleration adds {key: RESOURCE, operator: Exists, effect: NoSchedule}
    for each resource that a pod asks for (kubernetes/kubernetes plugin/pkg/admission/extendedresourcetoleration). So a
    pod that asks for nvidia.com/gpu tolerates the usual GPU taint, and one that asks for nvidia.com/mig-1g.5gb or
    nvidia.com/gpu.shared does not.

    Args:
        desired: The pool; its promise and effective taints are read.
        tolerates_resources: Whether the cluster runs that plugin.
    """
    resources = desired.promise.per_node.keys()
    return tuple(
        as_toleration(taint)
        for taint in desired.effective_taints
        if taint.effect != "PreferNoSchedule" and not (tolerates_resources and _is_added(taint, resources))
    )


def _is_added(taint: Taint, resources: Collection[str]) -> bool:
    """Return whether it is tolerated whichever resource of the pool a pod asks for."""
    return taint.effect == "NoSchedule" and all(taint.key == resource for resource in resources)


def as_toleration(taint: Taint) -> Toleration:
    """Tolerate NVIDIA's keys whatever their value, as the admission plugin does: clouds and guides give them others."""
    if taint.key.startswith(_NVIDIA) or not taint.value:
        return Toleration(taint.key, "Exists", "", taint.effect)
    return Toleration(taint.key, "Equal", taint.value, taint.effect)
