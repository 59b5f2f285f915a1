"""What AKS refuses: one case per rule, with status, code and target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandbox_tests.aks.arm import MIG, T4, Json

if TYPE_CHECKING:
    from sandbox_tests.aks.arm import Arm

SPOT: Json = {**T4, "scaleSetPriority": "Spot"}
SCALED: Json = {**T4, "enableAutoScaling": True, "minCount": 0, "maxCount": 3}
SYSTEM: Json = {"count": 1, "vmSize": "Standard_D4s_v5", "mode": "System"}
RESERVED = (
    "/subscriptions/11111111-2222-3333-4444-555555555555/resourcegroups/ml/providers/Microsoft.Compute"
    "/capacityreservationgroups/t4"
)
PREVIEW = "2026-08-02-preview"

# name -> properties, code, part of the message, target
REFUSED: dict[str, tuple[Json, str, str, str]] = {
    "count-missing": (
        {"vmSize": "Standard_NC4as_T4_v3"},
        "InvalidParameter",
        "Required parameter properties.count is missing (null).",
        "properties.count",
    ),
    "count-null": ({**T4, "count": None}, "InvalidParameter", "is missing (null)", "properties.count"),
    "count-negative": ({**T4, "count": -1}, "InvalidParameter", "count was -1", "agentPoolProfile.count"),
    "count-above-1000": ({**T4, "count": 1001}, "InvalidParameter", "1000", "agentPoolProfile.count"),
    "count-zero-of-system": ({**SYSTEM, "count": 0}, "InvalidParameter", "count was 0", "agentPoolProfile.count"),
    "unknown-property": ({**T4, "gpus": 1}, "UnmarshalError", 'json: unknown field "gpus"', ""),
    "unknown-nested-property": ({**T4, "gpuProfile": {"drivers": "None"}}, "UnmarshalError", '"drivers"', ""),
    "preview-property": ({**T4, "nodeInitializationTaints": []}, "UnmarshalError", "nodeInitializationTaints", ""),
    "taints-as-string": ({**T4, "nodeTaints": "a=b:NoSchedule"}, "UnmarshalError", "cannot unmarshal string", ""),
    "count-as-string": ({**T4, "count": "1"}, "UnmarshalError", "of type int32", ""),
    "bool-as-count": ({**T4, "count": True}, "UnmarshalError", "cannot unmarshal bool", ""),
    "label-value-number": ({**T4, "nodeLabels": {"a": 1}}, "UnmarshalError", "map[string]string", ""),
    "unknown-choice": ({**T4, "mode": "Worker"}, "InvalidParameter", "'Worker'", "agentPoolProfile.mode"),
    "unknown-size": ({**T4, "vmSize": "Standard_NC1"}, "VMSizeNotSupported", "'Standard_NC1' is not supported", ""),
    "restricted-size": ({**T4, "vmSize": "Standard_A1_v2"}, "BadRequest", "are restricted by AKS", ""),
    "zone-not-offered": (
        {**MIG, "availabilityZones": ["3"]},
        "AvailabilityZoneNotSupported",
        "zone(s) '3'",
        "agentPoolProfile.availabilityZones",
    ),
    **{
        f"upgrade-{name}": (
            {**T4, "upgradeSettings": settings},
            "InvalidParameter",
            said,
            f"agentPoolProfile.upgradeSettings.{target}",
        )
        for name, settings, said, target in (
            ("surge-in-words", {"maxSurge": "one"}, "'one'", "maxSurge"),
            ("surge-above-all", {"maxSurge": "101%"}, "'101%'", "maxSurge"),
            ("unavailable-negative", {"maxUnavailable": "-1"}, "'-1'", "maxUnavailable"),
            ("nothing-at-all", {"maxSurge": "0", "maxUnavailable": "0%"}, "both be 0", "maxSurge"),
            ("nothing-and-the-default", {"maxSurge": "0"}, "both be 0", "maxSurge"),
            ("drain-too-short", {"drainTimeoutInMinutes": 4}, "between 5 and 1440", "drainTimeoutInMinutes"),
            ("soak-too-long", {"nodeSoakDurationInMinutes": 31}, "between 0 and 30", "nodeSoakDurationInMinutes"),
        )
    },
    "upgrade-of-system-with-some-missing": (
        {**SYSTEM, "upgradeSettings": {"maxSurge": "0", "maxUnavailable": "1"}},
        "InvalidParameter",
        "System",
        "agentPoolProfile.upgradeSettings.maxUnavailable",
    ),
    "reservation-by-name": (
        {**T4, "capacityReservationGroupID": "t4"},
        "InvalidParameter",
        "'t4' is not the ID",
        "agentPoolProfile.capacityReservationGroupID",
    ),
    **{
        f"reservation-{name}": (
            {**T4, "capacityReservationGroupID": RESERVED, **more},
            "BadRequest",
            said,
            "agentPoolProfile.capacityReservationGroupID",
        )
        for name, more, said in (
            ("of-spot", {"scaleSetPriority": "Spot"}, "Spot"),
            ("beside-a-placement-group", {"proximityPlacementGroupID": "/p"}, "proximityPlacementGroupID"),
            ("beside-hosts", {"hostGroupID": "/h"}, "hostGroupID"),
            ("beside-ultra-disks", {"enableUltraSSD": True}, "enableUltraSSD"),
            ("of-nd", {"vmSize": "Standard_ND96asr_v4"}, "Standard_ND96asr_v4"),
            ("of-h100-nvl", {"vmSize": "Standard_NC40ads_H100_v5"}, "no reservation"),
        )
    },
    "version-above-the-plane-by-a-patch": (
        {**T4, "orchestratorVersion": "1.34.3"},
        "NodePoolMcVersionIncompatible",
        "1.34.3",
        "agentPoolProfile.orchestratorVersion",
    ),
    "version-of-another-cloud": (
        {**T4, "orchestratorVersion": "1.34.1-gke.5"},
        "NodePoolMcVersionIncompatible",
        "1.34.1-gke.5",
        "agentPoolProfile.orchestratorVersion",
    ),
    "mig-without-gpu": (
        {**SYSTEM, "mode": "User", "gpuInstanceProfile": "MIG1g"},
        "InvalidParameter",
        "'MIG1g' is not supported by VM size",
        "agentPoolProfile.gpuInstanceProfile",
    ),
    "mig-on-t4": (
        {**T4, "gpuInstanceProfile": "MIG1g"},
        "InvalidParameter",
        "Standard_NC4as_T4_v3",
        "agentPoolProfile.gpuInstanceProfile",
    ),
    "mig-unknown-name": (
        {**MIG, "gpuInstanceProfile": "1g.5gb"},
        "InvalidParameter",
        "1g.5gb",
        "agentPoolProfile.gpuInstanceProfile",
    ),
    "mig-on-windows": (
        {**MIG, "osType": "Windows", "osSKU": "Windows2022"},
        "InvalidParameter",
        "Linux",
        "agentPoolProfile.gpuInstanceProfile",
    ),
    "driver-type-on-linux": ({**T4, "gpuProfile": {"driverType": "GRID"}}, "UnmarshalError", "driverType", ""),
    "managed-without-gpu": (
        {**SYSTEM, "mode": "User", "gpuProfile": {"nvidia": {"managementMode": "Managed"}}},
        "InvalidParameter",
        "no NVIDIA GPU",
        "agentPoolProfile.gpuProfile.nvidia.managementMode",
    ),
    "managed-autoscaled": (
        {**SCALED, "gpuProfile": {"nvidia": {"managementMode": "Managed"}}},
        "InvalidParameter",
        "autoscaler",
        "agentPoolProfile.enableAutoScaling",
    ),
    "min-without-autoscaling": ({**T4, "minCount": 1}, "InvalidParameter", "minCount", "agentPoolProfile.minCount"),
    "max-without-autoscaling": ({**T4, "maxCount": 1}, "InvalidParameter", "maxCount", "agentPoolProfile.maxCount"),
    "autoscaling-without-max": (
        {**T4, "enableAutoScaling": True, "minCount": 1},
        "InvalidParameter",
        "maxCount is missing",
        "agentPoolProfile.maxCount",
    ),
    "min-above-max": ({**SCALED, "minCount": 4}, "InvalidParameter", "minCount was 4", "agentPoolProfile.minCount"),
    "min-zero-of-system": (
        {**SYSTEM, "enableAutoScaling": True, "minCount": 0, "maxCount": 2},
        "InvalidParameter",
        "minCount was 0",
        "agentPoolProfile.minCount",
    ),
    "count-below-min": (
        {**SCALED, "count": 0, "minCount": 1},
        "InvalidParameter",
        "count was 0. It must be greater or equal to minCount:1 and less than or equal to maxCount:3",
        "agentPoolProfile.count",
    ),
    "count-above-max": ({**SCALED, "count": 9}, "InvalidParameter", "maxCount:3", "agentPoolProfile.count"),
    "spot-system": ({**SYSTEM, "scaleSetPriority": "Spot"}, "InvalidParameter", "User", "agentPoolProfile.mode"),
    "spot-availability-set": (
        {**SPOT, "type": "AvailabilitySet"},
        "InvalidParameter",
        "VirtualMachineScaleSets",
        "agentPoolProfile.type",
    ),
    "spot-price-zero": ({**SPOT, "spotMaxPrice": 0}, "InvalidParameter", "was 0", "agentPoolProfile.spotMaxPrice"),
    "spot-price-too-fine": (
        {**SPOT, "spotMaxPrice": 0.1234567},
        "InvalidParameter",
        "5 decimals",
        "agentPoolProfile.spotMaxPrice",
    ),
    "price-of-regular": ({**T4, "spotMaxPrice": 0.5}, "InvalidParameter", "Spot", "agentPoolProfile.spotMaxPrice"),
    "eviction-of-regular": (
        {**T4, "scaleSetEvictionPolicy": "Deallocate"},
        "InvalidParameter",
        "Spot",
        "agentPoolProfile.scaleSetEvictionPolicy",
    ),
    "pods-above-250": ({**T4, "maxPods": 251}, "InvalidParameter", "250", "agentPoolProfile.maxPods"),
    "disk-below-30": ({**T4, "osDiskSizeGB": 20}, "InvalidParameter", "30", "agentPoolProfile.osDiskSizeGB"),
    "version-above-plane": (
        {**T4, "orchestratorVersion": "1.35.0"},
        "NodePoolMcVersionIncompatible",
        "1.35.0",
        "agentPoolProfile.orchestratorVersion",
    ),
    "version-three-below": (
        {**T4, "orchestratorVersion": "1.31.2"},
        "NodePoolMcVersionIncompatible",
        "two minors",
        "agentPoolProfile.orchestratorVersion",
    ),
    "azure-label": (
        {**T4, "nodeLabels": {"kubernetes.azure.com/x": "y"}},
        "BadRequest",
        "The 'kubernetes.azure.com' prefix is preserved by aks system labels",
        "",
    ),
    "spot-label-on-regular": (
        {**T4, "nodeLabels": {"kubernetes.azure.com/scalesetpriority": "spot"}},
        "BadRequest",
        "preserved by aks system labels",
        "",
    ),
    "kubernetes-label": (
        {**T4, "nodeLabels": {"kubernetes.io/x": "y"}},
        "BadRequest",
        "must begin with an allowed prefix (kubelet.kubernetes.io, node.kubernetes.io, node-role.kubernetes.io).",
        "kubernetes.io/x=y",
    ),
    "nfd-label": (
        {**T4, "nodeLabels": {"feature.node.kubernetes.io/pci-10de.present": "true"}},
        "BadRequest",
        "must begin with an allowed prefix",
        "feature.node.kubernetes.io/pci-10de.present=true",
    ),
    "k8s-label": ({**T4, "nodeLabels": {"x.k8s.io/y": "z"}}, "BadRequest", "allowed prefix", "x.k8s.io/y=z"),
    "label-syntax": ({**T4, "nodeLabels": {"a b": "c"}}, "BadRequest", "a b=c", "agentPoolProfile.nodeLabels"),
    "label-value-syntax": ({**T4, "nodeLabels": {"a": "c d"}}, "BadRequest", "c d", "agentPoolProfile.nodeLabels"),
    "taint-syntax": ({**T4, "nodeTaints": ["a=b"]}, "InvalidParameter", "'a=b'", "agentPoolProfile.nodeTaints"),
    "taint-effect": ({**T4, "nodeTaints": ["a=b:Never"]}, "InvalidParameter", "Never", "agentPoolProfile.nodeTaints"),
    "azure-taint": ({**T4, "nodeTaints": ["kubernetes.azure.com/x=y:NoSchedule"]}, "BadRequest", "preserved", ""),
    "taint-key-twice": (
        {**T4, "nodeTaints": ["a=b:NoSchedule", "a=c:NoExecute"]},
        "InvalidParameter",
        "more than once",
        "agentPoolProfile.nodeTaints",
    ),
    "hard-taint-on-system": (
        {**SYSTEM, "nodeTaints": ["a=b:NoSchedule"]},
        "SystemPoolHasRestrictedTaint",
        "a=b:NoSchedule",
        "agentPoolProfile.nodeTaints",
    ),
    "skip-tag": ({**T4, "tags": {"SkipGPUDriverInstall": "true"}}, "BadRequest", "retired", "agentPoolProfile.tags"),
    "node-image-of-new-pool": ({**T4, "nodeImageVersion": 5}, "UnmarshalError", "nodeImageVersion", ""),
}

ACCEPTED: dict[str, Json] = {
    "count-zero-of-user": {**T4, "count": 0},
    "every-mig-value": {**MIG, "gpuInstanceProfile": "MIG7g"},
    "size-without-case": {**T4, "vmSize": "standard_nc4as_t4_v3"},
    "old-sdk-spot-fields-on-regular": {**T4, "spotMaxPrice": -1.0, "scaleSetEvictionPolicy": "Delete"},
    "node-role-label": {**T4, "nodeLabels": {"node-role.kubernetes.io/gpu": ""}},
    "node-label": {**T4, "nodeLabels": {"node.kubernetes.io/x": "y", "nvidia.com/gpu.present": "true"}},
    "taint-without-value": {**T4, "nodeTaints": ["dedicated:NoExecute"]},
    "nvidia-taint": {**T4, "nodeTaints": ["nvidia.com/gpu=present:NoSchedule", "sku=gpu:PreferNoSchedule"]},
    "critical-addons-on-system": {**SYSTEM, "nodeTaints": ["CriticalAddonsOnly=true:NoSchedule"]},
    "prefer-on-system": {**SYSTEM, "nodeTaints": ["a=b:PreferNoSchedule"]},
    "driver-none": {**T4, "gpuProfile": {"driver": "None"}},
    "managed": {**T4, "gpuProfile": {"nvidia": {"managementMode": "Managed"}}},
    "null-is-absent": {**T4, "gpuInstanceProfile": None, "maxPods": None},
    "minor-version": {**T4, "orchestratorVersion": "1.33"},
    "spot-price": {**SPOT, "spotMaxPrice": 0.12345},
    "size-left-out": {"count": 1},
    "zones": {**T4, "availabilityZones": ["1", "2"]},
}


@pytest.mark.turns(3)
@pytest.mark.parametrize("case", REFUSED)
def test_put_when_a_rule_is_broken_then_refused_flat_with_code_and_target(arm: Arm, case: str) -> None:
    properties, code, text, target = REFUSED[case]
    answer = arm.put("gpu1", properties)
    body = answer.json()
    assert (answer.status_code, body["code"]) == (400, code)
    assert text in body["message"]
    assert body.get("target", "") == target
    assert {"details": None, "subcode": ""}.items() <= body.items()
    assert arm.request("GET", "/agentPools/gpu1").status_code == 404


@pytest.mark.parametrize("case", ACCEPTED)
def test_put_when_the_rules_hold_then_created(arm: Arm, case: str) -> None:
    answer = arm.put("gpu1", ACCEPTED[case])
    assert (answer.status_code, answer.json()["properties"]["provisioningState"]) == (201, "Creating")


@pytest.mark.parametrize("name", ["aks-mignode", "aksMigNode", "1pool", "abcdefghijklm", "a_b"])
def test_put_when_the_name_breaks_the_rule_then_refused(arm: Arm, name: str) -> None:
    answer = arm.put(name, T4)
    assert (answer.status_code, answer.json()["target"]) == (400, "agentPoolProfile.name")


PREVIEW_CASES: dict[str, tuple[Json, int]] = {
    "strategy": ({**MIG, "gpuProfile": {"nvidia": {"managementMode": "Managed", "migStrategy": "Mixed"}}}, 201),
    "profiles-single": (
        {
            "count": 1,
            "vmSize": MIG["vmSize"],
            "gpuProfile": {"nvidia": {"migStrategy": "Single", "migProfiles": ["MIG2g"]}},
        },
        201,
    ),
    "profiles-single-two": (
        {
            "count": 1,
            "vmSize": MIG["vmSize"],
            "gpuProfile": {"nvidia": {"migStrategy": "Single", "migProfiles": ["MIG2g", "MIG3g"]}},
        },
        400,
    ),
    "profiles-beside-instance-profile": ({**MIG, "gpuProfile": {"nvidia": {"migProfiles": ["MIG1g"]}}}, 400),
    "profiles-on-t4": ({**T4, "gpuProfile": {"nvidia": {"migProfiles": ["MIG1g"]}}}, 400),
    "driver-type-on-linux": ({**T4, "gpuProfile": {"driverType": "GRID"}}, 400),
}


@pytest.mark.parametrize("case", PREVIEW_CASES)
def test_put_when_preview_fields_are_used_then_judged_in_a_preview_version_only(arm: Arm, case: str) -> None:
    properties, status = PREVIEW_CASES[case]
    assert arm.put("gpu1", properties).json()["code"] == "UnmarshalError"
    assert arm.put("gpu1", properties, api=PREVIEW).status_code == status


@pytest.mark.parametrize(
    ("api", "properties", "status"),
    [
        ("2024-09-01", {**T4, "gpuProfile": {"driver": "None"}}, 400),
        ("2025-02-01", {**T4, "gpuProfile": {"driver": "None"}}, 201),
        ("2026-07-01", {**T4, "gpuProfile": {"nvidia": {"managementMode": "Managed"}}}, 400),
        ("2026-01-02-preview", {**T4, "gpuProfile": {"nvidia": {"managementMode": "Managed"}}}, 201),
        ("2026-08-01", {**T4, "gpuProfile": {"nvidia": {"managementMode": "Managed"}}}, 201),
    ],
)
def test_put_when_the_version_is_too_old_for_a_property_then_refused(
    arm: Arm, api: str, properties: Json, status: int
) -> None:
    assert arm.put("gpu1", properties, api=api).status_code == status
