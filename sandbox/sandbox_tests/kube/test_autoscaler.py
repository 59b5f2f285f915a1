"""The cluster autoscaler: which group grows for whom, what it says, when nodes go; and the three clouds' own."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from google.cloud import container_v1 as wire

from gpukube_sandbox.aks.autoscaling import AksGroups
from gpukube_sandbox.aks.pools import Pool as AksPool
from gpukube_sandbox.aks.pools import finish_defaults, with_defaults
from gpukube_sandbox.eks.autoscaling import EksGroups
from gpukube_sandbox.eks.clusters import ClusterOptions as EksOptions
from gpukube_sandbox.eks.making import EksRequest
from gpukube_sandbox.faults import parse_fault
from gpukube_sandbox.gke import lifecycle
from gpukube_sandbox.gke.autoscaling import GkeGroups
from gpukube_sandbox.gke.making import GkeRequest
from gpukube_sandbox.gke.pools import Pool as GkePool
from gpukube_sandbox.gke.pools import fill_defaults
from gpukube_sandbox.gke.service import GkeService
from gpukube_sandbox.gke.wire.enums import PoolStatus
from gpukube_sandbox.gke.wire.names import Place
from gpukube_sandbox.kube.autoscaler.groups import Failure, Group, Profile, make_template_node
from gpukube_sandbox.kube.cluster import GpuShape, NodeShape, Taint
from gpukube_sandbox.kube.nodes.draslices import expected_slices
from gpukube_sandbox.kube.store.kinds import CORE
from gpukube_sandbox.kube.store.objects import name_of, spec, status
from gpukube_sandbox.world import ClusterRequest, World
from sandbox_tests.kube.test_life import Bench, life

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube_sandbox.kube.cluster import KubeCluster
    from gpukube_sandbox.kube.store.objects import JsonObject

GPU, SLICE = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"
TAINT = Taint(GPU, "present")
TOLERATED = [{"key": GPU, "operator": "Exists"}]
T4 = GpuShape("T4", 1, host_plugin=True)
SLICED = GpuShape("A100-40GB", 1, ("1g.5gb",) * 7, host_plugin=True, host_strategy="mixed")


@dataclass
class Kind:
    """One group of the test's cloud."""

    gpu: GpuShape | None = None
    low: int = 0
    high: int = 3
    labels: dict[str, str] = field(default_factory=dict)
    pool: str = ""
    balanced: bool = False
    fails: str = ""
    nodes: list[str] = field(default_factory=list)
    target: int = 0
    expects_slices: bool = False
    taints: tuple[Taint, ...] = ()
    error: str = ""


class Cloud:
    """Groups without a cloud behind them."""

    def __init__(self, bench: Bench, **kinds: Kind) -> None:
        self.bench, self.kinds = bench, kinds
        self.settings = Profile("accelerator")

    async def profile(self) -> Profile | None:
        return self.settings

    def listed(self) -> list[Group]:
        return [
            Group(
                name,
                kind.pool or name,
                tuple(kind.nodes),
                kind.target,
                kind.low,
                kind.high,
                balanced=kind.balanced,
                error=kind.error,
            )
            for name, kind in self.kinds.items()
        ]

    def shape(self, name: str, group: str) -> NodeShape:
        kind = self.kinds[group]
        marks = {"group": group, **kind.labels, **({"accelerator": "x"} if kind.gpu else {})}
        taints = (*([TAINT] if kind.gpu else []), *kind.taints)
        return NodeShape(name, gpu=kind.gpu, labels=marks, taints=taints, boot_s=30)

    def template_slices(self, name: str) -> list[JsonObject]:
        return expected_slices(self.shape(f"template-{name}", name)) if self.kinds[name].expects_slices else []

    def template_node(self, name: str) -> JsonObject:
        gpu = self.kinds[name].gpu
        by_plugin = {GPU: gpu.count} if gpu and not self.kinds[name].expects_slices else {}
        return make_template_node(self.shape(f"template-{name}", name), by_plugin)

    async def grow(self, name: str, count: int) -> Failure | None:
        kind = self.kinds[name]
        kind.target += count
        if failure := kind.fails:
            await self.bench.clock.sleep(60)
            kind.target -= count
            return Failure(failure, count, "machines")
        for _ in range(count):
            kind.nodes.append(f"{name}-{len(kind.nodes)}")
            await self.bench.cluster.add_node(self.shape(kind.nodes[-1], name))
        await self.bench.cluster.joined(kind.nodes)
        return None

    def release(self, name: str) -> None:
        kind = self.kinds[name]
        kind.target = max(len(kind.nodes), kind.low)

    async def shrink(self, name: str, node: str) -> None:
        self.kinds[name].nodes.remove(node)
        self.kinds[name].target -= 1
        await self.bench.cluster.remove_node(node)


