"""Config entries when several runs change one release concurrently: those that a plan drops, and those others added.

In scope: pure functions on the entries of revisions. Out of scope: which entries pools need (shared_values).
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

from gpukube.cluster.release.shared_values import put
from gpukube.core.jsontree import tree

if TYPE_CHECKING:
    from collections.abc import Collection

    from gpukube.cluster.kube.releases import Release
    from gpukube.cluster.names import ReleaseKind
    from gpukube.cluster.release.plan import ReleasePlan


def dropped_entries(plan: ReleasePlan) -> frozenset[str]:
    """Return the entries that a plan knew and drops."""
    return frozenset(tree(plan.old_values, *plan.kind.entries).keys() - set(plan.keys))


def unseen_entries(other: Release, plan: ReleasePlan) -> Release:
    """Return another run's revision with only the entries that the plan did not know: their pools do not exist yet.

    Entries that the plan knew and dropped do not come back because another run kept them.
    """
    known = tree(plan.old_values, *plan.kind.entries).keys()
    return with_entries(other, plan.kind, tree(other.values, *plan.kind.entries).keys() - known)


def with_entries(release: Release, kind: ReleaseKind, entries: Collection[str]) -> Release:
    """Return a revision with only these of its entries."""
    values = copy.deepcopy(dict(release.values))
    put(values, kind.entries, {key: item for key, item in tree(values, *kind.entries).items() if key in entries})
    return replace(release, values=values)
