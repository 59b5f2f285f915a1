"""Addresses without the secrets in them.

Lives here: what of an address may be shown, and how a text that repeats it is cleaned. Must not live here: who fetches.

A token is as secret as a password and stands where hosts want it: as the user name, in the query, after a "#". Whoever
writes it by hand seldom percent-encodes it, so a "/", "@" or "?" of it looks like the end of the part it is in. So
everything up to the last "@" is taken for secret, and everything after a "?" or "#".
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
"""How a reference to a registry names a manifest (opencontainers/distribution-spec, Pulling manifests)."""
_IN_TEXT: Final = re.compile(r"([a-z][a-z0-9+.-]*://)[^\s\"'<>]*", re.IGNORECASE)
_WORD: Final = re.compile(r"(--[\w-]+=)?(?=[a-z][a-z0-9+.-]*://)", re.IGNORECASE)
_ENDS: Final = re.compile(r"[:/@?#&=\s]")
"""At which a parser may cut an address."""
_LEAST: Final = 4
"""Characters of a piece of a secret that is searched for by itself: shorter ones are in every text."""


def shown_address(address: str) -> str:
    """Give an address with marks in the place of all that may be secret."""
    scheme, rest, digest = _parts(address)
    user, at, place = rest.rpartition("@")
    if "?" in user or "#" in user:  # of a query with an "@", or of a password with a "?": the host is on either side
        return f"{scheme}{MASK}"
    shown = re.sub(r"[?#].*", lambda found: found[0][0] + MASK, place, flags=re.DOTALL)
    return f"{scheme}{MASK + '@' if at else ''}{shown}{digest}"


def has_secret(address: str) -> bool:
    """Whether an address has a part that may be secret."""
    return shown_address(address) != address


def looks_like_address(text: str) -> bool:
    """Whether a text that names no file may be a misspelt address, with secrets where nobody looks for them."""
    return bool(re.match(r"\s*([a-z][a-z0-9+.-]*:|//)|.*[@?#]", text, re.IGNORECASE | re.DOTALL))


def without_secrets(text: str, address: str = "") -> str:
    """Clean a text of what it repeats of an address, and of the secrets of any other address in it.

    Args:
        text: Of somebody else: it may quote, decode, or cut the address.
        address: The one that was used; "" when not known.
    """
    if has_secret(address):
        text = text.replace(address, shown_address(address))
    for secret in sorted(set(_secrets(address)), key=len, reverse=True):
        text = text.replace(secret, MASK)
    return _IN_TEXT.sub(lambda found: shown_address(found[0]), text)


def shown_words(words: Iterable[str]) -> list[str]:
    """Give the words of a command line without the secrets of their addresses; what it says then must be filled in."""
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
    """List what may be secret, whole and in the pieces that a parser cuts it into, as written, decoded and encoded."""
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
