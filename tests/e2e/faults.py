"""What others do to clusters that are well, what the doctor must say of it, and which step verify must name.

In scope: the clusters, the table of faults and the hands that put them in and take them out. Out of scope:
assertions. Faults that need no more than one cluster of AKS are in tests/cli/cluster_faults.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from lightkube import ApiError
from lightkube.resources.core_v1 import Node, Pod, Secret
from lightkube.types import PatchType

from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.changes.world import SMALL
from tests.cli.harness import NAMESPACE, PLUGIN
from tests.drift.world import edited_values
from tests.e2e.scenarios import CUTTABLE, MPS, SKU, SLICED, Ward, cut, one
from tests.intruders import GPU_TAINT, TEAM, TOLERATES_GPU, Body, gpu_pod, put_in, take_out, workload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.e2e.stage import Inside

AKS, EKS, GKE = "ill-aks", "ill-eks", "ill-gke"
PATIENTS: Mapping[str, Ward] = {
    AKS: Ward(
        "aks",
        {
            "whole": (one("whole", SMALL["aks"]), {"gpu": 1}),
            "sliced": (one("sliced", SMALL["aks"], sharing=SLICED), {"gpu": 4}),
            "mps": (one("mps", SMALL["aks"], sharing=MPS), {"gpu": 4}),
            "mixed": (one("mixed", CUTTABLE["aks"], sharing=cut("aks", "mixed")), {"mig-1g.10gb": 7}),
            "sku": (one("sku", SMALL["aks"], taints=[SKU]), {"gpu": 1}),
        },
        "chart",
    ),
    EKS: Ward(
        "eks",
        {
            "whole": (one("whole", SMALL["eks"]), {"gpu": 1}),
            "single": (one("single", CUTTABLE["eks"], sharing=cut("eks")), {"gpu": 7}),
        },
        "operator",
    ),
    GKE: Ward(
        "gke",
        {
            "whole": (one("whole", SMALL["gke"]), {"gpu": 1}),
            "sliced": (one("sliced", SMALL["gke"], sharing=SLICED), {"gpu": 4}),
        },
        "",
    ),
}

CONFIG = "nvidia.com/device-plugin.config"
GFD = f"{PLUGIN}-gpu-feature-discovery"
WORKER = f"{PLUGIN}-node-feature-discovery-worker"
MPS_DAEMON = f"{PLUGIN}-mps-control-daemon"
MAIN = "nvidia-device-plugin-ctr"
NOWHERE = "registry.invalid/plugin:v1"
EVICTING = {"key": "maintenance", "value": "now", "effect": "NoExecute"}


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        at: The cluster.
        check: The check of the doctor that must find it.
        step: The step that verify must name first of some pool; "" where no device suffers.
        inject: Puts it in.
        heal: Takes it out.
        severity: Of what is found.
        beside: Checks that may find an error besides, for the same reason.
    """

    at: str
    check: str
    step: str
    inject: Callable[[Inside], object]
    heal: Callable[[Inside], object]
    severity: str = "error"
    beside: tuple[str, ...] = ()


# Nodes


def label(pool: str, **labels: str | None) -> Callable[[Inside], object]:
    return lambda cluster: cluster.label_nodes(pool, **labels)


def taint(pool: str, *taints: Body) -> Callable[[Inside], object]:
    def change(cluster: Inside) -> None:
        for name in cluster.node_names(pool):
            cluster.client.patch(Node, name, {"spec": {"taints": list(taints)}}, patch_type=PatchType.MERGE)

    return change


# The release


def pods_of(daemonset: str, namespace: str = NAMESPACE) -> Callable[[Inside], object]:
    """Delete the pods of a DaemonSet, as a restart does."""

    def restart(cluster: Inside) -> None:
        for pod in cluster.client.list(Pod, namespace=namespace):
            owners = (pod.metadata.ownerReferences if pod.metadata else None) or []
            if pod.metadata and any(owner.name == daemonset for owner in owners):
                with suppress(ApiError):
                    cluster.client.delete(Pod, str(pod.metadata.name), namespace=namespace)

    return restart


