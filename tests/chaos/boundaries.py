"""The requests of one undisturbed `pool create`, and names for those of its boundaries that matter most."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "BEFORE_HELM",
    "BEFORE_PROOF",
    "FIRST_LOOK",
    "HELM_CALLS",
    "LOOK",
    "OURS",
    "POOL_API",
    "HelmCall",
    "Undisturbed",
    "helm_call",
]

OURS = 41
"""Requests of our own client to Kubernetes in an undisturbed run."""
BEFORE_HELM = 18
"""Those until Helm runs for the first time: one look, permissions, quotas, the version."""
FIRST_LOOK = 10
"""Requests of one look into a cluster without a release of ours: the first ones of a run."""
LOOK = 18
"""Requests of one look once there is a release, whose objects are read too: the last ones of a run."""
BEFORE_PROOF = OURS - LOOK
"""Requests of our own until the pool's proof is looked for; the last of them asks for the pool's config entry."""
POOL_API = {"put": 3, "first poll": 4, "get": -2, "last get": -1}
"""Requests to ARM from the first change on: place among all of them (the number of polls varies)."""


@dataclass(frozen=True)
class Undisturbed:
    """What a run that nothing disturbs asks for, and leaves.

    Attributes:
        arm: Requests to ARM, method and path.
        kube: Requests to Kubernetes, method and path.
        ours: Numbers, within the requests to Kubernetes, of those of our own client.
        helm: Likewise of Helm.
        objects: What Helm has made.
    """

    arm: list[tuple[str, str]]
    kube: list[tuple[str, str]]
    ours: list[int]
    helm: list[int]
    objects: set[str]


@dataclass(frozen=True)
class HelmCall:
    """A request of Helm: method, part of the path, and which of those."""

    method: str
    part: str
    which: int = 0


HELM_CALLS = {
    "dry run": HelmCall("GET", "/openapi/v3"),
    "install begins": HelmCall("GET", "/version", 3),
    "first custom resource definition": HelmCall("PATCH", "/customresourcedefinitions/"),
    "release record": HelmCall("POST", "/secrets"),
    "first object": HelmCall("PATCH", "/serviceaccounts/"),
    "config": HelmCall("PATCH", "/configmaps/gpukube-nvidia-device-plugin-configs"),
    "last object": HelmCall("PATCH", "/deployments/", 1),
    "release record is closed": HelmCall("PUT", "/secrets/"),
}
"""A spread of Helm's requests."""


def helm_call(undisturbed: Undisturbed, call: HelmCall) -> int:
    """Number of a request of Helm, within the requests to Kubernetes."""
    calls = [(at, *undisturbed.kube[at - 1]) for at in undisturbed.helm]
    return [at for at, method, path in calls if method == call.method and call.part in path][call.which]
