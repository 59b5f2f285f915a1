"""Reads what a drain of nodes needs, in few calls.

In scope: which lists are read. Out of scope: what they mean (judge).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gpukube.cluster.drain.judge import judge
from gpukube.cluster.drain.pods import disruption_budget, node_pod
from gpukube.cluster.kube.api_types import BUDGETS, JOBS, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS
from gpukube.core.jsontree import at, number, text, trees

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from gpukube.cluster.drain.judge import Verdict
    from gpukube.cluster.drain.pods import DisruptionBudget
    from gpukube.cluster.kube.client import Kube
    from gpukube.core.jsontree import Tree


_CONTROLLERS: Final = {kind.kind: kind for kind in (REPLICA_SETS, STATEFUL_SETS, REPLICATION_CONTROLLERS, JOBS)}
"""Types that create pods from a template and set themselves as the controller."""
_WITH_REPLICAS: Final = frozenset(_CONTROLLERS) - {JOBS.kind}
"""Controllers that maintain a number of pods."""
ControllerKey = tuple[str, str, str]
"""Kind, namespace, name."""


@dataclass(slots=True)
class Controllers:
    """Controllers of pods, read when first needed: one list per kind and namespace."""

    known: dict[ControllerKey, Tree] = field(default_factory=dict)

    def of(self, kube: Kube, pod: Tree) -> Tree | None:
        """Return the object that recreates a pod; None if there is none, it is of another kind, or is gone.

        Raises:
            AccessError: Objects of its kind may not be listed.
            ClusterError: The API did not answer.
        """
        key = _controller_key(pod)
        if key is None:
            return None
        if key not in self.known:
            self.known[key] = {}  # if it is gone
            self._read(kube, key[0], key[1])
        return self.known[key] or None

    def short(self, kube: Kube, keys: Iterable[ControllerKey]) -> tuple[str, ...]:
        """Return the controllers that currently have fewer pods than declared, as "ReplicaSet ml/web (1 of 2)".

        Raises:
            AccessError, ClusterError: See `of`.
        """
        kept = sorted(key for key in keys if key[0] in _WITH_REPLICAS)
        for kind, namespace in {key[:2]: None for key in kept}:
            self._read(kube, kind, namespace)
        found = ((key, self.known.get(key, {})) for key in kept)
        counts = [(key, number(obj, "status", "replicas"), _declared_replicas(obj)) for key, obj in found if obj]
        return tuple(
            f"{kind} {space}/{name} ({has} of {wants})" for (kind, space, name), has, wants in counts if has < wants
        )

    def _read(self, kube: Kube, kind: str, namespace: str) -> None:
        self.known |= {key: {} for key in self.known if key[:2] == (kind, namespace)}
        for obj in kube.objects(_CONTROLLERS[kind], namespace) or ():
            self.known[kind, namespace, text(obj, "metadata", "name")] = obj


def _controller_key(pod: Tree) -> ControllerKey | None:
    refs = trees(pod, "metadata", "ownerReferences")
    ref = next((one for one in refs if at(one, "controller") is True and text(one, "kind") in _CONTROLLERS), None)
    return (text(ref, "kind"), text(pod, "metadata", "namespace"), text(ref, "name")) if ref else None


def _declared_replicas(obj: Tree) -> int:
    leaving = bool(text(obj, "metadata", "deletionTimestamp"))
    return 0 if leaving else 1 if at(obj, "spec", "replicas") is None else number(obj, "spec", "replicas")


@dataclass(frozen=True, slots=True)
class Occupants:
    """Pods on a set of nodes.

    Attributes:
        verdicts: Verdicts of all their pods, by node and name.
        budgets: Disruption budgets of the namespaces of those that must leave.
    """

    verdicts: tuple[Verdict, ...]
    budgets: tuple[DisruptionBudget, ...]

    @property
    def left(self) -> tuple[Verdict, ...]:
        """Verdicts of pods that must still leave."""
        return tuple(verdict for verdict in self.verdicts if verdict.leaves)


def read_occupants(  # noqa: PLR0913 - the inputs of a reading
    kube: Kube,
    nodes: Collection[str],
    now: float,
    *,
    staying: Collection[str] = (),
    allow_disruption: bool = False,
    controllers: Controllers | None = None,
) -> Occupants:
    """Read the pods of nodes and the budgets that cover them: the pod lists, and one list of budgets per namespace.

    The lists set no resource version, so they return what the store has, not what an API server had cached
    (docs: reference/using-api/api-concepts, "Resource versions").

    Args:
        kube: The cluster.
        nodes: Names of nodes.
        now: Seconds since the epoch.
        staying: See `judge`.
        allow_disruption: Whether to evict pods regardless of annotations on them.
        controllers: Source of pod templates; without it they are unknown.

    Raises:
        AccessError: Pods, budgets or controllers may not be listed.
        ClusterError: The API did not answer.
    """
    pods = kube.all_pods_on(nodes)
    return find_occupants(kube, pods, now, staying=staying, allow_disruption=allow_disruption, controllers=controllers)


def find_occupants(  # noqa: PLR0913 - the same inputs
    kube: Kube,
    objects: Iterable[Tree],
    now: float,
    *,
    staying: Collection[str] = (),
    allow_disruption: bool = False,
    controllers: Controllers | None = None,
) -> Occupants:
    """Judge pods that were already read as API objects; read the budgets that cover them.

    Raises:
        AccessError: Budgets or controllers may not be listed.
        ClusterError: The API did not answer.
    """
    found = (node_pod(pod, controllers.of(kube, pod) if controllers else None) for pod in objects)
    pods = sorted(found, key=lambda pod: (pod.node, str(pod)))
    spaces = sorted({pod.namespace for pod in pods if not pod.stays})
    budgets = tuple(disruption_budget(item) for space in spaces for item in kube.objects(BUDGETS, space) or ())
    return Occupants(judge(pods, budgets, now, staying=staying, allow_disruption=allow_disruption), budgets)
