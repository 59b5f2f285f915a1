"""Autoscaled families in the sandbox: the order that the autoscaler gets, and the pods that follow it."""

from __future__ import annotations

from time import sleep
from typing import TYPE_CHECKING, cast

import httpx2
import pytest
import yaml
from lightkube import ApiError
from lightkube.generic_resource import create_global_resource
from lightkube.models.core_v1 import PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Pod

from gpukube import api
from gpukube_sandbox import daemon
from sandbox_tests.sandboxes import emptied, signed
from sandbox_tests.waiting import wait_for
from tests.changes.world import ADDRESSES, SMALL, World, prepare, spec
from tests.cli.harness import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.daemon import SandboxInfo
    from tests.changes.world import Document

MAP = "cluster-autoscaler-priority-expander"
CLASS = "cloud.google.com/compute-class"
SPEED = 1000.0
BACK_OFF_S = 600
"""Longer than the first back-off of a group, on the sandbox's clock."""
UUID = "[0-9a-f]{8}-[0-9a-f-]{27}$"
T4 = {1000: [f"^eks-t4-{UUID}"], 990: [f"^eks-t4spot-{UUID}"], 1: [".*"]}
ComputeClass = create_global_resource("cloud.google.com", "v1", "ComputeClass", "computeclasses")


def family(cloud: str, *alternatives: Document, name: str = "t4") -> Document:
    """Write an autoscaled pool with alternatives."""
    return {
        "name": name,
        **SMALL[cloud],
        "nodes": {"autoscaling": {"min": 0, "max": 2}},
        "alternatives": list(alternatives or [{"name": f"{name}spot", "capacity": {"type": "spot"}}]),
    }


@pytest.fixture
def world(running_sandbox: SandboxInfo) -> World:
    """Give the test an empty sandbox whose clock is fast enough for back-offs of an autoscaler."""
    return World(emptied(running_sandbox, SPEED))


@pytest.fixture
def inside() -> Iterator[list[Cluster]]:
    """Close what a test has opened."""
    opened: list[Cluster] = []
    yield opened
    for cluster in opened:
        cluster.close()


def enter(world: World, opened: list[Cluster]) -> Cluster:
    opened.append(Cluster(world.info))
    return opened[-1]


def priorities(cluster: Cluster) -> object:
    return yaml.safe_load((cluster.client.get(ConfigMap, MAP, namespace="kube-system").data or {})["priorities"])


def counts(world: World) -> dict[str, int]:
    """Return the nodes of each pool with GPUs."""
    pools = world.nodes("train").items()
    return {name: len(nodes) for name, nodes in pools if name not in ("system", "default-pool", "nodepool1")}


def delete(world: World, names: list[str], document: Document) -> None:
    api.delete(prepare(document), world.run(), names)


def start_pod(cluster: Cluster, selector: dict[str, str], name: str = "work") -> None:
    tolerations = [
        {"key": "nvidia.com/gpu", "operator": "Exists"},
        {"key": "kubernetes.azure.com/scalesetpriority", "operator": "Exists"},
    ]
    container = {"name": "work", "image": "cuda", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    body = {"nodeSelector": selector, "tolerations": tolerations, "containers": [container]}
    cluster.client.create(
        Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=cast("PodSpec", PodSpec.from_dict(body)))
    )


def node_of(cluster: Cluster, name: str = "work") -> str:
    pod = cluster.client.get(Pod, name, namespace="default")
    return (pod.spec.nodeName if pod.spec else None) or ""


def test_eks_when_rank_1_has_no_machines_then_pods_run_on_rank_2(world: World, inside: list[Cluster]) -> None:
    clusters = {"train": world.make("eks", "train", autoscaler="priority,least-waste")}
    document = spec("team", clusters, [family("eks")])
    (plan,) = world.plan(document)
    (order,) = plan.orders
    assert (order.action, str(order), plan.differs) == ("create", f"ConfigMap kube-system/{MAP}", True)
    reports = world.create(document)
    assert {name: report.outcome for name, report in reports.items()} == {"t4": "done", "t4spot": "done"}
    (again,) = world.plan(document)
    assert not again.differs
    cluster = enter(world, inside)
    assert priorities(cluster) == T4
    daemon.set_stock(world.info, "eks", 0, type="g4dn.xlarge", kind="on-demand")
    start_pod(cluster, {"gpukube.io/family": "t4"})
    wait_for(lambda: bool(node_of(cluster)), lambda: str(world.nodes("train")))
    assert counts(world) == {"t4": 0, "t4spot": 1}


