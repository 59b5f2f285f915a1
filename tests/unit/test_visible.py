"""What comes from outside and is shown: nothing in it steers a terminal, forges a line or commands a CI system."""

from __future__ import annotations

import json
import unicodedata
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpukube.cli.formats.data import quoted_json
from gpukube.visible import visible, visible_lines, visible_tree

UNSEEN: Final = {"Cc", "Cf", "Zl", "Zp", "Cs"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a100mig", "a100mig"),
        ("Zürich → 世界 🟢", "Zürich → 世界 🟢"),
        ("a\x1b[2J\x07b\x9bc\x7f", "a<U+001B>[2J<U+0007>b<U+009B>c<U+007F>"),
        ("one\r\ntwo\tthree\u2028four", "one two three four"),
        ("us\u202eeast\u2066", "us<U+202E>east<U+2066>"),
        ("po\u200bol\ufeff", "po<U+200B>ol<U+FEFF>"),
        ("::stop-commands::x", ": :stop-commands::x"),
        ("bad:\n::error file=a::b", "bad: : :error file=a::b"),
        ("##[add-mask]a ##vso[task.x variable=A]b", "# #[add-mask]a # #vso[task.x variable=A]b"),
        ("::1 and fe80::1 and Microsoft::X", "::1 and fe80::1 and Microsoft::X"),
        ("## title", "## title"),
    ],
)  # fmt: skip
def test_text_when_it_holds_what_acts_then_it_is_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible(shown) == shown


@given(
    st.text() | st.lists(st.sampled_from(["::", "##", "#", ":", "[", "vso[", "\n", " ", "error", "\x1b"])).map("".join)
)
def test_text_when_it_is_any_then_no_unseen_character_and_no_command_is_left(text: str) -> None:
    shown = visible(text)
    assert not {unicodedata.category(char) for char in shown} & UNSEEN
    assert not shown.lstrip().startswith(("::error", "::stop-commands"))
    assert "##[" not in shown
    assert "##vso[" not in shown
    assert visible(shown) == shown


def test_lines_when_several_then_each_is_cleaned_and_they_stay_lines() -> None:
    assert visible_lines("Traceback\n  ::error::x\n\x1bend") == "Traceback\n  : :error::x\n<U+001B>end\n"


def test_tree_when_cleaned_then_keys_and_values_at_any_depth() -> None:
    assert visible_tree({"a\x1b": [{"b": ("c\n",)}, 1, None, True]}) == {"a<U+001B>": [{"b": ["c "]}, 1, None, True]}


@given(st.dictionaries(st.text(), st.text() | st.sampled_from(["##[group]", "##vso[x]", "\x7f\x9b\u202e"])))
def test_json_when_any_text_is_in_it_then_ascii_without_commands_and_the_same_value(value: dict[str, str]) -> None:
    text = quoted_json(value, indent=2)
    assert json.loads(text) == value
    assert all(" " <= char <= "~" or char == "\n" for char in text)
    assert "##[" not in text
    assert "##vso[" not in text
