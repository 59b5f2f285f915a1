"""Machines of a pool as Kubernetes nodes: labels, taints and GPUs as that cloud gives them."""

from __future__ import annotations

import json
import ssl
from base64 import b64decode
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from gpukube_sandbox import daemon
from gpukube_sandbox.aks.sizes import PROFILES, SIZES, SLICES, find_size, mig_layout
from gpukube_sandbox.kube.nodes.hardware import find_model
from sandbox_tests.aks.arm import GROUP, MIG, NAME, SUBSCRIPTION, T4, Arm
from sandbox_tests.waiting import PATIENCE_S, wait_for
from sandbox_tests.watches import Nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.daemon import SandboxInfo

Node = dict[str, Any]


@pytest.fixture
def kube(arm: Arm) -> Iterator[httpx.Client]:
    """A client of the cluster's Kubernetes API."""
    with kube_client(arm) as client:
        yield client


def kube_client(arm: Arm) -> httpx.Client:
    """Make a client from the user credential, as `az aks get-credentials` would."""
    found = arm.sdk.managed_clusters.list_cluster_user_credentials(GROUP, NAME).kubeconfigs
    assert found
    document = json.loads(bytes(found[0].value or b""))
    token = document["users"][0]["user"]["token"]
    cluster = document["clusters"][0]["cluster"]
    trusted = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(
        base_url=cluster["server"], verify=trusted, trust_env=False, headers=headers, timeout=PATIENCE_S
    )


def nodes(kube: httpx.Client, pool: str) -> list[Node]:
    """Nodes of a pool, by the label that AKS gives them."""
    query = {"labelSelector": f"kubernetes.azure.com/agentpool={pool}"}
    return list(kube.get("/api/v1/nodes", params=query).json()["items"])


def is_ready(node: Node) -> bool:
    """Whether the kubelet says so."""
    return any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"])


def test_node_when_of_a_gpu_pool_then_labelled_as_aks_does(arm: Arm, kube: httpx.Client) -> None:
    arm.create("gpu1", {**T4, "nodeLabels": {"team": "vision"}, "nodeTaints": ["sku=gpu:NoSchedule"]})
    (node,) = nodes(kube, "gpu1")
    expected = {
        "agentpool": "gpu1",
        "accelerator": "nvidia",
        "kubernetes.azure.com/accelerator": "nvidia",
        "kubernetes.azure.com/cluster": "MC_ml_train_eastus",
        "kubernetes.azure.com/mode": "user",
        "kubernetes.azure.com/os-sku": "Ubuntu",
        "kubernetes.azure.com/os-sku-effective": "Ubuntu2404",
        "kubernetes.azure.com/priority": "regular",
        "kubernetes.azure.com/sku-cpu": "4",
        "node.kubernetes.io/instance-type": "Standard_NC4as_T4_v3",
        "topology.kubernetes.io/region": "eastus",
        "topology.kubernetes.io/zone": "0",
        "team": "vision",
    }
    assert expected.items() <= node["metadata"]["labels"].items()
    assert "kubernetes.azure.com/dcgm-exporter" not in node["metadata"]["labels"]
    assert node["spec"]["taints"] == [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}]
    assert node["spec"]["providerID"].startswith(
        f"azure:///subscriptions/{SUBSCRIPTION}/resourceGroups/mc_ml_train_eastus"
    )
    assert node["metadata"]["name"].startswith("aks-gpu1-")
    assert "nvidia.com/gpu" not in node["status"]["allocatable"]  # nobody installed a plugin


def test_node_when_of_a_system_pool_then_no_accelerator_label_and_no_taint(kube: httpx.Client) -> None:
    wait_for(lambda: nodes(kube, "nodepool1"))
    (node,) = nodes(kube, "nodepool1")
    assert node["metadata"]["labels"]["kubernetes.azure.com/mode"] == "system"
    assert "accelerator" not in node["metadata"]["labels"]
    wait_for(lambda: is_ready(nodes(kube, "nodepool1")[0]))
    assert not nodes(kube, "nodepool1")[0]["spec"].get("taints")


