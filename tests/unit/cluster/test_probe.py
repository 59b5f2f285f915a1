"""The probe's Job, what its pod's state means, and what nvidia-smi wrote against the promise."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.kube.views import placement_of
from gpukube.cluster.proof.claim_probe import claim_template, claimed_profile, free_nodes, judge_device
from gpukube.cluster.proof.outcome import step_of
from gpukube.cluster.proof.probe import (
    PROBE_IMAGE,
    PROBE_LABEL,
    Attempt,
    Claimed,
    free_devices,
    free_fabric,
    is_left_over,
    judge_attempt,
    judge_interfaces,
    judge_output,
    parse_listing,
    probe_job,
    probed_resource,
    read_attempt,
    usable_interfaces,
)
from gpukube.cluster.state.published import published
from gpukube.cluster.state.scheduling import misfits
from gpukube.core.jsontree import at, items, text, texts
from gpukube.core.values import OWNER_LABEL, POOL_LABEL, Promise, Taint
from gpukube.engine.documents.parts import WEIGHTS
from gpukube.gpu.catalog import parse_model
from gpukube.gpu.sharing import MigCut, Sharing
from gpukube_sandbox.kube.nodes.hardware import MODELS as HARDWARE
from tests.unit.cluster.builders import (
    GPU_TAINT,
    MIXED,
    MPS,
    ONE,
    SINGLE,
    SLICED,
    VISION_TAINT,
    claimed,
    desire,
    node_of,
    plugin_pod,
)
from tests.unit.cluster.claiming import BAD, claimed_node, cut_gpus, gpu, gpus, slice_of
from tests.unit.cluster.claiming import CUT as CLAIMED_CUT
from tests.unit.cluster.fabrics import EFA, on_aks, on_eks, on_gke

if TYPE_CHECKING:
    from gpukube.cluster.kube.slices import DeviceView
    from gpukube.core.values import Desired

A100 = "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-b4895dbf-9350-2524-a89b-98161ddd9fe4)"
SECOND = "GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-1b5a4b3e-0000-2524-a89b-98161ddd9fe4)"
T4 = "GPU 0: Tesla T4 (UUID: GPU-7a3f)"
CUT = "  MIG 1g.5gb      Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)"
OTHER_CUT = "  MIG 1g.5gb      Device  1: (UUID: MIG-cba663e8-9bed-5b25-b243-5985ef7c9beb)"
BIG_CUT = "  MIG 3g.20gb     Device  0: (UUID: MIG-1c2d)"
LAYOUT = Sharing(mig=MigCut("", "mixed", ("3g.20gb", "2g.10gb", "2g.10gb")))
ALIKE = Sharing(mig=MigCut("", "single", ("2g.10gb", "2g.10gb")))


def test_parse_when_devices_are_listed_then_kind_name_and_uuid() -> None:
    found = parse_listing(["", A100, CUT, BIG_CUT.replace("3g.20gb", "1g.24gb+me.all"), "No devices found"])
    assert [(item.kind, item.name) for item in found] == [
        ("gpu", "NVIDIA A100-SXM4-40GB"),
        ("mig", "1g.5gb"),
        ("mig", "1g.24gb+me.all"),
    ]
    assert found[1].uuid == "MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f"


OUTPUTS: dict[str, tuple[Desired, list[str], str]] = {
    "one whole gpu": (desire(), [A100], ""),
    "one shared gpu": (desire(sharing=SLICED), [A100], ""),
    "mps": (desire(sharing=MPS), [A100], ""),
    "one instance, single": (desire(sharing=SINGLE), [A100, CUT], ""),
    "one instance, mixed": (desire(sharing=MIXED), [A100, CUT], ""),
    "one instance of a layout": (desire(sharing=LAYOUT), [A100, CUT.replace("1g.5gb", "2g.10gb")], ""),
    "an instance of a layout that was not asked for": (
        desire(sharing=LAYOUT),
        [A100, BIG_CUT],
        "the MIG device is 3g.20gb, not 2g.10gb",
    ),
    "another cut than the layout": (desire(sharing=ALIKE), [A100, BIG_CUT], "is 3g.20gb, not 2g.10gb"),
    "memory off by one": (desire(sharing=SINGLE), [A100, CUT.replace("1g.5gb", "1g.6gb")], ""),
    "nothing": (desire(), [], "sees 0 GPUs and 0 MIG devices, not 1 and 0"),
    "two gpus": (desire(), [A100, SECOND], "sees 2 GPUs and 0 MIG devices, not 1 and 0"),
    "cut, and whole promised": (desire(), [A100, CUT], "sees 1 GPUs and 1 MIG devices, not 1 and 0"),
    "whole, and cut promised": (desire(sharing=SINGLE), [A100], "sees 1 GPUs and 0 MIG devices, not 1 and 1"),
    "all instances": (desire(sharing=SINGLE), [A100, CUT, OTHER_CUT], "sees 1 GPUs and 2 MIG devices, not 1 and 1"),
    "another cut": (desire(sharing=SINGLE), [A100, BIG_CUT], "the MIG device is 3g.20gb, not 1g.5gb"),
    "another gpu": (desire(), [T4], 'the GPU is "Tesla T4", not A100'),
    "a name that begins alike": (
        desire(machine="Standard_NC4as_T4_v3"),
        [T4.replace("T4", "T4G")],
        'the GPU is "Tesla T4G", not T4',
    ),
}


@pytest.mark.parametrize("case", OUTPUTS)
def test_judge_output_when_devices_are_listed_then_compared_with_the_promise(case: str) -> None:
    pool, lines, seen = OUTPUTS[case]
    found = judge_output(pool, "node-1", parse_listing(lines))
    told = [(item.code, item.severity, str(item.where)) for item in found]
    assert told == [("step-probe", "error", "node-1")] * bool(seen)
    assert all(seen in item.seen and item.why for item in found)


@pytest.mark.parametrize("product", [m.product for m in HARDWARE.values() if m.name != "GH200-96GB"])
def test_judge_output_when_the_driver_spells_a_model_then_known(product: str) -> None:
    name = next(model.name for model in HARDWARE.values() if model.product == product)
    machine = replace(desire().target.machine, model=parse_model(name))
    pool = replace(desire(), target=replace(desire().target, machine=machine))
    for spelled in (product, product.replace("-", " ")):
        assert not judge_output(pool, "node-1", parse_listing([f"GPU 0: {spelled} (UUID: GPU-1)"]))


def test_judge_output_when_a_media_instance_is_promised_then_a_plain_one_is_another() -> None:
    pool = desire(sharing=Sharing(mig=MigCut("1g.5gb+me", "single")))
    assert judge_output(pool, "node-1", parse_listing([A100, CUT]))
    assert not judge_output(pool, "node-1", parse_listing([A100, CUT.replace("1g.5gb", "1g.5gb+me")]))


def job_of(pool: Desired, image: str = PROBE_IMAGE) -> dict[str, object]:
    return probe_job(pool, "ours", "a1b2c3", image)


def test_job_when_made_then_it_fits_the_pools_nodes_and_no_others() -> None:
    pool = desire(taints=(GPU_TAINT, VISION_TAINT), labels={"team": "x"})
    placement = placement_of(at(job_of(pool), "spec", "template", "spec"))
    assert not misfits(placement, pool.labels, pool.effective_taints)
    assert misfits(placement, {**pool.labels, POOL_LABEL: "other"}, ())
    assert misfits(placement, {**pool.labels, OWNER_LABEL: "other"}, ())
    assert misfits(placement, pool.labels, (Taint("sku", "gpu", "NoSchedule"),))


@pytest.mark.parametrize(("sharing", "name"), [(SINGLE, "nvidia.com/gpu"), (MIXED, "nvidia.com/mig-1g.5gb")])
def test_job_when_made_then_it_asks_for_one_device_and_ends_by_itself(sharing: Sharing, name: str) -> None:
    pool = desire(sharing=sharing)
    made = job_of(pool, "mirror/cuda:1")
    (container,) = items(made, "spec", "template", "spec", "containers")
    assert texts(container, "resources", "limits")[name] == "1"
    assert (text(container, "image"), items(container, "command")) == ("mirror/cuda:1", ["nvidia-smi", "-L"])
    assert (text(made, "spec", "backoffLimit"), text(made, "spec", "template", "spec", "restartPolicy")) == (
        "0",
        "Never",
    )
    assert int(text(made, "spec", "activeDeadlineSeconds")) > 0
    assert int(text(made, "spec", "ttlSecondsAfterFinished")) > 0


def test_job_when_the_pools_name_is_long_then_its_own_fits_and_keeps_the_suffix() -> None:
    pool = desire()
    long = replace(pool, target=replace(pool.target, pool="p" * 63))
    name = text(job_of(long), "metadata", "name")
    assert (len(name), name.endswith("-a1b2c3")) == (63, True)


def test_probed_resource_when_nothing_is_promised_then_none() -> None:
    assert not probed_resource(replace(desire(), promise=Promise({}, ONE)))


def left(name: str, created: str) -> dict[str, object]:
    return {"metadata": {"name": name, "creationTimestamp": created}}


OURS = left("ours", "2026-11-01T12:00:00Z")


@pytest.mark.parametrize(
    ("other", "stale"),
    [
        (left("old", "2026-11-01T11:00:00Z"), True),
        (left("beside", "2026-11-01T11:59:00Z"), False),
        (left("ours", "2026-11-01T11:00:00Z"), False),
    ],
    ids=["old", "of a run beside ours", "ours"],
)
def test_left_over_when_it_is_too_old_to_be_waited_for_then_so(other: dict[str, object], stale: object) -> None:
    assert is_left_over(other, OURS) is stale


def test_free_when_pods_hold_devices_then_the_rest_of_nodes_that_take_pods() -> None:
    pool = desire()
    nodes = [
        node_of(pool, "a"),
        node_of(pool, "b", conditions={"Ready": "False"}),
        node_of(pool, "c", taints=(Taint("node.kubernetes.io/unschedulable", "", "NoSchedule"),)),
    ]
    busy = plugin_pod("a", devices={"nvidia.com/gpu": 3})
    pods = {
        "a": [
            busy,
            replace(busy, phase="Succeeded"),
            replace(busy, labels={PROBE_LABEL: "true"}),
            plugin_pod("a", devices={"nvidia.com/mig-1g.5gb": 5}),
        ]
    }
    assert free_devices("nvidia.com/gpu", nodes, pods) == 5
    assert free_devices("nvidia.com/gpu", nodes, {"a": [busy, busy, busy]}) == 0


def pod(phase: str = "Pending", told: dict[str, object] | None = None, **status: object) -> dict[str, object]:
    meta = {"name": "probe-x", "creationTimestamp": "2026-11-01T12:00:00Z"}
    return {"metadata": meta, "spec": {"nodeName": "node-1"}, "status": {"phase": phase, **status, **(told or {})}}


def waiting(reason: str) -> dict[str, object]:
    return {"containerStatuses": [{"name": "probe", "state": {"waiting": {"reason": reason, "message": "no\nmore"}}}]}


def terminated(reason: str, code: int) -> dict[str, object]:
    state = {"terminated": {"reason": reason, "exitCode": code, "message": ""}}
    return {"containerStatuses": [{"name": "probe", "state": state}]}


UNPLACED: dict[str, object] = {
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"}]
}
ATTEMPTS: dict[str, tuple[list[dict[str, object]], bool, str, str]] = {
    "no pod": ([], False, "created no pod", "quota"),
    "unschedulable": ([pod(told=UNPLACED)], False, "Pending (Unschedulable: 0/3)", "no node of the pool"),
    "no image": (
        [pod(told=waiting("ImagePullBackOff"))],
        False,
        "Pending (ImagePullBackOff: no)",
        "cannot pull",
    ),
    "no image name": ([pod(told=waiting("InvalidImageName"))], True, "InvalidImageName", "cannot pull"),
    "refused": (
        [pod("Failed", reason="UnexpectedAdmissionError", message="Allocate failed")],
        True,
        "Failed (UnexpectedAdmissionError: Allocate failed)",
        "its plugin rejected",
    ),
    "no program": ([pod("Failed", terminated("StartError", 128))], True, "exit code 128 (StartError)", "driver"),
    "program failed": (
        [pod("Failed", terminated("Error", 9))],
        True,
        "exit code 9 (Error)",
        "driver does not answer",
    ),
    "slow": ([pod("Running")], False, "Running", "timed out"),
    "too late": ([pod("Failed", reason="DeadlineExceeded")], True, "DeadlineExceeded", "timed out"),
}


@pytest.mark.parametrize("case", ATTEMPTS)
def test_attempt_when_the_pod_did_not_end_well_then_told_why(case: str) -> None:
    pods, over, said, means = ATTEMPTS[case]
    attempt = read_attempt(pods)
    found = judge_attempt(desire(), attempt, "ours")
    assert (attempt.over, step_of(found), WEIGHTS[found.severity]) == (over, "probe", "broken")
    assert (said in found.seen, means in found.why, bool(found.fix)) == (True, True, True), found
    assert "{" not in found.fix


def test_attempt_when_it_ended_well_then_over_with_its_place() -> None:
    found = read_attempt([pod("Succeeded", terminated("Completed", 0))])
    assert found == Attempt("probe-x", "node-1", "Succeeded", "Completed", "", 0)
    assert found.over


LISTED = ("/dev/infiniband: rdma_cm uverbs0", "/sys/class/infiniband: rdmap0s0 rdmap1s0")


def test_job_when_the_network_is_probed_then_it_requests_one_device_and_lists_the_interfaces() -> None:
    made = probe_job(on_eks(), "ours", "a1b2c3", fabric=EFA)
    (container,) = items(made, "spec", "template", "spec", "containers")
    assert texts(container, "resources", "limits") == {"memory": "256Mi", "nvidia.com/gpu": "1", EFA: "1"}
    shell, flag, script = items(container, "command")
    assert (shell, flag) == ("sh", "-c")
    assert str(script).startswith("nvidia-smi -L && ")  # whose failure is the probe's
    assert all(f"ls {path}" in str(script) for path in ("/dev/infiniband", "/sys/class/infiniband"))


@pytest.mark.parametrize(("lines", "wrong"), [(LISTED, False), (("/dev/infiniband: rdma_cm",), True), ((), True)])
def test_judge_interfaces_when_the_container_may_use_none_then_an_error(lines: tuple[str, ...], wrong: bool) -> None:  # noqa: FBT001
    found = judge_interfaces("node-1", EFA, lines)
    assert [item.seen for item in found] == [
        "a pod with one vpc.amazonaws.com/efa sees no /dev/infiniband/uverbs*"
    ] * wrong
    assert usable_interfaces(lines) == (() if wrong else ("uverbs0",))


FREE: dict[str, tuple[Desired, dict[str, str], int, str]] = {
    "free": (on_eks(), {EFA: "32"}, 31, EFA),
    "all in use": (on_eks(), {EFA: "32"}, 32, ""),
    "not advertised": (on_eks(), {}, 0, ""),
    "a name of the cluster": (on_aks(), {"rdma/hca": "63"}, 0, "rdma/hca"),
    "networks, which need an annotation": (on_gke(), {"networking.gke.io.networks/gpu-nic-0": "1"}, 0, ""),
    "no fast network": (desire(), {EFA: "32"}, 0, ""),
}


@pytest.mark.parametrize("case", FREE)
def test_free_fabric_when_a_device_is_free_beside_a_gpu_then_its_resource(case: str) -> None:
    pool, amounts, used, expected = FREE[case]
    node = node_of(pool)
    node = replace(node, allocatable={**node.allocatable, **amounts})
    job = plugin_pod(devices={}, others={EFA: used}, owner_kind="Job", owner="train")
    assert free_fabric(pool, [node], {node.name: [job]}) == expected


JOB = {"metadata": {"name": "gpukube-probe-a100mig-1", "namespace": "gpukube-system", "uid": "u1"}}


def test_job_when_the_dra_driver_serves_the_pool_then_it_claims_a_device_and_stays_to_be_read() -> None:
    pod = at(probe_job(claimed(), "gpukube-system", "1"), "spec", "template", "spec")
    (container,) = items(pod, "containers")
    assert items(pod, "resourceClaims") == [{"name": "device", "resourceClaimTemplateName": "gpukube-probe-a100mig-1"}]
    assert items(container, "resources", "claims") == [{"name": "device"}]
    assert texts(container, "resources", "limits") == {"memory": "256Mi"}
    assert items(container, "command") == ["sh", "-c", "nvidia-smi -L && sleep 120"]


def test_job_when_it_claims_on_a_fast_network_then_it_lists_the_interfaces_before_it_stays() -> None:
    pod = at(probe_job(claimed(), "gpukube-system", "1", fabric=EFA), "spec", "template", "spec")
    (container,) = items(pod, "containers")
    shell = text(items(container, "command")[-1])
    assert (shell.startswith("nvidia-smi -L && echo /dev/infiniband: "), shell.endswith("&& sleep 120")) == (True, True)
    assert texts(container, "resources", "limits") == {"memory": "256Mi", EFA: "1"}


def test_template_when_made_then_it_claims_one_device_and_goes_with_its_job() -> None:
    whole, cut = (claim_template(pool, JOB) for pool in (claimed(), claimed(cut_by="operator", sharing=CLAIMED_CUT)))
    request = {"name": "device", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    assert items(whole, "spec", "spec", "devices", "requests") == [request]
    (selector,) = items(items(cut, "spec", "spec", "devices", "requests")[0], "exactly", "selectors")
    assert text(selector, "cel", "expression") == "device.attributes['gpu.nvidia.com'].profile == '1g.5gb'"
    (owner,) = items(whole, "metadata", "ownerReferences")
    assert (text(owner, "kind"), text(owner, "uid")) == ("Job", "u1")
    assert text(whole, "spec", "metadata", "labels", PROBE_LABEL) == "true"
    spied = items(claim_template(claimed(), JOB, admin=True), "spec", "spec", "devices", "requests")[0]
    assert at(spied, "exactly", "adminAccess") is True


def test_profile_when_the_board_rounds_its_memory_up_then_as_the_driver_spells_it() -> None:
    pool = claimed(cut_by="operator", sharing=CLAIMED_CUT)
    there = published([slice_of(cut_gpus("1g.6gb", "3g.20gb"))])
    assert claimed_profile(pool, there.values()) == "1g.6gb"
    assert claimed_profile(pool, ()) == ""


def holding(device: str, **more: object) -> dict[str, object]:
    result = {"driver": "gpu.nvidia.com", "pool": "node-1", "device": device, **more}
    return {"status": {"allocation": {"devices": {"results": [result]}}}}


FREE_CLAIMS: dict[str, tuple[tuple[DeviceView, ...], list[dict[str, object]], bool]] = {
    "all": (gpus(2), [], True),
    "one of two": (gpus(2), [holding("gpu-0")], True),
    "none": (gpus(2), [holding("gpu-0"), holding("gpu-1")], False),
    "only observed": (gpus(1), [holding("gpu-0", adminAccess=True)], True),
    "of another driver": (gpus(1), [holding("gpu-0", driver="dra.net")], True),
    "the other one has a taint": ((gpu(0), gpu(1, taints=(BAD,))), [holding("gpu-0")], False),
    "only of another kind": (cut_gpus(), [], False),
}


@pytest.mark.parametrize("case", FREE_CLAIMS)
def test_free_nodes_when_claims_hold_devices_then_those_with_another(case: str) -> None:
    devices, claims, free = FREE_CLAIMS[case]
    node = claimed_node(claimed())
    there = published([slice_of(devices)])
    assert bool(free_nodes(claimed(), [node], there, claims)) is free
    assert not free_nodes(claimed(), [replace(node, unschedulable=True)], there, claims)


GOT = {
    "the same": (Claimed("node-1", "gpu-0"), "GPU-0", ""),
    "another": (Claimed("node-1", "gpu-1"), "GPU-0", "the pod sees GPU-0, and its claim has gpu-1 (GPU-1)"),
    "gone": (Claimed("node-1", "gpu-9"), "GPU-0", "gpu-9, which no ResourceSlice has now"),
    "never seen": (None, "GPU-0", "the probe's claim was not seen"),
}


@pytest.mark.parametrize("case", GOT)
def test_judge_device_when_the_uuid_is_not_that_of_the_claim_then_an_error(case: str) -> None:
    device, uuid, seen = GOT[case]
    listed = parse_listing([f"GPU 0: NVIDIA A100-SXM4-40GB (UUID: {uuid})"])
    found = judge_device("node-1", device, published([slice_of(gpus())]), listed)
    assert [seen in item.seen and bool(item.fix) for item in found] == [True] * bool(seen)
