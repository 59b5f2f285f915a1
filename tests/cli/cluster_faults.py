"""Faults that others put into a cluster, and how they are taken out again: what the doctor must find.

In scope: the hands, through the Kubernetes API only, and the table of faults. Out of scope: assertions.
"""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import Node, Pod, Secret
from lightkube.types import PatchType

from sandbox_tests.waiting import wait_for
from tests.cli.harness import NAMESPACE, PLUGIN
from tests.intruders import GPU_TAINT, TEAM, TOLERATES_GPU, Body, gpu_pod, put_in, take_out, workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.harness import Cluster

MIG, SLICED = "a100mig", "t4shared"
CONFIG = "nvidia.com/device-plugin.config"
OTHER_TAINT = {"key": "dedicated", "value": "other", "effect": "NoSchedule"}


def spec_of_ward() -> Body:
    """Declare the two pools of the cluster: one cut by MIG, one time-sliced."""
    place = {
        "provider": "aks",
        "subscription": "11111111-2222-3333-4444-555555555555",
        "resourceGroup": "ml",
        "name": "train",
    }
    one = {"clusters": ["train-aks"], "nodes": {"count": 1}}
    return {
        "apiVersion": "gpukube.io/v1alpha1",
        "kind": "GPUNodePools",
        "metadata": {"name": "ward"},
        "clusters": {"train-aks": place},
        "pools": [
            {
                **one,
                "name": MIG,
                "instanceType": "Standard_ND96asr_v4",
                "sharing": {"mig": {"profile": "1g.5gb", "strategy": "single"}},
            },
            {
                **one,
                "name": SLICED,
                "instanceType": "Standard_NC4as_T4_v3",
                "sharing": {"timeSlicing": {"replicas": 4}},
            },
        ],
    }


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        check: The check that must find it.
        inject: Puts it in.
        heal: Takes it out; None where `doctor --fix` must.
        severity: Of what is found.
    """

    check: str
    inject: Callable[[Cluster], object]
    heal: Callable[[Cluster], object] | None
    severity: str = "error"


def _label(pool: str, **labels: str | None) -> Callable[[Cluster], object]:
    return lambda cluster: cluster.label_nodes(pool, **labels)


def _cordon(pool: str, *, off: bool) -> Callable[[Cluster], object]:
    def change(cluster: Cluster) -> None:
        for node in cluster.nodes(pool):
            assert node.metadata is not None
            patch = {"spec": {"unschedulable": off}}
            cluster.client.patch(Node, str(node.metadata.name), patch, patch_type=PatchType.MERGE)

    return change


def _taint(pool: str, *taints: Body) -> Callable[[Cluster], object]:
    def change(cluster: Cluster) -> None:
        for node in cluster.nodes(pool):
            assert node.metadata is not None
            patch = {"spec": {"taints": list(taints)}}
            cluster.client.patch(Node, str(node.metadata.name), patch, patch_type=PatchType.MERGE)

    return change


def _create(*bodies: Body) -> Callable[[Cluster], object]:
    return lambda cluster: put_in(cluster.client, *bodies)


def _delete(*bodies: Body) -> Callable[[Cluster], object]:
    return lambda cluster: take_out(cluster.client, *bodies)


def _made(check: str, *bodies: Body, severity: str = "error") -> Fault:
    """Make a fault that is a thing too many."""
    return Fault(check, _create(*bodies), _delete(*bodies), severity)


STATIC_PLUGIN = workload(
    "DaemonSet",
    "nvidia-device-plugin-daemonset",
    "kube-system",
    {"name": "nvidia-device-plugin-ds"},
    "nvidia-device-plugin",
    tolerations=TOLERATES_GPU,
)
NFD = {"app.kubernetes.io/name": "node-feature-discovery"}
SECOND_NFD = workload("Deployment", "nfd-master", "node-feature-discovery", NFD, "nfd-master")
ELSEWHERE = {"template": {"spec": {"nodeSelector": {"disk": "fast"}}}}
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "gpus", "namespace": TEAM},
    "spec": {"hard": {"requests.nvidia.com/gpu": "0"}},
}
MIXED_QUOTA = {**QUOTA, "spec": {"hard": {"requests.nvidia.com/mig-1g.5gb": "4"}}}


def _set_entry(key: str, text: str | None) -> Callable[[Cluster], object]:
    return lambda cluster: cluster.patch_config({key: text})


ONE_REPLICA = """
version: v1
sharing:
  timeSlicing:
    resources:
    - name: nvidia.com/gpu
      replicas: 1
