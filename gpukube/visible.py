"""Makes text from outside safe to display: responses of clouds and clusters, labels, file names, arguments.

This is the only place where such text is cleaned. Everything that a person, a log, a pull request, or a CI annotation
reads goes through here; JSON and YAML, which quote, are written by `gpukube.cli.formats.data`.

It removes control characters (which control a terminal), bidirectional and zero-width characters (which make a name
look like another one), line breaks (which forge a log line), and the markers that CI systems interpret as commands
anywhere in a log:

- `::name::` at the start of a line, ignoring leading blanks, and `##[name]` anywhere
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
# Any text may end up at the start of a line, alone or after wrapping, so a preceding blank counts too.
_COMMANDS = re.compile(r"(?<!\S):(?=:[A-Za-z])|#(?=#(?:vso)?\[)")

_LIKE_LATIN: Final = ("CYRILLIC", "GREEK", "FULLWIDTH", "MATHEMATICAL")


def spell_out_lookalikes(text: str) -> str:
    """Spell out characters that look like ASCII in a value of the user's: `us<U+2011>east<U+2011>1`.

    Use it for values that are quoted because they are wrong, never for prose. It covers hyphens, blanks, quotes, and
    letters of alphabets that resemble Latin; accented letters and letters of other scripts stay.
    """
    return text if text.isascii() else "".join(map(_apart, text))


def visible(text: str) -> str:
    """Return the text on one line, with invisible characters spelled out: `<U+202E>`.

    Non-ASCII hyphens and quotes stay, since prose contains them: only characters without an appearance of their own
    are replaced. Use `spell_out_lookalikes` for values.
    """
    if not text.isprintable():
        text = "".join(map(_shown, _BREAKS.sub(" ", text)))
    # "::" may be part of an IPv6 address or a C++ name, so it is broken up only where a command could start.
    return _COMMANDS.sub(lambda found: f"{found[0]} ", text) if "::" in text or "##" in text else text


def visible_lines(text: str) -> str:
    """Clean each line of gpukube's own multi-line text, such as a trace."""
    return "".join(f"{visible(line)}\n" for line in text.splitlines())


def visible_tree(node: _T) -> _T:
    """Clean every string of a document, including keys; other values stay unchanged."""
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
    if isinstance(node, list | tuple):
        return [_cleaned(item) for item in node]
    if isinstance(node, (dict, Mapping)):  # testing dict first is faster
        return {_cleaned(key): _cleaned(value) for key, value in node.items()}
    return node
