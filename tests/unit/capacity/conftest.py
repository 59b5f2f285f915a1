"""EKS with given answers on capacity."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpukube.core.capacity_sources import CapacityQuery, CloudCapacity, Offers
from gpukube_eks.provider import EksExtras

Install = Callable[[Callable[[CapacityQuery], Offers]], list[CapacityQuery]]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Let EKS answer so; return what is read of it."""

    def install(answer: Callable[[CapacityQuery], Offers]) -> list[CapacityQuery]:
        queries: list[CapacityQuery] = []

        def fetch(query: CapacityQuery) -> Offers:
            queries.append(query)
            return answer(query)

        monkeypatch.setattr(EksExtras, "capacity", CloudCapacity(fetch))
        return queries

    return install
