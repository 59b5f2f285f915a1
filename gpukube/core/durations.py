"""How long a cloud takes for the changes of a plan, as data.

A provider has one `CloudDurations` as its member `durations`. In scope: these values. Out of scope: any cloud, and
adding them up (gpukube.engine.plan.durations).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """Minimum and maximum duration of one step if nothing goes wrong; wide if undocumented.

    Attributes:
        least_s, most_s: Seconds.
        source: Public source, or that it is an estimate.
    """

    least_s: float
    most_s: float
    source: str


@dataclass(frozen=True, slots=True)
class CloudDurations:
    """Durations on one cloud.

    Attributes:
        create: Until a new pool, or more nodes of one, are ready.
        change: A call that changes a pool without new nodes.
        roll: Draining and replacing one node; the cloud chooses how many at a time.
        delete: Until a pool is deleted.
        gpus: Until a node that joined advertises its GPUs: driver and device plugin.
        reboot: Added to `gpus` if nodes restart once to create MIG instances; None if they do not.
    """

    create: Span
    change: Span
    roll: Span
    delete: Span
    gpus: Span
    reboot: Span | None = None
