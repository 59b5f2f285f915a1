"""The table of properties against the models of the real SDK, and recorded bodies of real clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from azure.mgmt.containerservice import models

from gpukube_sandbox import daemon
from gpukube_sandbox.aks.schema import FIELDS, READ_ONLY, Field, immutable_fields
from gpukube_sandbox.aks.versions import API_VERSIONS
from sandbox_tests.aks.arm import API, Json

if TYPE_CHECKING:
    from enum import Enum

    from sandbox_tests.aks.arm import Arm


def wire_names(model: type) -> dict[str, list[str] | None]:
    """Wire name of every property of an SDK model, with its visibility."""
    found: dict[str, list[str] | None] = {}
    for base in model.__mro__:
        for name, value in vars(base).items():
            if type(value).__name__ == "_RestField":
                found[value._rest_name_input or name] = value._visibility
    return found


MODELS: list[tuple[dict[str, Field], type]] = [
    (FIELDS, models.ManagedClusterAgentPoolProfileProperties),
    (dict(FIELDS["gpuProfile"].fields), models.GPUProfile),
    (dict(dict(FIELDS["gpuProfile"].fields)["nvidia"].fields), models.NvidiaGPUProfile),
    (dict(FIELDS["upgradeSettings"].fields), models.AgentPoolUpgradeSettings),
    (dict(FIELDS["securityProfile"].fields), models.AgentPoolSecurityProfile),
    (dict(FIELDS["powerState"].fields), models.PowerState),
]


@pytest.mark.parametrize(("fields", "model"), MODELS, ids=[model.__name__ for _, model in MODELS])
def test_schema_when_the_newest_stable_version_is_asked_then_the_sdks_names(
    fields: dict[str, Field], model: type
) -> None:
    assert {name for name, field in fields.items() if field.is_offered(API)} == set(wire_names(model))


CHOICES: list[tuple[str, type[Enum]]] = [
    ("gpuInstanceProfile", models.GPUInstanceProfile),
    ("mode", models.AgentPoolMode),
    ("type", models.AgentPoolType),
    ("osType", models.OSType),
    ("osSKU", models.OSSKU),
    ("osDiskType", models.OSDiskType),
    ("kubeletDiskType", models.KubeletDiskType),
    ("scaleDownMode", models.ScaleDownMode),
    ("scaleSetPriority", models.ScaleSetPriority),
    ("scaleSetEvictionPolicy", models.ScaleSetEvictionPolicy),
    ("workloadRuntime", models.WorkloadRuntime),
    ("podIPAllocationMode", models.PodIPAllocationMode),
]


@pytest.mark.parametrize(("name", "enum"), CHOICES, ids=[name for name, _ in CHOICES])
def test_schema_when_a_property_has_choices_then_the_sdks(name: str, enum: type[Enum]) -> None:
    assert set(FIELDS[name].choices) == {str(member.value) for member in enum}


def test_schema_when_the_sdk_calls_a_property_read_only_then_so_do_we() -> None:
    names = wire_names(models.ManagedClusterAgentPoolProfileProperties)
    assert {name for name, visibility in names.items() if visibility == ["read"]} <= READ_ONLY


def test_schema_when_properties_need_a_new_pool_then_the_expensive_ones_are_among_them() -> None:
    known = set(immutable_fields())
    assert {"vmSize", "gpuInstanceProfile", "gpuProfile.driver", "scaleSetPriority", "availabilityZones"} <= known
    assert not known & {"count", "nodeLabels", "nodeTaints", "tags", "minCount", "maxCount", "mode", "osSKU"}


def test_versions_when_the_sdk_has_a_default_then_it_is_known() -> None:
    assert API in API_VERSIONS
    assert list(API_VERSIONS) == sorted(API_VERSIONS)


COMMON: Json = {
    "osType": "Linux", "enableNodePublicIP": False, "count": 1, "enableAutoScaling": False,
    "upgradeSettings": {"undrainableNodeBehavior": "Schedule"}, "type": "VirtualMachineScaleSets",
    "enableEncryptionAtHost": False, "enableUltraSSD": False, "enableFIPS": False, "mode": "User",
    "scaleDownMode": "Delete", "scaleSetPriority": "Regular", "nodeTaints": [],
}  # fmt: skip
RECORDED: dict[str, Json] = {
    # what the az command 2.91.0 sends
    "mig": {**COMMON, "vmSize": "Standard_ND96asr_v4", "gpuInstanceProfile": "MIG1g"},
    "autoscaled": {
        **COMMON, "vmSize": "Standard_NC4as_T4_v3", "enableAutoScaling": True, "minCount": 0, "maxCount": 5,
        "nodeLabels": {"workload": "gpu"}, "nodeTaints": ["sku=gpu:NoSchedule"],
    },
    "spot": {
        **COMMON, "vmSize": "Standard_NC4as_T4_v3", "scaleSetPriority": "Spot", "scaleSetEvictionPolicy": "Delete",
        "spotMaxPrice": -1.0,
    },
    "driver-none": {**COMMON, "vmSize": "Standard_NC4as_T4_v3", "gpuProfile": {"driver": "None"}},
    "h100": {
        **COMMON, "vmSize": "Standard_NC40ads_H100_v5", "osSKU": "Ubuntu2404", "tags": {"team": "x"},
        "osDiskSizeGB": 256, "osDiskType": "Ephemeral", "availabilityZones": ["1", "2"], "maxPods": 60,
        "upgradeSettings": {"maxSurge": "1", "undrainableNodeBehavior": "Schedule"},
    },
    "reserved": {
        **COMMON, "vmSize": "Standard_NC24ads_A100_v4", "availabilityZones": ["1"],
        "capacityReservationGroupID": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute"
        "/capacityReservationGroups/a100",
    },
    # the how-to's smallest body, and what SDK 40.2.0 always adds
    "smallest": {
        "count": 1, "vmSize": "Standard_ND96asr_v4", "type": "VirtualMachineScaleSets", "gpuInstanceProfile": "MIG1g",
    },
    "sdk-40": {
        "count": 1, "vmSize": "Standard_NC4as_T4_v3", "osType": "Linux", "scaleSetPriority": "Regular",
        "scaleSetEvictionPolicy": "Delete", "spotMaxPrice": -1.0,
    },
}  # fmt: skip


@pytest.mark.parametrize("case", RECORDED)
def test_put_when_a_real_client_sent_the_body_then_accepted(arm: Arm, case: str) -> None:
    body = RECORDED[case]
    daemon.declare(arm.info, "aks", resources=[body[key] for key in ("capacityReservationGroupID",) if key in body])
    answer = arm.put("gpu1", body, api="2026-06-01")
    assert answer.status_code == 201
    shown = answer.json()["properties"]
    ignored = {"nodeTaints", "upgradeSettings", "spotMaxPrice", "scaleSetEvictionPolicy"}
    assert {k: v for k, v in body.items() if k not in ignored}.items() <= shown.items()
