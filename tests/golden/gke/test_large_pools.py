"""The exact create requests of pools with the fields that large pools need.

`large/` holds what gpukube sends; a change of one is a change for users and is read in review.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from google.cloud import container_v1 as wire
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]  # ships no types

from gpukube.core.jsontree import tree
from gpukube.core.values import Capacity, Disk, Nodes
from tests.golden.gke.test_requests import without_zeros
from tests.unit.gpukube_gke.edits import nested
from tests.unit.gpukube_gke.targets import desire, gke_target, reserved

if TYPE_CHECKING:
    from gpukube.core.values import Target

LARGE = Path(__file__).parent / "large"
A = ("us-central1-a",)
KEY = "projects/ml-prod/locations/us-central1/keyRings/ml/cryptoKeys/nodes"
OURS: dict[str, Any] = {"zones": A, "capacity": reserved("reservation", "ours")}
EPHEMERAL = "config.ephemeralStorageLocalSsdConfig.localSsdCount"
BLUE_GREEN = "upgradeSettings.blueGreenSettings"
QUEUED: dict[str, Any] = {"nodes": Nodes(0, 0, 4, autoscaled=True), "capacity": reserved("queued")}


def networks(count: int) -> dict[str, object]:
    given = [{"network": f"gpu-{at}", "subnetwork": f"gpu-{at}"} for at in range(1, count + 1)]
    return nested("networkConfig.additionalNodeNetworkConfigs", given)


def pool(machine: str = "g2-standard-8", /, **more: Any) -> Target:  # noqa: ANN401 - fields of Target
    return gke_target(machine, name="large", pool="large", **{"zones": A, **more})


def blue_green(settings: dict[str, object], **more: Any) -> Target:  # noqa: ANN401 - as above
    return pool(native={"upgradeSettings": {"strategy": "BLUE_GREEN", "blueGreenSettings": settings}}, **more)


POOLS: dict[str, Target] = {
    "tcpx": pool("a3-highgpu-8g", high_speed=True, native=networks(4)),
    "tcpxo": pool("a3-megagpu-8g", high_speed=True, native=networks(8), placement="compact", local_storage="ephemeral"),
    "rdma-h200": pool("a3-ultragpu-8g", high_speed=True, **OURS),
    "rdma-b200": pool("a4-highgpu-8g", high_speed=True, placement="compact", **OURS),
    "rdma-b200-own-networks": pool("a4-highgpu-8g", high_speed=True, native=networks(9), **OURS),
    "rdma-gb200": pool("a4x-highgpu-4g", high_speed=True, placement="rack-1x72", **OURS),
    "rdma-gb300": pool("a4x-maxgpu-4g-metal", high_speed=True, hugepages={"2Mi": 4096}, **OURS),
    "placement-compact": pool(placement="compact"),
    "placement-policy": pool(placement="near"),
    "placement-none": pool(placement="none"),
    "disk-provisioned": pool(disk=Disk(200, "hyperdisk-balanced", 6000, 500)),
    "disk-provisioned-by-default": pool("a4-highgpu-8g", disk=Disk(None, None, 6000), **OURS),
    "disk-throughput": pool(disk=Disk(None, "hyperdisk-balanced", None, 500)),
    "disk-key": pool(disk=Disk(100, "pd-ssd", encrypted=True, kms_key=KEY)),
    "local-ephemeral": pool("a3-highgpu-8g", local_storage="ephemeral"),
    "local-ephemeral-some": pool("a2-highgpu-4g", local_storage="ephemeral", native=nested(EPHEMERAL, 4)),
    "local-raw": pool("g2-standard-48", local_storage="raw"),
    "kubelet-numa": pool(
        "g4-standard-384",
        kubernetes_version="1.34.1-gke.1829001",
        kubelet={
            "cpuManagerPolicy": "static",
            "topologyManagerPolicy": "restricted",
            "topologyManagerScope": "pod",
            "memoryManagerPolicy": "Static",
        },
    ),
    "kubelet-limits": pool(
        kubelet={
            "podPidsLimit": 4096,
            "cpuCFSQuota": False,
            "cpuCFSQuotaPeriod": "10ms",
            "allowedUnsafeSysctls": ("net.core.somaxconn", "kernel.msg*"),
        }
    ),
    "kubelet-disk": pool(
        kubelet={
            "imageGCHighThresholdPercent": 80,
            "imageGCLowThresholdPercent": 60,
            "containerLogMaxSize": "50Mi",
            "containerLogMaxFiles": 5,
        }
    ),
    "kubelet-native": pool(
        kubelet={"cpuManagerPolicy": "static"},
        native={"config": {"kubeletConfig": {"maxParallelImagePulls": 5, "evictionSoft": {"memoryAvailable": "5%"}}}},
    ),
    "sysctls": pool(sysctls={"net.core.somaxconn": "4096", "vm.max_map_count": "262144"}),
    "hugepages": pool(hugepages={"2Mi": 5128, "1Gi": 2}),
    "kernel-native": pool(
        hugepages={"2Mi": 512},
        native={
            "config": {
                "linuxNodeConfig": {
                    "cgroupMode": "CGROUP_MODE_V2",
                    "transparentHugepageEnabled": "TRANSPARENT_HUGEPAGE_ENABLED_ALWAYS",
                    "nodeKernelModuleLoading": {"policy": "ENFORCE_SIGNED_MODULES"},
                }
            }
        },
    ),
    "confidential": pool("a3-highgpu-1g", confidential=True, capacity=Capacity("spot")),
    "metadata": pool(native=nested("config.metadata", {"owner": "me"})),
    "blue-green-batches": blue_green(
        {
            "standardRolloutPolicy": {"batchPercentage": 0.25, "batchSoakDuration": "60s"},
            "nodePoolSoakDuration": "600s",
        }
    ),
    "blue-green-autoscaled": blue_green(
        {"autoscaledRolloutPolicy": {"waitForDrainDuration": "57600s"}}, nodes=Nodes(0, 0, 4, autoscaled=True)
    ),
    "machine-features": pool(
        native={
            "config": {"advancedMachineFeatures": {"threadsPerCore": 1, "enableNestedVirtualization": True}},
            "maintenancePolicy": {"exclusionUntilEndOfSupport": {"enabled": True}},
        }
    ),
    "registries": pool(
        native={
            "config": {
                "containerdConfig": {
                    "registryHosts": [{"server": "r.example.com", "hosts": [{"host": "m.example.com"}]}],
                    "writableCgroups": {"enabled": True},
                },
                "resourceManagerTags": {"tags": {"tagKeys/1": "tagValues/2"}},
                "storagePools": ["projects/ml-prod/zones/us-central1-a/storagePools/s"],
            }
        }
    ),
}


def test_records_when_counted_are_those_of_the_pools() -> None:
    assert {path.stem for path in LARGE.glob("*.json")} == POOLS.keys()
    assert len(POOLS) >= 25


@pytest.mark.parametrize("name", POOLS)
def test_request_when_made_for_a_large_pool_is_the_recorded_one(name: str, request: pytest.FixtureRequest) -> None:
    made = desire(POOLS[name]).create.params["nodePool"]
    record = LARGE / f"{name}.json"
    if request.config.getoption("--update", default=False):
        record.write_text(json.dumps(made, indent=2) + "\n")

    assert made == json.loads(record.read_text())


def plain(value: object) -> object:
    """64-bit numbers are strings on the wire."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


@pytest.mark.parametrize("name", POOLS)
def test_body_when_read_by_the_protobufs_comes_out_unchanged(name: str) -> None:
    sent = desire(POOLS[name]).create.params["nodePool"]
    read = wire.NodePool.from_json(json.dumps(sent))
    assert plain(without_zeros(MessageToDict(wire.NodePool.pb(read)))) == plain(without_zeros(sent))


GCLOUD_MEGA: dict[str, object] = {
    "ephemeralStorageLocalSsdConfig": {"localSsdCount": 16},
    "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
}
"""What gcloud 528.0.0 sent of a queued a3-megagpu-8g with --ephemeral-storage-local-ssd=count=16."""


def test_local_disks_when_compared_with_the_body_of_gcloud_are_the_same() -> None:
    made = tree(desire(pool("a3-megagpu-8g", local_storage="ephemeral", **QUEUED)).create.params, "nodePool", "config")
    assert GCLOUD_MEGA.items() <= made.items()
