"""What a cloud reports about its attempts to start machines for a pool.

In scope: the value. Out of scope: reading it (`CloudExtras.launches`), and giving an attempt up (gpukube.engine).

Clouds retry a launch without machines for minutes or forever, and report the failure of the operation, if at all, at
the end. This value is the earlier sign.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpukube.errors import GpukubeError


@dataclass(frozen=True, slots=True)
class Launches:
    """The newest launches of a pool; times are seconds since the epoch, by the cloud's clock.

    Attributes:
        failure: Error of the newest failed launch: its class distinguishes a stock-out from a quota. None if none
            failed, or the cloud does not report it.
        failed_at: When it failed; None if the cloud reports no time: then the failure is the pool's present one.
        launched_at: When the newest machine was launched; None if none was, or the cloud does not report it.
    """

    failure: GpukubeError | None = None
    failed_at: float | None = None
    launched_at: float | None = None
