"""Members of a live pool that the cluster gives to every pool made without them, so nobody chose them for this one.

In scope: comparing a pool with its cluster. Out of scope: defaults of GKE itself (`members`).

Sources: google.container.v1 NodeNetworkConfig (pod_range, enable_private_nodes, subnetwork) and NodeConfigDefaults;
docs: kubernetes-engine/how-to/workload-identity (new pools of a cluster with it use GKE_METADATA).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import at, leaves, tree

if TYPE_CHECKING:
    from collections.abc import Mapping

_FROM: Final[Mapping[str, tuple[str, ...]]] = {
    "networkConfig.podRange": ("ipAllocationPolicy", "clusterSecondaryRangeName"),
    "networkConfig.podIpv4CidrBlock": ("ipAllocationPolicy", "clusterIpv4CidrBlock"),
    "networkConfig.subnetwork": ("networkConfig", "subnetwork"),
    "networkConfig.enablePrivateNodes": ("networkConfig", "defaultEnablePrivateNodes"),
}
"""Member of a pool -> path of the cluster's value."""
_KUBELET: Final = "nodeKubeletConfig"


def inherited_members(pool: Mapping[str, object], cluster: Mapping[str, object]) -> frozenset[str]:
    """Return the paths of the pool's members that have the cluster's value.

    Args:
        pool: The pool in the JSON form of google.container.v1.
        cluster: Its cluster; empty if it was not read.
    """
    expected = {name: at(cluster, *path) for name, path in _FROM.items()}
    if at(cluster, "workloadIdentityConfig", "workloadPool"):
        expected["config.workloadMetadataConfig.mode"] = "GKE_METADATA"
    for path, value in leaves(tree(cluster, "nodePoolDefaults", "nodeConfigDefaults")):
        steps = ("kubeletConfig", *path[1:]) if path[0] == _KUBELET else path
        expected[".".join(("config", *steps))] = value
    return frozenset(
        name for name, value in expected.items() if value is not None and at(pool, *name.split(".")) == value
    )
