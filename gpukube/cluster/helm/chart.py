"""Where the chart comes from, and what a fetched one is.

In scope: `ChartSource`, version and digest of a chart on disk. Out of scope: fetching (the engines do that).
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

from gpukube.cluster.names import DEVICE_PLUGIN, RELEASE_KINDS
from gpukube.core.jsontree import Tree, text, tree
from gpukube.core.yamltext import parse_documents, parse_yaml
from gpukube.errors import HelmError
from gpukube.masking import shown_address

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO


class TooLarge(ValueError):
    """A chart is larger than Helm reads."""


_MOST_OF_ONE: Final = 5 * 1024 * 1024
_MOST_IN_ALL: Final = 100 * 1024 * 1024
"""What Helm reads of a file and of an archive (helm.sh/helm v4.2.3 pkg/chart/loader/archive: MaxDecompressedFileSize,
MaxDecompressedChartSize): a few packed megabytes can be gigabytes."""
_WANTED: Final = re.compile(r"Chart\.yaml|(charts/[^/]+/)*crds/[^/]+\.ya?ml")
_NFD: Final = "charts/node-feature-discovery"
_PACKED: Final = re.compile(r"charts/[^/]+\.tgz")


@dataclass(frozen=True, slots=True)
class ChartSource:
    """Where the chart comes from.

    Attributes:
        location: Repository URL (it may serve both charts), "oci://..." of a chart, or a local directory or archive;
            "" for the repository that NVIDIA publishes the chart in.
        version: To pull; for a local chart "" (it is what it is).
        chart: Name of the chart.
    """

    location: str = ""
    version: str = ""
    chart: str = DEVICE_PLUGIN.chart

    @property
    def kind(self) -> Literal["repository", "oci", "local"]:
        """How it is had."""
        found = re.match(r"(oci|https?)://", self.address, re.IGNORECASE)  # RFC 3986: a scheme has no case
        return ("oci" if found[1].lower() == "oci" else "repository") if found else "local"

    @property
    def address(self) -> str:
        """The location, its scheme as Helm takes it; NVIDIA's where none is given."""
        location = re.sub(r"^[A-Za-z]+://", lambda found: found[0].lower(), self.location)
        return location or next(kind.repository for kind in RELEASE_KINDS if kind.chart == self.chart)

    @property
    def shown(self) -> str:
        """The address for messages: without the secrets that may stand in it."""
        return self.address if self.kind == "local" else shown_address(self.address)

    @property
    def has_secret(self) -> bool:
        """Whether the address has a part that nobody else may see."""
        return self.shown != self.address

    @property
    def show_words(self) -> str:
        """What helm show is asked for, as words of a command."""
        if self.kind == "local":
            return self.location
        repository = f" --repo {self.shown}" if self.kind == "repository" else ""
        return f"{self.reference}{repository} --version {self.version}"

    @property
    def on_loopback(self) -> bool:
        """Whether it is served by this machine: there, as with other clients of registries, without TLS."""
        return urlsplit(self.address).hostname in ("127.0.0.1", "::1", "localhost")

    @property
    def reference(self) -> str:
        """What helm pull is asked for."""
        if self.kind == "repository":
            return self.chart
        return self.address if self.kind == "oci" else self.location


@dataclass(frozen=True, slots=True)
class LocalChart:
    """A chart on disk and what its Chart.yaml says."""

    path: Path
    name: str
    version: str


def local_chart(path: Path, chart: str = "") -> LocalChart:
    """Look at a chart directory or archive.

    Args:
        path: The directory or archive.
        chart: The chart it must be; "" for either of ours.

    Raises:
        HelmError: There is no chart, or it is another one.
    """
    try:
        metadata: object = parse_yaml(_chart_yaml(path))
    # EOFError and zlib.error: an archive that was cut off; ValueError: a path with a NUL, text that is not UTF-8.
    except (OSError, EOFError, ValueError, KeyError, zlib.error, tarfile.TarError, yaml.YAMLError) as error:
        raise HelmError(
            "no Helm chart found",
            where=str(path),
            why=_reason(error),
            fix="use a directory with a Chart.yaml, or an archive of helm pull or helm package",
            code="chart-not-found",
        ) from error
    name = text(metadata, "name")
    desired = [chart] if chart else [kind.chart for kind in RELEASE_KINDS]
    if name not in desired:
        raise HelmError(
            f'this is the chart "{name}"',
            where=str(path),
            fix=f"use the chart {' or '.join(desired)}, or a repository with both",
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
    """Read the descriptions and types of a chart: names below its directory, and their contents.

    Raises:
        TooLarge: A file, or the whole archive, is larger than Helm reads.
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
                raise TooLarge("unpacked, it is larger than Helm reads")
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
        raise TooLarge("a file in it is larger than Helm reads")
    return content


def chart_types(path: Path, *, nfd: bool) -> tuple[Tree, ...]:
    """Read the types (CustomResourceDefinitions) that a chart brings in `crds`, its dependency's too.

    Args:
        path: The directory or archive.
        nfd: Whether the node-feature-discovery in it is installed.

    Raises:
        HelmError: They cannot be read.
    """
    try:
        files = [content for name, content in _files(path) if "crds/" in name and (nfd or _NFD not in name)]
        documents = [document for content in files for document in parse_documents(content.decode())]
    except (OSError, EOFError, ValueError, zlib.error, tarfile.TarError, yaml.YAMLError) as error:
        raise HelmError(
            "the types in the chart's crds cannot be read",
            where=str(path),
            why=_reason(error),
            fix="use an archive of helm pull or helm package",
            code="chart-not-found",
        ) from error
    return tuple(tree(item) for item in documents if text(item, "kind") == "CustomResourceDefinition")


def _reason(error: Exception) -> str:
    """Say in a few words what is wrong with a chart's files."""
    return str(error) if isinstance(error, TooLarge) else type(error).__name__


def chart_digest(path: Path) -> str:
    """Return the digest of an archive, "sha256:..."; "" for a directory."""
    if path.is_dir():
        return ""
    with path.open("rb") as archive:
        return f"sha256:{file_digest(archive, 'sha256').hexdigest()}"


def archive_in(directory: Path, source: ChartSource) -> Path:
    """Find what a pull left in a directory."""
    found = sorted(directory.glob("*.tgz"))
    if not found:
        raise HelmError(
            "helm pull wrote no archive",
            where=source.shown,
            fix="run helm pull by hand, and pass the archive with --chart",
            code="chart-not-found",
        )
    return found[0]
