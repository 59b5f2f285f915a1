"""Charts on disk and where they come from."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.helm.chart import ChartSource, archive_in, chart_digest, local_chart
from gpukube.cluster.names import DEVICE_PLUGIN, DRA_DRIVER, GPU_OPERATOR
from gpukube.errors import HelmError

if TYPE_CHECKING:
    from pathlib import Path

CHART_YAML = b"name: nvidia-device-plugin\nversion: 0.19.3\n"


def pack(path: Path, *files: tuple[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


SOURCES = {
    "ours": (ChartSource(), "repository", "nvidia-device-plugin"),
    "a mirror": (ChartSource("http://mirror/charts"), "repository", "nvidia-device-plugin"),
    "the operator": (ChartSource(chart="gpu-operator"), "repository", "gpu-operator"),
    "a mirror of the operator": (
        ChartSource("http://mirror/charts", chart="gpu-operator"),
        "repository",
        "gpu-operator",
    ),
    "a scheme in capitals": (ChartSource("HTTPS://mirror/charts"), "repository", "nvidia-device-plugin"),
    "a registry in capitals": (ChartSource("OCI://reg/charts/plugin"), "oci", "oci://reg/charts/plugin"),
    "a registry": (ChartSource("oci://reg/charts/plugin"), "oci", "oci://reg/charts/plugin"),
    "the DRA driver's": (ChartSource(chart=DRA_DRIVER.chart), "oci", DRA_DRIVER.repository),
    "a registry that has another chart beside it": (
        ChartSource("oci://reg/charts/nvidia-device-plugin", chart=DRA_DRIVER.chart),
        "oci",
        "oci://reg/charts/dra-driver-nvidia-gpu",
    ),
    "an archive": (ChartSource("./plugin.tgz", ""), "local", "./plugin.tgz"),
}


@pytest.mark.parametrize("case", SOURCES)
def test_source_when_named_then_its_kind_and_what_helm_is_asked_for(case: str) -> None:
    source, kind, reference = SOURCES[case]
    assert (source.kind, source.reference) == (kind, reference)


def test_source_when_not_named_then_ours_and_pinned() -> None:
    assert ChartSource().address == DEVICE_PLUGIN.repository
    assert ChartSource(chart=GPU_OPERATOR.chart).address == GPU_OPERATOR.repository


def test_local_chart_when_it_is_a_directory_then_its_version_and_no_digest(tmp_path: Path) -> None:
    (tmp_path / "Chart.yaml").write_bytes(CHART_YAML)
    assert local_chart(tmp_path).version == "0.19.3"
    assert chart_digest(tmp_path) == ""


@pytest.mark.parametrize("name", ["nvidia-device-plugin/Chart.yaml", "./nvidia-device-plugin/Chart.yaml"])
def test_local_chart_when_it_is_an_archive_then_its_own_chart_yaml_counts(tmp_path: Path, name: str) -> None:
    nested = ("nvidia-device-plugin/charts/nfd/Chart.yaml", b"name: nfd\nversion: 9.9.9\n")
    chart = local_chart(pack(tmp_path / "c.tgz", nested, (name, CHART_YAML)))
    assert (chart.name, chart.version) == ("nvidia-device-plugin", "0.19.3")
    assert chart_digest(chart.path).startswith("sha256:")
    assert len(chart_digest(chart.path)) == len("sha256:") + 64


def no_chart(tmp_path: Path) -> dict[str, Path]:
    (tmp_path / "text").write_text("hello")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "Chart.yaml").write_text("a: [")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "Chart.yaml").write_text("name: node-feature-discovery")
    whole = pack(tmp_path / "whole.tgz", ("nvidia-device-plugin/Chart.yaml", CHART_YAML)).read_bytes()
    (tmp_path / "half.tgz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "spoiled.tgz").write_bytes(whole[:20] + bytes(20) + whole[40:])
    return {
        "half an archive": tmp_path / "half.tgz",
        "a spoiled archive": tmp_path / "spoiled.tgz",
        "a NUL in its name": tmp_path / "a\0b",
        "nothing there": tmp_path / "missing",
        "an empty directory": tmp_path,
        "a text": tmp_path / "text",
        "no YAML": tmp_path / "broken",
        "an archive of something else": pack(tmp_path / "x.tgz", ("readme", b"x")),
        "another chart": tmp_path / "other",
    }


NO_CHART = [
    *("half an archive", "a spoiled archive", "a NUL in its name", "nothing there", "an empty directory", "a text"),
    *("no YAML", "an archive of something else", "another chart"),
]


@pytest.mark.parametrize("case", NO_CHART)
def test_local_chart_when_it_is_none_of_ours_then_said_so(tmp_path: Path, case: str) -> None:
    path = no_chart(tmp_path)[case]
    with pytest.raises(HelmError) as caught:
        local_chart(path)
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code, diagnostic.where.source) == ("chart-not-found", str(path))


def test_local_chart_when_it_is_our_other_one_then_only_refused_where_the_first_is_needed(tmp_path: Path) -> None:
    (tmp_path / "Chart.yaml").write_text("name: gpu-operator\nversion: v26.7.0\n")
    assert local_chart(tmp_path).version == "v26.7.0"
    assert local_chart(tmp_path, GPU_OPERATOR.chart).name == GPU_OPERATOR.chart
    with pytest.raises(HelmError, match='the chart is "gpu-operator"'):
        local_chart(tmp_path, DEVICE_PLUGIN.chart)


def test_archive_when_the_pull_left_none_then_said_so(tmp_path: Path) -> None:
    with pytest.raises(HelmError, match="wrote no archive"):
        archive_in(tmp_path, ChartSource())
    (tmp_path / "a.tgz").touch()
    assert archive_in(tmp_path, ChartSource()).name == "a.tgz"


@pytest.mark.parametrize(
    ("location", "shown", "loopback"),
    [
        ("https://ann:s3cret@charts.example/stable", "https://***@charts.example/stable", False),
        ("oci://127.0.0.1:5000/team/nvidia-device-plugin", "oci://127.0.0.1:5000/team/nvidia-device-plugin", True),
        ("oci://localhost.example/team/plugin", "oci://localhost.example/team/plugin", False),
        ("HTTP://ann:s3cret@127.0.0.1/stable", "http://***@127.0.0.1/stable", True),
        ("./a@b.tgz", "./a@b.tgz", False),
    ],
)
def test_source_when_shown_then_without_a_password_and_known_to_be_here_or_not(
    location: str, shown: str, *, loopback: bool
) -> None:
    source = ChartSource(location)
    assert (source.shown, source.on_loopback) == (shown, loopback)


def test_local_chart_when_its_description_is_larger_than_helm_reads_then_it_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = CHART_YAML + b"#" * (5 * 1024 * 1024)
    for found in (pack(tmp_path / "a.tgz", ("plugin/Chart.yaml", large)), tmp_path):
        (tmp_path / "Chart.yaml").write_bytes(large)
        with pytest.raises(HelmError, match="no Helm chart found") as caught:
            local_chart(found)
        assert "exceeds Helm's limit" in caught.value.diagnostics[0].why
    monkeypatch.setattr("gpukube.cluster.helm.chart._MOST_IN_ALL", 10_000)
    beside = pack(tmp_path / "b.tgz", ("plugin/templates/x", b"#" * 10_001), ("plugin/Chart.yaml", CHART_YAML))
    with pytest.raises(HelmError, match="no Helm chart found") as caught:
        local_chart(beside)
    assert "exceeds Helm's limit" in caught.value.diagnostics[0].why
