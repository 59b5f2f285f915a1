"""High-speed networks: what their device plugins advertise, and pods that ask for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gpukube_sandbox.kube.cluster import GpuShape, NodeShape, Taint
from gpukube_sandbox.kube.nodes.nfd import worker_labels
from gpukube_sandbox.kube.nodes.settings import NodeSettings
from gpukube_sandbox.kube.store.kinds import CORE
from gpukube_sandbox.kube.store.objects import spec, status
from sandbox_tests.kube.test_life import GPU_TAINT, TOLERATED, Bench, life

if TYPE_CHECKING:
    from gpukube_sandbox.kube.store.objects import JsonObject

EFA = "vpc.amazonaws.com/efa"
P5 = {"efa": 32}
H100 = GpuShape("H100-80GB", 8)
EFA_IMAGE = "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin:v0.5.20"
RDMA_IMAGE = "nvcr.io/nvidia/mellanox/k8s-rdma-shared-dev-plugin:network-operator-v26.4.0"
SRIOV_IMAGE = "nvcr.io/nvidia/mellanox/sriov-network-device-plugin:network-operator-v26.4.0"


def daemonset(name: str, image: str, **template: object) -> JsonObject:
    """A DaemonSet of one container."""
    labels = {"name": name}
    containers = [{"name": "plugin", "image": image, **(template.pop("container", None) or {})}]  # type: ignore[dict-item]
    pods = {"metadata": {"labels": labels}, "spec": {"containers": containers, **template}}
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": pods}}


def configured(image: str, path: str, config: JsonObject) -> tuple[JsonObject, JsonObject]:
    """A plugin and the ConfigMap that it reads."""
    mounted = {"volumeMounts": [{"name": "config", "mountPath": path}]}
    source = {"name": "devices", "items": [{"key": "config.json", "path": "config.json"}]}
    made = daemonset("rdma", image, container=mounted, volumes=[{"name": "config", "configMap": source}])
    return made, {"metadata": {"name": "devices"}, "data": {"config.json": json.dumps(config)}}


async def add(bench: Bench, name: str, fabric: dict[str, int], *taints: Taint, machine: str = "p5.48xlarge") -> None:
    await bench.cluster.add_node(NodeShape(name, machine=machine, gpu=H100, taints=taints, fabric=fabric, boot_s=1))


def free(bench: Bench, node: str, prefix: str) -> dict[str, str]:
    found: dict[str, str] = status(bench.get("nodes", node))["allocatable"]
    return {key: value for key, value in found.items() if key.startswith(prefix)}


def pending(bench: Bench, pod: str) -> str:
    """Why no node takes a pod."""
    found = status(bench.get("pods", pod))["conditions"]
    return next(str(one["message"]) for one in found if one["type"] == "PodScheduled")


def on_types(*types: str) -> JsonObject:
    expression = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(types)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def test_efa_when_its_plugin_runs_on_the_node_then_as_many_as_the_machine_has() -> None:
    async def story(bench: Bench) -> None:
        await add(bench, "n1", P5)
        await add(bench, "none", {})
        await add(bench, "other", P5, machine="p6.huge")
        await add(bench, "tainted", P5, GPU_TAINT)
        await bench.wait(60)
        assert free(bench, "n1", "vpc.") == {}, "nobody installed a plugin"
        affinity = on_types("p5.48xlarge")
        bench.put("daemonsets", daemonset("efa", EFA_IMAGE, affinity=affinity))
        await bench.wait(60)
        found = {name: free(bench, name, "vpc.") for name in ("n1", "none", "other", "tainted")}
        assert found == {"n1": {EFA: "32"}, "none": {}, "other": {}, "tainted": {}}
        bench.change("daemonsets", "efa", {"spec": {"template": {"spec": {"tolerations": TOLERATED}}}})
        await bench.wait(120)
        assert free(bench, "tainted", "vpc.") == {EFA: "32"}
        bench.cluster.store.delete(CORE["daemonsets"], "default", "efa")
        await bench.wait(60)
        assert free(bench, "n1", "vpc.") == {EFA: "0"}, "a kubelet never forgets a name"

    life(story)


def test_pod_when_it_asks_for_gpus_and_efa_then_its_gpus_are_its_own_and_the_rest_is_counted() -> None:
    async def story(bench: Bench) -> None:
        await add(bench, "n1", P5)
        bench.put("daemonsets", daemonset("efa", EFA_IMAGE))
        bench.put("daemonsets", daemonset("gpu", "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"))
        await bench.wait(60)
        limits = {EFA: 20, "nvidia.com/gpu": 2}
        smi = {"name": "c", "image": "nvidia/cuda", "command": ["nvidia-smi", "-L"], "resources": {"limits": limits}}
        for name in ("first", "second"):
            bench.put("pods", {"metadata": {"name": name}, "spec": {"containers": [smi], "restartPolicy": "Never"}})
        await bench.wait(4)
        assert spec(bench.get("pods", "first"))["nodeName"] == "n1"
        assert "Insufficient vpc.amazonaws.com/efa" in pending(bench, "second")
        await bench.wait(2)
        uid = bench.get("pods", "first")["metadata"]["uid"]
        assert len([line for line in bench.cluster.log_lines(uid, "c") if line.startswith("GPU ")]) == 2

    life(story)


def test_rdma_when_the_shared_plugin_runs_then_as_many_slots_as_its_config_map_says() -> None:
    async def story(bench: Bench) -> None:
        await add(bench, "n1", {"infiniband": 8})
        await add(bench, "none", {})
        entries = [
            {"resourceName": "shared_ib", "rdmaHcaMax": 63, "selectors": {"vendors": ["15b3"]}},
            {"resourceName": "other", "rdmaHcaMax": 9, "selectors": {"vendors": ["8086"]}},
            {"resourceName": "own", "resourcePrefix": "example.com", "rdmaHcaMax": 5, "selectors": {"drivers": ["x"]}},
        ]
        made, config = configured(RDMA_IMAGE, "/k8s-rdma-shared-dev-plugin", {"configList": entries})
        bench.put("configmaps", config)
        bench.put("daemonsets", made)
        await bench.wait(60)
        assert free(bench, "n1", "rdma/") == {"rdma/shared_ib": "63"}
        assert free(bench, "n1", "example.com/") == {"example.com/own": "5"}
        assert free(bench, "none", "rdma/") == {}

    life(story)


def test_rdma_when_the_sriov_plugin_runs_then_each_adapter_and_without_a_config_it_crashes() -> None:
    async def story(bench: Bench) -> None:
        await add(bench, "n1", {"infiniband": 8})
        entry = {"resourceName": "ib", "resourcePrefix": "rdma", "selectors": [{"vendors": ["15b3"], "isRdma": True}]}
        made, config = configured(SRIOV_IMAGE, "/etc/pcidp", {"resourceList": [entry]})
        bench.put("configmaps", {**config, "data": {"config.json": "{"}})
        bench.put("daemonsets", made)
        await bench.wait(30)
        (state,) = status(bench.pod_of("rdma"))["containerStatuses"]
        assert state["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        bench.change("configmaps", "devices", config)
        await bench.wait(600)
        assert free(bench, "n1", "rdma/") == {"rdma/ib": "8"}

    life(story)


def test_discovery_when_it_looks_for_adapters_then_it_labels_nodes_that_have_them() -> None:
    config = 'sources: {pci: {deviceClassWhitelist: ["0300", "0302", "0207"], deviceLabelFields: [vendor]}}'
    label = "feature.node.kubernetes.io/pci-15b3.present"
    assert label in worker_labels(config, gpu=True, infiniband=True)
    assert label not in worker_labels(config, gpu=True, infiniband=False)
    assert label not in worker_labels("", gpu=True, infiniband=True), "not among the classes that are usual"


def test_huge_pages_when_a_pod_asks_for_them_then_only_where_there_are_enough() -> None:
    async def story(bench: Bench) -> None:
        settings = NodeSettings(hugepages={"2Mi": 5128})
        await bench.cluster.add_node(NodeShape("n1", settings=settings, memory_gib=64, boot_s=1))
        await bench.wait(30)
        for name, amount in (("fits", "5120Mi"), ("more", "6Gi")):
            resources = {"limits": {"hugepages-2Mi": amount, "memory": "1Gi"}}
            body = {"containers": [{"name": "c", "image": "i", "command": ["sleep", "99d"], "resources": resources}]}
            bench.put("pods", {"metadata": {"name": name}, "spec": body})
        await bench.wait(10)
        assert spec(bench.get("pods", "fits"))["nodeName"] == "n1"
        assert "Insufficient hugepages-2Mi" in pending(bench, "more")

    life(story)


DRANET_IMAGE = "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/dranet:v1.2.0-eksbuild.2"


def slices(bench: Bench) -> dict[str, list[JsonObject]]:
    """The devices of the ResourceSlices, by node."""
    found = bench.all_of("resourceslices")
    assert {spec(one)["driver"] for one in found} <= {"dra.net"}
    return {spec(one)["nodeName"]: spec(one).get("devices", []) for one in found}


def test_dranet_when_it_runs_on_a_node_then_a_slice_has_its_devices_until_it_or_the_node_is_gone() -> None:
    async def story(bench: Bench) -> None:
        await add(bench, "n1", P5)
        await add(bench, "ib", {"infiniband": 8}, machine="Standard_ND96isr_H100_v5")
        await add(bench, "tainted", P5, GPU_TAINT)
        await bench.wait(60)
        assert slices(bench) == {}
        bench.put("daemonsets", daemonset("dranet", DRANET_IMAGE))
        await bench.wait(60)
        found = slices(bench)
        assert {node: len(devices) for node, devices in found.items()} == {"n1": 32, "ib": 8}
        assert len({one["name"] for one in found["n1"]}) == 32
        roots = [one["attributes"]["resource.kubernetes.io/pcieRoot"]["string"] for one in found["n1"]]
        assert {roots.count(root) for root in roots} == {4}, "each GPU shares a root with four interfaces"
        shown = {one["attributes"]["dra.net/pciDevice"]["string"] for one in found["n1"]}
        assert shown == {"Elastic Fabric Adapter (EFA)"}, "as the DeviceClass of the chart selects them"
        assert free(bench, "n1", "vpc.") == {}, "no device plugin"
        bench.cluster.store.delete(CORE["nodes"], "", "ib")
        await bench.wait(60)
        assert set(slices(bench)) == {"n1"}
        bench.cluster.store.delete(CORE["daemonsets"], "default", "dranet")
        await bench.wait(60)
        assert slices(bench) == {}

    life(story)
