"""Settings of machines and nodes: what is refused, and what just passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpukube.core.fields import LOCAL_STORAGE
from gpukube.core.values import Disk, Nodes
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube_gke.facts.fabric import fabric_of
from gpukube_gke.pool.observe import observe_pool
from gpukube_gke.rules.node_settings import check_node_settings
from tests.unit.gpukube_gke.edits import nested
from tests.unit.gpukube_gke.targets import gke_target, reserved

if TYPE_CHECKING:
    from gpukube.core.values import Target

A, B = "us-central1-a", "us-central1-b"
FROM_ZERO = Nodes(0, 0, 4, autoscaled=True)
FLEX: dict[str, Any] = {"nodes": FROM_ZERO, "capacity": reserved("flexStart")}
QUEUED: dict[str, Any] = {"nodes": FROM_ZERO, "capacity": reserved("queued")}
OURS: dict[str, Any] = {"zones": (A,), "capacity": reserved("reservation", "ours")}
EPHEMERAL = "config.ephemeralStorageLocalSsdConfig.localSsdCount"
BLOCK = "config.localNvmeSsdBlockConfig.localSsdCount"
KEY = "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"


def fixed(count: int) -> Nodes:
    return Nodes(count, count, count, autoscaled=False)


def networks(count: int) -> dict[str, object]:
    given = [{"network": f"gpu-{at}", "subnetwork": f"gpu-{at}"} for at in range(count)]
    return nested("networkConfig.additionalNodeNetworkConfigs", given)


def compact(machine: str = "a2-highgpu-1g", /, **more: object) -> Target:
    return gke_target(machine, placement="compact", **more)


def fast(machine: str, /, count: int = 0, **more: object) -> Target:
    return gke_target(machine, high_speed=True, native=networks(count) if count else {}, **more)


def disks(use: str, machine: str, /, **more: object) -> Target:
    return gke_target(machine, local_storage=use, **more)


def kubelet(**settings: object) -> Target:
    return gke_target(kubelet=settings)


PASSING: dict[str, Target] = {
    "compact in one zone": compact(zones=(A,)),
    "compact flex-start of H200": compact("a3-ultragpu-8g", **FLEX),
    "compact, as many as there may be": compact(nodes=fixed(150)),
    "compact, machines without a limit": compact("g2-standard-8", nodes=fixed(500)),
    "a policy in one zone": gke_target(placement="near", zones=(A,)),
    "placement of no kind": gke_target("n1-standard-8", ("T4", 1), placement="none"),
    "TCPX": fast("a3-highgpu-8g", 4),
    "TCPXO": fast("a3-megagpu-8g", 8),
    "RDMA by the profile": fast("a3-ultragpu-8g", **FLEX),
    "RDMA by the profile, and gVNIC": fast("a4-highgpu-8g", 1, **OURS),
    "RDMA by own networks": fast("a4x-highgpu-4g", 5, **OURS),
    "the disks of a machine": disks("ephemeral", "a3-megagpu-8g"),
    "the disk of a machine": disks("raw", "g2-standard-8"),
    "some of the disks": disks("raw", "a2-highgpu-1g", native=nested(BLOCK, 2)),
    "disks of an unknown machine": disks("ephemeral", "g4-standard-96", native=nested(EPHEMERAL, 4)),
    "confidential": gke_target("a3-highgpu-1g", confidential=True),
    "performance": gke_target(disk=Disk(100, "hyperdisk-balanced", 6000, 500)),
    "performance of the only disk": gke_target("a4-highgpu-8g", disk=Disk(None, None, 6000), **OURS),
    "encrypted": gke_target(disk=Disk(None, None, encrypted=True, kms_key=KEY)),
    "processes, few": kubelet(podPidsLimit=1024),
    "processes, many": kubelet(podPidsLimit=4194303),
    "images": kubelet(imageGCLowThresholdPercent=10, imageGCHighThresholdPercent=85),
    "logs": kubelet(containerLogMaxSize="500Mi", containerLogMaxFiles=2),
    "small logs": kubelet(containerLogMaxSize="10240Ki", containerLogMaxFiles=10),
    "unsafe": kubelet(allowedUnsafeSysctls=("kernel.msg*", "net.core.somaxconn", "fs.mqueue.msg_max", "kernel.sem")),
    "kernel": gke_target(sysctls={"net.core.somaxconn": "4096", "vm.max_map_count": "262144"}),
    "pages": gke_target(hugepages={"2Mi": 512, "1Gi": 2}),
}
REFUSED: dict[str, tuple[Target, str, str]] = {
    "compact in two zones": (compact(zones=(A, B), nodes=fixed(2)), "gke-placement", "write one zone"),
    "compact and blue-green": (
        compact(native={"upgradeSettings": {"strategy": "BLUE_GREEN"}}), "gke-placement", "strategy: SURGE",
    ),
    "compact and queued": (compact(**QUEUED), "gke-placement", "remove it"),
    "compact flex-start of A100": (compact(**FLEX), "gke-placement", "remove it"),
    "compact N1": (
        gke_target("n1-standard-8", ("T4", 1), placement="compact"), "gke-placement", "a machine of g2, a2 or later",
    ),
    "a policy in two zones": (
        gke_target(placement="near", zones=(A, B), nodes=fixed(2)), "gke-placement", "write one zone",
    ),
    "a policy of N1": (
        gke_target("n1-standard-8", ("T4", 1), placement="near"), "gke-placement", "a machine of g2, a2 or later",
    ),
    "compact, one too many A100": (compact(nodes=fixed(151)), "gke-placement", "150 nodes of a2"),
    "compact, one too many H100": (compact("a3-highgpu-8g", nodes=fixed(97)), "gke-placement", "96 of a3"),
    "compact, one too many RTX": (
        compact("g4-standard-48", zones=(A,), nodes=Nodes(0, 0, 1501, autoscaled=True)), "gke-placement", "a4 and g4",
    ),
    "no fast network": (fast("g2-standard-8"), "gke-high-speed", "choose a3-highgpu-8g"),
    "half an H100 machine": (fast("a3-highgpu-4g"), "gke-high-speed", "choose a3-highgpu-8g"),
    "TCPX without networks": (fast("a3-highgpu-8g"), "gke-high-speed", "additionalNodeNetworkConfigs"),
    "TCPXO, one network less": (fast("a3-megagpu-8g", 7), "gke-high-speed", "additionalNodeNetworkConfigs"),
    "TCPXO, one network more": (fast("a3-megagpu-8g", 9), "gke-high-speed", "additionalNodeNetworkConfigs"),
    "no disks": (disks("raw", "a3-ultragpu-8g-nolssd", **FLEX), "gke-local-storage", "with local disks"),
    "disks without a number": (disks("raw", "a2-highgpu-1g"), "gke-local-storage", f"add gke.{BLOCK}: 1 to 8"),
    "disks of which nothing is known": (
        disks("ephemeral", "g4-standard-96"), "gke-local-storage", f"add gke.{EPHEMERAL}: NUMBER",
    ),
    "disks of another use": (
        disks("raw", "g2-standard-8", native=nested(EPHEMERAL, 1)), "gke-local-storage", "keep one of them",
    ),
    "disks of no number": (
        disks("raw", "g2-standard-8", native=nested(BLOCK, 0)), "gke-local-storage", "keep one of them",
    ),
    "confidential A100": (gke_target(confidential=True), "gke-confidential", "instanceType: a3-highgpu-1g"),
    "confidential MIG": (
        gke_target("a3-highgpu-1g", confidential=True, sharing=Sharing(MigCut("1g.10gb", "single"))),
        "gke-confidential", "remove sharing",
    ),
    "confidential shares": (
        gke_target("a3-highgpu-1g", confidential=True, sharing=Sharing(None, Slicing("time-slicing", 2))),
        "gke-confidential", "remove sharing",
    ),
    "performance of another disk": (
        gke_target(disk=Disk(100, "pd-ssd", iops=6000)), "gke-disk-performance", "type: hyperdisk-balanced",
    ),
    "throughput of the usual disk": (
        gke_target(disk=Disk(100, None, throughput=500)), "gke-disk-performance", "type: hyperdisk-balanced",
    ),
    "not encrypted": (gke_target(disk=Disk(None, None, encrypted=False)), "gke-disk-encryption", "remove it"),
    "a key's short name": (gke_target(disk=Disk(None, None, kms_key="k")), "gke-disk-encryption", "cryptoKeys/KEY"),
    "too few processes": (kubelet(podPidsLimit=1023), "gke-kubelet", "write 1024 to 4194303"),
    "too many processes": (kubelet(podPidsLimit=4194304), "gke-kubelet", "write 1024 to 4194303"),
    "images, too low": (kubelet(imageGCLowThresholdPercent=9), "gke-kubelet", "write 10 to 85"),
    "images, too high": (kubelet(imageGCHighThresholdPercent=86), "gke-kubelet", "write 10 to 85"),
    "too many logs": (kubelet(containerLogMaxFiles=11), "gke-kubelet", "write 2 to 10"),
    "too small logs": (kubelet(containerLogMaxSize="9Mi"), "gke-kubelet", "write 10Mi to 500Mi"),
    "too large logs": (kubelet(containerLogMaxSize="1Gi"), "gke-kubelet", "write 10Mi to 500Mi"),
    "more logs than the disk takes": (
        kubelet(containerLogMaxSize="500Mi", containerLogMaxFiles=3), "gke-kubelet", "a larger disk",
    ),
    "a safe sysctl": (kubelet(allowedUnsafeSysctls=("vm.swappiness",)), "gke-kubelet", "of kernel.shm*"),
    "another parameter": (gke_target(sysctls={"kernel.numa_balancing": "0"}), "gke-sysctl", "privileged DaemonSet"),
    "pages by sysctl": (gke_target(sysctls={"vm.nr_hugepages": "512"}), "gke-sysctl", "hugepages: {2Mi: 512}"),
}  # fmt: skip


@pytest.mark.parametrize("name", PASSING)
def test_settings_when_gke_accepts_them_pass(name: str) -> None:
    assert list(check_node_settings(PASSING[name])) == []


@pytest.mark.parametrize("name", REFUSED)
def test_settings_when_gke_refuses_them_are_told_with_the_way_out(name: str) -> None:
    target, code, fix = REFUSED[name]
    (found,) = check_node_settings(target)

    assert (found.code, found.severity) == (code, "error")
    assert fix in found.fix


@pytest.mark.parametrize(("machine", "profile"), [("a3-megagpu-8g", False), ("a4x-maxgpu-4g-metal", True)])
def test_fabric_when_it_is_rdma_then_gke_makes_the_networks(machine: str, *, profile: bool) -> None:
    fabric = fabric_of(machine)
    assert fabric is not None
    assert fabric.profile is profile


@pytest.mark.parametrize(
    ("machine", "config", "use"),
    [
        ("a3-highgpu-8g", {"ephemeralStorageLocalSsdConfig": {}}, "ephemeral"),
        ("a3-highgpu-8g", {"localNvmeSsdBlockConfig": {}}, "raw"),
        ("n1-standard-8", {"localNvmeSsdBlockConfig": {}}, None),
        ("g2-standard-8", {"localNvmeSsdBlockConfig": {"localSsdCount": 1}}, "raw"),
        (
            "g2-standard-8",
            {"ephemeralStorageLocalSsdConfig": {"dataCacheCount": 1}, "localNvmeSsdBlockConfig": {"localSsdCount": 1}},
            "raw",
        ),
        ("a3-highgpu-8g", {}, None),
    ],
)
def test_local_disks_when_read_are_used_as_gke_says(machine: str, config: dict[str, object], use: str | None) -> None:
    live = observe_pool({"name": "p", "config": {"machineType": machine, **config}})
    assert live.fields.get(LOCAL_STORAGE) == use
