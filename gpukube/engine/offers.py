"""What the pools of specs offer to pods, from files.

Imported only by commands that get a spec: it loads the models, and the rules of the clouds in the spec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.engine import offline
from gpukube.engine.plan.prepare import Filters, prepare
from gpukube.provider import load_provider
from gpukube.workload.offers import make_offers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.workload.offers import PoolOffer


def spec_offers(
    files: Sequence[str], *, sets: Sequence[str] = (), clusters: Sequence[str] = ()
) -> tuple[PoolOffer, ...]:
    """Describe what the pools of specs offer to pods.

    Args:
        files: Specs.
        sets: Overrides, `path=value`.
        clusters: Patterns of cluster keys; all if empty.

    Raises:
        SpecError: The specs have errors, or no cluster matches.
    """
    prepared = prepare(offline.load(files, sets=sets), Filters(tuple(clusters)))
    return make_offers((pool for pools in prepared.desired.values() for pool in pools), load_provider)
