"""A Helm repository on loopback with the stand-in charts.

In scope: packing the chart sources, the index, and the routes. Out of scope: charts (`gpukube_sandbox/charts`).

The archives have the same bytes on every run and machine (stored, not compressed, because zlib builds differ), so a
recorded digest stays valid.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import io
import json
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

    from gpukube_sandbox.kube.store.objects import JsonObject

CHART = "nvidia-device-plugin"
VERSIONS = ("0.20.0", "0.19.3", "0.17.4", "0.15.0")
"""Chart versions, newest first. Older ones exist to upgrade from; each includes its own discovery chart version."""
OPERATOR = "gpu-operator"
KUBERAY = "kuberay-operator"
EFA = "aws-efa-k8s-device-plugin"
DRA = "dra-driver-nvidia-gpu"

_CHARTS: dict[str, tuple[str, ...]] = {
    CHART: VERSIONS,
    OPERATOR: ("v26.7.0",),
    KUBERAY: ("1.7.0",),
    EFA: ("v0.5.30",),
    DRA: ("0.4.1",),
}
_BORROWED = "charts/node-feature-discovery"
"""Subchart of the plugin's chart that the operator's chart includes as well."""
_NFD = {"0.19.3": "0.17.3", "0.17.4": "0.15.3", "0.15.0": "0.15.3"}
"""Plugin chart version -> Node Feature Discovery version in it (NVIDIA/k8s-device-plugin, Chart.yaml)."""
_CREATED = "2026-08-19T00:00:00Z"


def archive_name(version: str, chart: str = CHART) -> str:
    """Return the file name of a version's archive."""
    return f"{chart}-{version}.tgz"


def _files(root: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for item in sorted(root.iterdir(), key=lambda entry: entry.name):
        below = f"{path}/{item.name}"
        if item.is_dir():
            yield from _files(item, below)
        else:
            yield below, item.read_bytes()


def _source(chart: str) -> Traversable:
    return resources.files("gpukube_sandbox.charts") / chart


def _chart_files(chart: str) -> Iterator[tuple[str, bytes]]:
    yield from _files(_source(chart), chart)
    if chart == OPERATOR:
        yield from _files(_source(CHART) / _BORROWED, f"{chart}/{_BORROWED}")
    if chart == KUBERAY:
        from gpukube_sandbox.kube.kuberay.definitions import definitions  # noqa: PLC0415 -- takes 0.2 s, needed by this chart only

        for definition in definitions():
            yield f"{chart}/crds/{definition['metadata']['name']}.yaml", json.dumps(definition).encode()


def _with_version(content: bytes, chart: str, version: str) -> bytes:
    """Set the version in the Chart.yaml of a chart, or of the discovery in it."""
    newest = _CHARTS[chart][0]
    if version == newest:
        return content
    for now, then in ((f'ersion: "{newest}"', f'ersion: "{version}"'), ('"0.19.0"', f'"{_NFD[version]}"')):
        content = content.replace(now.encode(), then.encode())
    return content.replace(b"v0.19.0", f"v{_NFD[version]}".encode())


@functools.cache
def chart_archive(version: str, chart: str = CHART) -> bytes:
    """Pack a version of a chart.

    Raises:
        LookupError: The repository does not have this version.
    """
    if version not in _CHARTS[chart]:
        message = f"no version {version} of {chart}; there are {', '.join(_CHARTS[chart])}"
        raise LookupError(message)
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=0, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for path, content in _chart_files(chart):
            body = _with_version(content, chart, version) if path.endswith("/Chart.yaml") else content
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(body), 0o644
            archive.addfile(entry, io.BytesIO(body))
    return packed.getvalue()


def repository_index() -> JsonObject:
    """Build the repository's index; chart addresses are relative to it."""
    entries = {chart: [_entry(chart, version) for version in versions] for chart, versions in _CHARTS.items()}
    return {"apiVersion": "v1", "entries": entries, "generated": _CREATED}


def _entry(chart: str, version: str) -> JsonObject:
    described: JsonObject = yaml.safe_load((_source(chart) / "Chart.yaml").read_bytes())
    # The definitions contain Kubernetes' types, which change with the library they come from, so no digest stays valid.
    known = {} if chart == KUBERAY else {"digest": hashlib.sha256(chart_archive(version, chart)).hexdigest()}
    return {
        **described,
        "version": version,
        **({} if chart == EFA else {"appVersion": version}),
        "created": _CREATED,
        **known,
        "urls": [archive_name(version, chart)],
    }


async def _index(_request: Request) -> Response:
    return PlainTextResponse(_written_index(), media_type="application/yaml")


@functools.cache
def _written_index() -> str:
    return yaml.safe_dump(repository_index())


async def _archive(request: Request) -> Response:
    name = request.path_params["name"]
    for chart, versions in _CHARTS.items():
        for version in versions:
            if archive_name(version, chart) == name:
                return Response(chart_archive(version, chart), media_type="application/gzip")
    return PlainTextResponse("not found", 404)


def repository_routes(prefix: str = "/charts") -> Mount:
    """Return the repository's routes; its address for `helm repo add` is <server><prefix>."""
    return Mount(prefix, routes=[Route("/index.yaml", _index), Route("/{name}", _archive)])
