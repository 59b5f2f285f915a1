"""The requests of one undisturbed `pool create`, and names for those of its boundaries that matter most."""

from __future__ import annotations

from dataclasses import dataclass

OURS = 68
"""Requests of our own client to Kubernetes in an undisturbed run."""
BEFORE_HELM = 22
"""Those until Helm runs for the first time: one look, permissions, quotas, the version."""
FIRST_LOOK = 10
"""Requests of one look into a cluster without a release of ours: the first ones of a run."""
LOOK = 18
"""Requests of one look once there is a release, whose objects are read too: the last ones of a run."""
BEFORE_PROOF = OURS - LOOK
"""Requests of our own until the pool's proof is looked for; the last of them asks for the pool's config entry."""

BEFORE_POLLS = 5
"""Requests to ARM up to the creation of the pool."""


@dataclass(frozen=True)
class PoolCall:
    """A request to ARM about the pool: method, pattern of its path, and which of those.

    Not its number among all requests: how often a run asks how far the pool is, depends on its pace.
    """

    method: str
    path: str
    which: int = 1

    @property
    def parts(self) -> dict[str, object]:
        """Of a fault that strikes it."""
        return {"service": "arm", "method": self.method, "path": self.path, "nth": self.which}


POOL_API = {
    "put": PoolCall("PUT", r"/agentPools/a100mig\?"),
    "first poll": PoolCall("GET", "/operations/"),
    "get": PoolCall("GET", r"/agentPools/a100mig\?"),
    "last get": PoolCall("GET", r"/agentPools/a100mig\?", 2),
}
"""Requests to ARM of a creation from the first change on."""


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
    "dry run": HelmCall("GET", "/serviceaccounts/"),
    "install begins": HelmCall("GET", "/version", 3),
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


def first_looks(ours: list[int]) -> list[int]:
    """Leave out the looks of a proof that took more than one: the machine was slow."""
    return ours[: len(ours) - max(0, len(ours) - OURS) // LOOK * LOOK]
