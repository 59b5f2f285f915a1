"""Times as clients may read them: none in the future.

Lives here: moving the times in an answer back by as much as the sandbox's clock is ahead. Must not live here: the
clock.

The sandbox's time runs fast, and a client takes the difference to its own clock for an age. Moved back by the lead of
the moment, ages are the sandbox's: a pod that has been pending for ten of its minutes is ten minutes old for kubectl
and for gpukube. The price is that a time that is read again is a little earlier; nothing decides by that one.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta

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

    def earlier(found: re.Match[bytes]) -> bytes:
        moment = datetime.fromisoformat(found[2].decode()) - lead
        return found[1] + moment.isoformat().encode() + found[3]

    return _STAMPED.sub(earlier, answer)
