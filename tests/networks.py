"""What clusters need beside gpukube's releases, as a platform team installs it there: networks of GPUs, a driver."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Final, cast

import yaml
from httpx2 import Timeout
from lightkube import Client, KubeConfig
from lightkube.generic_resource import create_global_resource
from lightkube.resources.apps_v1 import DaemonSet
from lightkube.resources.core_v1 import ConfigMap

from gpukube_sandbox.environment import kubeconfig
from sandbox_tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo
    from tests.cli.harness import Document, Gpukube

_NAMESPACE: Final = "kube-system"
_CONTEXTS: Final = {"eks": "arn:", "gke": "gke_"}
"""Start of the contexts of a cloud's clusters; those of AKS have the plain name."""
_GROUP: Final = "networking.gke.io"
_NETWORK: Final = create_global_resource(_GROUP, "v1", "Network", "networks")
_PARAMS: Final = create_global_resource(_GROUP, "v1", "GKENetworkParamSet", "gkenetworkparamsets")
_SRIOV: Final = {"resourceList": [{"resourcePrefix": "rdma", "resourceName": "ib", "selectors": {"vendors": ["15b3"]}}]}


def install_networks(gpukube: Gpukube, *files: Path) -> None:
    """Install what pools with network.highSpeed need, and a driver for pools of the DRA driver."""
    documents = [yaml.safe_load(file.read_text("utf-8")) for file in files]
    for document in documents:
        for pool in document["pools"]:
            fast = pool.get("network", {}).get("highSpeed")
            claimed = pool.get("devicePlugin", {}).get("owner") == "dra"
            for key in pool["clusters"] if fast or claimed else ():
                if fast:
                    _install(gpukube, document["clusters"][key])
                if claimed:
                    install_driver(gpukube.info, document["clusters"][key])


def install_driver(info: SandboxInfo, cluster: Document) -> None:
    """Install Google's driver installer in a cluster of GKE, whose nodes then have no driver of their own."""
    if cluster["provider"] == "gke":
        with closing(_connect(info, cluster)) as client:
            client.create(_installer(), namespace=_NAMESPACE)


def _install(gpukube: Gpukube, cluster: Document) -> None:
    provider = str(cluster["provider"])
    with closing(_connect(gpukube.info, cluster)) as client:
        for part in _PARTS[provider]():
            client.create(part, namespace=_NAMESPACE)
        if provider == "gke":
            _add_networks(client)


def _connect(info: SandboxInfo, cluster: Document) -> Client:
    document = kubeconfig(info)["kubeconfig"]
    assert isinstance(document, dict)
    provider, name = str(cluster["provider"]), str(cluster["name"])
    names = [str(entry["name"]) for entry in document["contexts"]]
    (context,) = [one for one in names if one.endswith(name) and one.startswith(_CONTEXTS.get(provider, name))]
    config = KubeConfig.from_dict({**document, "current-context": context})
    return Client(config, timeout=Timeout(PATIENCE_S), trust_env=False)


def _add_networks(client: Client) -> None:
    """Make the cluster's networks of the eight GPUs, as Google's guide does."""
    for number in range(8):
        name = f"gpu-nic-{number}"
        vpc = {"vpc": name, "vpcSubnet": name, "deviceMode": "NetDevice"}
        client.create(_PARAMS.from_dict({"metadata": {"name": name}, "spec": vpc}))
        reference = {"group": _GROUP, "kind": "GKENetworkParamSet", "name": name}
        spec = {"type": "Device", "parametersRef": reference}
        client.create(_NETWORK.from_dict({"metadata": {"name": name}, "spec": spec}))


def _daemonset(name: str, image: str, *, reads: str = "") -> DaemonSet:
    """Make a DaemonSet on all nodes; `reads` is the directory of its configuration."""
    labels = {"app": name, "name": name}
    container: Document = {"name": "main", "image": image}
    pod: Document = {"containers": [container], "tolerations": [{"operator": "Exists"}]}
    if reads:
        container["volumeMounts"] = [{"name": "config", "mountPath": reads}]
        pod["volumes"] = [{"name": "config", "configMap": {"name": name}}]
    template = {"metadata": {"labels": labels}, "spec": pod}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return cast("DaemonSet", DaemonSet.from_dict({"metadata": {"name": name}, "spec": spec}))


def _installer() -> DaemonSet:
    """Make the DaemonSet of daemonset-preloaded.yaml (GoogleCloudPlatform/container-engine-accelerators, cos)."""
    where = {
        "matchExpressions": [
            {"key": "cloud.google.com/gke-accelerator", "operator": "Exists"},
            {"key": "cloud.google.com/gke-gpu-driver-version", "operator": "DoesNotExist"},
        ]
    }
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [where]}}
    labels = {"k8s-app": "nvidia-driver-installer", "name": "nvidia-driver-installer"}
    pod: Document = {
        "affinity": {"nodeAffinity": affinity},
        "tolerations": [{"operator": "Exists"}],
        "hostNetwork": True,
        "volumes": [{"name": "install-dir", "hostPath": {"path": "/home/kubernetes/bin/nvidia"}}],
        "initContainers": [
            {
                "name": "nvidia-driver-installer",
                "image": "cos-nvidia-installer:fixed",
                "imagePullPolicy": "Never",
                "env": [{"name": "NVIDIA_INSTALL_DIR_HOST", "value": "/home/kubernetes/bin/nvidia"}],
                "securityContext": {"privileged": True},
                "volumeMounts": [{"name": "install-dir", "mountPath": "/usr/local/nvidia"}],
            }
        ],
        "containers": [{"name": "pause", "image": "gke.gcr.io/pause:3.8"}],
    }
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    metadata = {"name": "nvidia-driver-installer", "labels": {"k8s-app": "nvidia-driver-installer"}}
    return cast("DaemonSet", DaemonSet.from_dict({"metadata": metadata, "spec": spec}))


def _efa() -> list[DaemonSet]:
    image = "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin:v0.5.20"
    return [_daemonset("aws-efa-k8s-device-plugin", image)]


def _infiniband() -> list[DaemonSet | ConfigMap]:
    name, data = "sriov-device-plugin", {"config.json": json.dumps(_SRIOV)}
    image = "nvcr.io/nvidia/mellanox/sriov-network-device-plugin:network-operator-v26.4.0"
    config = cast("ConfigMap", ConfigMap.from_dict({"metadata": {"name": name}, "data": data}))
    return [config, _daemonset(name, image, reads="/etc/pcidp")]


def _tcpxo() -> list[DaemonSet]:
    image = "us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo/nccl-plugin-gpudirecttcpx-dev:v1.0.15"
    return [_daemonset("nccl-tcpxo-installer", image)]


_PARTS: Final[Mapping[str, Callable[[], Sequence[DaemonSet | ConfigMap]]]] = {
    "eks": _efa,
    "aks": _infiniband,
    "gke": _tcpxo,
}
