"""What a plan makes of the state that pools are in: whose they are, protected, failed, on their way out.

Each test has one cloud in each run, another each day.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpukube import api
from gpukube.errors import Conflict, SpecError
from gpukube_sandbox import daemon
from sandbox_tests.eks.aws import Aws
from tests.changes.conftest import SPEED
from tests.changes.world import CLOUDS, SMALL, World, address, differences, prepare, spec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.changes.world import Document, Pool

pytestmark = pytest.mark.turns(3)

OWNER, POOL, PROTECT = "gpukube.io/owner", "gpukube.io/pool", "gpukube.io/protect"
NOBODY = {OWNER: None, POOL: None}
ANYTHING = api.Consent(allow_disruption=True, replace="recreate")
OTHER_TYPE = {"eks": "g4dn.2xlarge", "aks": "Standard_NC8as_T4_v3", "gke": "g2-standard-24"}
SLOW = 0.02
"""Sandbox seconds per second while a deletion must not end: it takes half a minute of the cloud's time."""
FAILED: Mapping[str, Document] = {
    "eks": {"status": "CREATE_FAILED", "issues": [{"code": "AsgInstanceLaunchFailures", "message": "no"}]},
    "aks": {"provisioningState": "Failed"},
    "gke": {"status": "ERROR"},
}


def pool(cloud: str, name: str, **more: object) -> Pool:
    """Write a small pool."""
    return {"name": name, "nodes": {"count": 1}, **SMALL[cloud], **more}


def shares(replicas: int) -> Document:
    """Write a sharing."""
    return {"timeSlicing": {"replicas": replicas, "failRequestsGreaterThanOne": True}}


@pytest.fixture(params=CLOUDS)
def cloud(request: pytest.FixtureRequest, world: World) -> str:
    """One cloud after the other, with an empty cluster."""
    world.reset()
    daemon.configure(world.info, speed=SPEED)
    chosen = str(request.param)
    world.make(chosen, "train")
    return chosen


def clusters(cloud: str, *names: str) -> dict[str, Document]:
    """Name clusters by their own names."""
    return {name: address(cloud, name) for name in names or ("train",)}


def written(cloud: str, owner: str, *pools: Pool) -> Document:
    """Write a spec for the cluster of the fixture."""
    return spec(owner, clusters(cloud), pools)


def made(world: World, *documents: Document) -> None:
    """Create, and insist that it went well."""
    reports = world.create(*documents)
    assert {name: str(report.error) for name, report in reports.items() if report.error is not None} == {}


def codes(caught: pytest.ExceptionInfo[Conflict]) -> list[str]:
    return [problem.code for problem in caught.value.diagnostics]


# Whose they are


def test_unowned_pool_when_it_matches_then_only_adopt_gives_it_our_marks(cloud: str, world: World) -> None:
    document = written(cloud, "ml", pool(cloud, "stray", labels={"team": "x"}))
    made(world, document)
    before = world.nodes("train")
    world.disown(cloud, "train", "stray", NOBODY)

    left = world.create(document)["stray"]
    assert (left.outcome, world.pools(document)["stray"].action) == ("failed", "conflict")
    planned = world.pools(document, adopt=True)["stray"]
    assert (planned.action, {str(c.change.field) for c in planned.changes}) == (
        "adopt",
        {f"labels[{OWNER}]", f"labels[{POOL}]"},
    )
    adopted = world.apply(document, adopt=True)["stray"]
    assert (adopted.outcome, adopted.message) == ("done", "adopted")
    assert differences(world.plan(document)) == []
    assert world.nodes("train") == before


