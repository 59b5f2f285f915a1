"""The sandbox is a package of its own: missing, unloadable or of another version, it is refused with a pip line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import gpukube
from gpukube import guard as ours
from gpukube_sandbox import guard as theirs

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "examples" / "three-clouds.yaml"
DOORS = {
    "missing": (
        None,
        "error[missing-extra]: the sandbox is not installed; it is a package of its own, gpukube-sandbox",
    ),
    "older": (
        f'PROTOCOL, VERSION = 0, "{gpukube.__version__}"',
        f"error[sandbox-version]: gpukube-sandbox is {gpukube.__version__} (protocol 0), and this is gpukube",
    ),
    "of another version": (
        'PROTOCOL, VERSION = 1, "9.9.9"',
        "error[sandbox-version]: gpukube-sandbox is 9.9.9 (protocol 1), and this is gpukube",
    ),
    "unloadable": ("import nothing_of_that_name", "error[missing-extra]: gpukube-sandbox cannot be loaded"),
}
RUN = """
import sys
sys.path[:] = [path for path in sys.path if not path.endswith("/sandbox")]
import importlib.metadata as metadata
found = metadata.distributions
metadata.distributions = lambda **more: (
    one for one in found(**more) if one.name != "gpukube-sandbox" or HERE in str(one._path)
)
from gpukube.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.turns(4)
@pytest.mark.parametrize(
    "words", [("--sandbox", "pool", "plan", "-f", str(SPEC)), ("sandbox", "up")], ids=["run", "up"]
)
@pytest.mark.parametrize("name", DOORS)
def test_sandbox_when_it_is_not_the_right_one_then_refused_with_the_line_that_installs_it(
    name: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    text, message = DOORS[name]
    if text is not None:
        (tmp_path / "fake_door.py").write_text(text)
        info = tmp_path / "gpukube_sandbox-9.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gpukube-sandbox\nVersion: 9\n")
        (info / "entry_points.txt").write_text("[gpukube.sandbox]\ndoor = fake_door\n")
    code = RUN.replace("HERE", repr(str(tmp_path)))
    paths = ":".join(map(str, (tmp_path, ROOT, ROOT / "providers")))
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        env={"PYTHONPATH": paths, "HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode != 0
    assert message in done.stderr
    assert "pip install" in done.stderr
    assert "Traceback" not in done.stderr


def test_guards_when_compared_then_both_hide_the_same_variables() -> None:
    environment = {"AWS_PROFILE": "a", "AZURE_X": "b", "GOOGLE_X": "c", "HTTPS_PROXY": "d", "PATH": "e", "IMDS_X": "f"}
    assert ours.child_environment(environment) == theirs.child_environment(environment)
    assert (ours._SECRET_PREFIXES, ours._PROXIES) == (theirs._SECRET_PREFIXES, theirs._PROXIES)
