"""Quotas of Compute Engine in the emulated Google Cloud: what is read of them is what pools are held to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest

from gpukube_sandbox import daemon
from sandbox_tests.gke.clients import CLUSTER, PROJECT, gpu_pool, t4_pool
from sandbox_tests.sandboxes import signed
from sandbox_tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo
    from sandbox_tests.gke.clients import Gke

FAMILY = "compute.googleapis.com/quota/gpus_per_gpu_family/usage"
T4, H200 = "NVIDIA_T4_GPUS", "GPUS_PER_GPU_FAMILY:NVIDIA_H200"


def allow(sandbox: SandboxInfo, quotas: dict[str, int]) -> list[str]:
    return daemon.declare(sandbox, "gke", project=PROJECT, region="us-central1", quotas=quotas)


def ask(sandbox: SandboxInfo, path: str, **query: str) -> Any:  # noqa: ANN401 - JSON
    answer = httpx.get(
        sandbox.gke_url + path, params=query, headers=signed(sandbox), trust_env=False, timeout=PATIENCE_S
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


def region(sandbox: SandboxInfo) -> dict[str, tuple[float, float]]:
    found = ask(sandbox, f"/compute/v1/projects/{PROJECT}/regions/us-central1")["quotas"]
    found += ask(sandbox, f"/compute/v1/projects/{PROJECT}")["quotas"]
    return {row["metric"]: (row["usage"], row["limit"]) for row in found}


def test_quotas_when_read_then_usage_and_limit_and_no_newer_families(sandbox: SandboxInfo, gke: Gke) -> None:
    assert allow(sandbox, {T4: 2, "GPUS_ALL_REGIONS": 3}) == [
        "quota NVIDIA_T4_GPUS of 2",
        "quota GPUS_ALL_REGIONS of 3",
    ]
    gke.create(t4_pool("p", 2))
    found = region(sandbox)
    assert (found[T4], found["GPUS_ALL_REGIONS"], found["PREEMPTIBLE_NVIDIA_T4_GPUS"]) == ((2, 2), (2, 3), (0, 100000))
    assert "NVIDIA_H200_GPUS" not in found
    code, text = gke.refused(lambda: gke.begin(t4_pool("q")))
    assert (code, "NVIDIA_T4_GPUS" in text) == ("PERMISSION_DENIED", True)
    allow(sandbox, {T4: 9})
    assert "Insufficient project quota" in gke.refused(lambda: gke.begin(t4_pool("q", 2)))[1]
    gke.create(t4_pool("s", 2, spot=True))
    assert region(sandbox)["PREEMPTIBLE_NVIDIA_T4_GPUS"][0] == 2


def test_families_when_read_then_from_cloud_quotas_and_monitoring(sandbox: SandboxInfo, gke: Gke) -> None:
    allow(sandbox, {H200: 8})
    h200 = gpu_pool("p", "a3-ultragpu-8g", "nvidia-h200-141gb", 8)
    gke.create(h200)
    base = f"/v1/projects/{PROJECT}/locations/global/services/compute.googleapis.com/quotaInfos"
    first, *_, rest = ask(sandbox, f"{base}/GPUS-PER-GPU-FAMILY-per-project-region")["dimensionsInfos"]
    assert first["dimensions"] == {"region": "us-central1", "gpu_family": "NVIDIA_H200"}
    assert (first["details"], rest["details"], "dimensions" in rest) == ({"value": "8"}, {"value": "100000"}, False)
    (series,) = ask(sandbox, f"/v3/projects/{PROJECT}/timeSeries", filter=f'metric.type = "{FAMILY}"')["timeSeries"]
    assert series["metric"]["labels"]["gpu_family"] == "NVIDIA_H200"
    assert series["points"][0]["value"] == {"int64Value": "8"}
    assert "GPUS_PER_GPU_FAMILY" in gke.refused(lambda: gke.begin({**h200, "name": "q"}))[1]


def test_upgrade_when_its_surge_does_not_fit_then_it_ends_with_the_quota(sandbox: SandboxInfo, gke: Gke) -> None:
    gke.create(t4_pool("p", 2))
    allow(sandbox, {T4: 2})
    ended = gke.wait(gke.sdk.update_node_pool(request={"name": f"{CLUSTER}/nodePools/p", "disk_size_gb": 200}))
    assert "[GCE_QUOTA_EXCEEDED]" in ended.error.message
    allow(sandbox, {T4: 3})
    assert gke.update("p", disk_size_gb=300).status.name == "RUNNING"


def test_declare_when_there_is_no_such_quota_then_refused(sandbox: SandboxInfo) -> None:
    with pytest.raises(daemon.SandboxError, match='there is no key "NVIDIA_H200_GPUS"'):
        allow(sandbox, {"NVIDIA_H200_GPUS": 1})
    with pytest.raises(daemon.SandboxError, match="region is missing"):
        daemon.declare(sandbox, "gke", project=PROJECT, quotas={T4: 1})


def test_reservations_when_pools_take_from_them_then_so_many_are_in_use(sandbox: SandboxInfo, gke: Gke) -> None:
    ours = {"name": "ours", "zone": "us-central1-a", "machineType": "a2-highgpu-1g", "count": 3}
    daemon.declare(sandbox, "gke", project=PROJECT, reservations=[ours, {"name": "anywhere"}])
    affinity = {
        "consume_reservation_type": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": ["ours"],
    }
    gke.create(gpu_pool("p", "a2-highgpu-1g", "nvidia-tesla-a100", 1, 2, reservation_affinity=affinity))
    zone = f"/compute/v1/projects/{PROJECT}/zones/us-central1-a/reservations"
    found = {item["name"]: item["specificReservation"] for item in ask(sandbox, zone)["items"]}
    assert (found["ours"]["count"], found["ours"]["inUseCount"], found["anywhere"]["count"]) == ("3", "2", "1000")
    scopes = ask(sandbox, f"/compute/v1/projects/{PROJECT}/aggregated/reservations")["items"]
    assert [item["name"] for item in scopes["zones/us-central1-b"]["reservations"]] == ["anywhere"]


def test_reservations_when_declared_with_a_state_then_shown(sandbox: SandboxInfo) -> None:
    end = "2027-01-31T08:00:00Z"
    one = {"name": "ours", "zone": "us-central1-a", "count": 4, "assuredCount": 3, "inUseByOthers": 1}
    late = {"name": "late", "zone": "us-central1-a", "status": "CREATING", "deleteAtTime": end}
    daemon.declare(sandbox, "gke", project=PROJECT, reservations=[one, late])
    zone = f"/compute/v1/projects/{PROJECT}/zones/us-central1-a/reservations"
    found = {item["name"]: item for item in ask(sandbox, zone)["items"]}
    counts = found["ours"]["specificReservation"]
    assert (counts["count"], counts["assuredCount"], counts["inUseCount"]) == ("4", "3", "1")
    assert (found["ours"]["status"], "deleteAtTime" in found["ours"]) == ("READY", False)
    assert (found["late"]["status"], found["late"]["deleteAtTime"]) == ("CREATING", end)
    with pytest.raises(daemon.SandboxError, match="there is no status LOST"):
        daemon.declare(sandbox, "gke", project=PROJECT, reservations=[{"name": "lost", "status": "LOST"}])


def test_regions_when_listed_then_those_with_machines_and_those_of_the_project(sandbox: SandboxInfo, gke: Gke) -> None:
    daemon.declare(sandbox, "gke", project=PROJECT, region="us-east1", quotas={T4: 1})
    listed = f"/compute/v1/projects/{PROJECT}/regions"
    assert [item["name"] for item in ask(sandbox, listed)["items"]] == ["europe-west4", "us-central1", "us-east1"]
    (one,) = ask(sandbox, listed, filter="name = us-east1")["items"]
    assert one == ask(sandbox, f"{listed}/us-east1")
