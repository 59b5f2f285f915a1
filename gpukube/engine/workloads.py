"""Reads, checks, and fixes manifests of workloads: what `gpukube workload lint` does in addition to the pure rules.

In scope: reading and writing. Out of scope: rules, output, specs (`offers`).
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from gpukube.spec.source.files import read_sources
from gpukube.workload.manifests import LIMITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.errors import Finding
    from gpukube.spec.source.files import Source


def read_manifest_files(paths: Sequence[str]) -> tuple[tuple[Source, ...], tuple[Finding, ...]]:
    """Read manifests from files, directories, patterns, or "-" for stdin, with findings on what cannot be read."""
    return read_sources(paths, sys.stdin, most=LIMITS.size)


def write_fixed(before: Sequence[Source], after: Sequence[Source]) -> tuple[str, ...]:
    """Write the files whose text has changed, each atomically.

    Returns:
        Their names.

    Raises:
        OSError: Writing fails; files before it are written.
    """
    changed = [new for old, new in zip(before, after, strict=True) if old.text != new.text]
    for source in changed:
        place = Path(source.name).resolve()  # change the target of a link, and keep the link
        mark = b"\xef\xbb\xbf" if place.read_bytes().startswith(b"\xef\xbb\xbf") else b""
        handle, draft = tempfile.mkstemp(prefix=f".{place.name[:100]}.", dir=place.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(mark + source.text.encode())
            shutil.copymode(place, draft)
            Path(draft).replace(place)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
    return tuple(source.name for source in changed)
