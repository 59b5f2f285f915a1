"""Faults put into a cluster that works: verify is red, and names the step that is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from lightkube.resources.apps_v1 import DaemonSet, Deployment
from lightkube.resources.core_v1 import Node, Pod
from lightkube.types import PatchType

from sandbox_tests.waiting import wait_for
from tests.cli.harness import EXAMPLES, NAMESPACE, PLUGIN, Cluster, Gpukube, edited_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo
    from tests.cli.harness import Document

NOWHERE = "registry.invalid/plugin:v1"
SKU = {"key": "sku", "value": "gpu", "effect": "NoSchedule"}
WORKER = f"{PLUGIN}-node-feature-discovery-worker"


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        spec: The example it is put into.
        inject: Puts it in; it takes effect at once, or when what `shows` asks for is so.
        code, said: The finding.
        shows: Whether the cluster shows it yet.
    """

    spec: str
    inject: Callable[[Cluster], object]
    code: str
    said: str
    shows: Callable[[Cluster], object] = lambda _cluster: True


def name_of(item: Node | Pod | DaemonSet) -> str:
    return str(item.metadata.name) if item.metadata else ""


def gpu_nodes(cluster: Cluster) -> list[Node]:
    """List the nodes that carry marks of ours."""
    found = cluster.client.list(Node)
    return [node for node in found if node.metadata and "gpukube.io/pool" in (node.metadata.labels or {})]


def change_nodes(cluster: Cluster, change: Document) -> None:
    for node in gpu_nodes(cluster):
        cluster.client.patch(Node, name_of(node), change, patch_type=PatchType.MERGE)


def label(cluster: Cluster, key: str, value: str | None) -> None:
    change_nodes(cluster, {"metadata": {"labels": {key: value}}})


def show(cluster: Cluster, **resources: str) -> None:
    """Write allocatable devices as a kubelet would."""
    for node in gpu_nodes(cluster):
        wanted = {f"nvidia.com/{key.replace('__', '-').replace('_', '.')}": value for key, value in resources.items()}
        cluster.client.patch(
            Node.Status, name_of(node), {"status": {"allocatable": wanted}}, patch_type=PatchType.MERGE
        )


def taint(cluster: Cluster, added: Document) -> None:
    for node in gpu_nodes(cluster):
        there = node.to_dict()["spec"].get("taints", [])
        cluster.client.patch(Node, name_of(node), {"spec": {"taints": [*there, added]}}, patch_type=PatchType.MERGE)


def change_pods(cluster: Cluster, change: Document, name: str = PLUGIN) -> None:
    """Change the pods that a DaemonSet makes, as kubectl edit does."""
    cluster.patch_daemonset({"spec": {"template": {"spec": change}}}, name)


def change_container(cluster: Cluster, **change: object) -> None:
    pod = cluster.daemonset().to_dict()["spec"]["template"]["spec"]
    main = "nvidia-device-plugin-ctr"
    bodies = [{**body, **change} if body["name"] == main else body for body in pod["containers"]]
    change_pods(cluster, {"containers": bodies})


def renew_pods(cluster: Cluster) -> None:
    for pod in cluster.plugin_pods():
        cluster.delete_pod(pod)


def remove_daemonset(cluster: Cluster, name: str) -> None:
    cluster.client.delete(DaemonSet, name, namespace=NAMESPACE)


def break_entry(cluster: Cluster) -> None:
    """Make the entry one that no plugin takes, and let the plugin read it."""
    entry = cluster.entry_of("t4shared")
    cluster.patch_config({entry: cluster.config()[entry].replace("replicas: 4", "replicas: 1")})
    renew_pods(cluster)


def lose_entry(cluster: Cluster) -> None:
    cluster.patch_config({cluster.entry_of("a100mig"): None})
    renew_pods(cluster)


def override_strategy(cluster: Cluster) -> None:
    """Set the variable that the chart's migStrategy would, which wins over every entry."""
    pod = cluster.daemonset().to_dict()["spec"]["template"]["spec"]
    (main,) = [body for body in pod["containers"] if body["name"] == "nvidia-device-plugin-ctr"]
    change_container(cluster, env=[*main["env"], {"name": "MIG_STRATEGY", "value": "mixed"}])


def no_devices(cluster: Cluster) -> bool:
    """Return whether no node shows a device."""
    allocatable = [(node.status.allocatable or {}) if node.status else {} for node in gpu_nodes(cluster)]
    return all(value == "0" for shown in allocatable for key, value in shown.items() if key.startswith("nvidia.com/"))


