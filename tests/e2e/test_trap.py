"""The trap of other taints: the chart's own NFD workers tolerate the default GPU taint only, and nodes show nothing."""

from __future__ import annotations

import json
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from gpukube import api
from gpukube.cluster.helm.chart import ChartSource, chart_types
from gpukube.cluster.helm.choice import choose_engine
from gpukube.cluster.helm.engine import HelmJob
from gpukube.cluster.kube.client import connect_kube
from gpukube.cluster.release.crds import create_types, look_at_types
from gpukube.core.values import KubeAccess
from gpukube_sandbox.environment import kubeconfig
from sandbox_tests.waiting import PATIENCE_S, wait_for
from tests.changes.world import SMALL, prepare, spec
from tests.e2e.scenarios import SKU, one
from tests.e2e.stage import ailments, errors_of, inside, totals

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.changes.world import Document
    from tests.e2e.stage import Stage

EVERYWHERE = [{"operator": "Exists"}]
BY_HAND = {"gfd": {"enabled": True}, "tolerations": EVERYWHERE}
"""What a careful user sets: plugin and GFD tolerate everything; NFD's workers are another chart's."""
WITH_WORKERS = {**BY_HAND, "nfd": {"worker": {"tolerations": EVERYWHERE}}}


def pools(cloud: str, **more: object) -> list[Document]:
    """Write a pool with the default taint, and one with another taint only."""
    other = one("other", SMALL[cloud], gpuTaint=False, taints=[SKU], **more)
    return [one("usual", SMALL[cloud], **more), other]


def install(stage: Stage, cluster: str, directory: Path, values: Mapping[str, object]) -> None:
    """Install the stand-in chart as a user with Helm does; the engine leaves a chart's types to others."""
    document = kubeconfig(stage.info)["kubeconfig"]
    assert isinstance(document, dict)
    (context,) = [item["name"] for item in document["contexts"] if str(item["name"]).endswith(cluster)]
    access = directory / "kubeconfig"
    access.write_text(json.dumps({**document, "current-context": context}))
    run = stage.run()
    engine = choose_engine(run.environ)
    source = ChartSource(run.chart.location, version="0.20.0")
    chart = directory / "nvidia-device-plugin-0.20.0.tgz"
    chart = chart if chart.exists() else engine.pull(source, directory)
    with inside(stage.info, cluster) as there:
        installed = there.has_namespace("nvidia")
        there.make_namespace("nvidia")
    named = KubeAccess(access.read_text())
    with closing(connect_kube(named, PATIENCE_S)) as kube:
        create_types(kube, look_at_types(kube, chart_types(chart, nfd=True)), time.sleep)
    engine.upgrade(HelmJob(access, "nvdp", "nvidia", chart, values, installed, dry_run=False))


@pytest.mark.parametrize("cloud", ["aks", pytest.param("eks", marks=pytest.mark.slow)])
def test_chart_by_hand_when_a_taint_is_not_the_default_then_no_devices_until_the_workers_tolerate_it(
    cloud: str, stage: Stage, tmp_path: Path
) -> None:
    key = f"byhand-{cloud}"
    document = spec("byhand", {key: stage.make(cloud, key)}, pools(cloud, devicePlugin={"owner": "none"}))
    api.create(prepare(document), stage.run(no_wait=True))  # nobody advertises yet

    with inside(stage.info, key) as cluster:
        install(stage, key, tmp_path, BY_HAND)
        wait_for(lambda: cluster.devices("usual") == [{"gpu": 1}], lambda: cluster.devices("usual"))
        assert cluster.devices("other") == [{}]
        remedies: dict[str, str] = {}

        def is_found() -> bool:
            remedies.update({check: ailment.fix for _, check, ailment in ailments(stage.diagnose(document))})
            return "nfd-worker-not-tolerating" in remedies

        wait_for(is_found, lambda: remedies)
        assert "sku=gpu:NoSchedule" in remedies["nfd-worker-not-tolerating"]

        install(stage, key, tmp_path, WITH_WORKERS)
        wait_for(lambda: cluster.devices("other") == [{"gpu": 1}], lambda: cluster.devices("other"))


@pytest.mark.parametrize("cloud", ["aks", *(pytest.param(cloud, marks=pytest.mark.slow) for cloud in ("eks", "gke"))])
def test_release_of_gpukube_when_a_taint_is_not_the_default_then_both_pools_show_their_devices(
    cloud: str, stage: Stage
) -> None:
    key = f"ours-{cloud}"
    document = spec("ours", {key: stage.make(cloud, key)}, pools(cloud))
    assert errors_of(stage.create_all(document)) == {}
    seen = stage.require_green(document)
    assert {name: totals(report) for name, report in seen.items()} == {
        f"{key}/usual": {"gpu": 1},
        f"{key}/other": {"gpu": 1},
    }
