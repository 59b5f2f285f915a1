"""The charts that the tests install: the sandbox's stand-ins, or NVIDIA's own where GPUKUBE_REAL_CHARTS says.

A directory holds archives under their usual names (nvidia-device-plugin-0.20.0.tgz, gpu-operator-v26.7.0.tgz); what is
not there is a stand-in. NVIDIA publishes them on the branches gh-pages of NVIDIA/k8s-device-plugin and
NVIDIA/gpu-operator.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

from gpukube_sandbox.kube.repository import CHART, DRA, OPERATOR, VERSIONS, archive_name, chart_archive

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

SWITCH = "GPUKUBE_REAL_CHARTS"
_DIRECTORY = Path(os.environ[SWITCH]) if os.environ.get(SWITCH) else None
_ALL = {CHART: VERSIONS, OPERATOR: ("v26.7.0",), DRA: ("0.4.1",)}


def missing_charts(*names: str) -> list[str]:
    """Return which archives the directory lacks that the switch names; all of them where it names none."""
    return [name for name in names if _DIRECTORY is None or not (_DIRECTORY / name).is_file()]


def real_archive(chart: str, version: str) -> bytes:
    """Read a real archive, which `missing_charts` does not name."""
    assert _DIRECTORY is not None
    return (_DIRECTORY / archive_name(version, chart)).read_bytes()


def chart_routes(prefix: str) -> Mount:
    """Serve a repository of real charts and stand-ins."""
    archives = {
        archive_name(version, chart): _archive(chart, version)
        for chart, versions in _ALL.items()
        for version in versions
    }
    archives |= {path.name: path.read_bytes() for path in sorted(_DIRECTORY.glob("*.tgz"))} if _DIRECTORY else {}
    index = PlainTextResponse(yaml.safe_dump(_index(archives)), media_type="application/yaml")

    async def send(request: Request) -> Response:
        found = archives.get(request.path_params["name"])
        return Response(found, media_type="application/gzip") if found else PlainTextResponse("not found", 404)

    return Mount(prefix, routes=[Route("/index.yaml", lambda _request: index), Route("/{name}", send)])


def _archive(chart: str, version: str) -> bytes:
    real = _DIRECTORY / archive_name(version, chart) if _DIRECTORY else None
    return real.read_bytes() if real and real.exists() else chart_archive(version, chart)


def _index(archives: Mapping[str, bytes]) -> dict[str, object]:
    entries: dict[str, list[object]] = {}
    for name, archive in archives.items():
        described = _described(archive)
        entry = {**described, "urls": [name], "digest": hashlib.sha256(archive).hexdigest()}
        entries.setdefault(str(described["name"]), []).append(entry)
    return {"apiVersion": "v1", "entries": entries}


def _described(archive: bytes) -> dict[str, object]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        top = next(name for name in packed.getnames() if name.count("/") == 1 and name.endswith("/Chart.yaml"))
        found = packed.extractfile(top)
        assert found is not None
        described = yaml.safe_load(found.read())
    assert isinstance(described, dict)
    return described
