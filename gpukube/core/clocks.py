"""A wrong clock of this machine, seen by the Date of an answer.

In scope: how far off is too far, and what to say. Out of scope: the clock, the answer.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import Final

SET_CLOCK: Final = "set this machine's clock (timedatectl set-ntp true), then run again"
_MOST_S: Final = 4 * 60
"""A minute less than what the strictest bears: AWS refuses a signature whose time is more than five minutes off."""


def wrong_clock(date: str, now: float) -> str:
    """Describe how far this machine's clock is off; "" where it is not, or the answer had no Date.

    Args:
        date: Header "Date" of an answer that has just come.
        now: This machine's time, in seconds since 1970.
    """
    try:
        seconds = now - parsedate_to_datetime(date).timestamp()
    except (TypeError, ValueError):
        return ""
    if abs(seconds) <= _MOST_S:
        return ""
    return f"this machine's clock is {abs(seconds) / 60:.0f} min {'ahead' if seconds > 0 else 'behind'}"
