"""The lock and record of a family against an emulated cluster: one holder at a time, and nothing of the record lost."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpukube.cluster.helm.chart import ChartSource
from gpukube.cluster.kube.api_types import LEASES
from gpukube.cluster.kube.client import LightKube, connect_kube
from gpukube.cluster.names import NAMESPACE, NAMESPACE_LABELS
from gpukube.core.jsontree import at, integer, text
from gpukube.core.values import Settings
from gpukube.engine.change.family_lease import FamilyLease, Timing
from gpukube.engine.change.family_record import Outcome, Trial, Win, lease_name
from gpukube.engine.run.clock import Stopped
from gpukube.engine.run.context import Pace, Run
from gpukube.errors import AccessError, ClusterError, Conflict, WaitTimeout
from sandbox_tests.waiting import PATIENCE_S, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from gpukube.cluster.kube.client import Kube
    from tests.wire.cluster.conftest import Live

OWNER, FAMILY = "team-vision", "h100"
NAME = lease_name(OWNER, FAMILY)
FULL = Outcome("train", "h100", "stock", "InsufficientInstanceCapacity: none left", 5.0)
THREADS, TURNS = 8, 25


class Quick(FamilyLease):
    """Expires within a second."""

    timing = Timing(duration_s=1, deadline_s=0.6, renew_s=0.2, retry_s=0.05)


def new_run(timeout_s: float = PATIENCE_S) -> Run:
    return Run(Settings(), ChartSource(), {}, "gpukube pool create -f pools.yaml", Pace(timeout_s, poll_s=0.01))


def held(
    kube: Kube, run: Run | None = None, said: list[str] | None = None, kind: type[FamilyLease] = Quick
) -> AbstractContextManager[FamilyLease]:
    return kind.held(kube, OWNER, FAMILY, run or new_run(), (said if said is not None else []).append)


def ending_with(run: Run, kube: LightKube) -> Kube:
    """A client of the same cluster whose calls end with the run."""
    return LightKube(kube._connection, kube.server, run.calls)


def stored(kube: Kube) -> Any:  # noqa: ANN401 - a document
    found = kube.find_object(LEASES, NAME, NAMESPACE)
    assert found is not None
    return found


def edit(kube: Kube, path: str, value: object) -> None:
    """Write as somebody else does, between two renewals."""
    for _ in range(100):
        if kube.change_object(LEASES, stored(kube), [{"op": "add", "path": path, "value": value}]):
            return
    pytest.fail("the Lease changed before each attempt")


@dataclass
class Broken:
    """A client whose writes of Leases fail, or are slow, from some time on."""

    kube: Kube
    fails: threading.Event = field(default_factory=threading.Event)
    slow_s: float = 0.0

    def change_object(self, *words: Any) -> bool:  # noqa: ANN401 - handed on
        time.sleep(self.slow_s)
        if self.fails.is_set():
            raise ClusterError("no answer in time", code="cluster-timeout")
        return self.kube.change_object(*words)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - all other calls are handed on
        return getattr(self.kube, name)


def test_lease_when_there_is_neither_namespace_nor_lease_then_both_are_made(kube: LightKube) -> None:
    with held(kube) as lease:
        found = stored(kube)
        lease.check()
        assert (lease.trial, lease.won, lease.outcomes) == (None, None, ())

    assert (kube.namespace_labels(NAMESPACE) or {}).items() >= NAMESPACE_LABELS.items()
    assert at(found, "metadata", "annotations", "gpukube.io/owner") == OWNER
    assert at(found, "metadata", "annotations", "gpukube.io/family") == FAMILY
    assert integer(found, "spec", "leaseDurationSeconds") == Quick.timing.duration_s
    assert text(found, "spec", "acquireTime")
    assert text(found, "spec", "renewTime")
    assert text(stored(kube), "spec", "holderIdentity") == ""


def test_lease_when_a_namespace_is_there_then_its_labels_stay(kube: LightKube) -> None:
    kube.ensure_namespace(NAMESPACE, {"team": "a"})

    with held(kube):
        pass

    assert kube.namespace_labels(NAMESPACE) == {"team": "a", "kubernetes.io/metadata.name": NAMESPACE}


def test_record_when_the_run_ends_then_the_next_reads_it(kube: LightKube) -> None:
    with held(kube) as lease:
        lease.begin("train", "h100")
        lease.end(FULL)
        lease.begin("train", "h200")

    with held(kube) as lease:
        assert isinstance(lease.trial, Trial)
        assert lease.trial.member == "h200"
        assert lease.outcomes == (FULL,)
        lease.win("train", "h200")

    with held(kube) as lease:
        assert lease.trial is None
        assert isinstance(lease.won, Win)
        assert (lease.won.cluster, lease.won.member) == ("train", "h200")


def test_record_when_the_family_was_deleted_then_it_is_empty_unless_a_run_holds_it(kube: LightKube) -> None:
    assert FamilyLease.forget_deleted(kube, OWNER, FAMILY, new_run()) == ""
    assert kube.find_object(LEASES, NAME, NAMESPACE) is None

    with held(kube) as lease:
        lease.end(FULL)
        holder = text(stored(kube), "spec", "holderIdentity")
        assert holder == FamilyLease.forget_deleted(kube, OWNER, FAMILY, new_run()) != ""
        lease.begin("train", "h200")
        assert lease.outcomes == (FULL,)

    assert FamilyLease.forget_deleted(kube, OWNER, FAMILY, new_run()) == ""
    with held(kube) as lease:
        assert (lease.trial, lease.won, lease.outcomes) == (None, None, ())


def test_record_when_somebody_has_overwritten_it_then_it_is_empty_and_the_lock_holds(kube: LightKube) -> None:
    with held(kube) as lease:
        lease.begin("train", "h100")
    edit(kube, "/metadata/annotations/gpukube.io~1attempts", '{"trial": 3}')

    with held(kube) as lease:
        assert lease.trial is None
        lease.end(FULL)
        assert lease.outcomes == (FULL,)


def test_record_when_written_while_renewals_and_others_write_then_nothing_is_lost(kube: LightKube, live: Live) -> None:
    class Busy(FamilyLease):
        timing = Timing(duration_s=5, deadline_s=4.0, renew_s=0.001, retry_s=0.001)

    stop = threading.Event()
    other = connect_kube(live.access(), PATIENCE_S)

    def annotate() -> None:
        while not stop.wait(0.005):  # without any pause it could win each of the attempts
            other.change_object(
                LEASES, stored(other), [{"op": "add", "path": "/metadata/annotations/x", "value": str(time.time())}]
            )

    with held(kube, kind=Busy) as lease:
        intruder = threading.Thread(target=annotate)
        intruder.start()
        try:
            for turn in range(20):
                lease.end(Outcome("train", f"m{turn}", "stock", "none", float(turn)))
                lease.begin("train", f"m{turn + 1}")
        finally:
            stop.set()
            intruder.join()
    other.close()

    with held(kube) as lease:
        assert [outcome.member for outcome in lease.outcomes] == [f"m{turn}" for turn in range(20)]
        assert lease.trial is not None
        assert lease.trial.member == "m20"


def test_lock_when_eight_runs_want_it_again_and_again_then_one_has_it_at_a_time(live: Live) -> None:
    with closing(connect_kube(live.access(), PATIENCE_S)) as kube:
        together = compete(lambda: held(kube, new_run(10 * PATIENCE_S), kind=FamilyLease))
    assert together == [1] * THREADS * TURNS


def compete(held: Callable[[], AbstractContextManager[FamilyLease]]) -> list[int]:
    """Let threads take the lock in turns; return how many had it at each time."""
    holders: set[int] = set()
    together: list[int] = []

    def take_turns(number: int) -> None:
        for _ in range(TURNS):
            with held() as lease:
                holders.add(number)
                together.append(len(holders))
                lease.check()
                holders.remove(number)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(take_turns, range(THREADS)))
    return together


def test_lock_when_another_run_has_it_then_that_is_said_once_and_waited_for(kube: LightKube) -> None:
    said: list[str] = []
    entered = threading.Event()

    def follow() -> None:
        with held(kube, said=said) as lease:
            lease.check()
            entered.set()

    with held(kube) as lease:
        holder = text(stored(kube), "spec", "holderIdentity")
        second = threading.Thread(target=follow)
        second.start()
        wait_for(lambda: said != [])
        time.sleep(2 * Quick.timing.duration_s)
        assert not entered.is_set()
        lease.check()
    second.join(PATIENCE_S)

    assert entered.is_set()
    assert said == [f"another run ({holder}) is getting nodes for family h100; waiting"]


def test_lock_when_the_other_run_outlasts_the_timeout_then_time_is_up_and_its_lock_stays(kube: LightKube) -> None:
    with held(kube) as lease:
        with (
            pytest.raises(WaitTimeout, match="another run is still getting nodes for family h100"),
            held(kube, new_run(timeout_s=0.3)),
        ):
            pytest.fail("two runs hold the lock")
        lease.check()


def test_lock_when_stopped_while_waiting_then_stops(kube: LightKube) -> None:
    run = new_run()
    with held(kube):
        threading.Timer(0.2, run.clock.stop).start()
        with pytest.raises(Stopped), held(kube, run):
            pytest.fail("two runs hold the lock")


def test_lock_when_its_run_is_stopped_then_it_is_released_all_the_same(kube: LightKube) -> None:
    run = new_run()
    with held(ending_with(run, kube), run) as lease:
        run.clock.stop()
        with pytest.raises(Stopped):
            lease.begin("train", "h100")
    assert text(stored(kube), "spec", "holderIdentity") == ""


@pytest.mark.skipif(not Path("/proc/self/ns").is_dir(), reason="only Linux tells which process is gone")
def test_lock_when_its_process_was_killed_then_the_next_run_here_does_not_wait_for_its_end(
    live: Live, kube: LightKube
) -> None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with held(connect_kube(live.access(), PATIENCE_S), kind=FamilyLease) as lease:
            lease.begin("train", "h100")
            os.write(write, b"!")
            time.sleep(10 * PATIENCE_S)
        os._exit(1)
    try:
        assert os.read(read, 1) == b"!"
        os.kill(child, signal.SIGKILL)
        begun = time.monotonic()
        with held(kube, kind=FamilyLease) as lease:
            assert lease.trial is not None
            assert lease.trial.member == "h100"
            lease.check()
        assert time.monotonic() - begun < FamilyLease.timing.duration_s / 2
    finally:
        os.waitpid(child, 0)
        os.close(read)
        os.close(write)


def test_lock_when_its_holder_elsewhere_is_gone_then_taken_after_it_has_stayed_unrenewed(kube: LightKube) -> None:
    with held(kube):
        pass
    edit(kube, "/spec/holderIdentity", "elsewhere_12_abc_34_56")
    begun = time.monotonic()

    with held(kube) as lease:
        assert time.monotonic() - begun >= Quick.timing.duration_s
        lease.check()
        assert integer(stored(kube), "spec", "leaseTransitions") == 2


def test_lock_when_its_holder_elsewhere_renews_with_any_clock_then_not_taken(kube: LightKube) -> None:
    with held(kube):
        pass
    edit(kube, "/spec/holderIdentity", "elsewhere_12_abc_34_56")
    stop = threading.Event()

    def renew() -> None:
        minute = 0
        while not stop.wait(0.2):
            minute += 1
            edit(kube, "/spec/renewTime", f"2001-01-01T00:{minute:02}:00.000000Z")

    renewing = threading.Thread(target=renew)
    renewing.start()
    try:
        with pytest.raises(WaitTimeout), held(kube, new_run(timeout_s=3.0 * Quick.timing.duration_s)):
            pytest.fail("two runs hold the lock")
    finally:
        stop.set()
        renewing.join()


@pytest.mark.parametrize("holder", ["elsewhere_12_abc_34_56", ""])
def test_lock_when_another_takes_it_then_lost_for_good(kube: LightKube, holder: str) -> None:
    with held(kube) as lease:
        edit(kube, "/spec/holderIdentity", holder)
        with pytest.raises(ClusterError, match="the lock of family h100 is lost") as caught:
            lease.begin("train", "h100")
        (found,) = caught.value.diagnostics
        assert found.code == "lease-lost"
        assert found.fix == "run the same command again: gpukube pool create -f pools.yaml"
        with pytest.raises(ClusterError, match="the lock of family h100 is lost"):
            lease.check()

    assert text(stored(kube), "spec", "holderIdentity") == holder
    assert "h100" not in at(stored(kube), "metadata", "annotations", "gpukube.io/attempts")  # type: ignore[operator]


def test_lock_when_another_takes_it_then_a_renewal_notices(kube: LightKube) -> None:
    with held(kube) as lease:
        edit(kube, "/spec/holderIdentity", "elsewhere_12_abc_34_56")
        wait_for(lambda: is_lost(lease))


def is_lost(lease: FamilyLease) -> bool:
    try:
        lease.check()
    except ClusterError:
        return True
    return False


def test_lock_when_deleted_then_lost(kube: LightKube) -> None:
    with held(kube) as lease:
        kube.delete_object(LEASES, NAME, NAMESPACE)
        wait_for(lambda: is_lost(lease))
    assert kube.find_object(LEASES, NAME, NAMESPACE) is None


def test_lock_when_it_cannot_be_renewed_then_lost_before_others_take_it_and_back_once_it_can(kube: LightKube) -> None:
    broken = Broken(kube)
    with held(broken) as lease:
        broken.fails.set()
        begun = time.monotonic()
        lease.check()
        wait_for(lambda: is_lost(lease), every_s=0.01)
        assert time.monotonic() - begun < Quick.timing.duration_s
        with pytest.raises(ClusterError, match="could not be renewed: no answer in time"):
            lease.check()
        broken.fails.clear()
        lease.check()


def test_lock_when_renewals_take_longer_than_they_count_then_lost(kube: LightKube) -> None:
    slow = Broken(kube)
    with held(slow) as lease:
        slow.slow_s = Quick.timing.deadline_s + 0.1
        wait_for(lambda: is_lost(lease), every_s=0.01)
        with pytest.raises(ClusterError, match="the Kubernetes API answers too slowly to renew it"):
            lease.check()


def test_lock_when_its_machine_slept_then_checked_before_the_next_call(
    kube: LightKube, monkeypatch: pytest.MonkeyPatch
) -> None:
    with held(kube, kind=FamilyLease) as lease:
        now = time.time
        monkeypatch.setattr(time, "time", lambda: now() + 3600.0)  # the monotonic clock stands still in suspend
        before = text(stored(kube), "spec", "renewTime")
        lease.check()
        assert text(stored(kube), "spec", "renewTime") != before
        edit(kube, "/spec/holderIdentity", "elsewhere_12_abc_34_56")
        lease.check()
        monkeypatch.setattr(time, "time", lambda: now() + 7200.0)
        with pytest.raises(ClusterError, match=r"another run \(elsewhere_12_abc_34_56\) has taken it over"):
            lease.check()


def test_lease_when_it_is_somebody_elses_then_nothing_is_written(kube: LightKube) -> None:
    kube.ensure_namespace(NAMESPACE, NAMESPACE_LABELS)
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
    }
    kube.create_object(LEASES, {**lease, "spec": {}})
    before = stored(kube)

    with pytest.raises(Conflict, match="lacks the annotations of family h100") as caught, held(kube):
        pytest.fail("the lock is somebody else's")

    assert [found.code for found in caught.value.diagnostics] == ["lease-foreign"]
    after = stored(kube)
    assert (at(after, "metadata", "resourceVersion"), after["spec"]) == (at(before, "metadata", "resourceVersion"), {})


def test_lease_when_access_is_denied_then_the_missing_right_is_named(live: Live) -> None:
    kube = connect_kube(live.access(token="wrong"), PATIENCE_S)
    with pytest.raises(AccessError), held(kube):
        pytest.fail("no access")
    kube.close()
