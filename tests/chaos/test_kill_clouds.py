"""Killed at any request to AWS or Google Cloud and run again, `pool create` and `pool delete` converge.

The boundaries are those of `test_kill`: a request that was not processed ("hang"), or whose answer never left
("hang-after"). A creation on EKS is two changes, a launch template and a node group; on GKE it is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest

from gpukube_sandbox import daemon
from tests.chaos.clouds import STORIES, calls_since, record, require_converged, templates
from tests.chaos.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from _pytest.mark.structures import ParameterSet

    from gpukube_sandbox.daemon import SandboxInfo
    from tests.chaos.clouds import Call, Record, Story
    from tests.chaos.stage import Ended, Forge, Started

    Undisturbed = Callable[[Story], Record]

Action = Literal["hang", "hang-after"]

BOTH: tuple[Action, ...] = ("hang", "hang-after")
WRITES = {
    "eks-timeslicing": ("CreateLaunchTemplate", "POST node-groups"),
    "eks-mig": ("CreateLaunchTemplate", "POST node-groups"),
    "gke-timesharing": ("POST nodePools",),
    "gke-mig": ("POST nodePools",),
}
"""The changes that a creation asks its cloud for, in order."""
MOST_CALLS = 44
NORMAL_S, SLOW_S = 10.0, 12000.0
"""How long the cloud takes to finish a change; slow is 2.4 s of ours: the next run meets the pool while it goes."""
EKS, GKE = "eks-timeslicing", "gke-timesharing"
"""The stories of the default set; those with MIG differ inside the cluster, not in what they ask of the cloud."""
FAILURES = {EKS: "NodeCreationFailure", GKE: "GCE_QUOTA_EXCEEDED"}
"""Why a first creation fails, so that the next run deletes the pool and makes it again."""


def named(name: str, *more: object) -> ParameterSet:
    """One case of a story; slow outside of the default set, and where a deletion is cut off before it was processed."""
    is_slow = name not in (EKS, GKE) or "delete" in more
    return pytest.param(name, *more, marks=[pytest.mark.slow] if is_slow else [])


def changes() -> list[ParameterSet]:
    """Every change of every story, not processed or not answered."""
    return [named(name, at, action) for name, writes in WRITES.items() for at in range(len(writes)) for action in BOTH]


@pytest.fixture(scope="session")
def undisturbed_on(running_sandbox: SandboxInfo, forge: Forge, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """Record a story's undisturbed run when it is first asked for; the sandbox is empty before and after."""
    known: dict[str, Record] = {}

    def look_up(story: Story) -> Record:
        if story.example not in known:
            daemon.reset(running_sandbox)
            with Stage(running_sandbox, forge, tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("tmp")) as made:
                known[story.example] = record(made, story)
            daemon.reset(running_sandbox)
        return known[story.example]

    return look_up


def kill(stage: Stage, story: Story, call: Call, action: Action) -> bool:
    """Start a creation and kill it at one request; False when it ended before."""
    daemon.add_fault(stage.info, action, service=story.service, nth=call.nth)
    killed = stage.kill_at_fault(stage.start_create(story.spec), with_children=True)
    daemon.clear_faults(stage.info)
    stage.require_private()
    return killed


@pytest.mark.parametrize("name", [named(name) for name in STORIES])
def test_boundaries_when_compared_with_an_undisturbed_run_then_none_is_left_out(
    undisturbed_on: Undisturbed, name: str
) -> None:
    found = undisturbed_on(STORIES[name])
    assert tuple(call.name for call in found.writes) == WRITES[name]
    assert len(found.calls) <= MOST_CALLS
    if name.startswith("eks"):
        assert {"GetCallerIdentity", "GET train", "DescribeLaunchTemplates"} <= {c.name for c in found.calls}
        template, group = found.writes
        assert group.nth == template.nth + 1


