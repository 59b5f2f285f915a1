"""`pool verify --probe`: a pod of its own says what a pod of a user would see, and nothing of it stays."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from lightkube.codecs import load_all_yaml
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Pod

from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.cli.harness import EXAMPLES, LONGEST_S, NAMESPACE, Cluster, Gpukube, edited_spec, start_process

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo
    from tests.cli.harness import Document

MIG = EXAMPLES / "aks-mig-single.yaml"
SLOW = 20.0
"""Sandbox seconds in one of ours: a Job's own deadline is far away."""
NOWHERE = "registry.invalid/cuda:1"


def make(gpukube: Gpukube, *words: str | Path) -> None:
    """Create pools, and let time pass as a probe needs it."""
    gpukube.made(*words)
    daemon.configure(gpukube.info, speed=SLOW)


def probes(cluster: Cluster) -> list[str]:
    """List what is there of probes, in any namespace."""
    jobs = cluster.client.list(Job, namespace="*", labels={"gpukube.io/probe": "true"})
    pods = cluster.client.list(Pod, namespace="*", labels={"gpukube.io/probe": "true"})
    found = [*(job.metadata for job in jobs), *(pod.metadata for pod in pods)]
    return [str(meta.name) for meta in found if meta and not meta.deletionTimestamp]


SEEN = {
    "aks-mig-single": ("A100-SXM4-40GB", "MIG 1g.5gb", "sees 1g.5gb (MIG-"),
    "aks-mig-mixed": ("A100-SXM4-40GB", "MIG 1g.5gb", "sees 1g.5gb (MIG-"),
    "aks-timeslicing": ("Tesla T4", "", "sees Tesla T4 (GPU-"),
    "aks-spot-autoscaling": ("A100 80GB", "", "sees NVIDIA A100 80GB"),
    "aks-custom-taint": ("Tesla T4", "", "sees Tesla T4 (GPU-"),
}


@pytest.mark.turns(5)
@pytest.mark.parametrize("example", SEEN)
def test_probe_when_a_pool_is_right_then_a_pod_sees_one_device_of_it(
    example: str, gpukube: Gpukube, cluster: Cluster
) -> None:
    gpu, cut, said = SEEN[example]
    make(gpukube, "-f", EXAMPLES / f"{example}.yaml")
    seen = gpukube("pool", "verify", "--probe", "-f", EXAMPLES / f"{example}.yaml", "-o", "json")
    (pool,) = seen.pools()
    probe = pool["proof"]["probe"]
    assert (seen.code, probe["status"], said in probe["says"]) == (0, "passed", True), probe
    assert gpu in probe["output"][0]
    assert [cut in line for line in probe["output"][1:]] == ([True] if cut else [])
    assert probes(cluster) == []


@pytest.mark.turns(5)
@pytest.mark.parametrize("example", ["eks-mig", "eks-bottlerocket-mig", "gke-mig", "gke-timesharing", "gke-mps"])
def test_probe_when_another_cloud_advertises_then_it_sees_one_device_too(example: str, gpukube: Gpukube) -> None:
    make(gpukube, "-f", EXAMPLES / f"{example}.yaml")
    seen = gpukube("pool", "verify", "--probe", "-f", EXAMPLES / f"{example}.yaml", "-o", "json")
    (pool,) = seen.pools()
    assert (seen.code, pool["proof"]["probe"]["status"]) == (0, "passed"), seen.out


def test_probe_when_shown_then_the_listing_stands_below_the_node(gpukube: Gpukube) -> None:
    make(gpukube, "-f", MIG)
    seen = gpukube("pool", "verify", "--probe", "-f", MIG)
    lines = seen.out.splitlines()
    at = next(
        number for number, line in enumerate(lines) if line.startswith("    = probe passed: a pod with one nvidia")
    )
    assert lines[at + 1].startswith("      | GPU 0: NVIDIA A100")
    assert lines[at + 2].startswith("      |   MIG 1g.5gb      Device  0: (UUID: MIG-")


@pytest.mark.usefixtures("impatient")
def test_probe_when_the_image_cannot_be_had_then_told_and_nothing_stays(gpukube: Gpukube, cluster: Cluster) -> None:
    make(gpukube, "-f", MIG)
    seen = gpukube("pool", "verify", "--probe", "--probe-image", NOWHERE, "-f", MIG)
    assert seen.code == 1
    assert "error[step-probe]: the probe's pod is Pending (ImagePullBackOff" in seen.out
    assert "--probe-image REGISTRY/cuda:TAG" in seen.out
    wait_for(lambda: probes(cluster) == [])


