"""What pods that run nvidia-smi see, and what becomes of Jobs that end, hang, or cannot have their image."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox.kube.nodes.devices import allocate, in_use
from gpukube_sandbox.kube.nodes.machines import Machine
from gpukube_sandbox.kube.nodes.podruns import start_run
from gpukube_sandbox.kube.nodes.shapes import GpuShape, NodeShape
from gpukube_sandbox.kube.nodes.smi import can_run, interfaces, listing
from gpukube_sandbox.kube.store.objects import status
from sandbox_tests.kube.test_life import TOLERATED, Bench, life, plugin

if TYPE_CHECKING:
    from gpukube_sandbox.kube.nodes.podruns import PodRun
    from gpukube_sandbox.kube.store.objects import JsonObject

WHOLE = GpuShape("T4-16GB", 2)
ALIKE = GpuShape("A100-40GB", 2, ("3g.20gb", "1g.5gb"))
HALF = GpuShape("A100-40GB", 2, (("7g.40gb",), None))


def seen(shape: GpuShape, registered: dict[str, int], *asked: dict[str, int]) -> list[str]:
    """List what the last of these pods sees, kinds and identities only."""
    machine = Machine(NodeShape("n", gpu=shape))
    machine.register("plugin", registered, frozenset())
    for at, limits in enumerate(asked):
        body = {"name": "main", "image": "cuda", "resources": {"limits": limits}}
        pod = {"metadata": {"name": "p", "uid": f"u{at}"}, "spec": {"containers": [body]}}
        machine.pods[f"u{at}"] = start_run(pod, 0.0)
        allocate(machine, machine.pods[f"u{at}"])
        assert machine.pods[f"u{at}"].refusal == ""
    lines = listing(machine, machine.pods[f"u{len(asked) - 1}"], "main")
    return [line.rpartition("UUID: ")[2].removesuffix(")") for line in lines]


ONE = {"nvidia.com/gpu": 1}
SEEN: dict[str, tuple[GpuShape, dict[str, int], list[dict[str, int]], list[str]]] = {
    "one whole gpu": (WHOLE, {"nvidia.com/gpu": 2}, [ONE], ["GPU-n-0"]),
    "the next pod has the next": (WHOLE, {"nvidia.com/gpu": 2}, [ONE, ONE], ["GPU-n-1"]),
    "replicas come round again": (WHOLE, {"nvidia.com/gpu": 8}, [ONE, ONE, ONE], ["GPU-n-0"]),
    "two gpus": (WHOLE, {"nvidia.com/gpu": 2}, [{"nvidia.com/gpu": 2}], ["GPU-n-0", "GPU-n-1"]),
    "no request": (WHOLE, {"nvidia.com/gpu": 2}, [{}], ["GPU-n-0", "GPU-n-1"]),
    "a shared name": (WHOLE, {"nvidia.com/gpu.shared": 4}, [{"nvidia.com/gpu.shared": 1}], ["GPU-n-0"]),
    "single": (ALIKE, {"nvidia.com/gpu": 4}, [ONE, ONE], ["GPU-n-0", "MIG-n-0-1"]),
    "strategy none": (ALIKE, {"nvidia.com/gpu": 2}, [ONE], ["GPU-n-0", "MIG-n-0-0", "MIG-n-0-1"]),
    "mixed": (
        ALIKE,
        {"nvidia.com/mig-1g.5gb": 2, "nvidia.com/mig-3g.20gb": 2},
        [{"nvidia.com/mig-1g.5gb": 1}],
        ["GPU-n-0", "MIG-n-0-1"],
    ),
    "mixed, the gpu that is not cut": (HALF, {"nvidia.com/gpu": 1, "nvidia.com/mig-7g.40gb": 1}, [ONE], ["GPU-n-1"]),
}


@pytest.mark.parametrize("case", SEEN)
def test_listing_when_devices_are_handed_out_then_the_pod_sees_those(case: str) -> None:
    shape, registered, asked, expected = SEEN[case]
    assert seen(shape, registered, *asked) == expected


def test_listing_when_an_instance_is_shown_then_numbered_from_zero() -> None:
    machine = Machine(NodeShape("n", gpu=ALIKE))
    machine.register("plugin", {"nvidia.com/mig-1g.5gb": 2}, frozenset())
    body = {"name": "m", "image": "cuda", "resources": {"limits": {"nvidia.com/mig-1g.5gb": "1"}}}
    machine.pods["u"] = start_run({"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [body]}}, 0.0)
    allocate(machine, machine.pods["u"])
    assert listing(machine, machine.pods["u"], "m") == [
        "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-n-0)",
        "  MIG 1g.5gb      Device  0: (UUID: MIG-n-0-1)",
    ]


def run_of(machine: Machine, uid: str, **parts: list[JsonObject]) -> PodRun:
    run = machine.pods[uid] = start_run({"metadata": {"name": uid, "uid": uid}, "spec": parts}, 0.0)
    allocate(machine, run)
    return run


def body(count: int, resource: str = "nvidia.com/gpu", **more: str) -> JsonObject:
    return {"name": "m", "image": "cuda", "resources": {"limits": {resource: str(count)}}, **more}


def test_devices_when_pods_come_and_go_then_nobody_shares_an_exclusive_one() -> None:
    machine = Machine(NodeShape("n", gpu=ALIKE))
    name = "nvidia.com/mig-1g.5gb"
    machine.register("plugin", {name: 2}, frozenset())
    first, second = (run_of(machine, uid, containers=[body(1, name)]) for uid in "ab")
    assert (first.held, second.held) == ({name: [(0, 1)]}, {name: [(1, 1)]})
    third = run_of(machine, "c", containers=[body(1, name)])
    assert (third.refusal_reason, third.held) == ("UnexpectedAdmissionError", {})
    assert third.refusal == (
        f"Allocate failed due to requested number of devices unavailable for {name}. Requested: 1, Available: 0, "
        "which is unexpected"
    )
    first.mains[0].state = "done"
    assert run_of(machine, "d", containers=[body(1, name)]).held == {name: [(0, 1)]}
    assert in_use(machine)[name].total() == 2


def test_devices_when_an_init_container_has_ended_then_its_devices_are_used_again_but_not_a_sidecars() -> None:
    machine = Machine(NodeShape("n", gpu=WHOLE))
    machine.register("plugin", {"nvidia.com/gpu": 2}, frozenset())
    assert run_of(machine, "a", initContainers=[body(2)], containers=[body(1), body(1)]).held == {
        "nvidia.com/gpu": [(0, None), (1, None)]
    }
    del machine.pods["a"]
    assert run_of(machine, "b", initContainers=[body(2, restartPolicy="Always")], containers=[body(1)]).refusal


def test_devices_when_replicas_are_shared_then_spread_over_the_gpus() -> None:
    machine = Machine(NodeShape("n", gpu=WHOLE))
    machine.register("plugin", {"nvidia.com/gpu": 4}, frozenset())
    runs = [run_of(machine, uid, containers=[body(1)]) for uid in "abcd"]
    assert [run.held["nvidia.com/gpu"][0][0] for run in runs] == [0, 1, 0, 1]
    assert run_of(machine, "e", containers=[body(1)]).refusal


def test_devices_when_no_plugin_serves_them_then_the_pod_is_not_admitted() -> None:
    machine = Machine(NodeShape("n", gpu=WHOLE))
    assert run_of(machine, "a", containers=[body(1)]).refusal_reason == "OutOfnvidia.com/gpu"
    machine.register("plugin", {"nvidia.com/gpu": 2}, frozenset())
    machine.unregister(frozenset({"nvidia.com/gpu"}))
    assert "no healthy devices present" in run_of(machine, "b", containers=[body(1)]).refusal


def job(name: str = "probe", image: str = "cuda", **more: object) -> JsonObject:
    container = {
        "name": "main",
        "image": image,
        "command": ["nvidia-smi", "-L"],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    pod = {"containers": [container], "restartPolicy": "Never", "tolerations": TOLERATED}
    return {"metadata": {"name": name}, "spec": {"backoffLimit": 0, "template": {"spec": pod}, **more}}


def ended(bench: Bench, name: str = "probe") -> dict[str, str]:
    told = status(bench.get("jobs", name)).get("conditions") or []
    return {item["type"]: item["reason"] for item in told if item["type"] in {"Complete", "Failed"}}


async def ready(bench: Bench) -> None:
    bench.put("daemonsets", plugin(configs=False))
    await bench.node(WHOLE)
    await bench.wait(60)


def test_job_when_it_has_ended_then_removed_with_its_pod_after_its_time() -> None:
    async def story(bench: Bench) -> None:
        await ready(bench)
        bench.put("jobs", job(ttlSecondsAfterFinished=100))
        await bench.wait(30)
        assert ended(bench) == {"Complete": "CompletionsReached"}
        (pod,) = [item for item in bench.all_of("pods") if item["metadata"]["name"].startswith("probe-")]
        assert bench.cluster.log_lines(pod["metadata"]["uid"], "main") == ["GPU 0: Tesla T4 (UUID: GPU-n1-0)"]
        await bench.wait(120)
        assert not bench.all_of("jobs")
        assert not [item for item in bench.all_of("pods") if item["metadata"]["name"].startswith("probe-")]

    life(story)


def test_pods_when_each_asks_for_a_slice_then_their_logs_show_two_devices() -> None:
    async def story(bench: Bench) -> None:
        await bench.node(GpuShape("A100-40GB", 1, ("1g.5gb",) * 7, host_plugin=True, host_strategy="mixed"))
        await bench.wait(60)
        shown = {"name": "m", "image": "cuda", "command": ["sh", "-c", "nvidia-smi -L; sleep 1000"]}
        asks = {"limits": {"nvidia.com/mig-1g.5gb": "1"}}
        for name in ("one", "two"):
            pod = {"containers": [{**shown, "resources": asks}], "restartPolicy": "Never"}
            bench.put("pods", {"metadata": {"name": name}, "spec": pod})
        await bench.wait(10)
        logs = [bench.cluster.log_lines(bench.get("pods", name)["metadata"]["uid"], "m") for name in ("one", "two")]
        assert [lines[1].rpartition("UUID: ")[2] for lines in logs] == ["MIG-n1-0-0)", "MIG-n1-0-1)"]

    life(story)


def test_job_when_nothing_is_free_then_ended_at_its_deadline() -> None:
    async def story(bench: Bench) -> None:
        bench.put("jobs", job(activeDeadlineSeconds=50))
        await bench.wait(40)
        assert ended(bench) == {}
        await bench.wait(20)
        assert ended(bench) == {"Failed": "DeadlineExceeded"}
        assert not bench.all_of("pods")

    life(story)


def test_pod_when_its_image_cannot_be_had_then_it_waits_for_it() -> None:
    async def story(bench: Bench) -> None:
        await ready(bench)
        bench.put("jobs", job(image="registry.invalid/cuda:1"))
        await bench.wait(30)
        (pod,) = [item for item in bench.all_of("pods") if item["metadata"]["name"].startswith("probe-")]
        (container,) = status(pod)["containerStatuses"]
        assert (status(pod)["phase"], container["state"]["waiting"]["reason"]) == ("Pending", "ImagePullBackOff")

    life(story)


def test_pod_when_the_node_has_no_driver_then_its_program_is_not_found() -> None:
    async def story(bench: Bench) -> None:
        await bench.node(GpuShape("T4-16GB", 1, driver=False))
        await bench.wait(40)
        made = job()
        del made["spec"]["template"]["spec"]["containers"][0]["resources"]
        bench.put("jobs", made)
        await bench.wait(20)
        (pod,) = bench.all_of("pods")
        told = status(pod)["containerStatuses"][0]["state"]["terminated"]
        assert (status(pod)["phase"], told["reason"], told["exitCode"]) == ("Failed", "StartError", 128)
        assert "executable file not found" in told["message"]
        assert ended(bench) == {"Failed": "BackoffLimitExceeded"}

    life(story)


ASKS = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
VOID, EVERY = ({"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": value}]} for value in ("void", "all"))
ON_EKS = NodeShape("n", gpu=WHOLE, os_image="Amazon Linux 2023.9.20251110")
ON_BOTTLEROCKET = NodeShape("n", gpu=WHOLE, os_image="Bottlerocket OS 1.50.0 (aws-k8s-1.34-nvidia)")
ON_GKE = NodeShape("n", gpu=GpuShape("T4-16GB", 2, runtime=""))
ON_BARE = NodeShape("n", gpu=GpuShape("T4-16GB", 2, driver=False, runtime=""))
GKE_PATH = "/usr/local/nvidia/bin/nvidia-smi"
REACHED: dict[str, tuple[NodeShape, JsonObject, str, bool]] = {
    "a gpu, any image": (ON_EKS, {"image": "nginx", **ASKS}, "nvidia-smi", True),
    "no gpu, any image": (ON_EKS, {"image": "nginx:1.27"}, "nvidia-smi", False),
    "no gpu, the variable": (ON_EKS, {"image": "nginx", **EVERY}, "nvidia-smi", True),
    "no gpu, a cuda image": (ON_EKS, {"image": "nvcr.io/nvidia/cuda:12.4.1-base-ubuntu22.04"}, "nvidia-smi", True),
    "no gpu, an image on cuda": (ON_EKS, {"image": "rayproject/ray:2.52.0-gpu"}, "nvidia-smi", True),
    "no gpu, a cuda image that is told none": (ON_EKS, {"image": "nvidia/cuda:12.6.3", **VOID}, "nvidia-smi", False),
    "bottlerocket heeds no variable": (ON_BOTTLEROCKET, {"image": "nvidia/cuda:12.6.3"}, "nvidia-smi", False),
    "bottlerocket, a gpu": (ON_BOTTLEROCKET, {"image": "nvidia/cuda:12.6.3", **ASKS}, "nvidia-smi", True),
    "gke, no gpu, a cuda image": (ON_GKE, {"image": "nvidia/cuda:12.6.3"}, GKE_PATH, False),
    "gke, a gpu, a cuda image": (ON_GKE, {"image": "nvidia/cuda:12.6.3", **ASKS}, "nvidia-smi", True),
    "gke, a gpu, not in its path": (ON_GKE, {"image": "nginx", **ASKS}, "nvidia-smi", False),
    "gke, a gpu, by its path": (ON_GKE, {"image": "nginx", **ASKS}, GKE_PATH, True),
    "no driver": (ON_BARE, {"image": "nvidia/cuda:12.6.3", **ASKS}, "nvidia-smi", False),
}


@pytest.mark.parametrize("case", REACHED)
def test_nvidia_smi_when_looked_for_then_where_the_container_was_given_it(case: str) -> None:
    shape, body, command, expected = REACHED[case]
    body = {"name": "main", **body}
    run = start_run({"metadata": {"name": "p", "uid": "u"}, "spec": {"containers": [body]}}, 0.0)
    assert can_run(Machine(shape), run, body, command) is expected


@pytest.mark.parametrize(("count", "usable"), [(0, "No such file or directory"), (2, "rdma_cm uverbs0 uverbs1")])
def test_interfaces_when_a_container_has_network_devices_then_their_files_are_listed(count: int, usable: str) -> None:
    limits = {"nvidia.com/gpu": "1", **({"vpc.amazonaws.com/efa": str(count)} if count else {})}
    first, second = interfaces({"name": "main", "resources": {"limits": limits}})
    assert first.startswith("/dev/infiniband: ")
    assert first.endswith(usable)
    assert second.startswith("/sys/class/infiniband: ")
