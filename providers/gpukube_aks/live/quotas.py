"""Reads Azure's live quotas: one call returns limits and usage of a region.

In scope: the call. Out of scope: what each quota counts (`rules.quotas`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from azure.core.rest import HttpRequest

from gpukube.core.quotas import QuotaReading
from gpukube.errors import GpukubeError
from gpukube_aks.live.failures import explained
from gpukube_aks.live.pages import listed
from gpukube_aks.rules.quotas import read_usages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.core.quotas import CloudQuota
    from gpukube_aks.live.pages import Sender

_VERSION: Final = "2024-07-01"


def read_quotas(sdk: Sender, base: str, asked: Sequence[CloudQuota], where: str) -> dict[CloudQuota, QuotaReading]:
    """Read quotas of one subscription and region; unreadable ones are unknown, with the reason.

    Args:
        sdk: Client of any subscription.
        base: URL of ARM.
        asked: Quotas of one subscription and region.
        where: Resource named in messages.
    """
    subscription, _, location = asked[0].place.partition("/")
    address = f"{base}/subscriptions/{subscription}/providers/Microsoft.Compute/locations/{location}/usages"
    try:
        with explained(where):
            return read_usages(listed(sdk, HttpRequest("GET", address, params={"api-version": _VERSION}), base), asked)
    except GpukubeError as error:
        return dict.fromkeys(asked, QuotaReading(unknown=str(error)))
