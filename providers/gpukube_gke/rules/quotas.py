"""Quotas of Compute Engine that limit GPUs, and how many nodes GKE adds while it replaces a pool's nodes.

In scope: what each quota counts, and parsing the responses. Out of scope: the calls (`live.quotas`).

Compute Engine counts GPUs. Older models have a quota of their own in the region, and another for spot and flex-start
machines (docs: compute/docs/gpus, compute/resource-usage); models from H100 on are in Cloud Quotas, by family
(docs: docs/quotas). A missing metric does not mean that there is no limit: new projects have no metrics of newer GPUs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.core.jsontree import at, decimal, texts, trees
from gpukube.core.quotas import CloudQuota, CloudQuotas, QuotaDraw, QuotaReading
from gpukube_gke.facts.places import region_of
from gpukube_gke.pool.updates import find_row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.values import Capacity, Change, ClusterRef, Desired, Observed
    from gpukube.gpu.catalog import Machine

_MODELS: Final = {
    "nvidia-tesla-k80": "NVIDIA_K80", "nvidia-tesla-p4": "NVIDIA_P4", "nvidia-tesla-p100": "NVIDIA_P100",
    "nvidia-tesla-v100": "NVIDIA_V100", "nvidia-tesla-t4": "NVIDIA_T4", "nvidia-l4": "NVIDIA_L4",
    "nvidia-tesla-a100": "NVIDIA_A100", "nvidia-a100-80gb": "NVIDIA_A100_80GB",
}  # fmt: skip
_FAMILIES: Final = {
    "nvidia-h100-80gb": "NVIDIA_H100", "nvidia-h100-mega-80gb": "NVIDIA_H100_MEGA", "nvidia-h200-141gb": "NVIDIA_H200",
    "nvidia-b200": "NVIDIA_B200", "nvidia-rtx-pro-6000": "NVIDIA_RTX_PRO_6000",
}  # fmt: skip
"""Models from H100 on -> their gpu_family; the values of GB200 and GB300 are not documented."""
ALL_REGIONS: Final = "GPUS_ALL_REGIONS"
BY_FAMILY: Final = "GPUS_PER_GPU_FAMILY:"
FAMILY_METRIC: Final = "compute.googleapis.com/quota/gpus_per_gpu_family/usage"
"""Metric by analogy with other quotas (docs: monitoring/api/metrics_gcp_c); if it has no data, usage is unknown."""
_REGIONAL: Final = "docs: compute/docs/gpus/gpu-quota"
_CONSOLE: Final = "https://console.cloud.google.com/iam-admin/quotas?project={project} ({name} to {{value}})"


def _draws(cluster: ClusterRef, location: str, machine: Machine, capacity: Capacity) -> tuple[QuotaDraw, ...]:
    project, region, kind = cluster.identity["project"], region_of(location), machine.accelerator
    model, family = _MODELS.get(kind, ""), _FAMILIES.get(kind, "")
    form = capacity.reservation.form if capacity.reservation else ""
    unread = "" if model or family else f"Google documents no quota of {kind}"
    if form == "reservation":
        unread = "whether nodes of a reservation need GPU quota is not documented"
    if capacity.type == "spot" or form in ("flexStart", "queued", "flexStartQueued"):
        names = [(f"PREEMPTIBLE_{model or family or kind}_GPUS", region)]
    else:
        own = f"{model}_GPUS" if model else f"{BY_FAMILY}{family or kind}"
        names = [(own, region), (ALL_REGIONS, "global")]
    return tuple(
        QuotaDraw(
            CloudQuota(
                provider="gke",
                name=name,
                title=_title(name),
                unit="GPUs",
                place=f"{project}/{where}",
                raise_by=_CONSOLE.format(project=project, name=name.partition(":")[0]),
                source=_REGIONAL,
                unread=unread,
            ),
            machine.devices,
        )
        for name, where in names
    )


def _title(name: str) -> str:
    if name == ALL_REGIONS:
        return "GPUs in all regions"
    if name.startswith("PREEMPTIBLE_"):
        return "spot and flex-start GPUs of the model"
    return "GPUs of the family" if name.startswith(BY_FAMILY) else "GPUs of the model"


def _surge(desired: Desired, observed: Observed, changes: Sequence[Change]) -> int:
    """Return maxSurge as a number if a change may recreate the nodes; a blue-green upgrade doubles the pool."""
    rows = [find_row(change) for change in changes]
    if not any(row.renews_nodes for row in rows):
        return 0
    if at(observed.native, "upgradeSettings", "strategy") == "BLUE_GREEN":
        return desired.target.nodes.maximum
    surge = desired.target.upgrade.max_surge or str(at(observed.native, "upgradeSettings", "maxSurge") or 0)
    return int(surge) if surge.isdecimal() else 0


QUOTAS: Final = CloudQuotas(draws=_draws, surge=_surge)


def read_metrics(answer: Mapping[str, object], asked: Sequence[CloudQuota]) -> dict[CloudQuota, QuotaReading]:
    """Return the requested quotas from those of a region or project."""
    rows = {row.get("metric"): row for row in trees(answer, "quotas")}
    return {quota: _row(rows.get(quota.name)) for quota in asked}


def _row(row: Mapping[str, object] | None) -> QuotaReading:
    limit, used = decimal(row, "limit"), decimal(row, "usage")
    return QuotaReading(limit, used, "" if None not in (limit, used) else "Compute Engine does not list it")


def family_limit(info: Mapping[str, object], quota: CloudQuota) -> float | None:
    """Return the limit of a family in a region from the first matching entry: the most specific ones come first."""
    ours = {"gpu_family": quota.name.removeprefix(BY_FAMILY), "region": quota.place.rpartition("/")[2]}
    for entry in trees(info, "dimensionsInfos"):
        if all(ours.get(key) == value for key, value in texts(entry, "dimensions").items()):
            value = str(at(entry, "details", "value") or "")
            return float(value) if value.isdecimal() else None  # -1 means no limit
    return None


def family_use(series: Sequence[Mapping[str, object]], quota: CloudQuota) -> float | None:
    """Return the newest usage of a family in a region; None if Monitoring has none."""
    ours = (quota.name.removeprefix(BY_FAMILY), quota.place.rpartition("/")[2])
    for entry in series:
        labels = at(entry, "metric", "labels", "gpu_family"), at(entry, "resource", "labels", "location")
        if labels == ours:
            for point in trees(entry, "points"):  # newest first
                return float(str(at(point, "value", "int64Value") or 0))
    return None
