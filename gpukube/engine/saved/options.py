"""The options that shape a plan, in addition to the specs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """Options of a plan: the same options, specs, and live state result in the same plan.

    Attributes:
        clusters, pools: Filters (globs); empty for all.
        skip_cluster: Do not read the Kubernetes API of the clusters; such a plan cannot be saved.
        adopt: Add gpukube's labels to pools without an owner.
        adopt_from: Owners whose pools are also adopted if only the copy of the labels names them.
        adopt_managed: Also adopt pools without an owner that another tool manages.
        prune: Delete pools that the specs no longer declare.
        replace: How to replace pools, "recreate" or "surge"; "" for not at all.
        allow_disruption: Allow changes in place that restart or evict pods.
        migrate_release: gpukube's other release may be removed.
        adopt_release: A release installed by the user may be adopted.
        accept_loss: Members of live pools that a replacement may lose.
        shard: Part of the clusters, "3/16"; "" for all.
        upgrade: Live pools follow the cluster's version and the newest image if the specs set none.
        chart: Source of the device-plugin chart; "" for NVIDIA's repository.
    """

    clusters: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    skip_cluster: bool = False
    adopt: bool = False
    prune: bool = False
    replace: str = ""
    allow_disruption: bool = False
    migrate_release: bool = False
    adopt_release: bool = False
    chart: str = ""
    adopt_from: tuple[str, ...] = ()
    adopt_managed: bool = False
    upgrade: bool = False
    shard: str = ""
    accept_loss: tuple[str, ...] = ()
