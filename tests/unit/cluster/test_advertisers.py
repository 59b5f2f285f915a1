"""Foreign advertisers: recognized, named, and judged by whether they could run on our nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.kube.slices import SliceView
from gpukube.cluster.kube.views import placement_of
from gpukube.cluster.names import DRA_DRIVER
from gpukube.cluster.release.plugin_values import chart_values
from gpukube.cluster.release.shared_values import ReleaseContext
from gpukube.cluster.state.advertisers import check_advertisers, check_second_release, find_advertisers
from gpukube.cluster.state.components import role_of
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.values import Ownership
from tests.unit.cluster.builders import (
    NAMESPACE,
    RELEASE_NAME,
    VISION_TAINT,
    advertised_by_cloud,
    container,
    daemonset,
    desire,
    node_of,
    operated,
    operating,
    operator_daemonset,
    plugin_daemonset,
)

if TYPE_CHECKING:
    from gpukube.cluster.kube.views import WorkloadView

POOL = desire()
HERE = POOL.target.where.source
IMAGE = "nvcr.io/nvidia/k8s-device-plugin:v0.17.1"
GPU_TOLERATED = placement_of({"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]})


def affine(*keys: str) -> dict[str, object]:
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": ["true"]}]} for key in keys]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"nodeAffinity": required}


def chart_release(**changes: object) -> WorkloadView:
    """Make the plugin of a release with the chart's own defaults."""
    made = daemonset(
        "nvdp-nvidia-device-plugin",
        "nvidia-device-plugin",
        labels={
            "helm.sh/chart": "nvidia-device-plugin-0.17.1",
            "app.kubernetes.io/name": "nvidia-device-plugin",
            "app.kubernetes.io/instance": "nvdp",
        },
        placement=replace(
            GPU_TOLERATED, affinity=affine("feature.node.kubernetes.io/pci-10de.present", "nvidia.com/gpu.present")
        ),
        containers=(container(IMAGE, "nvidia-device-plugin", name="nvidia-device-plugin-ctr"),),
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # test data


STATIC = daemonset(
    "nvidia-device-plugin-daemonset",
    "gpu-resources",
    pod_labels={"name": "nvidia-device-plugin-ds"},
    placement=GPU_TOLERATED,
    containers=(container(IMAGE),),
)
OPERATOR = daemonset(
    "nvidia-device-plugin-daemonset",
    "gpu-operator",
    labels={"app": "nvidia-device-plugin-daemonset", "app.kubernetes.io/managed-by": "gpu-operator"},
    placement=replace(GPU_TOLERATED, node_selector={"nvidia.com/gpu.deploy.device-plugin": "true"}),
    containers=(container(IMAGE),),
)
GKE = daemonset(
    "nvidia-gpu-device-plugin-small-cos",
    "kube-system",
    labels={"k8s-app": "nvidia-gpu-device-plugin"},
    placement=placement_of(
        {
            "tolerations": [{"operator": "Exists"}],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "cloud.google.com/gke-accelerator", "operator": "Exists"}]}
                        ]
                    }
                }
            },
        }
    ),
)
OWN_BUILD = daemonset(
    "gpu-plugin", "infra", placement=GPU_TOLERATED, containers=(container("reg/k8s-device-plugin:1"),)
)

