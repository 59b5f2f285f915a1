"""A release that the user made with Helm becomes ours, by either Helm: values kept, killed or not."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.helm.chart import ChartSource, chart_types
from gpukube.cluster.helm.engine import HelmJob
from gpukube.cluster.kube.calls import global_kind
from gpukube.cluster.kube.client import LightKube
from gpukube.cluster.kube.releases import release_history
from gpukube.cluster.release.adoption import adoptable_releases
from gpukube.cluster.release.crds import CRDS, create_types, look_at_types
from gpukube.cluster.release.manager import apply_release
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.release.removal import kubeconfig_file
from gpukube.cluster.state.advertisers import check_advertisers, find_advertisers
from gpukube.cluster.state.snapshot import look
from gpukube.core.jsontree import at, items
from gpukube.errors import HelmError
from gpukube_sandbox.kube.nodes.shapes import NodeShape
from tests.unit.cluster.builders import SLICED, desire
from tests.wire.cluster.test_migration import boot, prove

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube.cluster.helm.engine import Engine
    from gpukube.cluster.release.manager import ReleaseManager
    from gpukube.cluster.release.plan import ReleasePlan
    from tests.wire.cluster.conftest import Live

POOL = desire(sharing=SLICED)
VALUES: dict[str, object] = {
    "config": {"map": {"vision": "version: v1\n"}, "default": "vision"},
    "gfd": {"enabled": True},
    "podAnnotations": {"team": "vision"},
}

NFD = "nfd.k8s-sigs.io"


@pytest.fixture(autouse=True)
def theirs(live: Live, kube: LightKube, engine: Engine, charts: ChartSource, tmp_path: Path) -> None:
    """Install the chart as its README does, under another name and with values of one's own."""
    kube.ensure_namespace("nvidia", {})
    chart = engine.pull(ChartSource(charts.location, "0.19.3"), tmp_path)
    with kubeconfig_file(live.access()) as path:
        engine.upgrade(HelmJob(path, "nvdp", "nvidia", chart, VALUES, installed=False, dry_run=False))
    # Their Helm makes the types; the engines leave them to the keeper.
    create_types(kube, look_at_types(kube, chart_types(chart, nfd=True)), time.sleep)
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


def test_takeover_when_somebody_else_made_its_types_then_those_stay_and_a_missing_one_is_made(
    keeper: ReleaseManager, kube: LightKube
) -> None:
    older, gone = f"nodefeatures.{NFD}", f"nodefeaturegroups.{NFD}"
    live = kube.find_object(CRDS, older)
    assert live is not None
    unlike: dict[str, object] = {"type": "object", "description": "of another release"}
    path = "/spec/versions/0/schema/openAPIV3Schema"
    assert kube.change_object(CRDS, live, [{"op": "replace", "path": path, "value": unlike}])
    kube._client.delete(global_kind(CRDS), gone)
    wanted = plan(kube)
    trial = keeper.dry_run(wanted)
    assert kube.find_object(CRDS, gone) is None  # a trial writes nothing
    assert apply_release(keeper, kube, wanted, lambda _missed: plan(kube)) is not None
    check_taken_over(kube)
    kept = items(kube.find_object(CRDS, older), "spec", "versions")
    assert at(kept[0], "schema", "openAPIV3Schema") == unlike
    assert kube.find_object(CRDS, gone) is not None
    assert trial.other_types == (older,)


def test_takeover_when_the_server_refuses_what_is_to_come_then_theirs_stands(
    keeper: ReleaseManager, kube: LightKube, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = plan(kube)
    keeper.dry_run(wanted)
    said = 'admission webhook "policy.example" denied the request: no hostPath'
    monkeypatch.setattr(LightKube, "try_object", lambda _self, kind, _obj: said if kind.kind == "DaemonSet" else "")
    with pytest.raises(HelmError, match="rejects DaemonSet") as caught:
        apply_release(keeper, kube, wanted, lambda _missed: plan(kube))
    assert caught.value.diagnostics[0].why == said
    assert [item.status for item in release_history(kube, "nvdp", "nvidia")] == ["deployed"]


def test_takeover_when_killed_after_theirs_left_then_the_next_run_finds_its_values(
    keeper: ReleaseManager, kube: LightKube
) -> None:
    (outgoing,) = plan(kube).leaves
    keeper.remove(outgoing)
    keeper.remove(outgoing)  # a repetition is fine
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
