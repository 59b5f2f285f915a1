"""Every call of a cloud and of a Kubernetes API during a run: each ends with the run, whatever the other side does.

In scope: the one mechanism that bounds calls, and a cloud bounded by it. Out of scope: what is called.

An SDK cannot be told to stop: azure-core sleeps as long as a Retry-After says, botocore and google-api-core repeat a
call that hangs, a name may take minutes to resolve, and signals do not reach a thread that waits in any of these. So a
call runs in a thread of its own, and who wants its answer waits beside it: for the answer, for the end of the run's
timeout, or for the stop. A call that is given up keeps its thread, which is a daemon: it holds up neither the report
nor the end of the process, and it sends nothing more (cancellation). The timeouts of the SDKs stay as they are; they
tell a dead connection from a slow answer.
"""

from __future__ import annotations

import math
import os
import re
import sys
import threading
import time
import traceback
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import Context
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final, TypeVar

from gpukube.cancellation import CANCELLED
from gpukube.engine.run.clock import Stopped
from gpukube.errors import MISREAD, CloudError, GpukubeError, WaitTimeout, defect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpukube.core.quotas import CloudQuota, QuotaReading
    from gpukube.core.upgrades import NodeOffer
    from gpukube.core.values import ClusterFacts, Desired, KubeAccess, Observed, Operation, Progress, Request
    from gpukube.engine.run.clock import Clock
    from gpukube.errors import Finding
    from gpukube.provider import Cloud

_T = TypeVar("_T")
_THREAD: Final = "gpukube-call"
_LOOK_S: Final = 0.1
"""Between two looks at the stop and the clock; the answer is noticed at once."""
_ANSWER_S: Final = 2.0
"""For a change that was on its way when the run was stopped: mostly it answers, and the report can say what became."""
_CLEANING_S: Final = 2.0
"""For all calls that clean up; with the time for the answer, the report stands within 5 s of a stop."""
_IDLE: Final[list[SimpleQueue[Callable[[], None]]]] = []
"""Threads that wait for a call: a diff of a fleet makes thousands, most of them short."""
os.register_at_fork(after_in_child=_IDLE.clear)  # a fork has none of these threads


class Calls:
    """Caller with the run's end.

    Args:
        clock: Of the run; its stop ends calls.
        end: When the last call is given up, by that clock.
        resume: The command that takes the run up again.
    """

    def __init__(self, clock: Clock, end: float, resume: str) -> None:
        self._clock = clock
        self._end = end
        self._resume = resume

    def __call__(self, where: str, doing: str, work: Callable[[], _T], *, changes: bool = False) -> _T:
        """Make a call and give its answer, or raise what it raised.

        Args:
            where: The API or cluster.
            doing: What the call is about.
            work: The call.
            changes: Whether it changes something: it has a moment to answer after a stop, and what is raised when it
                is given up says that it was in flight.

        Raises:
            Stopped: The run was stopped; before the call was made, unless `in_flight`.
            WaitTimeout: The run's timeout is over; likewise.
        """
        self._require_time(where, doing)
        given_up = threading.Event()
        answer = begin(work, given_up)
        patience_s = _ANSWER_S if changes else 0.0
        end = math.inf
        try:
            # No SDK can be told to stop: so this thread waits beside the call, and a stop is seen within one look.
            while not _ended(answer, _LOOK_S):
                if self._clock.stopped:
                    end = min(end, time.monotonic() + patience_s)
                if time.monotonic() >= end:
                    raise Stopped(in_flight=changes)
                if self._clock.now() >= self._end:
                    raise self._late(where, doing, in_flight=changes)
        finally:
            given_up.set()  # does nothing to a call that has ended
        return answer.result()

    def cleaning(self) -> _Cleaning:
        """See Caller."""
        return _Cleaning()

    def _require_time(self, where: str, doing: str) -> None:
        """Begin nothing more once the run is over."""
        if self._clock.stopped:
            raise Stopped
        if self._clock.now() >= self._end:
            raise self._late(where, doing, in_flight=False)

    def _late(self, where: str, doing: str, *, in_flight: bool) -> WaitTimeout:
        fix = f"the cloud keeps working; to resume: {self._resume}"
        return WaitTimeout(f"timed out while {doing}", where=where, fix=fix, in_flight=in_flight)


class _Cleaning:
    """Caller for the last calls of a run; its time runs from here."""

    def __init__(self) -> None:
        self._end = time.monotonic() + _CLEANING_S

    def __call__(self, where: str, doing: str, work: Callable[[], _T], *, changes: bool = False) -> _T:
        given_up = threading.Event()
        answer = begin(work, given_up)
        if not _ended(answer, max(0.0, self._end - time.monotonic())):
            given_up.set()
            fix = "when it answers, check for leftovers of this run"
            raise WaitTimeout(f"no answer in time while {doing}", where=where, fix=fix, in_flight=changes)
        return answer.result()

    def cleaning(self) -> _Cleaning:
        return self


def begin(work: Callable[[], _T], given_up: threading.Event) -> Future[_T]:
    """Start a call in a thread that nobody waits for in the end; one that has finished its call takes the next."""
    answer: Future[_T] = Future()

    def call() -> None:
        CANCELLED.set(given_up.is_set)
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to who waits for the answer
            answer.set_exception(error)
        else:
            answer.set_result(result)

    try:
        inbox = _IDLE.pop()
    except IndexError:
        inbox = SimpleQueue()
        threading.Thread(target=_serve, args=(inbox,), name=_THREAD, daemon=True).start()
    inbox.put(call)
    return answer