def test_node_when_spot_then_labelled_and_tainted(arm: Arm, kube: httpx.Client) -> None:
    arm.create("spot", {**T4, "scaleSetPriority": "Spot"})
    (node,) = nodes(kube, "spot")
    labels = node["metadata"]["labels"]
    assert (labels["kubernetes.azure.com/scalesetpriority"], labels["kubernetes.azure.com/priority"]) == (
        "spot",
        "spot",
    )
    taint = {"key": "kubernetes.azure.com/scalesetpriority", "value": "spot", "effect": "NoSchedule"}
    assert taint in node["spec"]["taints"]


def test_node_when_zones_are_given_then_dealt_out_in_turn(arm: Arm, kube: httpx.Client) -> None:
    arm.create("gpu1", {**T4, "count": 3, "availabilityZones": ["1", "2"]})
    zones = [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes(kube, "gpu1")]
    assert sorted(zones) == ["eastus-1", "eastus-1", "eastus-2"]


def test_node_when_mig_then_ready_only_after_its_reboot(arm: Arm, kube: httpx.Client) -> None:
    history = Nodes(kube, "kubernetes.azure.com/agentpool=mig")
    arm.create("mig", MIG)
    assert history.readiness() == ["False", "Unknown", "True"]


def test_node_when_managed_then_the_host_advertises_without_any_chart(arm: Arm, kube: httpx.Client) -> None:
    arm.create("managed", {**T4, "gpuProfile": {"nvidia": {"managementMode": "Managed"}}})
    wait_for(lambda: nodes(kube, "managed")[0]["status"]["allocatable"].get("nvidia.com/gpu") == "1")
    assert nodes(kube, "managed")[0]["metadata"]["labels"]["kubernetes.azure.com/dcgm-exporter"] == "enabled"


SETTINGS: dict[str, Any] = {
    "kubeletConfig": {
        "cpuManagerPolicy": "static", "cpuCfsQuota": False, "topologyManagerPolicy": "restricted", "podMaxPids": 4096,
        "containerLogMaxSizeMB": 50, "containerLogMaxFiles": 4, "imageGcHighThreshold": 80, "imageGcLowThreshold": 70,
        "allowedUnsafeSysctls": ["net.core.somaxconn"],
    },
    "linuxOSConfig": {
        "transparentHugePageEnabled": "madvise",
        "sysctls": {"netCoreSomaxconn": 8192, "vmSwappiness": 10, "netIpv4TcpTwReuse": True,
                    "netIpv4IpLocalPortRange": "32768 60000"},
    },
}  # fmt: skip


def test_node_when_its_pool_has_settings_then_its_kubelet_and_kernel_have_them(arm: Arm, kube: httpx.Client) -> None:
    made = arm.create("gpu1", {**T4, **SETTINGS})
    assert (made["kubeletConfig"], made["linuxOSConfig"]) == (SETTINGS["kubeletConfig"], SETTINGS["linuxOSConfig"])
    name = nodes(kube, "gpu1")[0]["metadata"]["name"]
    found = kube.get(f"/api/v1/nodes/{name}/proxy/configz").json()["kubeletconfig"]
    expected = {
        "cpuManagerPolicy": "static", "cpuCFSQuota": False, "topologyManagerPolicy": "restricted", "podPidsLimit": 4096,
        "containerLogMaxSize": "50M", "containerLogMaxFiles": 4, "imageGCHighThresholdPercent": 80,
        "imageGCLowThresholdPercent": 70, "allowedUnsafeSysctls": ["net.core.somaxconn"],
    }  # fmt: skip
    assert expected.items() <= found.items()
    assert daemon.sysctls(arm.info, NAME)[name] == {
        "net.core.somaxconn": "8192",
        "vm.swappiness": "10",
        "net.ipv4.tcp_tw_reuse": "1",
        "net.ipv4.ip_local_port_range": "32768\t60000",
    }


