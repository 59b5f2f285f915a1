"""A release that the user made with Helm becomes ours, by either Helm: values kept, killed or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.helm.chart import ChartSource
from gpukube.cluster.helm.engine import HelmJob
from gpukube.cluster.kube.releases import release_history
from gpukube.cluster.release.adoption import adoptable_releases
from gpukube.cluster.release.manager import apply_release
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.release.removal import kubeconfig_file
from gpukube.cluster.state.advertisers import check_advertisers, find_advertisers
from gpukube.cluster.state.snapshot import look
from gpukube.sandbox.kube.nodes.shapes import NodeShape
from tests.unit.cluster.builders import SLICED, desire
from tests.wire.cluster.test_migration import boot, prove

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube.cluster.helm.engine import Engine
    from gpukube.cluster.kube.client import LightKube
    from gpukube.cluster.release.manager import ReleaseManager
    from gpukube.cluster.release.plan import ReleasePlan
    from tests.wire.cluster.conftest import Live

POOL = desire(sharing=SLICED)
VALUES: dict[str, object] = {
    "config": {"map": {"vision": "version: v1\n"}, "default": "vision"},
    "gfd": {"enabled": True},
    "podAnnotations": {"team": "vision"},
}


@pytest.fixture(autouse=True)
def theirs(live: Live, kube: LightKube, engine: Engine, charts: ChartSource, tmp_path: Path) -> None:
    """Install the chart as its README does, under another name and with values of one's own."""
    kube.ensure_namespace("nvidia", {})
    chart = engine.pull(ChartSource(charts.location, "0.19.3"), tmp_path)
    with kubeconfig_file(live.access()) as path:
        engine.upgrade(HelmJob(path, "nvdp", "nvidia", chart, VALUES, installed=False, dry_run=False))
    boot(live, POOL)
    live.run(live.cluster.add_node(NodeShape(name="cpu-1", boot_s=1.0)))  # NFD's clean-up job needs a node


def plan(kube: LightKube) -> ReleasePlan:
    seen = look(kube)
    return plan_release([POOL], seen, adopt=adoptable_releases(kube, seen))


def check_taken_over(kube: LightKube) -> None:
    prove(kube, POOL)
    seen = look(kube)
    after = plan_release([POOL], seen, adopt=adoptable_releases(kube, seen))
    assert (after.action, after.values["podAnnotations"]) == ("none", {"team": "vision"})
    assert "vision" in (seen.config_map or {})
    assert release_history(kube, "nvdp", "nvidia") == ()
    assert check_advertisers(find_advertisers(seen, [POOL]), [POOL]) == []


def test_release_when_nobody_allows_a_takeover_then_refused_with_both_ways_out(kube: LightKube) -> None:
    (found,) = check_advertisers(find_advertisers(look(kube), [POOL]), [POOL])
    assert "DaemonSet nvidia/nvdp-nvidia-device-plugin could advertise" in found.seen
    assert "devicePlugin.owner: none" in found.fix
    assert "helm uninstall nvdp --namespace nvidia" in found.fix


def test_takeover_when_allowed_then_values_and_nodes_are_ours(keeper: ReleaseManager, kube: LightKube) -> None:
    wanted = plan(kube)
    keeper.dry_run(wanted)
    assert apply_release(keeper, kube, wanted, lambda _missed: plan(kube)) is not None
    check_taken_over(kube)


def test_takeover_when_killed_after_theirs_left_then_the_next_run_finds_its_values(
    keeper: ReleaseManager, kube: LightKube
) -> None:
    (leaving,) = plan(kube).leaves
    keeper.remove(leaving)
    keeper.remove(leaving)  # a repetition is fine
    again = plan(kube)
    assert [item.there for item in again.leaves] == [False]
    apply_release(keeper, kube, again, lambda _missed: plan(kube))
    check_taken_over(kube)


def test_takeover_when_killed_before_the_records_go_then_the_next_run_has_nothing_to_do(
    keeper: ReleaseManager, kube: LightKube
) -> None:
    wanted = plan(kube)
    keeper.remove(wanted.leaves[0])
    keeper.install_or_upgrade(wanted, 0)
    assert plan(kube).action == "none"
    assert [item.status for item in release_history(kube, "nvdp", "nvidia")][-1:] == ["uninstalled"]
