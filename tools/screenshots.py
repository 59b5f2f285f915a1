"""Take the pictures of the documentation: `python -m tools.screenshots` writes docs/assets/*.png.

They show what users see: a sandbox with the pools of two examples, pods by kubectl, and the pages and the terminal of
gpukube, drawn by Chromium.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from tools.browser import Browser

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT: Final = Path(__file__).resolve().parents[1]
ASSETS: Final = ROOT / "docs" / "assets"
SPECS: Final = ("examples/three-clouds.yaml", "examples/aks-dra.yaml")
COLUMNS, ROWS = 100, 30
MOST_BYTES: Final = 300_000
PODS: Final = (
    ("arn:", "research", "llm-worker-0", 24),
    ("arn:", "serving", "ranker-0", 7),
    ("arn:", "serving", "ranker-1", 4),
    ("train", "vision", "segment-0", 14),
    ("gke_", "research", "sweep-0", 33),
    ("gke_", "research", "llm-worker-1", 56),
)
"""Start of the context, namespace, name, devices: the last one waits."""
CLAIMED: Final = "claims"
"""Context of the cluster whose pods claim GPUs."""
TERMINAL: Final = """<!DOCTYPE html><meta charset="utf-8"><style>body{margin:0;padding:14px 18px;background:#15181c;
color:#d7dce2;font:13px/1.4 ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace}
pre{margin:0;font:inherit}</style>"""


def main() -> int:
    """Take all pictures."""
    ASSETS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        environ = {**os.environ, "XDG_STATE_HOME": name, "XDG_CONFIG_HOME": name, "GPUKUBE_SANDBOX": "1"}
        try:
            _take(directory, environ)
        finally:
            _run("gpukube", "sandbox", "down", environ=environ)
    sizes = {file.name: file.stat().st_size for file in sorted(ASSETS.glob("*.png"))}
    print(sizes)
    return int(sum(sizes.values()) > MOST_BYTES)


def _take(directory: Path, environ: Mapping[str, str]) -> None:
    first, second = SPECS
    frames = _watched(("gpukube", "pool", "create", "-f", first), environ)
    _run("gpukube", "pool", "create", "-f", second, environ=environ)
    _add_pods(directory, environ)
    spec = directory / "pools.yaml"
    changed = (
        (ROOT / first).read_text().replace("profile: 1g.5gb", "profile: 2g.10gb").replace("count: 2}", "count: 4}")
    )
    spec.write_text(changed)
    pages = {
        "map": _run("gpukube", "pool", "map", "-f", first, "-f", second, "-o", "html", environ=environ),
        "plan": _run("gpukube", "pool", "plan", "-f", spec.name, "-o", "html", environ=environ, cwd=directory),
        "live": _terminal(max(frames, key=_phases)),
    }
    with Browser() as browser:
        for name, page in pages.items():
            file = directory / f"{name}.html"
            file.write_text(page)
            browser.show(file, width=960, height=600)
            browser.run(f"document.querySelectorAll('.cluster')[{int(name == 'plan')}]?.scrollIntoView()")
            if name == "live":
                browser.show(file, width=860, height=browser.run("document.querySelector('pre').offsetHeight + 28"))
            (ASSETS / f"{name}.png").write_bytes(browser.picture())


def _phases(frame: str) -> tuple[int, int]:
    """Return in how many phases the pools of a frame are, for frames of rows that are not wrapped."""
    rows = re.sub(r"\x1b\[[0-9;]*m", "", frame).splitlines()
    found = [re.match(r"train\S+ +(\w+) +\d+:\d\d ", row) for row in rows]
    phases = {row[1] for row in found if row}
    return (len(phases), len(rows)) if all(found) else (0, 0)


def _run(*command: str, environ: Mapping[str, str], cwd: Path = ROOT) -> str:
    done = subprocess.run(  # noqa: S603 - the commands above
        command, env=environ, cwd=cwd, capture_output=True, text=True, check=False
    )
    print(" ".join(command), done.returncode, done.stderr[-300:])
    return done.stdout


def _add_pods(directory: Path, environ: Mapping[str, str]) -> None:
    """Create pods that hold devices and one that waits, as users do."""
    exports = _run("gpukube", "sandbox", "env", environ=environ)
    variables = dict(re.findall(r"^export (\w+)=[\"']?(.*?)[\"']?$", exports, re.MULTILINE))
    cluster = {**environ, **variables}
    contexts = _run("kubectl", "config", "get-contexts", "-o", "name", environ=cluster).split()
    for start, namespace, name, devices in PODS:
        container = {"name": "main", "image": "i", "resources": {"limits": {"nvidia.com/gpu": devices}}}
        pod = {"tolerations": [{"operator": "Exists"}], "containers": [container]}
        context = next(one for one in contexts if one.startswith(start))
        _apply(context, namespace, [_thing("v1", "Pod", name, namespace, pod)], directory, cluster)
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    claim = _thing("resource.k8s.io/v1", "ResourceClaim", "finetune", "research", {"devices": {"requests": [request]}})
    pod = {
        "tolerations": [{"operator": "Exists"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "finetune"}],
        "containers": [{"name": "main", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}],
    }
    things = [claim, _thing("v1", "Pod", "finetune-0", "research", pod)]
    _apply(CLAIMED, "research", things, directory, cluster)


def _thing(version: str, kind: str, name: str, namespace: str, spec: object) -> dict[str, object]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def _apply(
    context: str, namespace: str, things: list[dict[str, object]], directory: Path, environ: Mapping[str, str]
) -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    file = directory / "pods.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [space, *things]}))
    _run("kubectl", "--context", context, "apply", "-f", str(file), environ=environ)


def _watched(command: tuple[str, ...], environ: Mapping[str, str]) -> list[str]:
    """Run a command on a terminal and return what it drew, frame by frame."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    variables = {**environ, "TERM": "xterm-256color"}
    process = subprocess.Popen(  # noqa: S603 - as above
        command, env=variables, cwd=ROOT, stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    seen = b""
    while True:
        try:
            more = os.read(master, 65536)
        except OSError:  # the terminal's last user has ended
            break
        if not more:
            break
        seen += more
    process.wait()
    os.close(master)
    # Each frame of rich's live display begins by erasing the lines of the one before.
    frames = re.split(r"(?:\r?\x1b\[1?A?\x1b?\[?2K)+|(?:\x1b\[2K\x1b\[1A)+", seen.decode(errors="replace"))
    return [re.sub(r"\x1b\[\?\d+[hl]|\r", "", frame) for frame in frames if frame]


def _terminal(text: str) -> str:
    """Return what stood on a terminal as a page."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(text.strip("\n")), end="")
    return TERMINAL + console.export_html(inline_styles=True, code_format="<pre>{code}</pre>", theme=MONOKAI)


if __name__ == "__main__":
    sys.exit(main())
