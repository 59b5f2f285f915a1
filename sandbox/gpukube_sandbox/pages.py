"""Pages of lists, and the tokens that lead from one to the next.

In scope: cutting, and tokens that say nothing to a client. Out of scope: what a service calls its tokens.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

_T = TypeVar("_T")
_DIGEST_BYTES = 11  # with the start 15 bytes: base64 without padding, which URLs need no escapes for
_START_BYTES = 4


class WrongToken(ValueError):
    """A token that no page of this list has given."""


def cut(of: str, found: Sequence[_T], token: str, size: int) -> tuple[Sequence[_T], str]:
    """One page of a list, and the token of the next; "" for the last.

    Args:
        of: Name of the list: its tokens lead nowhere in another one, as in life.
        found: All of it.
        token: As given for the page before; "" for the first.
        size: Entries of a page.

    Raises:
        WrongToken: The token is not of this list.
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
