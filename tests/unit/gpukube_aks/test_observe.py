"""Live pools as the service answers them: what is read, what is dropped, and that a created pool has no differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from gpukube.core.diff import diff_fields
from gpukube.core.fields import INSTANCE_TYPE, MIG_PROFILE
from gpukube.core.values import Capacity, Disk, Nodes, Ownership, Promise, Reservation, Taint, Upgrade
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube_aks import AksProvider
from gpukube_aks.pool.observe import observe_pool, pool_failure
from tests.builders import make_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Desired, Target

T4 = "Standard_NC4as_T4_v3"
SPOT_TAINT = "kubernetes.azure.com/scalesetpriority=spot:NoSchedule"

# What a pool reads back although nobody sent it (docs: aks, outputs of az aks nodepool show; Azure/ARO-HCP#6447).
SERVER_DEFAULTS: dict[str, object] = {
    "eTag": "abc",
    "provisioningState": "Succeeded",
    "powerState": {"code": "Running"},
    "orchestratorVersion": "1.34.2",
    "currentOrchestratorVersion": "1.34.2",
    "nodeImageVersion": "AKSUbuntu-2404gen2containerd-202608.01.0",
    "enableAutoScaling": False,
    "enableNodePublicIP": False,
    "enableEncryptionAtHost": False,
    "enableUltraSSD": False,
    "enableFIPS": False,
    "osDiskSizeGB": 128,
    "osDiskType": "Ephemeral",
    "kubeletDiskType": "OS",
    "osSKU": "Ubuntu",
    "maxPods": 30,
    "scaleDownMode": "Delete",
    "scaleSetPriority": "Regular",
    "upgradeSettings": {"maxSurge": "10%", "maxUnavailable": "0"},
    "securityProfile": {"enableVTPM": False, "enableSecureBoot": False},
    "gpuProfile": {"driver": "Install"},
    "status": {},
}


def desire(target: Target) -> Desired:
    ownership = Ownership("cloud", "chart", "c-1", {"gpukube.io/advertiser": "chart"}, "")
    return AksProvider().desired(target, ownership, Promise({}, target.nodes))


def answer(desired: Desired, **properties: object) -> dict[str, object]:
    """What the service reads back of a pool that was made by this request."""
    body = cast("Mapping[str, Mapping[str, object]]", desired.create.params["body"])
    sent = dict(body["properties"])
    live = {**SERVER_DEFAULTS, **sent, **properties}
    if live["scaleSetPriority"] == "Spot":
        labels, taints = cast("dict[str, str]", live["nodeLabels"]), cast("list[str]", live.get("nodeTaints", []))
        live |= {"nodeLabels": labels | {"kubernetes.azure.com/scalesetpriority": "spot"}}
        live |= {"nodeTaints": [*taints, SPOT_TAINT], "scaleSetEvictionPolicy": "Delete"}
        live.setdefault("spotMaxPrice", -1.0)
    return {"id": "/subscriptions/s", "name": desired.target.name, "type": "t", "properties": live}


GROUP = Reservation(
    "capacityReservationGroup",
    "/subscriptions/S/resourceGroups/R/providers/Microsoft.Compute/capacityReservationGroups/G",
)
RESERVED = "capacity.reserved.aks.capacityReservationGroup"

TARGETS: dict[str, Target] = {
    "plain": make_target(T4),
    "MIG": make_target(sharing=Sharing(MigCut("1g.5gb", "mixed"))),
    "H200 cut in two": make_target("Standard_ND96isr_H200_v5", sharing=Sharing(MigCut("3g.71gb", "single"))),
    "slices": make_target(T4, sharing=Sharing(slicing=Slicing("time-slicing", 4))),
    "autoscaled": make_target(T4, nodes=Nodes(1, 1, 5, autoscaled=True)),
    "Spot": make_target(T4, capacity=Capacity("spot")),
    "Spot at -1": make_target(T4, capacity=Capacity("spot", -1)),
    "Spot with a price": make_target(T4, capacity=Capacity("spot", 1.25)),
    "no taints": make_target(T4, taints=(), gpu_taint=False),
    "many taints": make_target(T4, taints=(Taint("z", "1", "NoExecute"), Taint("a", "2", "NoSchedule"))),
    "zones and disk": make_target(T4, zones=("2", "1"), disk=Disk(256, "Managed")),
    "labels and tags": make_target(T4, labels={"a": "b"}, tags={"cost": "1"}),
    "protected": make_target(T4, protect=True),
    "managed by AKS": make_target(T4, plugin_owner="cloud"),
    "own driver": make_target(T4, driver_owner="none", plugin_owner="none"),
    "reserved": make_target(T4, capacity=Capacity("reserved", reservation=GROUP)),
    "chosen software": make_target(
        T4, image="AzureLinux", kubernetes_version="1.34", max_pods=30, upgrade=Upgrade("0", "1")
    ),
    "native": make_target(
        T4,
        native={
            "upgradeSettings": {"drainTimeoutInMinutes": 60},
            "vnetSubnetID": "/subscriptions/S/resourceGroups/RG/subnets/x",
        },
    ),
}


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS.keys())
def test_pool_when_read_back_after_creation_has_no_differences(target: Target) -> None:
    desired = desire(target)
    observed = observe_pool(answer(desired))

    assert diff_fields(desired.fields, observed.fields) == ()
    assert (observed.owner, observed.pool, observed.protected) == ("ml-platform", "a100mig", target.protect)
    assert set(observed.effective_taints) == set(desired.effective_taints)


CHANGES = [
    ("plain", {"count": 3}, {"nodes.count"}),
    ("plain", {"nodeTaints": []}, {"taints"}),
    ("plain", {"gpuProfile": {"driver": "None"}}, {"driver"}),
    ("plain", {"gpuProfile": {"nvidia": {"managementMode": "Managed"}}}, {"devicePlugin"}),
    ("plain", {"scaleSetPriority": "Spot", "spotMaxPrice": 2}, {"capacity.type", "capacity.maxPrice"}),
    ("plain", {"gpuInstanceProfile": "MIG1g"}, {"sharing.mig.profile"}),
    (
        "plain",
        {"enableAutoScaling": True, "minCount": 1, "maxCount": 2},
        {"nodes.count", "nodes.autoscaling.min", "nodes.autoscaling.max"},
    ),
    ("MIG", {"gpuInstanceProfile": "MIG2g"}, {"sharing.mig.profile"}),
    ("autoscaled", {"count": 4}, set()),
    ("autoscaled", {"maxCount": 9}, {"nodes.autoscaling.max"}),
    ("plain", {"vmSize": "standard_nc4as_t4_V3"}, set()),
    ("plain", {"vmSize": "Standard_NC8as_T4_v3"}, {"instanceType"}),
    ("plain", {"tags": {"added": "by policy"}}, set()),
    ("labels and tags", {"tags": {}}, {"tags[cost]"}),
    ("native", {"upgradeSettings": {"drainTimeoutInMinutes": 5}}, {"aks.upgradeSettings.drainTimeoutInMinutes"}),
    ("plain", {"upgradeSettings": {"maxSurge": "1"}, "osSKU": "AzureLinux", "maxPods": 60}, set()),
    ("chosen software", {"upgradeSettings": {"maxSurge": "1", "maxUnavailable": "1"}}, {"upgrade.maxSurge"}),
    ("own driver", {"gpuProfile": None}, {"driver"}),
    ("chosen software", {"upgradeSettings": None}, {"upgrade.maxSurge", "upgrade.maxUnavailable"}),
    ("chosen software", {"osSKU": "Ubuntu"}, {"image"}),
    ("chosen software", {"maxPods": 60}, {"maxPodsPerNode"}),
    ("chosen software", {"currentOrchestratorVersion": "1.34.9"}, set()),
    ("chosen software", {"currentOrchestratorVersion": "1.33.5"}, {"kubernetesVersion"}),
    ("plain", {"capacityReservationGroupID": GROUP.id}, {"capacity.type", RESERVED}),
    ("reserved", {"capacityReservationGroupID": GROUP.id.upper()}, set()),
    ("reserved", {"capacityReservationGroupID": f"{GROUP.id}2"}, {RESERVED}),
    ("reserved", {"capacityReservationGroupID": None}, {"capacity.type", RESERVED}),
    ("native", {"vnetSubnetID": "/subscriptions/s/resourcegroups/rg/subnets/X"}, set()),
]


@pytest.mark.parametrize(("name", "live", "expected"), CHANGES)
def test_pool_when_changed_behind_our_back_differs_in_that_field_only(
    name: str, live: dict[str, object], expected: set[str]
) -> None:
    desired = desire(TARGETS[name])
    observed = observe_pool(answer(desired, **live))

    assert {str(change.field) for change in diff_fields(desired.fields, observed.fields)} == expected


def test_protection_when_taken_off_the_live_pool_is_one_difference() -> None:
    desired = desire(TARGETS["protected"])
    labels = {key: value for key, value in desired.labels.items() if key != "gpukube.io/protect"}
    observed = observe_pool(answer(desired, nodeLabels=labels))

    assert [str(change.field) for change in diff_fields(desired.fields, observed.fields)] == ["deletionProtection"]
    assert not observed.protected


def test_profile_when_read_is_named_as_nvidia_does() -> None:
    known = observe_pool(answer(desire(TARGETS["MIG"])))
    unknown = observe_pool(answer(desire(TARGETS["plain"]), vmSize="Standard_New_v9", gpuInstanceProfile="MIG3g"))

    assert known.fields[MIG_PROFILE] == "1g.5gb"
    assert unknown.fields[MIG_PROFILE] == "MIG3g"


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("Succeeded", "ready"),
        ("Failed", "failed"),
        ("Canceled", "failed"),
        ("Creating", "busy"),
        ("Deleting", "deleting"),
        ("UpgradingNodeImageVersion", "busy"),
        ("SomethingNew", "busy"),
    ],
)
def test_state_when_read_treats_unknown_words_as_busy(status: str, state: str) -> None:
    observed = observe_pool({"name": "p", "properties": {"provisioningState": status}})

    assert (observed.status, observed.state) == (status, state)


@pytest.mark.parametrize(
    ("working", "power", "state", "status"),
    [
        ("Succeeded", "Stopped", "ready", "Stopped"),
        ("Starting", "Stopped", "busy", "Starting"),
        ("Succeeded", "Hibernating", "busy", "Hibernating"),
    ],
)
def test_pool_when_stopped_says_so_once_nothing_works_on_it(working: str, power: str, state: str, status: str) -> None:
    properties = {"provisioningState": working, "powerState": {"code": power}}
    observed = observe_pool({"name": "p", "properties": properties})

    assert (observed.state, observed.status) == (state, status)


UNKNOWN_WORDS = [
    ({"scaleSetPriority": "Interruptible"}, "capacity.type", "Interruptible", "refused"),
    ({"gpuProfile": {"driver": "Deferred"}}, "driver", "Deferred", "refused"),
    ({"gpuProfile": {"nvidia": {"managementMode": "Shared"}}}, "devicePlugin", "Shared", "refused"),
    ({"gpuInstanceProfile": "MIG9g"}, "sharing.mig.profile", "MIG9g", "replace"),
    ({"nodeTaints": ["a=b:NoNewPods"]}, "taints", ("a=b:NoNewPods",), "refused"),
    ({"osSKU": "Haiku"}, "image", "Haiku", "replace"),
    ({"osDiskType": "Holographic"}, "disk.type", "Holographic", "replace"),
]


@pytest.mark.parametrize(("live", "field", "value", "kind"), UNKNOWN_WORDS)
def test_word_when_nobody_knows_it_is_shown_as_it_came_and_never_overwritten(
    live: dict[str, object], field: str, value: object, kind: str
) -> None:
    desired = desire(make_target(T4, image="Ubuntu", disk=Disk(128, "Ephemeral")))
    (change,) = diff_fields(desired.fields, observe_pool(answer(desired, **live)).fields)

    assert (str(change.field), change.old) == (field, value)
    assert AksProvider().update_row(change, (), None).kind == kind


def test_pool_of_somebody_else_when_read_has_no_owner() -> None:
    observed = observe_pool({"name": "nodepool1", "properties": {"vmSize": "Standard_D4s_v5", "mode": "System"}})

    assert (observed.owner, observed.pool, observed.nodes, observed.etag) == ("", "", None, "")
    assert observed.fields[INSTANCE_TYPE] == "Standard_D4s_v5"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ({}, ""),
        ({"code": "NodesNotReady", "message": "3 of 3"}, "NodesNotReady: 3 of 3"),
        ({"code": "NodesNotReady"}, "NodesNotReady"),
        (
            {"code": "Outer", "message": 'Code="In"', "details": [{"code": "AllocationFailed", "message": "no room"}]},
            "AllocationFailed: no room",
        ),
        ({"error": {"code": "A", "message": "b"}}, "A: b"),
    ],
)
def test_failure_when_kept_by_the_pool_is_told_in_its_clean_form(error: dict[str, object], text: str) -> None:
    assert pool_failure({"status": {"provisioningError": error}}) == text
