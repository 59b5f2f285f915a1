"""Text from outside, made safe to show: answers of clouds and clusters, labels, file names, arguments.

The one place where such text is cleaned. Everything that a person, a log, a pull request or a CI annotation reads goes
through here; JSON and YAML, which quote, are written by `gpukube.cli.formats.data`.

What it takes away: control characters (which steer a terminal), bidirectional and zero-width characters (which make a
name look like another one), line breaks (which forge a line of a log), and the markers that CI systems take for
commands wherever they stand in a log:

- `::name::` where a line begins, blanks before it ignored, and `##[name]` anywhere
  (actions/runner, src/Runner.Common/ActionCommand.cs: TryParseV2, TryParse);
- `##vso[name]` anywhere (microsoft/azure-pipelines-agent, src/Microsoft.VisualStudio.Services.Agent/Command.cs).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Final, TypeVar, cast

_T = TypeVar("_T")

_BREAKS = re.compile(r"[\t\n\v\f\r\x85\u2028\u2029]+")
# A text may come to stand at the beginning of a line, alone or after it was wrapped; so a blank before it counts too.
_COMMANDS = re.compile(r"(?<!\S):(?=:[A-Za-z])|#(?=#(?:vso)?\[)")

_LIKE_LATIN: Final = ("CYRILLIC", "GREEK", "FULLWIDTH", "MATHEMATICAL")


def spell_out_lookalikes(text: str) -> str:
    """Spell out characters that look like ASCII in a value of the user's: `us<U+2011>east<U+2011>1`.

    For values that are quoted because they are wrong, never for prose: hyphens, blanks, quotes and the letters of
    alphabets that look like ours. Letters with accents, and of other scripts, stay.
    """
    return text if text.isascii() else "".join(map(_apart, text))


def visible(text: str) -> str:
    """Return the text on one line, with what cannot be seen spelled out: `<U+202E>`.

    Non-ASCII hyphens and quotes that look like ASCII ones stay, as prose has them: only what has no appearance of its
    own is replaced here. `spell_out_lookalikes` is for values.
    """
    if not text.isprintable():
        text = "".join(map(_shown, _BREAKS.sub(" ", text)))
    # "::" may be half of an IPv6 address or a C++ name: only where a command could begin is it broken.
    return _COMMANDS.sub(lambda found: f"{found[0]} ", text) if "::" in text or "##" in text else text


def visible_lines(text: str) -> str:
    """Clean each line by itself: for text of several lines that is ours, such as a trace."""
    return "".join(f"{visible(line)}\n" for line in text.splitlines())


def visible_tree(node: _T) -> _T:
    """Clean every string of a document, keys too; other values stay as they are."""
    return cast("_T", _cleaned(node))


def _shown(char: str) -> str:
    return char if char.isprintable() else f"<U+{ord(char):04X}>"


def _apart(char: str) -> str:
    if char.isascii() or (char.isalpha() and not unicodedata.name(char, "").startswith(_LIKE_LATIN)):
        return char
    return f"<U+{ord(char):04X}>"


def _cleaned(node: object) -> object:
    if isinstance(node, str):
        return visible(node)
    if isinstance(node, Mapping):
        return {_cleaned(key): _cleaned(value) for key, value in node.items()}
    return [_cleaned(item) for item in node] if isinstance(node, list | tuple) else node