@pytest.mark.turns(2)
@pytest.mark.parametrize("name", [named(name) for name in (EKS, GKE, "eks-mig", "gke-mig")])
def test_create_when_killed_at_every_cloud_call_before_the_first_change_in_a_row_then_converges(
    stage: Stage, undisturbed_on: Undisturbed, name: str
) -> None:
    story = STORIES[name]
    undisturbed = undisturbed_on(story)
    for call in undisturbed.calls[: undisturbed.before]:
        assert kill(stage, story, call, "hang"), call
        assert (stage.pools(), templates_of(stage, story)) == (story.others, {})
    require_converged(stage, stage.create(story.spec), story, undisturbed)


@pytest.mark.turns(4)
@pytest.mark.parametrize(("name", "at", "action"), changes())
def test_create_when_killed_at_a_change_of_the_cloud_then_converges(
    stage: Stage, undisturbed_on: Undisturbed, name: str, at: int, action: Action
) -> None:
    story = STORIES[name]
    undisturbed = undisturbed_on(story)
    assert kill(stage, story, undisturbed.writes[at], action)
    require_converged(stage, stage.create(story.spec), story, undisturbed)


@pytest.mark.parametrize("name", [pytest.param(EKS, marks=pytest.mark.slow), GKE])
def test_create_when_killed_at_every_cloud_call_after_the_change_in_a_row_then_converges(
    stage: Stage, undisturbed_on: Undisturbed, name: str
) -> None:
    story = STORIES[name]
    undisturbed = undisturbed_on(story)
    assert kill(stage, story, undisturbed.writes[-1], "hang-after")
    struck = 0
    for call in undisturbed.calls:  # a run that finds the pool asks less
        if not kill(stage, story, call, "hang"):
            break
        struck += 1
    quotas = sum(QUOTA_READS[story.service](call.path) for call in undisturbed.calls[: undisturbed.before])
    assert struck >= undisturbed.before - quotas
    require_converged(stage, stage.create(story.spec), story, undisturbed)


QUOTA_READS: dict[str, Callable[[str], bool]] = {
    "aws": lambda path: path == "/",
    "gke": lambda path: "/compute/" in path or "/quotaInfos" in path,
}
"""Calls of a run that makes a pool and not of one that finds it."""


@pytest.mark.slow
@pytest.mark.parametrize("action", BOTH)
@pytest.mark.parametrize("at", range(MOST_CALLS))
@pytest.mark.parametrize("name", STORIES)
def test_create_when_killed_at_any_cloud_call_then_converges(
    stage: Stage, undisturbed_on: Undisturbed, name: str, at: int, action: Action
) -> None:
    story = STORIES[name]
    undisturbed = undisturbed_on(story)
    if at >= len(undisturbed.calls):
        pytest.skip(f"an undisturbed run has {len(undisturbed.calls)} such calls")
    if not kill(stage, story, undisturbed.calls[at], action):
        pytest.skip("this run asked less often how far the pool is")
    require_converged(stage, stage.create(story.spec), story, undisturbed)


# A pool that failed, is deleted, and is made again


def fail_first(stage: Stage, story: Story) -> None:
    """Let the first creation leave a pool that failed."""
    daemon.add_fault(stage.info, "operation", pool=story.pool, code=FAILURES[story.example])
    ended = stage.create(story.spec)
    stage.require_polite(ended)
    assert ended.code != 0, ended.said
    daemon.clear_faults(stage.info)


def set_settling(stage: Stage, story: Story, seconds: float) -> None:
    """Set how long the cloud takes to finish a change, in its own seconds."""
    daemon.configure(stage.info, **{"eksPace" if story.service == "aws" else "gkePace": {"settle_s": seconds}})


CUTS: dict[str, tuple[str, Action]] = {
    "delete": ("DELETE", "hang"),
    "delete, unanswered": ("DELETE", "hang-after"),
    "create": ("POST", "hang"),
    "create, unanswered": ("POST", "hang-after"),
}
"""Where the repair of a failed pool is cut off."""
GROUPS = {EKS: "/node-groups", GKE: "/nodePools"}


