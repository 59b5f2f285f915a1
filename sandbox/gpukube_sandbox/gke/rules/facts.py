"""What the rules may know of a cluster.

In scope: those facts. Out of scope: rules.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What the rules may know of a cluster.

    Attributes:
        version: Of the control plane.
        channel: Release channel, "" for none.
        accelerator_zones: Accelerator type -> zones that have it; a type that is not named is everywhere.
    """

    location: str
    version: str
    channel: str
    accelerator_zones: dict[str, list[str]]
