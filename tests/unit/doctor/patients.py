"""A healthy cluster that gpukube never touched, and small changes to it: evidence for the checks of the inside.

It has one node with 8 GPUs and one without, the device plugin's chart as `helm install` leaves it (GFD and NFD on, two
config entries), and no pools that a cloud tells of. Out of scope: assertions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpukube.cluster.kube.releases import Release
from gpukube.cluster.kube.slices import DeviceView, SliceView
from gpukube.cluster.kube.views import ContainerState, NodeView, PodView, workload_view
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.values import Taint
from gpukube.doctor.evidence import Evidence, PodFacts, Quota
from gpukube.testing.fakes import FakeProvider
from tests.builders import CLUSTER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.cluster.kube.views import WorkloadView

NS = "nvidia-device-plugin"
Body = dict[str, Any]  # objects of the Kubernetes API as YAML has them
TOLERATES = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
GPU_TAINT = Taint("nvidia.com/gpu", "present", "NoSchedule")
ENTRIES = {"default": "version: v1\nflags: {migStrategy: none}\n"}
FOUR = {"four": "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"}
"""An entry that time-slices."""
SEEN_BY_NFD = "feature.node.kubernetes.io/pci-10de.present"
GPU_LABELS = {
    SEEN_BY_NFD: "true",
    "kubernetes.io/os": "linux",
    "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.replicas": "1",
    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB",
}
WANTS_PCI = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": SEEN_BY_NFD, "operator": "In", "values": ["true"]}]},
                {"matchExpressions": [{"key": "nvidia.com/gpu.present", "operator": "In", "values": ["true"]}]},
            ]
        }
    }
}


def node(name: str, labels: Mapping[str, str], devices: Mapping[str, int], **changes: object) -> NodeView:
    shown = {key: str(count) for key, count in devices.items()}
    made = NodeView(
        name=name,
        labels=labels,
        taints=(GPU_TAINT,) if devices else (),
        capacity=shown,
        allocatable=shown,
        conditions={"Ready": "True"},
        os_image="Ubuntu 24.04.3 LTS",
        created="2026-11-01T00:00:00Z",
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # test data


def relabelled(made: NodeView, **labels: str | None) -> NodeView:
    """Change labels; None takes one away."""
    merged = {**made.labels, **labels}
    return replace(made, labels={key: value for key, value in merged.items() if value is not None})


def daemonset(name: str, command: str, namespace: str = NS, labels: Body | None = None, **spec: object) -> Body:
    """Make a DaemonSet as the API has it; `spec` goes into its pods' spec."""
    env = spec.pop("env", {})
    assert isinstance(env, dict)
    image = spec.pop("image", "nvcr.io/nvidia/k8s-device-plugin:v0.20.0")
    main = {"name": "main", "image": image, "command": [command]}
    marks = {
        "app.kubernetes.io/instance": "nvdp",
        "helm.sh/chart": "nvidia-device-plugin-0.20.0",
        "app.kubernetes.io/managed-by": "Helm",
    }
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": marks if labels is None else labels},
        "spec": {
            "template": {
                "metadata": {"labels": labels or {}},
                "spec": {
                    "tolerations": TOLERATES,
                    "containers": [{**main, "env": [{"name": key, "value": value} for key, value in env.items()]}],
                    **spec,
                },
            }
        },
        "status": {"desiredNumberScheduled": 1, "numberReady": 1},
    }


CONFIGS = [{"name": "available-configs", "configMap": {"name": "nvdp-configs"}}]
PLUGIN = daemonset(
    "nvdp-nvidia-device-plugin",
    "nvidia-device-plugin",
    affinity=WANTS_PCI,
    volumes=CONFIGS,
    env={"DEFAULT_CONFIG": "default"},
)
GFD = daemonset("nvdp-gpu-feature-discovery", "gpu-feature-discovery", affinity=WANTS_PCI)
MPS_DAEMON = daemonset("nvdp-mps-control-daemon", "mps-control-daemon", nodeSelector={"nvidia.com/mps.capable": "true"})
NFD_WORKER = daemonset("nvdp-node-feature-discovery-worker", "nfd-worker")
NFD_MASTER = {
    **daemonset("nvdp-node-feature-discovery-master", "nfd-master"),
    "status": {"replicas": 1, "readyReplicas": 1},
}
GPU_NODE = node("gpu-1", GPU_LABELS, {"nvidia.com/gpu": 8})
CPU_NODE = node("cpu-1", {"kubernetes.io/os": "linux"}, {})


def container(name: str = "main", **changes: object) -> ContainerState:
    made = ContainerState(name, init=False, ready=True, waiting="", message="", restarts=0, exit_code=None)
    return replace(made, **changes)  # type: ignore[arg-type]  # test data


