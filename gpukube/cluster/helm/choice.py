"""Chooses the Helm to use: the `helm` command, or the embedded one.

In scope: the choice. Out of scope: the engines themselves (cli, embedded).
"""

from __future__ import annotations

import platform
import re
import shutil
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from gpukube.cluster.helm.cli import HelmCli
from gpukube.cluster.helm.embedded import HelmSdk
from gpukube.cluster.process.child import DeadlinePassed, Stop, run_child
from gpukube.errors import HelmTimeout, MissingExtra
from gpukube.installed import install_command

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpukube.cluster.helm.engine import Engine, EngineChoice

_EMBEDDED_ON: Final = "Linux on x86_64"
"""The only platform for which helm-python-sdk has a wheel (pyproject.toml, extra helm)."""
_VERSION_S: Final = 60.0
"""Time limit for a program called helm to print its version; generous for a machine that stalls."""
STOP_GRACE_S: Final = 8.0
"""Seconds for a release change to finish when the run is stopped: an interrupted change needs a repair. Together with
the time between SIGTERM and SIGKILL this makes ten seconds."""
_HURRIED: Final = "stopping: Helm has up to 10 s to finish its change"


def choose_engine(
    environ: Mapping[str, str],
    choice: EngineChoice = "auto",
    stopped: Callable[[], bool] | None = None,
    notify: Callable[[str], None] = lambda _message: None,
) -> Engine:
    """Return an engine for `helm` on PATH, with its plugins and logins; else for the embedded Helm.

    Args:
        environ: Environment for Helm; its PATH is searched.
        choice: Forces one of the two.
        stopped: Returns whether the run should stop; a Helm that then does not end soon is ended.
        notify: Called when Helm gets time to finish a change.

    Raises:
        MissingExtra: Neither is available, or not the chosen one.
    """
    stop = Stop(stopped, STOP_GRACE_S, lambda: notify(_HURRIED)) if stopped else None
    program = shutil.which("helm", path=environ.get("PATH", "")) if choice != "embedded" else None
    version = _version_of(program, environ, stop) if program else ""
    if program and version:
        return HelmCli(program, version, environ, stop=stop)
    if choice != "cli" and find_spec("helm_python"):
        return HelmSdk(environ, stop=stop)
    unfit = f"; {program} is not Helm 3 or 4" if program else ""
    # Written as in the environment marker of the extra `helm`.
    here = f"{'macOS' if sys.platform == 'darwin' else platform.system()} on {platform.machine()}"
    elsewhere = "" if here == _EMBEDDED_ON else f"; the embedded Helm exists for {_EMBEDDED_ON}, this is {here}"
    brew = "brew install helm, or " if sys.platform == "darwin" else ""
    install = f"install helm 3.6 or newer: {brew}https://helm.sh/docs/intro/install"
    raise MissingExtra(
        "the helm command is not on PATH"
        if choice == "cli"
        else "neither the helm command nor the embedded Helm is installed",
        where="helm",
        why=f"the device plugin is installed with Helm{unfit}{elsewhere}",
        fix=install if elsewhere else f"{install_command('helm')}, or {install}",
        code="missing-helm",
    )


def _version_of(program: str, environ: Mapping[str, str], stop: Stop | None) -> str:
    """Return the version of a program called helm; "" if it is something else (an editor's package has that name)."""
    command = [program, "version", "--template", "{{.Version}}"]
    try:
        ended = run_child(command, stdin="", environ=environ, deadline_s=_VERSION_S, stop=stop and stop.at_once())
    except DeadlinePassed as error:
        raise HelmTimeout(
            f"{program} does not answer",
            where="helm",
            fix="run helm version yourself, or remove it from PATH to use the embedded Helm",
        ) from error
    except OSError:
        return ""
    found = re.match(r"v[34]\.\d+\.\d+\S*$", ended.out.strip())
    return found.group() if found and ended.code == 0 else ""