def test_eks_when_rank_1_has_machines_again_then_later_pods_run_there_after_the_back_off(
    world: World, inside: list[Cluster]
) -> None:
    clusters = {"train": world.make("eks", "train", autoscaler="priority,least-waste")}
    world.create(spec("team", clusters, [family("eks")]))
    cluster = enter(world, inside)
    daemon.set_stock(world.info, "eks", 0, type="g4dn.xlarge", kind="on-demand")
    start_pod(cluster, {"gpukube.io/family": "t4"})
    wait_for(lambda: bool(node_of(cluster)), lambda: str(world.nodes("train")))
    daemon.clear_stock(world.info)
    sleep(BACK_OFF_S / SPEED)
    start_pod(cluster, {"gpukube.io/family": "t4"}, "later")
    wait_for(lambda: bool(node_of(cluster, "later")), lambda: str(world.nodes("train")))
    assert counts(world) == {"t4": 1, "t4spot": 1}


def test_map_of_others_stays_and_the_plan_names_the_lines_to_add(world: World, inside: list[Cluster]) -> None:
    clusters = {"train": world.make("eks", "train", autoscaler="priority,least-waste")}
    cluster = enter(world, inside)
    theirs = {"priorities": "50:\n  - cpu\n"}
    metadata = ObjectMeta(name=MAP, namespace="kube-system")
    cluster.client.create(ConfigMap(metadata=metadata, data=theirs))
    document = spec("team", clusters, [family("eks")])
    (plan,) = world.plan(document)
    (found,) = (one for one in plan.diagnostics if one.code == "order-foreign")
    assert found.fix == (
        f"write these lines in its priorities: {{1000: ['^eks-t4-{UUID}'], 990: ['^eks-t4spot-{UUID}']}}"
    )
    assert set(world.create(document)) == {"t4", "t4spot"}
    assert cluster.client.get(ConfigMap, MAP, namespace="kube-system").data == theirs
    added = yaml.safe_load("{" + found.fix.partition("{")[2]) | {50: ["cpu"], 1: [".*"]}
    cluster.client.patch(ConfigMap, MAP, {"data": {"priorities": yaml.safe_dump(added)}}, namespace="kube-system")
    (after,) = world.plan(document)
    assert not after.differs
    assert not [one for one in after.diagnostics if one.code.startswith("order-")]


def test_two_owners_share_a_map_and_each_takes_out_its_own(world: World, inside: list[Cluster]) -> None:
    clusters = {"train": world.make("eks", "train", autoscaler="priority")}
    first = spec("first", clusters, [family("eks")])
    second = spec("second", clusters, [family("eks", {"name": "g6", "instanceType": "g6.xlarge"}, name="l4")])
    world.create(first)
    cluster = enter(world, inside)
    live = cluster.client.get(ConfigMap, MAP, namespace="kube-system")
    edited = {"priorities": (live.data or {})["priorities"] + "500:\n  - mine\n"}
    cluster.client.patch(ConfigMap, MAP, {"data": edited}, namespace="kube-system")
    world.create(second)
    assert priorities(cluster) == {
        1000: [f"^eks-t4-{UUID}", f"^eks-l4-{UUID}"],
        990: [f"^eks-t4spot-{UUID}", f"^eks-g6-{UUID}"],
        500: ["mine"],
        1: [".*"],
    }
    (plan,) = world.plan(first)
    assert not plan.differs
    delete(world, ["t4spot"], first)
    assert priorities(cluster) == {
        1000: [f"^eks-t4-{UUID}", f"^eks-l4-{UUID}"],
        990: [f"^eks-g6-{UUID}"],
        500: ["mine"],
        1: [".*"],
    }
    other = spec("first", clusters, [{"name": "plain", **SMALL["eks"], "nodes": {"count": 1}}])
    world.apply(other, prune=True)
    assert priorities(cluster) == {1000: [f"^eks-l4-{UUID}"], 990: [f"^eks-g6-{UUID}"], 500: ["mine"], 1: [".*"]}