def gone(namespace: str, daemonset: str) -> Callable[[Inside], object]:
    """Wait until the pods of a DaemonSet are gone."""
    return lambda cluster: wait_for(lambda: daemonset not in cluster.owners(namespace))


def both(*hands: Callable[[Inside], object]) -> Callable[[Inside], object]:
    """Do one thing after the other."""

    def change(cluster: Inside) -> None:
        for hand in hands:
            hand(cluster)

    return change


class Kept:
    """A DaemonSet as it was before somebody changed it.

    Args:
        name: Its name.
        edit: Changes its pod in place.
    """

    def __init__(self, name: str, edit: Callable[[Body], object]) -> None:
        self._name, self._edit, self._old = name, edit, dict[str, Body]()

    def inject(self, cluster: Inside) -> None:
        """Change it."""
        self._old, pod = cluster.pod_of(self._name), cluster.pod_of(self._name)
        self._edit(pod)
        cluster.set_pod(self._name, pod)

    def heal(self, cluster: Inside) -> None:
        """Bring back what it was."""
        cluster.set_pod(self._name, self._old)


def edited(check: str, step: str, name: str, edit: Callable[[Body], object], severity: str = "error") -> Fault:
    """Make a fault of a change to a DaemonSet of the release on AKS."""
    kept = Kept(name, edit)
    return Fault(AKS, check, step, kept.inject, kept.heal, severity)


def set_image(pod: Body) -> None:
    for container in pod["containers"]:
        container["image"] = NOWHERE if container["name"] == MAIN else container["image"]


def set_variable(name: str, value: str) -> Callable[[Body], object]:
    def edit(pod: Body) -> None:
        for container in (*pod["containers"], *pod.get("initContainers", ())):
            others = [item for item in container.get("env", ()) if item["name"] != name]
            container["env"] = [*others, {"name": name, "value": value}]

    return edit


def drop_tolerations(key: str) -> Callable[[Body], object]:
    def edit(pod: Body) -> None:
        pod["tolerations"] = [item for item in pod["tolerations"] if item.get("key") != key]

    return edit


def set_selector(pod: Body) -> None:
    pod["nodeSelector"] = {"disk": "fast"}


def set_value(**values: object) -> Callable[[Inside], object]:
    """Edit the values in the release's record, as `helm upgrade --set` leaves them."""

    def change(cluster: Inside) -> None:
        for secret in cluster.client.list(Secret, namespace=NAMESPACE, labels={"owner": "helm", "status": "deployed"}):
            assert secret.metadata
            assert secret.data
            payload = edited_values(secret.data["release"], **values)
            name = str(secret.metadata.name)
            cluster.client.patch(
                Secret, name, {"data": {"release": payload}}, namespace=NAMESPACE, patch_type=PatchType.MERGE
            )

    return change


# Objects of others

STATIC_PODS = ("kube-system", "nvidia-device-plugin-daemonset")


def made(at: str, check: str, step: str, *bodies: Body, severity: str = "error") -> Fault:
    """Make a fault that is a thing too many."""
    return Fault(at, check, step, create(*bodies), remove(*bodies), severity)


def create(*bodies: Body) -> Callable[[Inside], object]:
    return lambda cluster: put_in(cluster.client, *bodies)


def remove(*bodies: Body) -> Callable[[Inside], object]:
    return lambda cluster: take_out(cluster.client, *bodies)


STATIC = partial(
    workload,
    "DaemonSet",
    "nvidia-device-plugin-daemonset",
    "kube-system",
    {"name": "nvidia-device-plugin-ds"},
    "nvidia-device-plugin",
)
NFD = workload("Deployment", "nfd-master", "node-feature-discovery", {"app": "nfd-master"}, "nfd-master")
NO_GPUS = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "gpus", "namespace": TEAM},
    "spec": {"hard": {"requests.nvidia.com/gpu": "0"}},
}
GKE_PLUGIN = "nvidia-gpu-device-plugin-small-cos"
OPERATOR_PLUGIN = "nvidia-device-plugin-daemonset"
OPERATOR_CONFIGS = "gpukube-gpu-operator-configs"


