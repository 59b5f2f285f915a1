"""Where the file of refreshed data is; apart from reading it (cache), which most runs have no need of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

CACHE_DIR: Final = "GPUKUBE_CACHE_DIR"
"""Environment variable that names another directory."""


def cache_file(environ: Mapping[str, str], *, sandbox: bool) -> Path:
    """Name the file: in the user's cache directory, or where GPUKUBE_CACHE_DIR says."""
    if environ.get(CACHE_DIR):
        directory = Path(environ[CACHE_DIR])
    else:
        from platformdirs import user_cache_path  # noqa: PLC0415 - not where the place is named

        directory = user_cache_path("gpukube")
    return directory / ("catalog-sandbox.json" if sandbox else "catalog.json")
