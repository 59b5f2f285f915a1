"""How a cloud's autoscaler learns in which order to try the pools of a family.

In scope: the facts of a provider (`Extras.order`), and the order of one family as a value. Out of scope: reading and
writing objects of a cluster (engine.plan.orders, engine.change.ordering).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    Ranks: TypeAlias = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOrder:
    """The priority expander of the Cluster Autoscaler, which orders node groups by patterns of their names.

    Attributes:
        group: Returns the pattern of the node groups of a pool, from the pool's name.
        profile: Command that makes the cloud's own autoscaler use that expander; "" if the autoscaler runs in the
            cluster, whose Deployment has the setting. Words in braces are the cluster's fields.
    """

    group: Callable[[str], str]
    profile: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassOrder:
    """An object of the cluster per family that lists its pools, and which pods select by its name.

    Attributes:
        group, version, kind, plural: Its type.
        key: Label and taint of the pools, and node selector of the pods; the value is its name.
        oldest: First version of the clusters that have it, with its build.
        spec: Returns its spec from the pools' names per rank.
    """

    group: str
    version: str
    kind: str
    plural: str
    key: str
    oldest: str
    spec: Callable[[Sequence[Sequence[str]]], Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class FamilyOrder:
    """The pools of a family, in the order in which they are to be tried.

    Attributes:
        owner: Owner of the pools.
        family: Name of the family.
        ranks: Cloud names of the pools per rank, the best first; two if one of them replaces the other, none for a rank
            that has no pool.
    """

    owner: str
    family: str
    ranks: Ranks
