"""Kubernetes objects and pools for the tests of the cluster room, with everything uninteresting filled in."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import yaml

from gpukube.cluster.kube.releases import Release
from gpukube.cluster.kube.views import (
    ContainerState,
    ContainerView,
    NodeView,
    Placement,
    PodView,
    WorkloadView,
    placement_of,
)
from gpukube.cluster.names import CLUSTER_POLICY, DEVICE_PLUGIN, DRA_DRIVER, GPU_OPERATOR, NAMESPACE, OPERATOR_NAME
from gpukube.cluster.release.dra_values import dra_values
from gpukube.cluster.release.operator_values import operator_values
from gpukube.cluster.release.plugin_values import chart_values
from gpukube.cluster.release.shared_values import ReleaseContext
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.jsontree import texts
from gpukube.core.owners import solve_ownership
from gpukube.core.resolve import promise_of
from gpukube.core.values import OWNER_LABEL, POOL_LABEL, Nodes, NodeStack, Ownership, Taint
from gpukube.gpu.sharing import MigCut, Sharing, Slicing
from gpukube.testing.fakes import FakeProvider
from tests.builders import make_target

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.values import Desired, Target

RELEASE_NAME = DEVICE_PLUGIN.name
PLUGIN_NAME = DEVICE_PLUGIN.plugin
CONFIG_MAP_NAME = DEVICE_PLUGIN.config_map
SINGLE = Sharing(mig=MigCut("1g.5gb", "single"))
MIXED = Sharing(mig=MigCut("1g.5gb", "mixed"))
SLICED = Sharing(slicing=Slicing("time-slicing", 4))
MPS = Sharing(slicing=Slicing("mps", 4))
GPU_TAINT = Taint("nvidia.com/gpu", "present", "NoSchedule")
VISION_TAINT = Taint("dedicated", "vision", "NoSchedule")
ONE = Nodes(1, 1, 1, autoscaled=False)
FROM_ZERO = Nodes(0, 0, 5, autoscaled=True)


def desire(*, operator: bool = False, **changes: object) -> Desired:
    """Make a pool on a cluster whose nodes bring a driver and no plugin: the chart advertises, or the operator."""
    target = make_target(**changes)  # type: ignore[arg-type]  # test data
    stack = NodeStack("cloud", "none", "operator" if operator else "cloud", "test")
    return _desired(target, stack, operator=operator)


def _desired(target: Target, stack: NodeStack, *, operator: bool = False) -> Desired:
    ownership = solve_ownership(target, stack, operator=operator)
    assert isinstance(ownership, Ownership)
    promise = promise_of(target)
    made = FakeProvider().desired(target, ownership, promise)
    marks = {OWNER_LABEL: target.owner, POOL_LABEL: target.pool}
    return replace(
        made,
        ownership=ownership,
        promise=promise,
        labels={**target.labels, **marks, **ownership.labels},
        effective_taints=target.taints,
    )


def claimed(root: str = "/", cut_by: Literal["cloud", "operator"] = "cloud", **changes: object) -> Desired:
    """Make a pool of the DRA driver, on nodes with the GPU driver in this place."""
    target = make_target(plugin_owner="dra", **changes)  # type: ignore[arg-type]  # test data
    return _desired(target, NodeStack("cloud", "none", cut_by, "test", dra_values={"nvidiaDriverRoot": root}))


def advertised_by_cloud(pool: Desired) -> Desired:
    return replace(pool, ownership=Ownership("cloud", "cloud", "", {}, "test"))


def node_of(pool: Desired, name: str = "node-1", **changes: object) -> NodeView:
    """Make a ready node of a pool that shows what the pool promises."""
    shown = {key: str(count) for key, count in pool.promise.per_node.items()}
    node = NodeView(
        name=name,
        labels=pool.labels,
        taints=pool.effective_taints,
        capacity=shown,
        allocatable={"cpu": "96", **shown},
        conditions={"Ready": "True"},
        os_image="Ubuntu 24.04.3 LTS",
        created="2026-11-01T00:00:00Z",
    )
    return replace(node, **changes)  # type: ignore[arg-type]  # test data


def daemonset(name: str, namespace: str = "kube-system", **changes: object) -> WorkloadView:
    made = WorkloadView("DaemonSet", name, namespace, {}, {}, Placement(), (), 0, 0)
    return replace(made, **changes)  # type: ignore[arg-type]  # test data


def container(image: str, *command: str, name: str = "main") -> ContainerView:
    return ContainerView(name, image, command)


def operated(**changes: object) -> Desired:
    """Make a pool that the GPU Operator serves."""
    return desire(operator=True, **changes)


def operated_node(pool: Desired, name: str = "node-1", **labels: str) -> NodeView:
    """Make a ready node of such a pool, taken up by the operator and cut."""
    seen = {"feature.node.kubernetes.io/pci-10de.present": "true", "nvidia.com/gpu.deploy.device-plugin": "true"}
    strategy = pool.target.sharing.mig.strategy if pool.target.sharing.mig else "none"
    cut = {"nvidia.com/mig.config.state": "success", "nvidia.com/mig.strategy": strategy}
    return node_of(pool, name, labels={**pool.labels, **seen, **cut, **labels})


def operator_daemonset(**changes: object) -> WorkloadView:
    """Make the plugin's DaemonSet as the operator does: its labels name no release."""
    made = daemonset(
        GPU_OPERATOR.plugin,
        NAMESPACE,
        labels={"app": GPU_OPERATOR.plugin},
        pod_labels={"app": GPU_OPERATOR.plugin, "app.kubernetes.io/managed-by": "gpu-operator"},
        placement=placement_of(
            {
                "nodeSelector": {"nvidia.com/gpu.deploy.device-plugin": "true"},
                "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            }
        ),
        containers=(container("nvcr.io/nvidia/k8s-device-plugin:v0.20.0", name=GPU_OPERATOR.container),),
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # test data


def operator_deployment(**changes: object) -> WorkloadView:
    made = replace(daemonset(OPERATOR_NAME, NAMESPACE), kind="Deployment", desired=1, ready=1)
    return replace(made, **changes)  # type: ignore[arg-type]  # test data


def operating(pools: Sequence[Desired], *nodes: NodeView, **changes: object) -> Snapshot:
    """Make a cluster whose GPU Operator serves these pools, with a plugin pod on every node given."""
    values = operator_values(pools, ReleaseContext())
    seen = Snapshot(
        nodes=nodes,
        daemonsets=(operator_daemonset(),),
        deployments=(operator_deployment(),),
        pods=tuple(plugin_pod(node.name, owner=GPU_OPERATOR.plugin) for node in nodes),
        operator_history=(operator_release(values),),
        operator_config_map=texts(values, *GPU_OPERATOR.entries),
        cluster_policies=(CLUSTER_POLICY,),
        objects=operator_objects(values),
    )
    return replace(seen, **changes)  # type: ignore[arg-type]  # test data


def operator_release(values: Mapping[str, object], **changes: object) -> Release:
    kind = GPU_OPERATOR
    made = Release(kind.name, NAMESPACE, kind.chart, kind.version, 1, "deployed", values, "", "")
    made = replace(made, manifest=yaml.safe_dump_all(operator_objects(values)))
    return replace(made, **changes)  # type: ignore[arg-type]  # test data


def dra_release(*pools: Desired, **changes: object) -> Release:
    """Make the release of the DRA driver that serves these pools."""
    kind, values = DRA_DRIVER, dra_values(pools, ReleaseContext())
    made = Release(kind.name, NAMESPACE, kind.chart, kind.version, 1, "deployed", values, "", "")
    return replace(made, **changes)  # type: ignore[arg-type]  # test data


def plugin_daemonset(values: Mapping[str, object]) -> WorkloadView:
    """Make the plugin's DaemonSet as the chart renders it from values."""
    return daemonset(
        PLUGIN_NAME,
        NAMESPACE,
        labels={
            "helm.sh/chart": "nvidia-device-plugin-0.20.0",
            "app.kubernetes.io/name": "nvidia-device-plugin",
            "app.kubernetes.io/instance": RELEASE_NAME,
        },
        placement=placement_of(values),
    )


def companion_daemonsets(values: Mapping[str, object]) -> tuple[WorkloadView, ...]:
    """Make the DaemonSets beside the plugin as the chart renders them: discovery, the MPS daemon, NFD's worker."""
    labels = {"app.kubernetes.io/name": "nvidia-device-plugin", "app.kubernetes.io/instance": RELEASE_NAME}
    placed = placement_of(values)
    nfd = values["nfd"]
    assert isinstance(nfd, dict)
    return (
        daemonset(f"{PLUGIN_NAME}-gpu-feature-discovery", NAMESPACE, labels=labels, placement=placed),
        daemonset(
            f"{PLUGIN_NAME}-mps-control-daemon",
            NAMESPACE,
            labels=labels,
            placement=replace(placed, node_selector={"nvidia.com/mps.capable": "true"}),
        ),
        daemonset(
            f"{RELEASE_NAME}-node-feature-discovery-worker",
            NAMESPACE,
            labels={"app.kubernetes.io/instance": RELEASE_NAME},
            placement=placement_of(nfd["worker"]),
        ),
    )


def named(kind: str, name: str, **fields: object) -> dict[str, object]:
    """Make an object as a manifest has it."""
    return {"kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, **fields}


def chart_objects(values: Mapping[str, object]) -> tuple[dict[str, object], ...]:
    """Make the two objects of the chart that hold what the values say."""
    pod = {key: values[key] for key in ("affinity", "tolerations") if key in values}
    return (
        named("DaemonSet", PLUGIN_NAME, spec={"template": {"spec": pod}}),
        named("ConfigMap", CONFIG_MAP_NAME, data=texts(values, *DEVICE_PLUGIN.entries)),
    )


def operator_objects(values: Mapping[str, object]) -> tuple[dict[str, object], ...]:
    return (
        named("Deployment", OPERATOR_NAME, spec={"replicas": 1}),
        named("ClusterPolicy", CLUSTER_POLICY, spec={"mig": values["mig"]}),
        named("ConfigMap", GPU_OPERATOR.config_map, data=texts(values, *GPU_OPERATOR.entries)),
    )


def state(name: str = "nvidia-device-plugin-ctr", **changes: object) -> ContainerState:
    made = ContainerState(name, init=False, ready=False, waiting="", message="", restarts=0, exit_code=None)
    return replace(made, **changes)  # type: ignore[arg-type]  # test data


def plugin_pod(node: str = "node-1", **changes: object) -> PodView:
    made = PodView(
        name="plugin-x7",
        namespace=NAMESPACE,
        labels={},
        node=node,
        scheduled=True,
        phase="Running",
        ready=True,
        unschedulable="",
        containers=(state(ready=True),),
        owner_kind="DaemonSet",
        owner=PLUGIN_NAME,
        devices={},
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # test data


def release_of(values: Mapping[str, object], **changes: object) -> Release:
    made = Release(RELEASE_NAME, NAMESPACE, "nvidia-device-plugin", "0.20.0", 1, "deployed", values, "", "")
    made = replace(made, manifest=yaml.safe_dump_all(chart_objects(values)))
    return replace(made, **changes)  # type: ignore[arg-type]  # test data


def installed(pools: Sequence[Desired], *nodes: NodeView, **changes: object) -> Snapshot:
    """Make a cluster whose release serves these pools, with a plugin pod on every node given."""
    values = chart_values(pools, ReleaseContext())
    seen = Snapshot(
        nodes=nodes,
        daemonsets=(plugin_daemonset(values), *companion_daemonsets(values)),
        pods=tuple(plugin_pod(node.name) for node in nodes),
        history=(release_of(values),),
        config_map=entries_of(values),
        objects=chart_objects(values),
    )
    return replace(seen, **changes)  # type: ignore[arg-type]  # test data


def entries_of(values: Mapping[str, object]) -> dict[str, str]:
    config = values["config"]
    assert isinstance(config, dict)
    return dict(config["map"])


def release_secret(record: object, *, name: str = RELEASE_NAME, revision: int = 1) -> dict[str, object]:
    """Pack a record as Helm does."""
    packed = base64.b64encode(gzip.compress(json.dumps(record).encode()))
    return {
        "metadata": {"name": f"sh.helm.release.v1.{name}.v{revision}", "namespace": NAMESPACE},
        "type": "helm.sh/release.v1",
        "data": {"release": base64.b64encode(packed).decode()},
    }


__all__ = ["CONFIG_MAP_NAME", "NAMESPACE", "PLUGIN_NAME", "RELEASE_NAME"]