def test_unowned_pool_when_it_differs_then_it_gets_our_marks_and_a_later_apply_the_rest(
    cloud: str, world: World
) -> None:
    document = written(cloud, "ml", pool(cloud, "stray", labels={"team": "x"}))
    made(world, document)
    world.disown(cloud, "train", "stray", {**NOBODY, "team": "y"})
    both = written(cloud, "ml", pool(cloud, "stray", labels={"team": "x"}), pool(cloud, "fresh"))

    planned = world.pools(both, adopt=True)
    assert {name: plan.action for name, plan in planned.items()} == {"stray": "adopt", "fresh": "create"}
    assert [problem.code for problem in planned["stray"].diagnostics] == ["adopt-differs"]
    reports = world.apply(both, consent=ANYTHING, adopt=True)
    assert {name: report.outcome for name, report in reports.items()} == {"stray": "done", "fresh": "done"}
    assert [str(c.change.field) for c in reports["stray"].changes] == ["labels[team]"]
    assert {name: plan.action for name, plan in world.pools(both).items()} == {"stray": "update", "fresh": "no-op"}
    assert world.apply(both)["stray"].outcome == "done"
    assert differences(world.plan(both)) == []


def test_unowned_pool_when_it_would_be_replaced_or_pruned_then_not_in_the_run_that_adopts(
    cloud: str, world: World
) -> None:
    made(world, written(cloud, "ml", pool(cloud, "stray", instanceType=OTHER_TYPE[cloud])))
    world.disown(cloud, "train", "stray", NOBODY)
    before = world.nodes("train")
    document = written(cloud, "ml", pool(cloud, "stray", sharing=shares(2)))

    adopted = world.apply(document, consent=ANYTHING, adopt=True, prune=True)["stray"]
    assert (adopted.outcome, adopted.message.partition(";")[0]) == ("done", "adopted")
    assert world.nodes("train") == before
    assert world.pools(document)["stray"].action == "replace"


def test_own_pool_when_released_then_a_stranger_that_stays_as_it_is(cloud: str, world: World) -> None:
    both = written(cloud, "ml", pool(cloud, "given", sharing=shares(2)), pool(cloud, "kept", sharing=shares(2)))
    made(world, both)
    before = world.nodes("train")
    document = written(cloud, "ml", pool(cloud, "given", sharing=shares(2)))

    for outcome in ("done", "unchanged"):  # run again, it has nothing to do
        assert world.release(["given"], document)["given"].outcome == outcome
    if cloud == "eks":
        templates = Aws(world.info).client("ec2").describe_launch_templates()["LaunchTemplates"]
        tags = {one["LaunchTemplateName"]: {tag["Key"] for tag in one["Tags"]} for one in templates}
        assert {name: OWNER in keys for name, keys in tags.items()} == {
            "gpukube/train/given": False,
            "gpukube/train/kept": True,
        }
    fewer = written(cloud, "ml", pool(cloud, "kept", sharing=shares(2)))
    assert differences(world.plan(fewer)) == []
    assert world.apply(fewer, consent=ANYTHING, prune=True)["kept"].outcome == "unchanged"
    with pytest.raises(Conflict):
        api.delete(prepare(document), world.run(), ["given"])
    assert [problem.code for problem in world.pools(document)["given"].diagnostics] == ["foreign-pool"]
    assert world.nodes("train") == before
    theirs = written(cloud, "they", pool(cloud, "given", sharing=shares(2)))
    assert world.apply(theirs, adopt=True)["given"].message == "adopted"
    assert (differences(world.plan(theirs)), world.nodes("train")) == ([], before)


def test_release_when_protected_of_another_owner_or_unknown_then_refused(cloud: str, world: World) -> None:
    made(world, written(cloud, "ml", pool(cloud, "dear", deletionProtection=True), pool(cloud, "plain")))
    document = written(cloud, "ml", pool(cloud, "plain"))
    theirs = written(cloud, "they", pool(cloud, "plain"))
    for spec_of, names, code in (
        (document, ["plain", "dear"], "protected"),
        (theirs, ["plain"], "not-ours"),
        (document, ["plain", "nobody"], "no-pool"),
    ):
        with pytest.raises((Conflict, SpecError)) as caught:
            world.release(names, spec_of)
        assert [problem.code for problem in caught.value.diagnostics] == [code]
    assert world.pools(document)["plain"].action == "no-op"
    world.disown(cloud, "train", "plain", {})  # as a release leaves it that was killed between tags and labels
    assert world.release(["plain"], document)["plain"].outcome == "done"


