"""MIME messages: split and joined without a changed byte, whoever wrote them."""

from __future__ import annotations

import email

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpukube_eks.userdata.mime import parse_message
from tests.unit.gpukube_eks.user_data import RAID, SCRIPT, mime

BOUNDARIES = st.from_regex(r"\A[0-9A-Za-z'()+_,./:=?]{1,30}\Z")
LINES = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=60)
ADDED = b"Content-Type: text/plain\n\nours\n"


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    boundary = draw(BOUNDARIES)
    parts = draw(st.lists(st.builds("Content-Type: text/{}\n\n{}\n".format, st.sampled_from(["plain", "x"]), LINES)))
    text = mime(*parts, boundary=boundary, closed=draw(st.booleans()))
    text = draw(st.sampled_from(["", "\n", "  \n"])) + text + draw(st.sampled_from(["", "epilogue\n"]))
    return (text.replace("\n", "\r\n") if draw(st.booleans()) else text).encode()


@given(messages() | st.binary())
def test_message_when_joined_is_what_it_was(raw: bytes) -> None:
    message = parse_message(raw)

    assert message is None or message.raw == raw


@given(messages())
def test_message_when_a_part_is_added_keeps_the_others_and_its_readers_find_it(raw: bytes) -> None:
    message = parse_message(raw)
    assert message is not None
    added = message.with_parts((ADDED,))

    assert [part.content for part in added.parts[:-1]] == [part.content for part in message.parts]
    assert added.parts[-1].content.splitlines() == [b"ours"]
    assert parse_message(added.raw) == added
    theirs = email.message_from_bytes(added.raw.lstrip()).get_payload()
    assert isinstance(theirs, list)
    assert str(theirs[-1]).strip().endswith("ours")
    without = added.without(lambda part: part == added.parts[-1])
    assert without.raw.startswith(message.raw.removesuffix(message.tail).rstrip())
    assert parse_message(without.raw) is not None


def test_message_when_closed_and_the_added_part_is_removed_is_the_same_bytes() -> None:
    raw = mime(SCRIPT, RAID).encode()
    message = parse_message(raw)
    assert message is not None

    added = message.with_parts((ADDED,))

    assert added.without(lambda part: part.text.startswith(ADDED)).raw == raw


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"#!/bin/sh\n",
        b"MIME-Version: 1.0\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n",
        b"MIME-Version: 1.0\nContent-Type: multipart/mixed\n\nno boundary\n",
        'Content-Type: multipart/mixed; boundary="é"\n\n'.encode(),
    ],
)
def test_message_when_it_has_no_parts_is_none(raw: bytes) -> None:
    assert parse_message(raw) is None


def test_part_when_it_has_headers_is_described_by_them() -> None:
    text = 'Content-Type: TEXT/X-Shellscript; x=y\nContent-Disposition: attachment; filename="a.sh"\n\nhello\n'
    message = parse_message(mime(text, "\nno headers\n", "Content-Type: text/plain\n").encode())
    assert message is not None

    assert [part.kind for part in message.parts] == ["text/x-shellscript", "text/plain", "text/plain"]
    assert [part.filename for part in message.parts] == ["a.sh", "", ""]
    assert [part.content for part in message.parts] == [b"hello", b"no headers", b""]


def test_part_when_its_lines_look_like_the_boundary_is_refused() -> None:
    message = parse_message(mime("Content-Type: text/plain\n\nx\n", boundary="-").encode())
    assert message is not None

    with pytest.raises(ValueError, match="boundary"):
        message.with_parts((b"Content-Type: application/node.eks.aws\n\n---\n",))
