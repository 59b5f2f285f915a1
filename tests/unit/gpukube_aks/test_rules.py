"""Every rule of AKS: a pool that breaks it and what is said, and pools that break none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from gpukube.core.values import Capacity, Disk, Nodes, Taint
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube_aks import AksProvider
from gpukube_aks.codes import CODES
from tests.builders import make_target

if TYPE_CHECKING:
    from gpukube.errors import Diagnostic, Severity

T4 = "Standard_NC4as_T4_v3"
A100 = "Standard_NC24ads_A100_v4"
SINGLE, MIXED = (Sharing(MigCut("1g.10gb", strategy)) for strategy in ("single", "mixed"))
SLICED = Sharing(slicing=Slicing("time-slicing", 4))
RENAMED = Sharing(slicing=Slicing("time-slicing", 4, rename=True))
FROM_ZERO = Nodes(0, 0, 5, autoscaled=True)
FROM_ONE = Nodes(1, 1, 5, autoscaled=True)
GPU_TAINT = Taint("nvidia.com/gpu", "present", "NoSchedule")


@dataclass(frozen=True)
class Case:
    """A pool that breaks one rule: the code, where it is said, a word of the message or the reason."""

    name: str
    code: str
    path: str
    word: str
    machine: str = T4
    severity: Severity = "error"
    changes: dict[str, object] = field(default_factory=dict)


BROKEN = (
    Case(
        "name with a hyphen", "aks-name", "name", "aks-mignode", changes={"name": "aks-mignode", "pool": "aks-mignode"}
    ),
    Case("name in camel case", "aks-name", "name", "aksMigNode", changes={"name": "aksMigNode", "pool": "aksMigNode"}),
    Case("name that begins with a digit", "aks-name", "name", "1pool", changes={"name": "1pool", "pool": "1pool"}),
    Case("name of 13 characters", "aks-name", "names.aks", "a234567890123", changes={"name": "a234567890123"}),
    Case(
        "name of 11 characters",
        "aks-name-length",
        "names.aks",
        "11 of 12",
        severity="warning",
        changes={"name": "a2345678901"},
    ),
    Case(
        "1001 nodes",
        "aks-node-count",
        "nodes.count",
        "1001",
        changes={"nodes": Nodes(1001, 1001, 1001, autoscaled=False)},
    ),
    Case(
        "max of 1001",
        "aks-node-count",
        "nodes.autoscaling.max",
        "1001",
        changes={"nodes": Nodes(1, 1, 1001, autoscaled=True)},
    ),
    Case("an image family", "aks-image", "image", '"bottlerocket"', changes={"image": "bottlerocket"}),
    Case("zone with its region", "aks-zone", "zones[1]", "eastus-2", changes={"zones": ("1", "eastus-2")}),
    Case("zone 4", "aks-zone", "zones[0]", '"4"', changes={"zones": ("4",)}),
    Case("disk of 29 GiB", "aks-disk-size", "disk.sizeGiB", "29", changes={"disk": Disk(29, None)}),
    Case("disk type of another cloud", "aks-disk-type", "disk.type", "gp3", changes={"disk": Disk(None, "gp3")}),
    Case("MIG on a T4", "aks-mig-size", "sharing.mig.profile", "T4", changes={"sharing": SINGLE}),
    Case(
        "MIG on a size where it is unconfirmed",
        "aks-mig-size",
        "sharing.mig.profile",
        "NCC40ads",
        machine="Standard_NCC40ads_H100_v5",
        changes={"sharing": Sharing(MigCut("1g.12gb", "single"))},
    ),
    Case(
        "double memory",
        "aks-mig-profile",
        "sharing.mig.profile",
        "double memory",
        machine=A100,
        changes={"sharing": Sharing(MigCut("1g.20gb", "single"))},
    ),
    Case(
        "media engines",
        "aks-mig-profile",
        "sharing.mig.profile",
        "+me",
        machine=A100,
        changes={"sharing": Sharing(MigCut("1g.10gb+me", "single"))},
    ),
    Case(
        "mixed from zero",
        "aks-mixed-from-zero",
        "nodes.autoscaling.min",
        "never leave zero",
        machine=A100,
        changes={"sharing": MIXED, "nodes": FROM_ZERO},
    ),
    Case(
        "renamed from zero",
        "aks-renamed-from-zero",
        "nodes.autoscaling.min",
        "never leave zero",
        changes={"sharing": RENAMED, "nodes": FROM_ZERO},
    ),
    Case(
        "single from zero",
        "aks-shared-from-zero",
        "nodes.autoscaling.min",
        "too many nodes",
        machine=A100,
        severity="warning",
        changes={"sharing": SINGLE, "nodes": FROM_ZERO},
    ),
    Case(
        "time-slicing from zero",
        "aks-shared-from-zero",
        "nodes.autoscaling.min",
        "now 5",
        severity="warning",
        changes={"sharing": SLICED, "nodes": FROM_ZERO},
    ),
    Case(
        "mixed with the autoscaler",
        "aks-autoscaler-unready",
        "nodes.autoscaling",
        "unready",
        machine=A100,
        severity="warning",
        changes={"sharing": MIXED, "nodes": FROM_ONE},
    ),
    Case(
        "renamed with the autoscaler",
        "aks-autoscaler-unready",
        "nodes.autoscaling",
        "unready",
        severity="warning",
        changes={"sharing": RENAMED, "nodes": FROM_ONE},
    ),
    Case(
        "eviction policy without Spot",
        "aks-eviction-policy",
        "aks.scaleSetEvictionPolicy",
        "not Spot",
        changes={"native": {"scaleSetEvictionPolicy": "Delete"}},
    ),
    Case(
        "six decimals",
        "aks-spot-price",
        "capacity.maxPrice",
        "0.123456",
        changes={"capacity": Capacity("spot", 0.123456)},
    ),
    Case("price of zero", "aks-spot-price", "capacity.maxPrice", "0", changes={"capacity": Capacity("spot", 0.0)}),
    Case(
        "price below a tenth",
        "aks-spot-floor",
        "capacity.maxPrice",
        "Azure/AKS#4404",
        severity="warning",
        changes={"capacity": Capacity("spot", 0.01)},
    ),
    Case(
        "label of AKS",
        "aks-label",
        'labels["kubernetes.azure.com/mode"]',
        "kept for",
        changes={"labels": {"kubernetes.azure.com/mode": "user"}},
    ),
    Case(
        "label of Kubernetes",
        "aks-label",
        'labels["kubernetes.io/role"]',
        "#2866",
        changes={"labels": {"kubernetes.io/role": "a"}},
    ),
    Case(
        "label under k8s.io",
        "aks-label",
        'labels["x.k8s.io/role"]',
        "#2866",
        changes={"labels": {"x.k8s.io/role": "a"}},
    ),
    Case("label agentpool", "aks-label", 'labels["agentpool"]', "itself", changes={"labels": {"agentpool": "a"}}),
    Case(
        "taint of AKS",
        "aks-taint",
        "taints[0]",
        "by itself",
        changes={"taints": (GPU_TAINT, Taint("kubernetes.azure.com/x", "y", "NoSchedule"))},
    ),
    Case(
        "taint without value",
        "aks-taint-value",
        "taints[0]",
        'value: "true"',
        changes={"taints": (GPU_TAINT, Taint("dedicated", "", "NoSchedule"))},
    ),
    Case(
        "GPU taint with another effect",
        "aks-taint-twice",
        "taints[0]",
        "gpuTaint: false",
        changes={"taints": (GPU_TAINT, Taint("nvidia.com/gpu", "present", "NoExecute"))},
    ),
    Case(
        "one key twice",
        "aks-taint-twice",
        "taints[1]",
        "keep one",
        changes={"gpu_taint": False, "taints": (Taint("a", "b", "NoSchedule"), Taint("a", "c", "NoExecute"))},
    ),
    Case(
        "skip tag",
        "aks-tag",
        'tags["SkipGPUDriverInstall"]',
        "#4925",
        changes={"tags": {"SkipGPUDriverInstall": "true"}},
    ),
    Case(
        "managed tag",
        "aks-tag",
        'tags["EnableManagedGPUExperience"]',
        "AgentBaker",
        changes={"tags": {"EnableManagedGPUExperience": "true"}},
    ),
    Case(
        "driver by the operator",
        "aks-driver-owner",
        "driver.owner",
        "driver.owner: auto",
        changes={"driver_owner": "operator"},
    ),
    Case("no driver", "aks-driver-owner", "driver.owner", "not supported yet", changes={"driver_owner": "none"}),
    Case(
        "managed with the autoscaler",
        "aks-managed",
        "devicePlugin.owner",
        "autoscaling",
        changes={"plugin_owner": "cloud", "nodes": FROM_ONE},
    ),
    Case(
        "managed with slices",
        "aks-managed",
        "devicePlugin.owner",
        "timeSlicing",
        changes={"plugin_owner": "cloud", "sharing": SLICED},
    ),
    Case(
        "managed with MIG",
        "aks-managed",
        "devicePlugin.owner",
        "sharing.mig",
        machine=A100,
        changes={"plugin_owner": "cloud", "sharing": SINGLE},
    ),
    Case(
        "managed at all",
        "aks-managed-preview",
        "devicePlugin.owner",
        "preview",
        severity="warning",
        changes={"plugin_owner": "cloud"},
    ),
    Case(
        "native field of the spec",
        "aks-native-managed",
        "aks.vmSize",
        "instanceType",
        changes={"native": {"vmSize": "x"}},
    ),
    Case(
        "native field of the service",
        "aks-native-refused",
        "aks.nodeImageVersion",
        "rollback",
        changes={"native": {"nodeImageVersion": "x"}},
    ),
    Case(
        "native field without a row",
        "aks-native-refused",
        "aks.localDNSProfile",
        "documented",
        changes={"native": {"localDNSProfile": {}}},
    ),
    Case("mistyped native field", "aks-native-unknown", "aks.maxpods", "maxPods", changes={"native": {"maxpods": 30}}),
    Case(
        "mistyped member",
        "aks-native-unknown",
        "aks.upgradeSettings.maxsurge",
        "maxSurge",
        changes={"native": {"upgradeSettings": {"maxsurge": "1"}}},
    ),
    Case("text for a number", "aks-native-value", "aks.maxPods", "whole number", changes={"native": {"maxPods": "30"}}),
    Case("yes for a number", "aks-native-value", "aks.maxPods", "whole number", changes={"native": {"maxPods": True}}),
    Case("251 pods", "aks-native-value", "aks.maxPods", "250", changes={"native": {"maxPods": 251}}),
    Case(
        "number for a text",
        "aks-native-value",
        "aks.upgradeSettings.maxSurge",
        "a text",
        changes={"native": {"upgradeSettings": {"maxSurge": 1}}},
    ),
    Case(
        "number in a list of texts",
        "aks-native-value",
        "aks.kubeletConfig.allowedUnsafeSysctls",
        "list of texts",
        changes={"native": {"kubeletConfig": {"allowedUnsafeSysctls": [1]}}},
    ),
    Case(
        "text for a mapping",
        "aks-native-value",
        "aks.upgradeSettings",
        "mapping",
        changes={"native": {"upgradeSettings": "1"}},
    ),
    Case("Windows", "aks-native-value", "aks.osSKU", "AzureLinux", changes={"native": {"osSKU": "Windows2022"}}),
    Case(
        "reservation by name",
        "aks-native-value",
        "aks.capacityReservationGroupID",
        "ARM id",
        changes={"native": {"capacityReservationGroupID": "group1"}},
    ),
)


def check(machine: str, changes: dict[str, object]) -> list[Diagnostic]:
    return AksProvider().check(make_target(machine, **changes))


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_rule_when_broken_says_where_and_what(case: Case) -> None:
    found = [d for d in check(case.machine, case.changes) if d.code == case.code]

    assert [(str(d.where), d.severity) for d in found] == [(f"spec.{case.path}", case.severity)]
    assert case.word in found[0].render()


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_rule_when_broken_says_how_to_repair_it(case: Case) -> None:
    found = [d for d in check(case.machine, case.changes) if d.code == case.code]

    assert all(d.fix for d in found)
    assert not any(d.message.endswith(".") for d in found)


def test_codes_when_compared_with_the_cases_have_one_each() -> None:
    assert {case.code for case in BROKEN} == CODES.keys()


@pytest.mark.parametrize(
    ("machine", "changes"),
    [
        ("Standard_ND96asr_v4", {"sharing": Sharing(MigCut("1g.5gb", "single"))}),
        (A100, {"sharing": MIXED}),
        (A100, {"sharing": SINGLE, "nodes": FROM_ONE}),
        (T4, {"sharing": SLICED, "nodes": FROM_ONE}),
        (T4, {"nodes": FROM_ZERO}),
        (T4, {"nodes": Nodes(0, 0, 0, autoscaled=False)}),
        (T4, {"nodes": Nodes(1000, 1000, 1000, autoscaled=False)}),
        (T4, {"name": "a234567890"}),
        (T4, {"capacity": Capacity("spot")}),
        (T4, {"capacity": Capacity("spot", -1)}),
        (T4, {"capacity": Capacity("spot", 0.12345)}),
        (T4, {"capacity": Capacity("spot"), "native": {"scaleSetEvictionPolicy": "Deallocate"}}),
        (T4, {"zones": ("1", "2", "3")}),
        (T4, {"disk": Disk(30, "Ephemeral")}),
        (
            T4,
            {"labels": {"node.kubernetes.io/x": "a", "node-role.kubernetes.io/gpu": "", "example.com/agentpool": "b"}},
        ),
        (T4, {"taints": (Taint("sku", "gpu", "NoSchedule"),), "gpu_taint": False}),
        (T4, {"driver_owner": "cloud", "plugin_owner": "none"}),
        (
            T4,
            {
                "native": {
                    "osSKU": "AzureLinux",
                    "maxPods": 60,
                    "enableFIPS": True,
                    "upgradeSettings": {"maxSurge": "0", "maxUnavailable": "1"},
                    "linuxOSConfig": {"sysctls": {"vmMaxMapCount": 262144}},
                    "capacityReservationGroupID": "/subscriptions/s/resourceGroups/r/providers/Microsoft.Compute/"
                    "capacityReservationGroups/g",
                }
            },
        ),
    ],
)
def test_check_when_all_is_well_finds_nothing(machine: str, changes: dict[str, object]) -> None:
    assert AksProvider().check(make_target(machine, **changes)) == []