def test_without_an_autoscaler_only_the_first_is_created(world: World) -> None:
    clusters = {"train": world.make("eks", "train")}
    document = spec("team", clusters, [family("eks")])
    (plan,) = world.plan(document)
    (found,) = (one for one in plan.diagnostics if one.code == "order-unknown")
    assert found.why == "no Cluster Autoscaler was found, and nothing else takes an order of node groups"
    assert (str(found.where), plan.orders) == ("train/t4spot", ())
    assert set(world.create(document)) == {"t4"}
    assert counts(world) == {"t4": 0}
    (after,) = world.plan(document)
    assert not after.differs


def test_an_autoscaler_with_another_expander_is_named_with_the_setting(world: World) -> None:
    clusters = {"train": world.make("eks", "train", autoscaler="least-waste")}
    (plan,) = world.plan(spec("team", clusters, [family("eks")]))
    (found,) = (one for one in plan.diagnostics if one.code == "order-ignored")
    assert found.seen == "the autoscaler ignores the order of t4: its expander is least-waste"
    assert found.fix == "start Deployment kube-system/cluster-autoscaler with --expander=priority,least-waste"


def test_aks_when_the_profile_has_another_expander_then_the_command_and_the_map(
    world: World, inside: list[Cluster]
) -> None:
    clusters = {"train": world.make("aks", "train")}
    document = spec("team", clusters, [family("aks")])
    (plan,) = world.plan(document)
    (found,) = (one for one in plan.diagnostics if one.code == "order-ignored")
    subscription = ADDRESSES["aks"]["subscription"]
    assert found.fix == (
        f"az aks update --subscription {subscription} --resource-group ml --name train "
        "--cluster-autoscaler-profile expander=priority"
    )
    assert set(world.create(document)) == {"t4", "t4spot"}
    cluster = enter(world, inside)
    assert priorities(cluster) == {
        1000: ["^aks-t4-[0-9]+-vmss$"],
        990: ["^aks-t4spot-[0-9]+-vmss$"],
        1: [".*"],
    }


def follow_priorities(world: World) -> None:
    """Do what the plan says: az aks update --cluster-autoscaler-profile expander=priority."""
    place = ADDRESSES["aks"]
    path = f"/subscriptions/{place['subscription']}/resourceGroups/{place['resourceGroup']}"
    path += "/providers/Microsoft.ContainerService/managedClusters/train"
    version, url = {"api-version": "2025-08-01"}, world.info.arm_url
    with httpx2.Client(base_url=url, params=version, headers=signed(world.info), trust_env=False) as arm:
        body = arm.get(path).raise_for_status().json()
        body["properties"]["autoScalerProfile"]["expander"] = "priority"
        arm.put(path, json=body).raise_for_status()


def test_aks_when_rank_1_has_no_machines_then_pods_run_on_rank_2(world: World, inside: list[Cluster]) -> None:
    clusters = {"train": world.make("aks", "train")}
    document = spec("team", clusters, [family("aks")])
    world.create(document)
    follow_priorities(world)
    (plan,) = world.plan(document)
    assert (plan.differs, [one.code for one in plan.diagnostics if one.code.startswith("order-")]) == (False, [])
    daemon.set_stock(world.info, "aks", 0, type=SMALL["aks"]["instanceType"], kind="on-demand")
    cluster = enter(world, inside)
    start_pod(cluster, {"gpukube.io/family": "t4"})
    wait_for(lambda: bool(node_of(cluster)), lambda: str(world.nodes("train")))
    assert counts(world) == {"t4": 0, "t4spot": 1}


def test_gke_when_rank_1_has_no_machines_then_pods_that_select_the_class_run_on_rank_2(
    world: World, inside: list[Cluster]
) -> None:
    clusters = {"train": world.make("gke", "train")}
    document = spec("team", clusters, [family("gke", {"name": "l4spot", "capacity": {"type": "spot"}}, name="l4")])
    (plan,) = world.plan(document)
    (order,) = plan.orders
    assert (order.action, str(order)) == ("create", "ComputeClass l4")
    assert set(world.create(document)) == {"l4", "l4spot"}
    (after,) = world.plan(document)
    assert not after.differs, after
    cluster = enter(world, inside)
    assert cluster.client.get(ComputeClass, "l4")["spec"] == {
        "nodePoolAutoCreation": {"enabled": False},
        "priorities": [{"nodepools": ["l4"]}, {"nodepools": ["l4spot"]}],
        "whenUnsatisfiable": "DoNotScaleUp",
    }
    daemon.set_stock(world.info, "gke", 0, type="g2-standard-4", kind="on-demand")
    start_pod(cluster, {"cloud.google.com/compute-class": "l4"})
    wait_for(lambda: bool(node_of(cluster)), lambda: str(world.nodes("train")))
    assert counts(world) == {"l4": 0, "l4spot": 1}