def second_plugin(at: str, step: str, restarted: tuple[str, str], *tolerations: Body) -> Fault:
    """Make a second plugin of NVIDIA's static manifest; whichever stays must register anew when it has gone."""
    body = STATIC(tolerations=list(tolerations))
    return Fault(at, "two-advertisers", step, create(body), both(remove(body), gone(*STATIC_PODS), pods_of(*restarted)))


class Entry:
    """An entry of the operator's ConfigMap that somebody takes out, and puts back.

    Args:
        pool: Whose nodes name it.
    """

    def __init__(self, pool: str) -> None:
        self._pool, self._old = pool, dict[str, str]()

    def inject(self, cluster: Inside) -> None:
        """Take it out."""
        key = (cluster.labels(self._pool))[CONFIG]
        self._old = {key: cluster.entries(OPERATOR_CONFIGS)[key]}
        cluster.set_entries(OPERATOR_CONFIGS, {key: None})

    def heal(self, cluster: Inside) -> None:
        """Put it back."""
        cluster.set_entries(OPERATOR_CONFIGS, self._old)


class Label:
    """A node label that somebody sets to what another pool's nodes have, and back.

    Args:
        pool: Whose nodes.
        key: Which label.
        other: The pool to take the value from.
    """

    def __init__(self, pool: str, key: str, other: str) -> None:
        self._pool, self._key, self._other, self._old = pool, key, other, ""

    def inject(self, cluster: Inside) -> None:
        """Set it."""
        self._old = cluster.labels(self._pool)[self._key]
        cluster.label_nodes(self._pool, **{self._key: cluster.labels(self._other)[self._key]})

    def heal(self, cluster: Inside) -> None:
        """Set it back."""
        cluster.label_nodes(self._pool, **{self._key: self._old})


