"""Pools from request to machines and back, with the real SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError, ResourceNotFoundError

from gpukube_sandbox import daemon
from sandbox_tests.aks.arm import API, CLUSTER_PATH, GROUP, MIG, NAME, T4, Json, make_sdk, pool_of
from sandbox_tests.waiting import wait_for

if TYPE_CHECKING:
    from sandbox_tests.aks.arm import Arm

SPOT_KEY = "kubernetes.azure.com/scalesetpriority"


def cluster_status(arm: Arm) -> Json:
    """Return the one cluster's part of the status."""
    clusters = daemon.status(arm.info)["clusters"]
    assert isinstance(clusters, list)
    return dict(clusters[0])


def nodes_of(arm: Arm, pool: str) -> list[str]:
    """Names of a pool's machines."""
    pools = cluster_status(arm)["pools"]
    assert isinstance(pools, list)
    return next((p["nodes"] for p in pools if p["name"] == pool), [])


def slow(arm: Arm) -> None:
    """Let operations take longer than a test: minutes of the wall, even at the usual speed."""
    daemon.configure(arm.info, pace={"settle_s": 1e6})


def test_create_when_accepted_then_machines_join_and_server_defaults_are_shown(arm: Arm) -> None:
    made = arm.create("mig", {**MIG, "count": 2})
    assert made["provisioningState"] == "Succeeded"
    assert len(nodes_of(arm, "mig")) == 2
    expected = {
        "osType": "Linux", "osSKU": "Ubuntu", "mode": "User", "type": "VirtualMachineScaleSets", "osDiskSizeGB": 128,
        "scaleSetPriority": "Regular", "enableAutoScaling": False, "gpuInstanceProfile": "MIG1g",
        "orchestratorVersion": "1.34.2", "currentOrchestratorVersion": "1.34.2", "powerState": {"code": "Running"},
    }  # fmt: skip
    assert expected.items() <= made.items()
    assert made["upgradeSettings"] == {"maxSurge": "10%", "maxUnavailable": "0"}
    assert made["eTag"]
    assert str(made["nodeImageVersion"]).startswith("AKSUbuntu-2404")
    assert "spotMaxPrice" not in made


def test_create_when_answered_then_201_with_an_operation_to_poll(arm: Arm) -> None:
    slow(arm)
    answer = arm.put("gpu1", T4)
    assert answer.status_code == 201
    address = answer.headers["azure-asyncoperation"]
    assert len(address) > 500
    document = arm.http.get(address).json()
    assert (document["status"], document["name"] in address) == ("InProgress", True)
    assert "endTime" not in document
    assert "location" not in answer.headers


def test_retry_after_when_time_is_real_then_whole_seconds(arm: Arm) -> None:
    assert "retry-after" not in arm.put("gpu1", T4).headers
    daemon.configure(arm.info, speed=1)
    assert arm.request("DELETE", "/agentPools/nodepool1").status_code == 400
    daemon.add_cluster(arm.info, "11111111-2222-3333-4444-555555555555", GROUP, "second")
    path = f"/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/{GROUP}/providers"
    path += "/Microsoft.ContainerService/managedClusters/second/agentPools/gpu1"
    answer = arm.http.put(path, params={"api-version": "2026-08-01"}, json={"properties": T4})
    assert answer.headers["retry-after"] == "10"


def test_create_when_spot_then_label_taint_and_policy_are_added(arm: Arm) -> None:
    made = arm.create("spot", {**T4, "scaleSetPriority": "Spot", "nodeTaints": ["a=b:NoSchedule"]})
    assert made["nodeLabels"] == {SPOT_KEY: "spot"}
    assert made["nodeTaints"] == ["a=b:NoSchedule", f"{SPOT_KEY}=spot:NoSchedule"]
    assert (made["scaleSetEvictionPolicy"], made["spotMaxPrice"]) == ("Delete", -1.0)


