"""A chart repository and an OCI registry on loopback, as small as the two Helms allow, with passwords where wanted.

The registry speaks the read half of the OCI distribution specification (end-1 to end-3): manifests by tag or digest,
and blobs.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import yaml
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.cncf.helm.config.v1+json"
LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
USER, PASSWORD = "ann", "s3cret"


@dataclass
class ChartServer:
    """Serves one chart both ways; its content may be replaced under the same version.

    Attributes:
        password: Whether it asks for one.
        asked: Paths that were asked for and answered.
    """

    name: str
    version: str
    archive: bytes
    password: bool = False
    asked: list[str] = field(default_factory=list)

    def app(self) -> Starlette:
        routes = [
            Route("/charts/index.yaml", self._index),
            Route("/charts/{file}.tgz", self._archive),
            Route("/v2/", self._root),
            Route("/v2/{path:path}", self._registry, methods=["GET", "HEAD"]),
        ]
        return Starlette(routes=routes)

    def _refused(self, request: Request) -> Response | None:
        given = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if self.password and request.headers.get("authorization") != f"Basic {given}":
            return PlainTextResponse("who are you", 401, {"WWW-Authenticate": 'Basic realm="charts"'})
        self.asked.append(request.url.path)
        return None

    async def _index(self, request: Request) -> Response:
        entry = {
            "apiVersion": "v2",
            "name": self.name,
            "version": self.version,
            "digest": hashlib.sha256(self.archive).hexdigest(),
            "urls": [f"{self.name}-{self.version}.tgz"],
        }
        index = {"apiVersion": "v1", "entries": {self.name: [entry]}}
        return self._refused(request) or PlainTextResponse(yaml.safe_dump(index))

    async def _archive(self, request: Request) -> Response:
        return self._refused(request) or Response(self.archive, media_type="application/gzip")

    async def _root(self, request: Request) -> Response:
        return self._refused(request) or PlainTextResponse("{}")

    async def _registry(self, request: Request) -> Response:
        if refused := self._refused(request):
            return refused
        path = request.path_params["path"]
        if "/tags/list" in path:
            return PlainTextResponse(json.dumps({"name": path, "tags": [self.version]}))
        config = json.dumps({"name": self.name, "version": self.version, "apiVersion": "v2"}).encode()
        blobs = {_digest(content): (kind, content) for kind, content in ((CONFIG, config), (LAYER, self.archive))}
        described = [{"mediaType": kind, "digest": key, "size": len(body)} for key, (kind, body) in blobs.items()]
        manifest = json.dumps(
            {"schemaVersion": 2, "mediaType": MANIFEST, "config": described[0], "layers": described[1:]}
        ).encode()
        wanted = path.rsplit("/", 1)[-1]
        if wanted in (self.version, _digest(manifest)):
            return _content(MANIFEST, manifest)
        return _content(*blobs[wanted]) if wanted in blobs else PlainTextResponse("{}", 404)


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _content(kind: str, body: bytes) -> Response:
    return Response(body, media_type=kind, headers={"Docker-Content-Digest": _digest(body)})
