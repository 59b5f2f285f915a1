"""A call that was given up sends nothing more, although the SDK would."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from gpukube.engine.run.calls import Calls, are_left
from gpukube.engine.run.clock import Stopped, SystemClock
from gpukube_sandbox import daemon
from sandbox_tests.waiting import wait_for

if TYPE_CHECKING:
    from gpukube_aks.live.client import AksCloud
    from gpukube_sandbox.daemon import SandboxInfo


def test_call_when_given_up_while_the_sdk_waits_out_a_retry_after_then_it_is_not_repeated(
    sandbox: SandboxInfo, cloud: AksCloud
) -> None:
    daemon.add_fault(sandbox, "status", service="arm", status=429, headers={"Retry-After": "2"}, times=0)
    mark = len(daemon.requests_since(sandbox))
    clock = SystemClock()

    def stop() -> None:
        wait_for(lambda: daemon.requests_since(sandbox, mark))
        clock.stop()

    threading.Thread(target=stop, daemon=True).start()
    with pytest.raises(Stopped):
        Calls(clock, 1e12, "gpukube pool create")("train-aks", "looking", cloud.identify)
    wait_for(lambda: not are_left())
    assert len([r for r in daemon.requests_since(sandbox, mark) if r["service"] == "arm"]) == 1
