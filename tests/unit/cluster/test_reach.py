"""Which pods of the stack land where: on nodes to come, on live ones, and what a writer that stays away leaves out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpukube.cluster.kube.views import ContainerView, Placement, Toleration, WorkloadView, placement_of
from gpukube.cluster.names import NAMESPACE
from gpukube.cluster.release.plan import ReleasePlan, plan_release
from gpukube.cluster.release.reach import check_reach, check_rendered_reach, planned_daemonsets, require_reach
from gpukube.cluster.state.components import daemonsets_of, role_of
from gpukube.cluster.state.reach import coming_place, live_place, may_appear, needed_roles, reach, unreached
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.values import Desired, Ownership, Taint
from gpukube.errors import HelmError
from tests.unit.cluster.builders import (
    GPU_TAINT,
    MIXED,
    MPS,
    SINGLE,
    VISION_TAINT,
    advertised_by_cloud,
    container,
    daemonset,
    desire,
    named,
    node_of,
    operated,
    operated_node,
    operator_daemonset,
)

SKU = Taint("sku", "gpu", "NoSchedule")
DEFAULT_AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
                for key, value in (
                    ("feature.node.kubernetes.io/pci-10de.present", "true"),
                    ("feature.node.kubernetes.io/cpu-model.vendor_id", "NVIDIA"),
                )
            ]
        }
    }
}
ALL = Toleration("", "Exists")


def worker(*tolerations: Toleration) -> WorkloadView:
    return daemonset(
        "x-node-feature-discovery-worker", NAMESPACE, placement=Placement(tolerations=tolerations), containers=()
    )


def plugin(**placement: object) -> WorkloadView:
    spec = {"tolerations": [{"operator": "Exists"}], **placement}
    return daemonset("x-nvidia-device-plugin", NAMESPACE, placement=placement_of(spec))


ROLES = {
    "the chart's plugin": (daemonset("r", containers=(container("i", "/usr/bin/nvidia-device-plugin"),)), "plugin"),
    "its image alone": (daemonset("r", containers=(container("x/nvidia/k8s-device-plugin:v1"),)), "plugin"),
    "the static manifest": (daemonset("r", pod_labels={"name": "nvidia-device-plugin-ds"}), None),
    "the static manifest by name": (daemonset("nvidia-device-plugin-daemonset"), "plugin"),
    "the operator's plugin": (operator_daemonset(), "plugin"),
    "discovery beside the plugin's image": (
        daemonset("r", containers=(container("x/k8s-device-plugin:v1", "gpu-feature-discovery"),)),
        "gfd",
    ),
    "mps by name": (daemonset("r-nvidia-device-plugin-mps-control-daemon"), "mps"),
    "an nfd worker": (daemonset("nfd-worker"), "nfd-worker"),
    "an nfd worker by program": (daemonset("w", containers=(container("nfd", "nfd-worker"),)), "nfd-worker"),
    "the mig manager": (daemonset("m", pod_labels={"app": "nvidia-mig-manager"}), "mig-manager"),
    "gke's plugin": (daemonset("g", labels={"k8s-app": "nvidia-gpu-device-plugin"}), "cloud-plugin"),
    "gke's installer": (daemonset("g", labels={"k8s-app": "nvidia-driver-installer"}), "cloud-driver"),
    "an exporter": (daemonset("e", pod_labels={"app": "nvidia-dcgm-exporter"}), "dcgm"),
    "something else": (daemonset("kube-proxy", containers=(container("kube-proxy", "kube-proxy"),)), None),
    "no daemonset": (replace(daemonset("nvidia-device-plugin"), kind="Deployment"), None),
}


@pytest.mark.parametrize("case", ROLES)
def test_role_when_a_workload_is_seen_then_told_by_program_label_or_name(case: str) -> None:
    workload, role = ROLES[case]
    assert role_of(workload) == role


def test_reach_when_the_worker_tolerates_then_the_plugin_lands_by_its_label() -> None:
    found = reach([coming_place(desire(taints=(SKU,)))], [plugin(affinity=DEFAULT_AFFINITY), worker(ALL)])
    assert [(item.role, item.lands) for item in found] == [("plugin", True), ("nfd-worker", True)]


def test_reach_when_the_worker_does_not_tolerate_then_neither_lands_and_both_are_told() -> None:
    only_gpu = Toleration("nvidia.com/gpu", "Equal", "present", "NoSchedule")
    found = reach([coming_place(desire(taints=(SKU,)))], [plugin(affinity=DEFAULT_AFFINITY), worker(only_gpu)])
    assert [item.lands for item in found] == [False, False]
    assert found[0].misfits[0].keys[0] == "feature.node.kubernetes.io/pci-10de.present"
    assert (found[1].taints, str(found[1])) == (
        (SKU,),
        "the NFD worker does not run: taint sku=gpu:NoSchedule is not tolerated",
    )


def test_reach_when_a_node_is_live_then_only_its_own_labels_count() -> None:
    pool = desire()
    place = live_place(node_of(pool))
    (found,) = [
        item for item in reach([place], [plugin(affinity=DEFAULT_AFFINITY), worker(ALL)]) if item.role == "plugin"
    ]
    assert (found.place, found.lands) == ("node-1", False)


def test_reach_when_a_label_of_the_cloud_is_asked_for_then_a_coming_node_may_carry_it() -> None:
    asks = plugin(nodeSelector={"kubernetes.azure.com/agentpool": "x"})
    (coming,) = reach([coming_place(desire())], [asks])
    (live,) = reach([live_place(node_of(desire()))], [asks])
    assert (coming.lands, live.lands) == (True, False)
    assert live.misfits[0].kind == "selector"


def test_reach_when_it_is_not_of_the_stack_then_left_out() -> None:
    assert not reach([coming_place(desire())], [daemonset("kube-proxy")])


@pytest.mark.parametrize(("sharing", "lands"), [(MPS, True), (SINGLE, False)], ids=["mps", "mig"])
def test_reach_when_the_mps_daemon_selects_by_feature_then_only_where_it_is_written(
    sharing: object, lands: object
) -> None:
    daemon = daemonset(
        "x-mps-control-daemon",
        NAMESPACE,
        placement=Placement({"nvidia.com/mps.capable": "true"}, tolerations=(ALL,)),
    )
    discovery = daemonset("x-gpu-feature-discovery", NAMESPACE, placement=Placement(tolerations=(ALL,)))
    found = reach([coming_place(desire(sharing=sharing))], [daemon, discovery])
    assert [item.lands for item in found] == [lands, True]
    assert not reach([coming_place(desire(sharing=sharing))], [daemon])[0].lands


def test_reach_when_the_operator_labels_nodes_then_only_those_that_nfd_saw() -> None:
    place = coming_place(operated())
    assert not reach([place], [operator_daemonset()])[0].lands
    assert reach([place], [operator_daemonset(), worker(ALL)])[0].lands
    off = operated(labels={"nvidia.com/gpu.deploy.operands": "false"})
    assert not reach([coming_place(off)], [operator_daemonset(), worker(ALL)])[0].lands
    assert reach([live_place(operated_node(operated()))], [operator_daemonset()])[0].lands


@pytest.mark.parametrize(
    ("pool", "needed"),
    [
        (desire(), {"plugin": True, "gfd": False, "nfd-worker": False}),
        (desire(sharing=MPS), {"plugin": True, "gfd": True, "nfd-worker": False, "mps": True}),
        (operated(), {"plugin": True, "gfd": False, "nfd-worker": True}),
        (operated(sharing=SINGLE), {"plugin": True, "gfd": False, "nfd-worker": True, "mig-manager": True}),
        (advertised_by_cloud(desire()), {"cloud-plugin": True}),
        (replace(desire(), ownership=Ownership("cloud", "none", "", {}, "test")), {}),
    ],
    ids=["chart", "mps", "operator", "operator with mig", "cloud", "nobody"],
)
def test_needed_when_a_pool_is_served_then_as_its_sharing_takes(pool: Desired, needed: dict[str, bool]) -> None:
    assert dict(needed_roles(pool)) == needed


def test_unreached_when_another_worker_lands_then_enough() -> None:
    other = replace(worker(ALL), namespace="node-feature-discovery")
    place = coming_place(desire(taints=(SKU,)))
    assert unreached(desire(), [place], [worker()])
    assert not unreached(desire(), [place], [worker(), other])


def test_unreached_when_a_plugin_is_not_ours_then_not_counted_on() -> None:
    stranger = replace(plugin(), namespace="kube-system")
    stuck = plugin(tolerations=[])
    assert [item.role for item in unreached(desire(), [coming_place(desire())], [stuck, stranger])] == ["plugin"]


def gke_plugin(**desired: str) -> WorkloadView:
    """Make one of GKE's six DaemonSets, which takes no node with the label that opts out."""
    out = {"key": "gke-no-default-nvidia-gpu-device-plugin", "operator": "NotIn", "values": ["true"]}
    asked = [{"key": key.replace("__", "/"), "operator": "In", "values": [value]} for key, value in desired.items()]
    term = {"matchExpressions": [out, *asked]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    spec = {"affinity": {"nodeAffinity": required}, "tolerations": [{"operator": "Exists"}]}
    labels = {"k8s-app": "nvidia-gpu-device-plugin"}
    return daemonset("nvidia-gpu-device-plugin-x", labels=labels, placement=placement_of(spec))


def test_unreached_when_the_cloud_has_a_daemonset_for_each_size_then_the_nearest_is_told() -> None:
    pool = advertised_by_cloud(desire())
    sizes = [gke_plugin(size="small", os="cos"), gke_plugin(size="large", os="cos")]
    born = {"size": "large", "os": "cos"}
    node = node_of(pool, labels={**pool.labels, **born})
    assert not unreached(pool, [live_place(node)], sizes)
    out = node_of(pool, labels={**pool.labels, **born, "gke-no-default-nvidia-gpu-device-plugin": "true"})
    (found,) = unreached(pool, [live_place(out)], sizes)
    assert found.misfits[0].keys == ("gke-no-default-nvidia-gpu-device-plugin",)


@pytest.mark.parametrize(
    ("key", "may"),
    [
        ("cloud.google.com/gke-accelerator", True),
        ("agentpool", True),
        ("kubernetes.io/arch", True),
        ("team", False),
        ("feature.node.kubernetes.io/pci-10de.present", False),
        ("nvidia.com/gpu.present", False),
    ],
)
def test_may_appear_when_a_key_is_the_clouds_then_so(key: str, may: object) -> None:
    assert may_appear(key) is may


POOLS = {
    "whole": desire(),
    "custom taints": desire(taints=(GPU_TAINT, VISION_TAINT, SKU)),
    "mig": desire(sharing=MIXED),
    "mps": desire(sharing=MPS),
    "operator": operated(sharing=SINGLE, taints=(GPU_TAINT, SKU)),
}


@pytest.mark.parametrize("case", POOLS)
def test_check_when_the_values_are_ours_then_every_needed_pod_lands(case: str) -> None:
    plan = plan_release([POOLS[case]], Snapshot())
    assert not check_reach(plan, [POOLS[case]])
    roles = {role_of(item) for item in planned_daemonsets(plan)}
    assert needed_roles(POOLS[case]).keys() <= roles


def test_check_when_nfd_is_anothers_then_its_labels_are_counted_on() -> None:
    nfd = daemonset("nfd-worker", "nfd", labels={"app.kubernetes.io/name": "node-feature-discovery"})
    plan = plan_release([POOLS["operator"]], Snapshot(daemonsets=(nfd,)))
    assert "nfd-worker" not in {role_of(item) for item in planned_daemonsets(plan)}
    assert not check_reach(plan, [POOLS["operator"]])


def without_tolerations(plan: ReleasePlan, *path: str) -> ReleasePlan:
    def cut(values: object, steps: tuple[str, ...]) -> dict[str, object]:
        assert isinstance(values, dict)
        if not steps:
            return {**values, "tolerations": []}
        return {**values, steps[0]: cut(values[steps[0]], steps[1:])}

    return replace(plan, values=cut(plan.values, path))


@pytest.mark.parametrize(
    ("case", "path", "codes"),
    [
        ("custom taints", (), ["reach", "reach-features"]),
        ("custom taints", ("nfd", "worker"), ["reach-features"]),
        ("mps", (), ["reach", "reach", "reach"]),
        ("operator", ("daemonsets",), ["reach", "reach-features", "reach"]),
        ("operator", ("node-feature-discovery", "worker"), ["reach", "reach-features", "reach", "reach"]),
    ],
)
def test_check_when_tolerations_are_missing_then_each_part_is_told(
    case: str, path: tuple[str, ...], codes: list[str]
) -> None:
    plan = without_tolerations(plan_release([POOLS[case]], Snapshot()), *path)
    found = check_reach(plan, [POOLS[case]])
    assert [item.code for item in found] == codes
    assert {item.severity for item in found if item.code == "reach-features"} <= {"warning"}


def test_check_when_the_rendered_worker_lacks_a_toleration_then_told_with_the_taint() -> None:
    pool = POOLS["custom taints"]
    plan = plan_release([pool], Snapshot())
    pod = {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]}
    objects = [named("DaemonSet", "r-node-feature-discovery-worker", spec={"template": {"spec": pod}})]
    (found,) = check_rendered_reach(objects, plan, [pool])
    assert (found.code, "taint sku=gpu:NoSchedule is not tolerated" in found.seen) == ("reach-features", True)


