"""Calls to a cloud or a Kubernetes API during a run: each ends with the run, whatever the other side does.

In scope: the one mechanism that bounds calls, and a cloud bounded by it. Out of scope: what is called.

SDK calls cannot be interrupted: azure-core sleeps as long as a Retry-After header requires, botocore and
google-api-core retry a call that hangs, name resolution may take minutes, and signals do not reach a thread that waits
in any of these. Each call therefore runs in its own thread, and the caller waits for the response, the run's timeout,
or the stop. An abandoned call keeps its thread, which is a daemon: it delays neither the report nor the end of the
process, and it sends nothing more (cancellation). The SDKs' timeouts are unchanged; they distinguish a dead connection
from a slow response.
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

    from gpukube.core.launches import Launches
    from gpukube.core.quotas import CloudQuota, QuotaReading
    from gpukube.core.reservations import LiveReservation
    from gpukube.core.upgrades import NodeOffer
    from gpukube.core.values import ClusterFacts, Desired, KubeAccess, Observed, Operation, Progress, Request
    from gpukube.engine.run.clock import Clock
    from gpukube.errors import Finding
    from gpukube.provider import Cloud

_T = TypeVar("_T")
_THREAD: Final = "gpukube-call"
_CHECK_S: Final = 0.1
"""Interval for checking the stop and the clock; a response is noticed at once."""
_RESPONSE_S: Final = 2.0
"""Wait for the response to a change in flight when the run is stopped, so that the report can include its result."""
_CLEANUP_S: Final = 2.0
"""Total time for calls that clean up; together with `_RESPONSE_S` the report is printed within 5 s of a stop."""
_IDLE: Final[list[SimpleQueue[Callable[[], None]]]] = []
"""Idle threads to reuse: a diff of a fleet makes thousands of calls, most of them short."""
os.register_at_fork(after_in_child=_IDLE.clear)  # a fork has none of these threads


class Calls:
    """Caller that ends with the run.

    Args:
        clock: The run's clock; its stop ends calls.
        end: Time of that clock at which the last call is abandoned.
        resume: The command that resumes the run.
    """

    def __init__(self, clock: Clock, end: float, resume: str) -> None:
        self._clock = clock
        self._end = end
        self._resume = resume

    def __call__(self, where: str, doing: str, work: Callable[[], _T], *, changes: bool = False) -> _T:
        """Make a call and return its result, or raise its error.

        Args:
            where: The API or cluster.
            doing: What the call does, for messages.
            work: The call.
            changes: Whether it changes something: it gets a moment to answer after a stop, and the exception raised
                when it is abandoned marks it as in flight.

        Raises:
            Stopped: The run was stopped, before the call was made unless `in_flight`.
            WaitTimeout: The run timed out, before the call was made unless `in_flight`.
        """
        self._require_time(where, doing)
        given_up = threading.Event()
        answer = begin(work, given_up)
        patience_s = _RESPONSE_S if changes else 0.0
        end = math.inf
        try:
            # SDK calls cannot be interrupted: wait next to the call, so that a stop is noticed within one interval.
            while not _ended(answer, _CHECK_S):
                if self._clock.stopped:
                    end = min(end, time.monotonic() + patience_s)
                if time.monotonic() >= end:
                    raise Stopped(in_flight=changes)
                if self._clock.now() >= self._end:
                    raise self._timeout_error(where, doing, in_flight=changes)
        finally:
            given_up.set()  # no effect on a call that has ended
        return answer.result()

    def cleaning(self) -> _CleanupCalls:
        """See Caller."""
        return _CleanupCalls()

    def _require_time(self, where: str, doing: str) -> None:
        """Raise once the run is over, so that nothing more starts."""
        if self._clock.stopped:
            raise Stopped
        if self._clock.now() >= self._end:
            raise self._timeout_error(where, doing, in_flight=False)

    def _timeout_error(self, where: str, doing: str, *, in_flight: bool) -> WaitTimeout:
        fix = f"the cloud keeps working; to resume: {self._resume}"
        return WaitTimeout(f"timed out while {doing}", where=where, fix=fix, in_flight=in_flight)


class _CleanupCalls:
    """Caller for the cleanup calls of a run; its time starts with its creation."""

    def __init__(self) -> None:
        self._end = time.monotonic() + _CLEANUP_S

    def __call__(self, where: str, doing: str, work: Callable[[], _T], *, changes: bool = False) -> _T:
        given_up = threading.Event()
        answer = begin(work, given_up)
        if not _ended(answer, max(0.0, self._end - time.monotonic())):
            given_up.set()
            fix = "when it answers, check for leftovers of this run"
            raise WaitTimeout(f"no answer in time while {doing}", where=where, fix=fix, in_flight=changes)
        return answer.result()

    def cleaning(self) -> _CleanupCalls:
        return self


def begin(work: Callable[[], _T], given_up: threading.Event) -> Future[_T]:
    """Start a call in a thread that nobody joins; reuse one that has finished its call."""
    answer: Future[_T] = Future()

    def call() -> None:
        CANCELLED.set(given_up.is_set)
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - any error belongs to the caller who waits for the result
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
        Context().run(inbox.get())  # context variables that an SDK sets in one call do not leak into the next
        _IDLE.append(inbox)


def _ended(answer: Future[_T], timeout_s: float) -> bool:
    """Wait for a result; `concurrent.futures.wait` takes three times as long for a single one."""
    try:
        answer.exception(timeout_s)
    except TimeoutError:
        return False
    return True


def are_left() -> bool:
    """Return whether any call of this process has no result yet."""
    return sum(thread.name == _THREAD for thread in threading.enumerate()) > len(_IDLE)


@contextmanager
def reading_responses(title: str, where: str, doing: str) -> Iterator[None]:
    """Attribute errors to their cluster, and distinguish an unreadable response from a defect.

    An exception raised while a response is read comes from outside; any other is gpukube's fault.

    Args:
        title: Name of the cloud.
        where: Cluster or pool.
        doing: What the response was requested for.

    Raises:
        CloudError: The response is not the API's: a proxy's page, or values of another type.
        GpukubeError: With code `defect`.
    """
    try:
        yield
    except GpukubeError:
        raise
    except MISREAD as error:
        if not _is_from_response(error):
            raise defect(error, where) from error
        raise CloudError(
            f"the response is not from {title}: {doing}",
            where=where,
            fix="check for a proxy and the endpoint; if there is no proxy, report this with the trace of -v",
            why=f"{type(error).__name__}: {' '.join(str(error).split())[:200]}",
            code="cloud-answer",
        ) from error


_READS: Final = re.compile(r"gpukube_\w+\.(live|pool\.(observe|progress))\b|gpukube\.cluster\.(kube|state)\b")
"""gpukube's modules that read responses."""
_OURS: Final = re.compile(r"gpukube(_\w+)?\b|tests\b|__main__$")
_SERVES: Final = re.compile(
    r"gpukube_\w+\.|gpukube\.core\.(binding|fields|jsontree|live|marks|meanings|quotas|values)$|gpukube\.kubeconfig$"
)
"""Modules used to read responses and for other work; their callers decide."""