def test_gke_the_class_goes_with_the_last_pool(world: World, inside: list[Cluster]) -> None:
    clusters = {"train": world.make("gke", "train")}
    document = spec("team", clusters, [family("gke", {"name": "l4spot", "capacity": {"type": "spot"}}, name="l4")])
    world.create(document)
    cluster = enter(world, inside)
    delete(world, ["l4spot"], document)
    assert cluster.client.get(ComputeClass, "l4")["spec"]["priorities"] == [{"nodepools": ["l4"]}]
    delete(world, ["l4"], document)
    with pytest.raises(ApiError) as refused:
        cluster.client.get(ComputeClass, "l4")
    assert refused.value.response.status_code == httpx2.codes.NOT_FOUND


def test_gke_a_class_of_others_stays_and_only_the_first_is_created(world: World, inside: list[Cluster]) -> None:
    clusters = {"train": world.make("gke", "train")}
    cluster = enter(world, inside)
    theirs = {"priorities": [{"nodepools": ["theirs"]}], "whenUnsatisfiable": "ScaleUpAnyway"}
    cluster.client.create(ComputeClass(metadata=ObjectMeta(name="l4"), spec=theirs))
    document = spec("team", clusters, [family("gke", {"name": "l4spot", "capacity": {"type": "spot"}}, name="l4")])
    assert set(world.create(document)) == {"l4"}
    assert cluster.client.get(ComputeClass, "l4")["spec"] == theirs


def test_gke_before_compute_classes_only_the_first_is_created(world: World) -> None:
    clusters = {"train": world.make("gke", "train", version="1.30.2")}
    document = spec("team", clusters, [family("gke", {"name": "l4spot", "capacity": {"type": "spot"}}, name="l4")])
    (plan,) = world.plan(document)
    (found,) = (one for one in plan.diagnostics if one.code == "order-unknown")
    assert found.why.startswith("ComputeClass needs version 1.30.3-gke.1451000, and the cluster has 1.30.2")
    assert set(world.create(document)) == {"l4"}


def test_doctor_after_a_pool_was_deleted_by_hand_names_it(world: World, inside: list[Cluster]) -> None:
    clusters = {"train": world.make("eks", "train", autoscaler="priority")}
    alternatives: list[Document] = [
        {"name": "t4spot", "capacity": {"type": "spot"}},
        {"name": "g6", "instanceType": "g6.xlarge"},
    ]
    document = spec("team", clusters, [family("eks", *alternatives)])
    world.create(document)
    assert orders_of(world, document) == []
    daemon.tamper(world.info, "train", "g6", delete=True)
    gone = [("order-stale", "it names g6, which no longer exists")]
    wait_for(lambda: orders_of(world, document) == gone, lambda: str(orders_of(world, document)))
    world.apply(document)
    assert orders_of(world, document) == []
    cluster = enter(world, inside)
    cluster.client.patch(ConfigMap, MAP, {"data": {"priorities": "first: []"}}, namespace="kube-system")
    seen = "its priorities cannot be read: 'first' is not a number"
    assert orders_of(world, document) == [("order-invalid", seen)]


def orders_of(world: World, document: Document) -> list[tuple[str, str]]:
    (examined,) = api.diagnose(prepare(document), world.run())
    assert examined.troubles == ()
    return [(one.check.id, one.finding.seen) for one in examined.found if one.check.id.startswith("order-")]


def test_a_pool_that_is_replaced_keeps_its_place_in_the_order(world: World, inside: list[Cluster]) -> None:
    clusters = {"train": world.make("eks", "train", autoscaler="priority")}
    world.create(spec("team", clusters, [family("eks")]))
    other = spec("team", clusters, [family("eks", {"name": "t4spot", "instanceType": "g4dn.2xlarge"})])
    (plan,) = world.plan(other)
    (order,) = plan.orders
    assert f"^eks-t4spotb-{UUID}" in order.content
    world.apply(other, consent=api.Consent(replace="surge"))
    assert set(counts(world)) == {"t4", "t4spotb"}
    assert priorities(enter(world, inside)) == {
        1000: [f"^eks-t4-{UUID}"],
        990: [f"^eks-t4spotb-{UUID}"],
        1: [".*"],
    }
    (after,) = world.plan(other)
    assert not after.differs


