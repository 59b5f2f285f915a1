"""Private endpoints and emulators from environment variables.

Out of scope: whether credentials may be sent there (gpukube.endpoint).
"""

from __future__ import annotations

import os


def emulated_secret() -> str:
    """Return the secret of emulated clouds at these endpoints (set by `gpukube sandbox env`); "" if it is not set."""
    return os.environ.get("GPUKUBE_SANDBOX_SECRET", "")


def endpoints() -> dict[str, str]:
    """Return the endpoints set by GPUKUBE_<PROVIDER>_ENDPOINT: private ones, or an emulator's."""
    prefix, suffix = "GPUKUBE_", "_ENDPOINT"
    return {
        name.removeprefix(prefix).removesuffix(suffix).lower(): value
        for name, value in os.environ.items()
        if name.startswith(prefix) and name.endswith(suffix) and value
    }
