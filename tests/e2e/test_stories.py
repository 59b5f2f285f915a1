"""What becomes of clusters over time: pools come and go, charts move up, an upgrade fails. All is well each time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube import api
from gpukube_sandbox import daemon
from gpukube_sandbox.kube.repository import archive_name, chart_archive
from tests.changes.world import SMALL, prepare, spec
from tests.e2e.scenarios import CUTTABLE, MPS, SKU, SLICED, cut, one
from tests.e2e.stage import errors_of, inside, totals

if TYPE_CHECKING:
    from pathlib import Path

    from tests.changes.world import Document, Pool
    from tests.e2e.stage import Stage

DISTURBING = api.Consent(allow_disruption=True)
OLD, NEW = "0.19.3", "0.20.0"
ALL = ("aks", "eks", "gke")
CHARTED = ("aks", "eks")
MACHINE: Pool = {"instanceType": {cloud: SMALL[cloud]["instanceType"] for cloud in ALL}}


def clusters_of(stage: Stage, story: str, clouds: tuple[str, ...]) -> dict[str, Document]:
    """Make a cluster for the story on each cloud."""
    return {f"{story}-{cloud}": stage.make(cloud, f"{story}-{cloud}") for cloud in clouds}


def archive(version: str, directory: Path) -> str:
    """Write the archive of a version of the stand-in chart."""
    path = directory / archive_name(version)
    path.write_bytes(chart_archive(version))
    return str(path)


@pytest.mark.turns(3)
@pytest.mark.parametrize("cloud", ALL)
def test_pools_when_added_later_and_removed_then_well_each_time(stage: Stage, cloud: str) -> None:
    clusters = clusters_of(stage, "grow", (cloud,))
    first, other = one("first", MACHINE), one("other", MACHINE, sharing=SLICED)
    strange = one("strange", MACHINE, sharing=MPS, taints=[SKU])
    devices = {"first": {"gpu": 1}, "other": {"gpu": 4}, "strange": {"gpu": 4}}

    assert errors_of(stage.create_all(spec("story", clusters, [first]))) == {}
    three = spec("story", clusters, [first, other, strange])
    assert errors_of(stage.apply_all(three)) == {}
    seen = {name: totals(report) for name, report in stage.require_green(three).items()}
    assert seen == {f"{key}/{name}": shown for key in clusters for name, shown in devices.items()}

    two = spec("story", clusters, [first, other])
    assert errors_of(stage.apply_all(two, prune=True)) == {}
    stage.require_green(two)
    assert [key for key in clusters if "strange" in stage.nodes(key)] == []
    for key in (f"grow-{name}" for name in CHARTED if name == cloud):
        with inside(stage.info, key) as cluster:
            assert len(cluster.config()) == 2, key  # of the whole and the sliced GPU: that of the removed pool is gone


def test_chart_when_a_pool_comes_that_only_the_operator_can_cut_then_refused_and_all_stays(stage: Stage) -> None:
    clusters = clusters_of(stage, "later", ("eks",))
    whole, single = one("whole", SMALL["eks"]), one("single", CUTTABLE["eks"], sharing=cut("eks"))
    before, both = spec("later", clusters, [whole]), spec("later", clusters, [whole, single])
    assert errors_of(stage.create_all(before)) == {}

    (plan,) = stage.plan(both)
    (refusal,) = [item for item in plan.diagnostics if item.severity == "error"]
    assert (refusal.code, refusal.fix.count("; or, ")) == ("release-migration", 1)  # two ways out
    (report,) = api.apply(prepare(both), stage.run(), consent=DISTURBING)
    assert report.error is not None
    assert "single" not in stage.nodes("later-eks")
    stage.require_green(before)


@pytest.mark.slow
def test_layout_when_it_replaces_a_profile_and_changes_then_the_devices_follow(stage: Stage) -> None:
    clusters = clusters_of(stage, "layout", ("eks",))
    steps: list[tuple[Pool, dict[str, int]]] = [
        ({"profile": "1g.10gb", "strategy": "mixed"}, {"mig-1g.10gb": 7}),
        ({"layout": ["3g.40gb", "2g.20gb", "2g.20gb"], "strategy": "mixed"}, {"mig-3g.40gb": 1, "mig-2g.20gb": 2}),
        ({"layout": ["4g.40gb", "3g.40gb"], "strategy": "mixed"}, {"mig-4g.40gb": 1, "mig-3g.40gb": 1}),
    ]
    for mig, devices in steps:
        document = spec("layout", clusters, [one("cut", CUTTABLE["eks"], sharing={"mig": mig})])
        reports = api.apply(prepare(document), stage.run(), consent=DISTURBING)
        assert [str(report.error) for report in reports if report.error] == []
        seen = {name: totals(report) for name, report in stage.verify(document).items()}
        assert {key: count for key, count in seen["layout-eks/cut"].items() if count} == devices


@pytest.mark.slow
def test_chart_when_upgraded_then_the_new_version_serves_all(stage: Stage, tmp_path: Path) -> None:
    clusters = clusters_of(stage, "up", CHARTED)
    document = spec("up", clusters, [one("whole", MACHINE), one("sliced", MACHINE, sharing=SLICED)])
    old, new = (replace(stage, chart=archive(version, tmp_path)) for version in (OLD, NEW))
    assert errors_of(old.create_all(document)) == {}
    old.require_green(document)
    before = {plan.cluster.key: plan.release for plan in new.plan(document)}
    told = {key: (release.action, release.version) for key, release in before.items() if release}
    assert told == dict.fromkeys(clusters, ("upgrade", NEW))

    assert errors_of(new.apply_all(document)) == {}
    new.require_green(document)
    for key, release in before.items():
        assert release is not None
        with inside(stage.info, key) as cluster:
            assert cluster.release_states() == {release.revision: "superseded", release.revision + 1: "deployed"}
            assert cluster.chart_labels() == {f"nvidia-device-plugin-{NEW}"}


@pytest.mark.turns(2)
@pytest.mark.parametrize("cloud", CHARTED)
def test_chart_when_its_upgrade_fails_then_the_former_one_is_back_and_the_next_try_works(
    stage: Stage, cloud: str
) -> None:
    clusters = clusters_of(stage, "down", (cloud,))
    whole, sliced = one("whole", MACHINE), one("sliced", MACHINE, sharing=SLICED)
    one_pool, two_pools = spec("down", clusters, [whole]), spec("down", clusters, [whole, sliced])
    assert errors_of(stage.create_all(one_pool)) == {}

    for key in clusters:
        path = rf"/{key}/.*/configmaps/"
        daemon.add_fault(stage.info, "status", service="kube", method="PATCH", path=path, status=403)
    try:
        reports = api.apply(prepare(two_pools), stage.run())
    finally:
        daemon.clear_faults(stage.info)
    assert {report.cluster.key: report.error is not None for report in reports} == dict.fromkeys(clusters, True)
    assert [key for key in clusters if "sliced" in stage.nodes(key)] == []
    stage.require_green(one_pool)
    for key in clusters:
        with inside(stage.info, key) as cluster:
            states = cluster.release_states()
            assert (states[max(states)], "failed" in states.values()) == ("deployed", True), states

    assert errors_of(stage.apply_all(two_pools)) == {}
    stage.require_green(two_pools)
