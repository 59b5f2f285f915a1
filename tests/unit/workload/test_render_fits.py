"""Whatever `workload render` writes for a pool has a place there, says `workload fit`, and lints without an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpukube.errors import SpecError
from gpukube.spec.source.files import Source
from gpukube.workload.fit.answers import find_fit
from gpukube.workload.fit.demand import read_demands
from gpukube.workload.fit.filling import ClusterView
from gpukube.workload.lint.check import lint
from gpukube.workload.manifests import read_manifests
from gpukube.workload.render.intent import Intent
from gpukube.workload.render.manifests import KINDS, render
from tests.unit.workload.specs import all_offers

if TYPE_CHECKING:
    from gpukube.workload.offers import PoolOffer


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PoolOffer]:
    return all_offers(tmp_path_factory.mktemp("spec"))


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_fit_when_a_manifest_is_rendered_then_it_has_a_place_and_lints(
    data: st.DataObject, pools: dict[str, PoolOffer]
) -> None:
    offer = pools[data.draw(st.sampled_from(sorted(pools)))]
    kind = data.draw(st.sampled_from(sorted(KINDS)))
    gpus = data.draw(st.sampled_from((1, 2, 3, 7, 8, 56)))
    resource = data.draw(st.sampled_from(sorted(offer.real.devices)))
    replicas = None if kind in {"pod", "kueue"} else data.draw(st.sampled_from((None, 1, 2, 5)))
    try:
        made = render(Intent(kind=kind, gpus=gpus, resource=resource, replicas=replicas), offer)
    except SpecError:
        return
    here = [other for other in pools.values() if other.desired.target.cluster.key == offer.desired.target.cluster.key]
    found = find_fit([ClusterView(key="c", offers=tuple(here))], read_demands(read_manifests(made.text, "-").manifests))
    # Where the autoscaler does not expect so many devices of an empty pool, all three say so.
    blind = any("does not expect" in note for note in made.notes)
    assert found.fits is not blind, [(str(answer.demand.template), answer.reasons) for answer in found.answers]
    judged = lint([Source("-", made.text)], offers=tuple(here))
    errors = {item.code for item in judged.findings if item.severity == "error"}
    assert errors == ({"from-zero-blind"} if blind else set()), made.text
    for answer in found.answers:
        assert not answer.rollout_blocked
        if answer.demand.pod.request.devices:
            assert {node.offer and node.offer.name for node in answer.placed.nodes} <= {offer.name}
            assert not blind or (answer.edit and answer.edit.text == "write nodes.autoscaling.min: 1")