def test_update_when_spot_marks_are_left_out_then_they_are_gone(arm: Arm) -> None:
    made = arm.create("spot", {**T4, "scaleSetPriority": "Spot"})
    changed = arm.create("spot", {**made, "nodeLabels": {"a": "b"}, "nodeTaints": []})
    assert (changed["nodeLabels"], changed["nodeTaints"]) == ({"a": "b"}, [])


def test_update_when_read_and_written_back_then_nothing_changes_but_the_etag(arm: Arm) -> None:
    made = arm.create("mig", {**MIG, "nodeLabels": {"a": "b"}, "tags": {"t": "1"}})
    again = arm.create("mig", made)
    assert again.pop("eTag") != made.pop("eTag")
    assert again == made


def test_update_when_labels_and_count_change_then_nodes_follow(arm: Arm) -> None:
    made = arm.create("gpu1", {**T4, "nodeLabels": {"old": "1"}})
    arm.create("gpu1", {**made, "nodeLabels": {"new": "2"}, "count": 3})
    assert len(nodes_of(arm, "gpu1")) == 3
    arm.create("gpu1", {**made, "nodeLabels": {"new": "2"}, "count": 1})
    assert len(nodes_of(arm, "gpu1")) == 1


def test_update_when_only_the_count_changes_then_the_state_is_scaling(arm: Arm) -> None:
    made = arm.create("gpu1", T4)
    slow(arm)
    answer = arm.put("gpu1", {**made, "count": 2})
    assert (answer.status_code, answer.json()["properties"]["provisioningState"]) == (200, "Scaling")


def test_update_when_the_image_family_stays_then_machines_are_replaced(arm: Arm) -> None:
    made = arm.create("gpu1", T4)
    before = nodes_of(arm, "gpu1")
    changed = arm.create("gpu1", {**made, "osSKU": "Ubuntu2204"})
    assert str(changed["nodeImageVersion"]).startswith("AKSUbuntu-2204")
    assert len(before) == len(nodes_of(arm, "gpu1")) == 1
    assert before != nodes_of(arm, "gpu1")


def test_update_when_stopped_then_no_machine_is_left_and_start_brings_them_back(arm: Arm) -> None:
    made = arm.create("gpu1", T4)
    stopped = arm.create("gpu1", {**made, "powerState": {"code": "Stopped"}})
    assert (stopped["powerState"], nodes_of(arm, "gpu1")) == ({"code": "Stopped"}, [])
    arm.create("gpu1", {**made, "powerState": {"code": "Running"}})
    assert len(nodes_of(arm, "gpu1")) == 1


IMMUTABLE: dict[str, tuple[Json, str]] = {
    "vmSize": ({"vmSize": "Standard_NC8as_T4_v3"}, "vmSize"),
    "priority": ({"scaleSetPriority": "Spot"}, "scaleSetPriority"),
    "mig": ({"gpuInstanceProfile": "MIG1g"}, "gpuInstanceProfile"),
    "disk": ({"osDiskSizeGB": 256}, "osDiskSizeGB"),
    "pods": ({"maxPods": 60}, "maxPods"),
    "zones": ({"availabilityZones": ["1"]}, "availabilityZones"),
    "driver": ({"gpuProfile": {"driver": "None"}}, "gpuProfile.driver"),
    "managed": ({"gpuProfile": {"nvidia": {"managementMode": "Managed"}}}, "gpuProfile.nvidia.managementMode"),
    "image of Windows": ({"osSKU": "Windows2022"}, "osSKU"),
    "encryption": ({"enableEncryptionAtHost": True}, "enableEncryptionAtHost"),
}


@pytest.mark.parametrize("case", IMMUTABLE)
def test_update_when_an_immutable_property_changes_then_refused_with_its_target(arm: Arm, case: str) -> None:
    change, path = IMMUTABLE[case]
    made = arm.create("gpu1", T4)
    answer = arm.put("gpu1", {**made, **change})
    assert answer.status_code == 400
    assert answer.json() == {
        "code": "PropertyChangeNotAllowed",
        "details": None,
        "message": f"Changing property 'properties.{path}' is not allowed.",
        "subcode": "",
        "target": f"properties.{path}",
    }


