"""Shifts times in responses back, so that clients never read a time in the future.

In scope: shifting times by as much as the sandbox's clock is ahead. Out of scope: the clock.

The sandbox's time runs fast, and clients compute ages from their own clock. With times shifted back by the current
lead, these ages are in sandbox time: a pod that has been pending for ten sandbox minutes is ten minutes old for kubectl
and for gpukube. As a consequence, a time that is read again is slightly earlier. This does not happen within one run of
kubectl, because `kubectl diff` compares two responses. The times of a Lease are its holder's own: they come back as
they were written, because a holder compares them with its own clock.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

    from gpukube_sandbox.clock import Clock

_SESSIONS = 32
_SESSION_S = 60.0
"""Seconds after which a long run such as `kubectl get -w` gets the current lead."""

_STAMPED = re.compile(
    rb'("(?:completionTime|creationTimestamp|deletionTimestamp|eventTime|finishedAt|firstTimestamp'
    rb"|lastHeartbeatTime|lastProbeTime|lastScheduleTime|lastTimestamp|lastTransitionTime|lastUpdateTime"
    rb'|startTime|startedAt|time)": ?")(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)((?:\.\d+)?Z")'
)


def shift_times_back(answer: bytes, lead_s: float) -> bytes:
    """Shift the times in a JSON response back, except those in texts and annotations.

    Args:
        answer: The encoded response.
        lead_s: Seconds by which the sandbox's clock is ahead.
    """
    lead = timedelta(seconds=math.ceil(lead_s))
    if not lead:
        return answer

    moved: dict[bytes, bytes] = {}

    def earlier(found: re.Match[bytes]) -> bytes:
        if found[2] not in moved:  # a pod has a dozen times, but only three different ones
            moved[found[2]] = (datetime.fromisoformat(found[2].decode()) - lead).isoformat().encode()
        return found[1] + moved[found[2]] + found[3]

    return _STAMPED.sub(earlier, answer)


class Lead:
    """How far the sandbox's clock is ahead; constant within one run of kubectl (header Kubectl-Session).

    Args:
        clock: The sandbox's time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sessions: dict[str, float] = {}

    def of(self, request: HTTPConnection) -> float:
        """Return the lead in seconds for a request."""
        now, session = self._clock.lead_s, request.headers.get("kubectl-session", "")
        if not session:
            return now
        begun = self._sessions.setdefault(session, now)
        if now - begun > _SESSION_S * self._clock.speed:
            begun = self._sessions[session] = now
        while len(self._sessions) > _SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return begun