def test_own_pool_when_its_labels_were_replaced_then_apply_mends_it_and_nothing_else_touches_it(
    cloud: str, world: World
) -> None:
    document = written(cloud, "ml", pool(cloud, "wiped", labels={"team": "x"}, deletionProtection=True))
    made(world, document)
    before = world.nodes("train")
    world.relabel(cloud, "train", "wiped", {**NOBODY, PROTECT: None, "team": "other"})

    adopt = cloud == "gke"  # where a copy cannot change, it may be that of a pool which was released since
    assert world.create(document)["wiped"].outcome == ("failed" if adopt else "differs")
    with pytest.raises(Conflict) as caught:
        api.delete(prepare(document), world.run(), ["wiped"])
    assert codes(caught) == ["lost-marks"]
    elsewhere = written(cloud, "ml", pool(cloud, "fresh"))
    assert {name: plan.action for name, plan in world.pools(elsewhere, prune=True).items()} == {"fresh": "create"}
    if adopt:
        lost = world.pools(document)["wiped"]
        assert (lost.action, [found.code for found in lost.diagnostics]) == ("conflict", ["marks-lost"])
        assert world.apply(document)["wiped"].outcome == "failed"
    planned = world.pools(document, adopt=adopt)["wiped"]
    fields = {str(c.change.field) for c in planned.changes}
    assert planned.action == ("adopt" if adopt else "update")
    assert fields == {f"labels[{OWNER}]", f"labels[{POOL}]", "labels[team]", "deletionProtection"}
    assert world.apply(document, adopt=adopt)["wiped"].outcome == "done"
    if adopt:
        world.apply(document)
    live = world.pools(document)["wiped"].observed
    assert live is not None
    assert (live.owner, live.pool, live.protected) == ("ml", "wiped", True)
    assert (differences(world.plan(document)), world.nodes("train")) == ([], before)


def test_pool_of_another_owner_when_its_labels_were_replaced_then_it_stays_theirs(cloud: str, world: World) -> None:
    theirs = written(cloud, "they", pool(cloud, "taken", labels={"team": "x"}))
    made(world, theirs)
    before = world.nodes("train")
    world.relabel(cloud, "train", "taken", NOBODY)
    ours = written(cloud, "ml", pool(cloud, "taken", labels={"team": "x"}))

    for scope in ({"adopt": True}, {"adopt_from": ("others",)}):
        planned = world.pools(ours, **scope)["taken"]
        assert (planned.action, [problem.code for problem in planned.diagnostics]) == ("conflict", ["foreign-copy"])
    adopted = world.apply(ours, adopt_from=("they",))["taken"]
    assert (adopted.outcome, adopted.message) == ("done", "adopted")
    assert world.pools(theirs, adopt=True)["taken"].action == "conflict", "labels lead, whatever the copy names"
    world.relabel(cloud, "train", "taken", NOBODY)
    if cloud == "gke":  # the copy names its first owner for ever: nobody's plain apply restores anything by it
        for document, code in ((theirs, "marks-lost"), (ours, "foreign-copy")):
            planned = world.pools(document)["taken"]
            assert (planned.action, [problem.code for problem in planned.diagnostics]) == ("conflict", [code])
            assert world.apply(document)["taken"].outcome == "failed"
        assert world.apply(ours, adopt_from=("they",))["taken"].message == "adopted"
    else:
        assert world.pools(theirs, adopt=True)["taken"].action == "conflict"
        assert world.apply(ours)["taken"].outcome == "done"
    assert (differences(world.plan(ours)), world.nodes("train")) == ([], before)


def test_pool_released_under_its_second_name_when_declared_then_found_there_and_adopted(
    cloud: str, world: World
) -> None:
    document = written(cloud, "ml", pool(cloud, "moved"))
    made(world, written(cloud, "ml", pool(cloud, "moved", names={cloud: "movedb"})))
    before = world.nodes("train")
    assert world.pools(document)["moved"].name == "movedb"

    for outcome in ("done", "unchanged"):
        assert world.release(["moved"], document)["moved" if outcome == "done" else "movedb"].outcome == outcome
    planned = world.pools(document)["moved"]
    assert (planned.action, planned.name) == ("conflict", "movedb")
    assert [problem.code for problem in planned.diagnostics] == ["foreign-pool"]
    assert world.apply(document)["moved"].outcome == "failed"
    assert world.nodes("train") == before
    assert world.apply(document, adopt=True)["moved"].message == "adopted"
    live = world.pools(document)["moved"].observed
    assert live is not None
    assert "gpukube.io/released" not in live.labels
    assert (differences(world.plan(document)), world.nodes("train")) == ([], before)