def work(name: str, resource: str = GPU, count: int = 1, **more: object) -> JsonObject:
    limits = {resource: str(count)}
    container = {"name": "main", "image": "i", "command": ["sleep", "inf"], "resources": {"limits": limits}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], "tolerations": TOLERATED, **more}}


def told(cluster: KubeCluster, reason: str) -> list[str]:
    return [item["message"] for item in cluster.store.all_of(CORE["events"]) if item["reason"] == reason]


def test_autoscaler_when_pods_wait_then_the_fitting_group_grows_as_far_as_needed() -> None:
    async def story(bench: Bench) -> None:
        cloud = Cloud(bench, cpu=Kind(), gpu=Kind(T4))
        bench.cluster.autoscale(cloud)
        for name in "ab":
            bench.put("pods", work(name))
        bench.put("pods", work("c", "cpu", tolerations=[]))
        await bench.wait(150)
        assert {name: len(kind.nodes) for name, kind in cloud.kinds.items()} == {"cpu": 1, "gpu": 2}
        assert {spec(pod)["nodeName"] for pod in bench.all_of("pods")} == {"gpu-0", "gpu-1", "cpu-0"}
        assert set(told(bench.cluster, "TriggeredScaleUp")) == {
            "pod triggered scale-up: [{cpu 0->1 (max: 3)}]",
            "pod triggered scale-up: [{gpu 0->2 (max: 3)}]",
        }

    life(story)


PLAIN = GpuShape("T4", 2)


