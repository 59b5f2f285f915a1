"""What pools of one cluster may not ask of its release, as far as can be told without the cluster.

In scope: all of these checks together, for `validate` and the beginning of each command. Out of scope: the
checks (chart_settings, plan).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.cluster.names import GPU_OPERATOR
from gpukube.cluster.release.chart_settings import check_age, check_agreement, check_served

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.core.values import Desired
    from gpukube.errors import Finding


def check_settings(pools: Sequence[Desired]) -> list[Finding]:
    """Find what may not be asked for."""
    found = [*check_served(pools), *check_age(pools), *check_agreement(pools)]
    if any(pool.target.chart_values or pool.ownership.advertiser == GPU_OPERATOR.advertiser for pool in pools):
        # What makes a chart's values loads half of this room, and most specs have nothing that they could contradict.
        from gpukube.cluster.release.plan import check_values  # noqa: PLC0415 - as said above

        found += check_values(pools)
    return found
