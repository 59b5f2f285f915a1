"""Newer versions for the nodes of a live pool: what they run, what is on offer, and what the cloud does to pods.

Values only. A cloud says them by `Extras.upgrades` (pure) and `Cloud.newest` (one look); `engine.plan.upgrades` makes
changes of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Overdue = Literal["fails", "stops", "skips", "forces"]
"""What becomes of an upgrade when pods are still on a node at the end of the drain: it fails and is taken back, stops
half-way, goes on and leaves that node as it is, or goes on and deletes the pods."""


@dataclass(frozen=True, slots=True)
class NodeSystem:
    """What the nodes of a pool are made from.

    Attributes:
        kubernetes: Version of their kubelet as the cloud writes it; "" when it does not say.
        image: Release or node image as the cloud writes it; "" where the version stands for it, or the user made it.
    """

    kubernetes: str
    image: str = ""


@dataclass(frozen=True, slots=True)
class NodeOffer:
    """What the nodes of a pool could be brought to now.

    Attributes:
        kubernetes: The version that they would follow.
        image: The newest release or node image for it; None when there is none to choose, or it is not known.
        unknown: Why the newest is not known; "" when it is.
        fix: What makes it known.
    """

    kubernetes: str
    image: str | None = None
    unknown: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class UpgradeTerms:
    """What a cloud does to the nodes of a pool, and to their pods, when it upgrades them.

    Attributes:
        extra_nodes: Nodes that it adds meanwhile at the most, which need quota and machines; None when not known.
        nodes: How the nodes are replaced, for people.
        drain_minutes: How long a node may take to drain.
        overdue: What becomes of the upgrade after that.
        pods: The last two for people.
        automatic: Who upgrades these nodes without being asked; "" for nobody.
        obstacle: Why this pool cannot be upgraded; "" when it can.
    """

    extra_nodes: int | None
    nodes: str
    drain_minutes: int
    overdue: Overdue
    pods: str
    automatic: str = ""
    obstacle: str = ""


@dataclass(frozen=True, slots=True)
class NodeMarks:
    """How a node that is made from what its pool says is known.

    Attributes:
        kubelet: How the kubelet's version begins, "v1.34.2"; "" when the pool does not say.
        labels: Labels that it has.
    """

    kubelet: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UpgradeOutlook:
    """What an upgrade of one live pool would bring and cost.

    Attributes:
        live: What its nodes run.
        offer: What they could run; of a plan that does not upgrade, as far as it is known without a call.
        terms: What the cloud does meanwhile.
        is_asked: Whether the plan is to bring the offer about: by --upgrade, or because the spec declares it.
        blocked: Pods that no waiting lets go, "namespace/name"; None where budgets were not read.
    """

    live: NodeSystem
    offer: NodeOffer
    terms: UpgradeTerms
    is_asked: bool = False
    blocked: tuple[str, ...] | None = None

    @property
    def is_planned(self) -> bool:
        """Whether the plan brings the offer about."""
        return self.is_asked and self.is_behind and not self.terms.obstacle

    @property
    def is_behind(self) -> bool:
        """Whether there is something newer than what the nodes run, as far as is known."""
        newer = bool(self.offer.image) and self.offer.image != self.live.image
        return newer or is_older(self.live.kubernetes, self.offer.kubernetes)


def is_older(version: str, other: str) -> bool:
    """Return whether a version is before another one, as far as both are written: 1.34 is not before 1.34.2."""
    one, two = version_numbers(version), version_numbers(other)
    shared = min(len(one), len(two))
    return one[:shared] < two[:shared]


def version_numbers(version: str) -> tuple[int, ...]:
    """Read the numbers of a version: 1, 34, 1 and 1829001 of "1.34.1-gke.1829001"."""
    return tuple(int(part) for part in re.findall(r"\d+", version))