@pytest.mark.parametrize(
    "same",
    [
        {"gpuProfile": {"driver": "Install", "nvidia": {"managementMode": "Unmanaged"}}},
        {"osDiskSizeGB": 0},
        {"spotMaxPrice": -1.0, "scaleSetEvictionPolicy": "Delete"},  # SDKs before 41 send them for every pool
    ],
)
def test_update_when_a_default_is_spelled_out_then_it_is_no_change(arm: Arm, same: Json) -> None:
    made = arm.create("gpu1", T4)
    assert arm.put("gpu1", {**made, **same}).status_code == 200


def test_list_when_pages_are_small_then_the_sdk_follows_the_links(arm: Arm) -> None:
    for name in ("gpu1", "gpu2", "gpu3"):
        arm.create(name, {**T4, "count": 0})
    daemon.configure(arm.info, pageSize=2)
    assert [pool.name for pool in arm.sdk.agent_pools.list(GROUP, NAME)] == ["nodepool1", "gpu1", "gpu2", "gpu3"]
    assert len(daemon.requests_since(arm.info)) > 2
    first = arm.http.get(f"{CLUSTER_PATH}/agentPools", params={"api-version": API}).json()
    last = arm.http.get(first["nextLink"]).json()
    assert ([pool["name"] for pool in last["value"]], "nextLink" in last) == (["gpu2", "gpu3"], False)
    wrong = arm.http.get(f"{CLUSTER_PATH}/agentPools", params={"api-version": API, "$skiptoken": "2"})
    assert wrong.status_code == 400


@pytest.mark.parametrize("key", ["vmSize", "gpuInstanceProfile"])
def test_update_when_size_or_mig_is_left_out_then_refused(arm: Arm, key: str) -> None:
    made = arm.create("mig", MIG)
    answer = arm.put("mig", {k: v for k, v in made.items() if k != key})
    assert answer.json()["target"] == f"properties.{key}"


def test_update_when_count_is_left_out_then_refused(arm: Arm) -> None:
    made = arm.create("gpu1", T4)
    answer = arm.put("gpu1", {k: v for k, v in made.items() if k != "count"})
    assert answer.json()["target"] == "properties.count"


def test_update_when_another_node_image_is_written_then_refused(arm: Arm) -> None:
    made = arm.create("gpu1", T4)
    answer = arm.put("gpu1", {**made, "nodeImageVersion": "AKSUbuntu-2404gen2containerd-202601.01.0"})
    assert answer.json()["target"] == "agentPoolProfile.nodeImageVersion"


def test_update_when_a_newer_property_is_stored_then_it_may_be_sent_back(arm: Arm) -> None:
    arm.create("gpu1", T4)
    daemon.tamper(arm.info, NAME, "gpu1", madeByANewerVersion={"x": 1})
    read = arm.get("gpu1")
    assert read["madeByANewerVersion"] == {"x": 1}
    assert arm.create("gpu1", read)["madeByANewerVersion"] == {"x": 1}


def test_autoscaling_when_min_rises_above_the_count_then_machines_come(arm: Arm) -> None:
    made = arm.create("gpu1", {**T4, "enableAutoScaling": True, "minCount": 0, "maxCount": 5})
    grown = arm.create("gpu1", {**made, "minCount": 3})
    assert (grown["count"], len(nodes_of(arm, "gpu1"))) == (3, 3)
    off = arm.create(
        "gpu1", {k: v for k, v in {**grown, "enableAutoScaling": False}.items() if k not in {"minCount", "maxCount"}}
    )
    assert (off["count"], "minCount" in off) == (3, False)
    assert arm.put("gpu1", {**grown, "enableAutoScaling": False}).json()["target"] == "agentPoolProfile.minCount"


