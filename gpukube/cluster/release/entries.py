"""Config entries when several runs change one release concurrently: those that a plan drops, and those others added.

In scope: the entries of revisions, without calls. Out of scope: which entries pools need (shared_values).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpukube.cluster.release.shared_values import put

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from gpukube.cluster.kube.releases import Release
    from gpukube.cluster.names import ReleaseKind
    from gpukube.cluster.release.plan import ReleasePlan


def dropped_entries(plan: ReleasePlan) -> frozenset[str]:
    """Return the entries that a plan knew and drops."""
    return frozenset(plan.kind.entries_in(plan.old_values).keys() - set(plan.keys))


@dataclass(slots=True)
class Overwritten:
    """What other runs did to the entries while this run upgraded the release, collected over its attempts.

    Helm has no compare-and-set, so an upgrade can overwrite a revision that its plan did not know. The next plan then
    adds what that revision added, and drops what it dropped: this run only carried it along.

    Attributes:
        dropped: Entries that this run or an overwritten revision dropped.
        revisions: Overwritten revisions, each with only the entries that this run's plan did not know: their pools do
            not exist yet.
    """

    dropped: frozenset[str]
    revisions: tuple[Release, ...] = ()

    def add(self, plan: ReleasePlan, missed: Sequence[Release]) -> None:
        """Add the revisions that one upgrade overwrote, oldest first.

        Args:
            plan: The plan of that upgrade.
            missed: The revisions.
        """
        entries_in = plan.kind.entries_in
        known = entries_in(plan.old_values).keys()
        self.revisions += tuple(with_entries(it, plan.kind, entries_in(it.values).keys() - known) for it in missed)
        if missed:  # the newest one decides: it may have restored what one before it dropped
            self.dropped |= known - entries_in(missed[-1].values).keys()


def with_entries(release: Release, kind: ReleaseKind, entries: Collection[str]) -> Release:
    """Return a revision with only these of its entries."""
    if not kind.entries:
        return release
    values = copy.deepcopy(dict(release.values))
    put(values, kind.entries, {key: item for key, item in kind.entries_in(values).items() if key in entries})
    return replace(release, values=values)
