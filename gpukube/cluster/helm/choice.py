"""Which Helm is used: the `helm` command, or the embedded one.

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
"""helm-python-sdk has a wheel for it alone (pyproject.toml, extra helm)."""
_VERSION_S: Final = 60.0
"""For a program called helm to say its version: at once, but for a machine that stalls."""
STOP_GRACE_S: Final = 8.0
"""For a change of the release when the run is to end: one that is cut in the middle has to be mended. With the time
between SIGTERM and SIGKILL ten seconds in all."""
_HURRIED: Final = "stopping: Helm has up to 10 s to finish its change"


def choose_engine(
    environ: Mapping[str, str],
    choice: EngineChoice = "auto",
    stopped: Callable[[], bool] | None = None,
    notify: Callable[[str], None] = lambda _message: None,
) -> Engine:
    """Take `helm` on PATH, with its plugins and logins; else the embedded Helm.

    Args:
        environ: The environment that Helm shall see; PATH is looked up in it.
        choice: Force one of the two.
        stopped: Whether the run is to end; a Helm that then does not end soon is ended.
        notify: Told when Helm is given the time to end a change.

    Raises:
        MissingExtra: There is neither, or not the one asked for.
    """
    stop = Stop(stopped, STOP_GRACE_S, lambda: notify(_HURRIED)) if stopped else None
    program = shutil.which("helm", path=environ.get("PATH", "")) if choice != "embedded" else None
    version = _version_of(program, environ, stop) if program else ""
    if program and version:
        return HelmCli(program, version, environ, stop=stop)
    if choice != "cli" and find_spec("helm_python"):
        return HelmSdk(environ, stop=stop)
    unfit = f"; {program} is not Helm 3 or 4" if program else ""
    # Spelled as in the environment marker of the extra `helm`.
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
    """Ask a program called helm for its version; "" when it is something else (an editor's package has the name)."""
    command = [program, "version", "--template", "{{.Version}}"]
    try:
        ended = run_child(command, stdin="", environ=environ, deadline_s=_VERSION_S, stop=stop and stop.at_once())
    except DeadlinePassed as error:
        raise HelmTimeout(
            f"{program} does not answer",
            where="helm",
            fix="run helm version by hand, or remove it from PATH to use the embedded Helm",
        ) from error
    except OSError:
        return ""
    found = re.match(r"v[34]\.\d+\.\d+\S*$", ended.out.strip())
    return found.group() if found and ended.code == 0 else ""
