"""Probing pools: when it is done, when it is not, and that nothing of it stays whatever happens."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import pytest

from gpukube.cluster.kube.api_types import CLAIM_TEMPLATES, JOBS, RESOURCE_CLAIMS
from gpukube.cluster.names import NAMESPACE
from gpukube.cluster.proof.outcome import step_of
from gpukube.cluster.proof.verify import prove_pool
from gpukube.core.jsontree import items, text, texts
from gpukube.core.values import Nodes
from gpukube.engine.change.probing import Probing, probe_pool
from gpukube.engine.run.clock import Stopped
from gpukube.errors import AccessError, ClusterError
from gpukube.testing.clock import ManualClock
from tests.unit.cluster.builders import FROM_ZERO, SINGLE, claimed, desire, installed, node_of, plugin_pod
from tests.unit.cluster.claiming import claimed_node, claiming, gpus, slice_of
from tests.unit.cluster.fabrics import EFA, on_eks
from tests.unit.engine.stage import PACE, Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from gpukube.cluster.kube.api_types import ApiType
    from gpukube.cluster.kube.client import Kube
    from gpukube.cluster.kube.slices import SliceView
    from gpukube.cluster.kube.views import NodeView, PodView
    from gpukube.cluster.proof.outcome import PoolProof, Probe
    from gpukube.core.jsontree import Tree
    from gpukube.core.values import Desired

GPU = "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)"
CUT = "  MIG 1g.5gb      Device  0: (UUID: MIG-1)"
PLAIN = Probing()
CREATED = "2026-11-01T12:00:00Z"
LEFT = {"metadata": {"name": "gpukube-probe-old", "creationTimestamp": "2026-11-01T11:00:00Z"}}
BESIDE = {"metadata": {"name": "gpukube-probe-beside", "creationTimestamp": "2026-11-01T11:59:30Z"}}


def ended(phase: str = "Succeeded", code: int = 0) -> Tree:
    state = {"terminated": {"reason": "Completed" if not code else "Error", "exitCode": code}}
    status = {"phase": phase, "containerStatuses": [{"name": "probe", "state": state}]}
    return {"metadata": {"name": "probe-x"}, "spec": {"nodeName": "node-0"}, "status": status}


PENDING: Tree = {"metadata": {"name": "probe-x"}, "status": {"phase": "Pending"}}


@dataclass
class FakeProbeKube:
    """The calls of a probe; what its pod does depends on the time."""

    clock: ManualClock
    pool: Desired
    pod_at: Callable[[float], Tree | ClusterError | None]
    log: tuple[str, ...] = (GPU,)
    running: tuple[PodView, ...] = ()
    forbidden: Collection[str] = ()
    stays: bool = False
    namespace: bool = True
    jobs: dict[str, Tree] = field(default_factory=dict)
    made: list[Tree] = field(default_factory=list)
    nodes_with: Mapping[str, str] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)

    def nodes(self, _marks: object) -> tuple[NodeView, ...]:
        node = node_of(self.pool, "node-0")
        return (replace(node, allocatable={**node.allocatable, **self.nodes_with}),)

    def pods(self, _namespace: str, *, node: str) -> tuple[PodView, ...]:
        return tuple(pod for pod in self.running if pod.node == node)

    def namespace_labels(self, name: str) -> dict[str, str] | None:
        return {} if self.namespace and name == NAMESPACE else None

    def may(self, verb: str, resource: str, *, group: str, namespace: str) -> bool:
        assert group in {"batch", "", "resource.k8s.io"}
        assert namespace in {NAMESPACE, "default"}
        return f"{verb} {resource}" not in self.forbidden

    def create_object(self, _kind: ApiType, obj: Tree) -> Tree:
        made = {**obj, "metadata": {**texts(obj, "metadata"), "creationTimestamp": CREATED}}
        self.jobs[text(obj, "metadata", "name")] = made
        self.made.append(obj)
        return made

    def delete_object(self, _kind: ApiType, name: str, _namespace: str) -> None:
        if self.stays:
            raise ClusterError("the API server is away")
        self.deleted.append(name)
        self.jobs.pop(name, None)

    def cleaning(self) -> FakeProbeKube:
        return self

    def objects(self, kind: ApiType, _namespace: str, labels: dict[str, str]) -> tuple[Tree, ...]:
        if kind == JOBS:
            assert labels["gpukube.io/probe"] == "true"
            return tuple(self.jobs.values())
        assert list(labels) == ["job-name"]
        pod = self.pod_at(self.clock.now())
        if isinstance(pod, ClusterError):
            raise pod
        return (pod,) if pod else ()

    def pod_log(self, _namespace: str, _name: str, _lines: int) -> tuple[str, ...]:
        return self.log

    def close(self) -> None:
        return None


def probe(
    pool: Desired,
    how: Probing = PLAIN,
    *,
    pod_at: Callable[[float], Tree | ClusterError | None] = lambda _now: ended(),
    clock: ManualClock | None = None,
    empty: bool = False,
    **kube: object,
) -> tuple[PoolProof, FakeProbeKube, Stage]:
    stage, fake = staged(pool, pod_at, clock, **kube)
    seen = installed([pool]) if empty else installed([pool], node_of(pool, "node-0"))
    return probe_pool(pool, prove_pool(pool, seen), stage.session, stage.run, how), fake, stage


def staged(
    pool: Desired,
    pod_at: Callable[[float], Tree | ClusterError | None],
    clock: ManualClock | None = None,
    **kube: object,
) -> tuple[Stage, FakeProbeKube]:
    stage = Stage([pool], clock or ManualClock())
    fake = FakeProbeKube(stage.clock, pool, pod_at, **kube)  # type: ignore[arg-type]  # test data
    stage.session = replace(stage.session, _kube=cast("Kube", fake))
    return stage, fake


def test_probe_when_the_pod_sees_one_device_then_passed_and_the_job_is_gone() -> None:
    proof, kube, _ = probe(desire(sharing=SINGLE), log=(GPU, CUT))
    assert proof.probe is not None
    assert (proof.probe.status, proof.probe.node, proof.probe.output) == ("passed", "node-0", (GPU, CUT))
    assert proof.probe.message.endswith("sees 1g.5gb (MIG-1)")
    assert (proof.status, kube.jobs) == ("proven", {})


def test_probe_when_it_takes_a_while_then_followed_and_told() -> None:
    slow = lambda now: PENDING if now < 40 else ClusterError("away") if now < 60 else ended()  # noqa: E731 -- a case
    proof, kube, stage = probe(desire(), pod_at=slow)
    assert (proof.probe.status if proof.probe else "", kube.jobs) == ("passed", {})
    assert [message for message in stage.messages() if "Pending" in message] == ["the probe's pod probe-x Pending"]


def test_probe_when_the_pod_sees_something_else_then_failed_with_the_step() -> None:
    proof, kube, _ = probe(desire(sharing=SINGLE), log=(GPU,))
    assert proof.missing_step is not None
    assert (proof.status, step_of(proof.missing_step), kube.jobs) == ("broken", "probe", {})


def test_probe_when_the_program_fails_then_its_output_is_kept() -> None:
    said = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver"
    proof, kube, _ = probe(desire(), pod_at=lambda _now: ended("Failed", 9), log=(said,))
    assert proof.probe is not None
    assert (proof.probe.status, proof.probe.output, kube.jobs) == ("failed", (said,), {})


def test_probe_when_the_pod_never_runs_then_given_up_at_the_limit_and_removed() -> None:
    proof, kube, stage = probe(desire(), pod_at=lambda _now: PENDING)
    assert (proof.probe.status if proof.probe else "", stage.clock.now(), kube.jobs) == ("failed", PACE.verify_s, {})


def stuck(reason: str) -> Tree:
    waiting = {"name": "probe", "state": {"waiting": {"reason": reason}}}
    return {"metadata": {"name": "probe-x"}, "status": {"phase": "Pending", "containerStatuses": [waiting]}}


def test_probe_when_the_image_cannot_be_had_then_given_up_long_before_the_limit() -> None:
    proof, kube, stage = probe(desire(), pod_at=lambda _now: stuck("ImagePullBackOff"))
    assert (proof.probe.status if proof.probe else "", kube.jobs) == ("failed", {})
    assert PACE.settle_s <= stage.clock.now() < PACE.settle_s + 2 * PACE.poll_s


def test_probe_when_the_image_comes_late_then_it_goes_on() -> None:
    def pod_at(now: float) -> Tree:
        return stuck("ErrImagePull") if now < PACE.settle_s - 10 else PENDING if now < 100 else ended()

    proof, _, _ = probe(desire(), pod_at=pod_at)
    assert proof.probe is not None
    assert proof.probe.status == "passed"


def test_probe_when_the_machine_sleeps_between_two_looks_then_that_time_does_not_count() -> None:
    clock, looks = ManualClock(), ["stuck", "stuck"]

    def pod_at(_now: float) -> Tree:
        if len(looks) == 1:
            clock.wait(2 * PACE.settle_s)
        return stuck("ImagePullBackOff") if looks and looks.pop() else ended()

    proof, _, _ = probe(desire(), pod_at=pod_at, clock=clock)
    assert proof.probe is not None
    assert proof.probe.status == "passed"


def test_probe_when_its_pod_is_taken_away_then_told_how_it_was_last_seen() -> None:
    proof, _, _ = probe(desire(), pod_at=lambda now: stuck("ErrImagePull") if now < 10 else None)
    assert proof.probe is not None
    assert "ErrImagePull" in proof.probe.message


def test_probe_when_no_pod_is_made_then_told_at_the_limit() -> None:
    proof, _, stage = probe(desire(), pod_at=lambda _now: None)
    assert (proof.probe.message if proof.probe else "", stage.clock.now()) == (
        "the probe's Job created no pod",
        PACE.verify_s,
    )


def test_probe_when_the_pod_is_wrongly_named_then_at_once() -> None:
    _, _, stage = probe(desire(), pod_at=lambda _now: stuck("InvalidImageName"))
    assert stage.clock.now() == 0


def test_probe_when_stopped_then_the_job_is_removed_all_the_same() -> None:
    stage, kube = staged(desire(), lambda _now: PENDING, ManualClock(stop_at=12))
    proof = prove_pool(desire(), installed([desire()], node_of(desire(), "node-0")))
    with pytest.raises(Stopped):
        probe_pool(desire(), proof, stage.session, stage.run, Probing())
    assert (len(kube.made), kube.jobs) == (1, {})


def test_probe_when_the_cluster_is_away_for_good_then_its_error_and_the_job_is_removed() -> None:
    stage, kube = staged(desire(), lambda _now: ClusterError("away"))
    proof = prove_pool(desire(), installed([desire()], node_of(desire(), "node-0")))
    with pytest.raises(ClusterError, match="away"):
        probe_pool(desire(), proof, stage.session, stage.run, Probing())
    assert kube.jobs == {}


def test_probe_when_the_job_cannot_be_removed_then_the_result_stands_and_the_command_is_told() -> None:
    proof, _, stage = probe(desire(), stays=True)
    assert proof.probe is not None
    assert proof.probe.status == "passed"
    assert f"kubectl -n {NAMESPACE} delete job gpukube-probe-a100mig-" in stage.messages()[-1]


def test_probe_when_a_killed_run_left_a_job_then_removed_and_one_beside_ours_is_not() -> None:
    jobs = {text(job, "metadata", "name"): job for job in (LEFT, BESIDE)}
    _, kube, _ = probe(desire(), jobs=jobs)
    assert list(kube.jobs) == ["gpukube-probe-beside"]


def test_probe_when_something_is_forbidden_then_all_of_it_is_named_and_nothing_made() -> None:
    stage, kube = staged(desire(), lambda _now: ended(), forbidden=("create jobs", "list pods"))
    proof = prove_pool(desire(), installed([desire()], node_of(desire(), "node-0")))
    with pytest.raises(AccessError) as caught:
        probe_pool(desire(), proof, stage.session, stage.run, Probing())
    (told,) = caught.value.diagnostics
    assert (told.code, told.seen) == (
        "probe-permissions",
        f"not allowed in namespace {NAMESPACE}: create jobs, list pods",
    )
    assert kube.made == []


def test_probe_when_our_namespace_is_not_there_then_in_default() -> None:
    _, kube, _ = probe(desire(), namespace=False)
    assert text(kube.made[0], "metadata", "namespace") == "default"


def test_probe_when_an_image_is_named_then_that_one() -> None:
    proof, _, _ = probe(desire(), Probing("mirror/cuda:1"))
    assert proof.probe is not None
    assert proof.probe.image == "mirror/cuda:1"


BUSY = plugin_pod("node-0", devices={"nvidia.com/gpu": 8})
SOME = Nodes(1, 0, 5, autoscaled=True)
SKIPS = {
    "from zero": (FROM_ZERO, True, (), "the pool has no node, and a probe would start one; add --probe-scale-up"),
    "full and autoscaled": (
        SOME,
        False,
        (BUSY,),
        "every device is in use, and a probe would start a node; add --probe-scale-up",
    ),
    "full and fixed": (
        Nodes(1, 1, 1, autoscaled=False),
        False,
        (BUSY,),
        "every device is in use",
    ),
}


@pytest.mark.parametrize("case", SKIPS)
def test_probe_when_it_would_cost_a_node_or_has_no_device_then_skipped(case: str) -> None:
    nodes, empty, running, message = SKIPS[case]
    proof, kube, _ = probe(desire(nodes=nodes), empty=empty, running=running)
    assert proof.probe is not None
    assert (proof.probe.status, proof.probe.message, kube.made) == ("skipped", message, [])
    assert proof.status == ("empty" if empty else "proven")


@pytest.mark.parametrize(("nodes", "empty"), [(FROM_ZERO, True), (SOME, False)], ids=["from zero", "full"])
def test_probe_when_scaling_up_is_allowed_then_done(nodes: Nodes, empty: object) -> None:
    how = Probing(scale_up=True)
    proof, kube, _ = probe(desire(nodes=nodes), how, empty=bool(empty), running=(BUSY,))
    assert (proof.probe.status if proof.probe else "", len(kube.made)) == ("passed", 1)


INTERFACES = ("/dev/infiniband: rdma_cm uverbs0", "/sys/class/infiniband: rdmap0s0")
H100 = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)"


def test_probe_when_the_pool_has_a_fast_network_then_the_pod_uses_one_device_of_it() -> None:
    proof, kube, _ = probe(on_eks(), nodes_with={EFA: "32"}, log=(H100, *INTERFACES))
    (job,) = kube.made
    (container,) = items(job, "spec", "template", "spec", "containers")
    assert texts(container, "resources", "limits")[EFA] == "1"
    assert proof.probe is not None
    assert proof.probe.message.endswith(
        "sees NVIDIA H100 80GB HBM3 (GPU-1), and with one vpc.amazonaws.com/efa uverbs0"
    )


def test_probe_when_the_network_is_not_advertised_then_only_the_gpu_is_probed() -> None:
    proof, kube, _ = probe(on_eks(), log=(H100,))
    (container,) = items(kube.made[0], "spec", "template", "spec", "containers")
    assert items(container, "command") == ["nvidia-smi", "-L"]
    assert (proof.probe.status if proof.probe else "", proof.status) == ("passed", "no-fabric")


def test_probe_when_the_container_may_use_no_interface_then_failed() -> None:
    proof, _, _ = probe(on_eks(), nodes_with={EFA: "32"}, log=(H100, "/dev/infiniband: ls: cannot access"))
    assert (proof.probe.status if proof.probe else "", proof.status) == ("failed", "broken")


CLAIMED = claimed()
RUNNING: Tree = {
    "metadata": {"name": "probe-x"},
    "spec": {"nodeName": "node-0"},
    "status": {
        "phase": "Running",
        "resourceClaimStatuses": [{"name": "device", "resourceClaimName": "probe-x-device"}],
    },
}
GPU_0 = "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-0)"


def got(device: str, **more: object) -> Tree:
    result = {"driver": "gpu.nvidia.com", "pool": "node-0", "device": device, **more}
    return {"status": {"allocation": {"devices": {"results": [result]}}}}


@dataclass
class FakeClaimKube(FakeProbeKube):
    """The same on a cluster with the DRA driver: the pod's claim, and those of others."""

    claim: Tree | None = field(default_factory=lambda: got("gpu-0"))
    others: tuple[Tree, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    refused: ClusterError | None = None

    def create_object(self, kind: ApiType, obj: Tree) -> Tree:
        if kind == CLAIM_TEMPLATES and self.refused:
            raise self.refused
        return super().create_object(kind, obj)

    def nodes(self, _marks: object) -> tuple[NodeView, ...]:
        return (claimed_node(self.pool, "node-0"),)

    def namespace_labels(self, _name: str) -> dict[str, str]:
        return self.labels

    def resource_slices(self) -> tuple[SliceView, ...]:
        return (slice_of(gpus(), "node-0"),)

    def find_object(self, kind: ApiType, name: str, _namespace: str) -> Tree | None:
        assert (kind, name) == (RESOURCE_CLAIMS, "probe-x-device")
        return self.claim

    def objects(self, kind: ApiType, namespace: str = "", labels: dict[str, str] | None = None) -> tuple[Tree, ...]:
        return self.others if kind == RESOURCE_CLAIMS else super().objects(kind, namespace, labels or {})


def probe_claim(how: Probing = PLAIN, **kube: object) -> tuple[Probe, FakeClaimKube]:
    stage = Stage([CLAIMED], ManualClock())
    given = {"pod_at": lambda _now: RUNNING, "log": (GPU_0,), **kube}
    fake = FakeClaimKube(stage.clock, CLAIMED, **given)  # type: ignore[arg-type]  # test data
    stage.session = replace(stage.session, _kube=cast("Kube", fake))
    seen = claiming([CLAIMED], claimed_node(CLAIMED, "node-0"))
    found = probe_pool(CLAIMED, prove_pool(CLAIMED, seen), stage.session, stage.run, how).probe
    assert found is not None
    return found, fake


def test_probe_when_the_pod_sees_the_device_of_its_claim_then_passed_and_nothing_stays() -> None:
    found, kube = probe_claim()
    device = "NVIDIA A100-SXM4-40GB (GPU-0), as its claim has it (gpu-0)"
    assert (found.status, found.message) == (
        "passed",
        f"a pod with one device of gpu.nvidia.com on node-0 sees {device}",
    )
    assert [text(made, "kind") for made in kube.made] == ["Job", "ResourceClaimTemplate"]
    (name,) = {text(made, "metadata", "name") for made in kube.made}
    assert kube.deleted == [name, name]


def test_probe_when_the_pod_sees_another_device_than_its_claim_then_failed() -> None:
    found, _ = probe_claim(claim=got("gpu-3"))
    assert (found.status, found.message) == ("failed", "the pod sees GPU-0, and its claim has gpu-3 (GPU-3)")


def test_probe_when_the_claim_is_gone_before_it_is_read_then_failed() -> None:
    found, _ = probe_claim(claim=None, pod_at=lambda _now: ended())
    assert (found.status, found.message) == ("failed", "the probe's claim was not seen")


def test_probe_when_claims_hold_every_device_then_skipped_or_only_observed_if_the_namespace_allows_it() -> None:
    others = tuple(got(f"gpu-{index}") for index in range(8))
    found, kube = probe_claim(others=others)
    assert (found.status, found.message, kube.made) == ("skipped", "every device is in use", [])
    admin = {"resource.kubernetes.io/admin-access": "true"}
    found, kube = probe_claim(others=others, labels=admin, claim=got("gpu-0", adminAccess=True))
    assert found.status == "passed"
    assert found.message.endswith("shared by adminAccess: a weaker proof")
    (request,) = items(kube.made[1], "spec", "spec", "devices", "requests")
    assert text(request, "exactly", "adminAccess") == "true"


def test_probe_when_templates_are_forbidden_then_named() -> None:
    with pytest.raises(AccessError, match="create resourceclaimtemplates, get resourceclaims"):
        probe_claim(forbidden=("create resourceclaimtemplates", "get resourceclaims"))


def test_probe_when_the_template_is_refused_then_its_job_is_removed_too() -> None:
    deleted: list[str] = []
    refusal = ClusterError("a policy of the cluster refuses it")
    with pytest.raises(ClusterError, match="refuses it"):
        probe_claim(refused=refusal, deleted=deleted)
    assert [name[:-6] for name in deleted] == ["gpukube-probe-a100mig-"] * 2
