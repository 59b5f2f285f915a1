"""A headless Chromium, driven over its pipe (Chrome DevTools Protocol): for tests of pages, and for screenshots."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import signal
import tempfile
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
_FLAGS: Final = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
    *("--hide-scrollbars", "--remote-debugging-pipe"),
)
_FREE: Final = 10
"""Descriptors from which the pipe's ends are taken: Chromium expects them as 3 and 4."""


def chromium() -> str | None:
    """Return the path of Chromium; None without one."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


class Browser:
    """A browser with one page.

    Attributes:
        events: What the page told since it was opened: name and parameters.
    """

    def __init__(self) -> None:
        self._profile = tempfile.mkdtemp(prefix="gpukube-browser-")
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _FREE) for end in (theirs_in, theirs_out)]
        binary = chromium() or "chromium"
        devnull = os.open(os.devnull, os.O_RDWR)
        self._pid = os.posix_spawn(
            binary,
            [binary, *_FLAGS, f"--user-data-dir={self._profile}", "about:blank"],
            {**os.environ, "HOME": self._profile},
            file_actions=[
                *((os.POSIX_SPAWN_DUP2, devnull, stream) for stream in (0, 1, 2)),
                *((os.POSIX_SPAWN_DUP2, end, place) for place, end in enumerate(ends, 3)),
            ],
            setpgroup=0,
        )
        for end in (theirs_in, theirs_out, devnull, *ends):
            os.close(end)
        self._in, self._out = ours_in, ours_out
        self._rest, self._number, self._session = b"", 0, ""
        self.events: list[tuple[str, dict[str, Any]]] = []

    def __enter__(self) -> Self:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._out)
        os.close(self._in)
        os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """Call a method and wait for its result."""
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        while (answer := self._next()).get("id") != self._number:
            self.events.append((answer.get("method", ""), answer.get("params", {})))
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not (more := os.read(self._in, 1 << 20)):
                raise EOFError("the browser has ended")
            self._rest += more
        first, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(first)
        return answer

    def show(self, file: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Open a file and wait until it is loaded."""
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=file.resolve().as_uri())
        while not any(name == "Page.loadEventFired" for name, _ in self.events):
            answer = self._next()
            self.events.append((answer.get("method", ""), answer.get("params", {})))

    def run(self, script: str) -> Any:  # noqa: ANN401 - whatever the script returns
        """Run a script in the page and return its value as JSON would have it."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise RuntimeError(json.dumps(done["exceptionDetails"])[:2000])
        return done["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key: Tab, Enter."""
        text = {"text": "\r"} if key == "Enter" else {}
        code = {"Tab": 9, "Enter": 13}[key]
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def picture(self, *, whole: bool = False) -> bytes:
        """Return a screenshot as PNG: of the window, or of the whole page."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(shot["data"])

    def paper(self) -> bytes:
        """Print the page; return a PDF."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=False)["data"])
