"""The two names that a pool may have in its cloud: the declared one, and the one under which a replacement is made."""

from __future__ import annotations


def alternate_name(declared: str) -> str:
    """Return the other name of a pool: each replacement moves it from one to the other."""
    return f"{declared}b"
