"""How long AKS takes for changes of pools.

In scope: the numbers. Out of scope: what a plan makes of them (gpukube.engine.plan.durations).

AKS documents none of them but the limits of drains; they are estimates, and wide.
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
