"""Where charts come from, and that they stay as planned: repository and registry, with passwords, by either Helm."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.helm.chart import ChartSource
from gpukube.cluster.helm.cli import HelmCli
from gpukube.cluster.names import DEVICE_PLUGIN
from gpukube.cluster.release.charts import ChartCache
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.state.snapshot import Snapshot, look
from gpukube.errors import HelmError, StalePlan
from gpukube_sandbox.kube.repository import chart_archive
from sandbox_tests.serving import serving
from tests.unit.cluster.builders import SINGLE, desire
from tests.wire.cluster.registry import PASSWORD, USER, ChartServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpukube.cluster.helm.engine import Engine
    from gpukube.cluster.kube.client import LightKube
    from gpukube.cluster.release.manager import ReleaseManager

FRESH = plan_release([desire(sharing=SINGLE)], Snapshot())
ARCHIVE = chart_archive(FRESH.version)
DIGEST = f"sha256:{hashlib.sha256(ARCHIVE).hexdigest()}"
REPLACED = gzip.compress(gzip.decompress(ARCHIVE), mtime=0)
"""The same chart in other bytes: another digest."""


@dataclass
class Place:
    """The server, and how its chart is named."""

    server: ChartServer
    host: str
    kind: str

    def source(self, user: str = "") -> ChartSource:
        if self.kind == "oci":
            return ChartSource(f"oci://{self.host}/team/{DEVICE_PLUGIN.chart}")
        return ChartSource(f"http://{user}{self.host}/charts")


@pytest.fixture(params=["repository", "oci"])
def place(request: pytest.FixtureRequest, engine: Engine) -> Iterator[Place]:
    if request.param == "oci" and isinstance(engine, HelmCli) and not engine._is_at_least((3, 13)):
        pytest.skip("helm before 3.13 pulls from no registry on loopback")
    server = ChartServer(DEVICE_PLUGIN.chart, FRESH.version, ARCHIVE)
    with serving(server.app()) as (url, _loop):
        yield Place(server, url.removeprefix("http://"), request.param)


@pytest.fixture
def shelf(engine: Engine) -> Iterator[Callable[[ChartSource], ChartCache]]:
    made: list[ChartCache] = []

    def make(source: ChartSource) -> ChartCache:
        made.append(ChartCache(engine, source))
        return made[-1]

    yield make
    for item in made:
        item.close()


def test_digest_when_pulled_then_that_of_the_archive_and_pulled_once(
    place: Place, shelf: Callable[[ChartSource], ChartCache]
) -> None:
    charts = shelf(place.source())
    assert charts.digest(FRESH) == DIGEST
    asked = list(place.server.asked)
    assert charts.digest(FRESH) == DIGEST
    assert place.server.asked == asked


def test_dry_run_when_the_chart_is_the_planned_one_then_fine(place: Place, keep: Callable[..., ReleaseManager]) -> None:
    assert keep(source=place.source()).dry_run(replace(FRESH, digest=DIGEST)).digest == DIGEST


def test_dry_run_when_the_version_was_replaced_then_stale_and_nothing_is_written(
    place: Place, keep: Callable[..., ReleaseManager], kube: LightKube
) -> None:
    place.server.archive = REPLACED
    keeper = keep(source=place.source())
    for act in (keeper.dry_run, lambda plan: keeper.install_or_upgrade(plan, 0)):
        with pytest.raises(StalePlan, match=f"the plan was made with {DIGEST}"):
            act(replace(FRESH, digest=DIGEST))
    assert look(kube).release_of(DEVICE_PLUGIN) is None


def log_in(environ: dict[str, str], host: str) -> None:
    """Leave what `helm registry login` leaves."""
    auth = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    path = Path(environ["HOME"]) / ".config" / "helm" / "registry" / "config.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"auths": {host: {"auth": auth}}}))


def test_digest_when_the_place_asks_who_we_are_then_as_the_users_helm_is_logged_in(
    place: Place, shelf: Callable[[ChartSource], ChartCache], environ: dict[str, str]
) -> None:
    place.server.password = True
    with pytest.raises(HelmError) as caught:
        shelf(place.source()).digest(FRESH)
    assert caught.value.diagnostics[0].code == "chart-not-found"
    log_in(environ, place.host)
    assert shelf(place.source(f"{USER}:{PASSWORD}@")).digest(FRESH) == DIGEST


def test_message_when_a_chart_cannot_be_had_then_it_tells_no_password(
    place: Place, shelf: Callable[[ChartSource], ChartCache]
) -> None:
    place.server.password = True
    for user in (f"{USER}:wr0ng-{PASSWORD}@", f"{PASSWORD}@", f"{USER}:p%40/{PASSWORD}@", f"{PASSWORD}a@{PASSWORD}b@"):
        with pytest.raises(HelmError) as caught:
            shelf(place.source(user)).digest(FRESH)
        assert PASSWORD not in f"{caught.value.render()} {caught.value} {caught.value.__cause__}"
