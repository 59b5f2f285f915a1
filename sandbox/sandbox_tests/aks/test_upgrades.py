"""Machines that are rolled: versions, surges, upgrades that are refused, fail half-way or take long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from azure.core.exceptions import HttpResponseError

from gpukube_sandbox import daemon
from gpukube_sandbox.aks.upgrades import Surge, running_version, surge_of
from sandbox_tests.aks.arm import NAME, T4, Json
from sandbox_tests.aks.test_lifecycle import nodes_of
from sandbox_tests.aks.test_nodes import kube_client, nodes
from sandbox_tests.watches import Nodes

if TYPE_CHECKING:
    from sandbox_tests.aks.arm import Arm

OLD: Json = {**T4, "orchestratorVersion": "1.33.5", "osSKU": "Ubuntu2404"}


@pytest.mark.parametrize(
    ("asked", "present", "running"),
    [
        ("", "", "1.34.2"),
        ("", "1.33.1", "1.33.1"),
        ("1.33.1", "", "1.33.1"),
        ("1.34", "", "1.34.2"),
        ("1.33", "", "1.33.5"),
        ("1.33", "1.33.1", "1.33.1"),
        ("1.34", "1.34.0", "1.34.0"),
    ],
)
def test_version_when_asked_for_then_resolved_to_the_one_that_runs(asked: str, present: str, running: str) -> None:
    assert running_version(asked, "1.34.2", present) == running


@pytest.mark.parametrize(
    ("settings", "surge"),
    [
        ({"maxSurge": "10%", "maxUnavailable": "0"}, Surge(1, 0)),
        ({"maxSurge": "33%"}, Surge(4, 0)),
        ({"maxSurge": "2", "maxUnavailable": "0"}, Surge(2, 0)),
        ({"maxSurge": "0", "maxUnavailable": "1"}, Surge(0, 1)),
        ({"maxSurge": "0", "maxUnavailable": "0"}, Surge(1, 0)),
    ],
)
def test_surge_when_read_then_percentages_are_rounded_up(settings: Json, surge: Surge) -> None:
    assert surge_of({"upgradeSettings": settings}, 10) == surge


def test_version_when_given_without_a_patch_then_kept_as_written(arm: Arm) -> None:
    made = arm.create("gpu1", {**T4, "orchestratorVersion": "1.34"})
    assert (made["orchestratorVersion"], made["currentOrchestratorVersion"]) == ("1.34", "1.34.2")
    before = nodes_of(arm, "gpu1")
    again = arm.create("gpu1", {**made, "tags": {"a": "b"}})
    assert (again["orchestratorVersion"], nodes_of(arm, "gpu1")) == ("1.34", before)


def test_upgrade_when_the_version_rises_then_new_machines_run_it(arm: Arm) -> None:
    made = arm.create("gpu1", {**OLD, "count": 2})
    with kube_client(arm) as kube:
        old = {node["metadata"]["name"]: node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes(kube, "gpu1")}
        changed = arm.create("gpu1", {**made, "orchestratorVersion": "1.34.2"})
        new = {node["metadata"]["name"]: node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes(kube, "gpu1")}
    assert changed["currentOrchestratorVersion"] == "1.34.2"
    assert (set(old.values()), set(new.values()), len(new)) == ({"v1.33.5"}, {"v1.34.2"}, 2)
    assert not old.keys() & new.keys()


def test_upgrade_when_it_starts_then_the_state_says_so_and_old_nodes_keep_the_image_they_have(arm: Arm) -> None:
    made = arm.create("gpu1", {**OLD, "osSKU": "Ubuntu2204"})
    daemon.configure(arm.info, pace={"drain_s": 1e6})
    answer = arm.put("gpu1", {**made, "osSKU": "Ubuntu2404", "nodeLabels": {"team": "a"}})
    assert answer.json()["properties"]["provisioningState"] == "UpgradingNodeImageVersion"
    with kube_client(arm) as kube:
        labels = [node["metadata"]["labels"] for node in nodes(kube, "gpu1")]
    (old,) = [each for each in labels if each["kubernetes.azure.com/os-sku-requested"] == "Ubuntu2204"]
    assert old["kubernetes.azure.com/node-image-version"].startswith("AKSUbuntu-2204")


@pytest.mark.parametrize(
    ("settings", "most", "least"),
    [({"maxSurge": "2", "maxUnavailable": "0"}, 5, 3), ({"maxSurge": "0", "maxUnavailable": "1"}, 3, 2)],
    ids=["surge", "none"],
)
def test_upgrade_when_machines_are_few_at_a_time_then_the_pool_stays_within_its_settings(
    arm: Arm, settings: Json, most: int, least: int
) -> None:
    made = arm.create("gpu1", {**OLD, "count": 3, "upgradeSettings": settings})
    before = nodes_of(arm, "gpu1")
    with kube_client(arm) as kube:
        history = Nodes(kube, "kubernetes.azure.com/agentpool=gpu1")
        arm.create("gpu1", {**made, "orchestratorVersion": "1.34.2"})
        sizes = history.sizes()
    assert (max(sizes), min(sizes)) == (most, least)
    assert not set(before) & set(nodes_of(arm, "gpu1"))


def test_system_when_it_becomes_another_family_then_the_machines_are_made_anew_in_place(arm: Arm) -> None:
    made = arm.create("gpu1", {**OLD, "count": 2})
    before = nodes_of(arm, "gpu1")
    changed = arm.create("gpu1", {**made, "osSKU": "AzureLinux"})
    assert str(changed["nodeImageVersion"]).startswith("AKSAzureLinux")
    assert (len(nodes_of(arm, "gpu1")), set(before) & set(nodes_of(arm, "gpu1"))) == (2, set())


@pytest.mark.parametrize(
    ("profile", "is_reimaged"),
    [
        ({"localDNSProfile": {"mode": "Required"}}, True),
        ({"artifactStreamingProfile": {"enabled": True}}, True),
        ({"artifactStreamingProfile": {"enabled": False}}, False),
        ({"networkProfile": {"allowedHostPorts": [{"portStart": 80, "portEnd": 80}]}}, False),
    ],
    ids=str,
)
def test_profile_when_it_changes_then_machines_are_made_anew_if_it_needs_a_reimage(
    arm: Arm, profile: Json, *, is_reimaged: bool
) -> None:
    """Docs: aks/node-disruption-policy, node pool-level operations; the image stays."""
    made = arm.create("gpu1", OLD)
    before = nodes_of(arm, "gpu1")
    changed = arm.create("gpu1", {**made, **profile})
    assert changed["nodeImageVersion"] == made["nodeImageVersion"]
    assert (set(before) == set(nodes_of(arm, "gpu1"))) != is_reimaged


UNMOVED: dict[str, dict[str, str]] = {
    "an image of the GPU VHD": {"nodeImageVersion": "AKSUbuntu-1804gen2gpucontainerd-202501.05.0"},
    "an image of Ubuntu 20.04 for confidential machines": {"nodeImageVersion": "AKSUbuntu-2004gen2cvmcontainerd-1"},
    "sandboxed pods": {"osSKU": "AzureLinux", "workloadRuntime": "KataVmIsolation"},
}


@pytest.mark.parametrize("case", UNMOVED)
def test_system_when_the_pool_is_one_that_cannot_migrate_then_refused(arm: Arm, case: str) -> None:
    arm.create("gpu1", OLD)
    daemon.tamper(arm.info, NAME, "gpu1", delete=False, **UNMOVED[case])
    made = arm.get("gpu1")
    sku = "Ubuntu" if made["osSKU"] == "AzureLinux" else "AzureLinux"
    answer = arm.put("gpu1", {**made, "osSKU": sku})
    assert (answer.status_code, answer.json()["target"]) == (400, "properties.osSKU")
    assert arm.get("gpu1") == made


REFUSED: dict[str, tuple[Json, Json, str]] = {
    "older": ({**T4}, {"orchestratorVersion": "1.33.5"}, "agentPoolProfile.orchestratorVersion"),
    "above the control plane": ({**OLD}, {"orchestratorVersion": "1.35.0"}, "agentPoolProfile.orchestratorVersion"),
    "and scaled": ({**OLD}, {"orchestratorVersion": "1.34.2", "count": 2}, "agentPoolProfile.count"),
    "image and scaled": ({**OLD}, {"osSKU": "Ubuntu2204", "count": 2}, "agentPoolProfile.count"),
    "another family and scaled": ({**OLD}, {"osSKU": "AzureLinux", "count": 2}, "agentPoolProfile.count"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_upgrade_when_aks_does_not_do_it_then_refused_and_nothing_moves(arm: Arm, case: str) -> None:
    made_from, change, target = REFUSED[case]
    made = arm.create("gpu1", made_from)
    answer = arm.put("gpu1", {**made, **change})
    assert (answer.status_code, answer.json()["target"]) == (400, target)
    assert arm.get("gpu1") == made


def test_upgrade_when_the_surge_would_pass_the_largest_pool_then_refused(arm: Arm) -> None:
    made = arm.create("gpu1", {**OLD, "count": 0})
    daemon.tamper(arm.info, NAME, "gpu1", provisioningState="Failed")
    settings = {"maxSurge": "1001", "maxUnavailable": "0"}
    answer = arm.put("gpu1", {**made, "orchestratorVersion": "1.34.2", "upgradeSettings": settings})
    assert answer.json()["target"] == "agentPoolProfile.upgradeSettings.maxSurge"


def test_upgrade_when_it_fails_half_way_then_the_same_put_completes_it(arm: Arm) -> None:
    made = arm.create("gpu1", {**OLD, "count": 3})
    before = set(nodes_of(arm, "gpu1"))
    daemon.add_fault(arm.info, "operation", pool="gpu1", kind="Upgrading", code="QuotaExceeded", afterNodes=1)
    wanted = {**made, "orchestratorVersion": "1.34.2"}
    with pytest.raises(HttpResponseError) as caught:
        arm.create("gpu1", wanted)
    assert caught.value.error is not None
    assert caught.value.error.code == "QuotaExceeded"
    assert arm.get("gpu1")["provisioningState"] == "Failed"
    assert len(before & set(nodes_of(arm, "gpu1"))) == 2
    assert arm.create("gpu1", wanted)["provisioningState"] == "Succeeded"
    assert len(set(nodes_of(arm, "gpu1")) - before) == 3


@pytest.mark.parametrize(
    ("change", "kind"),
    [({"tags": {"a": "b"}}, "Updating"), ({"count": 3}, "Scaling"), ({"scaleDownMode": "Deallocate"}, "Updating")],
)
def test_update_when_made_to_fail_then_the_pool_keeps_what_was_asked_and_says_why(
    arm: Arm, change: Json, kind: str
) -> None:
    made = arm.create("gpu1", T4)
    daemon.add_fault(arm.info, "operation", pool="gpu1", kind=kind, code="NodesNotReady")
    with pytest.raises(HttpResponseError):
        arm.create("gpu1", {**made, **change})
    failed = arm.get("gpu1")
    assert change.items() <= failed.items()
    assert (failed["provisioningState"], "status" in failed) == ("Failed", True)
    assert arm.create("gpu1", {**made, **change})["provisioningState"] == "Succeeded"


def test_update_when_made_slow_then_it_blocks_the_cluster_that_long(arm: Arm) -> None:
    made = arm.create("gpu1", T4)
    daemon.add_fault(arm.info, "operation", pool="gpu1", kind="Updating", seconds=1e6)
    assert arm.put("gpu1", {**made, "tags": {"a": "b"}}).status_code == 200
    again = arm.put("gpu1", {**made, "tags": {"a": "c"}})
    assert (again.status_code, again.json()["code"]) == (409, "OperationNotAllowed")