PROFILES_OF_POOLS: dict[str, Any] = {
    "networkProfile": {
        "allowedHostPorts": [{"portStart": 100, "portEnd": 200, "protocol": "TCP"}],
        "nodePublicIPTags": [{"ipTagType": "RoutingPreference", "tag": "Internet"}],
        "dranet": {"mode": "Managed"},
    },
    "enableNodePublicIP": True,
    "localDNSProfile": {"mode": "Required", "vnetDNSOverrides": {".": {"protocol": "ForceTCP"}}},
    "artifactStreamingProfile": {"enabled": True},
    "messageOfTheDay": "aGk=",
}


def test_pool_when_it_has_profiles_then_they_are_kept(arm: Arm) -> None:
    made = arm.create("gpu1", {**T4, **PROFILES_OF_POOLS})
    assert {key: made[key] for key in PROFILES_OF_POOLS} == PROFILES_OF_POOLS


@pytest.mark.parametrize(("registered", "expected"), [(True, "63"), (False, None)])
def test_node_when_of_an_infiniband_size_then_the_rdma_plugin_finds_adapters_if_the_feature_is_registered(
    sandbox: SandboxInfo, *, registered: bool, expected: str | None
) -> None:
    daemon.add_cluster(sandbox, SUBSCRIPTION, GROUP, NAME, options={"infiniband": registered})
    config = {"configList": [{"resourceName": "shared_ib", "rdmaHcaMax": 63, "selectors": {"vendors": ["15b3"]}}]}
    mounted = {"name": "config", "mountPath": "/k8s-rdma-shared-dev-plugin"}
    image = "nvcr.io/nvidia/mellanox/k8s-rdma-shared-dev-plugin:network-operator-v26.4.0"
    pods = {
        "metadata": {"labels": {"app": "rdma"}},
        "spec": {
            "containers": [{"name": "rdma", "image": image, "volumeMounts": [mounted]}],
            "volumes": [{"name": "config", "configMap": {"name": "rdma-devices"}}],
        },
    }
    kinds = {
        "/api/v1/namespaces/default/configmaps": {
            "metadata": {"name": "rdma-devices"}, "data": {"config.json": json.dumps(config)},
        },
        "/apis/apps/v1/namespaces/default/daemonsets": {
            "metadata": {"name": "rdma"}, "spec": {"selector": {"matchLabels": {"app": "rdma"}}, "template": pods},
        },
    }  # fmt: skip
    with Arm(sandbox) as arm, kube_client(arm) as kube:
        arm.create("ib", {"count": 1, "vmSize": "Standard_ND96isr_H100_v5"})
        for path, body in kinds.items():
            kube.post(path, json=body).raise_for_status()

        def is_running() -> bool:
            name = nodes(kube, "ib")[0]["metadata"]["name"]
            pods = kube.get("/api/v1/pods", params={"fieldSelector": f"spec.nodeName={name}"}).json()["items"]
            return any(
                pod["metadata"]["labels"].get("app") == "rdma" and pod["status"].get("phase") == "Running"
                for pod in pods
            )

        wait_for(is_running)
        if expected:
            wait_for(lambda: "rdma/shared_ib" in nodes(kube, "ib")[0]["status"]["allocatable"])
        assert nodes(kube, "ib")[0]["status"]["allocatable"].get("rdma/shared_ib") == expected


def test_node_when_the_pool_changes_then_only_the_pools_keys_change(arm: Arm, kube: httpx.Client) -> None:
    made = arm.create("gpu1", {**T4, "nodeLabels": {"old": "1"}, "nodeTaints": ["a=b:NoSchedule"]})
    name = nodes(kube, "gpu1")[0]["metadata"]["name"]
    patch = {"metadata": {"labels": {"mine": "1"}}}
    headers = {"Content-Type": "application/merge-patch+json"}
    kube.patch(f"/api/v1/nodes/{name}", content=json.dumps(patch), headers=headers).raise_for_status()
    arm.create("gpu1", {**made, "nodeLabels": {"new": "2"}, "nodeTaints": ["c=d:NoExecute"]})
    labels = nodes(kube, "gpu1")[0]["metadata"]["labels"]
    assert (labels.get("old"), labels["new"], labels["mine"]) == (None, "2", "1")
    assert nodes(kube, "gpu1")[0]["spec"]["taints"] == [{"key": "c", "value": "d", "effect": "NoExecute"}]


