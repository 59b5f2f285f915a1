"""Files as CI systems name them: by their path in the repository, wherever in it gpukube runs."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path


def repository_path(file: str) -> str:
    """Name a file by its path from the top of the repository; one that lies elsewhere as it was given."""
    path = os.path.relpath(file, _top(Path.cwd()))
    return file if path == os.pardir or path.startswith(os.pardir + os.sep) else path.replace(os.sep, "/")


@cache
def _top(directory: Path) -> Path:
    """Find the top of the repository around a directory; without one it is the directory itself."""
    return next((place for place in (directory, *directory.parents) if (place / ".git").exists()), directory)
