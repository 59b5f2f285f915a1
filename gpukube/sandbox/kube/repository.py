"""A Helm repository on loopback with the stand-in charts.

Lives here: packing the chart sources, the index, and the routes. Must not live here: charts (`gpukube/sandbox/charts`).

The archives are the same bytes on every run and machine (stored, not compressed: zlib builds differ), so a recorded
digest stays true.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import io
import tarfile
from importlib import resources
from typing import TYPE_CHECKING

import yaml
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

    from starlette.requests import Request

    from gpukube.sandbox.kube.objects import JsonObject

__all__ = ["CHART", "VERSIONS", "archive_name", "chart_archive", "repository_index", "repository_routes"]

CHART = "nvidia-device-plugin"
VERSIONS = ("0.20.0", "0.19.3")
"""Newest first. The older one differs in its version only; it is there to upgrade from."""

_CREATED = "2026-08-19T00:00:00Z"


def archive_name(version: str) -> str:
    """Name the archive file of a version."""
    return f"{CHART}-{version}.tgz"


def _files(root: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for item in sorted(root.iterdir(), key=lambda entry: entry.name):
        below = f"{path}/{item.name}"
        if item.is_dir():
            yield from _files(item, below)
        else:
            yield below, item.read_bytes()


def _source() -> Traversable:
    return resources.files("gpukube.sandbox.charts") / CHART


def _with_version(content: bytes, version: str) -> bytes:
    newest = VERSIONS[0]
    return content.replace(f'ersion: "{newest}"'.encode(), f'ersion: "{version}"'.encode())


@functools.cache
def chart_archive(version: str) -> bytes:
    """Pack a version of the chart.

    Raises:
        LookupError: The repository does not have this version.
    """
    if version not in VERSIONS:
        message = f"no version {version} of {CHART}; there are {', '.join(VERSIONS)}"
        raise LookupError(message)
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=0, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for path, content in _files(_source(), CHART):
            body = _with_version(content, version) if path == f"{CHART}/Chart.yaml" else content
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(body), 0o644
            archive.addfile(entry, io.BytesIO(body))
    return packed.getvalue()


def repository_index() -> JsonObject:
    """Build the repository's index; chart addresses are relative to it."""
    described = yaml.safe_load((_source() / "Chart.yaml").read_bytes())
    entries = [
        {
            **described,
            "version": version,
            "appVersion": version,
            "created": _CREATED,
            "digest": hashlib.sha256(chart_archive(version)).hexdigest(),
            "urls": [archive_name(version)],
        }
        for version in VERSIONS
    ]
    return {"apiVersion": "v1", "entries": {CHART: entries}, "generated": _CREATED}


async def _index(_request: Request) -> Response:
    return PlainTextResponse(yaml.safe_dump(repository_index()), media_type="application/yaml")


async def _archive(request: Request) -> Response:
    name = request.path_params["name"]
    version = next((item for item in VERSIONS if archive_name(item) == name), None)
    if version is None:
        return PlainTextResponse("not found", 404)
    return Response(chart_archive(version), media_type="application/gzip")


def repository_routes(prefix: str = "/charts") -> Mount:
    """Give the routes of the repository; add it in Helm as <server><prefix>."""
    return Mount(prefix, routes=[Route("/index.yaml", _index), Route("/{name}", _archive)])
