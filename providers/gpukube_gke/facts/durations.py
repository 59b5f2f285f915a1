"""How long GKE takes to change pools.

In scope: the numbers. Out of scope: how a plan uses them (gpukube.engine.plan.durations).

The numbers exclude stockouts, for which GKE keeps trying for 35 to 40 minutes (akka/akka-core#32992).
"""

from __future__ import annotations

from typing import Final

from gpukube.core.durations import CloudDurations, Span

DURATIONS: Final = CloudDurations(
    create=Span(105, 900, "hashicorp/terraform-provider-google#1643: 1:45 to 6:35 min; GPUs take longer, an estimate"),
    change=Span(60, 120, "estimate: GKE documents none"),
    roll=Span(
        180, 4200, "estimate; an hour to drain a node (docs: kubernetes-engine/concepts/node-pool-upgrade-strategies)"
    ),
    delete=Span(60, 600, "estimate; a pool without nodes takes 12 s (hashicorp/terraform-provider-google#1643)"),
    gpus=Span(120, 300, "estimate: GKE installs the driver when a node has joined"),
    reboot=Span(60, 300, "estimate; A100 nodes restart once (docs: kubernetes-engine/how-to/gpus-multi)"),
)
