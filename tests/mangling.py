"""A proxy in front of the sandbox that mangles answers, by a seed: of the three clouds and of Kubernetes.

In scope: what is done to an answer, and the server. Out of scope: what is asked, and what must come of it.

Values get another type, members are dropped or added, words that nobody knows stand where a known one stood, a proxy's
login page comes with 200, bodies end early. Which answer, and what is done to it, depends on the seed alone and on the
number of the answer; threads may ask in another order, so a seed names a run, not always the very same one.
"""

from __future__ import annotations

import http.client
import json
import random
import re
import ssl
import threading
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpukube_sandbox.tls import TlsFiles

Tree: TypeAlias = "dict[str, Tree] | list[Tree] | str | int | float | bool | None"

PAGE: Final = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body><form action=/login></form></body></html>"
ODD: Final[tuple[Tree, ...]] = (None, True, 0, -1, 1e300, "", "SOMETHING_NEW", [], {}, [None], {"a": []}, "x" * 300)
_NOT_PASSED: Final = {"connection", "accept-encoding"}
_DROPPED: Final = {"transfer-encoding", "content-length", "connection", "keep-alive", "content-encoding"}
_LONGEST_S: Final = 60.0


class Mangler:
    """What is done to answers.

    Attributes:
        share: Of the answers that are mangled.
        mangled: How many were, since the last seed.
    """

    def __init__(self) -> None:
        self.share = 0.0
        self.mangled = 0
        self._dice = random.Random(0)  # noqa: S311 - repeatable, which is the point
        self._lock = threading.Lock()

    def begin(self, seed: int, share: float) -> None:
        """Mangle from now on as this seed says."""
        with self._lock:
            self._dice = random.Random(seed)  # noqa: S311 - as above
            self.share, self.mangled = share, 0

    def mangle(self, body: bytes) -> tuple[bytes, str]:
        """Change an answer, or leave it; gives its body and its type where that is another one."""
        with self._lock:
            if not body or self._dice.random() >= self.share:
                return body, ""
            self.mangled += 1
            kind = self._dice.random()
            if kind < 0.1:
                return PAGE, "text/html"
            if kind < 0.2:
                return body[: self._dice.randrange(len(body))], ""
            try:
                tree = json.loads(body)
            except ValueError:
                return self._mangle_markup(body), ""
            for _ in range(self._dice.choice((1, 1, 2, 5))):
                tree = self._mangle_tree(tree)
            return json.dumps(tree).encode(), ""

    def _mangle_markup(self, body: bytes) -> bytes:
        """Drop an element, or write something else into it."""
        elements = list(re.finditer(rb"<(\w+)>([^<]*)</\1>", body))
        if not elements:
            return PAGE
        found = self._dice.choice(elements)
        new = self._dice.choice((b"", b"<%s>SOMETHING_NEW</%s>" % (found[1], found[1]), b"<%s/>" % found[1]))
        return body[: found.start()] + new + body[found.end() :]

    def _mangle_tree(self, tree: Tree) -> Tree:
        holders: list[Any] = [node for node in _nodes(tree) if isinstance(node, dict | list) and node]
        if not holders:
            return self._dice.choice(ODD)
        holder = self._dice.choice(holders)
        place = self._dice.choice(list(holder)) if isinstance(holder, dict) else self._dice.randrange(len(holder))
        kind = self._dice.random()
        if kind < 0.3:
            del holder[place]
        elif kind < 0.5 and isinstance(holder[place], str):
            holder[place] = "SOMETHING_NEW"
        elif kind < 0.6 and isinstance(holder, dict):
            holder["somethingNew"] = self._dice.choice(ODD)
        else:
            holder[place] = self._dice.choice(ODD)
        return tree


def _nodes(tree: Tree) -> list[Tree]:
    below = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return [tree, *(node for part in below for node in _nodes(part))]


@contextmanager
def mangling(mangler: Mangler, target: str, *, ca: Path | None = None, tls: TlsFiles | None = None) -> Iterator[str]:
    """Serve a proxy in front of an address; gives its own."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.mangler, server.target = mangler, target
    server.trust = ssl.create_default_context(cafile=str(ca)) if ca else None
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls.certificate, tls.key)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(_LONGEST_S)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    mangler: Mangler
    target: str
    trust: ssl.SSLContext | None

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients hang up as they like."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def handle_any(self) -> None:
        """Pass a request on, and its answer back, mangled or not."""
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length) if length else None
        address = urlsplit(self.server.target)
        host, port = str(address.hostname), address.port
        there: http.client.HTTPConnection
        if address.scheme == "https":
            there = http.client.HTTPSConnection(host, port, timeout=_LONGEST_S, context=self.server.trust)
        else:
            there = http.client.HTTPConnection(host, port, timeout=_LONGEST_S)
        passed = {key: text for key, text in self.headers.items() if key.lower() not in _NOT_PASSED}
        with closing(there):
            there.request(self.command, self.path, body, passed)
            answer = there.getresponse()
            content, kind = self.server.mangler.mangle(answer.read())
        self.send_response_only(200 if kind else answer.status)
        for key, value in answer.getheaders():
            if key.lower() not in _DROPPED and not (kind and key.lower() == "content-type"):
                self.send_header(key, value)
        if kind:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
        self.wfile.flush()

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = handle_any  # noqa: N815 - as the library calls them

    def log_message(self, *_: object) -> None:
        """Say nothing."""
