"""Everything that is linted in one run, as input of the rules.

Pure. Out of scope: single pods (`views`), rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from gpukube.workload.claims import read_claims
from gpukube.workload.lint.places import find_places
from gpukube.workload.lint.views import Loose, Pod, RayCluster
from gpukube.workload.templates import ray_cluster_path, read_contents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.workload.claims import Claims, PodClaim
    from gpukube.workload.lint.places import Places
    from gpukube.workload.manifests import Manifest
    from gpukube.workload.offers import PoolOffer
    from gpukube.workload.templates import Contents


@dataclass(frozen=True)
class World:
    """Everything that is linted in one run.

    Attributes:
        manifests: The objects.
        offers: Offers of the spec's pools; None without a spec.
    """

    manifests: Sequence[Manifest]
    offers: Sequence[PoolOffer] | None = None

    @cached_property
    def pods(self) -> tuple[Pod, ...]:
        """All pod templates, in the order of the objects."""
        return tuple(Pod(template) for found in self._contents for template in found.templates)

    @cached_property
    def loose(self) -> tuple[Loose, ...]:
        """Limits and requests outside of pods."""
        return tuple(Loose(item) for found in self._contents for item in found.requirements)

    @cached_property
    def unjudged(self) -> tuple[str, ...]:
        """Objects that name devices in places with unknown meaning: "LimitRange/gpus (nvidia.com/gpu)"."""
        named = zip(self.manifests, self._contents, strict=True)
        return tuple(f"{manifest} ({', '.join(found.unjudged)})" for manifest, found in named if found.unjudged)

    @cached_property
    def _contents(self) -> tuple[Contents, ...]:
        return tuple(map(read_contents, self.manifests))

    @cached_property
    def claims(self) -> Claims:
        """Claims, templates, and classes among the objects."""
        return read_claims(manifest.root for manifest in self.manifests)

    def gpu_claims(self, pod: Pod) -> tuple[PodClaim, ...]:
        """Return a pod's claims of GPUs, as far as the objects show."""
        if "resourceClaims" not in pod.spec:
            return ()
        found = self.claims.of_pod(pod.spec, pod.manifest.namespace)
        return tuple(claim for claim in found if claim.spec and claim.spec.is_of_nvidia)

    def places(self, pod: Pod) -> Places | None:
        """Return the pools of the spec that a pod can use; None without a spec."""
        if not self.offers:
            return None
        if pod not in self._places:
            self._places[pod] = find_places(pod, self.offers, by_claims=bool(self.gpu_claims(pod)))
        return self._places[pod]

    @cached_property
    def _places(self) -> dict[Pod, Places]:
        return {}

    @cached_property
    def ray_clusters(self) -> tuple[RayCluster, ...]:
        """All Ray clusters."""
        owned: dict[int, list[Pod]] = {}
        for pod in self.pods:
            owned.setdefault(id(pod.manifest), []).append(pod)
        found = ((manifest, ray_cluster_path(manifest)) for manifest in self.manifests)
        return tuple(RayCluster(one, path, owned.get(id(one), ())) for one, path in found if path is not None)