"""
RENAMED = """
version: v1
resources:
  gpus:
  - pattern: "*A100*"
    name: big
"""
_kept: dict[str, str] = {}


def _drop_entry(cluster: Cluster) -> None:
    key = cluster.entry_of(SLICED)
    _kept.update(cluster.config())
    cluster.patch_config({key: None})


def _variable(name: str, value: str | None) -> Callable[[Cluster], object]:
    """Set an environment variable of the plugin's own container, or take it away."""

    def change(cluster: Cluster) -> None:
        pod = cluster.daemonset().to_dict()["spec"]["template"]["spec"]
        for container in pod["containers"]:
            if container["name"] == "nvidia-device-plugin-ctr":
                others = [item for item in container["env"] if item["name"] != name]
                container["env"] = others + ([{"name": name, "value": value}] if value else [])
        cluster.patch_daemonset({"spec": {"template": {"spec": {"containers": pod["containers"]}}}})

    return change


def _image(tag: str) -> Callable[[Cluster], object]:
    def change(cluster: Cluster) -> None:
        pod = cluster.daemonset().to_dict()["spec"]["template"]["spec"]
        for container in pod["containers"]:
            container["image"] = container["image"].rpartition(":")[0] + f":{tag}"
        cluster.patch_daemonset({"spec": {"template": {"spec": {"containers": pod["containers"]}}}})

    return change


def _replicas(count: int) -> Callable[[Cluster], object]:
    """Return the release's NFD master so many pods."""

    def change(cluster: Cluster) -> None:
        name = f"{PLUGIN}-node-feature-discovery-master"
        masters = [item for item in cluster.client.list(Deployment, namespace=NAMESPACE) if "master" in _named(item)]
        assert masters, name
        patch = {"spec": {"replicas": count}}
        cluster.client.patch(Deployment, _named(masters[0]), patch, namespace=NAMESPACE, patch_type=PatchType.MERGE)

    return change


def _named(item: Deployment | Secret | Node | Pod) -> str:
    return str(item.metadata.name) if item.metadata else ""


def _feature(pool: str, **labels: str | None) -> Callable[[Cluster], object]:
    """Change labels that NFD's master would write anew: it is stopped before."""

    def change(cluster: Cluster) -> None:
        _replicas(0)(cluster)
        cluster.label_nodes(pool, **labels)

    return change


def _status(pool: str, name: str, count: str | None) -> Callable[[Cluster], object]:
    def change(cluster: Cluster) -> None:
        for node in cluster.nodes(pool):
            patch = {"status": {"capacity": {name: count}, "allocatable": {name: count}}}
            cluster.client.patch(Node.Status, _named(node), patch, patch_type=PatchType.MERGE)

    return change


def _stick(cluster: Cluster) -> None:
    """Leave a revision behind as a helm that was killed does."""
    secret = next(iter(cluster.client.list(Secret, namespace=NAMESPACE, labels={"owner": "helm"})))
    assert secret.data is not None
    record = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(secret.data["release"]))))
    record["version"], record["info"]["status"] = 9, "pending-upgrade"
    packed = base64.b64encode(base64.b64encode(gzip.compress(json.dumps(record).encode()))).decode()
    name = f"sh.helm.release.v1.{record['name']}.v9"
    labels = {"owner": "helm", "name": record["name"], "status": "pending-upgrade", "version": "9"}
    meta = ObjectMeta(name=name, namespace=NAMESPACE, labels=labels)
    cluster.client.create(Secret(metadata=meta, type="helm.sh/release.v1", data={"release": packed}))


def _unstick(cluster: Cluster) -> None:
    for secret in cluster.client.list(Secret, namespace=NAMESPACE, labels={"owner": "helm", "version": "9"}):
        cluster.client.delete(Secret, _named(secret), namespace=NAMESPACE)


def _remove_static(cluster: Cluster) -> None:
    """Remove the second plugin; ours must register anew, for the last one took its devices with it."""
    _delete(STATIC_PLUGIN)(cluster)
    wait_for(lambda: all("plugin-daemonset" not in _named(pod) for pod in cluster.client.list(Pod, namespace="*")))
    for pod in cluster.plugin_pods():
        cluster.delete_pod(pod)


