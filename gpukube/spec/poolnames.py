"""A pool's two possible names in its cloud: the declared one, and that of its replacement."""

from __future__ import annotations


def alternate_name(declared: str) -> str:
    """Return a pool's other name: each replacement switches between the two."""
    return f"{declared}b"
