"""The device plugin where there is only a `helm` command, as on macOS and arm64: one in front of the embedded Helm."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.helm import choice as helm_choice
from gpukube.cluster.helm.choice import choose_engine
from gpukube.cluster.helm.cli import HelmCli
from gpukube.cluster.names import DEVICE_PLUGIN, NAMESPACE
from gpukube.cluster.release.plan import plan_release
from gpukube.cluster.state.snapshot import Snapshot, look
from tests.unit.cluster.builders import GPU_TAINT, RELEASE_NAME, SINGLE, SLICED, desire
from tests.wire.cluster import helm_command

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube.cluster.helm.engine import Engine
    from gpukube.cluster.kube.client import LightKube
    from gpukube.cluster.release.manager import ReleaseManager

CUT = desire(sharing=SINGLE, taints=(GPU_TAINT,))
SHARED = desire(sharing=SLICED, pool="shared")


@pytest.fixture
def engine(tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Choose Helm on a Mac whose PATH has the command; each of its command lines is kept in a file."""
    pytest.importorskip("helm_python", reason="the embedded Helm is not installed (gpukube[helm])")
    program = tmp_path / "bin" / "helm"
    program.parent.mkdir()
    libraries = os.pathsep.join(sys.path)
    program.write_text(
        "#!/bin/sh\n"
        f'echo "$@" >> {tmp_path}/lines\n'
        f"PYTHONPATH='{libraries}' exec '{sys.executable}' -W ignore '{helm_command.__file__}' \"$@\"\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(helm_choice, "find_spec", lambda _name: None)
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    chosen = choose_engine({**environ, "PATH": f"{program.parent}:{environ['PATH']}"})
    monkeypatch.undo()
    assert isinstance(chosen, HelmCli)
    assert chosen.version() == f"helm {helm_command.VERSION} on PATH"
    return chosen


def test_release_when_only_the_command_is_there_then_installed_upgraded_and_rolled_back(
    engine: Engine, keeper: ReleaseManager, kube: LightKube, tmp_path: Path
) -> None:
    fresh = plan_release([CUT], Snapshot())
    assert keeper.dry_run(fresh).digest.startswith("sha256:")
    assert look(kube).release_of(DEVICE_PLUGIN) is None, "a trial installs nothing"
    assert keeper.install_or_upgrade(fresh, 0).revision == 1
    second = plan_release([SHARED], look(kube))
    assert keeper.install_or_upgrade(second, second.revision).revision == 2
    assert plan_release([CUT], look(kube)).action == "none"
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(keeper._cluster.access().kubeconfig)
    engine.rollback(kubeconfig, RELEASE_NAME, NAMESPACE, 1)
    back = look(kube).release_of(DEVICE_PLUGIN)
    assert back is not None
    assert back.values == fresh.values
    engine.uninstall(kubeconfig, "gone", NAMESPACE)  # no error
    verbs = [line.split()[0] for line in (tmp_path / "lines").read_text().splitlines()]
    assert verbs[:2] == ["version", "pull"]
    assert {"install", "upgrade", "rollback", "uninstall"} <= set(verbs)
