"""Claims of devices for pods on pools of NVIDIA's DRA driver: a template, from which each pod gets a claim of its own.

In scope: the template, and the fields of pods that name it. Out of scope: the pods (pods), pools of a device plugin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.gpu.claims import DRIVER
from gpukube.workload.render.text import Flow, Noted

if TYPE_CHECKING:
    from gpukube.workload.render.intent import Fitted

_API: Final = "resource.k8s.io/v1"
_NAME: Final = "gpu"
"""Name of the claim in the pod, and of its request."""


def claim_templates(fitted: Fitted, metadata: dict[str, object]) -> list[dict[str, object]]:
    """Return the template of the pods' claims; none on a pool whose nodes advertise resources."""
    if not fitted.offer.by_claims:
        return []
    device_class, _, profile = fitted.resource.partition("/")
    expression = f"device.attributes['{DRIVER}'].profile == '{profile}'"
    chosen = {"selectors": [{"cel": {"expression": expression}}]} if profile else {}
    request = {"name": _NAME, "exactly": {"deviceClassName": device_class, "count": fitted.intent.gpus, **chosen}}
    alike = Noted(Flow(requests=[_NAME], matchAttribute=f"{DRIVER}/parentUUID"), "all on one GPU")
    devices = {"requests": [request], **({"constraints": [alike]} if fitted.intent.same_gpu else {})}
    return [
        {
            "apiVersion": _API,
            "kind": "ResourceClaimTemplate",
            "metadata": metadata,
            "spec": {"spec": {"devices": devices}},
        }
    ]


def pod_claims(fitted: Fitted) -> dict[str, object]:
    """Return the field of a pod that names the template; {} without claims."""
    if not fitted.offer.by_claims:
        return {}
    claim = Flow(name=_NAME, resourceClaimTemplateName=fitted.intent.name)
    return {"resourceClaims": [Noted(claim, "each pod gets a claim of its own, deleted with it")]}


def container_claims(fitted: Fitted) -> dict[str, object]:
    """Return the field of the container's resources; {} without claims."""
    if not fitted.offer.by_claims:
        return {}
    return {"claims": [Noted(Flow(name=_NAME), "without it the container gets no GPU")]}
