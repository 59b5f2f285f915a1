"""Ctrl-C while Helm is at work: it is let finish, or ended with nothing pending left behind."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from starlette.applications import Starlette

from gpukube.cluster.helm.cli import HelmCli
from gpukube.cluster.helm.embedded import HelmSdk
from gpukube.cluster.process.child import Stop
from gpukube.cluster.release.manager import Clock, Cluster, ReleaseManager
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.state.snapshot import Snapshot, look
from gpukube.engine.run.clock import Stopped, SystemClock
from gpukube_sandbox.kube.cluster import KubeCluster
from gpukube_sandbox.kube.http.app import make_app
from gpukube_sandbox.pacing import PacedClock
from gpukube_sandbox.tls import make_tls
from sandbox_tests.serving import serving
from sandbox_tests.waiting import PATIENCE_S
from tests.unit.cluster.builders import SINGLE, SLICED, desire
from tests.wire.cluster.conftest import FAST, TOKEN, Live

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from starlette.types import ASGIApp, Receive, Scope, Send

    from gpukube.cluster.helm.chart import ChartSource
    from gpukube.cluster.helm.engine import Engine
    from gpukube.cluster.kube.client import LightKube

CUT, SHARED = desire(sharing=SINGLE), desire(sharing=SLICED, pool="shared")
FRESH = plan_release([CUT], Snapshot())


@dataclass
class Gate:
    """Holds the writes of DaemonSets while it is shut, and tells when the first one came.

    Attributes:
        shut: Set to let the writes go that it holds; None when it stands open. A write that is held when another gate
            is put here, or none, is never done: whoever asked for it is gone.
    """

    shut: asyncio.Event | None = None
    came: threading.Event = field(default_factory=threading.Event)

    def around(self, app: ASGIApp) -> Starlette:
        async def held(scope: Scope, receive: Receive, send: Send) -> None:
            writes = scope["type"] == "http" and scope["method"] != "GET" and "/daemonsets" in scope["path"]
            if writes and (shut := self.shut):
                self.came.set()
                await shut.wait()
            await app(scope, receive, send)

        outer = Starlette()
        outer.mount("/", held)
        return outer


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def live(tmp_path: Path, gate: Gate) -> Iterator[Live]:
    clock = PacedClock(FAST)
    cluster = KubeCluster("train", clock, TOKEN)
    tls = make_tls(tmp_path)
    with serving(gate.around(make_app(cluster)), tls, cluster) as (url, loop):
        yield Live(cluster, url, tls.ca.read_text(), loop, clock)


@dataclass
class Stage:
    """A keeper whose run is stopped as soon as Helm writes a DaemonSet."""

    keeper: ReleaseManager
    clock: SystemClock
    gate: Gate

    def stop_at_the_daemonset(self, then: Callable[[], None] = lambda: None) -> None:
        def stop() -> None:
            assert self.gate.came.wait(PATIENCE_S)
            self.clock.stop()
            then()

        threading.Thread(target=stop, daemon=True).start()


@pytest.fixture
def stage(  # noqa: PLR0913, PLR0917 -- fixtures
    live: Live, kube: LightKube, engine: Engine, environ: dict[str, str], charts: ChartSource, gate: Gate
) -> Iterator[Callable[[float], Stage]]:
    made: list[ReleaseManager] = []

    def make(grace_s: float) -> Stage:
        clock = SystemClock()
        stop = Stop(lambda: clock.stopped, grace_s)
        ours: Engine = HelmSdk(environ, 2 * PATIENCE_S, stop)
        if isinstance(engine, HelmCli):
            ours = HelmCli(engine._program, "v3.6.2", environ, 2 * PATIENCE_S, stop)
        made.append(ReleaseManager(Cluster(live.access, kube), ours, charts, Clock(pause=clock.wait)))
        return Stage(made[-1], clock, gate)

    yield make
    for keeper in made:
        keeper.close()


@pytest.mark.turns(2)
@pytest.mark.parametrize("installed", [False, True], ids=["install", "upgrade"])
def test_stop_when_helm_does_not_end_soon_then_ended_and_nothing_pending_is_left(
    stage: Callable[[float], Stage], kube: LightKube, gate: Gate, *, installed: bool
) -> None:
    first = stage(0.2)
    if installed:
        first.keeper.install_or_upgrade(FRESH, 0)
    plan = plan_release([CUT, SHARED], look(kube))
    gate.shut = asyncio.Event()
    first.stop_at_the_daemonset()
    with pytest.raises(Stopped):
        first.keeper.install_or_upgrade(plan, plan.revision)
    assert not [item for item in look(kube).history if item.pending]

    gate.shut = None
    again = stage(0.2)
    plan = plan_release([CUT, SHARED], look(kube))
    assert again.keeper.install_or_upgrade(plan, plan.revision).status == "deployed"
    assert plan_release([CUT, SHARED], look(kube)).action == "none"


def test_stop_when_helm_is_nearly_done_then_it_finishes(
    stage: Callable[[float], Stage], gate: Gate, live: Live
) -> None:
    gate.shut = held = asyncio.Event()

    def let_go() -> None:
        time.sleep(0.5)  # the run sees that it is to stop
        live.loop.call_soon_threadsafe(held.set)

    one = stage(PATIENCE_S)
    one.stop_at_the_daemonset(let_go)
    assert one.keeper.install_or_upgrade(FRESH, 0).status == "deployed"
