"""Masks secrets in addresses, and in text that repeats an address.

A token is as secret as a password and can be anywhere a host expects it: in the user name, in the query, after a "#".
Tokens typed by hand are rarely percent-encoded, so a "/", "@", or "?" in one looks like the end of its part. Therefore
everything up to the last "@" counts as secret, and everything after a "?" or "#".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, quote_plus, unquote, unquote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MASK: Final = "***"
_SCHEME: Final = re.compile(r"\s*([a-z][a-z0-9+.-]*):[\\/]*", re.IGNORECASE)
_DIGEST: Final = re.compile(r"@(sha(?:256|384|512):[0-9a-f]+)$")
"""The manifest digest in a registry reference (opencontainers/distribution-spec, Pulling manifests)."""
_IN_TEXT: Final = re.compile(r"([a-z][a-z0-9+.-]*://)[^\s\"'<>]*", re.IGNORECASE)
_WORD: Final = re.compile(r"(--[\w-]+=)?(?=[a-z][a-z0-9+.-]*://)", re.IGNORECASE)
_ENDS: Final = re.compile(r"[:/@?#&=\s]")
"""Characters at which a parser may split an address."""
_LEAST: Final = 4
"""Minimum length of a piece of a secret that is masked on its own: shorter ones occur in any text."""


def shown_address(address: str) -> str:
    """Return the address with everything that may be secret masked."""
    scheme, rest, digest = _parts(address)
    user, at, place = rest.rpartition("@")
    if "?" in user or "#" in user:  # a query with an "@", or a password with a "?": the host may be on either side
        return f"{scheme}{MASK}"
    shown = re.sub(r"[?#].*", lambda found: found[0][0] + MASK, place, flags=re.DOTALL)
    return f"{scheme}{MASK + '@' if at else ''}{shown}{digest}"


def has_secret(address: str) -> bool:
    """Return whether an address contains something that may be secret."""
    return shown_address(address) != address


def looks_like_address(text: str) -> bool:
    """Return whether a text that is not a file name may be a misspelled address, which may contain secrets."""
    return bool(re.match(r"\s*([a-z][a-z0-9+.-]*:|//)|.*[@?#]", text, re.IGNORECASE | re.DOTALL))


def without_secrets(text: str, address: str = "") -> str:
    """Mask the secrets of an address in a text that may repeat it, and those of any other address in the text.

    Args:
        text: Text from outside: it may quote, decode, or truncate the address.
        address: The address that was used; "" if unknown.
    """
    if has_secret(address):
        text = text.replace(address, shown_address(address))
    for secret in sorted(set(_secrets(address)), key=len, reverse=True):
        text = text.replace(secret, MASK)
    return _IN_TEXT.sub(lambda found: shown_address(found[0]), text)


def shown_words(words: Iterable[str]) -> list[str]:
    """Return the words of a command line with the secrets of their addresses masked; the user fills them in again."""
    return [f"{option}{shown_address(value)}" for option, value in map(_value_of, words)]


def _value_of(word: str) -> tuple[str, str]:
    found = _WORD.match(word)
    return (word[: found.end()], word[found.end() :]) if found else (word, "")


def _parts(address: str) -> tuple[str, str, str]:
    found = _SCHEME.match(address)
    scheme = found[0] if found and ("/" in found[0] or "\\" in found[0]) else ""
    rest = address[len(scheme) :]
    named = _DIGEST.search(rest)
    digest = named[0] if named else ""
    return scheme, rest.removesuffix(digest) if digest else rest, digest


def _secrets(address: str) -> Iterator[str]:
    """Yield what may be secret, whole and in the pieces a parser may produce, as written, decoded, and encoded."""
    _, rest, _ = _parts(address)
    user, at, place = rest.rpartition("@")
    behind = re.split(r"[?#]", place, maxsplit=1)[1:]
    ahead = re.split(r"[?#]", rest, maxsplit=1)[1:]
    for part in ([user] if at else []) + behind + ahead:
        pieces = _ENDS.split(part)
        for piece in (part, *part.split(":", 1), *pieces):
            for form in (piece, unquote(piece), unquote_plus(piece), quote(piece, safe=""), quote_plus(piece)):
                for end in (form, *_ENDS.split(form)):
                    if len(end) >= _LEAST:
                        yield end
