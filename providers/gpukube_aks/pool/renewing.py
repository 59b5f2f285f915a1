"""Upgrades of live agent pools: what their nodes run, what an upgrade does to pods, and the desired newer version.

In scope: reading a pool, and adding a newer version to the desired pool. Out of scope: the calls of an upgrade
(`change`), reading the newest node image (`live.client`).

Sources: SDK, AgentPoolUpgradeSettings; docs: aks/upgrade-aks-node-pools-rolling, aks/node-image-upgrade, aks/
spot-node-pool (no surge), aks/auto-upgrade-cluster.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.core.fields import KUBERNETES_VERSION, FieldPath
from gpukube.core.jsontree import integer, tree
from gpukube.core.upgrades import NodeMarks, NodeSystem, UpgradeTerms, is_older, version_numbers

if TYPE_CHECKING:
    from gpukube.core.provider_parts import NodeUpgrades
    from gpukube.core.upgrades import NodeOffer
    from gpukube.core.values import ClusterFacts, Desired, Observed

NODE_IMAGE: Final = FieldPath("nodeImage")
"""Field of the node image, which no spec sets: AKS only upgrades to the newest image, by a separate call."""
UPGRADE_IMAGE: Final = "agent_pools.begin_upgrade_node_image_version"
_IMAGE_LABEL: Final = "kubernetes.azure.com/node-image-version"
_OF_UPGRADES: Final = re.compile("upgrade|drain", re.IGNORECASE)
"""Words in upgrade errors, "UpgradeFailed: Drain node ... failed" (Azure/AKS#4783); the codes are not documented."""
_SURGE, _MISSING, _MINUTES = "10%", "0", 30
"""Defaults of upgradeSettings (SDK, AgentPoolUpgradeSettings)."""
_AMOUNT = re.compile(r"[0-9]{1,4}%?")


class AksUpgrades:
    """Implementation of `gpukube.core.provider_parts.NodeUpgrades`."""

    def system(self, observed: Observed) -> NodeSystem:
        """Return version and node image."""
        return NodeSystem(_kubernetes(observed), _image(observed))

    def terms(self, observed: Observed, facts: ClusterFacts) -> UpgradeTerms:
        """Describe how AKS replaces the nodes, by the pool's upgradeSettings."""
        properties = tree(observed.native, "properties")
        settings, count = tree(properties, "upgradeSettings"), integer(properties, "count") or 0
        surge = _nodes(settings.get("maxSurge"), _SURGE, count)
        if properties.get("scaleSetPriority") == "Spot":
            surge = 0
        missing = _nodes(settings.get("maxUnavailable"), _MISSING, count)
        how = f"drains {missing or 1} at a time before their replacements start"
        if surge:
            how = f"adds {surge} at a time before it drains as many"
        minutes = integer(settings, "drainTimeoutInMinutes") or _MINUTES
        skips = settings.get("undrainableNodeBehavior") == "Cordon"
        end = (
            "leaves it cordoned next to its replacement, continues, and fails in the end" if skips else "fails halfway"
        )
        automatic = f"AKS upgrades these nodes automatically ({facts.channel})" if facts.channel else ""
        return UpgradeTerms(
            extra_nodes=surge,
            nodes=how,
            drain_minutes=minutes,
            overdue="skips" if skips else "stops",
            pods=f"AKS evicts pods within their budgets; if a node is not empty after {minutes} min, AKS {end}",
            automatic=automatic,
        )

    def upgraded(self, desired: Desired, observed: Observed, offer: NodeOffer) -> Desired:
        """Add the version of the control plane if the spec sets none, else the newest node image.

        A newer version includes its newest image, which may differ from the newest image of the previous version.
        """
        live, target = _kubernetes(observed), desired.target
        if not target.kubernetes_version and is_older(live, offer.kubernetes):
            target = replace(target, kubernetes_version=offer.kubernetes)
            fields = {**desired.fields, KUBERNETES_VERSION: offer.kubernetes}
            return replace(desired, target=target, fields=fields)
        if target.kubernetes_version and is_older(live, target.kubernetes_version):
            return desired
        if offer.image is None or not _is_newer(offer.image, _image(observed)):
            return desired
        return replace(desired, fields={**desired.fields, NODE_IMAGE: offer.image})

    def marks(self, observed: Observed) -> NodeMarks:
        """Return how to recognize upgraded nodes: the kubelet's version, and the label with the node image."""
        version, image = _kubernetes(observed), _image(observed)
        return NodeMarks(f"v{version}" if version else "", {_IMAGE_LABEL: image} if image else {})

    def unfinished(self, observed: Observed) -> str:
        """Return why an upgrade is unfinished: the pool's two versions differ, or its last error is from an upgrade."""
        properties = tree(observed.native, "properties")
        runs, desired = (str(properties.get(f"{key}rchestratorVersion") or "") for key in ("currentO", "o"))
        if runs and desired and not f"{runs}.".startswith(f"{desired}."):
            return f"the pool runs {runs} and should run {desired}"
        return f"its last error: {observed.failure}" if _OF_UPGRADES.search(observed.failure) else ""


def _kubernetes(observed: Observed) -> str:
    properties = tree(observed.native, "properties")
    return str(properties.get("currentOrchestratorVersion") or properties.get("orchestratorVersion") or "")


def _image(observed: Observed) -> str:
    return str(tree(observed.native, "properties").get("nodeImageVersion") or "")


def _is_newer(image: str, live: str) -> bool:
    """Compare images by the date at their end, "202607.31.1"; an image of another family counts as newer."""
    family, _, date = image.rpartition("-")
    live_family, _, live_date = live.rpartition("-")
    return image != live and (family != live_family or version_numbers(date) > version_numbers(live_date))


def _nodes(amount: object, default: str, count: int) -> int:
    """Parse "1" or "33%", else the default; round shares up (docs: aks/upgrade-aks-node-pools-rolling)."""
    text = str(amount) if _AMOUNT.fullmatch(str(amount)) else default
    return -(-count * int(text[:-1]) // 100) if text.endswith("%") else int(text)


UPGRADES: Final[NodeUpgrades] = AksUpgrades()
