"""What large pools of GKE need: settings of nodes, local disks, networks, confidential nodes, blue-green upgrades."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gpukube_sandbox import daemon
from sandbox_tests.gke.clients import CLUSTER, NAME, PROJECT, Gke, add_cluster, gpu_pool, t4_pool
from sandbox_tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.daemon import SandboxInfo
    from sandbox_tests.gke.clients import Json

POOL = f"{CLUSTER}/nodePools/p"
H100, MEGA = "nvidia-h100-80gb", "nvidia-h100-mega-80gb"
SYSTEM: dict[str, Any] = {
    "kubelet_config": {
        "cpu_manager_policy": "static",
        "topology_manager": {"policy": "restricted", "scope": "pod"},
        "memory_manager": {"policy": "Static"},
        "cpu_cfs_quota": False,
        "pod_pids_limit": 4096,
        "container_log_max_size": "50Mi",
        "allowed_unsafe_sysctls": ["net.core.somaxconn"],
    },
    "linux_node_config": {
        "sysctls": {"net.core.somaxconn": "4096"},
        "hugepages": {"hugepage_size2m": 1024, "hugepage_size1g": 2},
        "transparent_hugepage_enabled": "TRANSPARENT_HUGEPAGE_ENABLED_ALWAYS",
    },
}
EXPECTED = {
    "cpuManagerPolicy": "static",
    "topologyManagerPolicy": "restricted",
    "topologyManagerScope": "pod",
    "memoryManagerPolicy": "Static",
    "cpuCFSQuota": False,
    "podPidsLimit": 4096,
    "containerLogMaxSize": "50Mi",
    "allowedUnsafeSysctls": ["net.core.somaxconn"],
}


@pytest.fixture(scope="module")
def one_client(running_sandbox: SandboxInfo) -> Iterator[Gke]:
    client = Gke(running_sandbox, "grpc")
    yield client
    client.close()


@pytest.fixture
def gke(sandbox: SandboxInfo, one_client: Gke) -> Gke:
    add_cluster(sandbox)
    return one_client


def node(gke: Gke) -> Any:  # noqa: ANN401 - an object of Kubernetes
    """The only node of the pool."""
    (found,) = gke.nodes("p")
    return found


def kubelet(gke: Gke) -> Json:
    """The configuration of the node's kubelet."""
    path = f"/api/v1/nodes/{node(gke)['metadata']['name']}/proxy/configz"
    found: Json = json.loads(gke._kube(path))["kubeletconfig"]
    return found


def gib(quantity: str) -> int:
    return int(quantity.removesuffix("Ki")) // 1024**2


# settings of nodes


def test_node_when_its_pool_has_system_settings_then_kubelet_and_kernel_have_them(gke: Gke) -> None:
    pool = gke.create(t4_pool("p", 1, **SYSTEM))
    assert pool.config.linux_node_config.hugepages.hugepage_size2m == 1024
    assert EXPECTED.items() <= kubelet(gke).items()
    assert daemon.sysctls(gke.info, NAME)[node(gke)["metadata"]["name"]] == {"net.core.somaxconn": "4096"}
    free = node(gke)["status"]["allocatable"]
    assert (free["hugepages-2Mi"], free["hugepages-1Gi"]) == ("2048Mi", "2Gi")


def test_update_when_it_changes_system_settings_then_new_nodes_have_them(gke: Gke) -> None:
    gke.create(t4_pool("p", 1))
    before = node(gke)["metadata"]["name"]
    gke.update("p", **SYSTEM)
    assert node(gke)["metadata"]["name"] != before
    assert EXPECTED.items() <= kubelet(gke).items()


