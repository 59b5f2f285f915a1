"""Checks `upgrade` settings: only numbers of nodes, and none if GKE chooses the strategy.

In scope: those checks. Out of scope: native strategies (`combinations`), sending them (`pool.translate`).

Source: google.container.v1 UpgradeSettings (two integers, at least one above zero; by default surge 1 and unavailable
0) and NodePoolUpdateStrategy.SHORT_LIVED (of flex-start and queued pools); upgrade_settings of
terraform-provider-google 7.45 (the sum of both is limited to 20).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding
from gpukube_gke.pool.purchase import is_short_lived, reservation_form

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.values import Target


_MAX_AT_ONCE: Final = 20


def check_upgrade(target: Target) -> Iterator[Finding]:
    """Report percentages, upgrades that cannot start, and upgrades that need more machines than reserved."""
    surge, unavailable = target.upgrade.max_surge, target.upgrade.max_unavailable
    requested = {"upgrade.maxSurge": surge, "upgrade.maxUnavailable": unavailable}
    shares = {path: value for path, value in requested.items() if value and value.endswith("%")}
    for path, value in shares.items():
        yield Finding(
            "gke-upgrade-share",
            target.locator.at(path),
            f"{path} is {value}, but GKE accepts a number of nodes only",
            fix="write a whole number, such as 1",
        )
    if shares:
        return
    if surge == "0" and unavailable in (None, "0"):
        yield Finding(
            "gke-upgrade-none",
            target.locator.at("upgrade.maxSurge"),
            "upgrade.maxSurge and maxUnavailable are both 0: no upgrade can start",
            fix="write maxUnavailable: 1",
        )
    elif (together := int(surge or 1) + int(unavailable or 0)) > _MAX_AT_ONCE:
        yield Finding(
            "gke-upgrade-limit",
            target.locator.at("upgrade"),
            f"upgrade.maxSurge and maxUnavailable are {together} together, and GKE upgrades at most {_MAX_AT_ONCE} "
            "nodes at once",
            fix=f"write numbers that add up to at most {_MAX_AT_ONCE}",
        )
    elif is_short_lived(target) and (surge or unavailable):
        yield Finding(
            "gke-upgrade-short-lived",
            target.locator.at("upgrade"),
            "upgrade has no effect: flex-start and queued nodes are upgraded when they end",
            fix="remove upgrade",
            severity="warning",
        )
    elif reservation_form(target) == "reservation" and surge != "0":
        yield Finding(
            "gke-upgrade-surge",
            target.locator.at("upgrade.maxSurge"),
            f"an upgrade adds nodes for a while ({surge or 1} at a time), and the reservation must include those too",
            fix="write upgrade: {maxSurge: 0, maxUnavailable: 1}, or reserve that many more",
            severity="hint",
        )
