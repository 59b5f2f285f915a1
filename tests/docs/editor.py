"""An editor's side of yaml-language-server, over stdio.

In scope: the protocol, as far as opening a text, completing and hovering need it. Out of scope: assertions.
"""

from __future__ import annotations

import json
import select
import subprocess
from typing import TYPE_CHECKING, Any, Self

from sandbox_tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

Message = dict[str, Any]  # LSP; each test looks at a few keys
SETTINGS = {"completion": True, "hover": True, "validate": True, "schemaStore": {"enable": False}}


class Editor:
    """Edits texts in a directory with the server looking on.

    Args:
        server: Path of the yaml-language-server command.
        directory: Where the texts would be; schemas are found from there.
    """

    def __init__(self, server: str, directory: Path) -> None:
        self._directory = directory
        self._server = subprocess.Popen([server, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self._unread = b""
        self._count = 0
        self._found: dict[str, list[Message]] = {}
        capabilities = {
            "textDocument": {"completion": {"completionItem": {"snippetSupport": True}}, "publishDiagnostics": {}},
            "workspace": {"configuration": True},
        }
        self._ask("initialize", {"processId": None, "rootUri": directory.as_uri(), "capabilities": capabilities})
        self._send({"method": "initialized", "params": {}})

    def __enter__(self) -> Self:
        """Hand out the editor."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the server."""
        self._server.kill()
        self._server.communicate()

    def problems(self, text: str) -> list[tuple[int, str]]:
        """Open a text and give the lines that are marked with what is said of them, in order."""
        uri = self._open(text)
        while uri not in self._found:
            self._take(self._read())
        return sorted((found["range"]["start"]["line"] + 1, found["message"]) for found in self._found[uri])

    def complete(self, text: str) -> list[str]:
        """Return what is offered at the mark | of a text."""
        found = self._at_mark("textDocument/completion", text)
        return [item["label"] for item in found["items"]]

    def hover(self, text: str) -> str:
        """Return what is shown of the word at the mark |."""
        found = self._at_mark("textDocument/hover", text)
        return str(found["contents"]["value"])

    def _at_mark(self, method: str, text: str) -> Message:
        before, _, after = text.partition("|")
        uri = self._open(before + after)
        position = {"line": before.count("\n"), "character": len(before) - before.rfind("\n") - 1}
        return self._ask(method, {"textDocument": {"uri": uri}, "position": position})

    def _open(self, text: str) -> str:
        self._count += 1
        uri = (self._directory / f"spec{self._count}.yaml").as_uri()
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": text}
        self._send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        return uri

    def _ask(self, method: str, params: Message) -> Message:
        self._count += 1
        number = self._count
        self._send({"id": number, "method": method, "params": params})
        while True:
            message = self._read()
            if message.get("id") == number and "method" not in message:
                result: Message = message["result"]
                return result
            self._take(message)

    def _take(self, message: Message) -> None:
        """Keep what was found, answer what the server asks."""
        if message.get("method") == "textDocument/publishDiagnostics":
            self._found[message["params"]["uri"]] = message["params"]["diagnostics"]
        elif "id" in message and "method" in message:
            items = message.get("params", {}).get("items", [])
            answers = [SETTINGS if item.get("section") == "yaml" else {} for item in items]
            self._send({"id": message["id"], "result": answers if items else None})

    def _send(self, message: Message) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._server.stdin
        self._server.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    def _read(self) -> Message:
        head = self._until(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-l"))
        while len(self._unread) < length:
            self._more()
        body, self._unread = self._unread[:length], self._unread[length:]
        message: Message = json.loads(body)
        return message

    def _until(self, end: bytes) -> bytes:
        while end not in self._unread:
            self._more()
        head, _, self._unread = self._unread.partition(end)
        return head

    def _more(self) -> None:
        assert self._server.stdout
        ready, _, _ = select.select([self._server.stdout], [], [], PATIENCE_S)
        assert ready, f"the server said nothing for {PATIENCE_S:.0f} s"
        piece = self._server.stdout.read(65536)
        assert piece, "the server ended"
        self._unread += piece
