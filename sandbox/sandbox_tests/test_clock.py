"""The sandbox's clocks."""

from __future__ import annotations

import asyncio
import time

import pytest

from gpukube_sandbox.clock import ManualClock, ScaledClock, timestamp
from gpukube_sandbox.pacing import PacedClock


def test_scaled_clock_when_wall_time_passes_then_sandbox_time_passes_faster() -> None:
    wall = [100.0]
    clock = ScaledClock(60.0, origin=1000.0, monotonic=lambda: wall[0])
    wall[0] += 2

    assert clock.now() == 1120.0


def test_scaled_clock_when_sleeping_then_wall_time_is_divided_by_speed() -> None:
    began = time.monotonic()
    asyncio.run(ScaledClock(1_000_000.0).sleep(20_000))  # undivided, it would not end within the test's time

    assert time.monotonic() - began > 0.015


def test_scaled_clock_when_speed_is_zero_then_refused() -> None:
    with pytest.raises(ValueError, match="speed is 0"):
        ScaledClock(0)


def test_manual_clock_when_advanced_then_sleepers_wake_in_order_at_their_time() -> None:
    async def story() -> list[tuple[str, float]]:
        clock = ManualClock(0.0)
        woken: list[tuple[str, float]] = []

        async def sleeper(name: str, seconds: float) -> None:
            await clock.sleep(seconds)
            woken.append((name, clock.now()))

        tasks = [asyncio.create_task(sleeper("late", 30)), asyncio.create_task(sleeper("early", 10))]
        await clock.advance(5)
        assert woken == []
        await clock.advance(40)
        await asyncio.gather(*tasks)
        return woken

    assert asyncio.run(story()) == [("early", 10.0), ("late", 30.0)]


def test_paced_clock_when_a_sleeper_is_cancelled_as_the_speed_changes_then_it_ends() -> None:
    async def story() -> bool:
        clock = PacedClock(1.0)
        sleeper = asyncio.ensure_future(clock.sleep(10_000))
        for turn in range(20):
            if turn == 10:
                clock.set_speed(2.0)
                sleeper.cancel()
            await asyncio.sleep(0)
        return sleeper.cancelled()

    assert asyncio.run(story())


def test_timestamp_when_written_then_rfc_3339_in_utc() -> None:
    assert timestamp(1_750_000_000.7) == "2025-06-15T15:06:40Z"
