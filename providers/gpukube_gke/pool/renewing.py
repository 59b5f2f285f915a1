"""Upgrades of live node pools: what their nodes run, what an upgrade does to pods, and the declared pool after it.

In scope: reading a pool, and adding the newer version to the declared pool. Out of scope: the calls of an upgrade
(`change`).

The node image follows the version; there is nothing else to choose. Sources: google.container.v1
NodePool.UpgradeSettings and NodeDrainConfig; docs: kubernetes-engine/concepts/node-pool-upgrade-strategies (budgets and
grace periods are respected for an hour, then nodes are deleted; blue-green needs twice the machines and quota).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.core.fields import KUBERNETES_VERSION
from gpukube.core.jsontree import at, integer, tree
from gpukube.core.upgrades import NodeMarks, NodeSystem, UpgradeTerms, is_older

if TYPE_CHECKING:
    from gpukube.core.provider_parts import NodeUpgrades
    from gpukube.core.upgrades import NodeOffer
    from gpukube.core.values import ClusterFacts, Desired, Observed

_DRAIN_MINUTES: Final = 60


class GkeUpgrades:
    """Implementation of `gpukube.core.provider_parts.NodeUpgrades`."""

    def system(self, observed: Observed) -> NodeSystem:
        """Return the version; the image follows it."""
        return NodeSystem(str(observed.native.get("version") or ""))

    def terms(self, observed: Observed, facts: ClusterFacts) -> UpgradeTerms:
        """Describe how GKE replaces the nodes, by the pool's strategy."""
        extra, how = _replacement(observed)
        # A protobuf duration such as "1800s".
        limit = re.fullmatch(r"(\d+)(?:\.\d+)?s", str(at(observed.native, "nodeDrainConfig", "pdbTimeoutDuration")))
        minutes = int(limit[1]) // 60 if limit else _DRAIN_MINUTES
        automatic = ""
        if at(observed.native, "management", "autoUpgrade"):
            channel = f", channel {facts.channel}" if facts.channel else ""
            automatic = f"GKE upgrades these nodes automatically (auto-upgrade{channel})"
        return UpgradeTerms(
            extra_nodes=extra,
            nodes=how,
            drain_minutes=minutes,
            overdue="forces",
            pods=f"GKE evicts pods within their budgets for {minutes} min per node, then deletes the rest",
            automatic=automatic,
        )

    def upgraded(self, desired: Desired, observed: Observed, offer: NodeOffer) -> Desired:
        """Declare the control plane's version if the spec names none."""
        live = str(observed.native.get("version") or "")
        if desired.target.kubernetes_version or not is_older(live, offer.kubernetes):
            return desired
        target = replace(desired.target, kubernetes_version=offer.kubernetes)
        return replace(desired, target=target, fields={**desired.fields, KUBERNETES_VERSION: offer.kubernetes})

    def marks(self, observed: Observed) -> NodeMarks:
        """Return the kubelet version, which is the pool's including the build."""
        version = str(observed.native.get("version") or "")
        return NodeMarks(f"v{version}" if version else "")

    def unfinished(self, observed: Observed) -> str:
        """Return "": GKE does not repair failed pools."""
        del observed
        return ""


def _replacement(observed: Observed) -> tuple[int | None, str]:
    settings = tree(observed.native, "upgradeSettings")
    strategy = settings.get("strategy")
    if strategy == "BLUE_GREEN":
        return observed.nodes, "starts a second set of all nodes, then drains the old ones in batches"
    if strategy == "SHORT_LIVED":
        return 0, "replaces a node when its run ends (short-lived)"
    surge, missing = (integer(settings, name) or 0 for name in ("maxSurge", "maxUnavailable"))
    if surge and missing:
        return surge, f"adds up to {surge} nodes and replaces up to {surge + missing} at a time"
    if surge:
        return surge, f"adds {surge} at a time, then drains as many"
    return 0, f"drains {missing or 1} at a time before their replacements start"


UPGRADES: Final[NodeUpgrades] = GkeUpgrades()