def test_cluster_when_somebody_installed_the_static_plugin_then_it_advertises(sandbox: SandboxInfo) -> None:
    daemon.add_cluster(sandbox, SUBSCRIPTION, GROUP, NAME, options={"foreignPlugin": True})
    with Arm(sandbox) as arm, kube_client(arm) as kube:
        arm.create("gpu1", {**T4, "nodeTaints": ["sku=gpu:NoSchedule"]})
        (plugin,) = kube.get("/apis/apps/v1/namespaces/gpu-resources/daemonsets").json()["items"]
        assert plugin["metadata"]["name"] == "nvidia-device-plugin-daemonset"
        assert plugin["spec"]["template"]["metadata"]["labels"] == {"name": "nvidia-device-plugin-ds"}
        wait_for(lambda: nodes(kube, "gpu1")[0]["status"]["allocatable"].get("nvidia.com/gpu") == "1")


def test_rbac_when_denied_then_403(arm: Arm, kube: httpx.Client) -> None:
    daemon.deny(arm.info, NAME, ("list", "nodes"))
    assert kube.get("/api/v1/nodes").status_code == 403
    daemon.deny(arm.info, NAME)
    assert kube.get("/api/v1/nodes").status_code == 200


def test_charts_when_asked_then_the_repository_answers(arm: Arm) -> None:
    index = arm.http.get(f"{arm.info.charts_url}/index.yaml")
    assert "nvidia-device-plugin" in index.text
    assert arm.http.get(f"{arm.info.charts_url}/nvidia-device-plugin-0.20.0.tgz").content[:2] == b"\x1f\x8b"
    assert {entry["service"] for entry in daemon.requests_since(arm.info)} == {"charts"}


# size, value -> instances per node: the evidence in release notes, docs and AgentBaker's tests
LAYOUTS: list[tuple[str, str, str, int]] = [
    ("Standard_ND96asr_v4", "MIG1g", "1g.5gb", 56),
    ("Standard_ND96asr_v4", "MIG2g", "2g.10gb", 24),
    ("Standard_ND96asr_v4", "MIG3g", "3g.20gb", 16),
    ("Standard_ND96asr_v4", "MIG4g", "4g.20gb", 8),
    ("Standard_ND96asr_v4", "MIG7g", "7g.40gb", 8),
    ("Standard_NC24ads_A100_v4", "MIG2g", "2g.20gb", 3),
    ("Standard_NC48ads_A100_v4", "MIG2g", "2g.20gb", 6),
    ("Standard_NC24ads_A100_v4", "MIG1g", "1g.10gb", 7),
    ("Standard_NC80adis_H100_v5", "MIG1g", "1g.12gb", 14),
    ("Standard_ND96isr_H100_v5", "MIG1g", "1g.10gb", 56),
    ("Standard_ND96isr_H200_v5", "MIG3g", "3g.71gb", 16),
]


@pytest.mark.parametrize(("name", "value", "profile", "instances"), LAYOUTS)
def test_mig_layout_when_the_size_can_then_every_gpu_is_cut_alike(
    name: str, value: str, profile: str, instances: int
) -> None:
    size = find_size(name)
    assert size is not None
    layout = mig_layout(size, value)
    assert (set(layout), len(layout) * size.gpus) == ({profile}, instances)


def test_sizes_when_they_have_gpus_then_the_hardware_table_knows_model_and_profiles() -> None:
    models = {size.gpu for size in SIZES.values() if size.gpus}
    for name in models:
        known = find_model(name)
        assert set(PROFILES.get(name, {}).values()) <= set(known.profiles), name
    assert set(PROFILES) <= models
    assert all(set(slices) == {width for width, _ in SLICES.values()} for slices in PROFILES.values())