def _is_from_response(error: BaseException) -> bool:
    """Return whether an exception was raised while a response was read, judged by the innermost conclusive frame."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    for frame in reversed(frames):
        module = str(frame.f_globals.get("__name__", ""))
        top = module.partition(".")[0]
        is_library = top not in sys.stdlib_module_names and not _OURS.match(module)  # an SDK, or its dependency
        if is_library or top == "xml" or _READS.match(module):
            return True
        if module.startswith("gpukube.") and not _SERVES.match(module):
            return False
    return False


class BoundedCloud:
    """A cloud whose calls end with the run and whose errors name its cluster.

    Args:
        cloud: The cloud to call.
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
        with reading_responses(self._title, where, doing):
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
            desired.target.where.source,
            "reading the cluster's network and settings",
            lambda: self._cloud.complete(desired),
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

    def launches(self, observed: Observed) -> Launches:
        """See Cloud."""
        where = f"{self._cluster}/{observed.name}"
        return self._calls(where, "reading its launches", lambda: self._cloud.launches(observed))

    def reserved(self, pool: Desired | Observed) -> LiveReservation | None:
        """See Cloud."""
        return self._calls(self._cluster, "reading a reservation", lambda: self._cloud.reserved(pool))

    def close(self) -> None:
        """See Cloud."""
        self._cloud.close()


if TYPE_CHECKING:
    from gpukube.cluster.kube.limits import Caller

    _cloud: type[Cloud] = BoundedCloud
    _caller: type[Caller] = Calls
