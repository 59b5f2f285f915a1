"""The options that shape a plan, besides the specs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """The options of a plan: with the same specs and the same live state they give the same plan.

    Attributes:
        clusters, pools: Filters (globs); empty for all.
        skip_cluster: The inside of the clusters is not looked at; such a plan cannot be saved.
        adopt: Pools that nobody owns get our marks.
        adopt_from: Owners whose pools get them too where only the copy of the marks names them.
        adopt_managed: Pools that nobody owns and something else manages get them too.
        prune: Pools that the specs no longer declare are deleted.
        replace: How pools are replaced, "recreate" or "surge"; "" for not at all.
        allow_disruption: Changes in place that restart or evict pods are allowed.
        migrate_release: Our other release may be taken away.
        adopt_release: A release that the user made may be taken over.
        shard: Part of the clusters, "3/16"; "" for all.
        upgrade: Live pools follow the cluster's version and the newest image where the specs name none.
        chart: Where the device-plugin chart comes from; "" for NVIDIA's repository.
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