def test_require_when_the_rendered_plugin_would_not_land_then_refused_with_the_taint() -> None:
    pool = POOLS["custom taints"]
    plan = plan_release([pool], Snapshot())
    pod = {"containers": [{"name": "main", "image": "i", "command": ["nvidia-device-plugin"]}]}
    stuck = named("DaemonSet", "gpukube-nvidia-device-plugin", spec={"template": {"spec": pod}})
    with pytest.raises(HelmError) as caught:
        require_reach([stuck], plan, [pool])
    assert [item.code for item in caught.value.diagnostics] == ["reach"]
    assert "taint dedicated=vision:NoSchedule is not tolerated" in str(caught.value)
    tolerant = named(
        "DaemonSet",
        "gpukube-nvidia-device-plugin",
        spec={"template": {"spec": {**pod, "tolerations": [{"operator": "Exists"}]}}},
    )
    require_reach([tolerant], plan, [pool])


def test_check_when_the_release_is_refused_then_not_judged() -> None:
    plan = without_tolerations(plan_release([desire()], Snapshot()))
    assert check_reach(plan, [desire()])
    assert not check_reach(replace(plan, action="conflict"), [desire()])


def test_daemonsets_of_when_a_manifest_names_no_namespace_then_the_releases() -> None:
    part = ContainerView("main", "i", ("nfd-worker",))
    found = daemonsets_of(
        [
            {"kind": "Deployment", "metadata": {"name": "d"}},
            {
                "kind": "DaemonSet",
                "metadata": {"name": "w"},
                "spec": {
                    "template": {"spec": {"containers": [{"name": "main", "image": "i", "command": ["nfd-worker"]}]}}
                },
            },
        ],
        "ours",
    )
    assert [(item.name, item.namespace, item.containers) for item in found] == [("w", "ours", (part,))]
