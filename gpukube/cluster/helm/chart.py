"""Chart sources, and charts on disk.

In scope: `ChartSource`, version and digest of a chart on disk. Out of scope: downloading (the engines do that).
"""

from __future__ import annotations

import re
import tarfile
import zlib
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urlsplit

import yaml

from gpukube.cluster.names import ALL_KINDS, DEVICE_PLUGIN
from gpukube.core.jsontree import Tree, text, tree
from gpukube.core.yamltext import parse_documents, parse_yaml
from gpukube.errors import HelmError
from gpukube.masking import shown_address

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO


class TooLarge(ValueError):
    """A chart exceeds Helm's size limits."""


_MOST_OF_ONE: Final = 5 * 1024 * 1024
_MOST_IN_ALL: Final = 100 * 1024 * 1024
"""Helm's limits for one file and for a decompressed archive (helm.sh/helm v4.2.3 pkg/chart/loader/archive:
MaxDecompressedFileSize, MaxDecompressedChartSize): a few compressed megabytes can expand to gigabytes."""
_WANTED: Final = re.compile(r"Chart\.yaml|(charts/[^/]+/)*crds/[^/]+\.ya?ml")
_NFD: Final = "charts/node-feature-discovery"
_PACKED: Final = re.compile(r"charts/[^/]+\.tgz")


@dataclass(frozen=True, slots=True)
class ChartSource:
    """Source of a chart.

    Attributes:
        location: Repository URL (it may serve all charts), "oci://..." of one of them, or a local directory or archive;
            "" for where the chart is published.
        version: Version to pull; "" for a local chart, which has its own.
        chart: Name of the chart.
    """

    location: str = ""
    version: str = ""
    chart: str = DEVICE_PLUGIN.chart

    @property
    def kind(self) -> Literal["repository", "oci", "local"]:
        """How the chart is obtained."""
        found = re.match(r"(oci|https?)://", self.address, re.IGNORECASE)  # RFC 3986: schemes are case-insensitive
        return ("oci" if found[1].lower() == "oci" else "repository") if found else "local"

    @property
    def address(self) -> str:
        """The location, its scheme as Helm accepts it; where the chart is published by default.

        In a registry, the charts of a run are beside each other: a reference to one of them leads to the others.
        """
        location = re.sub(r"^[A-Za-z]+://", lambda found: found[0].lower(), self.location)
        place, slash, name = location.rpartition("/")
        if location.startswith("oci://") and name in [kind.chart for kind in ALL_KINDS]:
            return f"{place}{slash}{self.chart}"
        return location or next(kind.repository for kind in ALL_KINDS if kind.chart == self.chart)

    @property
    def shown(self) -> str:
        """The address for messages, without any secrets it contains."""
        return self.address if self.kind == "local" else shown_address(self.address)

    @property
    def has_secret(self) -> bool:
        """Whether the address contains a secret."""
        return self.shown != self.address

    @property
    def show_words(self) -> str:
        """The arguments of helm show for this chart."""
        if self.kind == "local":
            return self.location
        repository = f" --repo {self.shown}" if self.kind == "repository" else ""
        return f"{self.reference}{repository} --version {self.version}"

    @property
    def on_loopback(self) -> bool:
        """Whether this machine serves it; if so, access is without TLS, as in other registry clients."""
        return urlsplit(self.address).hostname in ("127.0.0.1", "::1", "localhost")

    @property
    def reference(self) -> str:
        """The chart argument of helm pull."""
        if self.kind == "repository":
            return self.chart
        return self.address if self.kind == "oci" else self.location


@dataclass(frozen=True, slots=True)
class LocalChart:
    """A chart on disk, with name and version from its Chart.yaml."""

    path: Path
    name: str
    version: str


