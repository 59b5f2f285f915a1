"""How long EKS takes to change pools.

In scope: the numbers. Out of scope: how a plan uses them (gpukube.engine.plan.durations).

Each source names what AWS documents; the rest are wide estimates.
"""

from __future__ import annotations

from typing import Final

from gpukube.core.durations import CloudDurations, Span

DURATIONS: Final = CloudDurations(
    create=Span(180, 600, "estimate; nodes have 15 minutes to join (docs: eks/troubleshooting)"),
    change=Span(30, 120, "estimate: AWS documents none"),
    roll=Span(180, 1500, "estimate; 15 minutes to drain a node (docs: eks/managed-node-update-behavior)"),
    delete=Span(120, 900, "estimate (docs: eks/delete-managed-node-group: a few minutes)"),
    gpus=Span(60, 300, "estimate: the image has the driver, the device plugin starts"),
)
