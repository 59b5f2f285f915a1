"""MIME multipart messages, split at their boundary so that every byte of every part stays as it is.

In scope: splitting a message, adding parts, and removing parts. Out of scope: what is in the parts (`nodeconfig`). The
standard library's email package rewrites line endings and headers, so it only parses headers here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from email import message_from_bytes
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_BLANK_LINE = re.compile(rb"\r?\n\r?\n")


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a message.

    Attributes:
        delimiter: The line before it.
        text: Headers, content, and the line ending that belongs to the next delimiter.
    """

    delimiter: bytes
    text: bytes

    @property
    def kind(self) -> str:
        """Content type, without parameters."""
        return message_from_bytes(self._headers).get_content_type()

    @property
    def filename(self) -> str:
        """File name of the content; "" for none."""
        return message_from_bytes(self._headers).get_filename() or ""

    @property
    def content(self) -> bytes:
        """Everything below the headers."""
        return self._split[1]

    @property
    def _headers(self) -> bytes:
        return self._split[0]

    @property
    def _split(self) -> tuple[bytes, bytes]:
        if self.text.startswith((b"\n", b"\r\n")):  # no headers
            return b"", _without_ending(self.text.split(b"\n", 1)[1])
        found = _BLANK_LINE.search(self.text)
        if found is None:
            return self.text, b""
        return self.text[: found.end()], _without_ending(self.text[found.end() :])


@dataclass(frozen=True, slots=True)
class Message:
    """A multipart message; its bytes are head, parts, and tail.

    Attributes:
        head: Headers and preamble.
        boundary: Without dashes.
        parts: In their order.
        tail: The closing delimiter and everything after it; b"" if the message has none.
    """

    head: bytes
    boundary: bytes
    parts: tuple[Part, ...]
    tail: bytes

    @property
    def raw(self) -> bytes:
        """Return the message."""
        return self.head + b"".join(part.delimiter + part.text for part in self.parts) + self.tail

    def without(self, is_dropped: Callable[[Part], bool]) -> Message:
        """Return the message without some parts; all other bytes stay."""
        return replace(self, parts=tuple(part for part in self.parts if not is_dropped(part)))

    def with_parts(self, texts: tuple[bytes, ...]) -> Message:
        """Add parts at the end, in the line endings of the message's delimiters, which readers require.

        Args:
            texts: Headers, a blank line, and the content, with plain line endings and one at the end.

        Raises:
            ValueError: The boundary occurs in a new part.
        """
        ending = b"\r\n" if b"\r\n" in b"".join(part.delimiter for part in self.parts) + self.tail else b"\n"
        delimiter = b"--" + self.boundary + ending
        if any(b"\n--" + self.boundary in b"\n" + text for text in texts):
            raise ValueError("the boundary occurs in a part")
        parts, head = list(self.parts), self.head
        if parts and not parts[-1].text.endswith(b"\n"):
            parts[-1] = replace(parts[-1], text=parts[-1].text + ending)
        elif not head.endswith(b"\n"):
            head += ending
        # Go's multipart reader, which nodeadm uses, takes the line ending of the first delimiter for all.
        added = (Part(delimiter, text.replace(b"\n", ending) + ending) for text in texts)
        tail = self.tail or b"--" + self.boundary + b"--" + ending
        return replace(self, head=head, parts=(*parts, *added), tail=tail)


def parse_message(raw: bytes) -> Message | None:
    """Split a message; None for anything but a multipart message with a boundary."""
    start = len(raw) - len(raw.lstrip())
    found = _BLANK_LINE.search(raw, start)
    headers = message_from_bytes(raw[start : found.end() if found else len(raw)])
    boundary = headers.get_boundary()
    if headers.get_content_maintype() != "multipart" or not boundary:
        return None
    try:
        name = boundary.encode("ascii")
    except UnicodeEncodeError:
        return None
    delimiter = re.compile(rb"^--" + re.escape(name) + rb"(--)?[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
    lines = []
    for line in delimiter.finditer(raw, found.end() if found else len(raw)):
        lines.append(line)
        if line[1]:
            break
    closing = lines.pop() if lines and lines[-1][1] else None
    end = closing.start() if closing else len(raw)
    starts = [line.start() for line in lines]
    parts = tuple(
        Part(line[0], raw[line.end() : following]) for line, following in zip(lines, [*starts, end][1:], strict=True)
    )
    return Message(raw[: starts[0] if starts else end], name, parts, raw[end:])


def _without_ending(text: bytes) -> bytes:
    """Drop the line ending that belongs to the next delimiter (RFC 2046 5.1.1)."""
    return text[:-2] if text.endswith(b"\r\n") else text.removesuffix(b"\n")
