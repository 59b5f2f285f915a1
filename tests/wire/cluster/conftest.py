"""An emulated cluster and a chart repository on loopback, and every Helm there is."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import pytest
from starlette.applications import Starlette

from gpukube.cluster.helm.chart import ChartSource
from gpukube.cluster.helm.cli import HelmCli
from gpukube.cluster.helm.embedded import HelmSdk
from gpukube.cluster.kube.client import LightKube, connect_kube
from gpukube.cluster.proof.verify import prove_pool
from gpukube.cluster.release.manager import Clock, Cluster, ReleaseManager
from gpukube.cluster.state.snapshot import look
from gpukube.core.values import KubeAccess
from gpukube_sandbox.credentials import new_secret
from gpukube_sandbox.kube.cluster import KubeCluster
from gpukube_sandbox.kube.http.app import make_app
from gpukube_sandbox.kube.store.kinds import CORE
from gpukube_sandbox.pacing import PacedClock
from gpukube_sandbox.tls import make_tls
from sandbox_tests.clients import client
from sandbox_tests.serving import serving
from sandbox_tests.waiting import PATIENCE_S, wait_for
from tests.wire.cluster.real_charts import chart_routes

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from pathlib import Path

    from gpukube.cluster.helm.engine import Engine
    from gpukube.cluster.proof.outcome import PoolProof
    from gpukube.core.values import Desired
    from gpukube_sandbox.kube.store.store import Change

T = TypeVar("T")
TOKEN = new_secret()
FAST = 600.0
"""Sandbox seconds per second."""
MOMENT_S = 0.3
"""In place of each pause: the emulated pods end sooner, and as many pauses as the product makes are a minute."""


@dataclass
class Live:
    """A running emulated cluster: its objects, its API and its event loop."""

    cluster: KubeCluster
    url: str
    ca_pem: str
    loop: asyncio.AbstractEventLoop
    clock: PacedClock

    def run(self, work: Coroutine[None, None, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE_S)

    def pace(self, speed: float) -> None:
        """Let the cluster's time go on at another speed."""

        async def change() -> None:
            self.clock.set_speed(speed)

        self.run(change())

    def history(self, plural: str) -> list[Change]:
        """Give every write of a type's objects, in order: what looking from time to time would miss is there too."""

        async def read() -> list[Change]:
            return self.cluster.store.changes_since(CORE[plural], 0)

        return self.run(read())

    def access(self, *, token: str = TOKEN, url: str = "") -> KubeAccess:
        text = self.cluster.kubeconfig(url or self.url, self.ca_pem)
        return KubeAccess(text.replace(TOKEN, token))


def settled_proof(pool: Desired, kube: LightKube) -> PoolProof:
    """Look until a pool is proven, or stays broken: while nodes change, one look may see parts of two states."""
    seen: list[PoolProof] = []

    def is_settled() -> bool:
        seen.append(prove_pool(pool, look(kube)))
        return seen[-1].status not in ("waiting", "broken") or [item.status for item in seen[-3:]] == ["broken"] * 3

    wait_for(is_settled, lambda: seen[-1].missing_step, every_s=0.05)
    return seen[-1]


@pytest.fixture(autouse=True)
def own_temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what this test leaves behind apart from what others do at the same time."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(directory))


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    clock = PacedClock(FAST)
    cluster = KubeCluster("train", clock, TOKEN)
    tls = make_tls(tmp_path)
    with serving(make_app(cluster), tls, cluster) as (url, loop):
        yield Live(cluster, url, tls.ca.read_text(), loop, clock)


@pytest.fixture
def kube(live: Live) -> Iterator[LightKube]:
    client = connect_kube(live.access(), PATIENCE_S)
    yield client
    client.close()


@pytest.fixture(scope="session")
def charts() -> Iterator[ChartSource]:
    with serving(Starlette(routes=[chart_routes("/charts")])) as (url, _loop):
        yield ChartSource(f"{url}/charts")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Give Helm a home of its own, and surroundings that would lead it astray if it looked at them."""
    astray = tmp_path / "astray.yaml"
    astray.write_text("apiVersion: v1\nkind: Config\nclusters: [{name: x, cluster: {server: 'https://192.0.2.1'}}]\n")
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "KUBECONFIG": str(astray),
        "HELM_NAMESPACE": "astray",
        "HELM_KUBEAPISERVER": "https://192.0.2.1",
        "HELM_DRIVER": "configmap",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "HTTPS_PROXY": "http://127.0.0.1:9",
    }


@pytest.fixture(params=[pytest.param("cli", marks=pytest.mark.clients("helm")), "embedded"])
def engine(request: pytest.FixtureRequest, environ: dict[str, str]) -> Engine:
    """Give one way of running Helm after the other; the same tests hold for both."""
    if request.param == "embedded":
        pytest.importorskip("helm_python", reason="the embedded Helm is not installed (gpukube[helm])")
        return HelmSdk(environ, deadline_s=60)
    return HelmCli(client("helm"), "v3.6.2", environ, deadline_s=60)


@pytest.fixture
def keep(live: Live, kube: LightKube, engine: Engine, charts: ChartSource) -> Iterator[Callable[..., ReleaseManager]]:
    """Make keepers of the cluster's release that pause for a moment only."""
    made: list[ReleaseManager] = []

    def pause_briefly(seconds: float) -> None:
        time.sleep(min(seconds, MOMENT_S))

    def make(
        access: KubeAccess | None = None,
        source: ChartSource | None = None,
        pause: Callable[[float], None] = pause_briefly,
    ) -> ReleaseManager:
        cluster = Cluster(lambda: access or live.access(), kube)
        made.append(ReleaseManager(cluster, engine, source or charts, Clock(pause=pause)))
        return made[-1]

    yield make
    for keeper in made:
        keeper.close()


@pytest.fixture
def keeper(keep: Callable[..., ReleaseManager]) -> ReleaseManager:
    return keep()
