"""Times as clients may read them: none in the future.

In scope: moving the times in an answer back by as much as the sandbox's clock is ahead. Out of scope: the
clock.

The sandbox's time runs fast, and a client takes the difference to its own clock for an age. Moved back by the lead of
the moment, ages are the sandbox's: a pod that has been pending for ten of its minutes is ten minutes old for kubectl
and for gpukube. The price is that a time that is read again is a little earlier, except in one run of kubectl, of which
`kubectl diff` compares two answers.
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
"""Seconds after which a run that goes on, `kubectl get -w`, is given the lead of the moment."""

_STAMPED = re.compile(
    rb'("(?:acquireTime|completionTime|creationTimestamp|deletionTimestamp|eventTime|finishedAt|firstTimestamp'
    rb"|lastHeartbeatTime|lastProbeTime|lastScheduleTime|lastTimestamp|lastTransitionTime|lastUpdateTime|renewTime"
    rb'|startTime|startedAt|time)": ?")(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)((?:\.\d+)?Z")'
)


def moved_back(answer: bytes, lead_s: float) -> bytes:
    """Move the times in a JSON answer back; those in texts and annotations stay.

    Args:
        answer: Encoded.
        lead_s: Seconds the sandbox's clock is ahead.
    """
    lead = timedelta(seconds=math.ceil(lead_s))
    if not lead:
        return answer

    moved: dict[bytes, bytes] = {}

    def earlier(found: re.Match[bytes]) -> bytes:
        if found[2] not in moved:  # a pod has a dozen times, which are three
            moved[found[2]] = (datetime.fromisoformat(found[2].decode()) - lead).isoformat().encode()
        return found[1] + moved[found[2]] + found[3]

    return _STAMPED.sub(earlier, answer)


class Lead:
    """How far the sandbox's clock is ahead; in one run of kubectl (header Kubectl-Session) the same for all answers.

    Args:
        clock: The sandbox's time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sessions: dict[str, float] = {}

    def of(self, request: HTTPConnection) -> float:
        """Return the seconds that hold for a request."""
        now, session = self._clock.lead_s, request.headers.get("kubectl-session", "")
        if not session:
            return now
        begun = self._sessions.setdefault(session, now)
        if now - begun > _SESSION_S * self._clock.speed:
            begun = self._sessions[session] = now
        while len(self._sessions) > _SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return begun
