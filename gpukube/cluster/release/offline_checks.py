"""Checks pools of one cluster against the limits of its release, as far as possible offline.

In scope: running all these checks, for `validate` and at the start of each command. Out of scope: the checks
(chart_settings, plan).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.cluster.names import DRA_DRIVER, GPU_OPERATOR
from gpukube.cluster.release.chart_settings import check_age, check_agreement, check_served

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.core.values import Desired
    from gpukube.errors import Finding


def check_settings(pools: Sequence[Desired]) -> list[Finding]:
    """Return what the pools request that the release cannot do."""
    found = [*check_served(pools), *check_age(pools), *check_agreement(pools)]
    limited = (GPU_OPERATOR.advertiser, DRA_DRIVER.advertiser)
    if any(pool.target.chart_values or pool.ownership.advertiser in limited for pool in pools):
        # Computing a chart's values imports half of this package, and most specs contain nothing that could contradict
        # them.
        from gpukube.cluster.release.plan import check_values  # noqa: PLC0415 - see above

        found += check_values(pools)
    return found
