"""How long a cloud takes for what a plan would do, as data.

A provider gives one `CloudDurations` as its member `durations`. In scope: these values. Out of scope: any
cloud, and the sums (gpukube.engine.plan.durations).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """How long one thing takes, at least and at most when nothing goes wrong; a wide one where nobody documents it.

    Attributes:
        least_s, most_s: Seconds.
        source: Public source, or that it is an estimate.
    """

    least_s: float
    most_s: float
    source: str


@dataclass(frozen=True, slots=True)
class CloudDurations:
    """The terms of one cloud.

    Attributes:
        create: Until a new pool, or more nodes of one, are there.
        change: A call that changes a pool without new nodes.
        roll: One node that is replaced, drained before it goes; how many at a time is the cloud's choice.
        delete: Until a pool is gone.
        gpus: Until a node that joined shows its GPUs: driver and device plugin.
        reboot: More of that where nodes restart once to cut their GPUs; None where they do not.
    """

    create: Span
    change: Span
    roll: Span
    delete: Span
    gpus: Span
    reboot: Span | None = None
