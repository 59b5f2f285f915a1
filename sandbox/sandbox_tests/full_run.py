"""A record that `pytest --full` has passed: while the sandbox is the one of the record, its own tests run in part.

In scope: the record, what it is of, and whether it holds. Out of scope: which tests are left out (`turns`).

The record is outside sandbox/, as it names the hash of that folder. The command writes it; people commit it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from sandbox_tests import repository

__all__ = ["RECORD", "missing", "record", "state"]

RECORD: Final = Path("tests") / "sandbox-full-run"


def state(root: Path) -> str | None:
    """Describe the sandbox that is checked out, by its tree and the constraints; None while it is no committed one."""
    tree = repository.tree(root, "sandbox")
    if tree is None or not repository.is_clean(root, "sandbox"):
        return None
    constraints = hashlib.sha256((root / "constraints.txt").read_bytes()).hexdigest()
    return f"sandbox {tree}\nconstraints.txt {constraints}\n"


def missing(root: Path) -> str:
    """Explain why the record does not hold for the sandbox that is checked out; empty if it does."""
    if repository.tree(root, "sandbox") is None:
        return "this directory is not the top of a git repository"
    now = state(root)
    if now is None:
        return "changes under sandbox/ are not committed"
    try:
        recorded = (root / RECORD).read_text("utf-8")
    except FileNotFoundError:
        return f"there is no {RECORD}"
    if recorded == now:
        return ""
    of_now, of_record = now.splitlines(), recorded.splitlines()
    changed = "sandbox/" if of_now[:1] != of_record[:1] else "constraints.txt"
    return f"{changed} has changed since {RECORD}"


def record(root: Path, passed: str) -> None:
    """Write that everything has passed in a state."""
    (root / RECORD).write_text(passed, "utf-8")
