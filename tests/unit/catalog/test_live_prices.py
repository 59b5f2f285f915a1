"""Asking clouds for prices: who answers late, not at all, or has nothing to ask fails nothing."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from gpukube.catalog import live_prices
from gpukube.catalog.live_prices import PATIENCE_S, PoolToPrice, read_prices
from gpukube.core.cloud_catalog import CloudCatalog, LivePrice, LivePrices
from gpukube.core.prices import EMBEDDED, Side
from gpukube.core.values import Settings
from gpukube.engine.run.clock import Stopped
from gpukube.errors import AccessError
from gpukube.gpu.machines import require_machine
from tests.builders import CLUSTER

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube.core.cloud_catalog import PriceInquiry

P4D = require_machine("eks", "p4d.24xlarge")
EKS = replace(CLUSTER, key="train", provider="eks")


class Clock:
    """A clock on which so many seconds pass with each look."""

    def __init__(self, step_s: float = 0.0, *, stopped: bool = False) -> None:
        self.stopped = stopped
        self._step = step_s
        self._now = 0.0

    def now(self) -> float:
        self._now += self._step
        return self._now


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[PriceInquiry], LivePrices] | None], None]:
    """Let every cloud answer so."""

    def install(prices: Callable[[PriceInquiry], LivePrices] | None) -> None:
        catalog = CloudCatalog("home", ".+", "home", lambda _: (), lambda _: (), lambda _: pytest.fail("no"), prices)
        monkeypatch.setattr(
            live_prices, "load_provider", lambda _: SimpleNamespace(extras=SimpleNamespace(catalog=catalog))
        )

    return install


def wanted(capacity: str = "on-demand", region: str = "eu-west-1") -> PoolToPrice:
    return PoolToPrice(EKS, region, Side(P4D, P4D.name, capacity, (), 1, 1))


def ask(*items: PoolToPrice, clock: Clock | None = None) -> tuple[tuple[str, ...], str]:
    book = read_prices(EMBEDDED, items, Settings(), clock or Clock())  # type: ignore[arg-type]  # as much of a clock as is used
    return book.notes, items[0].side.node(book, items[0].region).source


def test_prices_when_the_cloud_does_not_answer_then_a_note_with_the_reason(answers: Callable[..., None]) -> None:
    never = threading.Event()

    def hang(_: PriceInquiry) -> LivePrices:
        never.wait()
        return LivePrices()

    answers(hang)
    notes, source = ask(wanted(), clock=Clock(PATIENCE_S / 3))
    never.set()
    assert notes[0].startswith("eks/eu-west-1: prices could not be read: ")
    assert "timed out while reading prices" in notes[0]
    assert notes[0].endswith("; showing the catalog's price")
    assert source == "embedded"


def test_prices_when_refused_then_a_note(answers: Callable[..., None]) -> None:
    def refuse(_: PriceInquiry) -> LivePrices:
        raise AccessError("no pricing:GetProducts")

    answers(refuse)
    assert "no pricing:GetProducts" in ask(wanted())[0][0]


def test_prices_when_a_machine_is_missing_from_the_answer_then_named(answers: Callable[..., None]) -> None:
    answers(lambda _: LivePrices((LivePrice(P4D.name, 30.0),)))
    notes, source = ask(wanted(), wanted("spot"), wanted("reserved"))
    assert source == "live"
    assert notes == ("eks/eu-west-1: no current spot price of p4d.24xlarge; showing the catalog's price",)


def test_prices_when_a_machine_is_wanted_twice_then_asked_for_once(answers: Callable[..., None]) -> None:
    seen: list[PriceInquiry] = []

    def answer(question: PriceInquiry) -> LivePrices:
        seen.append(question)
        return LivePrices((LivePrice(P4D.name, 30.0),))

    answers(answer)
    ask(wanted(), wanted(), wanted(region="us-east-1"))
    asked = sorted((question.inquiry.region, len(question.on_demand), len(question.spot)) for question in seen)
    assert asked == [("eu-west-1", 1, 0), ("us-east-1", 1, 0)]  # both at once, in any order


def test_prices_when_nobody_can_be_asked_then_a_note(answers: Callable[..., None]) -> None:
    answers(None)
    assert ask(wanted())[0] == ("eks: it has no price API; showing the catalog's price",)
    answers(lambda _: pytest.fail("it is not known where"))
    assert ask(wanted(region=""))[0][0].startswith("train: its region is unknown")


def test_prices_when_the_run_is_stopped_then_it_ends(answers: Callable[..., None]) -> None:
    answers(lambda _: LivePrices())
    with pytest.raises(Stopped):
        ask(wanted(), clock=Clock(stopped=True))
