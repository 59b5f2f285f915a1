"""What NVIDIA's repository serves is held to the digest that was published, or that the cluster recorded."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.helm.chart import ChartSource
from gpukube.cluster.names import CHART_LABEL, DEVICE_PLUGIN, GPU_OPERATOR
from gpukube.cluster.release.charts import ChartCache
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.state.snapshot import Snapshot
from gpukube.errors import HelmError
from tests.unit.cluster.builders import SINGLE, desire, release_of
from tests.unit.cluster.test_chart import pack

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpukube.cluster.kube.releases import Release
    from gpukube.cluster.release.plan import ReleasePlan

PLUGIN = plan_release([desire(sharing=SINGLE)], Snapshot())
OPERATOR = replace(PLUGIN, kind=GPU_OPERATOR, version=GPU_OPERATOR.version)


class Repository:
    """Serves one archive for whatever is pulled: what a repository, or whoever stands before it, may do."""

    def __init__(self, content: bytes = b"") -> None:
        self.content = content

    def pull(self, source: ChartSource, directory: Path) -> Path:
        chart = f"name: {source.chart}\nversion: {source.version}\n".encode() + self.content
        return pack(directory / "chart.tgz", (f"{source.chart}/Chart.yaml", chart))


@pytest.fixture
def shelf() -> Iterator[ChartCache]:
    made = ChartCache(Repository(), ChartSource())  # type: ignore[arg-type]  # only pull is called
    yield made
    made.close()


def marked(mark: str, plan: ReleasePlan = OPERATOR) -> Release:
    return replace(release_of(PLUGIN.values), chart=plan.chart, chart_version=plan.version, chart_mark=mark)


def test_default_version_when_its_archive_is_not_the_published_one_then_refused(shelf: ChartCache) -> None:
    with pytest.raises(HelmError, match=f"expected {DEVICE_PLUGIN.digest}") as refused:
        shelf.chart(PLUGIN)
    assert refused.value.diagnostics[0].code == "chart-digest"


def test_default_version_when_its_archive_is_the_published_one_then_taken(shelf: ChartCache) -> None:
    path = shelf.chart(replace(PLUGIN, version="0.19.3"))
    published = f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
    kind = replace(DEVICE_PLUGIN, version="0.19.3", digest=published)
    assert shelf.chart(replace(PLUGIN, version="0.19.3", kind=kind)) == path
    assert shelf.record(path, replace(PLUGIN, version="0.19.3", kind=kind)) == {}


def test_other_source_when_the_archive_differs_then_the_user_trusts_it(tmp_path: Path) -> None:
    shelf = ChartCache(Repository(), ChartSource("http://mirror/charts"))  # type: ignore[arg-type]  # only pull is called
    path = shelf.chart(PLUGIN)
    assert shelf.record(path, OPERATOR) == {}
    shelf.close()


def test_chart_without_a_published_digest_when_first_seen_then_recorded_and_compared_from_then_on(
    shelf: ChartCache,
) -> None:
    path = shelf.chart(OPERATOR)
    (mark,) = shelf.record(path, OPERATOR).values()
    assert mark.startswith("v26.7.0.")
    assert len(mark) == 63
    assert shelf.record(path, OPERATOR).keys() == {CHART_LABEL}
    assert shelf.chart(OPERATOR, marked(mark)) == path
    with pytest.raises(HelmError, match="expected v26") as refused:
        shelf.chart(OPERATOR, marked("v26.7.0." + "0" * 55))
    assert refused.value.diagnostics[0].code == "chart-digest"


@pytest.mark.parametrize("mark", ["", "v26.3.3." + "0" * 55], ids=["none", "of another version"])
def test_record_when_it_is_of_another_version_then_nothing_to_compare_with(shelf: ChartCache, mark: str) -> None:
    assert shelf.chart(OPERATOR, marked(mark)).exists()
