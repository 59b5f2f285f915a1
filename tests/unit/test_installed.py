"""Which command brings an extra to where gpukube runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube import installed
from gpukube.installed import install_command

if TYPE_CHECKING:
    from pathlib import Path

RUNNERS = {
    "pip": ("venv/pyvenv.cfg", "pip install 'gpukube[{one}]'"),
    "pipx": ("pipx/venvs/gpukube/pipx_metadata.json", "pipx install --force 'gpukube[{all}]'"),
    "uv tool": ("uv/tools/gpukube/uv-receipt.toml", "uv tool install --force 'gpukube[{all}]'"),
    "uvx": ("uv/archive-v0/328k8mrA/pyvenv.cfg", "uvx --from 'gpukube[{all}]' gpukube ..."),
}


@pytest.mark.parametrize(
    "case",
    [("aks", [], "all"), ("aks", ["door"], "all,sandbox"), ("sandbox", [], "all,sandbox")],
    ids=["no-sandbox", "keeps-the-sandbox", "brings-the-sandbox"],
)
@pytest.mark.parametrize("runner", RUNNERS)
def test_command_when_a_tool_made_the_environment_then_that_tool_is_named(
    runner: str, case: tuple[str, list[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extra, sandboxes, extras = case
    mark, command = RUNNERS[runner]
    (tmp_path / mark).parent.mkdir(parents=True)
    (tmp_path / mark).touch()
    monkeypatch.setattr("sys.prefix", str((tmp_path / mark).parent))
    monkeypatch.setattr(installed, "installed_points", lambda _: sandboxes)
    assert install_command(extra) == command.format(one=extra, all=extras)
