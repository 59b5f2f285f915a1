"""A wrong count whose cause is another plugin, or a forced strategy, is not blamed on the GPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.kube.views import Placement, Toleration
from gpukube.cluster.proof.outcome import step_of
from gpukube.cluster.proof.verify import prove_pool
from gpukube.engine.documents.parts import WEIGHTS
from tests.unit.cluster.builders import (
    MIXED,
    MPS,
    NAMESPACE,
    SINGLE,
    container,
    daemonset,
    desire,
    installed,
    node_of,
    operated,
    operated_node,
    operating,
)

if TYPE_CHECKING:
    from gpukube.cluster.kube.views import WorkloadView
    from gpukube.cluster.state.snapshot import Snapshot
    from gpukube.errors import Finding

CUT = desire(sharing=SINGLE)
WHOLE = {"nvidia.com/gpu": "8"}
ANYWHERE = Placement(tolerations=(Toleration(operator="Exists"),))
STATIC_NAME = "nvidia-device-plugin-daemonset"
STATIC = daemonset(STATIC_NAME, pod_labels={"name": "nvidia-device-plugin-ds"}, placement=ANYWHERE)
RELEASE = daemonset(
    "nvdp-nvidia-device-plugin",
    "nvidia",
    placement=ANYWHERE,
    labels={"helm.sh/chart": "nvidia-device-plugin-0.17.1", "app.kubernetes.io/instance": "nvdp"},
)


def beside(seen: Snapshot, *others: WorkloadView) -> Snapshot:
    return replace(seen, daemonsets=(*seen.daemonsets, *others))


def told(seen: Snapshot, *, of_operator: bool = False) -> Finding:
    pool = operated(sharing=SINGLE) if of_operator else CUT
    step = prove_pool(pool, seen).missing_step
    assert step is not None
    return step


@pytest.mark.parametrize(
    ("other", "removal"),
    [
        pytest.param(STATIC, f"kubectl delete daemonset {STATIC_NAME} --namespace kube-system", id="static"),
        pytest.param(RELEASE, "helm uninstall nvdp --namespace nvidia", id="release"),
    ],
)
def test_prove_when_two_plugins_are_on_a_cut_node_then_the_other_is_named_and_not_the_geometry(
    other: WorkloadView, removal: str
) -> None:
    step = told(beside(installed([CUT], node_of(CUT, allocatable=WHOLE)), other))
    assert (step_of(step), WEIGHTS[step.severity]) == ("count", "broken")
    assert step.seen == f"nvidia.com/gpu is 8, not 56; {other} advertises here too"
    assert removal in step.fix


def test_prove_when_the_chart_is_beside_the_operator_then_it_is_named() -> None:
    pool = operated(sharing=SINGLE)
    step = told(beside(operating([pool], replace(operated_node(pool), allocatable=WHOLE)), RELEASE), of_operator=True)
    assert step.seen == "nvidia.com/gpu is 8, not 56; DaemonSet nvidia/nvdp-nvidia-device-plugin advertises here too"


def test_prove_when_a_mixed_pool_shows_whole_gpus_of_another_plugin_then_that_one_is_named_and_no_node_replaced() -> (
    None
):
    pool = desire(sharing=MIXED)
    both = {**dict.fromkeys(pool.promise.per_node, "56"), **WHOLE}
    found = prove_pool(pool, beside(installed([pool], node_of(pool, allocatable=both)), STATIC)).missing_step
    assert found is not None
    assert (step_of(found), found.seen) == (
        "count",
        f"nvidia.com/gpu: 8 is advertised too; {STATIC} advertises here too",
    )
    assert found.fix == (
        f"kubectl delete daemonset {STATIC_NAME} --namespace kube-system && "
        "kubectl rollout restart daemonset/gpukube-nvidia-device-plugin --namespace gpukube-system"
    )


def test_prove_when_the_count_is_right_then_another_plugin_is_not_held_against_it() -> None:
    assert prove_pool(CUT, beside(installed([CUT], node_of(CUT)), STATIC)).status == "proven"


def test_prove_when_a_strategy_is_forced_on_the_daemonset_then_it_is_named() -> None:
    seen = installed([CUT], node_of(CUT, allocatable={"nvidia.com/mig-1g.5gb": "56"}))
    plugin, *others = seen.daemonsets
    forced = replace(container("k8s-device-plugin:v0.20.0"), env={"MIG_STRATEGY": "mixed"})
    step = told(replace(seen, daemonsets=(replace(plugin, containers=(forced,)), *others)))
    assert step.seen == f"nvidia.com/gpu is 0, not 56; MIG_STRATEGY=mixed is set on DaemonSet {plugin.name}"
    assert step.fix == f"kubectl -n {NAMESPACE} set env daemonset/{plugin.name} MIG_STRATEGY-"


@pytest.mark.parametrize(
    ("image", "who"),
    [
        pytest.param("nvcr.io/nvidia/k8s-device-plugin:v0.17.4", "an NFD worker on this node", id="file"),
        pytest.param("nvcr.io/nvidia/k8s-device-plugin:v0.20.0", "NFD's master must", id="own object"),
    ],
)
def test_prove_when_mps_waits_for_its_label_then_who_passes_it_on_depends_on_the_version(image: str, who: str) -> None:
    pool = desire(sharing=MPS)
    seen = installed([pool], node_of(pool, allocatable={}))
    dated = tuple(
        replace(item, containers=(container(image, "gpu-feature-discovery"),))
        if item.name.endswith("gpu-feature-discovery")
        else item
        for item in seen.daemonsets
    )
    step = prove_pool(pool, replace(seen, daemonsets=dated)).missing_step
    assert step is not None
    assert (step_of(step), who in step.why) == ("features", True), step