def test_probe_when_jobs_are_forbidden_then_five_and_the_rights_are_named(
    gpukube: Gpukube, cluster: Cluster, sandbox: SandboxInfo
) -> None:
    make(gpukube, "-f", MIG)
    daemon.deny(sandbox, "train", ("create", "jobs.batch"))
    seen = gpukube("pool", "verify", "--probe", "-f", MIG)
    assert seen.code == 5
    assert f"error[probe-permissions]: not allowed in namespace {NAMESPACE}: create jobs" in seen.out
    assert probes(cluster) == []


def test_probe_when_the_pool_is_not_as_promised_then_not_probed(gpukube: Gpukube, cluster: Cluster) -> None:
    make(gpukube, "-f", MIG)
    cluster.patch_config({cluster.entry_of("a100mig"): None})
    seen = gpukube("pool", "verify", "--probe", "-f", MIG, "-o", "json")
    (pool,) = seen.pools()
    assert (seen.code, pool["proof"]["probe"]) == (1, None)


def from_zero(document: Document) -> None:
    document["pools"][0]["nodes"] = {"autoscaling": {"min": 0, "max": 5}}


def test_probe_when_the_pool_is_at_zero_then_skipped_and_green(
    gpukube: Gpukube, cluster: Cluster, tmp_path: Path
) -> None:
    spec = edited_spec("aks-spot-autoscaling", tmp_path, from_zero)
    make(gpukube, "-f", spec)
    seen = gpukube("pool", "verify", "--probe", "-f", spec)
    assert seen.code == 0, seen.out
    assert "no nodes now (autoscaling allows 0); the cluster is ready for them" in seen.out
    assert "probe skipped: the pool has no node, and a probe would start one; add --probe-scale-up" in seen.out
    assert probes(cluster) == []


GREEDY = """
apiVersion: v1
kind: Pod
metadata: {name: greedy, namespace: default}
spec:
  containers: [{name: main, image: cuda, resources: {limits: {nvidia.com/gpu: "56"}}}]
  tolerations: [{operator: Exists}]
"""


def test_probe_when_every_device_is_held_then_skipped(gpukube: Gpukube, cluster: Cluster) -> None:
    make(gpukube, "-f", MIG)
    (pod,) = load_all_yaml(GREEDY)
    cluster.client.create(pod)
    wait_for(lambda: (status := cluster.client.get(Pod, "greedy", namespace="default").status) and status.phase)
    seen = gpukube("pool", "verify", "--probe", "-f", MIG)
    assert (seen.code, "probe skipped: every device is in use" in seen.out) == (0, True), seen.out


def test_probe_when_interrupted_then_130_and_nothing_stays(
    gpukube: Gpukube, cluster: Cluster, sandbox: SandboxInfo
) -> None:
    make(gpukube, "-f", MIG)
    words = ("pool", "verify", "--probe", "--probe-image", NOWHERE, "-f", MIG)
    with start_process(sandbox, *words) as process:
        wait_for(lambda: len(probes(cluster)) == 2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=LONGEST_S)
    assert (process.returncode, "Traceback" in err) == (130, False), err
    assert probes(cluster) == []


def test_probe_when_killed_then_the_next_run_removes_what_it_left(
    gpukube: Gpukube, cluster: Cluster, sandbox: SandboxInfo
) -> None:
    make(gpukube, "-f", MIG)
    words = ("pool", "verify", "--probe", "--probe-image", NOWHERE, "-f", MIG)
    with start_process(sandbox, *words) as process:
        wait_for(lambda: len(probes(cluster)) == 2)
        process.kill()
        process.wait(LONGEST_S)
    assert len(probes(cluster)) == 2
    daemon.configure(sandbox, speed=2000.0)
    wait_for(lambda: len(probes(cluster)) < 2)  # the cluster ends the Job at its deadline
    daemon.configure(sandbox, speed=SLOW)
    seen = gpukube("pool", "verify", "--probe", "-f", MIG)
    assert seen.code == 0, seen.out
    wait_for(lambda: probes(cluster) == [])
