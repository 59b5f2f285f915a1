"""Tools of this machine, read once per run.

In scope: finding them. Out of scope: checking them (checks.tools), running Helm for a release (cluster.helm).
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpukube.cluster.helm.choice import choose_engine
from gpukube.errors import GpukubeError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Tools:
    """Tools of this machine.

    Attributes:
        helm: The Helm that would be used, "helm v3.17.0 on PATH"; "" if there is none.
        program: Path of a command called helm; "" if there is none.
        trouble: Why no Helm can be used; None if one can.
        driver: HELM_DRIVER of the environment.
        path: PATH, where other commands are looked up.
    """

    helm: str = ""
    program: str = ""
    trouble: GpukubeError | None = None
    driver: str = ""
    path: str = ""


def look_at_tools(environ: Mapping[str, str]) -> Tools:
    """Find the tools, once per run; starts the helm command once, if there is one."""
    path = environ.get("PATH", "")
    program = shutil.which("helm", path=path) or ""
    trouble: GpukubeError | None = None
    try:
        helm = choose_engine(environ).version()
    except GpukubeError as error:
        helm, trouble = "", error
    return Tools(helm, program, trouble, environ.get("HELM_DRIVER", ""), path)
