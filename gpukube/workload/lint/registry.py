"""All rules, in the order of their numbers.

A new family is a module with its rules and a line here. The lists group rules by what they check: containers, a pod, a
Ray cluster, an object, or everything that is linted together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gpukube.rule_ids import rule_id
from gpukube.workload.lint import capacity, claims, families, images, network, placement, ray, resources, sharing

if TYPE_CHECKING:
    from gpukube.workload.lint.rule import Rule
    from gpukube.workload.lint.views import Loose, Pod, RayCluster
    from gpukube.workload.lint.world import World
    from gpukube.workload.manifests import Manifest

CONTAINER_RULES: Final[tuple[Rule[Pod | Loose], ...]] = (
    *resources.CONTAINERS,
    *placement.CONTAINERS,
    *network.CONTAINERS,
)
POD_RULES: Final[tuple[Rule[Pod], ...]] = (
    *resources.PODS,
    *placement.PODS,
    *families.PODS,
    *sharing.PODS,
    *images.PODS,
    *capacity.PODS,
    *network.PODS,
    *claims.PODS,
)
RAY_RULES: Final[tuple[Rule[RayCluster], ...]] = (*ray.CLUSTERS, *capacity.CLUSTERS)
OBJECT_RULES: Final[tuple[Rule[Manifest], ...]] = (*resources.OBJECTS, *ray.OBJECTS, *claims.OBJECTS)
WORLD_RULES: Final[tuple[Rule[World], ...]] = (*placement.WORLDS, *sharing.WORLDS)

_ALL: Final[tuple[Rule[Any], ...]] = (*CONTAINER_RULES, *POD_RULES, *RAY_RULES, *OBJECT_RULES, *WORLD_RULES)
RULES: Final[dict[str, Rule[Any]]] = {rule.code: rule for rule in sorted(_ALL, key=lambda rule: rule_id(rule.code))}
"""Code -> rule."""
