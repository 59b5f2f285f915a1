"""Private endpoints and emulators, as the environment names them.

Out of scope: whether credentials may go there (gpukube.endpoint).
"""

from __future__ import annotations

import os


def emulated_secret() -> str:
    """Read what emulated clouds at these endpoints ask for (`gpukube sandbox env` sets it); "" where nothing is set."""
    return os.environ.get("GPUKUBE_SANDBOX_SECRET", "")


def endpoints() -> dict[str, str]:
    """Read GPUKUBE_<PROVIDER>_ENDPOINT: private endpoints, or an emulator."""
    prefix, suffix = "GPUKUBE_", "_ENDPOINT"
    return {
        name.removeprefix(prefix).removesuffix(suffix).lower(): value
        for name, value in os.environ.items()
        if name.startswith(prefix) and name.endswith(suffix) and value
    }
