"""Who runs and who only looks: the life lock of a sandbox's directory."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

from gpukube_sandbox import state

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_life_lock_when_a_looker_stands_still_then_it_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looker = os.open(tmp_path / "daemon.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(looker, fcntl.LOCK_SH)
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 1000:
            os.close(looker)

    monkeypatch.setattr("gpukube_sandbox.state.time.sleep", pause)
    handle = state.hold_life_lock(tmp_path)
    assert (handle is not None, len(pauses), state.is_running(tmp_path)) == (True, 1000, True)
    os.close(handle or 0)


def test_life_lock_when_another_lives_there_then_none_at_once(tmp_path: Path) -> None:
    handle = state.hold_life_lock(tmp_path)
    assert handle is not None
    assert state.hold_life_lock(tmp_path) is None
    os.close(handle)
    assert not state.is_running(tmp_path)