def test_clone_when_the_printed_command_took_its_labels_off_then_ours_goes_on(cloud: str, world: World) -> None:
    document = written(cloud, "ml", pool(cloud, "t4"))
    made(
        world, written(cloud, "ml", pool(cloud, "t4", names={cloud: "t4b"})), written(cloud, "they", pool(cloud, "t4"))
    )
    copied = {OWNER: "ml", POOL: "t4"}
    world.disown(cloud, "train", "t4", copied)
    if cloud == "gke":  # under the declared name gpukube cannot detect it: docs/replace.md
        made(world, written(cloud, "they", pool(cloud, "victim")))
        world.disown(cloud, "train", "victim", copied)
    stranger = "victim" if cloud == "gke" else "t4"
    (problem,) = world.pools(document)["t4"].diagnostics
    assert problem.code == "two-pools"
    assert f"gpukube pool release train/{stranger} -f FILE" in str(problem.fix)
    with pytest.raises(Conflict) as caught:
        world.release(["t4"], document)
    assert codes(caught) == ["two-pools"]
    world.release([f"train/{stranger}"], document)
    if cloud == "gke":
        world.relabel(cloud, "train", "t4", NOBODY)
    planned = world.pools(document)["t4"]
    assert (planned.action, planned.name) == ("no-op", "t4b")


def test_pool_of_another_owner_when_declared_then_never_adopted_changed_or_deleted(cloud: str, world: World) -> None:
    theirs = written(cloud, "they", pool(cloud, "taken", labels={"team": "they"}))
    made(world, theirs)
    before = world.nodes("train")
    ours = written(cloud, "ml", pool(cloud, "taken", labels={"team": "ml"}))

    for adopt in (False, True):
        report = world.apply(ours, consent=ANYTHING, adopt=adopt, prune=True)["taken"]
        assert report.error is not None
        assert [problem.code for problem in report.error.diagnostics] == ["foreign-pool"]
    with pytest.raises(Conflict):
        api.delete(prepare(ours), world.run(), ["taken"])
    assert (differences(world.plan(theirs)), world.nodes("train")) == ([], before)


def test_prune_when_pools_are_no_longer_declared_then_only_ours_go_and_only_where_the_spec_is(
    cloud: str, world: World
) -> None:
    world.make(cloud, "elsewhere")
    everywhere = spec("ml", clusters(cloud, "train", "elsewhere"), [pool(cloud, "keep"), pool(cloud, "drop")])
    theirs = written(cloud, "they", pool(cloud, "theirs"))
    stray = written(cloud, "nobody", pool(cloud, "stray"))
    made(world, everywhere, theirs, stray)
    world.disown(cloud, "train", "stray", NOBODY)
    before = world.nodes("train"), world.nodes("elsewhere")
    fewer = written(cloud, "ml", pool(cloud, "keep"))

    assert differences(world.plan(fewer)) == ["train: undeclared drop"]
    world.apply(fewer, consent=ANYTHING)
    assert (world.nodes("train"), world.nodes("elsewhere")) == before
    reports = world.apply(fewer, prune=True)
    assert {name: (report.outcome, report.message) for name, report in reports.items() if name == "drop"} == {
        "drop": ("done", "deleted")
    }
    assert world.nodes("train") == {name: nodes for name, nodes in before[0].items() if name != "drop"}
    assert world.nodes("elsewhere") == before[1]
    assert differences(world.plan(fewer)) == []