def local_chart(path: Path, chart: str = "") -> LocalChart:
    """Read a chart directory or archive.

    Args:
        path: The directory or archive.
        chart: Name that the chart must have; "" for any of gpukube's charts.

    Raises:
        HelmError: There is no chart, or it has another name.
    """
    try:
        metadata: object = parse_yaml(_chart_yaml(path))
    # EOFError and zlib.error: a truncated archive; ValueError: a path with a NUL, or text that is not UTF-8.
    except (OSError, EOFError, ValueError, KeyError, zlib.error, tarfile.TarError, yaml.YAMLError) as error:
        raise HelmError(
            "no Helm chart found",
            where=str(path),
            why=_reason(error),
            fix="use a directory with a Chart.yaml, or an archive from helm pull or helm package",
            code="chart-not-found",
        ) from error
    name = text(metadata, "name")
    desired = [chart] if chart else [kind.chart for kind in ALL_KINDS]
    if name not in desired:
        raise HelmError(
            f'the chart is "{name}"',
            where=str(path),
            fix=f"use the chart {' or '.join(desired)}, or a repository with all of them",
            code="chart-not-found",
        )
    return LocalChart(path, name, text(metadata, "version"))


def _chart_yaml(path: Path) -> bytes:
    if path.is_dir():
        return _bounded(path / "Chart.yaml")
    for name, content in _files(path):
        if name == "Chart.yaml":
            return content
    raise KeyError("Chart.yaml")


def _files(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the descriptions and CRDs of a chart: paths inside its directory, and contents.

    Raises:
        TooLarge: A file, or the whole archive, exceeds Helm's limits.
    """
    if path.is_dir():
        for file in sorted({*path.glob("crds/*"), *path.glob("charts/*"), *path.glob("charts/*/crds/*")}):
            name = file.relative_to(path).as_posix()
            if _WANTED.fullmatch(name) and file.is_file():
                yield name, _bounded(file)
            elif _PACKED.fullmatch(name) and file.is_file():
                yield from ((f"charts/{file.stem}/{inner}", content) for inner, content in _files(file))
        return
    total = 0
    with tarfile.open(path) as archive:
        for member in archive:
            total += member.size
            if total > _MOST_IN_ALL:
                raise TooLarge("decompressed, it exceeds Helm's limit")
            name = member.name.removeprefix("./").partition("/")[2]
            opened = archive.extractfile(member) if _WANTED.fullmatch(name) and member.isfile() else None
            if opened is not None:
                yield name, _bounded(opened)


def _bounded(file: Path | IO[bytes]) -> bytes:
    if isinstance(file, Path):
        with file.open("rb") as opened:
            return _bounded(opened)
    content = file.read(_MOST_OF_ONE + 1)
    if len(content) > _MOST_OF_ONE:
        raise TooLarge("a file in it exceeds Helm's limit")
    return content


def chart_types(path: Path, *, nfd: bool) -> tuple[Tree, ...]:
    """Read the CustomResourceDefinitions in a chart's `crds`, including its dependency's.

    Args:
        path: The directory or archive.
        nfd: Whether its node-feature-discovery is installed.

    Raises:
        HelmError: They cannot be read.
    """
    try:
        files = [content for name, content in _files(path) if "crds/" in name and (nfd or _NFD not in name)]
        documents = [document for content in files for document in parse_documents(content.decode())]
    except (OSError, EOFError, ValueError, zlib.error, tarfile.TarError, yaml.YAMLError) as error:
        raise HelmError(
            "the CustomResourceDefinitions in the chart's crds cannot be read",
            where=str(path),
            why=_reason(error),
            fix="use an archive from helm pull or helm package",
            code="chart-not-found",
        ) from error
    return tuple(tree(item) for item in documents if text(item, "kind") == "CustomResourceDefinition")


def _reason(error: Exception) -> str:
    """Return a short reason why a chart's files cannot be read."""
    return str(error) if isinstance(error, TooLarge) else type(error).__name__


def chart_digest(path: Path) -> str:
    """Return the digest of an archive, "sha256:..."; "" for a directory."""
    if path.is_dir():
        return ""
    with path.open("rb") as archive:
        return f"sha256:{file_digest(archive, 'sha256').hexdigest()}"


def archive_in(directory: Path, source: ChartSource) -> Path:
    """Return the archive that a pull left in a directory."""
    found = sorted(directory.glob("*.tgz"))
    if not found:
        raise HelmError(
            "helm pull wrote no archive",
            where=source.shown,
            fix="run helm pull yourself, and pass the archive with --chart",
            code="chart-not-found",
        )
    return found[0]
