"""The doctor on a cluster that only Helm has touched: the traps of the chart's own defaults, played out."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.helm.chart import ChartSource, chart_types
from gpukube.cluster.helm.engine import HelmJob
from gpukube.cluster.release.crds import create_types, look_at_types
from gpukube.cluster.release.removal import kubeconfig_file
from gpukube.core.values import Settings
from gpukube.doctor.check import examine
from gpukube.doctor.checks.registry import CHECKS
from gpukube.doctor.gather import gather
from gpukube.engine.run.session import Session
from gpukube.testing.fakes import FakeProvider
from gpukube_sandbox.kube.nodes.shapes import GpuShape, NodeShape, Taint
from sandbox_tests.waiting import wait_for
from tests.builders import CLUSTER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from gpukube.cluster.helm.engine import Engine
    from gpukube.cluster.kube.client import LightKube
    from tests.wire.cluster.conftest import Live

PRESENT = {"nvidia.com/gpu.present": "true"}
GPU_TAINT, OWN_TAINT = Taint("nvidia.com/gpu", "present"), Taint("sku", "gpu")
TOLERATES = [{"key": "sku", "operator": "Exists"}, {"key": "nvidia.com/gpu", "operator": "Exists"}]
FEATURES = {"gfd": {"enabled": True}}
SHARED = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"
CONFIG = {"config": {"map": {"four": SHARED}, "default": "four"}}
LOOKS = 3
"""In a row that must agree: a node that boots looks ill for a moment."""

CASES: dict[str, tuple[Mapping[str, object], Mapping[str, str], Taint, set[str]]] = {
    "the chart as it is, a label by hand": ({}, PRESENT, GPU_TAINT, set()),
    "features on, the taint of NVIDIA": (FEATURES, {}, GPU_TAINT, set()),
    "no features, no label": ({}, {"accelerator": "nvidia"}, GPU_TAINT, {"plugin-desired-zero"}),
    "features on, a taint of one's own": (
        {**FEATURES, "tolerations": TOLERATES},
        {"accelerator": "nvidia"},
        OWN_TAINT,
        {"nfd-worker-not-tolerating"},
    ),
    "a taint of one's own, a label by hand": ({}, PRESENT, OWN_TAINT, {"plugin-not-tolerating"}),
    "an entry that is not there": (
        {**FEATURES, **CONFIG},
        {"nvidia.com/device-plugin.config": "five"},
        GPU_TAINT,
        {"config-key-unknown"},
    ),
    "a default that is not there": (
        {"config": {"map": {"four": SHARED}, "default": "fore"}},
        PRESENT,
        GPU_TAINT,
        {"config-default-unknown"},
    ),
    "MPS without features": (
        {"config": {"map": {"four": SHARED.replace("timeSlicing", "mps")}, "default": "four"}},
        PRESENT,
        GPU_TAINT,
        {"mps-daemon-missing"},
    ),
    "a strategy over the entry's": (
        {"config": {"map": {"one": "version: v1\nflags: {migStrategy: mixed}\n"}}, "migStrategy": "none"},
        PRESENT,
        GPU_TAINT,
        {"strategy-overridden"},
    ),
}
"""Values of the chart, labels and taint of the node, and the errors that must be found."""


@pytest.fixture
def install(
    live: Live, kube: LightKube, engine: Engine, charts: ChartSource, tmp_path: Path
) -> Callable[[Mapping[str, object]], None]:
    """Install the chart as its README does, with values of one's own; the engine leaves a chart's types to others."""

    def run(values: Mapping[str, object]) -> None:
        kube.ensure_namespace("nvidia", {})
        chart = engine.pull(ChartSource(charts.location), tmp_path)
        create_types(kube, look_at_types(kube, chart_types(chart, nfd=True)), time.sleep)
        with kubeconfig_file(live.access()) as path:
            engine.upgrade(HelmJob(path, "nvdp", "nvidia", chart, dict(values), installed=False, dry_run=False))

    return run


UNEVEN = (("1g.5gb",) * 7, ("3g.20gb", "3g.20gb"))
SINGLE = {"config": {"map": {"one": "version: v1\nflags: {migStrategy: single}\n"}, "default": "one"}}
MACHINES: dict[str, tuple[Mapping[str, object], GpuShape, set[str]]] = {
    "no driver": ({}, GpuShape("A100-40GB", 8, driver=False), {"plugin-crashing"}),
    "no driver, and the plugin waits for one": (
        {"failOnInitError": False},
        GpuShape("A100-40GB", 8, driver=False),
        {"plugin-silent"},
    ),
    "cut unevenly under single": ({**FEATURES, **SINGLE}, GpuShape("A100-40GB", 2, UNEVEN), {"mig-single-uneven"}),
}
"""Values of the chart, the GPUs of the node, and the errors that must be found."""


def errors_of(kube: LightKube) -> set[str]:
    provider, settings = FakeProvider(), Settings()
    session = Session(CLUSTER, provider, provider.connect(CLUSTER, settings), settings, _kube=kube)
    evidence = gather(session, ())
    assert evidence.troubles == {}
    return {found.check.id for found in examine(evidence, CHECKS).found if found.finding.severity == "error"}


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", CASES)
def test_doctor_when_helm_alone_was_here_then_the_trap_of_the_chart_is_found(
    name: str, live: Live, kube: LightKube, install: Callable[[Mapping[str, object]], None]
) -> None:
    values, labels, taint, wanted = CASES[name]
    install(values)
    check_node(live, kube, NodeShape("gpu-1", labels=labels, taints=(taint,), gpu=GpuShape("A100-40GB", 8)), wanted)


@pytest.mark.parametrize("name", MACHINES)
def test_doctor_when_the_machine_is_wrong_then_it_is_found(
    name: str, live: Live, kube: LightKube, install: Callable[[Mapping[str, object]], None]
) -> None:
    values, gpu, wanted = MACHINES[name]
    install(values)
    check_node(live, kube, NodeShape("gpu-1", labels=PRESENT, taints=(GPU_TAINT,), gpu=gpu), wanted)


def check_node(live: Live, kube: LightKube, shape: NodeShape, wanted: set[str]) -> None:
    """Boot a node beside one without GPUs, and have the doctor look until it stays with its findings."""
    live.run(live.cluster.add_node(NodeShape(name="cpu-1", boot_s=1.0)))
    live.run(live.cluster.add_node(replace(shape, boot_s=1.0)))
    seen: list[tuple[set[str], bool]] = []

    def stays() -> bool:
        seen.append((errors_of(kube), _is_settled(kube, wanted)))
        return seen[-LOOKS:] == [(wanted, True)] * LOOKS

    wait_for(stays, lambda: seen[-LOOKS:], every_s=0.1)


def _is_settled(kube: LightKube, wanted: set[str]) -> bool:
    """Return whether all nodes are up, and a healthy one shows its devices; an ill one may show none."""
    if {node.name for node in kube.nodes() if node.ready} != {"cpu-1", "gpu-1"}:
        return False
    return bool(wanted) or any(node.devices.get("nvidia.com/gpu") == 8 for node in kube.nodes())