def test_prune_when_a_pool_is_protected_then_refused_before_anything(cloud: str, world: World) -> None:
    made(world, written(cloud, "ml", pool(cloud, "keep"), pool(cloud, "dear", deletionProtection=True)))
    before = world.nodes("train")
    with pytest.raises(Conflict) as caught:
        world.apply(written(cloud, "ml", pool(cloud, "keep", labels={"a": "b"})), consent=ANYTHING, prune=True)
    assert (codes(caught), world.nodes("train")) == (["protected"], before)


def test_live_pool_when_its_name_in_the_cloud_is_written_otherwise_then_known_by_its_marks(
    cloud: str, world: World
) -> None:
    made(world, written(cloud, "ml", pool(cloud, "first")))
    before = world.nodes("train")
    again = pool(cloud, "first", names={cloud: "second"})
    assert differences(world.plan(written(cloud, "ml", again))) == []
    edited = written(cloud, "ml", {**again, "labels": {"a": "b"}})
    assert world.apply(edited)["first"].outcome == "done"
    assert (differences(world.plan(edited)), world.nodes("train")) == ([], before)
    other = written(cloud, "ml", {**again, "instanceType": OTHER_TYPE[cloud]})
    assert world.apply(other, consent=ANYTHING)["first"].outcome == "done"
    assert differences(world.plan(other)) == []
    assert world.nodes("train").keys() - before.keys() == {"second"}
    assert before.keys() - world.nodes("train").keys() == {"first"}


def test_entries_of_the_plugin_when_one_spec_changes_its_own_then_those_of_others_stay(
    cloud: str, world: World
) -> None:
    empty = {"nodes": {"autoscaling": {"min": 0, "max": 1}}}
    theirs = written(cloud, "they", pool(cloud, "theirs", sharing=shares(4), **empty))
    made(world, written(cloud, "ml", pool(cloud, "ours", sharing=shares(2)), pool(cloud, "more", **empty)), theirs)
    ours = written(cloud, "ml", pool(cloud, "ours", sharing=shares(3)), pool(cloud, "more", **empty))

    assert world.apply(ours, consent=ANYTHING)["ours"].outcome == "done"
    assert (differences(world.plan(ours)), differences(world.plan(theirs))) == ([], [])
    fewer = written(cloud, "ml", pool(cloud, "more", **empty))
    assert world.apply(fewer, consent=ANYTHING, prune=True)["ours"].outcome == "done"
    assert (differences(world.plan(fewer)), differences(world.plan(theirs))) == ([], [])


# Protection


def test_protection_when_the_live_mark_is_set_then_no_consent_replaces_or_deletes(cloud: str, world: World) -> None:
    plain = written(cloud, "ml", pool(cloud, "dear"))
    made(world, plain)
    world.relabel(cloud, "train", "dear", {PROTECT: "true"})
    before = world.nodes("train")
    other = written(cloud, "ml", pool(cloud, "dear", instanceType=OTHER_TYPE[cloud]))

    with pytest.raises(Conflict) as caught:
        world.apply(other, consent=ANYTHING)
    assert codes(caught) == ["protected"]
    with pytest.raises(Conflict) as caught:
        api.delete(prepare(plain), world.run(), ["dear"])
    assert (codes(caught), world.nodes("train")) == (["protected"], before)
    assert {str(c.change.field) for c in world.pools(plain)["dear"].changes} == {"deletionProtection"}
    world.apply(plain)
    assert world.apply(other, consent=ANYTHING)["dear"].outcome == "done"
    assert differences(world.plan(other)) == []
    observed = world.pools(other)["dear"].observed
    assert observed is not None
    assert observed.instance_type == OTHER_TYPE[cloud]


def test_protection_when_only_the_spec_has_it_then_the_live_mark_decides(cloud: str, world: World) -> None:
    made(world, written(cloud, "ml", pool(cloud, "dear")))
    other = written(cloud, "ml", pool(cloud, "dear", instanceType=OTHER_TYPE[cloud], deletionProtection=True))
    assert world.apply(other, consent=ANYTHING)["dear"].outcome == "done"
    assert differences(world.plan(other)) == []
    with pytest.raises(Conflict):
        api.delete(prepare(other), world.run(), ["dear"])


# Failed, deleting


