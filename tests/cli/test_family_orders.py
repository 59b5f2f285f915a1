"""The order of an autoscaled family on screens and in documents; manifests for pods of the family."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from gpukube_sandbox import daemon

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo
    from tests.cli.harness import Gpukube

SPEC = """
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {name: ml}
clusters:
  train-eks: {provider: eks, account: "111122223333", region: us-east-1, name: train}
pools:
  - name: t4
    clusters: [train-eks]
    gpu: {model: T4, count: 1}
    nodes: {autoscaling: {min: 0, max: 2}}
    alternatives: [{name: t4spot, capacity: {type: spot}}]
"""
MAP = "ConfigMap kube-system/cluster-autoscaler-priority-expander"


@pytest.fixture
def spec(tmp_path: Path, sandbox: SandboxInfo) -> Path:
    """A family in a cluster whose autoscaler follows priorities."""
    place = {"provider": "eks", "account": "111122223333", "region": "us-east-1", "name": "train"}
    daemon.call(sandbox, "POST", "clusters", {**place, "options": {"autoscaler": "priority,least-waste"}})
    path = tmp_path / "pools.yaml"
    path.write_text(SPEC)
    return path


def test_plan_and_diff_show_the_order_until_it_is_written(gpukube: Gpukube, spec: Path) -> None:
    shown = gpukube("pool", "plan", "-f", spec)
    assert shown.code == 0, shown.err
    assert MAP in shown.out
    assert "order of t4: it does not exist" in shown.out
    assert "rank    alternative 2 of 2: capacity: on-demand -> spot" in shown.out
    assert "1000:\n                   - '^eks-t4-[0-9a-f]{8}-[0-9a-f-]{27}$'" in shown.out
    for output, expected in {
        "markdown": f"create `{MAP}`: order of t4: it does not exist",
        "github": f"create {MAP}: order of t4: it does not exist",
        "junit": f'name="{MAP}"',
    }.items():
        assert expected in gpukube("pool", "plan", "diff", "-f", spec, "-o", output).out, output
    (cluster,) = gpukube("pool", "plan", "-f", spec, "-o", "json").json()["clusters"]
    (order,) = cluster["orders"]
    assert [(pool["family"]["rank"], pool["family"]["of"], pool["family"]["role"]) for pool in cluster["pools"]] == [
        (1, 2, None), (2, 2, None),
    ]  # fmt: skip
    assert (order["object"], order["action"], order["families"]) == (MAP, "create", ["t4"])
    assert order["content"][-2:] == ["1:", "  - '.*'"]
    done = gpukube("pool", "create", "-f", spec)
    assert [line.partition("--pool ")[2] for line in done.err.splitlines() if line.startswith("first pod")] == [
        "t4 --cluster train-eks | kubectl apply -f -"
    ]
    after = gpukube("pool", "plan", "diff", "-f", spec)
    assert (after.code, MAP in after.out) == (0, False)


def test_render_when_a_pool_has_alternatives_then_for_all_of_them(gpukube: Gpukube, spec: Path) -> None:
    shown = {
        options: gpukube("workload", "render", "pod", "-f", spec, *options, sandbox=False).out
        for options in ((), ("--pool", "t4"), ("--pool", "t4spot"))
    }
    first = shown[()]
    assert set(shown.values()) == {first}
    assert "# train-eks/t4, with its alternatives t4spot: 0 to 4 nodes, each with 1 nvidia.com/gpu." in first
    assert yaml.safe_load(first)["spec"]["nodeSelector"] == {"gpukube.io/family": "t4"}
    linted = gpukube("workload", "lint", _written(spec, first), "-f", spec, "--strict", sandbox=False)
    assert linted.code == 0, linted.err


def _written(spec: Path, text: str) -> Path:
    path = spec.with_name("pod.yaml")
    path.write_text(text)
    return path


def test_create_without_an_autoscaler_says_what_it_leaves_out(
    gpukube: Gpukube, spec: Path, sandbox: SandboxInfo
) -> None:
    daemon.reset(sandbox)
    place = {"provider": "eks", "account": "111122223333", "region": "us-east-1", "name": "train"}
    daemon.call(sandbox, "POST", "clusters", place)
    done = gpukube("pool", "create", "-f", spec)
    assert done.code == 0, done.err
    assert "train-eks/t4spot: not created: nothing can tell an autoscaler to try t4 first" in done.out
    assert "done          train-eks/t4  created" in done.out
