"""Finds what installs the NVIDIA driver on nodes whose cloud leaves it out for the DRA driver.

In scope: pools that gpukube serves without installing their driver. Out of scope: drivers of node images and of the GPU
Operator, and pools that only users serve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.cluster.state.components import role_of
from gpukube.cluster.state.reach import FEATURE_LABELS, coming_place, may_appear
from gpukube.cluster.state.scheduling import daemon_misfits
from gpukube.core.values import OWNER_LABEL, POOL_LABEL
from gpukube.errors import Finding
from gpukube.gpu.claims import DRIVER
from gpukube.provider import load_provider

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube.cluster.kube.views import WorkloadView
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.core.values import Desired


def check_installers(seen: Snapshot, pools: Iterable[Desired]) -> list[Finding]:
    """Report pools on whose nodes nothing would install the driver: the DRA driver waits for it without an error."""
    return [found for pool in pools if (found := missing_installer(seen, pool))]


def missing_installer(seen: Snapshot, pool: Desired) -> Finding | None:
    """Return the finding for a pool of the DRA driver without a driver; None if it has one, or needs none from there.

    Nodes with published devices have a driver, whoever installed it.
    """
    facts = load_provider(pool.target.cluster.provider).extras.in_cluster
    if pool.ownership.advertiser != "dra" or pool.ownership.driver != "none" or facts is None:
        return None
    marks = (pool.target.owner, pool.target.pool)
    sliced = seen.sliced_by(DRIVER)
    proven = any((n.labels.get(OWNER_LABEL), n.labels.get(POOL_LABEL)) == marks for n in seen.nodes if n.name in sliced)
    if proven or any(_could_install(item, pool) for item in seen.daemonsets):
        return None
    manifest = facts.driver_manifests.get(pool.target.image.upper()) or facts.driver_manifests[""]
    return Finding(
        "driver-missing",
        pool.target.where,
        "nothing in the cluster installs the NVIDIA driver on these nodes, and their cloud does not",
        why="NVIDIA's DRA driver would wait for it in its init container, and publish no GPU",
        fix=f"run kubectl apply --filename {manifest}",
        severity="error" if pool.target.driver_owner == "auto" else "warning",
    )


def _could_install(item: WorkloadView, pool: Desired) -> bool:
    if role_of(item) not in ("driver", "cloud-driver"):
        return False
    labels = {**FEATURE_LABELS, **coming_place(pool).labels}
    return not daemon_misfits(item.placement, labels, pool.effective_taints, unknown=may_appear)
