"""Every rule of AKS: a pool that breaks it and what is said, and pools that break none."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from gpukube.core.values import Capacity, Disk, Nodes, Reservation, Taint, Upgrade
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube_aks import AksProvider
from gpukube_aks.codes import CODES
from gpukube_aks.facts.images import IMAGES
from gpukube_aks.pool.limits import LIMITS
from gpukube_aks.rules.combinations import COMBINATIONS
from tests.builders import make_target

if TYPE_CHECKING:
    from gpukube.errors import Finding, Severity
    from gpukube_aks.rules.combinations import Combination

T4 = "Standard_NC4as_T4_v3"
A100 = "Standard_NC24ads_A100_v4"
SINGLE, MIXED = (Sharing(MigCut("1g.10gb", strategy)) for strategy in ("single", "mixed"))
SLICED = Sharing(slicing=Slicing("time-slicing", 4))
RENAMED = Sharing(slicing=Slicing("time-slicing", 4, rename=True))
FROM_ZERO = Nodes(0, 0, 5, autoscaled=True)
FROM_ONE = Nodes(1, 1, 5, autoscaled=True)
GB200 = "Standard_ND128isr_NDR_GB200_v6"
H100 = "Standard_ND96isr_H100_v5"
GROUP = "/subscriptions/s/resourceGroups/r/providers/Microsoft.Compute/capacityReservationGroups/g"
PLACEMENT = LIMITS["proximityPlacementGroupID"].example
DEALLOCATE = {"scaleDownMode": "Deallocate"}
GPU_TAINT = Taint("nvidia.com/gpu", "present", "NoSchedule")


def reserved(group: str = GROUP) -> Capacity:
    return Capacity("reserved", reservation=Reservation("capacityReservationGroup", group))


def nested(path: str) -> dict[str, object]:
    head, _, rest = path.partition(".")
    return {head: {rest: "1"} if rest else "1"}


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
    Case("an image of another cloud", "aks-image", "image", '"bottlerocket"', changes={"image": "bottlerocket"}),
    Case("Windows", "aks-image", "image", "no MIG", changes={"image": "Windows2022"}),
    Case("an image in lower case", "aks-image", "image", "write AzureLinux3", changes={"image": "azurelinux3"}),
    Case("a deprecated image", "aks-image", "image", "successor", changes={"image": "CBLMariner"}),
    Case("an image without a driver", "aks-image", "image", "Flatcar", changes={"image": "Flatcar"}),
    Case(
        "Container Linux on arm64",
        "aks-image-machine",
        "image",
        "amd64 only",
        machine=GB200,
        changes={"image": "AzureContainerLinux"},
    ),
    Case(
        "RTX PRO on Azure Linux",
        "aks-image-machine",
        "image",
        "Ubuntu only",
        machine="Standard_NC144ds_xl_RTXPRO6000BSE_v6",
        changes={"image": "AzureLinux"},
    ),
    Case(
        "Ubuntu 22.04 with a newer Kubernetes",
        "aks-image-version",
        "image",
        "image: Ubuntu,",
        changes={"image": "Ubuntu2204", "kubernetes_version": "1.37"},
    ),
    Case(
        "Ubuntu 24.04 with an older Kubernetes",
        "aks-image-version",
        "image",
        "1.32 to 1.38",
        changes={"image": "Ubuntu2404", "kubernetes_version": "1.31.5"},
    ),
    Case(
        "Azure Linux 3 with a newer Kubernetes",
        "aks-image-version",
        "image",
        "image: AzureLinux,",
        changes={"image": "AzureLinux3", "kubernetes_version": "1.37"},
    ),
    Case(
        "version of GKE",
        "aks-version",
        "kubernetesVersion",
        'write "1.34.1"',
        changes={"kubernetes_version": "1.34.1-gke.1829000"},
    ),
    Case("9 pods", "aks-pods", "maxPodsPerNode", "from 10", changes={"max_pods": 9}),
    Case("251 pods", "aks-pods", "maxPodsPerNode", "to 250", changes={"max_pods": 251}),
    Case(
        "fewer pods than devices",
        "aks-few-pods",
        "maxPodsPerNode",
        "56 devices",
        machine="Standard_ND96asr_v4",
        severity="warning",
        changes={"max_pods": 56, "sharing": Sharing(MigCut("1g.5gb", "single"))},
    ),
    Case(
        "fewer pods than a pool needs",
        "aks-few-pods",
        "maxPodsPerNode",
        "fewer than 30",
        severity="warning",
        changes={"max_pods": 29},
    ),
    Case(
        "fewer pods than a pool from zero needs",
        "aks-few-pods",
        "maxPodsPerNode",
        "fewer than 30",
        severity="warning",
        changes={"max_pods": 29, "nodes": FROM_ZERO},
    ),
    Case(
        "both ways of an upgrade",
        "aks-upgrade-both",
        "upgrade",
        "an upgrade adds 1 node first",
        severity="warning",
        changes={"upgrade": Upgrade("1", "1")},
    ),
    Case(
        "one way of an upgrade and the default of the other",
        "aks-upgrade-both",
        "upgrade",
        "10% of the nodes",
        severity="warning",
        changes={"upgrade": Upgrade(None, "50%")},
    ),
    Case(
        "surge of Spot nodes",
        "aks-spot-surge",
        "upgrade.maxSurge",
        "does not accept on Spot pools",
        changes={"capacity": Capacity("spot"), "upgrade": Upgrade("1")},
    ),
    Case(
        "unavailable Spot nodes",
        "aks-spot-surge",
        "upgrade.maxUnavailable",
        "does not accept on Spot pools",
        changes={"capacity": Capacity("spot"), "upgrade": Upgrade("0", "1")},
    ),
    Case(
        "surge beyond a pool",
        "aks-surge-limit",
        "upgrade",
        "2 nodes",
        severity="warning",
        changes={"nodes": Nodes(999, 999, 999, autoscaled=False), "upgrade": Upgrade("2")},
    ),
    Case(
        "surge of a share beyond a pool, rounded up",
        "aks-surge-limit",
        "upgrade",
        "11% of the nodes",
        severity="warning",
        changes={"nodes": Nodes(901, 901, 901, autoscaled=False), "upgrade": Upgrade("11%")},
    ),
    Case(
        "surge of a full pool",
        "aks-surge-limit",
        "nodes",
        "1000 nodes",
        severity="warning",
        changes={"nodes": Nodes(1000, 1000, 1000, autoscaled=False)},
    ),
    Case(
        "surge of a share beyond a pool",
        "aks-surge-limit",
        "nodes",
        "10% of the nodes",
        severity="warning",
        changes={"nodes": Nodes(910, 910, 1000, autoscaled=True)},
    ),
    Case(
        "fixed number of Spot nodes",
        "aks-spot-fixed",
        "nodes.count",
        "are not replaced",
        severity="hint",
        changes={"capacity": Capacity("spot")},
    ),
    Case(
        "a series that Azure builds no more",
        "aks-series-frozen",
        "instanceType",
        "adds no capacity",
        severity="hint",
        machine=A100,
    ),
    Case(
        "reservation of ND machines",
        "aks-reservation-size",
        "capacity.reserved.aks.capacityReservationGroup",
        "ND96asr",
        machine="Standard_ND96asr_v4",
        severity="warning",
        changes={"capacity": reserved()},
    ),
    Case(
        "reservation of H100 NVL machines",
        "aks-reservation-size",
        "capacity.reserved.aks.capacityReservationGroup",
        "NC80adis",
        machine="Standard_NC80adis_H100_v5",
        severity="warning",
        changes={"capacity": reserved()},
    ),
    Case(
        "reservation without room for an upgrade",
        "aks-reservation-surge",
        "capacity.type",
        "10% of the nodes",
        severity="hint",
        changes={"capacity": reserved()},
    ),
    Case(
        "reservation with an upgrade that adds nodes",
        "aks-reservation-surge",
        "upgrade",
        "2 nodes",
        severity="hint",
        changes={"capacity": reserved(), "upgrade": Upgrade("2", "0")},
    ),
    *(
        Case(
            f"reservation with {name}",
            "aks-reservation-excludes",
            f"aks.{name}",
            "reserv",
            changes={"capacity": reserved(), "native": {name: value}},
        )
        for name, value in (
            ("hostGroupID", LIMITS["hostGroupID"].example),
            ("enableUltraSSD", True),
        )
    ),
    Case(
        "reservation with a placement group",
        "aks-reservation-excludes",
        "placement",
        "reserv",
        changes={"capacity": reserved(), "placement": PLACEMENT},
    ),
    Case(
        "placement group over zones",
        "aks-placement-zones",
        "placement",
        "in one zone",
        changes={"zones": ("1", "2"), "placement": PLACEMENT},
    ),
    Case("placement by name", "aks-placement-id", "placement", '"ppg-1"', changes={"placement": "ppg-1"}),
    Case("InfiniBand on a T4", "aks-infiniband", "network.highSpeed", "an r", changes={"high_speed": True}),
    Case(
        "InfiniBand on a size without r",
        "aks-infiniband",
        "network.highSpeed",
        "no InfiniBand",
        machine="Standard_ND96is_H100_v5",
        changes={"high_speed": True},
    ),
    Case(
        "InfiniBand",
        "aks-infiniband-feature",
        "network.highSpeed",
        "az feature register --namespace Microsoft.ContainerService --name AKSInfinibandSupport",
        machine=H100,
        severity="hint",
        changes={"high_speed": True},
    ),
    Case(
        "raw disks of a size without NVMe",
        "aks-local-disk",
        "localStorage",
        "no NVMe disks",
        severity="warning",
        changes={"local_storage": "raw"},
    ),
    Case(
        "raw disks that the node disk may take",
        "aks-local-disk",
        "localStorage",
        "sizeGiB: 128",
        machine=H100,
        severity="warning",
        changes={"local_storage": "raw"},
    ),
    Case("confidential T4", "aks-confidential", "confidential", "not a conf", changes={"confidential": True}),
    Case(
        "confidential size alone",
        "aks-confidential-size",
        "instanceType",
        "add confidential: true",
        machine="Standard_NCC40ads_H100_v5",
        severity="hint",
    ),
    Case(
        "disk in the clear",
        "aks-disk-encryption",
        "disk.encrypted",
        "encrypts all",
        changes={"disk": Disk(None, None, encrypted=False)},
    ),
    Case(
        "log size of half a megabyte",
        "aks-kubelet",
        "kubelet.containerLogMaxSize",
        "whole number of megabytes",
        changes={"kubelet": {"containerLogMaxSize": "512Ki"}},
    ),
    Case(
        "unsafe sysctl of another kind",
        "aks-kubelet",
        "kubelet.allowedUnsafeSysctls",
        "net.*",
        changes={"kubelet": {"allowedUnsafeSysctls": ("vm.swappiness",)}},
    ),
    Case(
        "mistyped sysctl",
        "aks-sysctl",
        'sysctls["vm.max_map_counts"]',
        "did you mean vm.max_map_count?",
        changes={"sysctls": {"vm.max_map_counts": "262144"}},
    ),
    Case(
        "sysctl that AKS lacks",
        "aks-sysctl",
        'sysctls["kernel.panic"]',
        "write one of fs.aio-max-nr, ",
        changes={"sysctls": {"kernel.panic": "1"}},
    ),
    Case(
        "sysctl out of its range",
        "aks-sysctl",
        'sysctls["vm/swappiness"]',
        "a number from 0 to 100",
        changes={"sysctls": {"vm/swappiness": "101"}},
    ),
    Case(
        "sysctl that is no number",
        "aks-sysctl",
        'sysctls["vm.swappiness"]',
        '"low"',
        changes={"sysctls": {"vm.swappiness": "low"}},
    ),
    Case(
        "switch that is neither on nor off",
        "aks-sysctl",
        'sysctls["net.ipv4.tcp_tw_reuse"]',
        "write 0 or 1",
        changes={"sysctls": {"net.ipv4.tcp_tw_reuse": "2"}},
    ),
    Case(
        "tags of addresses that nodes lack",
        "aks-native-combination",
        "aks.networkProfile.nodePublicIPTags",
        "enableNodePublicIP",
        changes={"native": {"networkProfile": {"nodePublicIPTags": [{"ipTagType": "RoutingPreference"}]}}},
    ),
    Case(
        "pod addresses without a subnet",
        "aks-native-combination",
        "aks.podIPAllocationMode",
        "podSubnetID",
        changes={"native": {"podIPAllocationMode": "StaticBlock"}},
    ),
    Case(
        "artifact streaming on arm64",
        "aks-image-features",
        "aks.artifactStreamingProfile",
        "arm64",
        machine=GB200,
        changes={"native": {"artifactStreamingProfile": {"enabled": True}}},
    ),
    Case(
        "number for a list of ports",
        "aks-native-value",
        "aks.networkProfile.allowedHostPorts",
        "a list of mappings with one of portEnd, portStart, protocol",
        changes={"native": {"networkProfile": {"allowedHostPorts": 80}}},
    ),
    Case(
        "port as a text",
        "aks-native-value",
        "aks.networkProfile.allowedHostPorts[0].portStart",
        "write 80, without quotes",
        changes={"native": {"networkProfile": {"allowedHostPorts": [{"portStart": "80"}]}}},
    ),
    Case(
        "list for a map",
        "aks-native-value",
        "aks.localDNSProfile.vnetDNSOverrides",
        "a mapping of names",
        changes={"native": {"localDNSProfile": {"vnetDNSOverrides": []}}},
    ),
    Case(
        "word inside a map",
        "aks-native-value",
        "aks.localDNSProfile.vnetDNSOverrides",
        "did you mean ForceTCP?",
        changes={"native": {"localDNSProfile": {"vnetDNSOverrides": {".": {"protocol": "ForceTcp"}}}}},
    ),
    Case(
        "hosts over zones",
        "aks-placement-zones",
        "aks.hostGroupID",
        "dedicated hosts",
        changes={"zones": ("1", "2"), "native": {"hostGroupID": LIMITS["hostGroupID"].example}},
    ),
    Case(
        "hosts with a placement group",
        "aks-native-combination",
        "aks.hostGroupID",
        "remove hostGroupID or",
        changes={
            "zones": ("1",),
            "placement": PLACEMENT,
            "native": {"hostGroupID": LIMITS["hostGroupID"].example},
        },
    ),
    Case(
        "Ultra Disks without zones",
        "aks-ultra-zones",
        "aks.enableUltraSSD",
        "the pool has none",
        severity="warning",
        changes={"native": {"enableUltraSSD": True}},
    ),
    Case(
        "placement group",
        "aks-placement",
        "placement",
        "scarce",
        severity="hint",
        changes={"placement": PLACEMENT},
    ),
    Case(
        "Spot machines that stay",
        "aks-spot-deallocate",
        "aks.scaleSetEvictionPolicy",
        "quota",
        severity="warning",
        changes={"capacity": Capacity("spot"), "native": {"scaleSetEvictionPolicy": "Deallocate"}},
    ),
    Case(
        "ephemeral disks that stay",
        "aks-deallocate-disk",
        "aks.scaleDownMode",
        "ephemeral",
        changes={"disk": Disk(128, "Ephemeral"), "native": DEALLOCATE},
    ),
    Case(
        "disks of AKS's choice that stay",
        "aks-deallocate-disk",
        "aks.scaleDownMode",
        "type: Managed",
        severity="warning",
        changes={"native": DEALLOCATE},
    ),
    Case(
        "machines of the operator that stop",
        "aks-deallocate",
        "aks.scaleDownMode",
        "#729",
        severity="warning",
        changes={"disk": Disk(128, "Managed"), "plugin_owner": "operator", "native": DEALLOCATE},
    ),
    Case(
        "FIPS on arm64",
        "aks-image-features",
        "aks.enableFIPS",
        "arm64",
        machine=GB200,
        changes={"native": {"enableFIPS": True}},
    ),
    Case(
        "FIPS and trusted launch",
        "aks-image-features",
        "aks.enableFIPS",
        "image: Ubuntu2204",
        changes={"image": "AzureLinux", "native": {"enableFIPS": True, "securityProfile": {"enableVTPM": True}}},
    ),
    Case(
        "FIPS on Ubuntu 24.04",
        "aks-image-features",
        "aks.enableFIPS",
        "24.04",
        changes={"image": "Ubuntu2404", "native": {"enableFIPS": True}},
    ),
    Case(
        "trusted launch on arm64",
        "aks-image-features",
        "aks.securityProfile",
        "arm64",
        machine=GB200,
        changes={"native": {"securityProfile": {"enableVTPM": True}}},
    ),
    Case(
        "trusted launch of a confidential machine",
        "aks-image-features",
        "aks.securityProfile",
        "confidential",
        machine="Standard_NCC40ads_H100_v5",
        changes={"native": {"securityProfile": {"enableVTPM": True}}},
    ),
    Case(
        "Secure Boot on Ubuntu",
        "aks-secure-boot",
        "aks.securityProfile.enableSecureBoot",
        "AzureLinux",
        severity="warning",
        changes={"native": {"securityProfile": {"enableSecureBoot": True}}},
    ),
    Case("arm64", "aks-arm-driver", "instanceType", "#8745", machine=GB200, severity="warning"),
    Case(
        "addresses that no node gets",
        "aks-native-combination",
        "aks.nodePublicIPPrefixID",
        "enableNodePublicIP",
        changes={"native": {"nodePublicIPPrefixID": LIMITS["nodePublicIPPrefixID"].example}},
    ),
    Case(
        "thresholds upside down",
        "aks-kubelet",
        "kubelet",
        "lower one",
        changes={"kubelet": {"imageGCLowThresholdPercent": 90}},
    ),
    Case(
        "threshold above the default of the other",
        "aks-kubelet",
        "kubelet",
        "80 and 85",
        changes={"kubelet": {"imageGCLowThresholdPercent": 86}},
    ),
    Case(
        "threshold below the default of the other",
        "aks-kubelet",
        "kubelet",
        "80 and 85",
        changes={"kubelet": {"imageGCHighThresholdPercent": 79}},
    ),
    Case(
        "swap that stops the kubelet",
        "aks-native-combination",
        "aks.kubeletConfig.failSwapOn",
        "swap file",
        changes={"native": {"kubeletConfig": {"failSwapOn": True}, "linuxOSConfig": {"swapFileSizeMB": 1500}}},
    ),
    Case(
        "swap with the default of failSwapOn",
        "aks-native-combination",
        "aks.kubeletConfig.failSwapOn",
        "swap file",
        changes={"native": {"linuxOSConfig": {"swapFileSizeMB": 1500}}},
    ),
    Case("zone with its region", "aks-zone", "zones[1]", "eastus-2", changes={"zones": ("1", "eastus-2")}),
    Case("zone 4", "aks-zone", "zones[0]", '"4"', changes={"zones": ("4",)}),
    Case("disk of 29 GiB", "aks-disk-size", "disk.sizeGiB", "29", changes={"disk": Disk(29, None)}),
    Case(
        "ephemeral disk larger than that of the machine",
        "aks-disk-ephemeral",
        "disk.sizeGiB",
        "176 GiB",
        severity="warning",
        changes={"disk": Disk(177, "Ephemeral")},
    ),
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
        "never scale up from zero",
        machine=A100,
        changes={"sharing": MIXED, "nodes": FROM_ZERO},
    ),
    Case(
        "renamed from zero",
        "aks-renamed-from-zero",
        "nodes.autoscaling.min",
        "never scale up from zero",
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
        "DRA from zero",
        "aks-dra-from-zero",
        "nodes.autoscaling.min",
        "never scale up",
        changes={"plugin_owner": "dra", "nodes": FROM_ZERO},
    ),
    Case(
        "DRA with the autoscaler",
        "aks-autoscaler-unready",
        "nodes.autoscaling",
        "devicePlugin.owner: auto",
        severity="warning",
        changes={"plugin_owner": "dra", "nodes": FROM_ONE},
    ),
    Case(
        "DRA and MIG by AKS",
        "aks-dra-mig",
        "sharing.mig",
        "unconfirmed",
        machine=A100,
        severity="warning",
        changes={"plugin_owner": "dra", "sharing": SINGLE},
    ),
    Case(
        "DRA and a GRID driver",
        "aks-dra-vgpu",
        "devicePlugin.owner",
        "older",
        machine="Standard_NV36ads_A10_v5",
        severity="warning",
        changes={"plugin_owner": "dra"},
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
        "reserved for",
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
        "label of the size",
        "aks-label",
        'labels["node.kubernetes.io/instance-type"]',
        "VM size",
        changes={"labels": {"node.kubernetes.io/instance-type": "a"}},
    ),
    Case(
        "old label of AKS",
        "aks-label-overwritten",
        'labels["accelerator"]',
        "kubernetes.azure.com/accelerator",
        severity="warning",
        changes={"labels": {"accelerator": "nvidia"}},
    ),
    Case("tag with a slash", "aks-tag-limit", 'tags["a/b"]', '"/"', changes={"tags": {"a/b": "c"}}),
    Case("tag of Azure", "aks-tag-limit", 'tags["AzureThing"]', "begins", changes={"tags": {"AzureThing": "c"}}),
    Case("name of a tag", "aks-tag-limit", f'tags["{"k" * 513}"]', "513", changes={"tags": {"k" * 513: "c"}}),
    Case("value of a tag", "aks-tag-limit", 'tags["k"]', "257", changes={"tags": {"k": "v" * 257}}),
    Case("46 tags", "aks-tag-limit", "tags", "46 tags", changes={"tags": {f"t{i}": "" for i in range(46)}}),
    Case(
        "tags of 2049 characters with gpukube's own",
        "aks-tag-limit",
        "tags",
        "more than 1819",
        changes={"tags": {"k" * 511: "v" * 256, "l" * 511: "v" * 256, "m" * 283: "", "n": "v" * 2}},
    ),
    Case(
        "tags that are one",
        "aks-tag-twice",
        'tags["COST"]',
        '"cost"',
        changes={"tags": {"cost": "1", "COST": "2"}},
    ),
    Case(
        "taint of AKS",
        "aks-taint",
        "taints[0]",
        "taints Spot pools itself",
        changes={"taints": (GPU_TAINT, Taint("kubernetes.azure.com/x", "y", "NoSchedule"))},
    ),
    Case(
        "mark of Spot nodes",
        "aks-spot-mark",
        "taints[0]",
        "itself",
        severity="warning",
        changes={
            "capacity": Capacity("spot"),
            "nodes": FROM_ONE,
            "taints": (GPU_TAINT, Taint("kubernetes.azure.com/scalesetpriority", "spot", "NoSchedule")),
        },
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
        "no taint at all",
        "aks-untainted",
        "gpuTaint",
        "fill the nodes",
        severity="hint",
        changes={"gpu_taint": False, "taints": ()},
    ),
    Case(
        "a taint that only prefers",
        "aks-untainted",
        "gpuTaint",
        "NoSchedule",
        severity="hint",
        changes={"gpu_taint": False, "taints": (Taint("sku", "gpu", "PreferNoSchedule"),)},
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
        "driver by the operator on Azure Linux",
        "aks-driver-owner",
        "driver.owner",
        "image: Ubuntu",
        severity="warning",
        changes={"driver_owner": "operator", "image": "AzureLinux"},
    ),
    Case(
        "no driver",
        "aks-own-driver",
        "driver.owner",
        "nor gpukube installs",
        severity="warning",
        changes={"driver_owner": "none", "plugin_owner": "none"},
    ),
    Case(
        "MIG without a driver",
        "aks-driver-mig",
        "driver.owner",
        "mig-partition.sh",
        machine=A100,
        changes={"driver_owner": "none", "plugin_owner": "none", "sharing": SINGLE},
    ),
    Case(
        "managed without a driver",
        "aks-managed",
        "devicePlugin.owner",
        "driver.owner: none",
        changes={"driver_owner": "none", "plugin_owner": "cloud"},
    ),
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
        "managed with an old Kubernetes",
        "aks-managed",
        "devicePlugin.owner",
        "before Kubernetes 1.34",
        changes={"plugin_owner": "cloud", "kubernetes_version": "1.33.5"},
        severity="warning",
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
        "native field inside another that the service writes",
        "aks-native-refused",
        "aks.localDNSProfile.state",
        "the service",
        changes={"native": {"localDNSProfile": {"state": "Enabled"}}},
    ),
    *(
        Case(f"native {name}", "aks-native-managed", f"aks.{name}", field, changes={"native": nested(name)})
        for name, field in (
            ("osSKU", "image"),
            ("orchestratorVersion", "kubernetesVersion"),
            ("maxPods", "maxPodsPerNode"),
            ("capacityReservationGroupID", "capacity.reserved.aks.capacityReservationGroup"),
            ("upgradeSettings.maxSurge", "upgrade.maxSurge"),
            ("upgradeSettings.maxUnavailable", "upgrade.maxUnavailable"),
            ("gpuProfile", "write devicePlugin.owner or driver.owner instead"),
            ("proximityPlacementGroupID", "placement"),
            ("kubeletConfig.podMaxPids", "kubelet.podPidsLimit"),
            ("linuxOSConfig.sysctls", "write sysctls instead"),
        )
    ),
    Case("mistyped field", "aks-native-unknown", "aks.enablefips", "FIPS", changes={"native": {"enablefips": True}}),
    Case(
        "mistyped field that the spec has",
        "aks-native-unknown",
        "aks.maxpods",
        "did you mean maxPodsPerNode?",
        changes={"native": {"maxpods": 30}},
    ),
    Case(
        "mistyped member",
        "aks-native-unknown",
        "aks.upgradeSettings.maxsurge",
        "did you mean upgrade.maxSurge?",
        changes={"native": {"upgradeSettings": {"maxsurge": "1"}}},
    ),
    Case(
        "text for a number",
        "aks-native-value",
        "aks.linuxOSConfig.swapFileSizeMB",
        "whole number",
        changes={"native": {"linuxOSConfig": {"swapFileSizeMB": "30"}}},
    ),
    Case(
        "yes for a number",
        "aks-native-value",
        "aks.linuxOSConfig.swapFileSizeMB",
        "whole number",
        changes={"native": {"linuxOSConfig": {"swapFileSizeMB": True}}},
    ),
    Case(
        "number for a text", "aks-native-value", "aks.vnetSubnetID", "a string", changes={"native": {"vnetSubnetID": 1}}
    ),
    Case(
        "nothing for a text",
        "aks-native-value",
        "aks.vnetSubnetID",
        "is null",
        changes={"native": {"vnetSubnetID": None}},
    ),
    Case(
        "word that is none of the choices",
        "aks-native-value",
        "aks.linuxOSConfig.transparentHugePageDefrag",
        "madvise",
        changes={"native": {"linuxOSConfig": {"transparentHugePageDefrag": "sometimes"}}},
    ),
    Case(
        "number in a list of strings",
        "aks-native-value",
        "aks.networkProfile.applicationSecurityGroups",
        "list of strings",
        changes={"native": {"networkProfile": {"applicationSecurityGroups": [1]}}},
    ),
    Case(
        "text for a mapping",
        "aks-native-value",
        "aks.upgradeSettings",
        "mapping",
        changes={"native": {"upgradeSettings": "1"}},
    ),
)


def check(machine: str, changes: dict[str, object]) -> list[Finding]:
    return AksProvider().check(make_target(machine, **changes))


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_rule_when_broken_says_where_and_what(case: Case) -> None:
    found = [d for d in check(case.machine, case.changes) if d.code == case.code]

    assert [(str(d.where), d.severity) for d in found] == [(f"spec.{case.path}", case.severity)]
    assert case.word in found[0].render()


@pytest.mark.parametrize(
    ("machine", "changes"),
    [
        (T4, {"native": {"securityProfile": {"enableSecureBoot": True}}}),
        (GB200, {}),
        (GB200, {"image": "AzureContainerLinux"}),
        ("Standard_NC144ds_xl_RTXPRO6000BSE_v6", {"image": "AzureLinux"}),
    ],
)
def test_driver_when_it_is_your_own_then_nothing_is_said_of_that_of_aks(
    machine: str, changes: dict[str, object]
) -> None:
    found = check(machine, {**changes, "driver_owner": "none", "plugin_owner": "none"})

    assert [problem.code for problem in found] == ["aks-own-driver"]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.name)
def test_rule_when_broken_says_how_to_repair_it(case: Case) -> None:
    found = [d for d in check(case.machine, case.changes) if d.code == case.code]

    assert all(d.fix for d in found)
    assert not any(d.seen.endswith(".") for d in found)


@pytest.mark.parametrize(
    ("image", "oldest", "newest"), [("Ubuntu2204", 25, 36), ("Ubuntu2404", 32, 38), ("AzureLinux3", 28, 36)]
)
def test_image_when_its_versions_are_counted_runs_from_the_oldest_to_the_newest(
    image: str, oldest: int, newest: int
) -> None:
    def runs(minor: int) -> bool:
        return check(T4, {"image": image, "kubernetes_version": f"1.{minor}"}) == []

    assert [minor for minor in range(20, 45) if runs(minor)] == [*range(oldest, newest + 1)]


@pytest.mark.parametrize("image", [name for name in IMAGES if name != "AzureContainerLinux"])
def test_image_when_it_has_a_driver_for_arm64_is_not_refused_there(image: str) -> None:
    assert [problem.code for problem in check(GB200, {"image": image})] == ["aks-arm-driver"]


def test_managed_pool_when_the_version_is_new_enough_is_not_refused() -> None:
    found = check(T4, {"plugin_owner": "cloud", "kubernetes_version": "1.34"})

    assert [problem.code for problem in found] == ["aks-managed-preview"]


def test_taint_when_twice_and_not_ours_is_not_told_to_drop_ours() -> None:
    twice = (GPU_TAINT, Taint("a", "b", "NoSchedule"), Taint("a", "c", "NoExecute"))
    (found,) = check(T4, {"taints": twice})

    assert (found.code, found.fix) == ("aks-taint-twice", "keep one of them")


@pytest.mark.parametrize("row", COMBINATIONS, ids=lambda row: f"{row.code} {row.path} {row.message[:20]}")
def test_combination_when_compared_with_the_cases_has_one_of_its_own(row: Combination) -> None:
    cases = [case for case in BROKEN if case.code == row.code]
    said = [found.seen for case in cases for found in check(case.machine, case.changes)]

    assert row.message in said


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
        (T4, {"nodes": Nodes(1000, 1000, 1000, autoscaled=False), "upgrade": Upgrade("0", "1")}),
        (T4, {"nodes": Nodes(909, 909, 1000, autoscaled=True)}),
        (T4, {"nodes": Nodes(998, 998, 998, autoscaled=False), "upgrade": Upgrade("2")}),
        (T4, {"name": "a234567890"}),
        (T4, {"capacity": Capacity("spot"), "nodes": FROM_ZERO}),
        (T4, {"capacity": Capacity("spot"), "nodes": Nodes(0, 0, 0, autoscaled=False)}),
        (T4, {"capacity": Capacity("spot", -1), "nodes": FROM_ONE}),
        (T4, {"capacity": Capacity("spot", 0.12345), "nodes": FROM_ONE}),
        (
            T4,
            {
                "capacity": Capacity("spot"),
                "nodes": FROM_ONE,
                "upgrade": Upgrade("0"),
                "native": {"scaleSetEvictionPolicy": "Delete"},
            },
        ),
        (A100, {"capacity": reserved(), "upgrade": Upgrade("0", "1")}),
        (A100, {"capacity": reserved(GROUP.upper()), "upgrade": Upgrade("0%", "10%")}),
        (A100, {"capacity": replace(reserved(), type="on-demand")}),
        (A100, {"capacity": Capacity("reserved")}),
        (A100, {"capacity": Capacity("on-demand"), "upgrade": Upgrade("33%", "0")}),
        *((T4, {"image": name}) for name in IMAGES),
        (T4, {"image": "Ubuntu2204", "kubernetes_version": "1.36"}),
        (T4, {"native": {"enableFIPS": True, "securityProfile": {"enableVTPM": True}}}),
        (T4, {"disk": Disk(None, "Managed")}),
        (T4, {"image": "Ubuntu2404", "kubernetes_version": "1.32.1"}),
        (T4, {"image": "Ubuntu", "kubernetes_version": "1.99"}),
        ("Standard_NC144ds_xl_RTXPRO6000BSE_v6", {"image": "Ubuntu2404"}),
        (T4, {"max_pods": 30}),
        (T4, {"max_pods": 250}),
        (T4, {"max_pods": 10, "nodes": Nodes(3, 3, 3, autoscaled=False)}),
        ("Standard_ND96asr_v4", {"max_pods": 57, "sharing": Sharing(MigCut("1g.5gb", "single"))}),
        (T4, {"plugin_owner": "helm", "kubernetes_version": "1.33.5"}),
        (T4, {"disk": Disk(128, "Managed"), "native": DEALLOCATE}),
        (T4, {"native": {"scaleDownMode": "Delete"}, "plugin_owner": "operator"}),
        (T4, {"image": "AzureLinux", "native": {"securityProfile": {"enableSecureBoot": True}}}),
        (T4, {"native": {"securityProfile": {"enableVTPM": True}, "enableFIPS": False}}),
        (T4, {"native": {"nodePublicIPPrefixID": LIMITS["nodePublicIPPrefixID"].example, "enableNodePublicIP": True}}),
        (T4, {"kubelet": {"imageGCLowThresholdPercent": 70, "imageGCHighThresholdPercent": 79}}),
        (T4, {"kubelet": {"imageGCLowThresholdPercent": 85}}),
        (T4, {"kubelet": {"imageGCHighThresholdPercent": 80}}),
        (T4, {"kubelet": {"containerLogMaxSize": "2048Ki", "cpuCFSQuota": False, "podPidsLimit": 1}}),
        (T4, {"sysctls": {"vm.max_map_count": "262144", "net/ipv4/tcp_tw_reuse": "1"}}),
        (T4, {"sysctls": {"net.ipv4.ip_local_port_range": "1024\t65000"}}),
        (H100, {"local_storage": "raw", "disk": Disk(128, None)}),
        (H100, {"local_storage": "raw", "disk": Disk(None, "Managed")}),
        (T4, {"disk": Disk(None, None, encrypted=True)}),
        (T4, {"placement": "none"}),
        ("Standard_NCC40ads_H100_v5", {"confidential": True}),
        (T4, {"native": {"artifactStreamingProfile": {"enabled": True}, "messageOfTheDay": "aGk="}}),
        (T4, {"native": {"localDNSProfile": {"mode": "Required", "vnetDNSOverrides": {".": {"maxConcurrent": 9}}}}}),
        (T4, {"native": {"networkProfile": {"allowedHostPorts": [{"portStart": 80, "portEnd": 90}]}}}),
        (T4, {"native": {"kubeletConfig": {"failSwapOn": False}, "linuxOSConfig": {"swapFileSizeMB": 1500}}}),
        (T4, {"tags": {"k" * 512: "v" * 256, "with space": "a/b?", **{f"t{i}": "" for i in range(43)}}}),
        (T4, {"zones": ("1",), "native": {"enableUltraSSD": True, "hostGroupID": LIMITS["hostGroupID"].example}}),
        (T4, {"tags": {"k" * 511: "v" * 256, "l" * 511: "v" * 256, "m" * 283: "", "n": "v"}}),
        (T4, {"labels": {"example.com/accelerator": "a", "node.kubernetes.io/storagetier": "b"}}),
        (T4, {"zones": ("1", "2", "3")}),
        (T4, {"disk": Disk(30, "Ephemeral")}),
        (T4, {"disk": Disk(176, "Ephemeral")}),
        (T4, {"disk": Disk(177, "Managed")}),
        ("Standard_NC8ads_A10_v4", {"disk": Disk(2048, "Ephemeral")}),
        (
            T4,
            {"labels": {"node.kubernetes.io/x": "a", "node-role.kubernetes.io/gpu": "", "example.com/agentpool": "b"}},
        ),
        (T4, {"taints": (Taint("sku", "gpu", "NoSchedule"),), "gpu_taint": False}),
        (T4, {"taints": (Taint("sku", "gpu", "NoExecute"),), "gpu_taint": False}),
        (T4, {"taints": (), "gpu_taint": False, "capacity": Capacity("spot"), "nodes": FROM_ZERO}),
        (T4, {"driver_owner": "cloud", "plugin_owner": "none"}),
        (
            T4,
            {
                "native": {
                    "enableFIPS": True,
                    "upgradeSettings": {"drainTimeoutInMinutes": 5, "undrainableNodeBehavior": "Cordon"},
                    "linuxOSConfig": {"transparentHugePageEnabled": "never"},
                }
            },
        ),
    ],
)
def test_check_when_all_is_well_finds_nothing(machine: str, changes: dict[str, object]) -> None:
    found = AksProvider().check(make_target(machine, **changes))
    assert [problem for problem in found if problem.code != "aks-series-frozen"] == []  # of the machine, not the pool