def test_delete_when_the_pool_is_there_then_its_machines_go_first(arm: Arm) -> None:
    arm.create("gpu1", T4)
    arm.sdk.agent_pools.begin_delete(GROUP, NAME, "gpu1").result()
    with pytest.raises(ResourceNotFoundError) as caught:
        arm.get("gpu1")
    assert caught.value.error is not None
    assert caught.value.error.code == "NotFound"
    assert cluster_status(arm)["readyNodes"] == 1


def test_delete_when_the_pool_is_missing_then_204(arm: Arm) -> None:
    assert arm.request("DELETE", "/agentPools/nothing").status_code == 204
    arm.sdk.agent_pools.begin_delete(GROUP, NAME, "nothing").result()


def test_delete_when_answered_then_202_with_location_and_operation(arm: Arm) -> None:
    arm.create("gpu1", T4)
    slow(arm)
    answer = arm.request("DELETE", "/agentPools/gpu1")
    assert answer.status_code == 202
    assert arm.http.get(answer.headers["location"]).status_code == 202
    assert arm.get("gpu1")["provisioningState"] == "Deleting"


def test_delete_when_it_is_the_last_system_pool_then_refused(arm: Arm) -> None:
    answer = arm.request("DELETE", "/agentPools/nodepool1")
    assert (answer.status_code, answer.json()["code"]) == (400, "OperationNotAllowed")
    body = arm.get("nodepool1")
    assert arm.put("nodepool1", {**body, "mode": "User"}).status_code == 400
    arm.create("system2", {"count": 1, "mode": "System", "vmSize": "Standard_D4s_v5"})
    assert arm.request("DELETE", "/agentPools/nodepool1").status_code == 202


def test_second_operation_when_one_runs_then_409_names_it(arm: Arm) -> None:
    slow(arm)
    arm.put("gpu1", T4)
    with pytest.raises(ResourceExistsError) as caught:
        arm.create("gpu2", T4)
    assert caught.value.error is not None
    assert caught.value.error.code == "OperationNotAllowed"
    assert "Another agentpool operation (gpu1 - Creating) is in progress" in str(caught.value)
    assert arm.put("gpu1", T4).status_code == 409
    assert arm.request("GET", "/agentPools/gpu2").status_code == 404


def test_operation_when_the_service_itself_reconciles_then_409(arm: Arm) -> None:
    daemon.add_fault(arm.info, "background", cluster=NAME, seconds=1e6, state="Updating")
    answer = arm.put("gpu1", T4)
    assert answer.status_code == 409
    assert "Another operation (Updating) is in progress" in answer.json()["message"]
    assert arm.sdk.managed_clusters.get(GROUP, NAME).as_dict()["properties"]["provisioningState"] == "Updating"
    daemon.clear_faults(arm.info)
    assert arm.put("gpu1", T4).status_code == 201


def test_abort_when_a_pool_is_being_made_then_canceled_and_kept(arm: Arm) -> None:
    slow(arm)
    poller = arm.sdk.agent_pools.begin_create_or_update(GROUP, NAME, "gpu1", pool_of(T4), polling=False)
    del poller
    wait_for(lambda: nodes_of(arm, "gpu1"))
    arm.sdk.agent_pools.begin_abort_latest_operation(GROUP, NAME, "gpu1").result()
    assert arm.get("gpu1")["provisioningState"] == "Canceled"
    assert nodes_of(arm, "gpu1")
    daemon.configure(arm.info, pace={"settle_s": 1})
    assert arm.create("gpu1", T4)["provisioningState"] == "Succeeded"


def test_abort_when_the_create_is_polled_then_it_ends_canceled_without_error(arm: Arm) -> None:
    slow(arm)
    answer = arm.put("gpu1", T4)
    arm.sdk.agent_pools.begin_abort_latest_operation(GROUP, NAME, "gpu1").result()
    document = arm.http.get(answer.headers["azure-asyncoperation"]).json()
    assert (document["status"], "error" in document) == ("Canceled", False)


def test_abort_when_nothing_runs_then_409(arm: Arm) -> None:
    arm.create("gpu1", T4)
    assert arm.request("POST", "/agentPools/gpu1/abort").status_code == 409


