"""NVIDIA's DRA driver on nodes: when its plugin runs, what it publishes, and pods with claims."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox.faults import FaultBook, parse_fault
from gpukube_sandbox.kube.cluster import GpuShape, NodeShape
from gpukube_sandbox.kube.nodes.dradriver import read_gates
from gpukube_sandbox.kube.nodes.pluginconfig import Crash
from gpukube_sandbox.kube.store.kinds import CORE
from gpukube_sandbox.kube.store.objects import spec, status
from sandbox_tests.kube.test_life import GPU_TAINT, TOLERATED, Bench, life, plugin, workload

if TYPE_CHECKING:
    from gpukube_sandbox.kube.nodes.machines import Machine
    from gpukube_sandbox.kube.store.objects import JsonObject

LABELLED = {"nvidia.com/gpu.present": "true"}
WHOLE = GpuShape("H100-80GB", 8)
MIG_ON = GpuShape("H100-80GB", 2, ((), ("1g.10gb", "3g.40gb")))
BARE = GpuShape("A100-40GB", 8, driver=False, runtime="")
ON_GKE = GpuShape("A100-40GB", 8, driver_root="/home/kubernetes/bin/nvidia", runtime="")
IMAGE = "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.4.1"


def driver(
    root: str = "/", *, gates: str = "", name: str = "dra", tolerations: list[dict[str, str]] | None = None
) -> JsonObject:
    """Its DaemonSet as the chart renders it, cut down to what decides."""
    env = [{"name": "NVIDIA_DRIVER_ROOT", "value": root}]
    init = {"name": "init-container", "image": IMAGE, "command": ["bash", "/usr/bin/kubelet-plugin-prestart.sh"]}
    main = {"name": "gpus", "image": IMAGE, "command": ["bash", "-c"], "args": ["gpu-kubelet-plugin -v $(V)"]}
    pod = {
        "initContainers": [init | {"env": env}],
        "containers": [main | {"env": [*env, {"name": "FEATURE_GATES", "value": gates}]}],
        "nodeSelector": LABELLED,
        "tolerations": TOLERATED if tolerations is None else tolerations,
    }
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": template}}


def classes(bench: Bench) -> None:
    for kind in ("gpu", "mig"):
        test = f"device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == '{kind}'"
        bench.cluster.store.create(
            CORE["deviceclasses"],
            {"metadata": {"name": f"{kind}.nvidia.com"}, "spec": {"selectors": [{"cel": {"expression": test}}]}},
        )


async def ready(bench: Bench, shape: GpuShape, name: str = "n1", **more: object) -> None:
    """A node with these GPUs, in a cluster where the driver is installed."""
    await bench.cluster.add_node(NodeShape(name, gpu=shape, labels=LABELLED, boot_s=1, **more))  # type: ignore[arg-type]
    await bench.wait(60)


def slices(bench: Bench, node: str = "n1") -> list[JsonObject]:
    found = [item for item in bench.cluster.store.all_of(CORE["resourceslices"]) if spec(item)["nodeName"] == node]
    return sorted(found, key=lambda item: str(item["metadata"]["name"]))


def devices(bench: Bench, node: str = "n1") -> list[JsonObject]:
    return [device for item in slices(bench, node) for device in spec(item).get("devices") or ()]


def names(bench: Bench, node: str = "n1") -> list[str]:
    return [str(device["name"]) for device in devices(bench, node)]


def restart(bench: Bench, node: str = "n1") -> None:
    bench.cluster.store.delete(CORE["pods"], "default", bench.pod_of("dra", node)["metadata"]["name"])


def machine(bench: Bench) -> Machine:
    return bench.cluster._kubelets.machines["n1"]


def cut(bench: Bench, layout: tuple[str, ...]) -> None:
    """Cut every GPU of a running machine, as nvidia-smi does."""
    found = machine(bench)
    assert found.shape.gpu is not None
    found.shape = replace(found.shape, gpu=replace(found.shape.gpu, mig_layout=layout))


def log(bench: Bench, pod: JsonObject, container: str) -> str:
    return "\n".join(bench.cluster.log_lines(pod["metadata"]["uid"], container))


def allocate(bench: Bench, claim: str, pod: str, *found: str, config: list[JsonObject] | None = None) -> None:
    """Allocate devices as the scheduler does, and reserve them for a pod."""
    results = [{"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n1", "device": name} for name in found]
    uid = bench.get("pods", pod)["metadata"]["uid"]
    allocated = {
        "allocation": {"devices": {"results": results, "config": config or []}},
        "reservedFor": [{"resource": "pods", "name": pod, "uid": uid}],
    }
    bench.cluster.store.update(
        CORE["resourceclaims"], bench.get("resourceclaims", claim) | {"status": allocated}, part="status"
    )


def claim(name: str) -> JsonObject:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    return {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}


def claimant(name: str, of: str, *, node: str = "n1", command: str = "nvidia-smi") -> JsonObject:
    """A pod on a node with a claim that its first container uses and its second does not."""
    used = {"name": "main", "image": "ubuntu", "command": [command, "-L"], "resources": {"claims": [{"name": "gpu"}]}}
    return {
        "metadata": {"name": name},
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "resourceClaims": [{"name": "gpu", "resourceClaimName": of}],
            "containers": [used, {"name": "aside", "image": "ubuntu", "command": ["sleep", "1"]}],
        },
    }


def events(bench: Bench, pod: str) -> list[str]:
    return [
        f"{item['reason']}: {item['message']}"
        for item in bench.all_of("events")
        if item["involvedObject"]["name"] == pod
    ]


# publishing


def test_plugin_when_it_runs_then_one_slice_with_the_gpus_of_the_machine_and_nothing_in_allocatable() -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", driver())
        await ready(bench, WHOLE)
        (item,) = slices(bench)
        pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
        assert (spec(item)["driver"], spec(item)["pool"]) == ("gpu.nvidia.com", pool)
        assert item["metadata"]["name"].startswith("n1-gpu.nvidia.com-")
        assert [owner["kind"] for owner in item["metadata"]["ownerReferences"]] == ["Node"]
        assert names(bench) == [f"gpu-{at}" for at in range(8)]
        first = spec(item)["devices"][0]
        assert first["capacity"] == {"memory": {"value": "81559Mi"}}
        assert first["attributes"] == {
            "type": {"string": "gpu"},
            "uuid": {"string": "GPU-n1-0"},
            "productName": {"string": "NVIDIA H100 80GB HBM3"},
            "brand": {"string": "Nvidia"},
            "architecture": {"string": "Hopper"},
            "cudaComputeCapability": {"version": "9.0.0"},
            "driverVersion": {"version": "580.159.4"},
            "cudaDriverVersion": {"version": "13.0.0"},
            "resource.kubernetes.io/pciBusID": {"string": "0000:10:01.0"},
            "resource.kubernetes.io/pcieRoot": {"string": "pci0000:10"},
        }
        assert bench.gpus() == {}

    life(story)


def test_plugin_when_gpus_are_cut_then_their_instances_and_of_one_without_instances_nothing() -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", driver())
        await ready(bench, MIG_ON)
        small, large = devices(bench)
        assert [small["name"], large["name"]] == ["gpu-1-mig-1g10gb-0-4", "gpu-1-mig-3g40gb-3-0"]
        found = small["attributes"]
        assert [found[key]["string"] for key in ("type", "uuid", "parentUUID", "profile")] == [
            "mig", "MIG-n1-1-0", "GPU-n1-1", "1g.10gb",
        ]  # fmt: skip
        assert large["capacity"]["multiprocessors"] == {"value": "60"}
        assert [key for key in large["capacity"] if key.startswith("memorySlice")] == [
            "memorySlice0", "memorySlice1", "memorySlice2", "memorySlice3",
        ]  # fmt: skip

    life(story)


def test_plugin_when_no_gpu_has_a_device_then_an_empty_slice() -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", driver())
        await ready(bench, GpuShape("H100-80GB", 2, ((), ())))
        assert [spec(item).get("devices") for item in slices(bench)] == [None]

    life(story)


def test_plugin_when_adapters_are_near_gpus_then_they_share_a_root() -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", driver())
        await ready(bench, WHOLE, fabric={"efa": 32})
        roots = [device["attributes"]["resource.kubernetes.io/pcieRoot"]["string"] for device in devices(bench)]
        assert roots[:2] == ["pci0000:10", "pci0000:14"]

    life(story)


@pytest.mark.parametrize("wrong", ["label", "taint"])
def test_plugin_when_no_pod_of_it_may_run_on_a_node_then_no_slice(wrong: str) -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", driver(tolerations=[]))
        marks, taints = ({}, ()) if wrong == "label" else (LABELLED, (GPU_TAINT,))
        await bench.cluster.add_node(NodeShape("n1", gpu=WHOLE, labels=marks, taints=taints, boot_s=1))
        await bench.wait(60)
        assert slices(bench) == []

    life(story)


@pytest.mark.parametrize(("shape", "right"), [(WHOLE, "/"), (ON_GKE, "/home/kubernetes/bin/nvidia/")])
def test_plugin_when_the_driver_is_elsewhere_then_its_pod_waits_and_names_the_value(
    shape: GpuShape, right: str
) -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", driver("/run/nvidia/driver"))
        await ready(bench, shape)
        pod = bench.pod_of("dra")
        assert status(pod)["phase"] == "Pending"
        assert "nvidiaDriverRoot" in log(bench, pod, "init-container")
        assert slices(bench) == []
        bench.cluster.store.delete(CORE["daemonsets"], "default", "dra")
        await bench.wait(10)
        bench.put("daemonsets", driver(right, name="dra-right"))
        await bench.wait(20)
        assert len(devices(bench)) == 8

    life(story)


def test_plugin_when_a_container_installs_the_driver_then_it_starts_after_that() -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", driver("/run/nvidia/driver"))
        await ready(bench, BARE)
        assert (status(bench.pod_of("dra"))["phase"], slices(bench)) == ("Pending", [])
        machine(bench).load_driver("/run/nvidia/driver")
        await bench.wait(20)
        assert len(devices(bench)) == 8

    life(story)


def test_plugin_when_mig_changes_then_new_devices_after_a_restart_only_and_a_higher_generation() -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", driver())
        await ready(bench, WHOLE)
        cut(bench, ("7g.80gb",))
        await bench.wait(60)
        assert names(bench)[0] == "gpu-0"
        restart(bench)
        await bench.wait(20)
        assert [name.partition("-mig-")[2] for name in names(bench)] == ["7g80gb-5-0"] * 8
        (item,) = slices(bench)
        assert spec(item)["pool"]["generation"] == 2

    life(story)


def test_slices_when_the_plugin_restarts_then_kept_and_deleted_thirty_seconds_after_it_is_gone() -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", driver())
        await ready(bench, WHOLE)
        (before,) = slices(bench)
        restart(bench)
        await bench.wait(20)
        assert slices(bench) == [before]
        bench.cluster.store.delete(CORE["daemonsets"], "default", "dra")
        await bench.wait(25)
        assert len(slices(bench)) == 1
        await bench.wait(20)
        assert slices(bench) == []

    life(story)


def test_slices_when_somebody_deletes_them_then_written_again() -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", driver())
        await ready(bench, WHOLE)
        (item,) = slices(bench)
        bench.cluster.store.delete(CORE["resourceslices"], "", item["metadata"]["name"])
        await bench.wait(1)
        (again,) = slices(bench)
        assert again["metadata"]["name"] != item["metadata"]["name"]

    life(story)


def test_slices_when_the_node_goes_then_gone_with_it() -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", driver())
        await ready(bench, WHOLE)
        await bench.cluster.remove_node("n1")
        assert slices(bench) == []

    life(story)


def test_slices_when_the_machine_reboots_then_wiped_and_read_anew() -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", driver())
        await ready(bench, WHOLE)
        (before,) = slices(bench)
        machine(bench).shut_down()
        machine(bench).up = True
        restart(bench)
        await bench.wait(30)
        (after,) = slices(bench)
        assert after["metadata"]["name"] != before["metadata"]["name"]
        assert len(devices(bench)) == 8

    life(story)


GATES = {
    "TimeSlicingSettings=true,": "",
    "DynamicMIG=true,MPSSupport=true,": "DynamicMIG is currently mutually exclusive with MPSSupport",
    "PassthroughSupport=true,NVMLDeviceHealthCheck=true": "mutually exclusive with NVMLDeviceHealthCheck",
    "IMEXDaemonsWithDNSNames=false,": "ComputeDomainCliques requires IMEXDaemonsWithDNSNames to also be enabled",
    "DeviceMetadata=true": "DeviceMetadata requires PassthroughSupport",
    "Other=true": "unrecognized feature gate: Other",
    "DynamicMIG=true": "the gpukube sandbox does not emulate",
}


@pytest.mark.parametrize("gates", GATES)
def test_gates_when_read_then_those_that_exclude_each_other_end_the_plugin(gates: str) -> None:
    if not GATES[gates]:
        assert read_gates(gates)["TimeSlicingSettings"]
        return
    with pytest.raises(Crash, match=GATES[gates]):
        read_gates(gates)


def test_plugin_when_gates_exclude_each_other_then_it_crashes_again_and_again() -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", driver(gates="DynamicMIG=true,MPSSupport=true,"))
        await ready(bench, WHOLE)
        (container,) = status(bench.pod_of("dra"))["containerStatuses"]
        assert container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert slices(bench) == []

    life(story)


# pods with claims


def test_pod_when_its_claim_is_allocated_then_its_container_sees_these_devices_and_the_other_none() -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", driver())
        await ready(bench, GpuShape("A100-40GB", 2, (("1g.5gb",) * 7, None)))
        bench.put("resourceclaims", claim("c"))
        bench.put("pods", claimant("proof", "c"))
        allocate(bench, "c", "proof", "gpu-1", names(bench)[2])
        await bench.wait(10)
        pod = bench.get("pods", "proof")
        assert status(pod)["phase"] == "Succeeded", events(bench, "proof")
        assert log(bench, pod, "main").splitlines() == [
            "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-n1-0)",
            "  MIG 1g.5gb      Device  0: (UUID: MIG-n1-0-2)",
            "GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-n1-1)",
        ]

    life(story)


UNREADY = {
    "no plugin": "DRA driver gpu.nvidia.com is not registered",
    "another device": 'allocatable not found for device "gpu-9"',
    "a strategy": "unknown GPU sharing strategy: TimeSlicing",
}


@pytest.mark.parametrize("case", UNREADY)
def test_pod_when_its_claim_cannot_be_prepared_then_creating_with_the_kubelets_words(case: str) -> None:
    async def story(bench: Bench) -> None:
        if case != "no plugin":
            bench.put("daemonsets", driver())
        await ready(bench, WHOLE)
        bench.put("resourceclaims", claim("c"))
        bench.put("pods", claimant("proof", "c"))
        parameters = {
            "apiVersion": "resource.nvidia.com/v1beta1",
            "kind": "GpuConfig",
            "sharing": {"strategy": "TimeSlicing"},
        }
        opaque = {"source": "FromClaim", "opaque": {"driver": "gpu.nvidia.com", "parameters": parameters}}
        allocate(
            bench,
            "c",
            "proof",
            "gpu-9" if case == "another device" else "gpu-0",
            config=[opaque] if case == "a strategy" else None,
        )
        await bench.wait(10)
        pod = bench.get("pods", "proof")
        assert status(pod)["containerStatuses"][0]["state"]["waiting"]["reason"] == "ContainerCreating"
        failed = "FailedPrepareDynamicResources: Failed to prepare dynamic resources: prepare dynamic resources: "
        assert any(line.startswith(failed) and UNREADY[case] in line for line in events(bench, "proof"))
        if case == "no plugin":
            bench.put("daemonsets", driver())
            await bench.wait(20)
            assert status(bench.get("pods", "proof"))["phase"] == "Succeeded"

    life(story)


def test_pod_when_the_scheduler_allocates_its_template_then_it_prints_the_uuid_of_that_device() -> None:
    async def story(bench: Bench) -> None:
        classes(bench)
        bench.put("daemonsets", driver())
        await ready(bench, MIG_ON)
        test = "device.attributes['gpu.nvidia.com'].profile == '3g.40gb'"
        wanted = {"deviceClassName": "mig.nvidia.com", "selectors": [{"cel": {"expression": test}}]}
        template = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": wanted}]}}}
        bench.put("resourceclaimtemplates", {"metadata": {"name": "large"}, "spec": template})
        pod = claimant("proof", "")
        del pod["spec"]["nodeName"]
        pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "large"}]
        bench.put("pods", pod)
        await bench.wait(6)
        claims = bench.all_of("resourceclaims")
        (result,) = status(claims[0])["allocation"]["devices"]["results"]
        assert (result["pool"], result["device"]) == ("n1", "gpu-1-mig-3g40gb-3-0")
        assert "MIG-n1-1-1" in log(bench, bench.get("pods", "proof"), "main")
        await bench.wait(20)
        assert bench.all_of("resourceclaims") == []

    life(story)


def test_pod_when_mig_changed_under_the_plugin_then_the_old_device_cannot_be_prepared() -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", driver())
        await ready(bench, WHOLE)
        cut(bench, ("7g.80gb",))
        bench.put("resourceclaims", claim("c"))
        bench.put("pods", claimant("proof", "c"))
        allocate(bench, "c", "proof", "gpu-0")
        await bench.wait(10)
        assert any("error getting device handle for uuid 'GPU-n1-0'" in line for line in events(bench, "proof"))

    life(story)


def test_pod_when_the_kubelet_is_older_than_the_api_then_started_without_its_devices() -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", driver())
        await ready(bench, WHOLE, kubelet="1.33.5")
        bench.put("resourceclaims", claim("c"))
        bench.put("pods", claimant("proof", "c"))
        allocate(bench, "c", "proof", "gpu-0")
        await bench.wait(10)
        assert status(bench.get("pods", "proof"))["phase"] == "Failed", "there is no nvidia-smi in its container"

    life(story)


def test_holders_when_two_advertisers_are_on_a_node_then_both_pods_with_the_same_gpu() -> None:
    async def story(bench: Bench) -> None:
        bench.put("daemonsets", driver())
        bench.put("daemonsets", plugin(configs=False))
        await ready(bench, GpuShape("T4-16GB", 1))
        assert (bench.gpus(), names(bench)) == ({"nvidia.com/gpu": "1"}, ["gpu-0"])
        bench.put("resourceclaims", claim("c"))
        bench.put("pods", claimant("claims", "c", command="sleep 600 #"))
        allocate(bench, "c", "claims", "gpu-0")
        bench.put("pods", workload("counts", {"nvidia.com/gpu": 1}))
        await bench.wait(10)
        assert await bench.cluster.gpu_holders() == {"n1": {"GPU-n1-0": ["default/claims", "default/counts"]}}

    life(story)


# faults


def faulty(bench: Bench, action: str, times: int = 1) -> FaultBook:
    book = FaultBook()
    book.add(parse_fault({"action": action, "pool": "^gpu$", "times": times}))
    bench.cluster.node_faults = partial(book.node, "aws", "train")
    return book


FAULTS: dict[str, tuple[list[str], int, bool]] = {
    "late-driver": ([], 1, False),
    "slices-lost": ([], 0, False),
    "incomplete-pool": (["gpu-0", "gpu-1"], 2, False),
    "tainted-device": (["gpu-0", "gpu-1"], 1, True),
}
"""Action -> devices, the count of slices that the pool announces, and whether the first device is tainted."""


@pytest.mark.parametrize("action", FAULTS)
def test_fault_when_it_strikes_the_plugins_start_then_until_the_next_start(action: str) -> None:
    async def story(bench: Bench) -> None:
        bench.cluster.kubernetes_version = "1.36.0"
        faulty(bench, action)
        bench.put("daemonsets", driver())
        await ready(bench, GpuShape("T4-16GB", 2), pool="gpu")
        found, count, is_tainted = FAULTS[action]
        assert names(bench) == found
        assert [spec(item)["pool"]["resourceSliceCount"] for item in slices(bench)] == [count] * bool(count)
        assert [bool(device.get("taints")) for device in devices(bench)][:1] == [is_tainted][: len(found)]
        assert status(bench.pod_of("dra"))["phase"] == "Running"
        restart(bench)
        await bench.wait(20)
        (item,) = slices(bench)
        assert (names(bench), spec(item)["pool"]["resourceSliceCount"]) == (["gpu-0", "gpu-1"], 1)
        assert not devices(bench)[0].get("taints")

    life(story)


@pytest.mark.parametrize("gone", ["plugin", "node"])
def test_stale_slice_when_the_plugin_or_the_node_goes_then_it_stays(gone: str) -> None:
    async def story(bench: Bench) -> None:
        book = faulty(bench, "stale-slice")
        bench.put("daemonsets", driver())
        await ready(bench, WHOLE, pool="gpu")
        if gone == "plugin":
            bench.cluster.store.delete(CORE["daemonsets"], "default", "dra")
            await bench.wait(60)
        else:
            await bench.cluster.remove_node("n1")
        assert len(slices(bench)) == 1
        assert book.faults[0].struck == 1

    life(story)
