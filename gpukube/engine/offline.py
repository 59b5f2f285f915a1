"""Reads and checks specs without any cloud.

In scope: `gpukube validate` and the start of each command. Out of scope: anything that calls a cloud (commands).
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from gpukube.engine.plan.prepare import examine
from gpukube.errors import SpecError
from gpukube.spec.loading.load import read_specs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.engine.plan.prepare import Validation
    from gpukube.spec.loading.load import LoadedSpec, Reading


def load(
    paths: Sequence[str], *, sets: Sequence[str] = (), environ: Mapping[str, str] | None = None
) -> tuple[LoadedSpec, ...]:
    """Load specs from files, directories, patterns or "-" (stdin), with overrides `path=value`.

    Raises:
        SpecError: All errors in all files, including the clouds' errors on pools that are valid so far, so that one run
            reports everything.
    """
    reading = _read(paths, sets, environ)
    if reading.is_right:
        return reading.specs
    raise SpecError.of(examine(reading).findings)


def validate(
    paths: Sequence[str],
    *,
    sets: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    strict: bool = False,
) -> Validation:
    """Return all findings on specs that need no cloud; does not raise for invalid specs.

    Args:
        paths: See `load`.
        sets: Overrides, `path=value`.
        environ: Variables for ${NAME}; the process's own if None.
        strict: Treat warnings as errors.
    """
    return examine(_read(paths, sets, environ), strict=strict)


def _read(paths: Sequence[str], sets: Sequence[str], environ: Mapping[str, str] | None) -> Reading:
    return read_specs(paths, stdin=sys.stdin, sets=sets, environ=os.environ if environ is None else environ)
