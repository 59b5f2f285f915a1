"""Every feature of the spec is judged by every cloud, and no cloud judges what is no feature."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube.provider import FEATURES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Ability


def require_judged(abilities: Mapping[str, Ability]) -> None:
    """Compare both, and name the table to extend."""
    unknown, unjudged = abilities.keys() - {*FEATURES}, {*FEATURES} - abilities.keys()
    assert unknown == set(), (
        f"add these to FEATURES in gpukube/provider.py, and to _USES in gpukube/engine/plan/fidelity.py: {unknown}"
    )
    assert unjudged == set(), f"give these an ability in pool/fields.py of this cloud: {unjudged}"
