"""What needs no cloud: read specs, and say what is wrong with them.

In scope: what `gpukube validate` and the beginning of each command are made of. Out of scope: whatever calls a
cloud (commands).
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
        SpecError: Holds everything that is wrong in all files, also what the clouds refuse of the pools that are right
            so far, so that one run tells it all.
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
    """Say everything that can be said about specs offline; raises nothing for what is wrong with them.

    Args:
        paths: As those of `load`.
        sets: Overrides, `path=value`.
        environ: Variables for ${NAME}; the process's own when not given.
        strict: Take warnings for errors.
    """
    return examine(_read(paths, sets, environ), strict=strict)


def _read(paths: Sequence[str], sets: Sequence[str], environ: Mapping[str, str] | None) -> Reading:
    return read_specs(paths, stdin=sys.stdin, sets=sets, environ=os.environ if environ is None else environ)