def test_failed_pool_when_it_has_nodes_then_they_are_never_made_again(cloud: str, world: World) -> None:
    document = written(cloud, "ml", pool(cloud, "hurt"))
    made(world, document)
    before = world.nodes("train")
    daemon.tamper(world.info, "train", "hurt", **FAILED[cloud])

    planned = world.pools(document)["hurt"]
    report = world.apply(document, consent=ANYTHING)["hurt"]
    assert world.nodes("train") == before
    if cloud == "aks":  # a PUT of the same pool repairs it
        assert (planned.action, len(planned.requests), report.outcome) == ("create", 1, "done")
        assert differences(world.plan(document)) == []
    else:
        assert [problem.code for problem in planned.diagnostics] == ["failed-with-nodes"]
        assert (planned.action, planned.requests, report.outcome) == ("conflict", (), "failed")


def going(world: World, document: Document, name: str) -> None:
    """Begin the deletion of a pool, and let time pass slowly from then on."""
    daemon.configure(world.info, speed=SLOW)
    api.delete(prepare(document), world.run(no_wait=True), [name])


def test_pool_that_is_being_deleted_when_applied_then_waited_for_and_made_again(cloud: str, world: World) -> None:
    document = written(cloud, "ml", pool(cloud, "back"))
    made(world, document)
    going(world, document, "back")

    def look(plans: Sequence[api.ClusterPlan]) -> None:
        daemon.configure(world.info, speed=SPEED)
        ((planned,),) = (plan.pools for plan in plans)
        assert (planned.action, planned.observed and planned.observed.state) == ("create", "deleting")
        assert "is being deleted" in planned.why

    report = world.apply(document, confirm=look)["back"]
    assert (report.outcome, report.message) == ("done", "created")
    assert differences(world.plan(document)) == []


def test_pool_that_is_being_deleted_when_no_longer_declared_then_prune_waits_for_its_end(
    cloud: str, world: World
) -> None:
    document = written(cloud, "ml", pool(cloud, "keep"), pool(cloud, "gone"))
    made(world, document)
    going(world, document, "gone")
    fewer = written(cloud, "ml", pool(cloud, "keep"))

    def look(plans: Sequence[api.ClusterPlan]) -> None:
        daemon.configure(world.info, speed=SPEED)
        (found,) = ({planned.pool: planned.action for planned in plan.pools} for plan in plans)
        assert found == {"keep": "no-op", "gone": "delete"}

    assert world.apply(fewer, prune=True, confirm=look)["gone"].outcome == "done"
    assert "gone" not in world.nodes("train")
    assert differences(world.plan(fewer)) == []


# What only others make


def test_aks_pool_when_somebody_made_it_without_a_driver_then_only_a_replacement_has_one(world: World) -> None:
    world.reset()
    world.make("aks", "train")
    document = written("aks", "ml", pool("aks", "bare"))
    made(world, document)
    daemon.tamper(world.info, "train", "bare", gpuProfile={"driver": "None"})

    changes = [(str(c.change.field), c.change.old, c.row.kind) for c in world.pools(document)["bare"].changes]
    assert changes == [("driver", "none", "replace")]
    assert world.apply(document, consent=ANYTHING)["bare"].outcome == "done"
    assert differences(world.plan(document)) == []


def test_autoscaled_pool_when_the_autoscaler_moved_the_count_then_no_difference(cloud: str, world: World) -> None:
    document = written(cloud, "ml", pool(cloud, "moving", nodes={"autoscaling": {"min": 1, "max": 3}}))
    made(world, document)
    wire: Mapping[str, Any] = {
        "eks": {"scalingConfig": {"minSize": 1, "maxSize": 3, "desiredSize": 2}},
        "aks": {"count": 2},
        "gke": {"initialNodeCount": 2},
    }
    daemon.tamper(world.info, "train", "moving", **wire[cloud])
    assert len(world.nodes("train")["moving"]) > 0
    assert differences(world.plan(document)) == []
    edited = written(cloud, "ml", pool(cloud, "moving", labels={"a": "b"}, nodes={"autoscaling": {"min": 1, "max": 3}}))
    assert world.apply(edited)["moving"].outcome == "done"
    assert differences(world.plan(edited)) == []