FOREIGN = {
    "another release of the chart": (chart_release(), "plugin-release"),
    "static manifest, eksctl, guide of AKS": (STATIC, "static-manifest"),
    "gpu operator": (OPERATOR, "gpu-operator"),
    "gke's own": (GKE, "gke-plugin"),
    "somebody's own build": (OWN_BUILD, "unknown-plugin"),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_find_when_a_foreign_plugin_is_there_then_named_with_evidence_and_two_fixes(case: str) -> None:
    found_daemonset, kind = FOREIGN[case]
    (found,) = find_advertisers(Snapshot(daemonsets=(found_daemonset,)), [POOL])
    assert (found.kind, found.name, found.namespace) == (kind, found_daemonset.name, found_daemonset.namespace)
    assert found.lands_on == (HERE,)
    assert found.evidence
    assert all(found.fixes)


@pytest.mark.parametrize("case", FOREIGN)
def test_check_when_it_could_run_on_our_nodes_then_refused_by_name(case: str) -> None:
    seen = Snapshot(daemonsets=(FOREIGN[case][0],))
    (diagnostic,) = check_advertisers(find_advertisers(seen, [POOL]), [POOL])
    assert (diagnostic.code, diagnostic.severity, diagnostic.where.source) == ("foreign-advertiser", "error", HERE)
    assert FOREIGN[case][0].name in diagnostic.seen
    assert "; or " in diagnostic.fix


def test_find_when_operator_and_static_manifest_share_a_name_then_labels_decide() -> None:
    found = find_advertisers(Snapshot(daemonsets=(STATIC, OPERATOR)), [POOL])
    assert {(item.kind, item.namespace) for item in found} == {
        ("static-manifest", "gpu-resources"),
        ("gpu-operator", "gpu-operator"),
    }


def test_find_when_a_release_is_named_then_the_way_out_names_it() -> None:
    (found,) = find_advertisers(Snapshot(daemonsets=(chart_release(),)), [POOL])
    assert found.fixes[1].endswith("; or remove it: helm uninstall nvdp --namespace nvidia-device-plugin")


AWAY = {
    "no toleration of our taint": (replace(STATIC, placement=placement_of({})), POOL),
    "a taint of the pool's own": (STATIC, desire(taints=(*POOL.effective_taints, VISION_TAINT))),
    "a selector our nodes do not meet": (
        replace(STATIC, placement=replace(GPU_TOLERATED, node_selector={"team": "other"})),
        POOL,
    ),
    "an affinity our nodes do not meet": (
        chart_release(placement=replace(GPU_TOLERATED, affinity=affine("team/gpu"))),
        POOL,
    ),
    "the operator told off by a label": (OPERATOR, desire(labels={"nvidia.com/gpu.deploy.device-plugin": "false"})),
}


@pytest.mark.parametrize("case", AWAY)
def test_find_when_it_cannot_run_on_our_nodes_then_told_but_not_refused(case: str) -> None:
    foreign, pool = AWAY[case]
    found = find_advertisers(Snapshot(daemonsets=(foreign,)), [pool])
    assert [item.lands_on for item in found] == [()]
    assert not check_advertisers(found, [pool])


def test_find_when_only_nfd_would_lead_it_to_us_then_it_could_run() -> None:
    led = chart_release(
        placement=replace(GPU_TOLERATED, affinity=affine("feature.node.kubernetes.io/pci-10de.present"))
    )
    assert find_advertisers(Snapshot(daemonsets=(led,)), [POOL])[0].lands_on == (HERE,)


VALUES = chart_values([POOL], ReleaseContext())
HARMLESS = {
    "our own release": plugin_daemonset(VALUES),
    "feature discovery of the chart": chart_release(name="nvdp-nvidia-device-plugin-gpu-feature-discovery"),
    "mps daemon of the chart": chart_release(name="nvdp-nvidia-device-plugin-mps-control-daemon"),
    "feature discovery under another name": chart_release(
        name="gfd", containers=(container(IMAGE, "/usr/bin/gpu-feature-discovery"),)
    ),
    "something else": daemonset("kube-proxy", containers=(container("kube-proxy:v1"),)),
}


@pytest.mark.parametrize("case", HARMLESS)
def test_find_when_it_advertises_nothing_then_not_found(case: str) -> None:
    assert find_advertisers(Snapshot(daemonsets=(HARMLESS[case],)), [POOL]) == ()


def test_find_when_a_release_of_our_name_is_elsewhere_then_it_is_foreign() -> None:
    labels = {**plugin_daemonset(VALUES).labels, "app.kubernetes.io/instance": RELEASE_NAME}
    assert find_advertisers(Snapshot(daemonsets=(chart_release(labels=labels),)), [POOL])
    assert not find_advertisers(Snapshot(daemonsets=(chart_release(labels=labels, namespace=NAMESPACE),)), [POOL])


def test_find_when_the_pool_wants_no_plugin_then_a_foreign_one_is_welcome() -> None:
    pool = replace(POOL, ownership=Ownership("cloud", "none", "", {}, "test"))
    assert [item.lands_on for item in find_advertisers(Snapshot(daemonsets=(STATIC,)), [pool])] == [()]


def test_find_when_the_cloud_shall_advertise_then_its_own_is_no_rival_but_others_are() -> None:
    pool = advertised_by_cloud(POOL)
    found = {item.kind: item.lands_on for item in find_advertisers(Snapshot(daemonsets=(GKE, STATIC)), [pool])}
    assert found == {"gke-plugin": (), "static-manifest": (HERE,)}


# Without a DaemonSet


def test_find_when_the_operator_has_no_nodes_yet_then_its_policy_tells() -> None:
    (found,) = find_advertisers(Snapshot(cluster_policies=("cluster-policy",)), [POOL])
    assert (found.kind, found.form, found.name, found.lands_on) == (
        "gpu-operator",
        "ClusterPolicy",
        "cluster-policy",
        (HERE,),
    )


def test_find_when_the_operators_daemonset_is_there_then_the_policy_is_not_told_again() -> None:
    seen = Snapshot(daemonsets=(OPERATOR,), cluster_policies=("cluster-policy",))
    assert [item.form for item in find_advertisers(seen, [POOL])] == ["DaemonSet"]


def test_find_when_a_label_keeps_the_operator_away_then_its_policy_does_not_land() -> None:
    pool = desire(labels={"nvidia.com/gpu.deploy.device-plugin": "false"})
    assert find_advertisers(Snapshot(cluster_policies=("cluster-policy",)), [pool])[0].lands_on == ()


SERVICES = {
    "aks managed, by label": (
        node_of(POOL, labels={**POOL.labels, "kubernetes.azure.com/dcgm-exporter": "enabled"}),
        "aks-managed",
    ),
    "aks managed, by condition": (
        node_of(POOL, conditions={"Ready": "True", "UnhealthyNvidiaDevicePlugin": "False"}),
        "aks-managed",
    ),
    "bottlerocket": (node_of(POOL, os_image="Bottlerocket OS 1.54.0 (aws-k8s-1.34-nvidia)"), "bottlerocket"),
}


@pytest.mark.parametrize("case", SERVICES)
def test_find_when_a_node_service_runs_on_our_nodes_then_refused(case: str) -> None:
    node, kind = SERVICES[case]
    (found,) = find_advertisers(Snapshot(nodes=(node,)), [POOL])
    assert (found.kind, found.lands_on) == (kind, (HERE,))


@pytest.mark.parametrize("case", SERVICES)
def test_find_when_a_node_service_runs_elsewhere_then_not_refused(case: str) -> None:
    node, _kind = SERVICES[case]
    other = replace(node, labels={k: v for k, v in node.labels.items() if not k.startswith("gpukube.io/")})
    assert [item.lands_on for item in find_advertisers(Snapshot(nodes=(other,)), [POOL])] == [()]


def test_find_when_bottlerocket_has_no_gpus_then_nothing() -> None:
    node = node_of(POOL, os_image="Bottlerocket OS 1.54.0", allocatable={"cpu": "4"})
    assert find_advertisers(Snapshot(nodes=(node,)), [POOL]) == ()


# NVIDIA's DRA driver

DRA_IMAGE = "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.4.1"
GPUS = (container(DRA_IMAGE, "bash", name="gpus"),)
DOMAINS = (container(DRA_IMAGE, "bash", name="compute-domains"),)
DRA_POOL = desire(plugin_owner="dra", pool="claimed")
THERE = DRA_POOL.target.where.source


def dra_release(chart: str = "dra-driver-nvidia-gpu-0.4.1", **changes: object) -> WorkloadView:
    """Make the DaemonSet of somebody's release of the DRA driver."""
    made = daemonset(
        "dra-driver-nvidia-gpu-kubelet-plugin",
        "dra",
        labels={"helm.sh/chart": chart, "app.kubernetes.io/instance": "mydra"},
        placement=GPU_TOLERATED,
        containers=GPUS,
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # test data


GPU_CLUSTER = daemonset(
    "nvidia-dra-driver-kubelet-plugin",
    "gpu-operator",
    labels={"app": "nvidia-dra-driver-kubelet-plugin"},
    placement=replace(GPU_TOLERATED, node_selector={"nvidia.com/gpu.deploy.dra-driver": "true"}),
    containers=(container("mirror/dra:1", "bash", name="gpus"),),
)
UPGRADE = (
    "turn its GPUs off: helm upgrade mydra {chart} --repo https://helm.ngc.nvidia.com/nvidia --version {version} "
    "--namespace dra --reuse-values --set resources.gpus.enabled=false"
)
OF_OPERATOR = "remove it: kubectl delete gpuclusters.nvidia.com --all"
BY_HAND = "remove it: kubectl delete daemonset dra-driver-nvidia-gpu-kubelet-plugin --namespace dra"
DRIVERS: dict[str, tuple[WorkloadView, str, str]] = {
    "the chart": (
        dra_release(),
        UPGRADE.format(chart="dra-driver-nvidia-gpu", version="0.4.1"),
        "remove it: helm uninstall mydra --namespace dra",
    ),
    "the chart under its former name": (
        dra_release("nvidia-dra-driver-gpu-25.12.0"),
        UPGRADE.format(chart="nvidia-dra-driver-gpu", version="25.12.0"),
        "remove it: helm uninstall mydra --namespace dra",
    ),
    "somebody's own manifest": (
        dra_release(labels={}),
        BY_HAND,
        BY_HAND,
    ),
    "a GPUCluster": (GPU_CLUSTER, OF_OPERATOR, OF_OPERATOR),
}


@pytest.mark.parametrize("case", DRIVERS)
def test_find_when_another_dra_driver_publishes_gpus_then_each_pool_gets_its_fix(case: str) -> None:
    driver, beside_a_plugin, beside_a_driver = DRIVERS[case]
    found = find_advertisers(Snapshot(daemonsets=(driver,)), [POOL, DRA_POOL])
    assert [(item.kind, item.name, set(item.lands_on)) for item in found] == [
        ("dra-driver", driver.name, {HERE, THERE})
    ]
    of_plugin, of_driver = check_advertisers(found, [POOL, DRA_POOL])
    assert (of_plugin.where.source, of_driver.where.source) == (HERE, THERE)
    assert of_plugin.fix.endswith(f"; or {beside_a_plugin}")
    assert of_driver.fix.endswith(f"; or {beside_a_driver}")
    assert of_plugin.why == "a device plugin and the DRA driver would give the same GPU to two pods"
    assert "one DRA driver for GPUs" in of_driver.why


@pytest.mark.parametrize("name", ["dra-driver-nvidia-gpu-0.4.1", "nvidia-dra-driver-gpu-25.8.1"])
def test_find_when_a_dra_driver_serves_only_compute_domains_then_it_advertises_nothing(name: str) -> None:
    driver = dra_release(name, containers=DOMAINS)
    seen = Snapshot(daemonsets=(driver,), device_classes=("compute-domain-daemon.nvidia.com", "gpu.nvidia.com"))
    assert find_advertisers(seen, [POOL, DRA_POOL]) == ()


@pytest.mark.parametrize("name", ["dra-driver-nvidia-gpu-0.4.1", "nvidia-dra-driver-gpu-25.8.1"])
def test_check_when_another_release_of_the_dra_chart_is_there_then_ours_cannot_be_installed(name: str) -> None:
    domains = Snapshot(daemonsets=(dra_release(name, containers=DOMAINS),))
    (found,) = check_second_release(domains, [POOL, DRA_POOL])
    assert (found.code, found.where.source) == ("dra-second-release", THERE)
    assert found.fix.endswith("or remove it: helm uninstall mydra --namespace dra")
    assert check_second_release(domains, [POOL]) == []
    assert check_second_release(Snapshot(daemonsets=(dra_release(name),)), [DRA_POOL]) == [], "it is an advertiser"
    ours = {"helm.sh/chart": name, "app.kubernetes.io/instance": DRA_DRIVER.name}
    there = dra_release(namespace=NAMESPACE, labels=ours, containers=DOMAINS)
    assert check_second_release(Snapshot(daemonsets=(there,)), [DRA_POOL]) == []


def test_find_when_the_dra_driver_is_ours_then_it_is_not_foreign() -> None:
    marks = {"helm.sh/chart": "dra-driver-nvidia-gpu-0.4.1", "app.kubernetes.io/instance": DRA_DRIVER.name}
    ours = dra_release(namespace=NAMESPACE, labels=marks)
    there = SliceView("s", "gpu.nvidia.com", "node-1", "node-1")
    seen = Snapshot(nodes=(node_of(DRA_POOL),), daemonsets=(ours,), slices=(there,))
    assert find_advertisers(seen, [DRA_POOL]) == ()
    # A surge to a plugin: the pool's old nodes still have the slices of gpukube's release.
    leaving = replace(POOL, target=DRA_POOL.target)
    assert find_advertisers(seen, [leaving]) == ()


def test_find_when_another_dra_driver_runs_elsewhere_then_only_its_classes_are_in_the_way() -> None:
    elsewhere = dra_release(placement=replace(GPU_TOLERATED, node_selector={"team": "other"}))
    (found,) = find_advertisers(Snapshot(daemonsets=(elsewhere,)), [POOL, DRA_POOL])
    assert found.lands_on == (THERE,)


def test_find_when_slices_exist_for_our_nodes_then_refused() -> None:
    seen = Snapshot(nodes=(node_of(POOL),), slices=(SliceView("s", "gpu.nvidia.com", "node-1", "node-1"),))
    (found,) = find_advertisers(seen, [POOL])
    assert (found.lands_on, found.evidence) == ((HERE,), "ResourceSlices of node-1")


def test_find_when_the_pool_is_left_to_others_then_their_dra_driver_is_welcome() -> None:
    pool = replace(POOL, ownership=Ownership("cloud", "none", "", {}, "test"))
    seen = Snapshot(
        nodes=(node_of(pool),), daemonsets=(dra_release(),), slices=(SliceView("s", "gpu.nvidia.com", "node-1", "x"),)
    )
    assert [item.lands_on for item in find_advertisers(seen, [pool])] == [()]


def test_find_when_only_its_device_class_is_left_then_nothing_advertises() -> None:
    assert find_advertisers(Snapshot(device_classes=("gpu.nvidia.com",)), [POOL]) == ()


@pytest.mark.parametrize(
    ("case", "way_out"),
    [
        ("another release of the chart", "remove it: helm uninstall nvdp --namespace nvidia-device-plugin"),
        ("gpu operator", 'add the label nvidia.com/gpu.deploy.operands: "false" to these pools'),
        ("static manifest, eksctl, guide of AKS", "kubectl delete daemonset nvidia-device-plugin-daemonset"),
    ],
)
def test_check_when_a_plugin_could_run_beside_our_dra_driver_then_the_gpu_would_be_given_twice(
    case: str, way_out: str
) -> None:
    found = find_advertisers(Snapshot(daemonsets=(FOREIGN[case][0],)), [DRA_POOL])
    (diagnostic,) = check_advertisers(found, [DRA_POOL])
    assert diagnostic.why == "a device plugin and the DRA driver would give the same GPU to two pods"
    assert way_out in diagnostic.fix
    assert "--adopt-release" not in diagnostic.fix


@pytest.mark.parametrize(
    "seen",
    [Snapshot(daemonsets=(OPERATOR,)), Snapshot(cluster_policies=("cluster-policy",))],
    ids=["operand", "policy"],
)
def test_find_when_a_label_excludes_the_operator_then_it_does_not_land(seen: Snapshot) -> None:
    pool = replace(DRA_POOL, labels={**DRA_POOL.labels, "nvidia.com/gpu.deploy.operands": "false"})
    assert [item.lands_on for item in find_advertisers(seen, [pool])] == [()]


# The GPU Operator, ours and others'

OPERATED = operated()


def test_find_when_the_operator_is_our_release_then_neither_operand_nor_policy_is_foreign() -> None:
    assert find_advertisers(operating([OPERATED]), [OPERATED]) == ()
    assert find_advertisers(operating([OPERATED], daemonsets=()), [OPERATED]) == ()


def test_find_when_operands_lie_in_our_namespace_without_our_release_then_foreign() -> None:
    seen = operating([OPERATED], operator_history=())
    assert [item.kind for item in find_advertisers(seen, [OPERATED])] == ["gpu-operator"]


@pytest.mark.parametrize(
    "seen",
    [Snapshot(daemonsets=(OPERATOR,)), Snapshot(cluster_policies=("cluster-policy",))],
    ids=["operand", "policy"],
)
def test_find_when_another_operator_is_there_and_ours_is_needed_then_no_label_is_offered(seen: Snapshot) -> None:
    (found,) = find_advertisers(seen, [OPERATED])
    assert found.lands_on == (OPERATED.target.where.source,)
    assert "a cluster has one GPU Operator" in found.fixes[1]
    assert "nvidia.com/gpu.deploy" not in " ".join(found.fixes)


def test_find_when_the_operator_serves_then_other_plugins_are_rivals_as_ever() -> None:
    seen = operating([OPERATED], daemonsets=(operator_daemonset(), STATIC))
    assert [(item.kind, item.lands_on) for item in find_advertisers(seen, [OPERATED])] == [
        ("static-manifest", (OPERATED.target.where.source,))
    ]


@pytest.mark.parametrize(
    "image",
    ["123.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin:v0.5.20", "rocm/k8s-device-plugin:1.31"],
)
def test_find_advertisers_when_a_plugin_is_for_other_devices_then_it_is_none(image: str) -> None:
    other = daemonset("some-plugin", containers=(container(image),), placement=GPU_TOLERATED)
    assert find_advertisers(Snapshot(daemonsets=(other,)), [POOL]) == ()
    assert role_of(other) is None
