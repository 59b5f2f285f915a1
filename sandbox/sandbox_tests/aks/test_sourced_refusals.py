"""Requests that Azure refuses, each with the public source of the rule or of the words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from sandbox_tests.aks.arm import API, CLUSTER_PATH, MIG, SUBSCRIPTION, T4, Json

if TYPE_CHECKING:
    from sandbox_tests.aks.arm import Arm

GITHUB = "https://github.com/"
LEARN = "https://learn.microsoft.com/azure/"
NODE_CONFIG = f"{LEARN}aks/custom-node-configuration"
KARPENTER_BOUNDS = f"{GITHUB}Azure/karpenter-provider-azure/pull/1502"
KARPENTER_FAKE = f"{GITHUB}Azure/karpenter-provider-azure/blob/main/pkg/fake/aksmachinesapi.go"
SDK = "azure-mgmt-containerservice 41.8.0, docstring of "
TAGS = f"{LEARN}azure-resource-manager/management/tag-resources"
LABELS = f"{GITHUB}Azure/AKS/issues/2866"
INVALID, BAD = "InvalidParameter", "BadRequest"
SPOT: Json = {**T4, "scaleSetPriority": "Spot"}
SYSTEM: Json = {"count": 1, "vmSize": "Standard_D4s_v5", "mode": "System"}
WINDOWS: Json = {"count": 1, "vmSize": "Standard_D4s_v5", "osType": "Windows", "osSKU": "Windows2022"}
SCALED: Json = {**T4, "enableAutoScaling": True, "minCount": 0, "maxCount": 3}


@dataclass(frozen=True)
class Row:
    """A new pool and its refusal.

    Attributes:
        words: A piece of the message.
        source: Where the rule or the words are public.
    """

    code: str
    words: str
    source: str
    properties: Json = field(default_factory=dict)


def pool(code: str, words: str, source: str, base: Json = T4, **members: object) -> Row:
    return Row(code, words, source, {**base, **members})


def kubelet(words: str, source: str = NODE_CONFIG, **settings: object) -> Row:
    return pool(INVALID, words, source, kubeletConfig=settings)


def linux(words: str, source: str = NODE_CONFIG, **settings: object) -> Row:
    return pool(INVALID, words, source, linuxOSConfig=settings)


def sysctl(words: str, **values: object) -> Row:
    return linux(words, KARPENTER_BOUNDS, sysctls=values)


def upgrade(words: str, source: str, base: Json = T4, **settings: object) -> Row:
    return pool(INVALID, words, source, base, upgradeSettings=settings)


POOLS = {
    "ports in the wrong order": pool(
        INVALID,
        "200-100/TCP must be a range of ports",
        f"{SDK}PortRange",
        networkProfile={"allowedHostPorts": [{"portStart": 200, "portEnd": 100, "protocol": "TCP"}]},
    ),
    "tags of public addresses that nodes do not have": pool(
        INVALID,
        "the nodes have no public IPs",
        f"{SDK}AgentPoolNetworkProfile",
        networkProfile={"nodePublicIPTags": [{"ipTagType": "RoutingPreference", "tag": "Internet"}]},
    ),
    "artifact streaming on Windows": pool(
        INVALID,
        "not supported on Windows",
        f"{LEARN}aks/artifact-streaming",
        WINDOWS,
        artifactStreamingProfile={"enabled": True},
    ),
    "artifact streaming with pod sandboxing": pool(
        INVALID,
        "not supported with pod sandboxing",
        f"{LEARN}aks/artifact-streaming",
        workloadRuntime="KataVmIsolation",
        artifactStreamingProfile={"enabled": True},
    ),
    "a mode of local DNS of nobody": pool(
        INVALID, "localDNSProfile.mode", f"{SDK}LocalDNSProfile", localDNSProfile={"mode": "Sometimes"}
    ),
    "a network setting of nobody": pool(
        "UnmarshalError",
        'unknown field "ports"',
        f"{GITHUB}Azure/azure-rest-api-specs/issues/40740",
        networkProfile={"ports": []},
    ),
    "no count": Row(
        INVALID, "properties.count is missing", f"{GITHUB}pulumi/pulumi-azure-native/issues/2943", MIG | {"count": None}
    ),
    "a count below the minimum": pool(
        INVALID,
        "greater or equal to minCount:1",
        f"{GITHUB}kubernetes-sigs/cluster-api-provider-azure/issues/5947",
        SCALED,
        count=0,
        minCount=1,
    ),
    "a minimum without autoscaling": pool(INVALID, "minCount", f"{GITHUB}ksctl/ksctl/issues/629", minCount=1),
    "a size of nobody": pool(
        "VMSizeNotSupported", "is not supported for subscription", KARPENTER_FAKE, vmSize="Standard_NC1"
    ),
    "a restricted size": pool(BAD, "restricted by AKS", f"{LEARN}aks/quotas-skus-regions", vmSize="Standard_A1_v2"),
    "an unknown property": pool(
        "UnmarshalError", 'json: unknown field "gpus"', f"{GITHUB}Azure/azure-rest-api-specs/issues/40740", gpus=1
    ),
    "a text for a number": pool(
        "UnmarshalError", "cannot unmarshal string", f"{GITHUB}Azure/AKS/issues/1402", count="1"
    ),
    "a Windows system on Linux": pool(
        "InvalidOSSKU", "Unrecognized OSSKU", f"{GITHUB}Azure/azure-cli/issues/24966", osSKU="Windows2022"
    ),
    "a Linux system on Windows": pool(
        "InvalidOSSKU", "OSSKU='Ubuntu' is invalid", f"{GITHUB}Azure/azure-cli/issues/24966", WINDOWS, osSKU="Ubuntu"
    ),
    "a system of nobody": pool(
        "InvalidOSSKU", "OSSKU='Debian' is invalid", f"{GITHUB}Azure/azure-cli/issues/24966", osSKU="Debian"
    ),
    "a disk too small": pool(
        INVALID, "cannot be less than 30GB", f"{GITHUB}pulumi/pulumi-azure-native/issues/663", osDiskSizeGB=20
    ),
    "a disk too large": pool(
        INVALID, "larger than 2048GB", f"{GITHUB}pulumi/pulumi-azure-native/issues/663", osDiskSizeGB=2049
    ),
    "an ephemeral disk beyond the cache": pool(
        "VMCacheSizeTooSmall", "cache size", f"{GITHUB}Azure/AKS/issues/2672", osDiskType="Ephemeral", osDiskSizeGB=2048
    ),
    "251 pods": pool(INVALID, "between 10 and 250", f"{LEARN}aks/quotas-skus-regions", maxPods=251),
    "a driver type on Linux": pool(
        "UnmarshalError", "driverType", f"{SDK}GPUProfile: a field of previews", gpuProfile={"driverType": "GRID"}
    ),
    "MIG on a T4": pool(
        INVALID, "not supported by VM size", f"{GITHUB}Azure/AKS/pull/5913", gpuInstanceProfile="MIG1g"
    ),
    "the retired tag": pool(
        BAD, "SkipGPUDriverInstall is retired", f"{GITHUB}Azure/AKS/issues/4925", tags={"SkipGPUDriverInstall": "true"}
    ),
    "a tag with <": pool(
        "InvalidTagNameCharacters", "contains <", f"{GITHUB}MicrosoftDocs/azure-docs/issues/5647", tags={"a<b": "c"}
    ),
    "51 tags": pool(BAD, "at most 50 tags", TAGS, tags={f"k{at}": "v" for at in range(51)}),
    "a tag's name of 513": pool(BAD, "at most 512", TAGS, tags={"k" * 513: "v"}),
    "a tag's value of 257": pool(BAD, "values 256", TAGS, tags={"k": "v" * 257}),
    "a label of AKS": pool(
        BAD,
        "preserved by aks system labels",
        f"{GITHUB}ams0/aks-nvme-ssd-provisioner/issues/5",
        nodeLabels={"kubernetes.azure.com/x": "y"},
    ),
    "a label of Kubernetes": pool(BAD, "allowed prefix", LABELS, nodeLabels={"kubernetes.io/x": "y"}),
    "a taint of AKS": pool(
        BAD,
        "preserved by aks system taints",
        f"{GITHUB}Azure/karpenter-provider-azure/issues/1830",
        nodeTaints=["kubernetes.azure.com/x=y:NoSchedule"],
    ),
    "a taint's key twice": pool(
        INVALID, "more than once", f"{GITHUB}Azure/AKS/issues/1412", nodeTaints=["a=b:NoSchedule", "a=c:NoExecute"]
    ),
    "a hard taint on a system pool": pool(
        "SystemPoolHasRestrictedTaint",
        "a=b:NoSchedule",
        f"{GITHUB}Azure/AKS/issues/2578",
        SYSTEM,
        nodeTaints=["a=b:NoSchedule"],
    ),
    "a Spot system pool": pool(INVALID, "User", f"{LEARN}aks/spot-node-pool", SYSTEM, scaleSetPriority="Spot"),
    "a Spot price of nothing": pool(INVALID, "was 0", f"{LEARN}aks/spot-node-pool", SPOT, spotMaxPrice=0),
    "a version above the plane's": pool(
        "NodePoolMcVersionIncompatible",
        "cannot be bigger",
        f"{LEARN}aks/upgrade-node-pools",
        orchestratorVersion="1.35.0",
    ),
    "surge on Spot": upgrade("can't set max surge", f"{GITHUB}Azure/bicep/issues/14517", SPOT, maxSurge="33%"),
    "a share of Spot nodes left out": upgrade(
        "can't set maxUnavailable",
        f"{GITHUB}hashicorp/terraform-provider-azurerm/issues/31129",
        SPOT,
        maxUnavailable="1",
    ),
    "surge and nodes left out": upgrade(
        "when maxSurge is 0", f"{GITHUB}Azure/AKS/issues/4277", maxSurge="1", maxUnavailable="1"
    ),
    "a drain of four minutes": upgrade("5 and 1440", f"{SDK}AgentPoolUpgradeSettings", drainTimeoutInMinutes=4),
    "a soak of 31 minutes": upgrade("0 and 30", f"{SDK}AgentPoolUpgradeSettings", nodeSoakDurationInMinutes=31),
    "a reservation of Spot": pool(
        BAD,
        "Spot",
        f"{LEARN}aks/use-capacity-reservation-groups",
        SPOT,
        capacityReservationGroupID=f"/subscriptions/{SUBSCRIPTION}/resourcegroups/ml/providers/Microsoft.Compute"
        "/capacityReservationGroups/t4",
    ),
    "a dynamic CPU manager": kubelet("none, static", cpuManagerPolicy="dynamic"),
    "a topology of nobody": kubelet("single-numa-node", topologyManagerPolicy="numa"),
    "images: low above high": kubelet(
        "cannot be higher", f"{SDK}KubeletConfig", imageGcLowThreshold=90, imageGcHighThreshold=80
    ),
    "images: above all": kubelet("between 0 and 100", f"{SDK}KubeletConfig", imageGcHighThreshold=101),
    "one log file": kubelet("at least 2", f"{SDK}KubeletConfig", containerLogMaxFiles=1),
    "a period in words": kubelet("100ms", f"{SDK}KubeletConfig", cpuCfsQuotaPeriod="soon"),
    "huge pages sometimes": linux("always, madvise, never", transparentHugePageEnabled="sometimes"),
    "defragmentation sometimes": linux("defer", transparentHugePageDefrag="sometimes"),
    "swap beside a kubelet that fails on it": linux("failSwapOn", swapFileSizeMB=1500),
    "one map": sysctl("65530 and 262144", vmMaxMapCount=1),
    "one connection": sysctl("4096 and 3240000", netCoreSomaxconn=1),
    "swappiness of 101": sysctl("0 and 100", vmSwappiness=101),
    "few watches": sysctl("781250 and 2097152", fsInotifyMaxUserWatches=1),
    "ports too low": sysctl("1024 to 60999", netIpv4IpLocalPortRange="80 65000"),
    "Linux settings on Windows": pool(
        INVALID, "not supported on Windows", NODE_CONFIG, WINDOWS, linuxOSConfig={"sysctls": {}, "swapFileSizeMB": 1}
    ),
    "a message that is not base64": pool(
        INVALID, "base64", f"{SDK}ManagedClusterAgentPoolProfileProperties", messageOfTheDay="Hello!"
    ),
}

QUERIES = {
    "usages of a location of nobody": (
        f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/locations/moonbase/usages",
        "NoRegisteredProviderFound",
        f"{GITHUB}Azure/azure-cli/issues/2003",
    ),
    "versions of a location of nobody": (
        f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.ContainerService/locations/moonbase/kubernetesVersions",
        "NoRegisteredProviderFound",
        f"{GITHUB}Azure/azure-cli/issues/2003",
    ),
    "a subscription that is none": (
        "/subscriptions/mine/locations",
        "InvalidSubscriptionId",
        f"{LEARN}azure-resource-manager/troubleshooting/common-deployment-errors",
    ),
}


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", POOLS)
def test_request_when_azure_refuses_it_then_refused_in_its_words(arm: Arm, name: str) -> None:
    row = POOLS[name]
    answer = arm.put("gpu1", row.properties)
    assert (answer.status_code, answer.json()["code"]) == (400, row.code)
    assert row.words in answer.json()["message"], row.source


@pytest.mark.parametrize("name", QUERIES)
def test_query_when_azure_refuses_it_then_refused_in_its_words(arm: Arm, name: str) -> None:
    path, code, source = QUERIES[name]
    answer = arm.http.get(path, params={"api-version": API})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code), source


ACCEPTED = {
    "settings at their limits": {
        **T4,
        "kubeletConfig": {
            "cpuManagerPolicy": "static",
            "topologyManagerPolicy": "best-effort",
            "imageGcHighThreshold": 100,
            "imageGcLowThreshold": 0,
            "containerLogMaxFiles": 2,
            "cpuCfsQuotaPeriod": "1h30m",
            "failSwapOn": False,
        },
        "linuxOSConfig": {
            "transparentHugePageEnabled": "never",
            "transparentHugePageDefrag": "defer+madvise",
            "swapFileSizeMB": 1,
            "sysctls": {"vmMaxMapCount": 262_144, "netIpv4IpLocalPortRange": "32768 65535"},
        },
        "messageOfTheDay": "aGVsbG8=",
    },
    "a Spot pool as az sends it": {**SPOT, "upgradeSettings": {"undrainableNodeBehavior": "Schedule"}},
    "a Spot pool with a surge of nothing": {**SPOT, "upgradeSettings": {"maxSurge": "0"}},
    "nodes left out instead of surge": {**T4, "upgradeSettings": {"maxSurge": "0", "maxUnavailable": "1"}},
    "a tag of other letters": {**T4, "tags": {"größe:a=b": "<any value>"}},
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_pool_when_the_rules_hold_then_made(arm: Arm, name: str) -> None:
    answer = arm.put("gpu1", ACCEPTED[name])
    assert answer.status_code == 201, answer.text


def test_locations_and_versions_when_asked_then_what_there_is(arm: Arm) -> None:
    def get(path: str) -> Json:
        return dict(arm.http.get(path, params={"api-version": API}).json())

    locations = get(f"/subscriptions/{SUBSCRIPTION}/locations")["value"]
    assert isinstance(locations, list)
    assert {"eastus", "swedencentral"} <= {place["name"] for place in locations}
    offered = arm.sdk.managed_clusters.list_kubernetes_versions("eastus").as_dict()["values"]
    assert [(minor["version"], list(minor["patchVersions"])) for minor in offered] == [("1.34", ["1.34.2"])]
    profile = get(f"{CLUSTER_PATH}/upgradeProfiles/default")["properties"]
    assert isinstance(profile, dict)
    assert profile["controlPlaneProfile"]["kubernetesVersion"] == "1.34.2"
