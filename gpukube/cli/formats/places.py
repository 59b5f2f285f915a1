"""Files as CI systems name them: by path in the repository, whatever directory gpukube runs in."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path


def repository_path(file: str) -> str:
    """Return the path of a file from the top of the repository; a file outside it keeps its name."""
    path = os.path.relpath(file, _top(Path.cwd()))
    return file if path == os.pardir or path.startswith(os.pardir + os.sep) else path.replace(os.sep, "/")


@cache
def _top(directory: Path) -> Path:
    """Return the top of the repository that contains a directory; without one, the directory itself."""
    return next((place for place in (directory, *directory.parents) if (place / ".git").exists()), directory)