DISKS: dict[str, tuple[Json, int]] = {
    "a boot disk": (t4_pool("p", 1, disk_size_gb=200), 190),
    "local SSDs of choice": (t4_pool("p", 1, ephemeral_storage_local_ssd_config={"local_ssd_count": 2}), 750),
    "those of the machine": (gpu_pool("p", "a3-megagpu-8g", MEGA, 8), 6000),
    "those of the machine, raw": (
        gpu_pool("p", "a3-megagpu-8g", MEGA, 8, local_nvme_ssd_block_config={"local_ssd_count": 16}), 95,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", DISKS)
def test_node_when_local_disks_back_its_storage_then_it_grows(gke: Gke, case: str) -> None:
    pool, expected = DISKS[case]
    gke.create(pool)
    assert gib(node(gke)["status"]["capacity"]["ephemeral-storage"]) == expected


def test_node_when_confidential_or_with_a_network_profile_then_labelled(gke: Gke) -> None:
    tdx = {"enabled": True, "confidential_instance_type": "TDX"}
    made = gpu_pool("p", "a3-highgpu-1g", H100, 1, confidential_nodes=tdx)
    gke.create(made | {"network_config": {"accelerator_network_profile": "auto"}})
    labels = node(gke)["metadata"]["labels"]
    assert labels["cloud.google.com/gke-confidential-nodes-instance-type"] == "TDX"
    assert labels["gke.networks.io/accelerator-network-profile"] == "auto"
    other = {"enabled": True, "confidential_instance_type": "SEV_SNP"}
    request = {"name": POOL, "confidential_nodes": other}
    assert "cannot be changed" in gke.refused(lambda: gke.sdk.update_node_pool(request=request))[1]


# additional networks


def post(gke: Gke, plural: str, body: Json) -> None:
    """Make a cluster-wide object of GKE's networking."""
    kind = {"networks": "Network", "gkenetworkparamsets": "GKENetworkParamSet"}[plural]
    whole = {"apiVersion": "networking.gke.io/v1", "kind": kind, **body}
    gke.post(f"/apis/networking.gke.io/v1/{plural}", whole)


def test_node_when_the_cluster_has_networks_for_its_interfaces_then_they_are_its_resources(gke: Gke) -> None:
    names = [f"gpu-{at}" for at in range(2)]
    resources = [f"global/networks/{name}" for name in names]
    resources += [f"regions/us-central1/subnetworks/{name}" for name in names]
    daemon.declare(gke.info, "gke", project=PROJECT, resources=resources)
    cards = [{"network": name, "subnetwork": name} for name in names]
    gke.create(t4_pool("p") | {"network_config": {"additional_node_network_configs": cards}})
    for name, kind in (("gpu-0", "Device"), ("gpu-1", "L3"), ("elsewhere", "Device")):
        post(gke, "gkenetworkparamsets", {"metadata": {"name": f"{name}-p"}, "spec": {"vpc": name, "vpcSubnet": name}})
        reference = {"group": "networking.gke.io", "kind": "GKENetworkParamSet", "name": f"{name}-p"}
        post(gke, "networks", {"metadata": {"name": f"{name}-n"}, "spec": {"type": kind, "parametersRef": reference}})

    def resources_of(pool: str) -> dict[str, str]:
        (found,) = gke.nodes(pool)
        free: dict[str, str] = found["status"]["allocatable"]  # type: ignore[index]  # an object of Kubernetes
        prefix = "networking.gke.io.networks/"
        return {key.removeprefix(prefix): value for key, value in free.items() if key.startswith(prefix)}

    wait_for(lambda: resources_of("p") == {"gpu-0-n": "1", "gpu-0-n.IP": "1", "gpu-1-n.IP": "128"})
    assert resources_of("default-pool") == {}


# blue-green upgrades


def test_roll_when_blue_green_then_both_sets_of_nodes_are_there_until_the_soak_is_over(gke: Gke) -> None:
    policy = {"standard_rollout_policy": {"batch_node_count": 1, "batch_soak_duration": "60s"}}
    settings = {"strategy": "BLUE_GREEN", "blue_green_settings": policy | {"node_pool_soak_duration": "120s"}}
    pool = gke.create(t4_pool("p", 2) | {"upgrade_settings": settings})
    kept = pool.upgrade_settings.blue_green_settings
    assert (kept.standard_rollout_policy.batch_node_count, kept.node_pool_soak_duration.seconds) == (1, 120)
    before, version = {one["metadata"]["name"] for one in gke.nodes("p")}, gke.version()  # type: ignore[index]  # as above
    gke.update("p", disk_size_gb=200)
    counts = gke.counts_since("p", version, 2)
    assert (min(counts), max(counts), counts[-1]) == (2, 4, 2)
    assert not before & {one["metadata"]["name"] for one in gke.nodes("p")}  # type: ignore[index]  # as above


# defaults and updates


def test_pool_when_nobody_asks_then_its_integrity_is_monitored(gke: Gke) -> None:
    assert gke.create(t4_pool("p")).config.shielded_instance_config.enable_integrity_monitoring
    secure = t4_pool("q", shielded_instance_config={"enable_secure_boot": True})
    assert not gke.create(secure).config.shielded_instance_config.enable_integrity_monitoring


def test_update_when_it_changes_performance_then_the_rest_of_the_disk_and_of_the_network_stays(gke: Gke) -> None:
    boot = {"disk_type": "hyperdisk-balanced", "size_gb": 200, "provisioned_iops": 6000, "provisioned_throughput": 500}
    l4 = gpu_pool("p", "g2-standard-4", "nvidia-l4", 1, boot_disk=boot)
    gke.create(l4 | {"network_config": {"enable_private_nodes": True}})
    gke.update("p", boot_disk={"provisioned_iops": 9000})
    gke.update("p", node_network_config={"network_performance_config": {"total_egress_bandwidth_tier": "TIER_1"}})
    pool = gke.pool("p")
    found = pool.config.boot_disk
    assert (found.size_gb, found.provisioned_iops, found.provisioned_throughput) == (200, 9000, 500)
    assert pool.network_config.enable_private_nodes
    assert pool.network_config.network_performance_config.total_egress_bandwidth_tier.name == "TIER_1"
