"""Versions, compared as far as both are written; what is newer for a pool."""

from __future__ import annotations

import pytest

from gpukube.core.upgrades import NodeOffer, NodeSystem, UpgradeOutlook, UpgradeTerms, is_older

TERMS = UpgradeTerms(0, "one by one", 15, "fails", "evicted")


@pytest.mark.parametrize(
    ("version", "other", "older"),
    [
        ("1.33.5", "1.34.2", True),
        ("1.34", "1.34.2", False),
        ("1.34.2", "1.34.2", False),
        ("1.34.10", "1.34.9", False),
        ("1.34.1-gke.1829001", "1.34.1-gke.2037001", True),
        ("1.34.1-gke.1829001", "1.34.1", False),
        ("", "1.34", False),
    ],
)
def test_versions_when_compared_then_as_far_as_both_are_written(
    version: str, other: str, older: bool  # noqa: FBT001 - a table's column
) -> None:  # fmt: skip
    assert is_older(version, other) is older


@pytest.mark.parametrize(
    ("offer", "behind"),
    [
        (NodeOffer("1.34.2"), False),
        (NodeOffer("1.35.0"), True),
        (NodeOffer("1.34.2", "a-2"), True),
        (NodeOffer("1.34.2", "a-1"), False),
        (NodeOffer("1.33.0", None, unknown="no permission"), False),
    ],
)
def test_pool_when_something_is_newer_then_behind(offer: NodeOffer, behind: bool) -> None:  # noqa: FBT001 - likewise
    outlook = UpgradeOutlook(NodeSystem("1.34.2", "a-1"), offer, TERMS, is_asked=True)
    assert (outlook.is_behind, outlook.is_planned) == (behind, behind)
