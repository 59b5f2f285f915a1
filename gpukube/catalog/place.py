"""Path of the file of refreshed data; separate from reading it (cache), which most runs do not need."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

CACHE_DIR: Final = "GPUKUBE_CACHE_DIR"
"""Environment variable that sets the directory."""


def cache_file(environ: Mapping[str, str], *, sandbox: bool) -> Path:
    """Return the path: in the user's cache directory, or in GPUKUBE_CACHE_DIR."""
    if environ.get(CACHE_DIR):
        directory = Path(environ[CACHE_DIR])
    else:
        from platformdirs import user_cache_path  # noqa: PLC0415 - not needed if the directory is set

        directory = user_cache_path("gpukube")
    return directory / ("catalog-sandbox.json" if sandbox else "catalog.json")
