"""Specs by the dozen: what users of a cloud may write, drawn by a seed.

In scope: the choices of each cloud, and the drawing. Out of scope: what becomes of the specs.

A draw that the checks refuse is drawn again, so the choices need not repeat the rules. `paths_of` tells which fields
of the format a set of specs uses; the test that asks sees to it that none is refused every time.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from gpukube.errors import SpecError
from gpukube_aks.pool.limits import LIMITS as AKS_LIMITS
from gpukube_aks.pool.members import NATIVE as AKS_NATIVE
from gpukube_eks.pool.native import LAUNCH
from gpukube_eks.pool.native import NATIVE as EKS_NATIVE
from gpukube_gke.pool.native import NATIVE as GKE_NATIVE
from tests.changes.world import Document, Pool, prepare, spec

Random = random.Random


@dataclass(frozen=True)
class Machine:
    """An instance type, with the GPUs in it, the cuts that its cloud makes of them, and where the sandbox has it."""

    name: str
    model: str
    gpus: int
    cuts: tuple[str, ...] = ()
    zones: str = "123abc"


@dataclass(frozen=True)
class Choices:
    """What a cloud's users choose from.

    Attributes:
        machines: Instance types.
        names: Pool names; `{}` is a number that makes them different.
        zones: Lists of zones.
        disks: System disks.
        images: Node images.
        labels: Labels, odd ones too.
        tags: Tags or resource labels.
        taints: Taints, odd ones too.
        owners: `driver` and `devicePlugin`.
        native: Fields of the escape hatch by path; of several for one pool at most one.
        reserved: Where reserved machines come from, by instance type.
        versions: Of Kubernetes.
        upgrades: How nodes are replaced.
        pods: Most pods of a node.
        prices: Highest Spot prices.
        large: Fields for large pools, by name.
    """

    machines: tuple[Machine, ...]
    names: tuple[str, ...]
    zones: tuple[tuple[str, ...], ...]
    disks: tuple[Mapping[str, object], ...]
    images: tuple[str, ...]
    labels: Mapping[str, tuple[str, ...]]
    tags: Mapping[str, tuple[str, ...]]
    taints: tuple[tuple[str, str], ...]
    owners: tuple[Mapping[str, object], ...]
    native: Mapping[str, tuple[object, ...]]
    reserved: Mapping[str, tuple[Mapping[str, object], ...]]
    versions: tuple[str, ...]
    upgrades: tuple[Mapping[str, object], ...]
    pods: tuple[int, ...]
    prices: tuple[float | None, ...] = (None,)
    large: Mapping[str, tuple[object, ...]] = field(default_factory=dict)


LONG = "v" * 63
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
OWNERS = ("ml-platform-{}", "Team_A.v2-{}", "x{}", f"{'o' * 59}-{{}}")
TAGS = {"Cost-Center": ("42", "R-D"), "team": ("vision", "a b", ""), "env:stage": ("dev=1",)}
LABELS = {
    "team": ("vision", "Audio_2.x", "true", "1.30"),
    "example.com/tier": ("a", "no", "0x10"),
    "a.b-c.example.com/Some_Key.v2": (LONG, "1e3"),
    "plain": ("null", "x"),
}
TAINTS = (
    ("dedicated", "vision"),
    ("example.com/Some_Key.v2", "Yes"),
    ("sku", "gpu"),
    ("x", LONG),
    ("team", "1.30"),
)
SHAPES: Mapping[str, tuple[object, ...]] = {"bool": (True, False), "int": (11, 60), "str": ("x",), "strings": (["x"],)}

EKS = Choices(
    machines=(
        Machine("g4dn.xlarge", "T4", 1),
        Machine("g4dn.12xlarge", "T4-16GB", 4),
        Machine("g5g.xlarge", "T4G", 1),
        Machine("g6.2xlarge", "L4", 1),
        Machine("g6e.12xlarge", "L40S", 4),
        Machine("g7e.2xlarge", "RTXPRO6000", 1, ("1g.24gb", "4g.96gb")),
        Machine("p4d.24xlarge", "A100-40GB", 8, ("1g.5gb", "3g.20gb", "1g.5gb+me"), "ab"),
        Machine("p5.4xlarge", "H100-80GB", 1, ("1g.10gb", "1g.20gb", "2g.20gb", "7g.80gb"), "ab"),
        Machine("p5en.48xlarge", "H200", 8, ("1g.18gb", "3g.71gb"), "b"),
    ),
    names=("pool{}", "Pool_{}-x", f"{'p' * 58}-{{}}", "9lives{}"),
    zones=(("us-east-1a",), ("us-east-1b", "us-east-1a"), ("us-east-1c",)),
    disks=(
        {"sizeGiB": 20},
        {"sizeGiB": 300, "type": "gp3"},
        {"sizeGiB": 100, "type": "gp2"},
        {"sizeGiB": 200, "type": "io2", "iops": 4000},
        {"iops": 5000, "throughput": 300, "encrypted": True},
    ),
    images=("al2023", "bottlerocket"),
    labels=LABELS,
    tags={**TAGS, "a b+c=d.e_f:g/h@i": ("z" * 256,)},
    taints=TAINTS,
    owners=(
        {"driver": {"owner": "cloud"}},
        {"devicePlugin": {"owner": "helm"}},
        {"devicePlugin": {"owner": "none"}},
        {"devicePlugin": {"owner": "cloud"}},
    ),
    reserved={"p4d.24xlarge": ({"eks": {"capacityReservation": "cr-0fedcba9876543210"}},)},
    versions=("1.34",),
    upgrades=({"maxUnavailable": 2}, {"maxUnavailable": "33%", "maxSurge": 0}, {"maxSurge": 1}),
    pods=(29, 110),
    native={
        "nodeRole": ("arn:aws:iam::111122223333:role/other-nodes",),
        "releaseVersion": ("1.34.2-20260714",),
        "ebsOptimized": (True,),
        "monitoring.enabled": (True,),
        "metadataOptions.httpTokens": ("optional", "required"),
        "metadataOptions.httpPutResponseHopLimit": (3,),
        "metadataOptions.instanceMetadataTags": ("enabled", "disabled"),
        "updateConfig.maxUnavailable": (2,),
        "updateConfig.maxUnavailablePercentage": (33,),
        "updateConfig.updateStrategy": ("DEFAULT", "MINIMAL"),
        "nodeRepairConfig.enabled": (True, False),
        "nodeRepairConfig.maxUnhealthyNodeThresholdCount": (3,),
        "nodeRepairConfig.maxUnhealthyNodeThresholdPercentage": (20,),
        "nodeRepairConfig.maxParallelNodesRepairedCount": (1,),
        "nodeRepairConfig.maxParallelNodesRepairedPercentage": (10,),
        "nodeRepairConfig.nodeRepairConfigOverrides": (
            [
                {
                    "nodeMonitoringCondition": "AcceleratedInstanceNotReady",
                    "nodeUnhealthyReason": "NvidiaXID13Error",
                    "minRepairWaitTimeMins": 10,
                    "repairAction": "Replace",
                }
            ],
        ),
    },
    large={
        "instanceTypes": (["g6.2xlarge", "g6.4xlarge"], ["g6.4xlarge", "g6.xlarge"]),
        "network": ({"highSpeed": True},),
        "placement": ("compact", "none"),
        "localStorage": ("ephemeral", "raw"),
        "kubelet": (
            {"cpuManagerPolicy": "static", "topologyManagerPolicy": "restricted", "topologyManagerScope": "pod"},
            {"podPidsLimit": 4096, "containerLogMaxFiles": 3},
        ),
        "sysctls": ({"net.core.somaxconn": "65536"}, {"vm.max_map_count": "262144", "kernel.threads-max": "99999"}),
        "hugepages": ({"2Mi": 512},),
    },
)

AKS_GROUP = f"/subscriptions/{'1' * 8}-2222-3333-4444-{'5' * 12}/resourceGroups/ml/providers/Microsoft.Compute"
AKS = Choices(
    machines=(
        Machine("Standard_NC4as_T4_v3", "T4", 1),
        Machine("Standard_NC64as_T4_v3", "T4-16GB", 4),
        Machine("Standard_NC24ads_A100_v4", "A100-80GB", 1, ("1g.10gb", "2g.20gb", "7g.80gb")),
        Machine("Standard_NC80adis_H100_v5", "H100-94GB", 2, ("1g.12gb", "3g.47gb", "4g.47gb")),
        Machine("Standard_ND96asr_v4", "A100-40GB", 8, ("1g.5gb", "2g.10gb", "3g.20gb"), "12"),
        Machine("Standard_ND96isr_H200_v5", "H200", 8, ("1g.18gb",), "1"),
        Machine("Standard_NCC40ads_H100_v5", "H100-94GB", 1),
        Machine("Standard_NV72ads_A10_v5", "A10", 2),
        Machine("Standard_NV36ads_A10_v5", "A10-24GB", 1),
    ),
    names=("p{}", "gpupool{}", "z0z0z0z0{}", "abcdefghi{}"),
    zones=(("1",), ("2", "1")),
    disks=({"sizeGiB": 30}, {"sizeGiB": 512, "type": "Managed"}, {"sizeGiB": 128, "type": "Ephemeral"}),
    images=("Ubuntu", "Ubuntu2204", "Ubuntu2404", "AzureLinux", "AzureLinux3", "AzureContainerLinux"),
    labels={**LABELS, "node.kubernetes.io/purpose": ("gpu",), "empty": ("",)},
    tags=TAGS,
    taints=TAINTS,
    owners=(
        {"driver": {"owner": "cloud"}},
        {"devicePlugin": {"owner": "helm"}},
        {"devicePlugin": {"owner": "none"}},
        {"devicePlugin": {"owner": "cloud"}},
    ),
    reserved=dict.fromkeys(
        ("Standard_NC4as_T4_v3", "Standard_NC24ads_A100_v4", "Standard_NV36ads_A10_v5"),
        ({"aks": {"capacityReservationGroup": f"{AKS_GROUP}/capacityReservationGroups/drawn"}},),
    ),
    versions=("1.34", "1.34.2", "1.33"),
    upgrades=({"maxSurge": 1}, {"maxSurge": "33%"}, {"maxSurge": 0, "maxUnavailable": 1}),
    pods=(30, 250),
    native={
        "networkProfile.nodePublicIPTags": ([{"ipTagType": "RoutingPreference", "tag": "Internet"}],),
        "networkProfile.allowedHostPorts": (
            [{"portStart": 80, "portEnd": 80, "protocol": "TCP"}],
            [{"portStart": 8000, "portEnd": 9000, "protocol": "UDP"}],
        ),
        "localDNSProfile.vnetDNSOverrides": ({".": {"protocol": "PreferUDP", "maxConcurrent": 1000}},),
        "localDNSProfile.kubeDNSOverrides": ({"cluster.local": {"queryLogging": "Log"}},),
    },
    prices=(None, 950, 120.12345),  # above every Spot price, or there would be no machines
    large={
        "network": ({"highSpeed": True},),
        "placement": ("none", f"{AKS_GROUP}/proximityPlacementGroups/drawn"),
        "localStorage": ("raw",),
        "confidential": (True,),
        "kubelet": (
            {"cpuManagerPolicy": "static", "topologyManagerPolicy": "restricted", "podPidsLimit": 4096},
            {"cpuCFSQuota": False, "cpuCFSQuotaPeriod": "50ms", "containerLogMaxSize": "1Gi"},
            {"imageGCHighThresholdPercent": 90, "imageGCLowThresholdPercent": 70, "containerLogMaxFiles": 3},
            {"allowedUnsafeSysctls": ["net.core.somaxconn", "kernel.msg*"]},
        ),
        "sysctls": (
            {"vm.max_map_count": "262144", "net/core/somaxconn": "65536"},
            {"net.ipv4.tcp_tw_reuse": "0", "net.ipv4.ip_local_port_range": "32000 60000"},
        ),
    },
)

GKE = Choices(
    machines=(
        Machine("n1-standard-8", "T4", 1),
        Machine("n1-highmem-16", "V100-16GB", 2),
        Machine("n1-standard-4", "P100", 1),
        Machine("g2-standard-4", "L4", 1),
        Machine("g2-standard-24", "L4-24GB", 2),
        Machine("a2-highgpu-1g", "A100-40GB", 1, ("1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb")),
        Machine("a2-ultragpu-2g", "A100-80GB", 2, ("1g.10gb", "7g.80gb")),
        Machine("a3-highgpu-8g", "H100-80GB", 8, ("1g.20gb", "3g.40gb")),
        Machine("a3-highgpu-1g", "H100-80GB", 1, ("1g.20gb",)),
        Machine("a3-ultragpu-8g", "H200", 8),
        Machine("g4-standard-48", "RTXPRO6000", 1, ("1g.24gb", "1g.24gb+me", "4g.96gb")),
    ),
    names=("pool-{}", "p{}", f"a{'-' * 37}{{}}"),
    zones=(("us-central1-a",), ("us-central1-b", "us-central1-a"), ("us-central1-c",)),
    disks=(
        {"sizeGiB": 50},
        {"sizeGiB": 200, "type": "pd-ssd"},
        {"sizeGiB": 100, "type": "hyperdisk-balanced"},
        {"type": "hyperdisk-balanced", "iops": 6000, "throughput": 500},
        {"encrypted": True, "kmsKey": "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"},
    ),
    images=("COS_CONTAINERD", "UBUNTU_CONTAINERD"),
    labels={**LABELS, "empty": ("",)},
    tags={"cost-center": ("42", ""), "team": ("vision",), f"k{'_' * 62}": ("-" * 63,)},
    taints=(*TAINTS, ("bare", "")),
    owners=(
        {"driver": {"owner": "cloud"}},
        {"driver": {"owner": "none"}},
        {"devicePlugin": {"owner": "cloud"}},
        {"devicePlugin": {"owner": "none"}, "driver": {"owner": "none"}},
        {"devicePlugin": {"owner": "none"}},
    ),
    reserved=dict.fromkeys(
        ("g2-standard-4", "a2-highgpu-1g", "a2-ultragpu-2g", "a3-highgpu-8g"),
        (
            {"gke": {"reservation": "drawn"}},
            {"gke": {"flexStart": {"maxRunDuration": "7d"}}},
            {"gke": {"queued": {}}},
        ),
    ),
    versions=("1.34", "1.34.1"),
    upgrades=({"maxSurge": 1}, {"maxSurge": 0, "maxUnavailable": 1}),
    pods=(32, 110),
    native={
        "upgradeSettings.strategy": ("SURGE", "BLUE_GREEN"),
        "networkConfig.podRange": ("pods",),
        "networkConfig.podIpv4CidrBlock": ("10.96.0.0/14",),
        "config.serviceAccount": ("nodes@ml-prod.iam.gserviceaccount.com",),
        "config.oauthScopes": (["https://www.googleapis.com/auth/cloud-platform"],),
        "config.minCpuPlatform": ("Intel Ice Lake",),
        "config.maxRunDuration": ("3600s",),
        "config.consolidationDelay": ("600s",),
        "config.reservationAffinity.consumeReservationType": ("NO_RESERVATION", "ANY_RESERVATION"),
        "config.ephemeralStorageLocalSsdConfig.localSsdCount": (1, 0),
        "config.localNvmeSsdBlockConfig.localSsdCount": (1, 0),
        "config.tags": (["allow-ssh", "gpu"],),
        "config.advancedMachineFeatures.threadsPerCore": (1, 2),
        "config.secondaryBootDisks": ([{"diskImage": "projects/p/global/images/i", "mode": "CONTAINER_IMAGE_CACHE"}],),
        "networkConfig.additionalNodeNetworkConfigs": ([{"network": "n", "subnetwork": "s"}],),
        "nodeDrainConfig.pdbTimeoutDuration": ("600s",),
        "nodeDrainConfig.graceTerminationDuration": ("60s",),
        "networkConfig.subnetwork": ("projects/ml-prod/regions/us-central1/subnetworks/nodes",),
        "networkConfig.additionalPodNetworkConfigs": ([{"subnetwork": "s", "secondaryPodRange": "r"}],),
        "upgradeSettings.blueGreenSettings.standardRolloutPolicy.batchPercentage": (0.5,),
        "upgradeSettings.blueGreenSettings.standardRolloutPolicy.batchSoakDuration": ("60s",),
        "upgradeSettings.blueGreenSettings.autoscaledRolloutPolicy.waitForDrainDuration": ("3600s",),
        "upgradeSettings.blueGreenSettings.nodePoolSoakDuration": ("600s",),
        "config.metadata": ({"owner": "me"}, {"owner": "you", "empty": ""}),
        "config.storagePools": (["projects/ml-prod/zones/us-central1-a/storagePools/s"],),
        "config.resourceManagerTags.tags": ({"tagKeys/1": "tagValues/2"},),
        "config.soleTenantConfig.nodeAffinities": ([{"key": "k", "operator": "IN", "values": ["v"]}],),
        "config.containerdConfig.registryHosts": ([{"server": "r.example.com", "hosts": [{"host": "m.example.com"}]}],),
        "config.containerdConfig.privateRegistryAccessConfig.certificateAuthorityDomainConfig": (
            [{"fqdns": ["r.example.com"], "gcpSecretManagerCertificateConfig": {"secretUri": "s"}}],
        ),
        "config.kubeletConfig.imageMinimumGcAge": ("1m", "30s"),
        "config.kubeletConfig.imageMaximumGcAge": ("10m", "1h"),
        "config.kubeletConfig.maxParallelImagePulls": (4, 5),
        "config.kubeletConfig.crashLoopBackOff.maxContainerRestartPeriod": ("60s", "10s"),
        "config.kubeletConfig.shutdownGracePeriodSeconds": (30, 120),
        "config.kubeletConfig.shutdownGracePeriodCriticalPodsSeconds": (30, 10),
    },
    large={
        "network": ({"highSpeed": True}, {"highSpeed": False}),
        "placement": ("none",),  # others exclude blue-green upgrades of the spec that follows; tests/wire/gke
        "localStorage": ("ephemeral", "raw"),
        "kubelet": (
            {"cpuManagerPolicy": "static", "topologyManagerPolicy": "restricted", "topologyManagerScope": "pod"},
            {"memoryManagerPolicy": "Static", "podPidsLimit": 4096, "allowedUnsafeSysctls": ["net.core.somaxconn"]},
            {"cpuCFSQuota": False, "imageGCHighThresholdPercent": 80, "imageGCLowThresholdPercent": 60},
            {"cpuCFSQuotaPeriod": "10ms", "containerLogMaxSize": "20Mi", "containerLogMaxFiles": 3},
        ),
        "sysctls": ({"net.core.somaxconn": "4096"}, {"vm.max_map_count": "262144", "net.core.busy_poll": "50"}),
        "hugepages": ({"2Mi": 512}, {"1Gi": 2}, {"2Mi": 128, "1Gi": 1}),
        "confidential": (True,),
    },
)

CHOICES: Mapping[str, Choices] = {"eks": EKS, "aks": AKS, "gke": GKE}


def _leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, shape in table.items():
        if isinstance(shape, Mapping):
            yield from _leaves(shape, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", shape


NATIVE_OF: Mapping[str, Mapping[str, Any]] = {
    "eks": dict(_leaves({**EKS_NATIVE, **LAUNCH})),
    "aks": dict(_leaves(AKS_NATIVE)),
    "gke": dict(_leaves(GKE_NATIVE)),
}
"""Cloud -> path of every native field that a spec may hold -> its shape."""

LACKS: Mapping[str, frozenset[str]] = {
    "eks": frozenset({"confidential"}),
    "aks": frozenset({"hugepages", "instanceTypes"}),
    "gke": frozenset({"instanceTypes"}),
}
"""Cloud -> fields that are missing there."""

SKIPPED: Mapping[str, str] = {
    "alternatives": "its pools are created one after the other until one has machines; tests/alternatives",
    "place": "it makes the clusters of a pool alternatives, and the specs here have one cluster; tests/alternatives",
    "maxHourlyPrice": "it needs the day's prices; tests/alternatives",
}
"""Field that no drawn spec holds -> why."""

SKIPPED_NATIVE: Mapping[str, Mapping[str, str]] = {
    "eks": {
        "subnets": "an emulated cluster's subnets have names of its own; tests/wire/eks",
        "imageId": "it needs image: al2023; tests/changes/test_eks_network",
        "keyName": "key pairs must exist; tests/changes/test_eks_network",
        "securityGroups": "security groups must exist; tests/changes/test_eks_network",
    },
    "aks": {},
    "gke": {
        "config.nodeGroup": "a node group is in one zone; tests/wire/gke",
    }
    | {
        path: "a string or a number like many; tests/wire/gke"
        for path in NATIVE_OF["gke"]
        if re.match(
            r"config\.(kubeletConfig\.eviction|linuxNodeConfig\.(swap|customNode|accurate|nodeVfio|diskIo))", path
        )
    },
}
"""Cloud -> native field that no drawn spec holds -> why."""

VALUES: Mapping[str, tuple[object, ...]] = {f"aks:{path}": (limit.example,) for path, limit in AKS_LIMITS.items()}


def native_paths(cloud: str) -> Mapping[str, tuple[object, ...]]:
    """Return the values to choose from for every native field of a cloud."""
    found: dict[str, tuple[object, ...]] = {}
    for path, shape in NATIVE_OF[cloud].items():
        if path not in SKIPPED_NATIVE[cloud]:
            chosen = CHOICES[cloud].native.get(path) or VALUES.get(f"{cloud}:{path}")
            found[path] = chosen or (shape if isinstance(shape, tuple) else SHAPES[shape])
    return found


def nested(path: str, value: object) -> dict[str, object]:
    """Write a value at a path, "a.b" is {"a": {"b": value}}; the accelerators of GKE are a list of one."""
    head, _, rest = path.partition(".")
    inner = nested(rest, value) if rest else value
    return {head: [inner] if head == "accelerators" else inner}


@dataclass(frozen=True)
class _Draw:
    rng: Random
    cloud: str
    cluster: Mapping[str, Document]
    allowed: Callable[[Pool], bool]
    native: list[tuple[str, tuple[object, ...]]]  # those that no pool has had yet


def draw_specs(
    cloud: str, seed: str, cluster: Mapping[str, Document], size: int, allowed: Callable[[Pool], bool]
) -> list[Document]:
    """Draw specs that can stand on one cluster side by side.

    Args:
        cloud: Whose users write them.
        seed: Makes the draw.
        cluster: Its key and address.
        size: How many.
        allowed: Which pools the cluster takes.
    """
    rng, numbers, found = Random(seed), count(1), list[Document]()
    draw = _Draw(rng, cloud, cluster, allowed, rng.sample(list(native_paths(cloud).items()), len(native_paths(cloud))))
    while len(found) < size:
        pools = [_draw_pool(draw, next(numbers)) for _ in range(rng.choice((1, 1, 2)))]
        owner = rng.choice(OWNERS).format(len(found))
        drawn = _with_defaults(rng, spec(owner, cluster, pools))
        if _is_right(*found, drawn):
            found.append(drawn)
    return found


def _with_defaults(rng: Random, document: Document) -> Document:
    """Move some fields that all pools say alike under `defaults`, where they mean the same."""
    if rng.random() < 0.5:
        return document
    clusters = document["pools"][0]["clusters"]
    bare = [{key: value for key, value in pool.items() if key != "clusters"} for pool in document["pools"]]
    return {**document, "pools": bare, "defaults": {"clusters": clusters}}


def _is_right(*documents: Document) -> bool:
    try:
        prepare(*documents)
    except SpecError:
        return False
    return True


def _draw_pool(draw: _Draw, number: int) -> Pool:
    rng, cloud, choices = draw.rng, draw.cloud, CHOICES[draw.cloud]
    name = rng.choice(choices.names).format(number)
    while True:
        pool: Pool = {"name": name}
        if rng.random() < 0.2:
            pool = {"name": f"Intent.{number}", "names": {cloud: name}}
        machine = rng.choice(choices.machines)
        pool |= _size(rng) | _machine(rng, cloud, machine) | _sharing(rng, machine) | _extras(rng, choices, machine)
        pool |= _native(rng, cloud, draw.native)
        for path in paths_of([{"pools": [pool]}]):
            pool |= BESIDES.get(path, {}) | BESIDES.get(f"{cloud}:{path}", {})
        pool = {key: value for key, value in pool.items() if value is not None}
        is_there = all(zone[-1] in machine.zones for zone in pool.get("zones", ()))
        if is_there and draw.allowed(pool) and _is_right(spec("o", draw.cluster, [pool])):
            _use_up(pool, cloud, draw.native)
            return pool


def _size(rng: Random) -> Pool:
    low, high = rng.choice(((0, 1), (1, 2), (1, 4), (0, 3), (2, 2)))
    bounds: Pool = {"min": low, "max": high}
    if rng.random() < 0.4:
        bounds["initial"] = rng.randint(low, high)
    if rng.random() < 0.2:
        bounds["scope"] = "pool"
    return {"nodes": rng.choice(({"count": rng.choice((1, 1, 2, 0))}, {"autoscaling": bounds}))}


def _machine(rng: Random, cloud: str, machine: Machine) -> Pool:
    attached = machine.name.startswith("n1-")
    named = rng.choice((machine.name, {cloud: machine.name}))
    gpu = {"model": machine.model, "count": machine.gpus}
    by = "both" if attached else rng.choice(("type", "gpu", "both"))
    found: Pool = {} if by == "gpu" else {"instanceType": named}
    found |= {} if by == "type" else {"gpu": gpu}
    return found


def _sharing(rng: Random, machine: Machine) -> Pool:
    mig: Pool = {}
    if machine.cuts and rng.random() < 0.7:
        mig = {"profile": rng.choice(machine.cuts)}
        mig |= rng.choice(({}, {"strategy": "single"}, {"strategy": "mixed"}))
    slicing: Pool = {"replicas": rng.choice((2, 4, 10))}
    slicing |= rng.choice(({}, {"failRequestsGreaterThanOne": True}, {"failRequestsGreaterThanOne": False}))
    slicing |= rng.choice(({}, {}, {"renameByDefault": True}))
    mps: Pool = {"replicas": rng.choice((2, 16, 48)), **rng.choice(({}, {}, {"renameByDefault": True}))}
    over = rng.choice(({}, {}, {"timeSlicing": slicing}, {"mps": mps}))
    sharing = {**({"mig": mig} if mig else {}), **over}
    return {"sharing": sharing} if sharing else {}


def _extras(rng: Random, choices: Choices, machine: Machine) -> Pool:
    found: Pool = {}

    def maybe(chance: float, field: str, value: Callable[[], object]) -> None:
        if rng.random() < chance:
            found[field] = value()

    def some(table: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
        keys = rng.sample(list(table), rng.randint(1, len(table)))
        return {key: rng.choice(table[key]) for key in keys}

    maybe(0.3, "zones", lambda: list(rng.choice(choices.zones)))
    maybe(0.3, "disk", lambda: dict(rng.choice(choices.disks)))
    if choices.images:
        maybe(0.4, "image", lambda: rng.choice(choices.images))
    maybe(0.4, "labels", lambda: some(choices.labels))
    maybe(0.4, "tags", lambda: some(choices.tags))
    maybe(0.4, "taints", lambda: _taints(rng, choices))
    maybe(0.3, "gpuTaint", lambda: rng.choice((True, False)))
    maybe(0.2, "deletionProtection", lambda: rng.choice((True, False)))
    maybe(0.5, "capacity", lambda: _capacity(rng, choices, machine))
    maybe(0.2, "kubernetesVersion", lambda: rng.choice(choices.versions))
    maybe(0.2, "upgrade", lambda: dict(rng.choice(choices.upgrades)))
    maybe(0.2, "maxPodsPerNode", lambda: rng.choice(choices.pods))
    for name, values in choices.large.items():
        maybe(0.15, name, lambda values=values: rng.choice(values))  # type: ignore[misc]  # bound now
    maybe(0.1, "silence", lambda: [{"rule": "instance-status", "reason": "drawn"}])
    if rng.random() < 0.4:
        found |= rng.choice(choices.owners)
    return found


def _taints(rng: Random, choices: Choices) -> list[Pool]:
    keys = rng.sample(choices.taints, rng.randint(1, 3))
    return [{"key": key, **({"value": value} if value else {}), "effect": rng.choice(EFFECTS)} for key, value in keys]


def _capacity(rng: Random, choices: Choices, machine: Machine) -> Pool:
    price = rng.choice(choices.prices)
    spot: Pool = {"type": "spot", **({} if price is None else {"maxPrice": price})}
    forms = [{"type": "reserved", "reserved": dict(form)} for form in choices.reserved.get(machine.name, ())]
    return rng.choice((spot, spot, *forms, {"type": "on-demand"}))


def _native(rng: Random, cloud: str, native: list[tuple[str, tuple[object, ...]]]) -> Pool:
    """Some of the native fields that no pool has had yet."""
    if not native or rng.random() < 0.3:
        return {}
    found: dict[str, Any] = {}
    for path, values in rng.sample(native, min(len(native), rng.choice((3, 9, 12) if cloud == "gke" else (1, 3, 9)))):
        merge(found, nested(path, rng.choice(values)))
        for other, value in WITH.get(f"{cloud}:{path}", {}).items():
            merge(found, nested(other, value))
    return {cloud: found}


WITH: Mapping[str, Mapping[str, object]] = {
    "aks:nodePublicIPPrefixID": {"enableNodePublicIP": True},
    "aks:networkProfile.nodePublicIPTags": {"enableNodePublicIP": True},
    "aks:podIPAllocationMode": {"podSubnetID": AKS_LIMITS["podSubnetID"].example},
    "aks:linuxOSConfig.swapFileSizeMB": {"kubeletConfig.failSwapOn": False},
    "gke:config.fastSocket.enabled": {"config.gvnic.enabled": True},
    "gke:networkConfig.podIpv4CidrBlock": {"networkConfig.createPodRange": True},
    "gke:bestEffortProvisioning.minProvisionNodes": {"bestEffortProvisioning.enabled": True},
    "gke:config.secondaryBootDisks": {"config.gcfsConfig.enabled": True},
    "gke:config.kubeletConfig.shutdownGracePeriodCriticalPodsSeconds": {
        "config.kubeletConfig.shutdownGracePeriodSeconds": 120
    },
    **{
        f"gke:upgradeSettings.blueGreenSettings.{path}": {"upgradeSettings.strategy": "BLUE_GREEN"}
        for path in (
            "standardRolloutPolicy.batchPercentage",
            "standardRolloutPolicy.batchNodeCount",
            "standardRolloutPolicy.batchSoakDuration",
            "autoscaledRolloutPolicy.waitForDrainDuration",
            "nodePoolSoakDuration",
        )
    },
}
"""Native fields that are refused without others."""


BESIDES: Mapping[str, Pool] = {
    "capacity.reserved.eks.capacityReservation": {"zones": ["us-east-1b"]},
    "eks:network.highSpeed": {"zones": ["us-east-1b"]},
    "eks:placement": {"zones": ["us-east-1b"]},
    "eks:instanceTypes": {"instanceType": None, "gpu": {"model": "L4", "count": 1}, "sharing": {}},
    "gke.autoscaling.locationPolicy": {"nodes": {"autoscaling": {"min": 0, "max": 2}}},
    "gke.config.consolidationDelay": {"nodes": {"autoscaling": {"min": 0, "max": 2}}},
    "confidential": {
        "instanceType": "Standard_NCC40ads_H100_v5",
        "gpu": {"model": "H100-94GB", "count": 1},
        "sharing": {},
    },
    "aks.scaleSetEvictionPolicy": {"capacity": {"type": "spot"}},
    "gke.config.kubeletConfig.shutdownGracePeriodSeconds": {"capacity": {"type": "spot"}},
    "gke.config.kubeletConfig.shutdownGracePeriodCriticalPodsSeconds": {"capacity": {"type": "spot"}},
    "gke:confidential": {
        "instanceType": {"gke": "a3-highgpu-1g"},
        "gpu": {"model": "H100-80GB", "count": 1},
        "sharing": {},
        "zones": ["us-central1-a"],
    },
    "gke.upgradeSettings.blueGreenSettings.autoscaledRolloutPolicy.waitForDrainDuration": {
        "nodes": {"autoscaling": {"min": 0, "max": 2}}
    },
}
"""Portable fields without which others are refused."""


def merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            merge(into[key], value)
        else:
            into[key] = value


def _use_up(pool: Pool, cloud: str, native: list[tuple[str, tuple[object, ...]]]) -> None:
    used = {path.removeprefix(f"{cloud}.") for path in paths_of([{"pools": [pool]}])}
    native[:] = [entry for entry in native if entry[0] not in used]


def paths_of(documents: list[Document]) -> set[str]:
    """Name the fields of pools that specs use: "sharing.mig.strategy", "labels", "eks.updateConfig.maxUnavailable"."""
    pools = [pool for document in documents for pool in (*document["pools"], document.get("defaults", {}))]
    return {path for pool in pools for path in _paths(pool)}


OPEN = ("labels", "tags", "names", "zones", "clusters", "sysctls")
"""Mappings and lists whose content is the user's."""
WHOLE = (
    "vnetDNSOverrides",
    "kubeDNSOverrides",
    "nodePublicIPTags",
    "allowedHostPorts",
    "nodeRepairConfigOverrides",
    "additionalNodeNetworkConfigs",
    "secondaryBootDisks",
    "additionalPodNetworkConfigs",
    "metadata",
    "resourceManagerTags.tags",
    "nodeAffinities",
    "registryHosts",
    "certificateAuthorityDomainConfig",
)
"""Native lists and maps that a spec writes as a whole."""


def _paths(value: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, inner in value.items():
        path = f"{prefix}{name}"
        whole = path.endswith(WHOLE)
        one = inner[0] if isinstance(inner, list) and inner and not whole else inner
        if isinstance(one, Mapping) and path not in OPEN and not whole:
            yield from _paths(one, f"{path}.")
        else:
            yield path
