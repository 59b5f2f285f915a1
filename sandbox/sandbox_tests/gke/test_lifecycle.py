"""Pools through their life, over both transports: what the real client sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from sandbox_tests.gke.clients import (
    CLUSTER,
    LOCATION,
    NAME,
    PROJECT,
    ZONE,
    Gke,
    gpu_pool,
    held,
    mig_pool,
    pool_of,
    t4_pool,
)
from sandbox_tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube_sandbox.daemon import SandboxInfo

pytestmark = pytest.mark.turns(2)  # one of the two transports

POOL = f"{CLUSTER}/nodePools/p"


def test_cluster_when_read_then_it_has_all_that_kube_access_needs(gke: Gke) -> None:
    cluster = gke.sdk.get_cluster(name=CLUSTER)
    assert (cluster.name, cluster.status.name, cluster.autopilot.enabled) == (NAME, "RUNNING", False)
    assert cluster.master_auth.cluster_ca_certificate
    assert [pool.name for pool in cluster.node_pools] == ["default-pool"]
    assert list(cluster.locations) == [ZONE]
    assert len(gke.nodes()) == 1


def test_list_clusters_when_all_locations_then_those_of_the_project(gke: Gke) -> None:
    found = gke.sdk.list_clusters(parent=f"projects/{PROJECT}/locations/-").clusters
    assert [cluster.name for cluster in found] == [NAME]
    assert not gke.sdk.list_clusters(parent=f"projects/{PROJECT}/locations/us-east1").clusters
    answer = gke.refused(lambda: gke.sdk.list_clusters(parent="projects/other/locations/-"))
    assert answer == ("PERMISSION_DENIED", 'Required "container.clusters.list" permission(s) for "projects/other".')


def test_list_clusters_when_nobody_has_made_anything_then_each_project_is_empty(
    sandbox: SandboxInfo, any_client: Gke
) -> None:
    assert not any_client.sdk.list_clusters(parent="projects/anyone/locations/-").clusters
    daemon.declare(sandbox, "gke", project="declared", resources=[])
    assert not any_client.sdk.list_clusters(parent="projects/declared/locations/-").clusters
    answer = any_client.refused(lambda: any_client.sdk.list_clusters(parent="projects/anyone/locations/-"))
    assert answer[0] == "PERMISSION_DENIED"


def test_create_when_it_runs_then_provisioning_and_then_running(gke: Gke) -> None:
    with held(gke.info):
        operation = gke.begin(mig_pool("p"))
        assert operation.operation_type.name == "CREATE_NODE_POOL"
        assert operation.status.name in {"PENDING", "RUNNING"}
        assert operation.target_link.endswith(POOL)
        assert gke.pool("p").status.name == "PROVISIONING"
    ended = gke.succeed(operation)
    assert gke.pool("p").status.name == "RUNNING"
    assert ended.end_time >= ended.start_time
    metrics = {metric.name: metric.int_value for metric in ended.progress.metrics}
    assert metrics == {"nodes done": 1, "nodes total": 1}


def test_create_when_done_then_defaults_are_filled_in(gke: Gke) -> None:
    pool = gke.create(gpu_pool("p", "g2-standard-8", "nvidia-l4", 1))
    config = pool.config
    assert config.image_type == "COS_CONTAINERD"
    assert (config.disk_type, config.disk_size_gb) == ("pd-balanced", 100)
    assert config.service_account == "default"
    assert config.metadata["disable-legacy-endpoints"] == "true"
    assert config.accelerators[0].gpu_driver_installation_config.gpu_driver_version.name == "DEFAULT"
    assert pool.upgrade_settings.max_surge == 1
    assert list(pool.locations) == [ZONE]
    assert pool.version == gke.sdk.get_cluster(name=CLUSTER).current_master_version
    assert pool.etag
    assert all(key.startswith("goog-gke-") for key in config.resource_labels)


def test_create_when_the_machine_needs_hyperdisk_then_that_is_the_default(gke: Gke) -> None:
    pool = gke.create(gpu_pool("p", "a4-highgpu-8g", "nvidia-b200", 8))
    assert pool.config.disk_type == "hyperdisk-balanced"


def test_driver_when_the_version_is_old_then_nothing_is_installed_by_default(
    sandbox: daemon.SandboxInfo, any_client: Gke
) -> None:
    daemon.add_gke_cluster(sandbox, PROJECT, ZONE, NAME, kubernetes_version="1.30.1-gke.1155000")
    pool = any_client.create(t4_pool("p"))
    assert "gpu_driver_installation_config" not in pool.config.accelerators[0]
    any_client.devices("p", None)


def test_taint_when_a_cpu_pool_is_there_then_gke_adds_it(gke: Gke) -> None:
    taints = gke.create(t4_pool("p")).config.taints
    assert [(taint.key, taint.value, taint.effect.name) for taint in taints] == [
        ("nvidia.com/gpu", "present", "NO_SCHEDULE")
    ]
    found = [(taint["key"], taint["effect"]) for taint in gke.nodes("p")[0]["spec"]["taints"]]  # type: ignore[index]
    assert ("nvidia.com/gpu", "NoSchedule") in found


def test_taint_when_it_was_sent_then_it_is_not_doubled(gke: Gke) -> None:
    own = {"key": "nvidia.com/gpu", "value": "yes", "effect": "NO_SCHEDULE"}
    taints = gke.create(t4_pool("p", taints=[own])).config.taints
    assert [(taint.key, taint.value) for taint in taints] == [("nvidia.com/gpu", "yes")]


def test_taint_when_no_cpu_pool_is_there_then_none_not_even_later(with_cluster: Callable[..., Gke]) -> None:
    gke = with_cluster(cpuPool=False)
    assert not gke.create(t4_pool("first")).config.taints
    gke.create(pool_of("cpu"))
    assert not gke.pool("first").config.taints
    assert gke.create(t4_pool("second")).config.taints


def test_count_when_the_cluster_is_regional_then_it_is_per_zone(sandbox: daemon.SandboxInfo, any_client: Gke) -> None:
    daemon.add_gke_cluster(sandbox, PROJECT, "us-central1", "wide")
    parent = f"projects/{PROJECT}/locations/us-central1/clusters/wide"
    for name, zones, nodes in (("all", [], 6), ("one", ["us-central1-b"], 2)):
        sent = t4_pool(name, 2) | {"locations": zones}
        operation = any_client.sdk.create_node_pool(request={"parent": parent, "node_pool": sent})
        path = f"projects/{PROJECT}/locations/us-central1/operations/{operation.name}"
        wait_for(lambda at=path: any_client.sdk.get_operation(name=at).status.name == "DONE")  # type: ignore[misc] # a default binds it
        assert len(_pool_status(sandbox, "wide", name)["nodes"]) == nodes
    assert len(any_client.sdk.get_node_pool(name=f"{parent}/nodePools/all").instance_group_urls) == 3


def _pool_status(info: daemon.SandboxInfo, cluster: str, pool: str) -> dict[str, list[str]]:
    clusters = daemon.status(info)["clusters"]
    assert isinstance(clusters, list)
    found = next(one for one in clusters if one["name"] == cluster)
    pools: dict[str, dict[str, list[str]]] = {one["name"]: one for one in found["pools"]}
    return pools[pool]


def test_zero_nodes_when_created_then_running_without_any(gke: Gke) -> None:
    assert gke.create(t4_pool("p", 0)).status.name == "RUNNING"
    assert gke.nodes("p") == []


@pytest.mark.parametrize(
    ("count", "limits", "nodes"),
    [
        (0, {"max_node_count": 3}, 0),
        (0, {"min_node_count": 2, "max_node_count": 3}, 2),
        (3, {"max_node_count": 1}, 1),
        (5, {"total_max_node_count": 2}, 2),
        (0, {"total_min_node_count": 3, "total_max_node_count": 9}, 3),
    ],
)
def test_autoscaling_when_set_then_nodes_stay_within_its_limits(
    gke: Gke, count: int, limits: dict[str, int], nodes: int
) -> None:
    pool = gke.create(t4_pool("p", count) | {"autoscaling": {"enabled": True, **limits}})
    assert pool.autoscaling.enabled
    assert len(gke.nodes("p")) == nodes


def test_autoscaling_when_replaced_then_as_a_whole(gke: Gke) -> None:
    gke.create(t4_pool("p", 1) | {"autoscaling": {"enabled": True, "max_node_count": 5, "location_policy": "ANY"}})
    request = {"name": POOL, "autoscaling": {"enabled": True, "total_max_node_count": 9}}
    gke.succeed(gke.sdk.set_node_pool_autoscaling(request=request))
    scaling = gke.pool("p").autoscaling
    assert (scaling.max_node_count, scaling.total_max_node_count, scaling.location_policy) == (0, 9, 0)
    gke.succeed(gke.sdk.set_node_pool_autoscaling(request={"name": POOL, "autoscaling": {}}))
    assert not gke.pool("p").autoscaling.enabled


def test_autoscaling_when_gcloud_sends_it_to_the_cluster_then_the_pool_has_it(gke: Gke) -> None:
    gke.create(t4_pool("p"))
    update = {"desired_node_pool_id": "p", "desired_node_pool_autoscaling": {"enabled": True, "max_node_count": 4}}
    gke.succeed(gke.sdk.update_cluster(request={"name": CLUSTER, "update": update}))
    assert gke.pool("p").autoscaling.max_node_count == 4


def test_size_when_set_then_nodes_come_and_go(gke: Gke) -> None:
    gke.create(t4_pool("p", 1))
    for count in (3, 0, 1):
        with held(gke.info):
            operation = gke.sdk.set_node_pool_size(request={"name": POOL, "node_count": count})
            assert operation.operation_type.name == "SET_NODE_POOL_SIZE"
            assert gke.pool("p").status.name == "RECONCILING"
        gke.succeed(operation)
        assert gke.pool("p").initial_node_count == count
        assert len(gke.nodes("p")) == count


def test_size_when_an_autoscaler_owns_it_then_set_within_its_bounds(gke: Gke) -> None:
    gke.create(t4_pool("p", 1) | {"autoscaling": {"enabled": True, "max_node_count": 3}})
    gke.succeed(gke.sdk.set_node_pool_size(request={"name": POOL, "node_count": 3}))
    assert len(gke.nodes("p")) == 3
    assert gke.pool("p").autoscaling.enabled


def test_management_when_set_then_beside_other_operations(gke: Gke) -> None:
    gke.create(t4_pool("p"))
    daemon.configure(gke.info, gkePace={"boot_s": 1e6})
    size = gke.sdk.set_node_pool_size(request={"name": POOL, "node_count": 2})
    request = {"name": POOL, "management": {"auto_upgrade": True, "auto_repair": False}}
    gke.succeed(gke.sdk.set_node_pool_management(request=request))
    assert not gke.pool("p").management.auto_repair
    assert gke.pool("p").status.name == "RECONCILING"
    daemon.configure(gke.info, speed=1e6)
    gke.succeed(size)


def test_update_when_labels_and_taints_then_whole_sets_reach_living_nodes(gke: Gke) -> None:
    gke.create(t4_pool("p", labels={"old": "1", "team": "ml"}))
    before = gke.nodes("p")[0]["metadata"]["name"]  # type: ignore[index]
    gke.update("p", labels={"labels": {"team": "ai"}})
    gke.update("p", taints={"taints": [{"key": "own", "value": "x", "effect": "NO_EXECUTE"}]})
    node = gke.nodes("p")[0]
    metadata, spec = node["metadata"], node["spec"]
    assert isinstance(metadata, dict)
    assert isinstance(spec, dict)
    assert metadata["name"] == before
    assert metadata["labels"]["team"] == "ai"
    assert "old" not in metadata["labels"]
    assert spec["taints"] == [{"key": "own", "value": "x", "effect": "NoExecute"}]
    assert [taint.key for taint in gke.update("p", taints={}).config.taints] == []


def test_update_when_sharing_changes_then_new_nodes_offer_more(gke: Gke) -> None:
    gke.create(t4_pool("p"))
    gke.devices("p", 1)
    accelerator = {
        "accelerator_type": "nvidia-tesla-t4",
        "accelerator_count": 1,
        "gpu_sharing_config": {"gpu_sharing_strategy": "TIME_SHARING", "max_shared_clients_per_gpu": 4},
        "gpu_driver_installation_config": {"gpu_driver_version": "LATEST"},
    }
    pool = gke.update("p", accelerators=[accelerator])
    assert pool.config.accelerators[0].gpu_driver_installation_config.gpu_driver_version.name == "LATEST"
    gke.devices("p", 4)


def test_update_when_machine_type_then_nodes_are_replaced(gke: Gke) -> None:
    gke.create(gpu_pool("p", "g2-standard-4", "nvidia-l4", 1))
    before = {str(node["metadata"]["name"]) for node in gke.nodes("p")}  # type: ignore[index]
    pool = gke.update("p", machine_type="g2-standard-8", disk_size_gb=200)
    assert (pool.config.machine_type, pool.config.boot_disk.size_gb) == ("g2-standard-8", 200)
    after = {str(node["metadata"]["name"]) for node in gke.nodes("p")}  # type: ignore[index]
    assert len(after) == 1
    assert not before & after


def test_etag_when_stale_then_aborted(gke: Gke) -> None:
    etag = gke.create(t4_pool("p")).etag
    gke.update("p", labels={"labels": {"a": "b"}}, etag=etag)
    code, _ = gke.refused(lambda: gke.update("p", labels={"labels": {}}, etag=etag))
    assert code == "ABORTED"


def test_delete_when_done_then_not_found_and_no_nodes(gke: Gke) -> None:
    gke.create(t4_pool("p"))
    with held(gke.info):
        operation = gke.sdk.delete_node_pool(name=POOL)
        assert gke.pool("p").status.name == "STOPPING"
    gke.succeed(operation)
    assert gke.names() == ["default-pool"]
    assert gke.nodes("p") == []
    for call in (lambda: gke.pool("p"), lambda: gke.sdk.delete_node_pool(name=POOL)):
        assert gke.refused(call) == ("NOT_FOUND", f"Not found: {POOL}.")


def test_missing_things_when_read_then_not_found(gke: Gke) -> None:
    other = CLUSTER.replace(NAME, "other")
    assert gke.refused(lambda: gke.sdk.get_cluster(name=other)) == ("NOT_FOUND", f"Not found: {other}.")
    name = f"{LOCATION}/operations/operation-1-x"
    assert gke.refused(lambda: gke.sdk.get_operation(name=name)) == ("NOT_FOUND", f"Not found: {name}.")


def test_operations_when_listed_then_those_of_the_place(gke: Gke) -> None:
    operation = gke.begin(t4_pool("p"))
    for parent in (LOCATION, f"projects/{PROJECT}/locations/-"):
        assert [one.name for one in gke.sdk.list_operations(parent=parent).operations] == [operation.name]
    assert not gke.sdk.list_operations(parent=f"projects/{PROJECT}/locations/us-east1").operations


def test_cancel_when_an_upgrade_then_aborting_and_done(gke: Gke) -> None:
    gke.create(gpu_pool("p", "g2-standard-4", "nvidia-l4", 1))
    daemon.configure(gke.info, gkePace={"boot_s": 1e9})
    request = {"name": POOL, "machine_type": "g2-standard-8"}
    operation = gke.sdk.update_node_pool(request=request)
    name = f"{LOCATION}/operations/{operation.name}"
    wait_for(lambda: gke.sdk.get_operation(name=name).status.name == "RUNNING")
    with held(gke.info):
        gke.sdk.cancel_operation(name=name)
        assert gke.sdk.get_operation(name=name).status.name == "ABORTING"
    gke.wait(operation)
    assert gke.pool("p").status.name == "RUNNING"


def test_cancel_when_a_creation_then_refused(gke: Gke) -> None:
    operation = gke.begin(t4_pool("p"))
    code, _ = gke.refused(lambda: gke.sdk.cancel_operation(name=f"{LOCATION}/operations/{operation.name}"))
    assert code == "FAILED_PRECONDITION"


def test_server_config_when_read_then_versions_and_images(gke: Gke) -> None:
    config = gke.sdk.get_server_config(name=LOCATION)
    assert list(config.valid_node_versions) == [config.default_cluster_version]
    assert set(config.valid_image_types) == {"COS_CONTAINERD", "UBUNTU_CONTAINERD"}


def test_old_fields_when_used_then_as_good_as_names(gke: Gke) -> None:
    if gke.transport == "rest":
        pytest.skip("the client writes names into its paths")
    request = {"project_id": PROJECT, "zone": ZONE, "cluster_id": NAME, "node_pool_id": "default-pool"}
    assert gke.sdk.get_node_pool(request=request).name == "default-pool"
    answer = gke.refused(lambda: gke.sdk.get_node_pool(request=request | {"project_id": "other"}))
    assert answer == ("PERMISSION_DENIED", 'Required "container.clusters.get" permission(s) for "projects/other".')
