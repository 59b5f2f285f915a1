"""Whatever is rendered lints clean against its pools, and fits them: random pools and workloads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpukube.core.values import Nodes, Taint
from gpukube.errors import SpecError
from gpukube.provider import load_provider
from gpukube.spec.source.files import Source
from gpukube.workload.fit.answers import find_fit
from gpukube.workload.fit.demand import read_demands
from gpukube.workload.fit.filling import ClusterView
from gpukube.workload.lint.check import lint
from gpukube.workload.manifests import read_manifests
from gpukube.workload.offers import make_offers
from gpukube.workload.render.intent import Intent
from gpukube.workload.render.manifests import KINDS, render
from tests.unit.workload.specs import all_offers

if TYPE_CHECKING:
    from gpukube.workload.offers import PoolOffer

TAINTS = (
    Taint("nvidia.com/gpu", "present", "NoSchedule"),
    Taint("sku", "gpu", "NoSchedule"),
    Taint("team", "", "NoExecute"),
    Taint("soft", "yes", "PreferNoSchedule"),
)
COUNTS = st.none() | st.integers(1, 40)


class Pools(dict[str, "PoolOffer"]):
    """Offers by name, which hypothesis need not write out."""

    def __repr__(self) -> str:
        return "pools"


@st.composite
def sizes(draw: st.DrawFn) -> Nodes:
    """Fixed or autoscaled, from zero or not."""
    least, more, autoscaled = draw(st.integers(0, 2)), draw(st.integers(1, 4)), draw(st.booleans())
    return (
        Nodes(least, least, least + more, autoscaled=True) if autoscaled else Nodes(more, more, more, autoscaled=False)
    )


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PoolOffer]:
    return Pools(all_offers(tmp_path_factory.mktemp("pools")))


def varied(offer: PoolOffer, nodes: Nodes, taints: tuple[Taint, ...]) -> PoolOffer:
    """Make the pool of another size, with other taints."""
    desired = offer.desired
    target = replace(desired.target, nodes=nodes)
    promise = replace(desired.promise, nodes=nodes)
    (made,) = make_offers([replace(desired, target=target, promise=promise, effective_taints=taints)], load_provider)
    return made


def meant(intent: Intent) -> set[str]:
    """Name the findings on what is written out: several shares or instances, sizes that do not divide a node."""
    several = {"shared-request-many", "mig-many-instances", "gpu-stranded"} if intent.gpus > 1 else set()
    return several | ({"gpu-stranded"} if intent.cpu or intent.memory else set())


@settings(max_examples=150, deadline=None)
@given(
    picks=st.lists(st.tuples(st.integers(0, 99), sizes(), st.sets(st.sampled_from(TAINTS))), min_size=1, max_size=2),
    intent=st.builds(
        Intent,
        kind=st.sampled_from(KINDS),
        gpus=st.sampled_from((1, 1, 1, 2, 3, 7, 8, 56)),
        replicas=COUNTS,
        least=st.none() | st.integers(0, 10),
        most=COUNTS,
        cpu=st.sampled_from(("", "", "500m", "3")),
        memory=st.sampled_from(("", "", "1Gi", "20G")),
    ),
)
def test_rendered_when_checked_and_placed_then_nothing_is_wrong_and_all_fit(
    picks: list[tuple[int, Nodes, set[Taint]]], intent: Intent, pools: dict[str, PoolOffer]
) -> None:
    names = [sorted(pools)[index % len(pools)] for index, _, _ in picks]
    key = names[0].partition("/")[0]
    offers = [
        varied(pools[name], nodes, tuple(sorted(taints)))
        for name, (_, nodes, taints) in dict(zip(names, picks, strict=True)).items()
        if name.startswith(key)
    ]
    try:
        made = render(replace(intent, resource=min(offers[0].gpus)), offers[0], offers)
    except SpecError:
        return  # refusals are tested by themselves
    linted = lint([Source("-", made.text)], offers=offers)
    assert [found.render() for found in linted.findings if found.code not in meant(intent)] == [], made.text
    fit = find_fit(
        [ClusterView(key=key, offers=tuple(offers))], *read_demands(read_manifests(made.text, "-").manifests)
    )
    for answer in fit.answers:
        own = answer.demand.template.role not in {"ray-head", "ray-submitter"}
        assert answer.state in ({"now", "after-scale-up"} if own else {"elsewhere"}), made.text
        assert not answer.rollout_blocked, made.text
        assert not own or {node.offer and node.offer.name for node in answer.placed.nodes} <= {offers[0].name}