def test_gke_a_pool_that_gets_alternatives_joins_the_class_in_place(world: World, inside: list[Cluster]) -> None:
    clusters = {"train": world.make("gke", "train")}
    alone = {"name": "l4", **SMALL["gke"], "nodes": {"autoscaling": {"min": 0, "max": 2}}}
    world.create(spec("team", clusters, [alone]))
    document = spec("team", clusters, [family("gke", {"name": "l4spot", "capacity": {"type": "spot"}}, name="l4")])
    changed = {pool: [str(one.change.field) for one in found.changes] for pool, found in world.pools(document).items()}
    assert set(changed["l4"]) == {"labels[gpukube.io/family]", f"labels[{CLASS}]", "taints"}
    world.apply(document)
    (after,) = world.plan(document)
    assert not after.differs
    cluster = enter(world, inside)
    assert cluster.client.get(ComputeClass, "l4")["spec"]["priorities"] == [
        {"nodepools": ["l4"]},
        {"nodepools": ["l4spot"]},
    ]


def test_a_map_that_another_run_writes_meanwhile_keeps_what_both_wrote(world: World, inside: list[Cluster]) -> None:
    clusters = {"train": world.make("eks", "train", autoscaler="priority")}
    first = spec("first", clusters, [family("eks")])
    second = spec("second", clusters, [family("eks", {"name": "g6", "instanceType": "g6.xlarge"}, name="l4")])
    world.create(first)

    def meanwhile(_plans: object) -> None:
        world.apply(spec("first", clusters, [family("eks", {"name": "big", "instanceType": "g4dn.2xlarge"})]))

    world.apply(second, confirm=meanwhile)
    assert priorities(enter(world, inside)) == {
        1000: [f"^eks-t4-{UUID}", f"^eks-l4-{UUID}"],
        990: [f"^eks-big-{UUID}", f"^eks-g6-{UUID}"],
        1: [".*"],
    }


def test_a_map_that_another_run_creates_meanwhile_is_changed_and_not_replaced(
    world: World, inside: list[Cluster]
) -> None:
    clusters = {"train": world.make("eks", "train", autoscaler="priority")}
    first = spec("first", clusters, [family("eks")])
    second = spec("second", clusters, [family("eks", {"name": "g6", "instanceType": "g6.xlarge"}, name="l4")])

    def meanwhile(_plans: object) -> None:
        world.apply(first)

    world.apply(second, confirm=meanwhile)
    assert priorities(enter(world, inside)) == {
        1000: [f"^eks-t4-{UUID}", f"^eks-l4-{UUID}"],
        990: [f"^eks-t4spot-{UUID}", f"^eks-g6-{UUID}"],
        1: [".*"],
    }


def test_a_map_that_somebody_else_creates_meanwhile_is_left_alone(world: World, inside: list[Cluster]) -> None:
    clusters = {"train": world.make("eks", "train", autoscaler="priority")}
    cluster = enter(world, inside)
    metadata = ObjectMeta(name=MAP, namespace="kube-system")

    def meanwhile(_plans: object) -> None:
        cluster.client.create(ConfigMap(metadata=metadata, data={"priorities": "5: [cpu]"}))

    world.apply(spec("team", clusters, [family("eks")]), confirm=meanwhile)
    assert priorities(cluster) == {5: ["cpu"]}


def test_a_map_of_ours_that_was_edited_is_written_again(world: World, inside: list[Cluster]) -> None:
    clusters = {"train": world.make("eks", "train", autoscaler="priority")}
    document = spec("team", clusters, [family("eks")])
    world.create(document)
    cluster = enter(world, inside)
    edited = {"priorities": yaml.safe_dump({990: [f"^eks-t4-{UUID}"], 7: ["cpu"]})}
    cluster.client.patch(ConfigMap, MAP, {"data": edited}, namespace="kube-system")
    (plan,) = world.plan(document)
    assert plan.differs
    world.apply(document)
    assert priorities(cluster) == {**T4, 7: ["cpu"]}


