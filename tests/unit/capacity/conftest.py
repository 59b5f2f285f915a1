"""EKS with given answers on capacity."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gpukube.core.capacity_sources import Ask, CloudCapacity, Offers
from gpukube_eks.provider import EksExtras

Install = Callable[[Callable[[Ask], Offers]], list[Ask]]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Let EKS answer so; return what it is asked."""

    def install(answer: Callable[[Ask], Offers]) -> list[Ask]:
        asked: list[Ask] = []

        def fetch(ask: Ask) -> Offers:
            asked.append(ask)
            return answer(ask)

        monkeypatch.setattr(EksExtras, "capacity", CloudCapacity(fetch))
        return asked

    return install
