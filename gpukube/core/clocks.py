"""Detects a wrong local clock from the Date header of a response.

In scope: the tolerance, and the message. Out of scope: reading the clock or the response.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import Final

SET_CLOCK: Final = "set this machine's clock (timedatectl set-ntp true), then run again"
_TOLERANCE_S: Final = 4 * 60
"""A minute less than the strictest limit: AWS rejects a signature whose time is more than five minutes off."""


def wrong_clock(date: str, now: float) -> str:
    """Return how far this machine's clock is off; "" if it is right, or the response had no Date.

    Args:
        date: "Date" header of a response that has just arrived.
        now: This machine's time, in seconds since 1970.
    """
    try:
        seconds = now - parsedate_to_datetime(date).timestamp()
    except (TypeError, ValueError):
        return ""
    if abs(seconds) <= _TOLERANCE_S:
        return ""
    return f"this machine's clock is {abs(seconds) / 60:.0f} min {'ahead' if seconds > 0 else 'behind'}"
