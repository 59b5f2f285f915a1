"""Facts of a cluster that rules may use.

In scope: those facts. Out of scope: rules.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The cluster's facts that rules may use.

    Attributes:
        version: Version of the control plane.
        channel: Release channel; "" for none.
        accelerator_zones: Accelerator type -> zones that have it; a type without an entry is in all zones.
    """

    location: str
    version: str
    channel: str
    accelerator_zones: dict[str, list[str]]
