"""What UpdateNodePool refuses, keeps and does to the nodes, over both transports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from sandbox_tests.gke.clients import CLUSTER, Gke, gpu_pool, held, t4_pool

if TYPE_CHECKING:
    from sandbox_tests.gke.clients import Json

pytestmark = pytest.mark.turns(2)  # one of the two transports

POOL = f"{CLUSTER}/nodePools/p"
PLANE, OLDER = "1.34.1-gke.1829001", "1.34.1-gke.1500000"


def l4_pool(count: int = 1, **parts: object) -> Json:
    return gpu_pool("p", "g2-standard-4", "nvidia-l4", 1, count, **parts)


def names(gke: Gke) -> list[str]:
    return [str(node["metadata"]["name"]) for node in gke.nodes("p")]  # type: ignore[index]  # a node


REFUSED: dict[str, tuple[dict[str, object], str]] = {
    "no surge and none unavailable": ({"upgrade_settings": {"max_surge": 0}}, "At least one of max_surge"),
    "a version that the plane has not": ({"node_version": "1.35.1-gke.1"}, 'Node version "1.35.1-gke.1" must not have'),
    "a version that is none": ({"node_version": "new"}, "Version 'new' is invalid"),
    "other pod ranges": ({"node_network_config": {"pod_range": "x"}}, "Pod ranges of a node pool"),
    "two groups": ({"labels": {}, "taints": {}}, "Only one group of attributes"),
    "nothing": ({}, "At least one of"),
    "fast socket alone": ({"fast_socket": {"enabled": True}}, "Fast socket requires gVNIC"),
    "a disk that is too small": ({"disk_size_gb": 5}, "Disk size must be at least"),
    "a label of the service": (
        {"labels": {"labels": {"cloud.google.com/gke-spot": "true"}}},
        'Node labels with key "cloud.google.com/gke-spot" are managed by GKE',
    ),
    "a machine with other GPUs": ({"machine_type": "g2-standard-24"}, "Machine type g2-standard-24 has 2 x"),
    "a zone elsewhere": ({"locations": ["us-east1-b"]}, "Location 'us-east1-b' is not a zone in region"),
}


def test_update_when_it_breaks_a_rule_then_400_and_nothing_changes(gke: Gke) -> None:
    before = gke.create(l4_pool())
    for name, (fields, start) in REFUSED.items():
        code, text = gke.refused(lambda sent=fields: gke.update("p", **sent))  # type: ignore[misc]  # a default binds it
        assert (code, text[: len(start)]) == ("INVALID_ARGUMENT", start), name
    assert gke.pool("p") == before


def test_update_when_a_system_config_is_sent_then_kubelet_and_linux_change_together(gke: Gke) -> None:
    gke.create(l4_pool())
    old = names(gke)
    after = gke.update(
        "p",
        kubelet_config={"cpu_manager_policy": "static"},
        linux_node_config={"sysctls": {"net.core.somaxconn": "2048"}},
    )
    assert after.config.kubelet_config.cpu_manager_policy == "static"
    assert dict(after.config.linux_node_config.sysctls) == {"net.core.somaxconn": "2048"}
    assert not set(old) & set(names(gke))
    code, _ = gke.refused(lambda: gke.update("p", kubelet_config={"pod_pids_limit": 1}))
    assert code == "INVALID_ARGUMENT"


def test_update_when_the_pool_is_unknown_then_404(gke: Gke) -> None:
    code, _ = gke.refused(lambda: gke.update("p", labels={"labels": {}}))
    assert code == "NOT_FOUND"


def test_update_when_another_runs_then_refused_and_afterwards_taken(gke: Gke) -> None:
    gke.create(l4_pool())
    with held(gke.info):
        running = gke.sdk.update_node_pool(request={"name": POOL, "image_type": "UBUNTU_CONTAINERD"})
        code, text = gke.refused(lambda: gke.update("p", labels={"labels": {"a": "b"}}))
    assert (code, running.name in text) == ("FAILED_PRECONDITION", True)
    gke.succeed(running)
    assert gke.update("p", labels={"labels": {"a": "b"}}).config.labels == {"a": "b"}


def test_create_when_no_node_could_ever_be_upgraded_then_400(gke: Gke) -> None:
    code, _ = gke.refused(lambda: gke.create(l4_pool() | {"upgrade_settings": {"max_unavailable": 0}}))
    assert code == "INVALID_ARGUMENT"


@pytest.mark.parametrize(("asked", "version"), [("-", PLANE), ("latest", PLANE), ("1.34", PLANE), (OLDER, OLDER)])
def test_version_when_updated_then_nodes_are_made_again(gke: Gke, asked: str, version: str) -> None:
    gke.create(l4_pool())
    before = names(gke)
    assert gke.update("p", node_version=asked).version == version
    assert not set(before) & set(names(gke))


def test_upgrade_settings_when_updated_then_as_a_whole_and_no_node_moves(gke: Gke) -> None:
    gke.create(l4_pool() | {"upgrade_settings": {"max_surge": 3, "max_unavailable": 2}})
    before = names(gke)
    settings = gke.update("p", upgrade_settings={"max_unavailable": 1}).upgrade_settings
    assert (settings.max_surge, settings.max_unavailable, settings.strategy.name) == (0, 1, "SURGE")
    assert names(gke) == before


@pytest.mark.parametrize(("surge", "unavailable"), [(1, 0), (0, 1)])
def test_roll_when_there_is_a_surge_then_never_fewer_nodes(gke: Gke, surge: int, unavailable: int) -> None:
    gke.create(l4_pool(2) | {"upgrade_settings": {"max_surge": surge, "max_unavailable": unavailable}})
    before, version = names(gke), gke.version()
    gke.update("p", disk_size_gb=200)
    counts = gke.counts_since("p", version, 2)
    assert (min(counts) < 2, max(counts) > 2) == (not surge, bool(surge))
    assert len(names(gke)) == 2
    assert not set(before) & set(names(gke))


def test_sharing_when_updated_then_only_new_nodes_have_its_labels(gke: Gke) -> None:
    gke.create(t4_pool("p", 2))
    old = names(gke)
    sharing = {"gpu_sharing_strategy": "TIME_SHARING", "max_shared_clients_per_gpu": 4}
    accelerator = {"accelerator_type": "nvidia-tesla-t4", "accelerator_count": 1, "gpu_sharing_config": sharing}
    label = "cloud.google.com/gke-gpu-sharing-strategy"
    with held(gke.info):
        running = gke.sdk.update_node_pool(request={"name": POOL, "accelerators": [accelerator]})
        assert [label in node["metadata"]["labels"] for node in gke.nodes("p")] == [False, False]  # type: ignore[index]  # a node
    gke.succeed(running)
    assert [node["metadata"]["labels"][label] for node in gke.nodes("p")] == ["time-sharing"] * 2  # type: ignore[index]  # as above
    assert not set(old) & set(names(gke))


def test_locations_when_updated_then_as_many_nodes_in_each_zone(gke: Gke) -> None:
    gke.create(l4_pool(2))
    zones = ["us-central1-a", "us-central1-b"]
    pool = gke.update("p", locations=zones)
    assert (pool.initial_node_count, len(pool.instance_group_urls), len(names(gke))) == (2, 2, 4)
    found = [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in gke.nodes("p")]  # type: ignore[index]  # a node
    assert sorted(found) == sorted(zones * 2)


def test_private_nodes_when_updated_then_the_ranges_stay(gke: Gke) -> None:
    gke.create(l4_pool() | {"network_config": {"pod_range": "pods"}})
    network = gke.update("p", node_network_config={"enable_private_nodes": True}).network_config
    assert (network.enable_private_nodes, network.pod_range) == (True, "pods")


def test_drain_and_maintenance_when_updated_then_the_pool_has_them(gke: Gke) -> None:
    gke.create(l4_pool())
    before = names(gke)
    pool = gke.update("p", node_drain_config={"respect_pdb_during_node_pool_deletion": True})
    assert pool.node_drain_config.respect_pdb_during_node_pool_deletion
    assert names(gke) == before


def test_failure_when_planned_then_the_pool_keeps_its_nodes_and_says_why(gke: Gke) -> None:
    gke.create(l4_pool(2))
    before = names(gke)
    daemon.add_fault(gke.info, "operation", code="GCE_STOCKOUT", kind="UPGRADE_NODES", pool="p", afterNodes=1)
    ended = gke.wait(gke.sdk.update_node_pool(request={"name": POOL, "disk_size_gb": 200}))
    pool = gke.pool("p")
    assert ended.error.code == 8
    assert (pool.status.name, pool.conditions[0].code.name) == ("RUNNING_WITH_ERROR", "GCE_STOCKOUT")
    assert len(set(before) & set(names(gke))) == 1
    assert gke.update("p", disk_size_gb=200).status.name == "RUNNING"


def test_quota_when_more_zones_need_more_then_refused(gke: Gke, sandbox: daemon.SandboxInfo) -> None:
    daemon.add_gke_cluster(sandbox, "demo-proj", "us-central1-a", "small", options={"gpuQuota": {"NVIDIA_L4_GPUS": 1}})
    parent = CLUSTER.replace("/train", "/small")
    operation = gke.sdk.create_node_pool(request={"parent": parent, "node_pool": l4_pool()})
    gke.succeed(operation)
    request = {"name": f"{parent}/nodePools/p", "locations": ["us-central1-a", "us-central1-b"]}
    code, text = gke.refused(lambda: gke.sdk.update_node_pool(request=request))
    assert (code, "NVIDIA_L4_GPUS" in text) == ("PERMISSION_DENIED", True)


def test_cluster_update_when_it_names_a_version_then_the_pool_gets_it(gke: Gke) -> None:
    gke.create(l4_pool() | {"version": "1.33.9-gke.1"})
    update = {"desired_node_pool_id": "p", "desired_node_version": "-"}
    operation = gke.sdk.update_cluster(request={"name": CLUSTER, "update": update})
    assert operation.operation_type.name == "UPGRADE_NODES"
    gke.succeed(operation)
    assert gke.pool("p").version == gke.sdk.get_cluster(name=CLUSTER).current_master_version


def test_cluster_update_when_it_names_no_pool_of_several_then_400(gke: Gke) -> None:
    gke.create(l4_pool())
    request = {"name": CLUSTER, "update": {"desired_node_version": "-"}}
    code, text = gke.refused(lambda: gke.sdk.update_cluster(request=request))
    assert (code, text.startswith("Desired_node_pool_id must be specified")) == ("INVALID_ARGUMENT", True)