@pytest.mark.turns(3)
@pytest.mark.parametrize(
    ("name", "cut"),
    [named(name, cut) for name in FAILURES for cut in CUTS],
)
def test_create_when_killed_while_a_failed_pool_is_made_again_then_the_next_run_converges(
    stage: Stage, undisturbed_on: Undisturbed, name: str, cut: str
) -> None:
    story = STORIES[name]
    undisturbed = undisturbed_on(story)
    fail_first(stage, story)
    method, action = CUTS[cut]
    set_settling(stage, story, SLOW_S if cut == "delete, unanswered" else NORMAL_S)
    daemon.add_fault(stage.info, action, service=story.service, method=method, path=GROUPS[name])
    assert stage.kill_at_fault(stage.start_create(story.spec), with_children=True)
    set_settling(stage, story, NORMAL_S)
    require_converged(stage, stage.create(story.spec), story, undisturbed)


# Deletions


def templates_of(stage: Stage, story: Story) -> dict[str, int]:
    """Launch templates, where the cloud has them."""
    return {} if story.templates is None else templates(stage)


def start_delete(stage: Stage, story: Story) -> Started:
    """Start `pool delete`."""
    return stage.start("pool", "delete", story.pool, "--yes", "-f", str(story.spec), "-o", "json")


def require_deleted(stage: Stage, story: Story, ended: Ended) -> None:
    """Group and template are gone, others stay, and one more deletion sends no change."""
    stage.require_polite(ended)
    assert ended.code == 0, ended.said
    assert (stage.pools(), templates_of(stage, story)) == (story.others, {})
    mark = len(daemon.requests_since(stage.info))
    again = start_delete(stage, story).wait()
    assert again.code == 0, again.said
    assert not [call for call in calls_since(stage.info, story.service, mark) if not call.is_read]


DELETIONS = {"group": {"method": "DELETE"}, "template": {"path": "DeleteLaunchTemplate"}}
"""The two changes of a deletion on EKS."""


@pytest.mark.turns(4)
@pytest.mark.parametrize(("call", "action"), [(call, action) for call in DELETIONS for action in BOTH])
def test_delete_when_killed_at_the_group_or_the_template_then_the_next_one_leaves_neither(
    stage: Stage, call: str, action: Action
) -> None:
    story = STORIES[EKS]
    stage.made(story.spec)
    daemon.add_fault(stage.info, action, service=story.service, **DELETIONS[call])
    assert stage.kill_at_fault(start_delete(stage, story), with_children=True)
    if call == "template":
        left = {} if action == "hang-after" else story.templates
        assert (stage.pools(), templates(stage)) == (story.others, left)
    require_deleted(stage, story, start_delete(stage, story).wait())


def test_create_when_a_deletion_was_killed_between_group_and_template_then_the_template_is_used_again(
    stage: Stage, undisturbed_on: Undisturbed
) -> None:
    story = STORIES[EKS]
    undisturbed = undisturbed_on(story)
    stage.made(story.spec)
    daemon.add_fault(stage.info, "hang", service=story.service, **DELETIONS["template"])
    assert stage.kill_at_fault(start_delete(stage, story), with_children=True)
    require_converged(stage, stage.create(story.spec), story, undisturbed)


@pytest.mark.turns(4)
@pytest.mark.parametrize(("name", "at", "action"), changes())
def test_delete_when_the_creation_was_killed_then_nothing_is_left(
    stage: Stage, undisturbed_on: Undisturbed, name: str, at: int, action: Action
) -> None:
    story = STORIES[name]
    assert kill(stage, story, undisturbed_on(story).writes[at], action)
    require_deleted(stage, story, start_delete(stage, story).wait())


@pytest.mark.turns(2)
@pytest.mark.parametrize("action", BOTH)
def test_delete_when_killed_on_gke_then_the_next_one_ends_it(stage: Stage, action: Action) -> None:
    story = STORIES["gke-mig"]
    stage.made(story.spec)
    daemon.add_fault(stage.info, action, service=story.service, method="DELETE")
    assert stage.kill_at_fault(start_delete(stage, story), with_children=True)
    require_deleted(stage, story, start_delete(stage, story).wait())
