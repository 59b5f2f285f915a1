"""Phrases that a US engineer would not write, in pages, code, captured screens and messages.

A finding that is right in its place stays with a reason on its line: `# english: reason` in code,
`<!-- english: reason -->` on a page. Single words are left to whoever reads.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PHRASES: Final = {
    r"(?:can|cannot|to) be had": "exists, is available, is supported",
    r"(?:is|are|was|were|be|been|unless|if) told": "knows, is configured, reports; by default",
    r"(?:is|are|was|were) said": "is reported, is printed; the message",
    r"unless said": "by default",
    r"(?:goes|go|going|gone) on with": "continues",
    r"stands? (?:in|on|under|at|below|above|there|beside)(?! for)": "is in, is under",
    r"too dear": "too expensive",
    r"rather too (?:little|few|much|many)": "erring on the low side",
    r"bears? (?:no|the|its|a)": "has, records, allows",
    r"as in life": "as on the real clouds",
    r"(?:as|is|are|was|were) promised": "matches the spec; expected",
    r"(?:what|that) (?:is|are) (?:already )?there": "existing",
    r"of ours": "of gpukube's",
    r"shall": "is to, should, must",
    r"without a word": "silently",
    r"for ever": "forever",
    r"anew": "again; recreate, rewrite",
    r"(?:is|are) held to": "is checked against",
    r"by (?:itself|themselves)": "on its own, automatically; or nothing",
    r"belongs? into": "belongs in",
    r"heals? (?:it|them|that|this)": "fixes it",
    r"drawn (?:specs?|pools?|examples?|cases?)": "random specs",
    r"(?:clouds?|clusters?|APIs?|servers?|services?|Helm) (?:is|are|was|were) asked": "gpukube calls, reads",
    r"answers? of (?:a|an|the) (?:clouds?|clusters?|servers?|services?|API)": "response from",
    r"(?:is|are) no (?:differences?|drift|failures?|signs?|proof|signature|bill|offer)": "is not a",
    r"than is meant": "than intended",
    r"takes? up (?:what|the)|taken up": "resumes from, reuses",
    r"at (?:its|their) birth|at birth": "at creation",
    r"(?:takes?|took|taken) (?:her|his|its|their|the) labels? off": "removes the labels",
    r"be gone on": "continue",
}
GAP: Final = r"""(?:[ \t]+|[ \t]*\n[ \t]*(?:[#>|][ \t]*)?|[ \t]*["'][ \t]*\n[ \t]*[frb]?["'][ \t]?)"""
"""A space, or where a comment, a paragraph or a text in two literals goes to the next line."""
EVERY: Final = re.compile("|".join(rf"\b(?:{phrase.replace(' ', GAP)})\b" for phrase in PHRASES), re.IGNORECASE)
ALLOWED: Final = re.compile(r"(?:#|<!--) english: \S+")
PARTS: Final = {
    "docs": ("*.md", "docs/**/*.md", "examples/**/*.md", "sandbox/*.md", "benchmarks/*.md"),
    "gpukube": ("gpukube/**/*.py",),
    "providers": ("providers/**/*.py",),
    "sandbox": ("sandbox/gpukube_sandbox/**/*.py",),
    "tools": ("tools/*.py",),
    "captured": ("tests/screens/expected/*", "tests/messages/*.md", "tests/workloads/*.md"),
}
GENERATED: Final = ("docs/codes.md", "docs/diagnostics/", "docs/spec.md", "docs/doctor.md", "docs/permissions.md")
"""Their texts are those of the code and of the captured messages, where each counts once."""
LEFT: Final = {"docs": 0, "gpukube": 0, "providers": 0, "sandbox": 0, "tools": 0, "captured": 0}
"""How many of each part have yet to be rewritten. Lower the numbers; do not raise one."""


@cache
def findings(part: str) -> tuple[str, ...]:
    """List what is found: file, line, phrase."""
    pages = sorted(page for pattern in PARTS[part] for page in ROOT.glob(pattern))
    texts = ((page.relative_to(ROOT).as_posix(), page.read_text("utf-8")) for page in pages)
    return tuple(found for name, text in texts if not name.startswith(GENERATED) for found in of_text(name, text))


def of_text(name: str, text: str) -> list[str]:
    found = []
    for match in EVERY.finditer(text):
        start, end = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.end())
        if not ALLOWED.search(text[start : end if end >= 0 else None]):
            phrase = " ".join(re.sub(r"""["'#\s]+""", " ", match[0]).split())
            found.append(f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {phrase} -> {suggestion(phrase)}")
    return found


def suggestion(phrase: str) -> str:
    return next(better for odd, better in PHRASES.items() if re.fullmatch(odd, phrase, re.IGNORECASE))


@pytest.mark.parametrize("part", PARTS)
def test_texts_when_searched_then_no_odd_phrase_is_new(part: str) -> None:
    found = findings(part)
    per_file = Counter(line.partition(":")[0] for line in found)
    assert len(found) <= LEFT[part], "\n".join([*found, f"{len(found)} in {len(per_file)} files"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"the chart cannot "\n    "be had"', ["cannot be had"]),
        ("# what is\n# there", ["what is there"]),
        ("It is\ntold.", ["is told"]),
        ("It runs by itself. <!-- english: alone -->", []),
        ("it stands in for the cloud", []),
    ],
)
def test_phrase_when_it_goes_over_a_line_or_is_allowed_then_so(text: str, expected: list[str]) -> None:
    assert [line.partition(": ")[2].partition(" ->")[0] for line in of_text("a", text)] == expected
