"""The official commands that tests use where they are on PATH: of the clouds, curl, jq, kubectl, helm, terraform.

In scope: finding them, and how each is had where it is missing. Out of scope: what is asked of them.
A test that uses one says so, `@pytest.mark.clients("aws")`, and is skipped where there is none (conftest).
"""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["client"]

ASKED_FOR_VERSION: Final[Mapping[str, tuple[str, ...]]] = {
    "aws": ("--version",),
    "az": ("version",),
    "curl": ("--version",),
    "gcloud": ("--version",),
    "helm": ("version",),
    "jq": ("--version",),
    "kubectl": ("version", "--client"),
    "terraform": ("version",),
}
INSTALLED_BY: Final[Mapping[str, str]] = {
    "aws": "https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html",
    "az": "pip install azure-cli",
    "curl": "https://curl.se/download.html",
    "gcloud": "https://cloud.google.com/sdk/docs/install",
    "helm": "https://helm.sh/docs/intro/install",
    "jq": "https://jqlang.org/download",
    "kubectl": "https://kubernetes.io/docs/tasks/tools",
    "terraform": "https://developer.hashicorp.com/terraform/install",
}
LONGEST_S: Final = 120.0


@cache
def _works(path: str, name: str) -> bool:
    """Start it: what a version manager puts on PATH may lead nowhere."""
    command = [path, *ASKED_FOR_VERSION[name]]
    return subprocess.run(command, capture_output=True, check=False, timeout=LONGEST_S).returncode == 0


def client(name: str) -> str:
    """Return the path of a command; skips the test where there is none that works."""
    path = shutil.which(name)
    if path is None or not _works(path, name):
        pytest.skip(f"no {name} on PATH that works; to install it: {INSTALLED_BY[name]}")
    return path
