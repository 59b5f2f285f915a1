"""All that is linted in one run, as the rules see it.

Pure. Must not live here: single pods (`views`), rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from gpukube.workload.lint.places import find_places
from gpukube.workload.lint.views import Pod, RayCluster
from gpukube.workload.templates import pod_templates, ray_cluster_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.workload.lint.places import Places
    from gpukube.workload.manifests import Manifest
    from gpukube.workload.offers import PoolOffer


@dataclass(frozen=True)
class World:
    """All that is linted in one run.

    Attributes:
        manifests: The objects.
        offers: What the pools of the spec offer; None without a spec.
    """

    manifests: Sequence[Manifest]
    offers: Sequence[PoolOffer] | None = None

    @cached_property
    def pods(self) -> tuple[Pod, ...]:
        """All pod templates, as they stand in the objects."""
        return tuple(Pod(template) for manifest in self.manifests for template in pod_templates(manifest))

    def places(self, pod: Pod) -> Places | None:
        """Return which pools of the spec a pod may go to; None without a spec."""
        if not self.offers:
            return None
        if pod not in self._places:
            self._places[pod] = find_places(pod, self.offers)
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