FAULTS: dict[str, Fault] = {
    "advertiser label taken off": Fault("node-labels-lost", _label(MIG, **{"gpukube.io/advertiser": None}), None),
    "config label moved": Fault("node-labels-lost", _label(SLICED, **{CONFIG: "c-nowhere"}), None),
    "config entry gone": Fault("config-key-unknown", _drop_entry, lambda cluster: cluster.patch_config(dict(_kept))),
    "config map gone": Fault("config-map-missing", lambda cluster: cluster.delete_config_map(), None),
    "plugin gone": Fault("no-plugin", lambda cluster: cluster.delete_daemonset(), None),
    "plugin sent elsewhere": Fault(
        "plugin-desired-zero",
        lambda cluster: cluster.patch_daemonset({"spec": ELSEWHERE}),
        lambda cluster: cluster.patch_daemonset({"spec": {"template": {"spec": {"nodeSelector": None}}}}),
    ),
    "foreign taint": Fault("plugin-not-tolerating", _taint(SLICED, GPU_TAINT, OTHER_TAINT), _taint(SLICED, GPU_TAINT)),
    "cordoned": Fault("node-cordoned", _cordon(SLICED, off=True), _cordon(SLICED, off=False), "warning"),
    "no taint": Fault("gpu-node-untainted", _taint(SLICED), _taint(SLICED, GPU_TAINT), "warning"),
    "static manifest": Fault("two-advertisers", _create(STATIC_PLUGIN), _remove_static),
    "second NFD": _made("two-nfds", SECOND_NFD),
    "NFD master stopped": Fault("gfd-without-nfd", _replicas(0), _replicas(1), "warning"),
    "old image": Fault("plugin-version", _image("v0.16.1"), _image("v0.20.0"), "warning"),
    "strategy in the environment": Fault(
        "strategy-overridden", _variable("MIG_STRATEGY", "mixed"), _variable("MIG_STRATEGY", None)
    ),
    "entry that nobody names": Fault(
        "config-entry-unused", _set_entry("spare", "version: v1\n"), _set_entry("spare", None), "warning"
    ),
    "one replica": Fault("config-entry-refused", _set_entry("spare", ONE_REPLICA), _set_entry("spare", None)),
    "renamed resources": Fault(
        "config-entry-ignored", _set_entry("spare", RENAMED), _set_entry("spare", None), "warning"
    ),
    "cut without a manager": Fault(
        "mig-label-without-manager",
        _label(SLICED, **{"nvidia.com/mig.config": "all-1g.5gb"}),
        _label(SLICED, **{"nvidia.com/mig.config": None}),
    ),
    "failed cut": Fault(
        "mig-config-failed",
        _label(MIG, **{"nvidia.com/mig.config.state": "failed"}),
        _label(MIG, **{"nvidia.com/mig.config.state": None}),
    ),
    "uneven cut": Fault(
        "mig-single-uneven", _feature(MIG, **{"nvidia.com/gpu.product": "NVIDIA-A100-MIG-INVALID"}), _replicas(1)
    ),
    "other number of devices": Fault(
        "devices-out-of-date", _feature(MIG, **{"nvidia.com/gpu.count": "24"}), _replicas(1)
    ),
    "name left over": Fault(
        "stale-resource-names",
        _status(MIG, "nvidia.com/mig-3g.20gb", "0"),
        _status(MIG, "nvidia.com/mig-3g.20gb", None),
        "warning",
    ),
    "pending upgrade": Fault("release-stuck", _stick, _unstick),
    "misspelt name": _made("pods-ask-misspelt-name", gpu_pod("misspelt", "nvidia.com/mig1g.5gb", 1)),
    "shared name": _made("pods-ask-other-name", gpu_pod("renamed", "nvidia.com/gpu.shared", 1)),
    "too many": _made("pods-too-large", gpu_pod("large", "nvidia.com/gpu", 57)),
    "intolerant": _made(
        "pods-pending",
        gpu_pod("waiting", "nvidia.com/gpu", 1, tolerations=[], nodeSelector={"disk": "fast"}),
        severity="warning",
    ),
    "two shares": _made(
        "shared-request-above-one",
        gpu_pod("greedy", "nvidia.com/gpu", 2, nodeSelector={"kubernetes.azure.com/agentpool": SLICED}),
        severity="warning",
    ),
    "quota by another name": _made("quota-other-name", MIXED_QUOTA, severity="warning"),
    "quota of none": _made("quota-exhausted", QUOTA, severity="warning"),
}
