"""From spec to proof: the numbers come from the nodes, and a missing step is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sandbox_tests.waiting import wait_for
from tests.cli.harness import EXAMPLES, Cluster, Gpukube, run_process

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo

SINGLE = EXAMPLES / "aks-mig-single.yaml"

PROOFS = {
    "single": ("aks-mig-single", "a100mig", [{"gpu": 56}], "nvidia.com/gpu: 56 verified on 1 node"),
    "mixed": ("aks-mig-mixed", "a100mixed", [{"mig-1g.5gb": 56}], "nvidia.com/mig-1g.5gb: 56 verified on 1 node"),
    "time-sliced": ("aks-timeslicing", "t4shared", [{"gpu": 4}, {"gpu": 4}], "nvidia.com/gpu: 8 verified on 2 nodes"),
    "spot": ("aks-spot-autoscaling", "a100spot", [{"gpu": 1}], "nvidia.com/gpu: 1 verified on 1 node"),
    "custom taint": ("aks-custom-taint", "t4custom", [{"gpu": 1}], "nvidia.com/gpu: 1 verified on 1 node"),
}


@pytest.mark.turns(5)
@pytest.mark.parametrize("name", PROOFS)
def test_create_when_an_example_is_given_then_its_devices_are_on_the_nodes(
    name: str, gpukube: Gpukube, cluster: Cluster
) -> None:
    example, pool, devices, said = PROOFS[name]
    done = gpukube("pool", "create", "-f", EXAMPLES / f"{example}.yaml")
    assert (done.code, said in done.out) == (0, True), done.out + done.err
    assert cluster.devices(pool) == devices
    verified = gpukube("pool", "verify", "-f", EXAMPLES / f"{example}.yaml")
    assert (verified.code, said in verified.out, gpukube.writes()) == (0, True, [])


def test_create_when_run_as_a_process_then_result_on_stdout_and_progress_on_stderr(sandbox: SandboxInfo) -> None:
    done = run_process(sandbox, "pool", "create", "-f", SINGLE)
    assert done.code == 0, done.err
    assert "nvidia.com/gpu: 56 verified on 1 node" in done.out
    assert "train-aks/a100mig create: requesting Standard_ND96asr_v4" in done.err
    assert "create:" not in done.out


def test_verify_when_nothing_was_created_then_the_node_is_the_missing_step(gpukube: Gpukube) -> None:
    seen = gpukube("pool", "verify", "-f", SINGLE)
    assert seen.code == 1
    assert "error[step-placement]: the device plugin has no DaemonSet" in seen.out
    assert "error[step-node]: 0 of 1 nodes are in the cluster" in seen.out


def test_verify_when_the_config_entry_is_gone_then_named(gpukube: Gpukube, cluster: Cluster) -> None:
    gpukube.made("-f", SINGLE)
    entry = cluster.entry_of("a100mig")
    cluster.patch_config({entry: None})
    seen = gpukube("pool", "verify", "-f", SINGLE)
    assert seen.code == 1
    assert f"error[step-config-entry]: there is no entry {entry}, only c-" in seen.out


def test_verify_when_the_config_entry_is_edited_then_named_and_the_nodes_show_it(
    gpukube: Gpukube, cluster: Cluster
) -> None:
    gpukube.made("-f", SINGLE)
    entry = cluster.entry_of("a100mig")
    cluster.patch_config({entry: cluster.config()[entry].replace("single", "mixed")})
    for pod in cluster.plugin_pods():
        cluster.delete_pod(pod)
    wait_for(lambda: cluster.devices("a100mig") == [{"mig-1g.5gb": 56}])
    seen = gpukube("pool", "verify", "-f", SINGLE)
    assert seen.code == 1
    assert "error[step-config-entry]" in seen.out
    assert "differs from this pool's sharing" in seen.out
    assert "nvidia.com/mig-1g.5gb: 56" in seen.out  # what the node shows, beside what was promised
    assert "expected nvidia.com/gpu: 56" in seen.out
    assert "verified" not in seen.out


def test_verify_when_a_toleration_is_gone_then_the_taint_is_named(gpukube: Gpukube, cluster: Cluster) -> None:
    spec = EXAMPLES / "aks-custom-taint.yaml"
    gpukube.made("-f", spec)
    tolerations = [t for t in cluster.tolerations() if t.get("key") != "dedicated"]
    cluster.patch_daemonset({"spec": {"template": {"spec": {"tolerations": tolerations}}}})
    wait_for(lambda: cluster.devices("t4custom") == [{}])
    seen = gpukube("pool", "verify", "-f", spec)
    assert seen.code == 1
    assert "error[step-placement]: the plugin cannot run here" in seen.out
    assert "dedicated=vision:NoSchedule" in seen.out


LABELS = {
    "advertiser": ("gpukube.io/advertiser", "error[step-advertiser-label]: label gpukube.io/advertiser is absent"),
    "config": ("nvidia.com/device-plugin.config", "error[step-config-label]: no label nvidia.com/device-plugin.config"),
}


@pytest.mark.parametrize("name", LABELS)
def test_verify_when_a_node_label_is_gone_then_named(name: str, gpukube: Gpukube, cluster: Cluster) -> None:
    label, said = LABELS[name]
    gpukube.made("-f", SINGLE)
    cluster.label_nodes("a100mig", **{label: None})
    wait_for(lambda: cluster.devices("a100mig") != [{"gpu": 56}])
    seen = gpukube("pool", "verify", "-f", SINGLE)
    assert (seen.code, said in seen.out) == (1, True), seen.out


def test_verify_when_a_label_names_no_entry_then_named_although_the_number_is_right(
    gpukube: Gpukube, cluster: Cluster
) -> None:
    gpukube.made("-f", SINGLE)
    cluster.label_nodes("a100mig", **{"nvidia.com/device-plugin.config": "c-000000000000"})
    assert cluster.devices("a100mig") == [{"gpu": 56}]  # only the next start of the plugin would fail
    seen = gpukube("pool", "verify", "-f", SINGLE)
    assert seen.code == 1
    assert "error[step-config-label]: label nvidia.com/device-plugin.config is c-000000000000" in seen.out
    assert "there is no such entry: the plugin exits on this node" in seen.out


def test_verify_when_mended_within_the_timeout_then_proven(gpukube: Gpukube, cluster: Cluster) -> None:
    gpukube.made("-f", SINGLE)
    for pod in cluster.plugin_pods():
        cluster.delete_pod(pod)
    seen = gpukube("pool", "verify", "-f", SINGLE, "--timeout", "3")
    assert (seen.code, "nvidia.com/gpu: 56 verified on 1 node" in seen.out) == (0, True), seen.out
