"""Pools of NVIDIA's DRA driver on emulated clouds: proven from ResourceSlices, probed by a claim, and their faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from lightkube.generic_resource import create_global_resource, create_namespaced_resource
from lightkube.resources.apps_v1 import DaemonSet
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Namespace, Pod
from lightkube.types import PatchType

from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for
from tests.cli.cluster_faults import STATIC_PLUGIN
from tests.cli.harness import EXAMPLES, LONGEST_S, NAMESPACE, Cluster, Gpukube, edited_spec, start_process
from tests.intruders import put_in
from tests.networks import install_networks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo
    from tests.cli.harness import Document

SPEC = EXAMPLES / "aks-dra.yaml"
DRIVER = "dra-driver-nvidia-gpu-component=kubelet-plugin"
DEVICE_CLASS = create_global_resource("resource.k8s.io", "v1", "DeviceClass", "deviceclasses")
CLAIM = create_namespaced_resource("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims")
TEMPLATE = create_namespaced_resource("resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates")
NOWHERE = "registry.invalid/cuda:1"


def verified(gpukube: Gpukube, *words: str, spec: Path = SPEC) -> tuple[int, Document]:
    seen = gpukube("pool", "verify", "-f", spec, "-o", "json", *words)
    (pool, *_) = seen.pools()
    return seen.code, pool["proof"]


def listed(cluster: Cluster, kind: type[Any], namespace: str, **labels: str) -> list[Document]:
    """List objects as trees, without those that are being deleted."""
    found = [item.to_dict() for item in cluster.client.list(kind, namespace=namespace, labels={**labels})]
    return [item for item in found if not item["metadata"].get("deletionTimestamp")]


def probes(cluster: Cluster) -> list[str]:
    """List what is there of probes: Jobs, pods, templates and claims."""
    kinds = (Job, Pod, TEMPLATE, CLAIM)
    found = (item for kind in kinds for item in listed(cluster, kind, "*", **{"gpukube.io/probe": "true"}))
    return [str(item["metadata"]["name"]) for item in found]


def claim_one(cluster: Cluster, *pods: str) -> None:
    """Create pods that claim a GPU each, and wait until they have it."""
    cluster.client.create(cast("Pod", TEMPLATE.from_dict(ONE_GPU)))
    for name in pods:
        body = {**CLAIMANT, "metadata": {"name": name, "namespace": "default"}}
        cluster.client.create(cast("Pod", Pod.from_dict(body)))
    wait_for(lambda: [bool(item.get("status")) for item in listed(cluster, CLAIM, "default")] == [True] * len(pods))


def restart(cluster: Cluster) -> None:
    """Delete the driver's pods, as the printed command does."""
    key, value = DRIVER.split("=")
    for pod in listed(cluster, Pod, NAMESPACE, **{key: value}):
        cluster.delete_pod(pod["metadata"]["name"])


def test_pools_when_created_then_their_devices_are_verified_listed_and_unchanged(
    gpukube: Gpukube, claims: Cluster
) -> None:
    seen = gpukube("pool", "verify", "-f", SPEC)
    assert (seen.code, "2 devices of gpu.nvidia.com verified on 2 nodes" in seen.out) == (0, True), seen.out
    (pool,) = gpukube("pool", "list", "-f", SPEC, "-o", "json").pools()
    assert (pool["allocatable"], pool["used"], pool["slicesPerGpu"]) == ({"gpu.nvidia.com": 2}, {}, 1)
    assert gpukube("pool", "plan", "diff", "-f", SPEC).code == 0
    claim_one(claims, "first")
    (pool,) = gpukube("pool", "list", "-f", SPEC, "-o", "json").pools()
    assert pool["used"] == {"gpu.nvidia.com": 1}


