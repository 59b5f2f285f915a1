"""Stock: which entry decides, when it changes, who is woken, and what the command line and world files say of it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from gpukube_sandbox import daemon
from gpukube_sandbox.cli import main
from gpukube_sandbox.clock import ManualClock
from gpukube_sandbox.stock import Stock, parse_entry
from gpukube_sandbox.worldfile import WorldError, populate, read_world

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo

H100 = ("eks", "us-east-1a", "p5.48xlarge", "on-demand")


def stock_of(*entries: dict[str, Any]) -> tuple[Stock, ManualClock]:
    clock = ManualClock()
    stock = Stock(clock)
    for entry in entries:
        stock.put(parse_entry(entry))
    return stock, clock


def test_take_when_no_entry_matches_then_without_limit() -> None:
    stock, _ = stock_of({"provider": "gke", "free": 0}, {"provider": "eks", "type": "p4d.24xlarge", "free": 0})
    assert (stock.free(*H100), stock.take(*H100, 100)) == (None, 100)


def test_take_when_fewer_are_left_then_those_and_what_is_given_back_can_be_taken_again() -> None:
    stock, _ = stock_of({"provider": "eks", "type": "p5.48xlarge", "free": 3})
    assert [stock.take(*H100, 2), stock.take(*H100, 2), stock.take(*H100, 2)] == [2, 1, 0]
    stock.give_back(*H100, 2)
    assert (stock.free(*H100), stock.take(*H100, 9)) == (2, 2)


def test_free_when_a_pattern_matches_several_places_then_each_has_its_own() -> None:
    stock, _ = stock_of({"provider": "eks", "free": 1})
    other = ("eks", "us-east-1b", "p5.48xlarge", "spot")
    assert (stock.take(*H100, 2), stock.take(*other, 2)) == (1, 1)


def test_free_when_several_entries_match_then_the_most_precise_and_then_the_newest_decides() -> None:
    precise = {"provider": "eks", "type": "p5.48xlarge", "zone": "us-east-1a", "kind": "on-demand", "free": 7}
    stock, _ = stock_of(precise, {"provider": "eks", "zone": "us-east-1a", "free": 1})
    stock.put(parse_entry({"provider": "eks", "kind": "on-demand", "free": 2}))
    assert stock.free(*H100) == 7
    assert stock.free("eks", "us-east-1a", "g6.xlarge", "on-demand") == 2
    assert stock.free("eks", "us-east-1a", "g6.xlarge", "spot") == 1
    stock.put(parse_entry({**precise, "free": 0}))
    assert (stock.free(*H100), len(stock.entries)) == (0, 3)


def test_free_when_sizes_differ_in_case_only_then_they_are_the_same() -> None:
    stock, _ = stock_of({"provider": "aks", "type": "Standard_ND96isr_H100_v5", "free": 0})
    assert stock.free("aks", "1", "standard_nd96ISR_h100_v5", "spot") == 0


def test_free_when_machines_ran_before_the_entry_then_they_do_not_count() -> None:
    stock, _ = stock_of()
    stock.add(*H100, 5)
    stock.put(parse_entry({"provider": "eks", "free": 2}))
    assert stock.take(*H100, 3) == 2
    stock.give_back(*H100, 7)
    assert stock.free(*H100) == 2


def test_free_when_time_passes_then_the_timetable_is_followed_on_the_sandbox_clock() -> None:
    async def story() -> list[int | None]:
        stock, clock = stock_of({"provider": "eks", "free": 0, "then": {"1200": 1, "600": 4}})
        found = [stock.free(*H100)]
        await clock.advance(600)
        found += [stock.free(*H100), stock.take(*H100, 3), stock.free(*H100)]
        await clock.advance(600)
        return [*found, stock.free(*H100)]

    assert asyncio.run(story()) == [0, 4, 3, 1, 0]


async def woken_at(stock: Stock, clock: ManualClock) -> float:
    began = clock.now()
    await stock.changed(3600)
    return clock.now() - began


def test_changed_when_there_may_be_more_then_the_waiting_are_woken() -> None:
    async def story() -> list[float]:
        stock, clock = stock_of({"provider": "eks", "free": 0, "then": {"600": 4}})
        found = []
        changes: list[Callable[[], None]] = [
            lambda: None,  # the next step of the timetable
            lambda: stock.give_back(*H100),
            lambda: stock.put(parse_entry({"provider": "eks", "free": 1})),
            stock.clear,
            lambda: None,  # the time is up
        ]
        for change in changes:
            waiting = asyncio.ensure_future(woken_at(stock, clock))
            await clock.advance(60)
            assert not waiting.done()
            change()
            await clock.advance(0)
            if not waiting.done():
                await clock.advance(4000)
            found.append(await waiting)
        return found

    assert asyncio.run(story()) == [600, 60, 60, 60, 3600]


WRONG = {
    "no provider": ({"free": 1}, "provider is missing"),
    "no number": ({"provider": "eks"}, "free is missing"),
    "another cloud": ({"provider": "oke", "free": 1}, "there is no provider oke; the nearest is gke"),
    "another kind": ({"provider": "eks", "kind": "Spot", "free": 1}, "there is no kind Spot; the nearest is spot"),
    "below 0": ({"provider": "eks", "free": -1}, "free is -1; it must be 0 or more"),
    "a step below 0": ({"provider": "eks", "free": 1, "then": {"60": -1}}, "60 is -1; it must be 0 or more"),
    "no time": ({"provider": "eks", "free": 1, "then": {"x": 1}}, "x is not a number of seconds above 0"),
    "the past": ({"provider": "eks", "free": 1, "then": {"-5": 1}}, "-5 is not a number of seconds above 0"),
    "no machines": ({"provider": "eks", "free": 1, "then": {"5": "x"}}, "5 is x; it must be a whole number"),
    "another key": (
        {"provider": "eks", "free": 1, "size": 2},
        'there is no key "size"; there are free, kind, provider, then, type, zone',
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_parse_when_an_entry_is_wrong_then_refused(case: str) -> None:
    document, told = WRONG[case]
    with pytest.raises(ValueError, match=r".") as caught:
        parse_entry(document)
    assert str(caught.value) == told


def test_parse_when_an_entry_is_written_then_it_reads_the_same() -> None:
    entry = parse_entry({"provider": "eks", "kind": "spot", "free": 2, "then": {"600": 4, "1.5": 0}})
    assert entry.wire() == {
        "provider": "eks", "type": "*", "zone": "*", "kind": "spot", "free": 2, "then": {"1.5": 0, "600": 4},
    }  # fmt: skip
    assert parse_entry(entry.wire()) == entry


def test_save_when_loaded_then_entries_and_machines_are_back() -> None:
    stock, _ = stock_of({"provider": "eks", "free": 3})
    stock.take(*H100, 2)
    saved = stock.save()
    stock.reset()
    assert (stock.free(*H100), stock.wire()) == (None, [])
    stock.load(saved)
    assert (stock.free(*H100), stock.wire()[0]["taken"]) == (1, 2)


def test_world_when_saved_then_its_stock_is_restored_and_a_reset_clears_it(sandbox: SandboxInfo) -> None:
    daemon.reset(sandbox)  # the same beginnings as below
    daemon.set_stock(sandbox, "eks", 1, {600.0: 2}, type="p5.48xlarge")
    _, name = daemon.load(sandbox, "a world with stock")
    assert daemon.save(sandbox, name)
    expected = daemon.list_stock(sandbox)
    daemon.reset(sandbox)
    assert daemon.list_stock(sandbox) == []
    daemon.set_stock(sandbox, "eks", 1, {600.0: 2}, type="p5.48xlarge")
    assert daemon.load(sandbox, "a world with stock")[0]
    assert daemon.list_stock(sandbox) == expected


def test_command_when_stock_is_set_listed_and_cleared_then_told(
    sandbox: SandboxInfo, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GPUKUBE_SANDBOX_STATE", sandbox.state_dir)

    def run(*arguments: str) -> tuple[int, str, str]:
        return main(("stock", *arguments)), *capsys.readouterr()

    place = ("--zone", "us-east-1a", "--kind", "on-demand")
    done = run("set", "eks", "p5.48xlarge", *place, "--free", "0", "--then", "100000=4", "--then", "120000=0")
    assert done == (0, "stock is limited; gpukube-sandbox stock clear removes all limits\n", "")
    run("set", "gke", "*", "--free", "2")
    shown = (
        "eks  p5.48xlarge  zone=us-east-1a kind=on-demand free=0 then=100000:4,120000:0\n   0 in total, 0 taken\n"
        "gke  *  free=2\n   2 in total, 0 taken\n"
    )
    assert run("list") == (0, shown, "")
    document = json.loads(run("list", "-o", "json")[1])
    assert (document["kind"], document["stock"]) == ("SandboxStock", daemon.list_stock(sandbox))
    assert run("clear")[:2] == (0, "all limits removed\n")
    assert run("list")[1] == "no limits\n"
    wrong = run("set", "eks", "*", "--free", "1", "--then", "soon")
    assert wrong == (4, "", 'error: "soon" is not a step\n    fix: write SECONDS=MACHINES, such as 600=4\n')
    code, _, told = run("set", "oke", "*", "--free", "1")
    assert (code, told.splitlines()[0]) == (4, "error: there is no provider oke; the nearest is gke")


def test_world_file_when_it_has_stock_then_set_and_a_mistake_has_its_place(
    sandbox: SandboxInfo, tmp_path: Path
) -> None:
    path = tmp_path / "w.yaml"
    path.write_text("stock:\n  - {provider: eks, type: p5.48xlarge, free: 0, then: {600: 4, 1200: 0}}\n")
    populate(sandbox, read_world(str(path)))
    (entry,) = daemon.list_stock(sandbox)
    assert (entry["type"], entry["free"], entry["then"]) == ("p5.48xlarge", 0, {"600": 4, "1200": 0})
    path.write_text("stock:\n  - {provider: eks, free: 0, then: {600: many}}\n")
    with pytest.raises(WorldError) as caught:
        populate(sandbox, read_world(str(path)))
    assert str(caught.value) == f"{path}:2:37: 600 is many; it must be a whole number"
