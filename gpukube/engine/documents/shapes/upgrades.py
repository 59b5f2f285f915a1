"""The shape of what is newer for a live pool."""

from __future__ import annotations

from typing import Literal, TypedDict


class Newer(TypedDict):
    """One thing that nodes run, and what they could run."""

    live: str
    """In the cloud's words; empty when it does not say, or has none of its own."""
    available: str | None
    """What an upgrade would bring; null when it is not known, or there is nothing to choose."""


class Upgrades(TypedDict):
    """What an upgrade of the live nodes would bring, and what it does to them and their pods."""

    planned: bool
    """Whether this plan does it (--upgrade); otherwise `image.available` is not read."""
    kubernetes: Newer
    """Version of the nodes; the cluster's, or the spec's."""
    image: Newer
    """Node image or release, which brings the driver where the cloud installs it."""
    unknown: str
    """Why the newest image is not known; empty when it is, or was not asked for."""
    automatic: str
    """Who upgrades these nodes without being asked; empty for nobody."""
    obstacle: str
    """Why the pool cannot be upgraded; empty when it can."""
    extraNodes: int | None
    """Nodes that the cloud adds meanwhile at the most; they need quota and machines. null when not known."""
    nodes: str
    """How the nodes are replaced."""
    drainMinutes: int
    """How long a node may take to drain."""
    overdue: Literal["fails", "stops", "skips", "forces"]
    """If pods are still there then, the upgrade fails and is taken back, stops half-way, leaves that node as it is, or
    deletes the pods."""
    pods: str
    """The same in a sentence."""
    blocked: list[str] | None
    """Pods that their disruption budgets never let go, namespace/name; null where budgets were not read."""