def test_etag_when_conditions_are_sent_then_checked(arm: Arm) -> None:
    pools = arm.sdk.agent_pools
    made = arm.create("gpu1", T4)
    # The SDK turns this 412 into "exists", not into "modified".
    with pytest.raises(ResourceExistsError) as caught:
        pools.begin_create_or_update(
            GROUP, NAME, "gpu1", pool_of(T4), etag="*", match_condition=MatchConditions.IfMissing
        )
    assert caught.value.error is not None
    assert caught.value.error.code == "PreConditionFailed"
    with pytest.raises(ResourceModifiedError):
        pools.begin_create_or_update(
            GROUP, NAME, "gpu1", pool_of(T4), etag="old", match_condition=MatchConditions.IfNotModified
        )
    body = pool_of({**T4, "nodeLabels": {"a": "b"}})
    poller = pools.begin_create_or_update(
        GROUP, NAME, "gpu1", body, etag=str(made["eTag"]), match_condition=MatchConditions.IfNotModified
    )
    assert poller.result().as_dict()["properties"]["eTag"] != made["eTag"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"If-Match": '"x"'}, 412),
        ({"If-Match": "*"}, 412),
        ({"If-None-Match": "*"}, 201),
        ({"If-None-Match": '"x"'}, 400),
        ({"If-None-Match": "*", "If-Match": '"x"'}, 400),
    ],
)
def test_put_when_the_pool_is_missing_then_conditions_decide(arm: Arm, headers: dict[str, str], status: int) -> None:
    assert arm.put("gpu1", T4, headers=headers).status_code == status


def test_delete_when_the_etag_is_old_then_412(arm: Arm) -> None:
    arm.create("gpu1", T4)
    assert arm.request("DELETE", "/agentPools/gpu1", headers={"If-Match": '"old"'}).status_code == 412


def test_pool_operation_when_done_then_only_the_pools_etag_changed(arm: Arm) -> None:
    before = arm.request("GET", "").json()
    other = arm.get("nodepool1")["eTag"]
    arm.create("gpu1", T4)
    assert arm.request("GET", "").json()["eTag"] == before["eTag"]
    assert arm.get("nodepool1")["eTag"] == other


def test_continuation_token_when_resumed_then_the_same_operation_ends(arm: Arm) -> None:
    slow(arm)
    poller = arm.sdk.agent_pools.begin_create_or_update(GROUP, NAME, "gpu1", pool_of(T4))
    token = poller.continuation_token()
    daemon.configure(arm.info, speed=100_000_000)
    with make_sdk(arm.info) as sdk:
        none: object = None
        resumed = sdk.agent_pools.begin_create_or_update(GROUP, NAME, "gpu1", none, continuation_token=token)  # type: ignore[call-overload] # the body is not needed to resume
        assert resumed.result().as_dict()["properties"]["provisioningState"] == "Succeeded"
    poller.wait()  # it polls in a thread of its own, which must not meet the next test's sandbox


def test_failed_create_when_put_again_then_it_is_completed(arm: Arm) -> None:
    daemon.add_fault(arm.info, "operation", pool="gpu1", code="AllocationFailed", afterNodes=1)
    with pytest.raises(HttpResponseError) as caught:
        arm.create("gpu1", {**T4, "count": 2})
    assert caught.value.status_code == 200
    assert caught.value.error is not None
    assert caught.value.error.code == "AllocationFailed"
    failed = arm.get("gpu1")
    assert (failed["provisioningState"], len(nodes_of(arm, "gpu1"))) == ("Failed", 1)
    status = failed["status"]
    assert isinstance(status, dict)
    error = status["provisioningError"]
    assert error["details"][0]["code"] == "AllocationFailed"
    assert error["message"].startswith('Code="AllocationFailed" Message="Allocation failed.')
    made = arm.create("gpu1", {**T4, "count": 2})
    assert (made["provisioningState"], len(nodes_of(arm, "gpu1")), "status" in made) == ("Succeeded", 2, False)
