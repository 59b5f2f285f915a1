"""Reads what a drain of some nodes needs to know, with few calls.

Lives here: which lists are read. Must not live here: what they mean (judge).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube.cluster.drain.judge import judge
from gpukube.cluster.drain.pods import disruption_budget, node_pod
from gpukube.cluster.kube.api_types import BUDGETS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from gpukube.cluster.drain.judge import Verdict
    from gpukube.cluster.drain.pods import DisruptionBudget
    from gpukube.cluster.kube.client import Kube
    from gpukube.core.jsontree import Tree


@dataclass(frozen=True, slots=True)
class Occupants:
    """What is on some nodes.

    Attributes:
        verdicts: Of all their pods, by node and name.
        budgets: Of the namespaces of those that are to leave.
    """

    verdicts: tuple[Verdict, ...]
    budgets: tuple[DisruptionBudget, ...]

    @property
    def left(self) -> tuple[Verdict, ...]:
        """Those that have not left yet."""
        return tuple(verdict for verdict in self.verdicts if verdict.leaves)


def read_occupants(
    kube: Kube, nodes: Collection[str], now: float, *, staying: Collection[str] = (), allow_disruption: bool = False
) -> Occupants:
    """Read the pods of nodes and the budgets that cover them: the pods' lists, and one list of budgets a namespace.

    Args:
        kube: The cluster.
        nodes: Names of nodes.
        now: Seconds since the epoch.
        staying: As of `judge`.
        allow_disruption: Whether pods are evicted against the signs on them.

    Raises:
        AccessError: Pods or budgets may not be listed.
        ClusterError: The API did not answer.
    """
    return find_occupants(kube, kube.all_pods_on(nodes), now, staying=staying, allow_disruption=allow_disruption)


def find_occupants(
    kube: Kube, objects: Iterable[Tree], now: float, *, staying: Collection[str] = (), allow_disruption: bool = False
) -> Occupants:
    """Judge pods that were read already, as the API has them; reads the budgets that cover them.

    Raises:
        AccessError: Budgets may not be listed.
        ClusterError: The API did not answer.
    """
    pods = sorted((node_pod(pod) for pod in objects), key=lambda pod: (pod.node, str(pod)))
    spaces = sorted({pod.namespace for pod in pods if not pod.stays})
    budgets = tuple(disruption_budget(item) for space in spaces for item in kube.objects(BUDGETS, space) or ())
    return Occupants(judge(pods, budgets, now, staying=staying, allow_disruption=allow_disruption), budgets)
