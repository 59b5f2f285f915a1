"""What clusters need so that pods use the network between GPUs, as a platform team installs it there."""

from __future__ import annotations

import json
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

    from tests.cli.harness import Document, Gpukube

_NAMESPACE: Final = "kube-system"
_CONTEXTS: Final = {"eks": "arn:", "gke": "gke_"}
"""Start of the contexts of a cloud's clusters; those of AKS have the plain name."""
_GROUP: Final = "networking.gke.io"
_NETWORK: Final = create_global_resource(_GROUP, "v1", "Network", "networks")
_PARAMS: Final = create_global_resource(_GROUP, "v1", "GKENetworkParamSet", "gkenetworkparamsets")
_SRIOV: Final = {"resourceList": [{"resourcePrefix": "rdma", "resourceName": "ib", "selectors": {"vendors": ["15b3"]}}]}


def install_networks(gpukube: Gpukube, *files: Path) -> None:
    """Install the plugins and installers that the pools with network.highSpeed need."""
    documents = [yaml.safe_load(file.read_text("utf-8")) for file in files]
    for document in documents:
        for pool in document["pools"]:
            if pool.get("network", {}).get("highSpeed"):
                for key in pool["clusters"]:
                    _install(gpukube, document["clusters"][key])


def _install(gpukube: Gpukube, cluster: Document) -> None:
    document = kubeconfig(gpukube.info)["kubeconfig"]
    assert isinstance(document, dict)
    provider, name = str(cluster["provider"]), str(cluster["name"])
    names = [str(entry["name"]) for entry in document["contexts"]]
    (context,) = [one for one in names if one.endswith(name) and one.startswith(_CONTEXTS.get(provider, name))]
    config = KubeConfig.from_dict({**document, "current-context": context})
    client = Client(config, timeout=Timeout(PATIENCE_S), trust_env=False)
    for part in _PARTS[provider]():
        client.create(part, namespace=_NAMESPACE)
    if provider == "gke":
        _add_networks(client)
    client.close()


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
