"""How long AKS takes to change pools.

In scope: the numbers. Out of scope: how a plan uses them (gpukube.engine.plan.durations).

AKS documents only the drain timeout; the other numbers are wide estimates.
"""

from __future__ import annotations

from typing import Final

from gpukube.core.durations import CloudDurations, Span

DURATIONS: Final = CloudDurations(
    create=Span(300, 900, "estimate: AKS documents none"),
    change=Span(30, 120, "estimate: AKS documents none"),
    roll=Span(180, 2400, "estimate; 30 minutes to drain a node (docs: aks/upgrade-aks-node-pools-rolling)"),
    delete=Span(180, 480, "estimate: AKS documents none"),
    gpus=Span(60, 300, "estimate: AKS installs the driver while a node starts, the device plugin follows"),
    reboot=Span(60, 300, "estimate; a MIG node restarts once (Azure/AgentBaker, cse_config.sh)"),
)
