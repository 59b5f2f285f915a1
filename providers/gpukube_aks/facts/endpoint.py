"""Decides whether a token for one address may be sent to another.

In scope: comparing origins. Out of scope: choosing the Azure endpoint (gpukube.endpoint).
"""

from __future__ import annotations

from urllib.parse import urlsplit


def is_same_origin(url: str, base: str) -> bool:
    """Return whether two URLs share scheme, host, and port, so that a token for one may be sent to the other."""
    return _origin(url) == _origin(base)


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"https": 443, "http": 80}.get(parts.scheme)
