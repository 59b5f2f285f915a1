"""Scale-ups that fail: which group is next, when each cloud's autoscaler sees it, and the settings it reads."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox.aks.autoscaling import AksGroups
from gpukube_sandbox.clock import ManualClock
from gpukube_sandbox.eks.autoscaling import GPU_LABEL, EksGroups
from gpukube_sandbox.eks.clusters import ClusterOptions as EksOptions
from gpukube_sandbox.eks.making import EksRequest
from gpukube_sandbox.faults import parse_fault
from gpukube_sandbox.gke.autoscaling import GkeGroups
from gpukube_sandbox.gke.making import GkeRequest
from gpukube_sandbox.kube.autoscaler.groups import Failure, Profile
from gpukube_sandbox.kube.autoscaler.priorities import CONFIG_MAP
from gpukube_sandbox.kube.matching import is_ready
from gpukube_sandbox.kube.store.kinds import CORE
from gpukube_sandbox.kube.store.objects import name_of, spec
from gpukube_sandbox.world import ClusterRequest, World
from sandbox_tests.kube.test_autoscaler import SPEED, T4, Cloud, Kind, aks_pool, eks, gke_pool, told, until, work
from sandbox_tests.kube.test_life import Bench, life

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gpukube_sandbox.kube.cluster import KubeCluster

RANKS = "{1000: ['^first$'], 990: ['^second$'], 1: ['.*']}"
SOLD_OUT = "InsufficientInstanceCapacity"


def ranked(bench: Bench, *, priorities: str | None = RANKS, **settings: object) -> Cloud:
    """Three groups for the same pods, with an order in a ConfigMap."""
    cloud = Cloud(bench, first=Kind(T4), other=Kind(T4), second=Kind(T4))
    known: dict[str, object] = {"expanders": ("priority", "least-waste"), "namespace": "scaling", **settings}
    cloud.settings = Profile("accelerator", **known)  # type: ignore[arg-type] # values of its fields
    bench.cluster.store.create(CORE["namespaces"], {"metadata": {"name": "scaling"}})
    if priorities is not None:
        config = {"metadata": {"name": CONFIG_MAP, "namespace": "scaling"}, "data": {"priorities": priorities}}
        bench.put("configmaps", config)
    bench.cluster.autoscale(cloud)
    return cloud


def sizes(cloud: Cloud) -> dict[str, int]:
    return {name: len(kind.nodes) for name, kind in cloud.kinds.items() if kind.nodes}


def test_priorities_when_the_first_is_sold_out_then_the_second_and_the_first_again_once_it_has_machines() -> None:
    async def story(bench: Bench) -> None:
        cloud = ranked(bench)
        cloud.kinds["first"].fails = SOLD_OUT
        bench.put("pods", work("x"))
        await bench.wait(200)
        assert sizes(cloud) == {"second": 1}
        assert cloud.kinds["first"].target == 0
        (failure,) = told(bench.cluster, "ScaleUpFailed")
        cause = f"OutOfResource.placeholder-cannot-be-fulfilled; source errors: {SOLD_OUT}"
        assert failure == f"Failed adding 1 nodes to group first due to {cause}"
        cloud.kinds["first"].fails = ""
        bench.put("pods", work("y"))
        await bench.wait(100)
        assert sizes(cloud) == {"second": 2}, "the first group is in its pause"
        await bench.wait(200)
        bench.put("pods", work("z"))
        await bench.wait(100)
        assert sizes(cloud) == {"first": 1, "second": 2}

    life(story)


@pytest.mark.parametrize(("low", "target", "grown"), [(0, 0, {"second": 1}), (1, 1, {})])
def test_group_when_machines_that_others_requested_do_not_come_then_they_are_given_up_but_for_the_minimum(
    low: int, target: int, grown: dict[str, int]
) -> None:
    async def story(bench: Bench) -> None:
        cloud = ranked(bench)
        first = cloud.kinds["first"]
        first.low, first.target, first.error = low, 2, SOLD_OUT
        bench.put("pods", work("x"))
        await bench.wait(120)
        assert first.target == target
        assert sizes(cloud) == grown, "a minimum without machines keeps the pod waiting for them"
        assert [text.split(" due")[0] for text in told(bench.cluster, "ScaleUpFailed")] == [
            f"Failed adding {2 - low} nodes to group first"
        ]

    life(story)


def test_back_off_when_a_group_keeps_failing_then_its_pauses_grow_from_5_to_30_minutes() -> None:
    async def story(bench: Bench) -> None:
        cloud = Cloud(bench, only=Kind(T4, fails=SOLD_OUT))
        tries = []
        grow = cloud.grow

        async def noted(name: str, count: int) -> Failure | None:
            tries.append(bench.clock.now())
            return await grow(name, count)

        cloud.grow = noted  # type: ignore[method-assign] # counts the calls
        bench.cluster.autoscale(cloud)
        bench.put("pods", work("x"))
        for _ in range(60):
            await bench.wait(120)
        pauses = [later - earlier - 60 for earlier, later in itertools.pairwise(tries)]
        assert [round(pause / 60) for pause in pauses[:4]] == [5, 10, 20, 30]

    life(story)


@pytest.mark.parametrize(
    ("priorities", "before", "grown", "reasons"),
    [
        pytest.param("'1': [first]", False, True, {"PriorityConfigMapInvalid"}, id="invalid"),
        pytest.param("'1': [first]", True, False, {"PriorityConfigMapInvalid"}, id="invalid-before-1.26"),
        pytest.param(None, False, True, set(), id="missing"),
        pytest.param(None, True, False, set(), id="missing-before-1.26"),
        pytest.param(
            "1: [x]", True, True, {"PriorityConfigMapNotMatchedGroup", "PriorityConfigMapNoGroupMatched"}, id="no-match"
        ),
        pytest.param("1: [first]", False, True, {"PriorityConfigMapNotMatchedGroup"}, id="strangers"),
    ],
)
def test_priorities_when_the_map_is_of_no_use_then_others_choose_or_before_1_26_nobody(
    priorities: str | None, reasons: set[str], *, before: bool, grown: bool
) -> None:
    async def story(bench: Bench) -> None:
        cloud = ranked(bench, priorities=priorities, needs_priorities=before)
        bench.put("pods", work("x"))
        await bench.wait(120)
        assert bool(sizes(cloud)) is grown
        events = bench.all_of("events")
        found = {item["reason"] for item in events if item["involvedObject"]["name"] == CONFIG_MAP}
        assert found == reasons
        assert {item["type"] for item in events if item["reason"] in reasons} <= {"Warning"}

    life(story)


def test_expander_when_it_is_random_then_not_always_the_same_group_is_taken() -> None:
    async def story(bench: Bench) -> None:
        cloud = ranked(bench, expanders=("random",))
        for number in range(6):
            bench.put("pods", work(f"x{number}"))
            await bench.wait(60)
        assert len(sizes(cloud)) > 1

    life(story)


# EKS


def install(kube: KubeCluster, *flags: str, version: str = "1.34.0") -> None:
    found = "--node-group-auto-discovery=asg:tag=k8s.io/cluster-autoscaler/enabled,k8s.io/cluster-autoscaler/e"
    image = f"registry.k8s.io/autoscaling/cluster-autoscaler:v{version}"
    container = {"name": "ca", "image": image, "command": ["./cluster-autoscaler"], "args": [found, *flags]}
    template = {"metadata": {"labels": {"app": "ca"}}, "spec": {"containers": [container]}}
    body = {"replicas": 1, "selector": {"matchLabels": {"app": "ca"}}, "template": template}
    kube.store.create(CORE["namespaces"], {"metadata": {"name": "scaling"}})
    place = {"name": "cluster-autoscaler", "namespace": "scaling"}
    kube.store.create(CORE["deployments"], {"metadata": place, "spec": body})


def on_clock(story: Callable[[World, ManualClock], Awaitable[None]]) -> None:
    """Run a story of groups whose time only passes when the story says so; that of their cluster passes fast."""

    async def main() -> None:
        clock = ManualClock()
        world = World(SPEED, b"authority")
        try:
            await story(world, clock)
        finally:
            await world.reset()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("flags", "version", "profile"),
    [
        pytest.param([], "1.34.0", Profile(GPU_LABEL, expanders=("least-waste",)), id="defaults"),
        pytest.param(
            ["--expander=priority,least-waste", "--namespace=scaling", "--max-node-provision-time=5m"],
            "1.25.3",
            Profile(
                GPU_LABEL,
                expanders=("priority", "least-waste"),
                namespace="scaling",
                provision_s=300,
                needs_priorities=True,
            ),
            id="chain-of-an-old-version",
        ),
        pytest.param(["--expander=random,priority"], "1.34.0", None, id="chain-that-does-not-start"),
        pytest.param(["--expander=price"], "1.34.0", None, id="aws-has-no-prices"),
    ],
)
def test_eks_when_the_autoscaler_is_installed_then_its_arguments_are_the_profile(
    flags: list[str], version: str, profile: Profile | None
) -> None:
    async def story(world: World, clock: ManualClock) -> None:
        kube = await eks(world)
        install(kube, *flags, version=version)
        await until(kube, lambda: any(map(is_ready, kube.store.all_of(CORE["pods"], "scaling"))))
        (cluster,) = world.eks.clusters.values()
        assert await EksGroups(cluster, clock, world.faults).profile() == profile

    on_clock(story)


def test_eks_when_a_cluster_has_an_autoscaler_from_the_start_then_its_deployment_shows_the_expanders() -> None:
    async def story(world: World, clock: ManualClock) -> None:
        options = EksOptions(autoscaler="priority,least-waste")
        cluster, _ = await world.ensure_eks_cluster(EksRequest("123456789012", "us-east-1", "e", options=options))
        deployment = cluster.kube.store.get(CORE["deployments"], "kube-system", "cluster-autoscaler")
        (container,) = spec(spec(deployment)["template"])["containers"]
        assert "--expander=priority,least-waste" in container["command"]
        await until(cluster.kube, lambda: runs(cluster.kube, "cluster-autoscaler"))
        profile = await EksGroups(cluster, clock, world.faults).profile()
        assert profile == Profile(GPU_LABEL, expanders=("priority", "least-waste"))

    on_clock(story)


def runs(kube: KubeCluster, name: str) -> bool:
    return any(is_ready(pod) for pod in kube.store.all_of(CORE["pods"], "kube-system") if name in name_of(pod))


def test_eks_when_a_launch_fails_then_the_next_scan_sees_it_and_the_desired_size_is_lowered() -> None:
    async def story(world: World, clock: ManualClock) -> None:
        await eks(world)
        (cluster,) = world.eks.clusters.values()
        group = cluster.groups["gpu"]
        world.faults.add(parse_fault({"action": "stock-out", "kind": "autoscale"}))
        growing = asyncio.create_task(EksGroups(cluster, clock, world.faults).grow(group.asg, 2))
        await clock.advance(1)
        assert group.desired == 2
        await clock.advance(60)
        failure = await growing
        assert failure is not None
        assert (failure.seen, failure.missing, SOLD_OUT in failure.message) == ("machines", 2, True)
        assert (group.desired, group.nodes) == (0, [])

    on_clock(story)


def test_eks_when_somebody_requests_machines_that_do_not_exist_then_the_group_shows_it_and_gives_them_up() -> None:
    async def story(world: World, clock: ManualClock) -> None:
        await eks(world)
        (cluster,) = world.eks.clusters.values()
        group, groups = cluster.groups["gpu"], EksGroups(cluster, clock, world.faults)
        group.members["scalingConfig"] = {**group.scaling, "desiredSize": 3}
        group.status = "DEGRADED"
        group.issues = [{"code": "AsgInstanceLaunchFailures", "message": SOLD_OUT, "resourceIds": [group.asg]}]
        assert [one.error for one in groups.listed() if one.name == group.asg] == [SOLD_OUT]
        groups.release(group.asg)
        assert group.desired == 0

    on_clock(story)


# AKS


@pytest.mark.parametrize(
    ("action", "settings", "minutes", "seen"),
    [
        pytest.param("stock-out", {}, 15, "time", id="allocation-after-the-time-for-nodes"),
        pytest.param("stock-out", {"max-node-provision-time": "20m"}, 20, "time", id="as-set"),
        pytest.param("quota", {}, 2, "refused", id="quota-at-once"),
    ],
)
def test_aks_when_machines_do_not_come_then_only_a_quota_is_seen_before_the_time_for_nodes_is_over(
    action: str, settings: dict[str, str], minutes: int, seen: str
) -> None:
    async def story(world: World, clock: ManualClock) -> None:
        cluster, _ = await world.ensure_cluster(ClusterRequest("s", "g", "a"))
        cluster.auto_scaler = settings
        await cluster.kube.stop()  # its own autoscaler would act for DNS
        pool = aks_pool(world)
        groups = AksGroups(cluster, clock, world.faults, world.aks.quotas)
        world.faults.add(parse_fault({"action": action, "kind": "autoscale"}))
        growing = asyncio.create_task(groups.grow(groups.listed()[0].name, 2))
        await clock.advance(minutes * 60 - 90)
        assert (growing.done(), pool.properties["count"]) == (False, 2)
        await clock.advance(90)
        failure = await growing
        assert failure is not None
        assert (failure.seen, failure.missing, pool.properties["count"]) == (seen, 2, 0)

    on_clock(story)


def test_aks_when_the_time_is_over_then_the_event_says_so_and_the_other_pool_is_used() -> None:
    async def story(bench: Bench) -> None:
        cloud = Cloud(bench, a=Kind(T4), b=Kind(T4))
        grow = cloud.grow

        async def late(name: str, count: int) -> Failure | None:
            if name == "b":
                return await grow(name, count)
            cloud.kinds[name].target += count
            await bench.clock.sleep(900)
            cloud.kinds[name].target -= count
            return Failure("", count, "time")

        cloud.grow = late  # type: ignore[method-assign] # a group without machines, as on AKS
        bench.cluster.autoscale(cloud)
        bench.put("pods", work("x"))
        await bench.wait(890)
        assert not told(bench.cluster, "ScaleUpTimedOut")
        await bench.wait(100)
        assert told(bench.cluster, "ScaleUpTimedOut") == ["Nodes added to group a failed to register within 15m0s"]
        assert spec(bench.get("pods", "x"))["nodeName"] == "b-0"

    life(story)


# GKE


def test_gke_when_a_zone_is_sold_out_then_it_is_seen_at_once_and_the_group_is_as_before() -> None:
    async def story(world: World, clock: ManualClock) -> None:
        cluster, _ = await world.ensure_gke_cluster(GkeRequest("p", "us-central1", "k"))
        await cluster.kube.stop()
        gke_pool(world)
        groups = GkeGroups(cluster, clock, world.faults, world.gke.service().quotas)
        world.faults.add(parse_fault({"action": "stock-out", "kind": "autoscale"}))
        growing = asyncio.create_task(groups.grow(groups.listed()[0].name, 2))
        await clock.advance(60)
        assert await growing == Failure("GCE out of resources", 2, "machines")
        assert groups.listed()[0].target == 0

    on_clock(story)
