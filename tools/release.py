"""Check that a tag can be released, and print its notes: `python tools/release.py v0.2.0`.

The version is in gpukube/__init__.py. A tag that says another, or that the changes do not tell of, is refused.
`python tools/release.py --bump 0.2.0` writes a version wherever one is: both packages, and the extra that names one.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
_TAG: Final = re.compile(r"v(\d+\.\d+\.\d+(?:rc\d+)?)")
_HEADING: Final = re.compile(r"^## (\S+)(?: - (\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)


def notes(tag: str, version: str, changes: str) -> str:
    """Return what the changes say of a release.

    Args:
        tag: As pushed, v0.2.0.
        version: In the code.
        changes: The text of CHANGELOG.md.

    Raises:
        ValueError: The tag must not be released; says why and what to do.
    """
    named = _TAG.fullmatch(tag)
    if named is None:
        message = f'the tag "{tag}" is no version: write v1.2.3, or v1.2.3rc1 for a candidate'
        raise ValueError(message)
    if named[1] != version:
        message = f'the tag is {tag} and gpukube/__init__.py has __version__ = "{version}": change one of them'
        raise ValueError(message)
    headings = list(_HEADING.finditer(changes))
    for heading, following in zip(headings, [*headings[1:], None], strict=True):
        if heading[1] != version:
            continue
        text = changes[heading.end() : following.start() if following else None].strip()
        if heading[2] and text:
            return text
    message = (
        f'CHANGELOG.md has no text under a heading "## {version} - YYYY-MM-DD": move what is under Unreleased there'
    )
    raise ValueError(message)


PLACES: Final = {
    "gpukube/__init__.py": r'(?<=^__version__ = ").+(?="$)',
    "sandbox/gpukube_sandbox/__init__.py": r'(?<=^__version__ = ").+(?="$)',
    "pyproject.toml": r'(?<=^sandbox = \["gpukube-sandbox==)[^"]+(?="\]$)',
}
"""File -> where its version is. tests/packaging compares them."""


def bump(version: str, root: Path = ROOT) -> None:
    """Write a version in all its places.

    Raises:
        ValueError: It is no version, or a place has none.
    """
    if _TAG.fullmatch(f"v{version}") is None:
        message = f'"{version}" is no version: write 1.2.3, or 1.2.3rc1 for a candidate'
        raise ValueError(message)
    for name, pattern in PLACES.items():
        text, count = re.subn(pattern, version, (root / name).read_text("utf-8"), flags=re.MULTILINE)
        if count != 1:
            message = f"{name} has {count} places with a version"
            raise ValueError(message)
        (root / name).write_text(text, "utf-8")


def main(tag: str, version_to_be: str = "") -> int:
    """Print the notes of a tag, or why it cannot be released; with --bump write a version."""
    version = re.search(r'^__version__ = "(.+)"$', (ROOT / "gpukube" / "__init__.py").read_text("utf-8"), re.MULTILINE)
    try:
        if tag == "--bump":
            bump(version_to_be)
            return 0
        print(notes(tag, version[1] if version else "", (ROOT / "CHANGELOG.md").read_text("utf-8")))
    except ValueError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