ONE_GPU = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "one-gpu", "namespace": "default"},
    "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}},
}
CLAIMANT: Document = {
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {
        "tolerations": [{"operator": "Exists"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
        "containers": [{"name": "main", "image": "cuda", "resources": {"claims": [{"name": "gpu"}]}}],
    },
}


def struck(action: str) -> Callable[[Cluster, SandboxInfo], None]:
    """Let the next start of the driver's plugin on both nodes fail in one way."""

    def inject(cluster: Cluster, info: SandboxInfo) -> None:
        daemon.add_fault(info, action, pool="^h100$", times=2)
        restart(cluster)

    return inject


def without_class(cluster: Cluster, _info: SandboxInfo) -> None:
    cluster.client.delete(DEVICE_CLASS, "gpu.nvidia.com")


def second_plugin(cluster: Cluster, _info: SandboxInfo) -> None:
    put_in(cluster.client, STATIC_PLUGIN)
    wait_for(lambda: cluster.devices("h100") == [{"gpu": 1}] * 2)


FAULTS: dict[str, tuple[Callable[[Cluster, SandboxInfo], None], str, str, str]] = {
    "late driver": (struck("late-driver"), "slices", "have no devices", "delete pod -l"),
    "slices lost": (struck("slices-lost"), "slices", "no ResourceSlice of gpu.nvidia.com", "delete pod -l"),
    "incomplete": (struck("incomplete-pool"), "slices", "1 of 2 ResourceSlices", "delete pod -l"),
    "tainted": (struck("tainted-device"), "count", "is 0, not 1; gpu-0 has taint", "delete pod -l"),
    "two advertisers": (second_plugin, "advertiser", "nvidia.com/gpu: 1 is allocatable", "kubectl delete daemonset"),
    "class gone": (without_class, "device-class", "no DeviceClass gpu.nvidia.com", "gpukube pool apply"),
}
OF_NODES = ("slices", "count", "advertiser")
"""Steps that plans show as the health of a pool; a missing class is drift of the release."""


@pytest.mark.turns(2)
@pytest.mark.parametrize("case", FAULTS)
def test_faults_when_the_printed_command_is_run_then_verify_and_plan_end_well(
    case: str, gpukube: Gpukube, claims: Cluster, sandbox: SandboxInfo
) -> None:
    inject, step, words, fix = FAULTS[case]
    inject(claims, sandbox)
    wait_for(lambda: verified(gpukube)[0] == 1 and step in steps(verified(gpukube)[1]))
    code, proof = verified(gpukube)
    found = next(one for one in all_findings(proof) if one["step"] == step)
    assert (code, words in found["seen"], fix in found["fix"]) == (1, True, True), found
    differs = gpukube("pool", "plan", "diff", "-f", SPEC, "-o", "json")
    (pool,) = differs.pools()
    shown = {one["step"] for one in pool["health"]["findings"]}
    assert (differs.code, step in shown) == ((0, True) if step in OF_NODES else (2, False))
    if fix == "gpukube pool apply":
        assert gpukube("pool", "apply", "-f", SPEC, "--yes").code == 0
    elif fix.startswith("kubectl"):
        claims.client.delete(DaemonSet, STATIC_PLUGIN["metadata"]["name"], namespace="kube-system")
        wait_for(lambda: claims.devices("h100") == [{}] * 2)
    else:
        restart(claims)
    wait_for(lambda: verified(gpukube)[0] == 0)


def steps(proof: Document) -> set[str]:
    return {finding["step"] for finding in all_findings(proof)}


def all_findings(proof: Document) -> list[Document]:
    return [*proof["findings"], *(finding for node in proof["nodes"] for finding in node["findings"])]


def test_node_when_moved_to_the_plugin_by_hand_then_not_moved_back(gpukube: Gpukube, claims: Cluster) -> None:
    claims.label_nodes("h100", **{"gpukube.io/advertiser": "chart"})
    code, proof = verified(gpukube)
    assert (code, steps(proof)) == (1, {"advertiser"})
    assert "kubectl drain" in all_findings(proof)[0]["fix"]
    assert gpukube("pool", "apply", "-f", SPEC, "--yes").code == 1
    labels = {
        str(((node.metadata and node.metadata.labels) or {}).get("gpukube.io/advertiser"))
        for node in claims.nodes("h100")
    }
    assert labels == {"chart"}


@pytest.mark.parametrize("name", ["aks-dra", "eks-dra"])
def test_probe_when_pools_are_right_then_pods_see_the_devices_of_their_claims(
    name: str, gpukube: Gpukube, sandbox: SandboxInfo
) -> None:
    spec = EXAMPLES / f"{name}.yaml"
    gpukube.made("-f", spec)
    daemon.configure(sandbox, speed=SLOW)
    seen = gpukube("pool", "verify", "--probe", "-f", spec, "-o", "json")
    for pool in seen.pools():
        probe = pool["proof"]["probe"]
        assert (probe["status"], ", as its claim has it (gpu-" in probe["says"]) == ("passed", True), probe
    assert seen.code == 0
    inside = Cluster(sandbox, "claims")
    wait_for(lambda: probes(inside) == [])
    inside.close()


def test_layout_when_changed_on_live_nodes_then_the_driver_restarts_by_itself_and_publishes_the_new_devices(
    gpukube: Gpukube, sandbox: SandboxInfo, tmp_path: Path
) -> None:
    def on_h100(profile: str) -> Path:
        """Make the spec with GPUs that change MIG without a reboot of the node, which would restart the pod anyway."""
        pool = {"instanceType": "p5.48xlarge", "sharing": {"mig": {"profile": profile}}}
        return edited_spec("eks-dra", tmp_path, lambda it: it["pools"][1].update(pool))

    gpukube.made("-f", on_h100("1g.10gb"))
    changed = gpukube("pool", "apply", "-f", on_h100("3g.40gb"), "--yes", "--allow-disruption", "-o", "json")
    (_, pool) = changed.pools()
    assert (changed.code, pool["proof"]["allocatable"]) == (0, {"mig.nvidia.com/3g.40gb": 16}), changed.out


def test_probe_when_a_pool_of_gke_is_at_zero_then_the_claim_starts_a_node(
    gpukube: Gpukube, sandbox: SandboxInfo
) -> None:
    spec = EXAMPLES / "gke-dra.yaml"
    version = "1.35.2-gke.1000000"
    daemon.add_gke_cluster(sandbox, "ml-prod", "us-central1", "claims", kubernetes_version=version)
    install_networks(gpukube, spec)
    created = gpukube.made("-f", spec)
    assert "no nodes now (autoscaling allows 0); the cluster is ready for them" in created.out
    daemon.configure(sandbox, speed=SLOW)
    code, proof = verified(gpukube, "--probe", spec=spec)
    assert (code, proof["probe"]["status"]) == (0, "skipped")
    code, proof = verified(gpukube, "--probe", "--probe-scale-up", spec=spec)
    assert (code, proof["probe"]["status"], proof["allocatable"]) == (0, "passed", {"gpu.nvidia.com": 1}), proof


SLOW = 20.0
"""Sandbox seconds in one of ours: a Job's own deadline is far away."""


def test_probe_when_killed_then_the_next_run_removes_what_it_left(
    gpukube: Gpukube, claims: Cluster, sandbox: SandboxInfo
) -> None:
    daemon.configure(sandbox, speed=SLOW)
    with start_process(sandbox, "pool", "verify", "--probe", "--probe-image", NOWHERE, "-f", SPEC) as process:
        wait_for(lambda: len(probes(claims)) == 4)
        process.kill()
        process.wait(LONGEST_S)
    daemon.configure(sandbox, speed=2000.0)
    wait_for(lambda: len(probes(claims)) < 4)  # the cluster ends the Job at its deadline
    daemon.configure(sandbox, speed=SLOW)
    assert verified(gpukube, "--probe")[0] == 0
    wait_for(lambda: probes(claims) == [])


def test_probe_when_claims_hold_every_gpu_then_skipped_or_one_is_only_observed(
    gpukube: Gpukube, claims: Cluster, sandbox: SandboxInfo
) -> None:
    claim_one(claims, "first", "second")
    code, proof = verified(gpukube, "--probe")
    assert (code, proof["probe"]["status"], proof["probe"]["says"]) == (0, "skipped", "every device is in use")
    label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    claims.client.patch(Namespace, NAMESPACE, label, patch_type=PatchType.MERGE)
    daemon.configure(sandbox, speed=SLOW)
    code, proof = verified(gpukube, "--probe")
    assert (code, proof["probe"]["status"]) == (0, "passed"), proof
    assert proof["probe"]["says"].endswith("adminAccess: a weaker proof")
