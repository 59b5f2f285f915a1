"""Manifests of workloads, read from files and judged: what `gpukube workload` does beyond the pure rules.

Lives here: reading. Must not live here: rules, what is shown; specs (`offers`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gpukube.spec.source.files import read_sources
from gpukube.workload.lint.check import lint
from gpukube.workload.manifests import LIMITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.spec.source.files import Source
    from gpukube.workload.lint.check import Linted
    from gpukube.workload.offers import PoolOffer


def lint_files(
    paths: Sequence[str], *, offers: Sequence[PoolOffer] | None = None, strict: bool = False
) -> tuple[Linted, tuple[Source, ...]]:
    """Put all rules to manifests.

    Args:
        paths: Files, directories, patterns, or "-" for stdin.
        offers: What the pools of a spec offer; None without a spec.
        strict: Take warnings for errors.

    Returns:
        What is found, and the texts in which it is.
    """
    sources, unreadable = read_sources(paths, sys.stdin, most=LIMITS.size)
    return lint(sources, offers=offers, strict=strict, problems=unreadable), sources