def is_waiting(cluster: Cluster) -> bool:
    """Return whether some pod of ours waits for something."""
    found = [pod.to_dict().get("status", {}) for pod in cluster.client.list(Pod, namespace=NAMESPACE)]
    states = [
        state["state"]
        for status in found
        for state in (*status.get("containerStatuses", ()), *status.get("initContainerStatuses", ()))
    ]
    return any(
        state.get("waiting", {}).get("reason", "") not in ("", "ContainerCreating", "PodInitializing")
        for state in states
    )


MIG, T4, SHARED = "aks-mig-single", "aks-custom-taint", "aks-timeslicing"

FAULTS = {
    "no config entry": Fault(
        MIG, lambda c: c.patch_config({c.entry_of("a100mig"): None}), "config-entry", "there is no entry c-"
    ),
    "no config entry and new pods": Fault(MIG, lose_entry, "config-entry", "there is no entry c-", is_waiting),
    "an entry that no plugin takes": Fault(
        SHARED, break_entry, "config-entry", "differs from this pool's sharing", is_waiting
    ),
    "no config map": Fault(MIG, lambda c: c.delete_config_map(), "config-entry", "only none"),
    "no daemonset": Fault(MIG, lambda c: c.delete_daemonset(), "placement", "the device plugin has no DaemonSet"),
    "no toleration": Fault(
        T4,
        lambda c: change_pods(c, {"tolerations": [t for t in c.tolerations() if t.get("key") != "dedicated"]}),
        "placement",
        "taint dedicated=vision:NoSchedule is not tolerated",
        no_devices,
    ),
    "a node selector": Fault(
        MIG,
        lambda c: change_pods(c, {"nodeSelector": {"gpu": "yes"}}),
        "placement",
        "nodeSelector needs gpu=yes, the node has no such label",
        no_devices,
    ),
    "a taint by hand": Fault(MIG, lambda c: taint(c, SKU), "placement", "taint sku=gpu:NoSchedule is not tolerated"),
    "no advertiser label": Fault(
        MIG, lambda c: label(c, "gpukube.io/advertiser", None), "advertiser-label", "is absent, not chart", no_devices
    ),
    "another advertiser": Fault(
        MIG, lambda c: label(c, "gpukube.io/advertiser", "other"), "advertiser-label", "is other, not chart", no_devices
    ),
    "no config label": Fault(
        MIG, lambda c: label(c, "nvidia.com/device-plugin.config", None), "config-label", "no label nvidia.com/device"
    ),
    "an unknown config label": Fault(
        MIG, lambda c: label(c, "nvidia.com/device-plugin.config", "c-0"), "config-label", "config is c-0, not c-"
    ),
    "no image": Fault(
        MIG,
        lambda c: change_container(c, image=NOWHERE),
        "plugin-pod",
        "nvidia-device-plugin-ctr: ImagePullBackOff",
        is_waiting,
    ),
    "a strategy for all": Fault(
        MIG,
        override_strategy,
        "count",
        "nvidia.com/gpu is 0, not 56; MIG_STRATEGY=mixed is set on DaemonSet gpukube-nvidia-device-plugin",
        lambda c: c.devices("a100mig") == [{"mig-1g.5gb": 56}],
    ),
    "a name of a former sharing": Fault(
        MIG, lambda c: show(c, mig__1g_5gb="4"), "stale-name", "nvidia.com/mig-1g.5gb: 4 is advertised too"
    ),
    "no node": Fault(MIG, lambda c: c.delete_nodes("a100mig"), "node", "0 of 1 nodes are in the cluster"),
}


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", FAULTS)
def test_verify_when_a_fault_is_in_the_cluster_then_the_step_is_named(
    name: str, gpukube: Gpukube, cluster: Cluster
) -> None:
    fault = FAULTS[name]
    spec = EXAMPLES / f"{fault.spec}.yaml"
    gpukube.made("-f", spec)
    fault.inject(cluster)
    wait_for(lambda: fault.shows(cluster))
    seen = gpukube("pool", "verify", "-f", spec, "-o", "json")
    (pool,) = seen.pools()
    assert (seen.code, pool["outcome"], gpukube.writes()) == (1, "failed", []), seen.out
    first = pool["error"][0]
    assert (first["code"], fault.said in first["message"]) == (f"step-{fault.code}", True), first
    assert first["fix"]