def claim_a_gpu(bench: Bench, *names: str) -> None:
    """Pods that claim a GPU of NVIDIA's DRA driver each."""
    expression = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
    bench.put(
        "deviceclasses", {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}
    )
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    bench.put(
        "resourceclaimtemplates", {"metadata": {"name": "gpu"}, "spec": {"spec": {"devices": {"requests": requests}}}}
    )
    container = {"name": "c", "image": "i", "command": ["sleep", "inf"], "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    for name in names:
        pod = {"containers": [container], "resourceClaims": claims, "tolerations": TOLERATED}
        bench.put("pods", {"metadata": {"name": name}, "spec": pod})


def test_autoscaler_when_pods_claim_devices_of_no_node_then_from_zero_only_where_slices_are_expected() -> None:
    async def story(bench: Bench) -> None:
        cloud = Cloud(bench, plain=Kind(PLAIN), labelled=Kind(PLAIN, expects_slices=True))
        bench.cluster.autoscale(cloud)
        claim_a_gpu(bench, "a", "b", "c")
        await bench.wait(60)
        assert told(bench.cluster, "TriggeredScaleUp") == ["pod triggered scale-up: [{labelled 0->2 (max: 3)}]"] * 3
        assert not cloud.kinds["plain"].nodes

    life(story)


def test_autoscaler_when_no_slices_are_expected_then_pods_are_told_that_none_fits() -> None:
    async def story(bench: Bench) -> None:
        bench.cluster.autoscale(Cloud(bench, plain=Kind(PLAIN)))
        claim_a_gpu(bench, "a")
        await bench.wait(60)
        assert told(bench.cluster, "NotTriggerScaleUp") == ["pod didn't trigger scale-up: 1 cannot allocate all claims"]

    life(story)


def test_autoscaler_when_a_node_lives_then_its_slices_are_those_of_the_next() -> None:
    async def story(bench: Bench) -> None:
        cloud = Cloud(bench, plain=Kind(PLAIN, target=1, nodes=["plain-0"]))
        shape = cloud.shape("plain-0", "plain")
        await bench.cluster.add_node(shape)
        await bench.wait(60)
        for item in expected_slices(shape):
            bench.put("resourceslices", {"metadata": {"name": "plain-0"}, "spec": spec(item)})
        bench.cluster.autoscale(cloud)
        claim_a_gpu(bench, "a", "b", "c")
        await bench.wait(30)
        assert told(bench.cluster, "TriggeredScaleUp") == ["pod triggered scale-up: [{plain 1->2 (max: 3)}]"]

    life(story)


def test_gke_template_when_the_pool_has_the_driver_s_label_then_slices_take_the_place_of_the_resource() -> None:
    async def story() -> None:
        world = World(SPEED, b"authority")
        cluster, _ = await world.ensure_gke_cluster(GkeRequest("p", "us-central1", "k"))
        pool = gke_pool(world)
        groups = GkeGroups(cluster, world.clock, world.faults, world.gke.service().quotas)
        name = groups.listed()[0].name
        assert (groups.template_slices(name), expected(groups, name)) == ([], {GPU: "1"})
        pool.wire.config.labels["cloud.google.com/gke-nvidia-gpu-dra-driver"] = "true"
        (found,) = groups.template_slices(name)
        (device,) = spec(found)["devices"]
        assert device["attributes"]["type"] == {"string": "gpu"}
        assert expected(groups, name) == {}
        await cluster.kube.stop()

    def expected(groups: GkeGroups, name: str) -> dict[str, str]:
        room: dict[str, str] = status(groups.template_node(name))["allocatable"]
        return {key: value for key, value in room.items() if key == GPU}

    asyncio.run(story())


def test_autoscaler_when_a_group_comes_after_the_pod_then_it_is_used() -> None:
    async def story(bench: Bench) -> None:
        cloud = Cloud(bench)
        bench.cluster.autoscale(cloud)
        bench.put("pods", work("x"))
        await bench.wait(600)
        cloud.kinds["late"] = Kind(T4)
        bench.cluster.wake_autoscaler()
        await bench.wait(100)
        assert spec(bench.get("pods", "x"))["nodeName"] == "late-0"

    life(story)


@pytest.mark.parametrize(
    ("pod", "kinds", "reasons"),
    [
        pytest.param(work("x", count=2), {"gpu": Kind(T4)}, "1 Insufficient nvidia.com/gpu", id="too-large"),
        pytest.param(work("x", SLICE), {"mig": Kind(SLICED)}, f"1 Insufficient {SLICE}", id="mixed-from-zero"),
        pytest.param(work("x"), {"gpu": Kind(T4, high=0)}, "1 max node group size reached", id="at-most"),
        pytest.param(
            work("x", nodeSelector={"group": "cpu"}),
            {"gpu": Kind(T4), "cpu": Kind()},
            f"1 Insufficient {GPU}, 1 node(s) didn't match Pod's node affinity/selector",
            id="selector",
        ),
        pytest.param(
            work("x", tolerations=[]),
            {"gpu": Kind(T4)},
            "1 node(s) had untolerated taint {nvidia.com/gpu: present}",
            id="taint",
        ),
    ],
)
def test_autoscaler_when_no_group_would_help_then_it_says_why(
    pod: JsonObject, kinds: dict[str, Kind], reasons: str
) -> None:
    async def story(bench: Bench) -> None:
        bench.cluster.autoscale(Cloud(bench, **kinds))
        bench.put("pods", pod)
        await bench.wait(60)
        assert told(bench.cluster, "NotTriggerScaleUp") == [f"pod didn't trigger scale-up: {reasons}"]

    life(story)


def test_autoscaler_when_nodes_are_idle_long_enough_then_all_but_the_fewest_go() -> None:
    async def story(bench: Bench) -> None:
        cloud = Cloud(bench, gpu=Kind(T4, low=1))
        bench.cluster.autoscale(cloud)
        for name in "abc":
            bench.put("pods", work(name))
        await bench.wait(100)
        assert len(cloud.kinds["gpu"].nodes) == 3
        bench.put("pods", work("later", "cpu", nodeName=cloud.kinds["gpu"].nodes[0]))
        for name in "abc":
            bench.cluster.store.delete(CORE["pods"], "default", name)
        await bench.wait(300)
        assert len(cloud.kinds["gpu"].nodes) == 3
        await bench.wait(400)
        assert cloud.kinds["gpu"].nodes == [spec(bench.get("pods", "later"))["nodeName"]]
        assert "marked the node as toBeDeleted/unschedulable" in told(bench.cluster, "ScaleDown")

    life(story)


def test_autoscaler_when_an_idle_node_must_stay_then_it_does() -> None:
    async def story(bench: Bench) -> None:
        cloud = Cloud(bench, gpu=Kind(T4))
        bench.cluster.autoscale(cloud)
        bench.put("pods", work("a"))
        await bench.wait(100)
        stays = {"metadata": {"annotations": {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}}}
        bench.change("nodes", "gpu-0", stays)
        bench.cluster.store.delete(CORE["pods"], "default", "a")
        await bench.wait(2000)
        assert cloud.kinds["gpu"].nodes == ["gpu-0"]

    life(story)


def test_autoscaler_when_a_zone_is_sold_out_then_it_backs_off_and_takes_another() -> None:
    async def story(bench: Bench) -> None:
        empty = Kind(T4, fails="GCE out of resources")
        cloud = Cloud(bench, a=empty, b=Kind(T4))
        bench.cluster.autoscale(cloud)
        bench.put("pods", work("x"))
        await bench.wait(55)
        assert told(bench.cluster, "TriggeredScaleUp") == ["pod triggered scale-up: [{a 0->1 (max: 3)}]"]
        await bench.wait(200)
        assert spec(bench.get("pods", "x"))["nodeName"] == "b-0"
        (failure,) = told(bench.cluster, "ScaleUpFailed")
        cause = "OutOfResource.placeholder-cannot-be-fulfilled; source errors: GCE out of resources"
        assert failure == f"Failed adding 1 nodes to group a due to {cause}"

    life(story)


def test_autoscaler_when_all_are_sold_out_then_it_tries_again_after_its_back_off() -> None:
    async def story(bench: Bench) -> None:
        cloud = Cloud(bench, a=Kind(T4, fails="GCE out of resources"))
        bench.cluster.autoscale(cloud)
        bench.put("pods", work("x"))
        await bench.wait(100)
        reason = "pod didn't trigger scale-up: 1 in backoff after failed scale-up"
        assert told(bench.cluster, "NotTriggerScaleUp") == [reason]
        cloud.kinds["a"].fails = ""
        await bench.wait(200)
        assert cloud.kinds["a"].nodes == []
        await bench.wait(250)
        assert spec(bench.get("pods", "x"))["nodeName"] == "a-0"

    life(story)


def test_autoscaler_when_zones_are_balanced_then_each_gets_its_share() -> None:
    async def story(bench: Bench) -> None:
        kinds = {zone: Kind(T4, pool="p", balanced=True) for zone in "abc"}
        bench.cluster.autoscale(Cloud(bench, **kinds))
        for name in ("p1", "p2", "p3", "p4"):
            bench.put("pods", work(name))
        await bench.wait(120)
        assert sorted(len(kind.nodes) for kind in kinds.values()) == [1, 1, 2]

    life(story)


def test_autoscaler_when_nodes_have_slices_only_then_they_never_count_as_ready() -> None:
    async def story(bench: Bench) -> None:
        cloud = Cloud(bench, mig=Kind(SLICED))
        cloud.kinds["mig"].nodes.append("mig-0")
        cloud.kinds["mig"].target = 1
        bench.cluster.autoscale(cloud)
        await bench.cluster.add_node(cloud.shape("mig-0", "mig"))
        for number in range(8):
            bench.put("pods", work(f"w{number}", SLICE))
        await bench.wait(200)
        assert len(cloud.kinds["mig"].nodes) == 1
        assert set(told(bench.cluster, "NotTriggerScaleUp")) == {f"pod didn't trigger scale-up: 1 Insufficient {SLICE}"}

    life(story)


def test_autoscaler_when_many_nodes_stay_unready_then_it_stops_growing() -> None:
    async def story(bench: Bench) -> None:
        cloud = Cloud(bench, mig=Kind(SLICED, high=9), gpu=Kind(T4))
        bench.cluster.autoscale(cloud)
        for number in range(4):
            cloud.kinds["mig"].nodes.append(f"mig-{number}")
            await bench.cluster.add_node(cloud.shape(f"mig-{number}", "mig"))
        cloud.kinds["mig"].target = cloud.kinds["mig"].low = 4
        await bench.wait(100)
        bench.put("pods", work("soon", nodeSelector={"group": "gpu"}))
        await bench.wait(100)
        assert len(cloud.kinds["gpu"].nodes) == 1, "young nodes are not counted yet"
        await bench.wait(1000)
        bench.put("pods", work("late", nodeSelector={"group": "gpu"}))
        await bench.wait(100)
        assert len(cloud.kinds["gpu"].nodes) == 1

    life(story)


# The clouds' own

SPEED = 500.0
REACHED_S = 20.0


async def until(kube: KubeCluster, holds: Callable[[], object]) -> None:
    """Wait for what a write of a pod or node brings about."""
    async with asyncio.timeout(REACHED_S):
        with kube.api.watching("pods", "nodes") as wakeup:
            while not holds():
                await wakeup.wait()


def aks_pool(world: World, **more: object) -> AksPool:
    (cluster,) = world.aks.clusters.values()
    sent = {
        "count": 0,
        "minCount": 0,
        "maxCount": 5,
        "enableAutoScaling": True,
        "vmSize": "Standard_NC4as_T4_v3",
        **more,
    }
    pool = AksPool("gpu", finish_defaults(with_defaults(sent, cluster.facts)), state="Succeeded")
    cluster.pools["gpu"] = pool
    return pool


async def aks(world: World) -> KubeCluster:
    cluster, _ = await world.ensure_cluster(ClusterRequest("s", "g", "a"))
    managed = {"nvidia": {"managementMode": "Managed", "migStrategy": "None"}}
    aks_pool(world, gpuProfile=managed)
    return cluster.kube


async def eks(world: World) -> KubeCluster:
    scaling = {"minSize": 0, "maxSize": 5, "desiredSize": 0}
    gpu: dict[str, object] = {
        "nodegroupName": "gpu",
        "instanceTypes": ["g4dn.xlarge"],
        "amiType": "AL2023_x86_64_NVIDIA",
    }
    system: dict[str, object] = {
        "nodegroupName": "system",
        "scalingConfig": {"minSize": 1, "maxSize": 1, "desiredSize": 1},
    }
    options = EksOptions(node_groups=[system, {**gpu, "scalingConfig": scaling}], foreign_plugin=True)
    cluster, _ = await world.ensure_eks_cluster(EksRequest("123456789012", "us-east-1", "e", options=options))
    return cluster.kube


def install_autoscaler(kube: KubeCluster, cluster: str) -> None:
    found = f"--node-group-auto-discovery=asg:tag=k8s.io/cluster-autoscaler/enabled,k8s.io/cluster-autoscaler/{cluster}"
    command = ["./cluster-autoscaler", "--cloud-provider=aws", found]
    image = "registry.k8s.io/autoscaling/cluster-autoscaler:v1.34.0"
    container = {"name": "cluster-autoscaler", "image": image, "command": command}
    template = {"metadata": {"labels": {"app": "ca"}}, "spec": {"containers": [container]}}
    body = {"replicas": 1, "selector": {"matchLabels": {"app": "ca"}}, "template": template}
    kube.store.create(CORE["deployments"], {"metadata": {"name": "ca", "namespace": "kube-system"}, "spec": body})


def gke_pool(world: World, **more: object) -> GkePool:
    (cluster,) = world.gke.service().clusters.values()
    accelerator = {"accelerator_type": "nvidia-tesla-t4", "accelerator_count": 1}
    driver = {"gpu_driver_version": wire.GPUDriverInstallationConfig.GPUDriverVersion.LATEST}
    config = {
        "machine_type": "n1-standard-4",
        "accelerators": [{**accelerator, "gpu_driver_installation_config": driver}],
    }
    scaling = {"enabled": True, "total_max_node_count": 5, "location_policy": "ANY", **more}
    sent = wire.NodePool(name="gpu", config=config, autoscaling=scaling, locations=cluster.zones)
    fill_defaults(sent, cluster.version, cluster.zones, "")
    place = Place("p", "us-central1", "k", "gpu")
    GkeService.complete(cluster, place, sent)
    sent.status = PoolStatus.RUNNING
    pool = cluster.pools["gpu"] = GkePool(sent)
    return pool


async def gke(world: World) -> KubeCluster:
    cluster, _ = await world.ensure_gke_cluster(GkeRequest("p", "us-central1", "k"))
    gke_pool(world)
    return cluster.kube


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", [aks, eks, gke])
def test_pool_when_a_pod_waits_then_it_goes_from_zero_to_one_and_back(cloud: Callable[..., Any]) -> None:
    async def story() -> None:
        world = World(SPEED, b"authority")
        kube = await cloud(world)
        try:
            before = {name_of(node) for node in kube.store.all_of(CORE["nodes"])}
            kube.store.create(CORE["pods"], {"metadata": {"name": "x"}, "spec": work("x")["spec"]})
            if cloud is eks:
                await asyncio.sleep(0.2)
                assert not told(kube, "TriggeredScaleUp"), "there is no autoscaler that nobody has installed"
                install_autoscaler(kube, "e")
            await until(kube, lambda: status(kube.store.get(CORE["pods"], "default", "x")).get("phase") == "Running")
            assert told(kube, "TriggeredScaleUp")
            node = spec(kube.store.get(CORE["pods"], "default", "x"))["nodeName"]
            assert node not in before
            kube.store.delete(CORE["pods"], "default", "x")
            await until(kube, lambda: kube.store.find(CORE["nodes"], "", node) is None)
            assert kube.failures == []
        finally:
            await world.reset()

    asyncio.run(story())


def test_gke_when_a_zone_is_sold_out_then_the_pod_is_told_and_another_zone_is_tried() -> None:
    async def story() -> None:
        world = World(SPEED, b"authority")
        kube = await gke(world)
        try:
            world.faults.add(parse_fault({"action": "stock-out", "kind": "autoscale"}))
            kube.store.create(CORE["pods"], {"metadata": {"name": "x"}, "spec": work("x")["spec"]})
            await until(kube, lambda: spec(kube.store.get(CORE["pods"], "default", "x")).get("nodeName"))
            (message,) = told(kube, "FailedScaleUp")
            assert message.endswith("failed: GCE out of resources. Pod is at risk of not being scheduled.")
            assert kube.failures == []
        finally:
            await world.reset()

    asyncio.run(story())


def test_eks_template_when_tags_say_more_then_they_are_believed() -> None:
    async def story() -> tuple[dict[str, str], list[dict[str, str]], dict[str, str]]:
        world = World(SPEED, b"authority")
        await eks(world)
        (cluster,) = world.eks.clusters.values()
        group = cluster.groups["gpu"]
        start = "k8s.io/cluster-autoscaler/node-template/"
        group.tags = {f"{start}resources/{SLICE}": "56", f"{start}label/ignored": "x"}
        group.asg_tags = {f"{start}label/team": "ml", f"{start}taint/a": "b:NoSchedule", f"{start}taint/bad": "b"}
        group.members["taints"] = [
            {"key": "k", "value": "v", "effect": "NO_SCHEDULE"},
            {"key": "unseen", "effect": "NO_SCHEDULE"},
        ]
        node = EksGroups(cluster, world.clock, world.faults).template_node(group.asg)
        await world.reset()
        return status(node)["allocatable"], spec(node)["taints"], node["metadata"]["labels"]

    room, taints, marks = asyncio.run(story())
    assert (room[GPU], room[SLICE], room["cpu"]) == ("1", "56", "4")
    assert [taint["key"] for taint in taints] == ["k", "a"]
    assert (marks["team"], marks["eks.amazonaws.com/nodegroup"]) == ("ml", "gpu")
    assert "ignored" not in marks


def test_aks_template_when_gpus_are_cut_then_whole_ones_are_expected() -> None:
    async def story() -> dict[str, str]:
        world = World(SPEED, b"authority")
        await world.ensure_cluster(ClusterRequest("s", "g", "a"))
        aks_pool(world, vmSize="Standard_ND96asr_v4", gpuInstanceProfile="MIG1g")
        (cluster,) = world.aks.clusters.values()
        groups = AksGroups(cluster, world.clock, world.faults, world.aks.quotas)
        found: dict[str, str] = status(groups.template_node(groups.listed()[0].name))["allocatable"]
        await world.reset()
        return found

    room = asyncio.run(story())
    assert (room[GPU], room["pods"]) == ("8", "110")


@pytest.mark.parametrize(
    ("scaling", "bounds"),
    [
        ({"total_max_node_count": 5, "total_min_node_count": 2}, [(2, 5)] * 3),
        (
            {"total_max_node_count": 0, "min_node_count": 1, "max_node_count": 4, "location_policy": "BALANCED"},
            [(1, 4)] * 3,
        ),
    ],
)
def test_gke_groups_when_limits_are_of_a_zone_or_of_all_then_told_apart(
    scaling: dict[str, object], bounds: list[tuple[int, int]]
) -> None:
    async def story() -> list[Group]:
        world = World(SPEED, b"authority")
        cluster, _ = await world.ensure_gke_cluster(GkeRequest("p", "us-central1", "k"))
        gke_pool(world, **scaling)
        found = GkeGroups(cluster, world.clock, world.faults, world.gke.service().quotas).listed()
        await world.reset()
        return found

    groups = asyncio.run(story())
    assert [(group.low, group.high) for group in groups] == bounds
    assert {group.balanced for group in groups} == {scaling.get("location_policy") == "BALANCED"}


@pytest.mark.parametrize(
    ("scaling", "sizes"),
    [
        pytest.param({}, [2, 1, 0], id="within"),
        pytest.param({"total_max_node_count": 2}, [1, 1, 0], id="fewer-in-all"),
        pytest.param({"total_min_node_count": 5}, [2, 2, 1], id="more-in-all"),
        pytest.param({"total_max_node_count": 0, "min_node_count": 1, "max_node_count": 1}, [1, 1, 1], id="of-a-zone"),
        pytest.param({"enabled": False}, [2, 1, 0], id="switched-off"),
    ],
)
def test_gke_pool_when_the_autoscaler_has_sized_it_then_updates_leave_that_within_the_limits(
    scaling: dict[str, object], sizes: list[int]
) -> None:
    async def story() -> dict[str, int]:
        world = World(SPEED, b"authority")
        await world.ensure_gke_cluster(GkeRequest("p", "us-central1", "k"))
        pool = gke_pool(world, **scaling)
        pool.made, pool.moved = 3, True
        pool.nodes = {"us-central1-a": ["x", "y"], "us-central1-b": ["z"]}
        found = lifecycle._target_sizes(pool)
        await world.reset()
        return found

    assert list(asyncio.run(story()).values()) == sizes
