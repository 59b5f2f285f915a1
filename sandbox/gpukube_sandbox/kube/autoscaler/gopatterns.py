"""Regular expressions of Go, as far as Python's mean the same.

In scope: what both read alike; the rest is refused, with Go's message where Go refuses it too. Out of scope: Go's own
classes of characters and its quoting, which are refused here and not by Go.

Source: Go regexp/syntax (parse.go, "invalid or unsupported Perl syntax" and the other error codes).
"""

from __future__ import annotations

import re
from typing import Final

_PIECE: Final = re.compile(
    r"""(?P<escape>\\.?)
      | (?P<group>\(\?(?:P<\w+>|[ims]*(?:-[ims]+)?[:)])?)
      | (?P<repeat>(?:[*+?]|\{\d+(?:,\d*)?\})+)
      | (?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])
      | .""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES, _ESCAPES_IN_SETS = frozenset("aftnrvdDsSwWbBAz"), frozenset("aftnrvdDsSwW")
_PYTHON_S: Final = re.compile(r"\\.|[\[&~|]|(?<=-)-", re.DOTALL)
"""What Python reserves in sets, with a warning, and escapes, which stay as they are."""
_ONCE: Final = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})\??")
_COUNTS: Final = re.compile(r"\d+")
_MOST: Final = 1000


class PatternError(ValueError):
    """A pattern that Go's regexp refuses, or that means something else in Python."""


def compile_pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern to search with.

    Raises:
        PatternError: See there; the message begins as Go's.
    """
    pieces = [_translated(found) for found in _PIECE.finditer(text)]
    try:
        return re.compile("".join(pieces), re.ASCII)
    except re.error as error:
        message = f"error parsing regexp: {error.msg}: `{text}`"
        raise PatternError(message) from None


def _translated(found: re.Match[str]) -> str:
    piece, kind = found.group(), found.lastgroup
    if kind == "escape":
        return _escape(piece, _ESCAPES)
    if kind == "group" and piece == "(?":
        raise _refused("invalid or unsupported Perl syntax", found.string[found.start() :][:4])
    if kind == "repeat":
        _check_repeat(piece)
    if kind == "set":
        return _set(piece)
    return r"\{" if piece == "{" else piece


def _escape(piece: str, letters: frozenset[str]) -> str:
    if len(piece) == 1:
        raise _refused("trailing backslash at end of expression", "")
    if piece[1].isalnum() and piece[1] not in letters:
        raise _refused("invalid escape sequence", piece)
    return r"\Z" if piece == r"\z" else piece


def _check_repeat(piece: str) -> None:
    if not _ONCE.fullmatch(piece):
        raise _refused("invalid nested repetition operator", piece)
    if any(int(number) > _MOST for number in _COUNTS.findall(piece)):
        raise _refused("invalid repeat count", piece)


def _set(piece: str) -> str:
    if "[:" in piece[1:]:
        raise _refused("invalid character class range", piece)

    def kept(found: re.Match[str]) -> str:
        return _escape(found[0], _ESCAPES_IN_SETS) if found[0][0] == "\\" else f"\\{found[0]}"

    return f"[{_PYTHON_S.sub(kept, piece[1:-1])}]"


def _refused(what: str, piece: str) -> PatternError:
    return PatternError(f"error parsing regexp: {what}: `{piece}`")
