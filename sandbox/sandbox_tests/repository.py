"""What git knows of a project: its committed trees, where the project is a repository of its own.

In scope: git's commands. Out of scope: what follows from their answers.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

__all__ = ["is_clean", "tree"]


def tree(root: Path, folder: str = "") -> str | None:
    """Return the hash of the committed tree of a root, or of a folder in it; None if it is not a repository's top."""
    answer = _git(root, "rev-parse", "--show-toplevel", f"HEAD:{folder}")
    if answer is None:
        return None
    top, found = answer.splitlines()
    return found if Path(top).resolve() == root.resolve() else None


def is_clean(root: Path, folder: str) -> bool:
    """Return whether a folder is as it was committed; files that git ignores do not count."""
    return _git(root, "status", "--porcelain", "--", folder) == ""


def _git(root: Path, *words: str) -> str | None:
    """Run git in a directory, whichever repository a hook that started this run belongs to; None if it fails."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        ran = subprocess.run(["git", *words], cwd=root, env=environ, capture_output=True, text=True, check=False)
    except FileNotFoundError:  # there is no git
        return None
    return ran.stdout if ran.returncode == 0 else None