def test_without_the_right_to_read_the_order_only_the_first_is_created(world: World) -> None:
    clusters = {"train": world.make("gke", "train")}
    document = spec("team", clusters, [family("gke", {"name": "l4spot", "capacity": {"type": "spot"}}, name="l4")])
    daemon.deny(world.info, "train", ("list", "computeclasses.cloud.google.com"))
    (plan,) = world.plan(document)
    (found,) = (one for one in plan.diagnostics if one.code == "order-unknown")
    assert (str(found.where), "computeclasses" in found.why) == ("train/l4spot", True)
    assert set(world.create(document)) == {"l4"}


def test_without_the_right_to_read_the_order_of_pools_that_exist_the_plan_says_so(world: World) -> None:
    clusters = {"train": world.make("aks", "train")}
    document = spec("team", clusters, [family("aks")])
    world.create(document)
    daemon.deny(world.info, "train", ("get", "configmaps"))
    (plan,) = world.plan(document)
    (found,) = (one for one in plan.diagnostics if one.code == "order-unknown")
    assert (str(found.where), found.seen, "configmaps" in found.why, plan.differs) == (
        "train/t4", "nothing can tell an autoscaler to try t4 first", True, False,
    )  # fmt: skip


def test_without_the_right_to_write_the_order_nothing_is_created(world: World) -> None:
    clusters = {"train": world.make("gke", "train")}
    document = spec("team", clusters, [family("gke", {"name": "l4spot", "capacity": {"type": "spot"}}, name="l4")])
    daemon.deny(world.info, "train", ("create", "computeclasses.cloud.google.com"))
    (report,) = api.create(prepare(document), world.run())
    assert {pool.outcome for pool in report.pools} == {"not-attempted"}
    assert str(report.error) == "not allowed in the cluster: create computeclasses"
    assert report.release == ""
    assert counts(world) == {}


@pytest.mark.parametrize("action", ["drop-before", "drop-after", "status"])
@pytest.mark.parametrize(("method", "pools"), [("GET", {"t4"}), ("POST", set())])
def test_a_call_for_the_order_that_fails_once_costs_a_run_and_no_order(
    world: World, inside: list[Cluster], action: str, method: str, pools: set[str]
) -> None:
    clusters = {"train": world.make("eks", "train", autoscaler="priority")}
    document = spec("team", clusters, [family("eks")])
    path = f"/configmaps/{MAP}" if method == "GET" else "/kube-system/configmaps"
    daemon.add_fault(world.info, action, service="kube", method=method, path=path, times=2)
    api.create(prepare(document), world.run())
    assert set(counts(world)) in (pools, {"t4", "t4spot"})  # a read is repeated, and a lost answer may be found
    daemon.clear_faults(world.info)
    world.create(document)
    assert set(counts(world)) == {"t4", "t4spot"}
    assert priorities(enter(world, inside)) == T4


def test_a_family_that_left_the_spec_and_has_no_pools_leaves_the_map(world: World, inside: list[Cluster]) -> None:
    clusters = {"train": world.make("eks", "train", autoscaler="priority")}
    other = family("eks", {"name": "g6", "instanceType": "g6.xlarge"}, name="l4")
    world.create(spec("team", clusters, [family("eks"), other]))
    theirs = spec("another", clusters, [family("eks", {"name": "mine", "capacity": {"type": "spot"}}, name="ours")])
    world.create(theirs)
    for name in ("l4", "g6", "ours", "mine"):
        daemon.tamper(world.info, "train", name, delete=True)
    world.apply(spec("team", clusters, [family("eks")]))
    assert priorities(enter(world, inside)) == {
        1000: [f"^eks-ours-{UUID}", f"^eks-t4-{UUID}"],  # another owner's are as they were
        990: [f"^eks-mine-{UUID}", f"^eks-t4spot-{UUID}"],
        1: [".*"],
    }


def test_a_pool_in_the_way_has_no_place_in_the_order(world: World, inside: list[Cluster]) -> None:
    clusters = {"train": world.make("eks", "train", autoscaler="priority")}
    alone = {"name": "t4spot", **SMALL["eks"], "nodes": {"autoscaling": {"min": 0, "max": 2}}}
    world.create(spec("another", clusters, [alone]))
    report = api.create(prepare(spec("team", clusters, [family("eks")])), world.run())[0]
    assert {pool.pool: pool.outcome for pool in report.pools} == {"t4": "done", "t4spot": "failed"}
    assert priorities(enter(world, inside)) == {1000: [f"^eks-t4-{UUID}"], 1: [".*"]}
