"""Quotas of Compute Engine: how many GPUs a project may use in a region, and how many it uses.

In scope: limits, sums, the check, and the responses of the three APIs for quotas. Out of scope: HTTP
(`transports.door`), when machines come up (`lifecycle`).

Sources: docs: compute/docs/reference/rest/v1/regions/get and projects/get (quotas of older GPUs, and of preemptible
H100), docs: docs/quotas/reference/rest/v1/projects.locations.services.quotaInfos (families from H100 on),
monitoring/api/ref_v3/rest/v3/projects.timeSeries/list (their usage; name of the metric by analogy, unconfirmed).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpukube_sandbox.clock import timestamp
from gpukube_sandbox.gke.accelerators import ACCELERATORS
from gpukube_sandbox.gke.failures import Failure, late_quota, over_quota
from gpukube_sandbox.gke.market import INFO, PROJECT, REGION, REGION_LIST, REGIONS, SERIES, listed
from gpukube_sandbox.gke.pools import accelerator_of, count_per_zone
from gpukube_sandbox.gke.wire.answers import GoogleError, Json, invalid
from gpukube_sandbox.gke.wire.enums import PoolStatus
from gpukube_sandbox.gke.wire.names import REGIONS as PLACES
from gpukube_sandbox.gke.wire.names import region_of, zones_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from google.cloud import container_v1 as wire

    from gpukube_sandbox.gke.clusters import Cluster
    from gpukube_sandbox.gke.pools import Pool
    from gpukube_sandbox.gke.wire.names import Place

DEFAULT = 100_000
"""Default of every quota: more than any test needs. Real projects often start with 0."""
ALL_REGIONS = "GPUS_ALL_REGIONS"
_BY_FAMILY = "GPUS_PER_GPU_FAMILY"
_OLDER = tuple(f"NVIDIA_{model}_GPUS" for model in ("K80", "P4", "P100", "V100", "T4", "L4", "A100", "A100_80GB"))
_LISTED = (*_OLDER, *(f"PREEMPTIBLE_{name}" for name in (*_OLDER, "NVIDIA_H100_GPUS", "NVIDIA_RTX_PRO_6000_GPUS")))
"""Metrics that a region lists."""
_FAMILIES = tuple(
    kind.quota.removesuffix("_GPUS") for kind in ACCELERATORS.values() if kind.quota not in _OLDER
)  # fmt: skip
NAMES = (ALL_REGIONS, *_LISTED, *(f"{_BY_FAMILY}:{family}" for family in _FAMILIES))
"""Quotas that can be set."""
_IN_WORK = frozenset({PoolStatus.PROVISIONING, PoolStatus.RECONCILING})
_METRIC = 'metric.type="compute.googleapis.com/quota/gpus_per_gpu_family/usage"'


@dataclass(slots=True)
class Quotas:
    """The quotas of all projects.

    Attributes:
        clusters: The service's clusters, whose machines count.
        limits: (Project, region, name) -> GPUs, for quotas that were set; the region is "" for all regions.
    """

    clusters: dict[str, Cluster]
    limits: dict[tuple[str, str, str], int] = field(default_factory=dict)

    def set(self, project: str, location: str, name: str, limit: int) -> bool:
        """Set a limit; return whether it changed."""
        key = (project, "" if name == ALL_REGIONS else region_of(location), name)
        is_new = self.limits.get(key) != limit
        self.limits[key] = limit
        return is_new

    def check(self, place: Place, pool: Pool | None, after: wire.NodePool) -> None:
        """Reject a size that exceeds a quota.

        Raises:
            GoogleError: 403.
        """
        have = len(pool.all_nodes()) if pool else 0
        for name, limit, used, needed in self._exceeded(place, after, sum(count_per_zone(after)) - have):
            raise over_quota(place, name, limit, used, needed)

    def late(self, place: Place, after: wire.NodePool, more: int) -> Failure | None:
        """Return the failure of an operation that needs additional machines; None if they fit."""
        found = next(self._exceeded(place, after, more), None)
        return Failure("GCE_QUOTA_EXCEEDED", late_quota(place, found[0])) if found else None

    def _exceeded(self, place: Place, after: wire.NodePool, more: int) -> Iterator[tuple[str, int, int, int]]:
        """Yield the exceeded quotas: name, limit, used, needed."""
        accelerator = accelerator_of(after)
        if accelerator is None or more <= 0:
            return
        needed = more * accelerator.accelerator_count
        for name in counted(after):
            limit, used = self._limit(place.project, place.location, name), self._used(place, name)
            if used + needed > limit:
                yield name.partition(":")[0], limit, used, needed

    def _limit(self, project: str, location: str, name: str) -> int:
        region = "" if name == ALL_REGIONS else region_of(location)
        return self.limits.get((project, region, name), DEFAULT)

    def _used(self, place: Place, name: str) -> int:
        return self._used_at(place.project, region_of(place.location), name)

    def _used_at(self, project: str, region: str, name: str) -> int:
        return sum(
            _gpus(pool)
            for cluster in self.clusters.values()
            if cluster.place.project == project and (name == ALL_REGIONS or region_of(cluster.place.location) == region)
            for pool in cluster.pools.values()
            if name in counted(pool.wire)
        )

    # Responses of the APIs

    def answer(self, path: str, query: Mapping[str, str], now: float) -> Json:
        """Return the response to a GET request.

        Raises:
            GoogleError: An unsupported filter.
        """
        if found := REGION.fullmatch(path):
            if found[2] not in PLACES:  # GoogleCloudPlatform/terraformer#1928
                raise invalid(f"Invalid value for field 'region': '{found[2]}'. Unknown region.")
            return self._region(found[1], found[2])
        if found := REGION_LIST.fullmatch(path):
            named = {*REGIONS, *self._regions(found[1])}
            return listed([self._region(found[1], region) for region in sorted(named)], query, "regions")
        if found := PROJECT.fullmatch(path):
            return {"kind": "compute#project", "name": found[1], "quotas": [self._row(found[1], "", ALL_REGIONS)]}
        if found := INFO.fullmatch(path):
            return self._info(path, found[1])
        if found := SERIES.fullmatch(path):
            return self._series(found[1], query.get("filter", ""), now)
        raise GoogleError("NOT_FOUND", f"The resource '{path}' was not found")

    def _regions(self, project: str) -> frozenset[str]:
        """Return the regions in which a project has clusters or quotas."""
        of_clusters = (region_of(c.place.location) for c in self.clusters.values() if c.place.project == project)
        return frozenset(of_clusters) | {region for owner, region, _ in self.limits if owner == project and region}

    def _region(self, project: str, region: str) -> Json:
        base = f"https://www.googleapis.com/compute/v1/projects/{project}"
        return {
            "kind": "compute#region",
            "name": region,
            "status": "UP",
            "quotas": [self._row(project, region, name) for name in _LISTED],
            "zones": [f"{base}/zones/{zone}" for zone in zones_of(region)],
            "selfLink": f"{base}/regions/{region}",
        }

    def _row(self, project: str, region: str, name: str) -> Json:
        limit, used = self._limit(project, region, name), self._used_at(project, region, name)
        return {"metric": name, "limit": float(limit), "usage": float(used)}

    def _info(self, path: str, project: str) -> Json:
        """Return limits by region and family, most specific first; by default one for every region and family."""
        rows: list[Json] = [
            {
                "dimensions": {"region": region, "gpu_family": name.partition(":")[2]},
                "details": {"value": str(limit)},
                "applicableLocations": [region],
            }
            for (owner, region, name), limit in self.limits.items()
            if owner == project and name.startswith(_BY_FAMILY)
        ]
        rows.append({"details": {"value": str(DEFAULT)}, "applicableLocations": ["us-central1", "europe-west4"]})
        return {
            "name": path.removeprefix("/v1/"),
            "quotaId": path.rpartition("/")[2],
            "metric": "compute.googleapis.com/gpus_per_gpu_family",
            "service": "compute.googleapis.com",
            "dimensions": ["gpu_family", "region"],
            "dimensionsInfos": rows,
        }

    def _series(self, project: str, filter_text: str, now: float) -> Json:
        """Return the usage of the families in use; one that was never used has no series."""
        if _METRIC not in filter_text.replace(" ", ""):
            raise GoogleError(
                "INVALID_ARGUMENT", f"The gpukube sandbox has no time series for the filter {filter_text!r}"
            )
        regions = self._regions(project)
        found: list[Json] = []
        for region in sorted(regions):
            for family in _FAMILIES:
                used = self._used_at(project, region, f"{_BY_FAMILY}:{family}")
                point: Json = {"interval": {"endTime": timestamp(now)}, "value": {"int64Value": str(used)}}
                labels: Json = {"gpu_family": family, "limit_name": "GPUS-PER-GPU-FAMILY-per-project-region"}
                series: Json = {
                    "metric": {"type": "compute.googleapis.com/quota/gpus_per_gpu_family/usage", "labels": labels},
                    "resource": {
                        "type": "compute.googleapis.com/Location",
                        "labels": {"resource_container": project, "location": region},
                    },
                    "points": [point],
                }
                found += [series] if used else []
        return {"timeSeries": found}


def counted(pool: wire.NodePool) -> tuple[str, ...]:
    """Return the quotas that a pool's GPUs count against; those of a flex-start pool are preemptible quotas."""
    accelerator = accelerator_of(pool)
    if accelerator is None:
        return ()
    metric = ACCELERATORS[accelerator.accelerator_type].quota
    if pool.config.spot or pool.config.preemptible or pool.config.flex_start or pool.queued_provisioning.enabled:
        return (f"PREEMPTIBLE_{metric}",)
    own = metric if metric in _OLDER else f"{_BY_FAMILY}:{metric.removesuffix('_GPUS')}"
    return own, ALL_REGIONS


def _gpus(pool: Pool) -> int:
    """Count the GPUs of a pool, including those of machines that are still coming up."""
    accelerator = accelerator_of(pool.wire)
    coming = sum(count_per_zone(pool.wire)) if pool.wire.status in _IN_WORK and not pool.moved else 0
    return max(len(pool.all_nodes()), coming) * (accelerator.accelerator_count if accelerator else 0)