def with_mps(document: Document) -> None:
    document["pools"][0]["sharing"] = {"mps": {"replicas": 4}}


MPS_FAULTS = {
    "no mps daemon": ("mps-control-daemon", "the MPS daemon has no DaemonSet"),
    "no discovery": ("gpu-feature-discovery", "GPU feature discovery has no DaemonSet"),
}


@pytest.mark.parametrize("name", MPS_FAULTS)
def test_verify_when_a_part_of_mps_is_deleted_then_named(
    name: str, gpukube: Gpukube, cluster: Cluster, tmp_path: Path
) -> None:
    part, said = MPS_FAULTS[name]
    spec = edited_spec(SHARED, tmp_path, with_mps)
    gpukube.made("-f", spec)
    remove_daemonset(cluster, f"{PLUGIN}-{part}")
    seen = gpukube("pool", "verify", "-f", spec)
    assert (seen.code, f"error[step-features]: {said}" in seen.out) == (1, True), seen.out


def test_verify_when_the_feature_worker_is_kept_away_then_noted_and_green(gpukube: Gpukube, cluster: Cluster) -> None:
    spec = EXAMPLES / f"{T4}.yaml"
    gpukube.made("-f", spec)
    change_pods(cluster, {"tolerations": None}, WORKER)
    seen = gpukube("pool", "verify", "-f", spec)
    assert (seen.code, "note: the NFD worker cannot run here: taint dedicated=vision" in seen.out) == (0, True), (
        seen.out
    )


@pytest.fixture
def operated(gpukube: Gpukube, sandbox: SandboxInfo) -> Iterator[Cluster]:
    """An EKS cluster whose GPU Operator has cut the pool of the example."""
    gpukube.made("-f", EXAMPLES / "eks-mig.yaml")
    inside = Cluster(sandbox, ":cluster/train")
    yield inside
    inside.close()


DEPLOY = "nvidia.com/gpu.deploy."
OPERATOR_FAULTS: dict[str, tuple[Callable[[Cluster], object], str, str]] = {
    "no operator": (
        lambda c: c.client.delete(Deployment, "gpu-operator", namespace=NAMESPACE),
        "placement",
        "the GPU Operator has no Deployment",
    ),
    "kept off by hand": (lambda c: label(c, f"{DEPLOY}operands", "false"), "placement", "operands is false"),
    "plugin kept off by hand": (
        lambda c: label(c, f"{DEPLOY}device-plugin", "false"),
        "placement",
        "device-plugin is false",
    ),
    "another cut": (
        lambda c: label(c, "nvidia.com/mig.config", "all-2g.10gb"),
        "geometry",
        "label nvidia.com/mig.config is all-2g.10gb, not all-1g.5gb",
    ),
    "no cut": (
        lambda c: label(c, "nvidia.com/mig.config", None),
        "geometry",
        ", not all-1g.5gb",  # absent, or all-disabled: the operator writes that where it finds none
    ),
    "the worker kept away": (
        lambda c: change_pods(c, {"tolerations": None}, "gpukube-gpu-operator-node-feature-discovery-worker"),
        "features",
        "the NFD worker cannot run here: taint nvidia.com/gpu=present:NoSchedule is not tolerated",
    ),
}


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", OPERATOR_FAULTS)
def test_verify_when_the_operators_work_is_disturbed_then_the_step_is_named(
    name: str, gpukube: Gpukube, operated: Cluster
) -> None:
    inject, code, said = OPERATOR_FAULTS[name]
    inject(operated)
    seen = gpukube("pool", "verify", "-f", EXAMPLES / "eks-mig.yaml", "-o", "json")
    (pool,) = seen.pools()
    first = pool["error"][0]
    assert (seen.code, first["code"], said in first["message"]) == (1, f"step-{code}", True), first


def test_verify_when_a_node_opts_out_of_the_clouds_plugin_then_named(gpukube: Gpukube, sandbox: SandboxInfo) -> None:
    spec = EXAMPLES / "gke-timesharing.yaml"
    gpukube.made("-f", spec)
    inside = Cluster(sandbox, "_train")
    label(inside, "gke-no-default-nvidia-gpu-device-plugin", "true")
    wait_for(lambda: no_devices(inside))
    inside.close()
    seen = gpukube("pool", "verify", "-f", spec)
    assert seen.code == 1
    assert "error[step-placement]: the cloud's device plugin cannot run here" in seen.out, seen.out
    assert "gke-no-default-nvidia-gpu-device-plugin" in seen.out