def _serve(inbox: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        Context().run(inbox.get())  # what an SDK keeps in the context of one call is not seen by the next
        _IDLE.append(inbox)


def _ended(answer: Future[_T], timeout_s: float) -> bool:
    """Wait for an answer; `concurrent.futures.wait` takes three times as long for a single one."""
    try:
        answer.exception(timeout_s)
    except TimeoutError:
        return False
    return True


def are_left() -> bool:
    """Return whether some call of this process has no answer yet."""
    return sum(thread.name == _THREAD for thread in threading.enumerate()) > len(_IDLE)


@contextmanager
def answers_of(title: str, where: str, doing: str) -> Iterator[None]:
    """Keep what goes wrong with a cluster at that cluster, and tell an answer that cannot be read from a defect.

    What is raised while an answer is read comes from outside, whatever it is; all else is our own fault.

    Args:
        title: Name of the cloud.
        where: Cluster or pool.
        doing: What the answer was asked for.

    Raises:
        CloudError: The answer is not one of the API: a proxy's page, or values of another type.
        GpukubeError: With code `defect`.
    """
    try:
        yield
    except GpukubeError:
        raise
    except MISREAD as error:
        if not _is_of_answer(error):
            raise defect(error, where) from error
        raise CloudError(
            f"the answer is not that of {title}: {doing}",
            where=where,
            fix="is a proxy in the way? check it and the endpoint; if there is none, report it with the trace of -v",
            why=f"{type(error).__name__}: {' '.join(str(error).split())[:200]}",
            code="cloud-answer",
        ) from error


_READS: Final = re.compile(r"gpukube_\w+\.(live|pool\.(observe|progress))\b|gpukube\.cluster\.(kube|state)\b")
"""Modules of ours that read answers."""
_OURS: Final = re.compile(r"gpukube(_\w+)?\b|tests\b|__main__$")
_SERVES: Final = re.compile(
    r"gpukube_\w+\.|gpukube\.core\.(binding|fields|jsontree|live|marks|meanings|quotas|values)$|gpukube\.kubeconfig$"
)
"""Modules that reading is made of; other work uses them too, so who called them tells."""


def _is_of_answer(error: BaseException) -> bool:
    """Whether an exception was raised while an answer was read, by the innermost frame that tells."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    for frame in reversed(frames):
        module = str(frame.f_globals.get("__name__", ""))
        top = module.partition(".")[0]
        is_library = top not in sys.stdlib_module_names and not _OURS.match(module)  # an SDK, or what it stands on
        if is_library or top == "xml" or _READS.match(module):
            return True
        if module.startswith("gpukube.") and not _SERVES.match(module):
            return False
    return False


class BoundedCloud:
    """A cloud whose calls end with the run, and whose answers are its own; otherwise as it is.

    Args:
        cloud: Who is called.
        cluster: Key of the cluster, for messages.
        title: Name of the cloud, for messages.
        calls: Makes the calls.
    """

    def __init__(self, cloud: Cloud, cluster: str, title: str, calls: Calls) -> None:
        self._cloud = cloud
        self._cluster = cluster
        self._title = title
        self._bounded = calls

    def _calls(self, where: str, doing: str, work: Callable[[], _T], *, changes: bool = False) -> _T:
        with answers_of(self._title, where, doing):
            return self._bounded(where, doing, work, changes=changes)

    def identify(self) -> ClusterFacts:
        """See Cloud."""
        return self._calls(self._cluster, "reading the cluster", self._cloud.identify)

    def pools(self) -> tuple[Observed, ...]:
        """See Cloud."""
        return self._calls(self._cluster, "listing its pools", self._cloud.pools)

    def pool(self, name: str) -> Observed | None:
        """See Cloud."""
        return self._calls(f"{self._cluster}/{name}", "reading the pool", lambda: self._cloud.pool(name))

    def newest(self, observed: Observed, kubernetes: str) -> NodeOffer:
        """See Cloud."""
        where = f"{self._cluster}/{observed.name}"
        return self._calls(where, "reading newer versions", lambda: self._cloud.newest(observed, kubernetes))

    def complete(self, desired: Desired) -> Desired:
        """See Cloud."""
        return self._calls(
            desired.target.where.source, "reading the cluster's surroundings", lambda: self._cloud.complete(desired)
        )

    def send(self, request: Request) -> Operation:
        """See Cloud."""
        doing = f"calling {request.operation}"
        return self._calls(self._cluster, doing, lambda: self._cloud.send(request), changes=True)

    def poll(self, operation: Operation) -> Progress:
        """See Cloud."""
        where = f"{self._cluster}/{operation.pool}"
        return self._calls(where, f"waiting for its {operation.verb}", lambda: self._cloud.poll(operation))

    def kube_access(self) -> KubeAccess:
        """See Cloud."""
        return self._calls(self._cluster, "getting access to its Kubernetes API", self._cloud.kube_access)

    def quotas(self, asked: Sequence[CloudQuota]) -> Mapping[CloudQuota, QuotaReading]:
        """See Cloud."""
        return self._calls(self._cluster, "reading quotas", lambda: self._cloud.quotas(asked))

    def check_limits(self, successor: Desired, pools: int) -> list[Finding]:
        """See Cloud."""
        return self._calls(self._cluster, "reading subnets", lambda: self._cloud.check_limits(successor, pools))

    def close(self) -> None:
        """See Cloud."""
        self._cloud.close()


if TYPE_CHECKING:
    from gpukube.cluster.kube.limits import Caller

    _cloud: type[Cloud] = BoundedCloud
    _caller: type[Caller] = Calls
