"""What GKE makes of `upgrade`: numbers of nodes, and none where it upgrades in a way of its own.

In scope: those checks. Out of scope: native strategies (`combinations`), what is sent (`pool.translate`).

Source: google.container.v1 UpgradeSettings (two whole numbers, of which one is more than zero; surge 1 and unavailable
0 where nothing is said) and NodePoolUpdateStrategy.SHORT_LIVED (of flex-start and queued pools); upgrade_settings of
terraform-provider-google 7.45 (the sum of both is limited to 20).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpukube.errors import Finding
from gpukube_gke.pool.purchase import is_short_lived, reservation_form

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube.core.values import Target


_MOST_AT_ONCE: Final = 20


def check_upgrade(target: Target) -> Iterator[Finding]:
    """Find shares of nodes, upgrades that could not begin, and those that want machines nobody has."""
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
    elif (together := int(surge or 1) + int(unavailable or 0)) > _MOST_AT_ONCE:
        yield Finding(
            "gke-upgrade-limit",
            target.locator.at("upgrade"),
            f"upgrade.maxSurge and maxUnavailable are {together} together, and GKE upgrades at most {_MOST_AT_ONCE} "
            "nodes at once",
            fix=f"write numbers of at most {_MOST_AT_ONCE} together",
        )
    elif is_short_lived(target) and (surge or unavailable):
        yield Finding(
            "gke-upgrade-short-lived",
            target.locator.at("upgrade"),
            "upgrade has no effect: flex-start and queued nodes are upgraded when they end",
            fix="take upgrade away",
            severity="warning",
        )
    elif reservation_form(target) == "reservation" and surge != "0":
        yield Finding(
            "gke-upgrade-surge",
            target.locator.at("upgrade.maxSurge"),
            f"an upgrade adds nodes for a while ({surge or 1} at a time), which the reservation must include too",
            fix="write upgrade: {maxSurge: 0, maxUnavailable: 1}, or reserve that many more",
            severity="hint",
        )
