"""All checks, in reporting order.

A new family is a module with a tuple CHECKS and a line here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.doctor.checks import (
    claims,
    clouds,
    configs,
    dra,
    fabric,
    mig,
    nodes,
    placement,
    plugins,
    releases,
    tools,
    workloads,
)
from gpukube.doctor.checks import components as parts

if TYPE_CHECKING:
    from gpukube.doctor.check import Check

CHECKS: Final[tuple[Check, ...]] = (
    *tools.CHECKS,
    *clouds.CHECKS,
    *placement.CHECKS,
    *plugins.CHECKS,
    *dra.CHECKS,
    *parts.CHECKS,
    *configs.CHECKS,
    *mig.CHECKS,
    *releases.CHECKS,
    *workloads.CHECKS,
    *claims.CHECKS,
    *nodes.CHECKS,
    *fabric.CHECKS,
)
"""Each id occurs once; docs/doctor.md lists them."""
