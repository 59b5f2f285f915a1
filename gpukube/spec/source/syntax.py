"""Converts PyYAML's syntax errors to diagnostics.

In scope: the table from parser errors to messages and fixes. Out of scope: parsing.

PyYAML's two parsers word the same mistake differently ("expected ',' or ']'", "did not find expected ',' or ']'") and
place some at the end of the stream; the table matches both, and positions stay inside the text.
"""

from __future__ import annotations

import re
from typing import Final

import yaml

from gpukube.errors import Finding, Where

_LINE_BREAK: Final = re.compile("\r\n|[\r\n\x85\u2028\u2029]")

# (pattern for "context | problem", message, fix). {c}: character at the position, {at}: line:column of the start of
# the construct. The first match wins.
_ROWS: Final[tuple[tuple[str, str, str], ...]] = (
    (
        r"mapping values are not allowed",
        'unexpected ":"',
        'quote the value if it contains ": ", or check the indentation',
    ),
    (
        r"mapping keys are not allowed|block sequence entries are not allowed|sequence entries are not allowed",
        "unexpected list or mapping",
        "start it on a new line, indented deeper than its key",
    ),
    (r"cannot start any token.*<tab>", "unexpected tab in the indentation", "indent with spaces"),
    (r"cannot start any token", 'a value cannot start with "{c}"', "put the value in quotes"),
    (
        r"flow sequence \| .*',' or '\]'",
        'the list that starts with "[" at {at} needs "," or "]" here',
        'write "," between items and "]" at the end',
    ),
    (
        r"flow mapping \| .*',' or '\}'",
        'the mapping that starts with "{{" at {at} needs "," or "}}" here',
        'write "," between entries and "}}" at the end',
    ),
    (r"quoted scalar \| .*unexpected end", "the quote opened at {at} is never closed", "close the quote"),
    (r"quoted scalar \| .*document separator", "the quote opened at {at} is never closed", "close the quote"),
    (
        r"unknown escape character|escape sequence",
        "this escape does not exist in double quotes",
        r"use single quotes, or write \\ for one backslash",
    ),
    (
        r"scanning an (alias|anchor)",
        '"*" or "&" must be followed by the name of an anchor',
        "quote the value if it contains the character",
    ),
    (
        r"block scalar",
        'the line must end after "|" or ">"',
        "start the text on the next line, indented",
    ),
    (r"could not find expected ':'", "expected a `key: value` pair", 'write ":" and a space after the key'),
    (
        r"block mapping \| ",
        "this does not fit the mapping that starts at {at}",
        "align it with the keys of its mapping, and close quotes and brackets before it",
    ),
    (
        r"block collection \| ",
        "this does not fit the list that starts at {at}",
        'start it with "- " below the other items, or align it with the key it belongs to',
    ),
    (r"document start", "unexpected text after the end of a document", "start the next document with a line ---"),
    (r"tag", "a tag is not complete", 'quote the value if it contains "!"'),
    (r"directive|incompatible YAML document", "this %-directive is not supported", "remove the line"),
    (r"node content", 'a value is missing before "{c}"', "write the value, or remove the comma"),
)
_FALLBACK: Final = ("the YAML is invalid from here on", "check the indentation, quotes, and brackets around this place")


def place_of(text: str, offset: int, source: str) -> Where:
    """Return the position of a character, counting lines as YAML does (a lone carriage return ends one)."""
    lines = _LINE_BREAK.split(text[:offset])
    return Where(source, len(lines), len(lines[-1]) + 1)


def explain_syntax(error: yaml.YAMLError, text: str, source: str) -> Finding:
    """Convert a syntax error to a diagnostic whose position is inside the text."""
    lines = _LINE_BREAK.split(text)
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return Finding("yaml-syntax", Where(source, 1, 1), _FALLBACK[0], fix=_FALLBACK[1])
    mark, began = error.problem_mark, error.context_mark or error.problem_mark
    if "could not find expected ':'" in (error.problem or ""):
        mark = began  # both parsers notice it one line late
    line = min(mark.line, len(lines) - 1)
    column = min(mark.column, len(lines[line])) if line == mark.line else len(lines[line])
    character = lines[line][column : column + 1]
    said = f"{error.context or ''} | {error.problem or ''}{' <tab>' if character == chr(9) else ''}"
    message, fix = next(((m, f) for pattern, m, f in _ROWS if re.search(pattern, said)), _FALLBACK)
    if lines[line][max(column - 1, 0) : column + 1] == "${":
        message, fix = "in braces and brackets ${{...}} must be in quotes", 'write "${{NAME}}", with the quotes'
    words = {"c": character or "the end", "at": f"{began.line + 1}:{began.column + 1}"}
    return Finding("yaml-syntax", Where(source, line + 1, column + 1), message.format(**words), fix=fix.format(**words))