FAULTS: dict[str, Fault] = {
    "aks: the plugin's image is nowhere": edited("plugin-image", "plugin-pod", PLUGIN, set_image),
    "aks: a default that is no entry": edited(
        "config-default-unknown", "", PLUGIN, set_variable("DEFAULT_CONFIG", "nowhere")
    ),
    "aks: the plugin tolerates sku no more": edited(
        "plugin-not-tolerating", "placement", PLUGIN, drop_tolerations("sku")
    ),
    "aks: NFD's workers tolerate sku no more": edited("stack-part-edited", "", WORKER, drop_tolerations("sku")),
    "aks: the MPS daemon is sent elsewhere": Fault(
        AKS,
        "mps-daemon-missing",
        "features",
        both((M1 := Kept(MPS_DAEMON, set_selector)).inject, gone(NAMESPACE, MPS_DAEMON), pods_of(PLUGIN)),
        both(M1.heal, pods_of(PLUGIN)),
        beside=("devices-out-of-date", "devices-unhealthy", "stack-part-edited"),
    ),
    "aks: a value that does nothing": Fault(
        AKS,
        "chart-value-ignored",
        "",
        set_value(failOnInitError="false"),
        set_value(failOnInitError=False),
        "warning",
    ),
    "aks: a taint that evicts": Fault(
        AKS, "plugin-not-tolerating", "placement", taint("whole", GPU_TAINT, EVICTING), taint("whole", GPU_TAINT)
    ),
    "aks: the entry of another pool": Fault(
        AKS,
        "node-labels-lost",
        "config-label",
        (L1 := Label("whole", CONFIG, "sliced")).inject,
        L1.heal,
        beside=("devices-out-of-date",),
    ),
    "eks: the advertiser's label": Fault(
        EKS,
        "node-labels-lost",
        "advertiser-label",
        label("whole", **{"gpukube.io/advertiser": None}),
        label("whole", **{"gpukube.io/advertiser": "operator"}),
    ),
    "eks: cut otherwise by hand": Fault(
        EKS,
        "node-labels-lost",
        "geometry",
        label("single", **{"nvidia.com/mig.config": "all-7g.80gb"}),
        label("single", **{"nvidia.com/mig.config": "all-1g.10gb"}),
    ),
    "eks: not cut at all": Fault(
        EKS,
        "node-labels-lost",
        "geometry",
        label("single", **{"nvidia.com/mig.config": "all-disabled"}),
        label("single", **{"nvidia.com/mig.config": "all-1g.10gb"}),
    ),
    "eks: operands kept off": Fault(
        EKS,
        "plugin-desired-zero",
        "placement",
        label("whole", **{"nvidia.com/gpu.deploy.device-plugin": "false"}),
        label("whole", **{"nvidia.com/gpu.deploy.device-plugin": "true"}),
    ),
    "eks: a manifest of the plugin": second_plugin(EKS, "geometry", (OPERATOR_PLUGIN, NAMESPACE), *TOLERATES_GPU),
    "eks: the entry is gone": Fault(EKS, "config-key-unknown", "config-entry", (E1 := Entry("single")).inject, E1.heal),
    "eks: a foreign taint": Fault(
        EKS,
        "plugin-not-tolerating",
        "features",
        taint("single", GPU_TAINT, SKU),
        taint("single", GPU_TAINT),
        beside=("mig-label-without-manager",),
    ),
    "eks: no taint": Fault(EKS, "gpu-node-untainted", "", taint("whole"), taint("whole", GPU_TAINT), "warning"),
    "eks: a second NFD": made(EKS, "two-nfds", "", NFD),
    "eks: rights taken": Fault(
        EKS,
        "kube-rights",
        "",
        lambda cluster: daemon.deny(cluster.info, EKS, ("create", "secrets")),
        lambda cluster: daemon.deny(cluster.info, EKS),
    ),
    "eks: a cut that the GPUs have not": Fault(
        EKS,
        "mig-config-failed",
        "geometry",
        label("single", **{"nvidia.com/mig.config": "all-1g.5gb"}),
        label("single", **{"nvidia.com/mig.config": "all-1g.10gb"}),
        beside=("node-labels-lost",),
    ),
    "gke: a manifest of the plugin": second_plugin(GKE, "count", (GKE_PLUGIN, "kube-system"), *TOLERATES_GPU),
    "gke: a manifest on all nodes": replace(
        second_plugin(GKE, "count", (GKE_PLUGIN, "kube-system"), {"operator": "Exists"}),
        check="plugin-on-cpu-nodes",
        severity="warning",
        beside=("two-advertisers",),
    ),
    "gke: no taint": Fault(GKE, "gpu-node-untainted", "", taint("whole"), taint("whole", GPU_TAINT), "warning"),
    "gke: two shares": made(
        GKE,
        "pods-refused-by-node",
        "",
        gpu_pod("greedy", "nvidia.com/gpu", 2, nodeSelector={"gpukube.io/pool": "sliced"}),
    ),
    "gke: a quota of no GPUs": made(GKE, "quota-exhausted", "", NO_GPUS, severity="warning"),
    "gke: a misspelt name": made(GKE, "pods-ask-misspelt-name", "", gpu_pod("misspelt", "nvidia.com/gpus", 1)),
    "gke: the cloud's plugin kept off": Fault(
        GKE,
        "plugin-desired-zero",
        "placement",
        label("whole", **{"gke-no-default-nvidia-gpu-device-plugin": "true"}),
        label("whole", **{"gke-no-default-nvidia-gpu-device-plugin": None}),
    ),
    "gke: too many": made(GKE, "pods-too-large", "", gpu_pod("large", "nvidia.com/gpu", 5)),
}