def pod(name: str = "train-0", *, reason: str = "", message: str = "", **changes: object) -> PodFacts:
    """Make a pod of a user that runs without devices; `changes` are fields of the view."""
    made = PodView(
        name=name,
        namespace="team",
        labels={},
        node="gpu-1",
        scheduled=True,
        phase="Running",
        ready=True,
        unschedulable="",
        containers=(container(),),
        owner_kind="Job",
        owner="train",
        devices={},
    )
    view = replace(made, **changes)  # type: ignore[arg-type]  # test data
    return PodFacts(view, reason, message, dict(view.devices))


def pod_of(daemonset_body: Body, on: str = "gpu-1", **changes: object) -> PodFacts:
    """Make a pod of a DaemonSet."""
    meta = daemonset_body["metadata"]
    owner = {"owner_kind": "DaemonSet", "owner": meta["name"], "namespace": meta["namespace"], "node": on}
    return pod(f"{meta['name']}-x7", **{**owner, **changes})


def quota(hard: Mapping[str, str], used: Mapping[str, str], namespace: str = "team") -> Quota:
    return Quota(namespace, "gpus", hard, used)


def release(**changes: object) -> Release:
    made = Release("nvdp", NS, "nvidia-device-plugin", "0.20.0", 3, "deployed", {}, "")
    return replace(made, **changes)  # type: ignore[arg-type]  # test data


DRA_IMAGE = "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.4.1"
DRA = daemonset(
    "dra-driver-nvidia-gpu-kubelet-plugin",
    "bash",
    "dra",
    {"app.kubernetes.io/instance": "mydra", "helm.sh/chart": "dra-driver-nvidia-gpu-0.4.1"},
    containers=[
        {
            "name": "gpus",
            "image": DRA_IMAGE,
            "command": ["bash"],
            "env": [{"name": "NVIDIA_DRIVER_ROOT", "value": "/"}],
        }
    ],
)
DRA_CLASSES = ("gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com")


def gpu(index: int, **changes: object) -> DeviceView:
    """Make a whole GPU as NVIDIA's DRA driver publishes it."""
    attributes = {"type": "gpu", "uuid": f"GPU-{index}", "driverVersion": "580.126.20"}
    made = DeviceView(f"gpu-{index}", {f"gpu.nvidia.com/{key}": value for key, value in attributes.items()}, {})
    return replace(made, **changes)  # type: ignore[arg-type]  # test data


def published(*devices: DeviceView, on: str = "gpu-1", **changes: object) -> SliceView:
    made = SliceView(f"{on}-gpu.nvidia.com-x7", "gpu.nvidia.com", on, on, devices=devices)
    return replace(made, **changes)  # type: ignore[arg-type]  # test data


def patient(  # noqa: PLR0913 - each is a part of the cluster
    *nodes: NodeView,
    daemonsets: Sequence[Body] = (PLUGIN, GFD, MPS_DAEMON, NFD_WORKER),
    masters: Sequence[Body] = (NFD_MASTER,),
    pods: Sequence[PodFacts] = (),
    stack_pods: Sequence[PodFacts] | None = None,
    entries: Mapping[str, str] | None = None,
    seen: Mapping[str, object] | None = None,
    **changes: object,
) -> Evidence:
    """Make the evidence; what is not given is healthy.

    Args:
        nodes: The GPU node and the CPU node when left out.
        daemonsets: As the API has them.
        masters: Deployments.
        pods: Those of users.
        stack_pods: Of the DaemonSets; a running one of each that goes to the GPU node when None.
        entries: Of the plugin's ConfigMap.
        seen: Fields of the sighting.
        changes: Fields of the evidence.
    """
    views: tuple[WorkloadView, ...] = tuple(workload_view(item, "DaemonSet") for item in daemonsets)
    running = [pod_of(item) for item in daemonsets if "mps" not in item["metadata"]["name"]]
    sighting = Snapshot(
        nodes=nodes or (GPU_NODE, CPU_NODE),
        daemonsets=views,
        deployments=tuple(workload_view(item, "Deployment") for item in masters),
    )
    made = Evidence(
        cluster=CLUSTER,
        provider=FakeProvider(),
        seen=replace(sighting, **(seen or {})),  # type: ignore[arg-type]  # test data
        daemonsets={(item["metadata"]["namespace"], item["metadata"]["name"]): item for item in daemonsets},
        pods=(*(running if stack_pods is None else stack_pods), *pods),
        config_maps={(NS, "nvdp-configs"): ENTRIES if entries is None else entries},
        releases=(release(),),
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # test data
