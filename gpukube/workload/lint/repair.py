"""Alternates linting and fixing until nothing more can be fixed.

Pure. Out of scope: writing files.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpukube.workload.lint.check import lint
from gpukube.workload.lint.fixing import apply_edits
from gpukube.workload.manifests import read_manifests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.spec.source.files import Source
    from gpukube.workload.lint.edits import Edit
    from gpukube.workload.offers import PoolOffer

_ROUNDS: Final = 10
"""Maximum rounds: overlapping edits are applied one after another, and real files have only a few in one place."""


def fix(sources: Sequence[Source], *, offers: Sequence[PoolOffer] | None = None) -> tuple[Source, ...]:
    """Fix what can be fixed safely; skip findings that the manifests ignore.

    Args:
        sources: Texts with the names for positions.
        offers: Offers of a spec's pools; None without a spec.

    Returns:
        All texts, in order; those without fixes are unchanged.
    """
    now = tuple(sources)
    for _ in range(_ROUNDS):
        units: dict[str, list[tuple[Edit, ...]]] = {}
        for finding, edits in lint(now, offers=offers).edits.items():
            units.setdefault(finding.where.source, []).append(edits)
        fixed = tuple(_fixed(source, units.get(source.name, [])) for source in now)
        if fixed == now:
            break
        now = fixed
    return now


def _fixed(source: Source, units: Sequence[Sequence[Edit]]) -> Source:
    text = apply_edits(source.text, units) if units else source.text
    return replace(source, text=text) if text != source.text and _is_sound(source.text, text) else source


def _is_sound(before: str, after: str) -> bool:
    """Return whether a changed text still has the same objects, and no new problem."""
    old, new = read_manifests(before, ""), read_manifests(after, "")
    return [str(one) for one in old.manifests] == [str(one) for one in new.manifests] and len(new.findings) <= len(
        old.findings
    )
