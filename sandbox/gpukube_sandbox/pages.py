"""Pagination of lists.

In scope: splitting lists, and opaque tokens. Out of scope: what a service calls its tokens.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

_T = TypeVar("_T")
_DIGEST_BYTES = 11  # plus the start, 15 bytes: base64 without padding, which needs no escaping in URLs
_START_BYTES = 4


class WrongToken(ValueError):
    """The token does not belong to this list."""


def cut(of: str, found: Sequence[_T], token: str, size: int) -> tuple[Sequence[_T], str]:
    """Return one page of a list, and the token of the next; "" for the last.

    Args:
        of: Name of the list; as in the real clouds, its tokens are invalid for other lists.
        found: The full list.
        token: Token from the previous page; "" for the first.
        size: Entries per page.

    Raises:
        WrongToken: The token does not belong to this list.
    """
    start = _start(of, token) if token else 0
    end = start + size
    return found[start:end], _token(of, end) if end < len(found) else ""


def _token(of: str, start: int) -> str:
    raw = start.to_bytes(_START_BYTES, "big")
    mask = hashlib.sha256(of.encode()).digest()
    body = bytes(one ^ other for one, other in zip(raw, mask, strict=False))
    return base64.urlsafe_b64encode(_seal(of, raw) + body).decode()


def _start(of: str, token: str) -> int:
    try:
        raw = base64.b64decode(token, altchars=b"-_", validate=True)
    except ValueError as error:
        raise WrongToken(token) from error
    mask = hashlib.sha256(of.encode()).digest()
    start = bytes(one ^ other for one, other in zip(raw[_DIGEST_BYTES:], mask, strict=False))
    if len(start) != _START_BYTES or raw[:_DIGEST_BYTES] != _seal(of, start):
        raise WrongToken(token)
    return int.from_bytes(start, "big")


def _seal(of: str, start: bytes) -> bytes:
    return hashlib.sha256(of.encode() + start).digest()[:_DIGEST_BYTES]
