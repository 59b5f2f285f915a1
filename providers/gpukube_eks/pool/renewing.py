"""Upgrades of live node groups: what their nodes run, an update's effect on pods, and the upgraded declaration.

In scope: reading a group, and setting a newer version in the declared pool. Out of scope: an update's calls
(`change`), reading the newest release (`live.region`).

Sources: docs: eks/managed-node-update-behavior (the phases, twice the zones, 15 minutes, PodEvictionFailure), docs:
eks/capacity-blocks-mng, docs: eks/launch-templates-custom-ami, botocore eks UpdateNodegroupVersionRequest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.core.fields import KUBERNETES_VERSION, ZONES, FieldPath
from gpukube.core.jsontree import at, integer, tree
from gpukube.core.upgrades import NodeMarks, NodeSystem, UpgradeTerms, version_numbers
from gpukube_eks.facts.images import CUSTOM

if TYPE_CHECKING:
    from gpukube.core.provider_parts import NodeUpgrades
    from gpukube.core.upgrades import NodeOffer
    from gpukube.core.values import ClusterFacts, Desired, Observed

RELEASE: Final = FieldPath("eks", "releaseVersion")
_DRAIN_MINUTES: Final = 15
_DEFAULT_ZONES: Final = 3
"""Assumed zones of a group whose subnets were not read: as many as most regions have."""
_AL2023: Final = "/aws/service/eks/optimized-ami/{}/amazon-linux-2023/{}/nvidia/recommended/release_version"
_BOTTLEROCKET: Final = "/aws/service/bottlerocket/aws-k8s-{}-nvidia/{}/latest/image_version"
_PARAMETERS: Final = {
    "AL2023_x86_64_NVIDIA": (_AL2023, "x86_64"),
    "AL2023_ARM_64_NVIDIA": (_AL2023, "arm64"),
    "BOTTLEROCKET_x86_64_NVIDIA": (_BOTTLEROCKET, "x86_64"),
    "BOTTLEROCKET_ARM_64_NVIDIA": (_BOTTLEROCKET, "arm64"),
}
"""amiType -> format of the Systems Manager public parameter with its newest release, and its CPU architecture
(terraform-aws-modules/terraform-aws-eks, modules/eks-managed-node-group; eksctl-io/eksctl, pkg/ami)."""


class EksUpgrades:
    """Implementation of `gpukube.core.provider_parts.NodeUpgrades`."""

    def system(self, observed: Observed) -> NodeSystem:
        """Return version and release; for a custom AMI, EKS knows neither."""
        custom = is_custom(observed)
        release = "" if custom else str(observed.native.get("releaseVersion") or "")
        return NodeSystem(str(observed.native.get("version") or ""), release)

    def terms(self, observed: Observed, facts: ClusterFacts) -> UpgradeTerms:
        """Describe how EKS replaces the nodes: by its update strategy, draining each for at most 15 minutes."""
        del facts
        config = tree(observed.native, "updateConfig")
        share, count = integer(config, "maxUnavailablePercentage"), integer(config, "maxUnavailable") or 1
        nodes = observed.nodes or 0
        at_once = max(1, nodes * share // 100) if share else count
        extra, how = 0, f"stops {at_once} at a time before it starts their replacements"
        if config.get("updateStrategy") != "MINIMAL":
            zones = observed.fields.get(ZONES)
            extra = max(2 * (len(zones) if isinstance(zones, tuple) else _DEFAULT_ZONES), at_once)
            how = f"adds up to {extra} nodes first, then drains {at_once} at a time"
        return UpgradeTerms(
            extra_nodes=extra,
            nodes=how,
            drain_minutes=_DRAIN_MINUTES,
            overdue="fails",
            pods=f"EKS evicts pods within their budgets; a node that is not empty after {_DRAIN_MINUTES} min fails the "
            "update (PodEvictionFailure), and the node group keeps its old version",
            obstacle=_obstacle(observed),
        )

    def upgraded(self, desired: Desired, observed: Observed, offer: NodeOffer) -> Desired:
        """Declare the version and its newest release if the spec names neither."""
        target, fields = desired.target, dict(desired.fields)
        if not target.kubernetes_version and offer.kubernetes:
            target = replace(target, kubernetes_version=offer.kubernetes)
            fields[KUBERNETES_VERSION] = offer.kubernetes
        live = str(observed.native.get("releaseVersion") or "")
        if offer.image and RELEASE not in fields and _is_newer(offer.image, live):
            target = replace(target, native={**target.native, "releaseVersion": offer.image})
            fields[RELEASE] = offer.image
        return replace(desired, target=target, fields=fields)

    def marks(self, observed: Observed) -> NodeMarks:
        """Return the new nodes' kubelet version: AL2023 releases start with it; for others only the minor is known."""
        if is_custom(observed):
            return NodeMarks()
        version, release = (str(observed.native.get(name) or "") for name in ("version", "releaseVersion"))
        patch = release.partition("-")[0]
        return NodeMarks(f"v{patch}" if patch.startswith(f"{version}.") else f"v{version}.")

    def unfinished(self, observed: Observed) -> str:
        """Return "": EKS rolls a failed update back, so none is left unfinished."""
        del observed
        return ""


def release_parameter(observed: Observed, kubernetes: str) -> str:
    """Return the name of the parameter with the newest release of this group's image; "" if there is none."""
    form, arch = _PARAMETERS.get(str(observed.native.get("amiType")), ("", ""))
    return form.format(kubernetes, arch)


def is_custom(observed: Observed) -> bool:
    """Return whether the nodes start from a custom image."""
    return observed.native.get("amiType") == CUSTOM


def _obstacle(observed: Observed) -> str:
    if is_custom(observed):
        return "its launch template names a custom AMI, with which EKS accepts neither a version nor a release"
    size = at(observed.native, "scalingConfig", "desiredSize")
    if observed.native.get("capacityType") == "CAPACITY_BLOCK" and size:
        return f"EKS does not replace nodes of a Capacity Block in use; its size must be 0, but is {size}"
    return ""


def _is_newer(release: str, live: str) -> bool:
    """Compare releases by their numbers; the commit at the end of Bottlerocket's has no order."""
    if release == live:
        return False
    one, two = (version_numbers(text.partition("-")[0]) for text in (release, live))
    dates = [text.rpartition("-")[2] for text in (release, live)]
    if one != two or not all(date.isdigit() and len(date) == len("20260714") for date in dates):
        return one > two
    return dates[0] > dates[1]


UPGRADES: Final[NodeUpgrades] = EksUpgrades()
