"""Where workloads go on the pools of a spec, what has no place, and the one change with which it gets one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpukube.engine.documents.fit import fit_document
from gpukube.workload.fit.answers import Fit, find_fit
from gpukube.workload.fit.demand import read_demands
from gpukube.workload.fit.filling import ClusterView
from gpukube.workload.fit.nodes import read_node
from gpukube.workload.fit.packing import pack
from gpukube.workload.fit.pods import read_pod
from gpukube.workload.manifests import read_manifests
from tests.unit.workload.specs import offers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

    from gpukube.workload.fit.answers import Answer
    from gpukube.workload.fit.demand import Demand
    from gpukube.workload.offers import PoolOffer

GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ANY_GPU = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
ZONED = (
    "{name: zoned, clusters: [train-eks], gpu: {model: T4, count: 1}, nodes: {autoscaling: {min: 0, max: 4}}, "
    "zones: [us-east-1a, us-east-1b]}"
)


def pod_spec(gpus: int = 1, name: str = GPU, cpu: str = "1", **more: object) -> dict[str, Any]:
    limits = {name: gpus} if gpus else {}
    return {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}, "limits": limits}}], **more}


def deployment(name: str, replicas: int, spec: Mapping[str, Any], **more: object) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    made = {"replicas": replicas, "template": template, **more}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": made}


def ray(
    least: int, most: int | None, spec: Mapping[str, Any], kind: str = "RayCluster", **more: object
) -> dict[str, Any]:
    bounds = {"minReplicas": least} | ({} if most is None else {"maxReplicas": most})
    group = {"groupName": "gpu", **bounds, "template": {"spec": spec}, **more}
    head = {"template": {"spec": pod_spec(0)}}
    cluster = {"enableInTreeAutoscaling": True, "headGroupSpec": head, "workerGroupSpecs": [group]}
    inside = {"RayCluster": cluster, "RayService": {"rayClusterConfig": cluster}}[kind]
    return {"apiVersion": "ray.io/v1", "kind": kind, "metadata": {"name": "ray"}, "spec": inside}


def demands(*objects: Mapping[str, Any]) -> tuple[Demand, ...]:
    return read_demands(read_manifests(yaml.safe_dump_all(objects), "file.yaml").manifests).demands


def views(found: Mapping[str, PoolOffer]) -> list[ClusterView]:
    by_cluster: dict[str, list[PoolOffer]] = {}
    for offer in found.values():
        by_cluster.setdefault(offer.desired.target.cluster.key, []).append(offer)
    return [ClusterView(key=key, offers=tuple(listed)) for key, listed in by_cluster.items()]


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PoolOffer]:
    names = ("whole", "mixed", "tainted", "renamed", "single", "mps", ZONED)
    return offers(tmp_path_factory.mktemp("spec"), *names)


def fit(pools: Mapping[str, PoolOffer], names: Sequence[str], *objects: Mapping[str, Any]) -> Fit:
    return find_fit(views({name: pools[name] for name in names}), demands(*objects))


def counts(answer: Answer) -> tuple[int, int, int, int]:
    placed = answer.placed
    return placed.now, placed.later, placed.never, placed.elsewhere


WHOLE, MIXED, TAINTED = ["train-aks/whole"], ["train-aks/mixed"], ["train-aks/tainted"]
LABEL = "kubernetes.azure.com/agentpool"
AFFINE = {
    "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "no", "operator": "Exists"}]}]}}
}
AWAY = {
    "nodeAffinity": {
        REQUIRED: {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": LABEL, "operator": "NotIn", "values": ["whole"]}]}]
        }
    }
}
APART = {"podAntiAffinity": {REQUIRED: [{"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}]}}

ANSWERS: dict[str, tuple[list[str], dict[str, Any], tuple[int, int, int, int], str, str]] = {
    # Pools, object -> pods now, after scale-up, never, elsewhere; part of the first reason; the change.
    "after scale-up": (WHOLE, deployment("web", 3, pod_spec(3)), (0, 3, 0, 0), "", ""),
    "now": (TAINTED, deployment("web", 1, pod_spec(tolerations=[{"operator": "Exists"}])), (1, 0, 0, 0), "", ""),
    "a full pool": (
        WHOLE,
        deployment("web", 20, pod_spec(3)),
        (0, 8, 12, 0),
        "its 4 nodes are full, its maximum is 4",
        "train-aks/whole: write nodes.autoscaling.max: 10",
    ),
    "a full pool of a fixed size": (
        TAINTED,
        deployment("web", 3, pod_spec(tolerations=[{"operator": "Exists"}])),
        (1, 0, 2, 0),
        "its node is full, its count is 1",
        "train-aks/tainted: write nodes.count: 3",
    ),
    "more than a node has": (
        WHOLE,
        deployment("web", 1, pod_spec(9)),
        (0, 0, 1, 0),
        "nvidia.com/gpu: 9 requested, a node has 8",
        'Deployment/web: request nvidia.com/gpu: 8 in container "main"',
    ),
    "more processors than a node has": (
        WHOLE,
        deployment("web", 1, pod_spec(1, cpu="200")),
        (0, 0, 1, 0),
        "cpu: 200 requested, a node has 94340m",
        'Deployment/web: request cpu: 94340m in container "main"',
    ),
    "kept away from a pool, and no device": (
        ["train-aks/tainted", "train-aks/whole"],
        deployment("web", 1, pod_spec(affinity=AWAY) | {"containers": [{"name": "main", "image": "a:1"}]}),
        (0, 0, 0, 1),
        "",
        "",
    ),
    "a taint": (
        TAINTED,
        deployment("web", 1, pod_spec()),
        (0, 0, 1, 0),
        "untolerated taint sku=gpu:NoSchedule",
        "Deployment/web: add the toleration {key: sku, operator: Equal, value: gpu, effect: NoSchedule}",
    ),
    "a taint that the admission does not cover": (
        MIXED,
        deployment("web", 1, pod_spec(name=MIG)),
        (0, 0, 1, 0),
        "untolerated taint nvidia.com/gpu=present:NoSchedule",
        "Deployment/web: add the toleration {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}",
    ),
    "another name": (
        MIXED,
        deployment("web", 1, pod_spec(tolerations=[ANY_GPU])),
        (0, 0, 1, 0),
        "the node has no nvidia.com/gpu",
        f"Deployment/web: request {MIG} instead of {GPU}",
    ),
    "a label that no pool has": (
        WHOLE,
        deployment("web", 1, pod_spec(nodeSelector={"team": "a"})),
        (0, 0, 1, 0),
        "no label team, the nodeSelector requires a",
        "Deployment/web: remove team from its nodeSelector",
    ),
    "the label of another pool": (
        WHOLE,
        deployment("web", 1, pod_spec(nodeSelector={LABEL: "gone"})),
        (0, 0, 1, 0),
        f"{LABEL} is whole, the nodeSelector requires gone",
        f"Deployment/web: write {LABEL}: whole in its nodeSelector",
    ),
    "an affinity": (
        WHOLE,
        deployment("web", 1, pod_spec(affinity=AFFINE)),
        (0, 0, 1, 0),
        "the required node affinity does not match",
        "Deployment/web: remove what its nodeAffinity requires",
    ),
    "one pod per node": (
        WHOLE,
        deployment("web", 6, pod_spec(affinity=APART)),
        (0, 4, 2, 0),
        "its pod anti-affinity forbids it (kubernetes.io/hostname), its maximum is 4",
        "Deployment/web: remove what its podAntiAffinity requires",
    ),
    "no GPU": (WHOLE, deployment("web", 2, pod_spec(0)), (0, 0, 0, 2), "", ""),
    "no GPU, and a pool of its choice": (
        WHOLE,
        deployment("web", 2, pod_spec(0, nodeSelector={LABEL: "whole"}, tolerations=[ANY_GPU])),
        (0, 2, 0, 0),
        "",
        "",
    ),
    "renamed shares from zero nodes": (
        ["train-eks/renamed"],
        deployment("web", 1, pod_spec(name="nvidia.com/gpu.shared", tolerations=[ANY_GPU])),
        (1, 0, 0, 0),
        "",
        "",
    ),
    "two shares where one is allowed": (
        ["train-eks/mps"],
        deployment("web", 1, pod_spec(2)),
        (0, 0, 1, 0),
        "the device plugin rejects 2 shares for one container",
        'Deployment/web: request nvidia.com/gpu: 1 in container "main"',
    ),
    "a Job": (
        WHOLE,
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "job"},
            "spec": {"parallelism": 50, "completions": 3, "template": {"spec": pod_spec(8)}},
        },
        (0, 3, 0, 0),
        "",
        "",
    ),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_fit_when_pods_are_placed_then_the_answer(case: str, pools: dict[str, PoolOffer]) -> None:
    names, made, expected, reason, edit = ANSWERS[case]
    found = fit(pools, names, made)
    (answer,) = found.answers
    assert counts(answer) == expected
    assert found.fits is not expected[2]
    assert list(answer.reasons[0].texts[:1]) == ([reason] if reason else []) if answer.reasons else not reason
    assert (f"{answer.edit.where}: {answer.edit.text}" if answer.edit else "") == edit


def test_fit_when_the_autoscaler_imagines_other_devices_then_never_and_min_1(pools: dict[str, PoolOffer]) -> None:
    mixed = pools["train-aks/mixed"]
    nodes = replace(mixed.desired.target.nodes, minimum=0)
    empty = replace(mixed, desired=replace(mixed.desired, target=replace(mixed.desired.target, nodes=nodes)))
    found = find_fit(views({"m": empty}), demands(deployment("web", 1, pod_spec(name=MIG, tolerations=[ANY_GPU]))))
    (answer,) = found.answers
    assert counts(answer) == (0, 0, 1, 0)
    assert answer.reasons[0].texts[0].startswith("while the pool is empty, the autoscaler expects nvidia.com/gpu: 8")
    assert answer.edit is not None
    assert answer.edit.text == "write nodes.autoscaling.min: 1"


def test_fit_when_a_ray_group_may_grow_beyond_the_pool_then_so_many_and_the_change(pools: dict[str, PoolOffer]) -> None:
    head, group = fit(pools, WHOLE, ray(1, 6, pod_spec(8))).answers
    assert counts(head) == (0, 0, 0, 1)
    assert counts(group) == (0, 4, 2, 0)
    assert (group.placed.missing, group.placed.beyond) == (0, 2)
    assert group.edit is not None
    assert group.edit.text == "write nodes.autoscaling.max: 6"


def test_fit_when_a_ray_group_has_no_maximum_then_its_minimum_alone(pools: dict[str, PoolOffer]) -> None:
    _, group = fit(pools, WHOLE, ray(1, None, pod_spec(8))).answers
    assert counts(group) == (0, 1, 0, 0)


def test_fit_when_a_ray_replica_has_several_hosts_then_all_of_them(pools: dict[str, PoolOffer]) -> None:
    _, group = fit(pools, WHOLE, ray(1, 2, pod_spec(8), numOfHosts=2)).answers
    assert counts(group) == (0, 4, 0, 0)


def test_fit_when_a_ray_service_is_upgraded_then_twice_the_room(pools: dict[str, PoolOffer]) -> None:
    _, group = fit(pools, WHOLE, ray(3, 3, pod_spec(8), "RayService")).answers
    assert counts(group) == (0, 3, 0, 0)
    assert (group.demand.surge, group.placed.surge, group.rollout_blocked) == (3, 1, True)


@pytest.mark.parametrize(
    ("strategy", "blocked"),
    [
        ({"rollingUpdate": {"maxUnavailable": 0}}, True),
        ({"rollingUpdate": {"maxUnavailable": "5%"}}, True),
        ({}, False),
        ({"rollingUpdate": {"maxUnavailable": 1}}, False),
        ({"type": "Recreate"}, False),
    ],
)
def test_fit_when_a_deployment_fills_its_pool_then_its_roll_out_waits(
    strategy: dict[str, Any], pools: dict[str, PoolOffer], *, blocked: bool
) -> None:
    (answer,) = fit(pools, WHOLE, deployment("web", 3, pod_spec(8), strategy=strategy)).answers
    assert counts(answer) == (0, 3, 0, 0)
    assert not answer.rollout_blocked, "one more node is allowed"
    (answer,) = fit(pools, ["train-aks/single"], deployment("web", 14, pod_spec(8), strategy=strategy)).answers
    assert answer.rollout_blocked is blocked


def test_fit_when_workloads_share_a_pool_then_what_one_takes_the_other_lacks(pools: dict[str, PoolOffer]) -> None:
    small, large = deployment("small", 28, pod_spec(1)), deployment("large", 1, pod_spec(8))
    first, second = fit(pools, WHOLE, small, large).answers
    assert (counts(first), counts(second)) == ((0, 28, 0, 0), (0, 0, 1, 0))
    assert second.edit is not None
    assert second.edit.text == "write nodes.autoscaling.max: 5"
    first, second = fit(pools, WHOLE, deployment("small", 24, pod_spec(1)), large).answers
    assert (counts(first), counts(second)) == ((0, 24, 0, 0), (0, 1, 0, 0))


def test_fit_when_nodes_are_spread_by_the_scheduler_then_apply_the_larger_first(pools: dict[str, PoolOffer]) -> None:
    """Two nodes that are up get a pod each, so neither has eight GPUs left; a pool of two has no third."""
    whole = pools["train-aks/whole"]
    nodes = replace(whole.desired.target.nodes, minimum=2, maximum=2)
    fixed = replace(whole, desired=replace(whole.desired, target=replace(whole.desired.target, nodes=nodes)))
    found = find_fit(
        views({"w": fixed}), demands(deployment("small", 2, pod_spec()), deployment("large", 1, pod_spec(8)))
    )
    assert [counts(answer) for answer in found.answers] == [(2, 0, 0, 0), (0, 0, 1, 0)]
    assert found.answers[1].edit is not None
    assert found.answers[1].edit.text == "apply it before the others"


def test_fit_when_processors_bind_then_told_with_what_is_stranded(pools: dict[str, PoolOffer]) -> None:
    found = fit(pools, WHOLE, deployment("web", 2, pod_spec(1, cpu="40")))
    (use,) = found.nodes
    assert (use.binds, use.stranded, use.node.new, use.node.name) == ("cpu", {GPU: 6}, True, "whole-1")


def test_fit_when_pods_spread_over_zones_then_a_node_in_each(pools: dict[str, PoolOffer]) -> None:
    spread = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2}
    spread["labelSelector"] = {"matchLabels": {"app": "web"}}
    found = fit(pools, ["train-eks/zoned"], deployment("web", 4, pod_spec(topologySpreadConstraints=[spread])))
    assert [counts(answer) for answer in found.answers] == [(0, 4, 0, 0)]
    assert [use.node.zone for use in found.nodes] == ["us-east-1a", "us-east-1b"] * 2
    three = {**spread, "minDomains": 3}
    (answer,) = fit(
        pools, ["train-eks/zoned"], deployment("web", 4, pod_spec(topologySpreadConstraints=[three]))
    ).answers
    assert counts(answer) == (0, 2, 2, 0)
    assert answer.edit is not None
    assert answer.edit.text == f"write whenUnsatisfiable: ScheduleAnyway for the topology key {ZONE}"


def test_fit_when_pods_want_to_be_near_later_ones_then_placed_after_them(pools: dict[str, PoolOffer]) -> None:
    near = {"podAffinity": {REQUIRED: [{"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "server"}}}]}}
    client, server = deployment("client", 1, pod_spec(affinity=near)), deployment("server", 1, pod_spec())
    found = fit(pools, WHOLE, client, server)
    assert [counts(answer) for answer in found.answers] == [(0, 1, 0, 0)] * 2
    assert len(found.nodes) == 1


def test_fit_when_a_daemon_set_is_among_them_then_it_takes_room_on_each_node(pools: dict[str, PoolOffer]) -> None:
    daemon = {"metadata": {"labels": {"app": "agent"}}, "spec": pod_spec(0, cpu="60", tolerations=[ANY_GPU])}
    made = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"}, "spec": {"template": daemon}}
    agent, web = fit(pools, WHOLE, made, deployment("web", 2, pod_spec(1, cpu="30"))).answers
    assert (counts(agent), counts(web)) == ((0, 2, 0, 0), (0, 2, 0, 0))


def test_fit_when_there_are_several_clusters_then_the_first_that_takes_all(pools: dict[str, PoolOffer]) -> None:
    names = [name for name in pools if name.endswith("/whole")]
    selector = {"cloud.google.com/gke-nodepool": "whole"}
    anywhere, bound = fit(
        pools, names, deployment("a", 4, pod_spec(8)), deployment("b", 1, pod_spec(nodeSelector=selector))
    ).answers
    assert bound.placed.cluster.view.key == "train-gke"
    assert anywhere.placed.cluster.view.key == next(name.partition("/")[0] for name in names)
    third = fit(pools, names, *(deployment(f"d{number}", 4, pod_spec(8)) for number in range(4)))
    assert [answer.placed.never for answer in third.answers] == [0, 0, 0, 4]


def live_node(name: str, gpus: int, cpu: str = "8", **labels: str) -> dict[str, Any]:
    room = {"cpu": cpu, "memory": "64Gi", "pods": "20", GPU: str(gpus)}
    return {"metadata": {"name": name, "labels": {HOST: name, **labels}}, "spec": {}, "status": {"allocatable": room}}


def test_fit_when_nodes_are_live_then_what_runs_there_is_taken(pools: dict[str, PoolOffer]) -> None:
    offer = pools["train-aks/whole"]
    node = read_node(live_node("n1", 8), "train-aks", tolerates_resources=True, offer=offer)
    node.take(read_pod({"name": "old"}, pod_spec(6)))
    plain = read_node(live_node("cpu", 0), "train-aks", tolerates_resources=True)
    view = ClusterView(key="train-aks", offers=(offer,), nodes=(node, plain))
    found = find_fit([view], demands(deployment("web", 2, pod_spec(2)), deployment("head", 1, pod_spec(0))))
    assert [counts(answer) for answer in found.answers] == [(1, 1, 0, 0), (1, 0, 0, 0)]
    assert [(use.node.name, use.others) for use in found.nodes] == [("n1", 1), ("cpu", 0), ("whole-2", 0)]


NEVER = {
    "huge pages": ({"containers": [{"resources": {"limits": {GPU: 1, "hugepages-2Mi": "5120Mi"}}}]}, "hugepages-2Mi"),
    "a node by its name": (pod_spec(nodeName="nowhere"), "nodeName is nowhere"),
    "a device of another vendor": (
        {"containers": [{"resources": {"limits": {GPU: 1, "vpc.amazonaws.com/efa": 1}}}]},
        "the node has no vpc.amazonaws.com/efa",
    ),
}


@pytest.mark.parametrize("case", NEVER)
def test_fit_when_no_node_can_take_a_pod_then_never_and_no_change_that_would_not_help(
    case: str, pools: dict[str, PoolOffer]
) -> None:
    spec, why = NEVER[case]
    (answer,) = fit(pools, ["train-eks/whole"], deployment("web", 1, spec)).answers
    assert (answer.state, answer.edit) == ("never", None)
    assert why in answer.reasons[0].texts[0]


UNPLACED = {
    "gates": (pod_spec(schedulingGates=[{"name": "example.com/wait"}]), "schedulingGates: not placed"),
    "another scheduler": (pod_spec(schedulerName="volcano"), "schedulerName volcano: not placed"),
}


@pytest.mark.parametrize("case", UNPLACED)
def test_fit_when_nobody_here_knows_where_a_pod_goes_then_not_placed_and_not_fitting(
    case: str, pools: dict[str, PoolOffer]
) -> None:
    spec, why = UNPLACED[case]
    objects = yaml.safe_dump_all([deployment("web", 2, spec)])
    found = find_fit(
        views({"train-eks/whole": pools["train-eks/whole"]}), *read_demands(read_manifests(objects, "f").manifests)
    )
    document = fit_document(found, live=False)
    assert (document["exitCode"], document["workloads"]) == (1, [])
    assert document["notPlaced"][0]["why"].startswith(why)


OTHER_KIND = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "train"},
    "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 3, "template": {"spec": pod_spec()}}}},
}
NIM = {
    "apiVersion": "apps.nvidia.com/v1alpha1",
    "kind": "NIMService",
    "metadata": {"name": "llama"},
    "spec": {"resources": {"limits": {GPU: 1}}},
}


def test_pods_when_there_are_none_or_their_kind_is_unknown_then_named() -> None:
    idle = ray(0, 5, pod_spec(), replicas=0)
    idle["spec"]["enableInTreeAutoscaling"] = False
    objects = yaml.safe_dump_all([idle, deployment("off", 0, pod_spec()), OTHER_KIND, NIM])
    found = read_demands(read_manifests(objects, "f").manifests)
    assert [(str(one.manifest), one.group, one.why.split(", and")[0], one.has_pods) for one in found.unplaced] == [
        ("RayCluster/ray", "gpu", "no pods: no replicas and no autoscaler", False),
        ("Deployment/off", "", "no pods: it has 0 replicas", False),
        ("PyTorchJob/train", "", "not placed: gpukube does not know how many pods a PyTorchJob creates", True),
        ("NIMService/llama", "", "not placed: gpukube does not know how many pods a NIMService creates", True),
    ]


def test_pods_when_an_autoscaler_holds_their_number_then_its_bounds() -> None:
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "minReplicas": 12, "maxReplicas": 20},
    }
    (demand,) = demands(deployment("web", 1, pod_spec()), scaler)
    assert (demand.least, demand.most, demand.surge) == (12, 20, 3)


LIVE_SIZES = {
    "as large as a node": ("8", {}, "elsewhere"),
    "larger than any node": ("9", {}, "never"),
    "more storage than any node": ("1", {"ephemeral-storage": "1Ti"}, "never"),
}


@pytest.mark.parametrize("case", LIVE_SIZES)
def test_fit_when_nodes_without_gpus_were_read_then_no_pod_fits_that_none_of_them_could_take(
    case: str, pools: dict[str, PoolOffer]
) -> None:
    cpu, limits, state = LIVE_SIZES[case]
    plain = live_node("cpu", 0)
    plain["status"]["allocatable"]["ephemeral-storage"] = "100Gi"
    node = read_node(plain, "train-aks", tolerates_resources=True)
    node.take(read_pod({}, pod_spec(0, cpu="1")))
    view = ClusterView(key="train-aks", offers=(pools["train-aks/whole"],), nodes=(node,))
    spec = {"containers": [{"resources": {"requests": {"cpu": cpu}, "limits": limits}}]}
    (answer,) = find_fit([view], demands(deployment("web", 1, spec))).answers
    assert answer.state == state
    if state == "never":
        assert any(reason.pool == "train-aks, nodes of no pool of the spec" for reason in answer.reasons)


def test_fit_when_there_are_a_thousand_pods_then_in_a_moment(pools: dict[str, PoolOffer]) -> None:
    (answer,) = fit(pools, WHOLE, deployment("web", 1_000_000, pod_spec())).answers
    assert counts(answer) == (0, 32, 999_968, 0)


sizes = st.tuples(
    st.integers(0, 9), st.sampled_from([GPU, MIG, "nvidia.com/gpu.shared"]), st.sampled_from(["1", "30", "90"])
)
shapes = st.lists(
    st.tuples(
        st.integers(0, 5),
        sizes,
        st.sampled_from(
            [{}, {"affinity": APART}, {"nodeSelector": {LABEL: "whole"}}, {"tolerations": [{"operator": "Exists"}]}]
        ),
    ),
    min_size=1,
    max_size=4,
)


def made_of(listed: Sequence[tuple[int, tuple[int, str, str], dict[str, Any]]]) -> list[dict[str, Any]]:
    return [
        deployment(f"d{number}", replicas, pod_spec(*size, **more))
        for number, (replicas, size, more) in enumerate(listed)
    ]


LAWS = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@LAWS
@given(listed=shapes, seed=st.randoms(use_true_random=False))
def test_packing_when_any_workloads_then_no_node_has_more_than_it_has(
    listed: list[Any], seed: Random, pools: dict[str, PoolOffer]
) -> None:
    """In any order of the files."""
    made = made_of(listed)
    seed.shuffle(made)
    wanted = demands(*made)
    found = pack(views(pools), wanted)
    for cluster in found.clusters:
        for node in cluster.nodes:
            assert all(left >= 0 for left in node.free_devices().values())
            assert min(node.free_cpu() or 0, node.free_memory() or 0, node.free_pods() or 0) >= 0
        for offer in cluster.view.offers:
            assert cluster.size(offer) <= offer.desired.target.nodes.maximum
    for demand, placed in found.placed.items():
        assert placed.nodes.total() + placed.never + placed.elsewhere == demand.least


@LAWS
@given(replicas=st.integers(1, 40), size=sizes, more=st.integers(1, 3))
def test_packing_when_a_pool_may_have_more_nodes_then_never_fewer_pods(
    replicas: int, size: tuple[int, str, str], more: int, pools: dict[str, PoolOffer]
) -> None:
    offer = pools["train-aks/whole"]
    nodes = offer.desired.target.nodes
    target = replace(offer.desired.target, nodes=replace(nodes, maximum=nodes.maximum + more))
    bigger = replace(offer, desired=replace(offer.desired, target=target))
    wanted = demands(deployment("web", replicas, pod_spec(*size)))
    before, after = (next(iter(pack(views({"w": one}), wanted).placed.values())) for one in (offer, bigger))
    assert after.never <= before.never


@LAWS
@given(listed=shapes)
def test_edit_when_one_is_offered_then_it_is_true_and_others_have_none(
    listed: list[Any], pools: dict[str, PoolOffer]
) -> None:
    found = find_fit(
        views({name: pools[name] for name in ("train-aks/whole", "train-aks/mixed")}), demands(*made_of(listed))
    )
    for answer in found.answers:
        assert bool(answer.reasons) is bool(answer.placed.never)
        assert answer.edit is None or answer.placed.never


def spoiled(value: object, random: Random) -> object:
    """Replace something inside by something of another kind."""
    junk: list[object] = [None, True, -1, 10**30, 1.5, "x", "", [], {}, [None], [{}], {"key": 1}, ["a", 1]]
    if not isinstance(value, dict | list) or not value or random.random() < 0.15:
        return random.choice(junk)
    copy: Any = value.copy()
    place = random.choice(list(copy) if isinstance(copy, dict) else range(len(copy)))
    copy[place] = spoiled(copy[place], random)
    return copy


SPREAD = {"topologyKey": ZONE, "maxSkew": 1, "minDomains": 2, "labelSelector": {"matchLabels": {"app": "web"}}}
FULL = pod_spec(
    9,
    affinity={**AFFINE, **APART, "podAffinity": APART["podAntiAffinity"]},
    nodeSelector={LABEL: "gone"},
    tolerations=[ANY_GPU],
    topologySpreadConstraints=[{**SPREAD, "matchLabelKeys": ["app"]}],
    initContainers=[{"name": "first", "restartPolicy": "Always", "resources": {"limits": {GPU: 1}}}],
    overhead={"cpu": "1"},
    resources={"limits": {"cpu": "5"}},
)


@settings(LAWS, max_examples=150)
@given(random=st.randoms(use_true_random=False), wrongs=st.integers(1, 4))
def test_fit_when_manifests_are_wrong_in_any_way_then_an_answer(
    random: Random, wrongs: int, pools: dict[str, PoolOffer]
) -> None:
    made: list[Any] = [deployment("web", 3, FULL), ray(1, 9, FULL, "RayService"), deployment("d", 2, pod_spec(1))]
    for _ in range(wrongs):
        index = random.randrange(len(made))
        made[index] = spoiled(made[index], random)
    reading = read_manifests(yaml.safe_dump_all(made), "file.yaml")
    found = find_fit(views({name: pools[name] for name in (*WHOLE, *MIXED)}), *read_demands(reading.manifests))
    assert fit_document(found, live=False)["exitCode"] == (0 if found.fits else 1)
