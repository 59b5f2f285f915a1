"""Upgrades for the nodes of a live pool: current versions, available versions, and the effect on pods.

Only values. They come from a cloud's `Extras.upgrades` (pure) and `Cloud.newest` (one read); `engine.plan.upgrades`
turns them into changes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Overdue = Literal["fails", "stops", "skips", "forces"]
"""What happens to an upgrade if pods are still on a node at the end of the drain: it fails and is rolled back, stops
halfway, continues and skips that node, or continues and deletes the pods."""


@dataclass(frozen=True, slots=True)
class NodeSystem:
    """Versions that the nodes of a pool are created from.

    Attributes:
        kubernetes: Kubelet version, as the cloud writes it; "" if unknown.
        image: Release or node image, as the cloud writes it; "" if the version implies it, or for a custom image.
    """

    kubernetes: str
    image: str = ""


@dataclass(frozen=True, slots=True)
class NodeOffer:
    """Versions to which the nodes of a pool can be upgraded now.

    Attributes:
        kubernetes: The Kubernetes version.
        image: The newest release or node image for it; None if there is no choice, or if it is unknown.
        unknown: Why the newest is unknown; "" if it is known.
        fix: How to make it known.
    """

    kubernetes: str
    image: str | None = None
    unknown: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class UpgradeTerms:
    """What a cloud does to the nodes of a pool, and to their pods, when it upgrades them.

    Attributes:
        extra_nodes: Maximum number of temporary nodes, which need quota and capacity; None if unknown.
        nodes: Human-readable description of how nodes are replaced.
        drain_minutes: Time limit for draining a node.
        overdue: What happens to the upgrade after that.
        pods: Human-readable description of these two.
        automatic: What upgrades these nodes automatically; "" for nothing.
        obstacle: Why this pool cannot be upgraded; "" if it can.
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
    """How to recognize nodes with the pool's current configuration.

    Attributes:
        kubelet: Prefix of the kubelet version, "v1.34.2"; "" if the pool does not set one.
        labels: Labels of such nodes.
    """

    kubelet: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UpgradeOutlook:
    """Result and cost of an upgrade of one live pool.

    Attributes:
        live: Current versions of its nodes.
        offer: Available versions; if the plan does not upgrade, only what is known without a call.
        terms: What the cloud does during the upgrade.
        is_asked: Whether the upgrade is requested, by --upgrade or by the spec.
        blocked: Pods that block the drain indefinitely, "namespace/name"; None if budgets were not read.
    """

    live: NodeSystem
    offer: NodeOffer
    terms: UpgradeTerms
    is_asked: bool = False
    blocked: tuple[str, ...] | None = None

    @property
    def is_planned(self) -> bool:
        """Whether the plan upgrades to the offer."""
        return self.is_asked and self.is_behind and not self.terms.obstacle

    @property
    def is_behind(self) -> bool:
        """Whether a newer version than that of the nodes is known."""
        newer = bool(self.offer.image) and self.offer.image != self.live.image
        return newer or is_older(self.live.kubernetes, self.offer.kubernetes)


def is_older(version: str, other: str) -> bool:
    """Return whether a version is older, comparing only the parts of both: 1.34 is not older than 1.34.2."""
    one, two = version_numbers(version), version_numbers(other)
    shared = min(len(one), len(two))
    return one[:shared] < two[:shared]


def version_numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version: 1, 34, 1 and 1829001 of "1.34.1-gke.1829001"."""
    return tuple(int(part) for part in re.findall(r"\d+", version))
