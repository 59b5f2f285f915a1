"""The shape of quotas in plans."""

from __future__ import annotations

from typing import TypedDict


class Quota(TypedDict):
    """One quota of a cloud that pools of the plan need more of."""

    name: str
    """As the cloud's API has it."""
    title: str
    """As its pages call it."""
    place: str
    """Whose it is and where: account, subscription or project, and region."""
    unit: str
    """What it counts: vCPUs or GPUs."""
    needed: float
    """Beyond what is used, by all pools of the plan in that place with as many nodes as they may have."""
    pools: list[str]
    """These pools, as cluster/pool."""
    used: float | None
    """By everybody in the account; null when not known."""
    limit: float | None
    """null when not known."""
    short: bool
    """Whether less is left than needed, as far as is known."""
    unknown: str
    """Why used or limit is not known; empty when both are."""
    fix: str
    """What raises it far enough; empty when it does."""
    raiseBy: str
    """A command, where {value} stands for the new limit, or a page; whether or not it does."""
    source: str
    """Public source that this quota counts."""
