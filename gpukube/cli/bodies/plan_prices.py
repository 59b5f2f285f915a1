"""The prices that a plan is shown with."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gpukube.catalog.prices import known_prices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.cli.options import Choices
    from gpukube.cli.stage import Job
    from gpukube.core.prices import PriceBook
    from gpukube.engine.plan.planning import ClusterPlan


def plan_prices(choices: Choices, job: Job, plans: Sequence[ClusterPlan]) -> PriceBook:
    """Give the catalog's prices, and with --live-prices those that the clouds answer now."""
    known = known_prices(os.environ, sandbox=choices.sandbox)
    if not choices.live_prices:
        return known
    from gpukube.catalog.live_prices import ask_clouds, wanted_of  # for this option alone

    return ask_clouds(known, wanted_of(plans), job.run.settings, job.run.clock)
