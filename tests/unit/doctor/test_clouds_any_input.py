"""Whatever a cloud answers, the checks of its pools end without an error of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpukube.doctor.check import examine
from gpukube.doctor.checks.clouds import CHECKS, cloud_checks
from gpukube_aks.pool.observe import observe_pool as observe_aks
from gpukube_eks.pool.observe import observe_group as observe_eks
from gpukube_gke.pool.observe import observe_pool as observe_gke
from tests.unit.doctor.live_pools import aks_pool, eks_pool, evidence_of, gke_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpukube.core.values import Observed

Json = dict[str, object]
JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2**40)
    | st.text(max_size=8)
    | st.sampled_from(["4g.20gb", "1.2", "Spot"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=6), inner, max_size=2),
    max_leaves=4,
)
TEMPLATES: dict[str, tuple[Mapping[str, object], Callable[[Json], Observed]]] = {
    "aks": (aks_pool(gpuInstanceProfile="MIG1g", scaleSetPriority="Spot", spotMaxPrice=0.5).native, observe_aks),
    "eks": (eks_pool(labels={"nvidia.com/mig.config": "all-1g.5gb"}).native, lambda raw: observe_eks(raw, {}, {})),
    "gke": (gke_pool({"gpuSharingConfig": {"gpuSharingStrategy": "MPS"}}).native, observe_gke),
}


def members(value: object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """List the paths of all members of an object and of those inside it."""
    if not isinstance(value, dict):
        return []
    return [place for key, below in value.items() for place in ((*path, key), *members(below, (*path, key)))]


def replaced(value: object, path: tuple[str, ...], junk: object) -> object:
    """Copy an object with another member at a path."""
    if not path or not isinstance(value, dict):
        return junk
    return {**value, path[0]: replaced(value.get(path[0]), path[1:], junk)}


@pytest.mark.parametrize("provider", TEMPLATES)
@given(data=st.data())
def test_checks_when_members_are_anything_then_they_end_and_tell_lines(provider: str, data: st.DataObject) -> None:
    template, observe = TEMPLATES[provider]
    native: object = dict(template)
    for place in data.draw(st.lists(st.sampled_from(members(native)), min_size=1, max_size=3, unique=True)):
        native = replaced(native, place, data.draw(JUNK))
    assert isinstance(native, dict)
    evidence = evidence_of(provider, observe(native))

    for found in examine(evidence, (*CHECKS, *cloud_checks(evidence.provider))).found:
        assert found.finding.seen
        assert found.finding.fix
