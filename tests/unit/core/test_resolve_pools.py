"""Several pools of one spec, resolved together: sizes, places, what is found of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.core.resolve import GPU_TAINT, cluster_refs, promise_of, resolve_targets
from gpukube.core.values import Nodes, Taint
from tests.unit.spec.samples import load_text, spec_of

if TYPE_CHECKING:
    from pathlib import Path


def test_pools_when_several_are_wrong_then_each_is_told_and_the_right_one_resolved(tmp_path: Path) -> None:
    loaded = load_text(
        tmp_path,
        spec_of("""
  - {name: a, clusters: [train-eks], gpu: {model: A100, count: 8}, nodes: {count: 1}}
  - {name: b, clusters: [train-eks], instanceType: p2.xlarge, nodes: {count: 1}}
  - {name: c, clusters: [train-eks], instanceType: p3.2xlarge, nodes: {count: 1}}
  - {name: d, clusters: [train-gke], gpu: {model: T4, count: 1}, nodes: {count: 1}, sharing: {mig: {profile: 1g.5gb}}}
"""),
    )
    targets, found = resolve_targets(loaded)
    assert [target.pool for target in targets] == ["c"]
    assert [(d.code, d.severity, d.where.line) for d in found] == [
        ("gpu-model", "error", 11),
        ("instance-type-refused", "error", 12),
        ("instance-status", "warning", 13),
        ("mig-capable", "error", 14),
    ]


def test_pool_when_it_goes_to_three_clusters_then_is_wrong_on_those_where_it_is(tmp_path: Path) -> None:
    pool = (
        "  - {name: l4, clusters: [train-eks, train-aks, train-gke], gpu: {model: L4, count: 1}, nodes: {count: 1}}\n"
    )
    targets, found = resolve_targets(load_text(tmp_path, spec_of(pool)))
    assert [(target.cluster.key, target.machine.name) for target in targets] == [
        ("train-eks", "g6.xlarge"),
        ("train-gke", "g2-standard-4"),
    ]
    assert [(d.code, d.seen.endswith("(on train-aks)")) for d in found] == [("no-machine", True)]


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("{count: 3}", Nodes(3, 3, 3, autoscaled=False)),
        ("{count: 0}", Nodes(0, 0, 0, autoscaled=False)),
        ("{autoscaling: {min: 2, max: 4}}", Nodes(2, 2, 4, autoscaled=True)),
        ("{autoscaling: {min: 0, max: 4, initial: 2}}", Nodes(2, 0, 4, autoscaled=True)),
        ("{autoscaling: {min: 1, max: 3, scope: zone}}", Nodes(2, 2, 6, autoscaled=True, scope="zone")),
        ("{autoscaling: {min: 0, max: 3, initial: 1, scope: zone}}", Nodes(2, 0, 6, autoscaled=True, scope="zone")),
    ],
)
def test_nodes_when_written_so_then_are_totals_of_the_pool(written: str, wanted: Nodes, tmp_path: Path) -> None:
    pool = f"""  - name: l4
    clusters: [train-gke]
    instanceType: g2-standard-4
    zones: [us-central1-a, us-central1-b]
    nodes: {written}
"""
    ((target,), found) = resolve_targets(load_text(tmp_path, spec_of(pool)))
    assert (target.nodes, found) == (wanted, ())


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("", (GPU_TAINT,)),
        ("gpuTaint: false", ()),
        ("taints: [{key: a, value: b, effect: NoExecute}]", (GPU_TAINT, Taint("a", "b", "NoExecute"))),
        (
            "gpuTaint: false, taints: [{key: nvidia.com/gpu, value: x, effect: NoSchedule}]",
            (Taint("nvidia.com/gpu", "x", "NoSchedule"),),
        ),
    ],
)
def test_taints_when_written_so_then_the_gpu_taint_comes_first_unless_refused(
    written: str, wanted: tuple[Taint, ...], tmp_path: Path
) -> None:
    pool = f"  - {{name: t4, clusters: [train-eks], instanceType: g4dn.xlarge, nodes: {{count: 1}}, {written}}}\n"
    ((target,), _) = resolve_targets(load_text(tmp_path, spec_of(pool)))
    assert target.taints == wanted


def test_clusters_when_listed_then_identity_is_what_makes_them_and_access_stands_apart(tmp_path: Path) -> None:
    pool = "  - {name: t4, clusters: [train-eks], instanceType: g4dn.xlarge, nodes: {count: 2}}\n"
    text = spec_of(pool).replace("name: train}\n", "name: train, kubeconfig: /k, context: c}\n", 1)
    refs = cluster_refs(load_text(tmp_path, text))
    eks = refs["train-eks"]
    assert list(refs) == ["train-eks", "train-aks", "train-gke"]
    assert dict(eks.identity) == {"account": "111122223333", "region": "us-east-1"}
    assert (eks.provider, eks.name, eks.kubeconfig, eks.context, eks.where.line) == ("eks", "train", "/k", "c", 5)


def test_promise_when_made_then_counts_devices_of_the_nodes(tmp_path: Path) -> None:
    pool = """  - name: a100
    clusters: [train-gke]
    instanceType: a2-highgpu-8g
    nodes: {autoscaling: {min: 1, max: 3}}
    sharing: {mig: {profile: 1g.5gb}, timeSlicing: {replicas: 2, failRequestsGreaterThanOne: true}}
"""
    ((target,), _) = resolve_targets(load_text(tmp_path, spec_of(pool)))
    promise = promise_of(target)
    assert (promise.per_node, promise.nodes) == ({"nvidia.com/gpu": 112}, target.nodes)
