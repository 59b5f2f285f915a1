"""Whether a token for one address may go to another.

In scope: comparing origins. Out of scope: which Azure is talked to (gpukube.endpoint).
"""

from __future__ import annotations

from urllib.parse import urlsplit


def is_same_origin(url: str, base: str) -> bool:
    """Return whether a URL has scheme, host and port of another, so that a token for the one may go to the other."""
    return _origin(url) == _origin(base)


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"https": 443, "http": 80}.get(parts.scheme)
