"""Bringing a release to the plan while others change it too."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import pytest

from gpukube.cluster.helm.engine import HelmAnswer
from gpukube.cluster.release.manager import apply_release
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.release.plugin_values import chart_values
from gpukube.cluster.release.shared_values import ReleaseContext
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.errors import Conflict, HelmError
from tests.unit.cluster.builders import (
    NAMESPACE,
    RELEASE_NAME,
    SINGLE,
    SLICED,
    desire,
    entries_of,
    installed,
    release_of,
    release_secret,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpukube.cluster.kube.client import Kube
    from gpukube.cluster.kube.releases import Release
    from gpukube.cluster.release.migration import OutgoingRelease
    from gpukube.cluster.release.plan import ReleasePlan

CUT, SHARED = desire(sharing=SINGLE), desire(sharing=SLICED, pool="shared")


@dataclass
class FakeCluster:
    """A release as a list of values, one for each revision; others may write between our steps."""

    revisions: list[Mapping[str, object]] = field(default_factory=list)
    sneak: list[Mapping[str, object]] = field(default_factory=list)
    sneaks_on: bool = False
    refuse: int = 0
    open_ends: int = 0
    pending: bool = False
    written: list[ReleasePlan] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    rehearsed: list[str] = field(default_factory=list)

    # as Helm

    def install_or_upgrade(self, plan: ReleasePlan, expected_revision: int) -> HelmAnswer:
        if self.refuse or expected_revision != len(self.revisions):
            self.refuse = max(0, self.refuse - 1)
            raise Conflict("moved", code="release-moved")
        if self.pending:  # repaired: the record that was never closed goes
            self.revisions.pop()
        self.revisions += self.sneak  # after the check, before the write
        self.sneak = self.sneak if self.sneaks_on else []
        self.revisions.append(plan.values)
        self.written.append(plan)
        self.pending = self.open_ends > 0
        self.open_ends -= self.pending
        return HelmAnswer(len(self.revisions), "deployed", "")

    def rehearse(self, plan: ReleasePlan) -> None:
        assert not self.removed
        self.rehearsed.append(plan.name)

    def remove(self, outgoing: OutgoingRelease) -> None:
        assert not self.written
        assert self.rehearsed or not outgoing.there
        self.removed.append(outgoing.name)

    # as Kube

    def release_secrets(
        self, namespace: str = "", name: str = "", *, superseded: bool = False
    ) -> tuple[Mapping[str, object], ...]:
        assert (namespace, name, superseded) == (NAMESPACE, RELEASE_NAME, True)
        return tuple(
            release_secret(
                {
                    "name": name,
                    "namespace": namespace,
                    "version": place,
                    "config": dict(values),
                    "info": {"status": self.status_of(place)},
                }
            )
            for place, values in enumerate(self.revisions, 1)
        )

    def status_of(self, place: int) -> str:
        if place < len(self.revisions):
            return "superseded"
        return "pending-install" if self.pending else "deployed"

    def seen(self) -> Snapshot:
        if not self.revisions:
            return Snapshot()
        live = release_of(self.revisions[-1], revision=len(self.revisions))
        return installed([CUT], history=(replace(live, status=self.status_of(live.revision)),))


def run(fake: FakeCluster, plan: ReleasePlan) -> HelmAnswer | None:
    def replan(missed: Sequence[Release]) -> ReleasePlan:
        return plan_release([CUT], fake.seen(), missed=missed)

    return apply_release(fake, cast("Kube", fake), plan, replan)


def keys(fake: FakeCluster) -> set[str]:
    return set(entries_of(fake.revisions[-1]))


def fresh(fake: FakeCluster) -> ReleasePlan:
    return plan_release([CUT], fake.seen())


THEIRS = chart_values([SHARED], ReleaseContext())


def test_apply_when_nobody_else_writes_then_once() -> None:
    fake = FakeCluster()
    answer = run(fake, fresh(fake))
    assert answer is not None
    assert (answer.revision, len(fake.written)) == (1, 1)


def test_apply_when_nothing_is_to_do_then_nothing_is_written() -> None:
    fake = FakeCluster()
    assert run(fake, plan_release([], Snapshot())) is None
    assert fake.written == []


def test_apply_when_the_plan_is_stale_then_planned_again_with_their_entry() -> None:
    fake = FakeCluster()
    plan = fresh(fake)
    fake.revisions.append(THEIRS)
    run(fake, plan)
    assert {CUT.ownership.config_key, SHARED.ownership.config_key} <= keys(fake)
    assert len(fake.written) == 1


def test_apply_when_a_revision_was_overtaken_unseen_then_its_entry_comes_back() -> None:
    fake = FakeCluster(sneak=[THEIRS])
    run(fake, fresh(fake))
    assert {CUT.ownership.config_key, SHARED.ownership.config_key} <= keys(fake)
    assert len(fake.written) == 2


def test_apply_when_others_never_stop_then_conflict() -> None:
    fake = FakeCluster(refuse=99)
    with pytest.raises(Conflict):
        run(fake, fresh(fake))
    assert fake.written == []


def test_apply_when_others_are_overwritten_unseen_each_time_then_conflict() -> None:
    fake = FakeCluster(sneak=[THEIRS], sneaks_on=True)
    stale = fresh(fake)
    with pytest.raises(Conflict, match="during each of 4 upgrades") as caught:
        apply_release(fake, cast("Kube", fake), stale, lambda _missed: replace(stale, revision=len(fake.revisions)))
    assert caught.value.diagnostics[0].code == "release-moved"
    assert len(fake.written) == 4


def test_apply_when_helm_could_not_close_its_record_then_changed_again() -> None:
    fake = FakeCluster(open_ends=1)
    answer = run(fake, fresh(fake))
    assert answer is not None
    assert (len(fake.written), len(fake.revisions), fake.pending) == (2, 1, False)


def test_apply_when_the_record_stays_open_then_said_so() -> None:
    fake = FakeCluster(open_ends=99)
    with pytest.raises(HelmError) as caught:
        run(fake, fresh(fake))
    assert caught.value.diagnostics[0].code == "release-open"
    assert len(fake.written) == 4


CASES: dict[str, Callable[[], FakeCluster]] = {
    "once": lambda: FakeCluster(refuse=1),
    "three times": lambda: FakeCluster(refuse=3),
}


@pytest.mark.parametrize("case", CASES)
def test_apply_when_refused_a_few_times_then_tried_again(case: str) -> None:
    fake = CASES[case]()
    answer = run(fake, fresh(fake))
    assert answer is not None
    assert answer.revision == 1
