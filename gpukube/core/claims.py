"""Rules on pools whose GPUs NVIDIA's DRA driver publishes, on any cloud.

In scope: the Kubernetes versions that can serve them, and what NVIDIA says about the driver. Out of scope: which nodes
it can serve (owners, by the providers' facts), rules of one cloud (the providers).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.upgrades import version_numbers
from gpukube.errors import Finding, Where
from gpukube.gpu.claims import ADVISED_KUBERNETES, OLDEST_KUBERNETES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpukube.core.values import ClusterRef, Desired, Target

_OLDEST: Final = ".".join(map(str, OLDEST_KUBERNETES))
_NEEDS_API: Final = "gpukube uses resource.k8s.io/v1, which Kubernetes has from 1.34 on"
_PLUGIN_INSTEAD: Final = "write devicePlugin.owner: auto"


def check_claims(target: Target) -> list[Finding]:
    """Return the findings for a pool of the DRA driver; none for other pools."""
    if target.plugin_owner != "dra":
        return []
    return list(_old_nodes(target))


def check_claims_cluster(cluster: ClusterRef, version: str, pools: Iterable[Desired]) -> list[Finding]:
    """Report a control plane that cannot serve pools of the DRA driver, or that NVIDIA advises against.

    Args:
        cluster: The cluster.
        version: Version of its control plane, "1.34.2" or "1.34"; an unparsable one is ignored.
        pools: Its declared pools.
    """
    names = [pool.target.pool for pool in pools if pool.ownership.advertiser == "dra"]
    found = version_numbers(version)
    if not names or len(found) < len(OLDEST_KUBERNETES):
        return []
    where = Where(cluster.key)
    if found[: len(OLDEST_KUBERNETES)] < OLDEST_KUBERNETES:
        return [
            Finding(
                "dra-kubernetes",
                where,
                f"devicePlugin.owner is dra for {', '.join(names)}, and the cluster runs Kubernetes {version}",
                why=_NEEDS_API,
                fix=f"upgrade the cluster to {_OLDEST} or newer, or {_PLUGIN_INSTEAD}",
            )
        ]
    if len(found) < len(ADVISED_KUBERNETES) or found >= ADVISED_KUBERNETES:
        return []
    return [
        Finding(
            "dra-kubernetes",
            where,
            f"devicePlugin.owner is dra for {', '.join(names)}, and the cluster runs Kubernetes {version}",
            why="NVIDIA advises 1.34.2 or newer (NVIDIA/cloud-native-docs gpu-operator/dra-intro-install; "
            "kubernetes/kubernetes#133920)",
            fix=f"upgrade the cluster to {'.'.join(map(str, ADVISED_KUBERNETES))} or newer",
            severity="warning",
        )
    ]


def advise_claims(cluster: ClusterRef, version: str, pools: Iterable[Desired], source: str) -> list[Finding]:
    """Return the cloud's advice to use the DRA driver, once for a cluster; none if no pool of it could.

    Args:
        cluster: The cluster.
        version: Version of its control plane.
        pools: Pools that will be created.
        source: Where the cloud says so; "" if it does not.
    """
    names = [
        pool.target.pool
        for pool in pools
        if pool.ownership.advertiser in ("chart", "operator")
        and pool.target.plugin_owner == "auto"
        and pool.target.sharing.slicing is None
    ]
    if not source or not names or version_numbers(version)[: len(OLDEST_KUBERNETES)] < OLDEST_KUBERNETES:
        return []
    return [
        Finding(
            "dra-advised",
            Where(cluster.key),
            f"the cloud advises NVIDIA's DRA driver for new pools, and a device plugin serves {', '.join(names)}",
            why=f"{source}; manifests then claim GPUs instead of requesting nvidia.com/gpu (docs/dra.md)",
            fix="write devicePlugin.owner: dra for new pools, or helm or operator to keep the plugin",
            severity="hint",
        )
    ]


def _old_nodes(target: Target) -> Iterator[Finding]:
    """Report nodes that are too old; the kubelet of a node calls the driver, whatever version the cluster has."""
    version = version_numbers(target.kubernetes_version)
    if len(version) < len(OLDEST_KUBERNETES) or version[: len(OLDEST_KUBERNETES)] >= OLDEST_KUBERNETES:
        return
    yield Finding(
        "dra-kubernetes",
        target.locator.at("kubernetesVersion"),
        f"{target.where}: devicePlugin.owner is dra, and the nodes run Kubernetes {target.kubernetes_version}",
        why=_NEEDS_API,
        fix=f"write kubernetesVersion {_OLDEST} or newer, or {_PLUGIN_INSTEAD}",
    )


def quote_maturity(target: Target) -> Finding:
    """Quote NVIDIA, which says two things about whole GPUs and existing MIG devices; once for all pools.

    Args:
        target: The first pool of the DRA driver.
    """
    return Finding(
        "dra-maturity",
        target.locator.at("devicePlugin.owner"),
        "NVIDIA's README of the DRA driver v0.4.1 says that GPU allocation features can be tried out, but \"are not "
        'yet officially supported"',
        why='its GPU Operator documentation lists "Full GPU and existing MIG device allocation" as Generally Available '
        "(kubernetes-sigs/dra-driver-nvidia-gpu README; NVIDIA/cloud-native-docs gpu-operator/dra-intro-install)",
        fix=f"{_PLUGIN_INSTEAD} where you need the older way, or silence this rule",
        severity="hint",
    )
