"""A starter spec validates whatever was answered, and what stands against an answer is told at its flag."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from itertools import chain, combinations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpukube.engine.plan.prepare import prepare
from gpukube.engine.starter import (
    Answers,
    check_answers,
    flag_of,
    gpus_for,
    identity_fields,
    offered_counts,
    offered_profiles,
    render_starter,
)
from gpukube.spec.loading.load import load_specs

if TYPE_CHECKING:
    from gpukube.spec.loading.load import LoadedSpec

CLOUDS = ("eks", "aks", "gke")
IDENTITY = {
    "account": "111122223333",
    "region": "us-east-1",
    "subscription": "11111111-2222-3333-4444-555555555555",
    "resourceGroup": "ml",
    "project": "ml-prod",
    "location": "us-central1",
}


def answers(*providers: str, **more: object) -> Answers:
    keys = {page.path.rpartition(".")[2] for provider in providers for page in identity_fields(provider)}
    identity = {key: value for key, value in IDENTITY.items() if key in keys}
    given = Answers(providers, dict.fromkeys(providers, "train"), identity, gpu="A100-40GB")
    return replace(given, **more)  # type: ignore[arg-type] # test data


def load(text: str) -> LoadedSpec:
    (loaded,) = load_specs(["-"], stdin=io.StringIO(text), environ={})
    prepare([loaded])
    return loaded


PLACES = [*chain.from_iterable(combinations(CLOUDS, size) for size in (1, 2, 3)), ("gke", "eks")]


@pytest.mark.parametrize("providers", PLACES, ids=["+".join(place) for place in PLACES])
def test_starter_when_made_of_any_flags_then_validates_and_says_what_was_asked(providers: tuple[str, ...]) -> None:
    for gpu, mig in (("T4-16GB", ""), ("A100-40GB", ""), ("A100-40GB", "1g.5gb"), ("H100-80GB", "3g.40gb")):
        for replicas, spot, nodes in ((0, False, 1), (2, False, 0), (4, True, 3)):
            given = answers(*providers, gpu=gpu, mig=mig, replicas=replicas, spot=spot, nodes=nodes)
            assert check_answers(given, {}) == ()
            spec = load(render_starter(given)).spec
            (pool,) = spec.pools
            assert [cluster.provider for cluster in spec.clusters.values()] == list(providers)
            assert (pool.gpu and pool.gpu.model, pool.nodes and pool.nodes.count) == (gpu, nodes)
            assert (pool.sharing.mig.profile if pool.sharing.mig else "") == mig
            assert (pool.sharing.time_slicing.replicas if pool.sharing.time_slicing else 0) == replicas
            assert (pool.capacity.type == "spot") == spot
            assert len(pool.name) <= 10


def test_gpu_when_offered_then_a_starter_with_it_validates() -> None:
    for provider in CLOUDS:
        given = answers(provider, gpu="")
        offered = list(gpus_for(given))
        assert "T4-16GB" in offered
        for gpu in offered:
            load(render_starter(replace(given, gpu=gpu)))
    assert "RTXPRO4500-32GB" not in gpus_for(answers("eks")), "EKS sells it, and has no image that drives it"


def test_offers_when_a_profile_or_number_is_asked_for_then_are_fewer() -> None:
    both = answers("eks", "aks")
    assert "T4-16GB" in gpus_for(both)
    assert list(gpus_for(replace(both, mig="1g.5gb"))) == ["A100-40GB"]
    assert list(gpus_for(replace(both, count=3))) == []
    assert offered_counts("T4", ("eks", "aks")) == (1, 4)
    assert offered_counts("no such GPU", ("eks",)) == ()
    assert offered_counts("T4", ()) == ()
    assert offered_profiles("no such GPU") == offered_profiles("T4") == ()


def test_starter_when_its_suggestions_are_uncommented_then_still_validates() -> None:
    text = render_starter(answers(*CLOUDS))
    more = re.sub(r"^    # (\w+: )", r"    \1", text, flags=re.MULTILINE)
    assert more.count("\n    disk:") == more.count("\n    taints:") == 1
    (pool,) = load(more).spec.pools
    assert (pool.deletion_protection, pool.labels, len(pool.taints)) == (True, {"team": "vision"}, 1)
    scaled = text.replace("      count: 1\n      # instead of count: ", "      ")
    (pool,) = load(scaled).spec.pools
    assert pool.nodes
    assert pool.nodes.autoscaling


def test_starter_when_shown_then_fits_80_columns_and_names_the_owner() -> None:
    text = render_starter(answers(*CLOUDS, mig="1g.5gb", replicas=2, spot=True))
    assert max(map(len, text.splitlines())) <= 80
    assert load(text).spec.metadata.name == "train"
    assert load(render_starter(answers("aks", owner="ml"))).spec.metadata.name == "ml"


REFUSED = {
    "GPU": (answers("eks", gpu="H9"), "--gpu", "gpu-model"),
    "cut": (answers("eks", gpu="T4", mig="1g.5gb"), "--mig", "mig-capable"),
    "profile": (answers("aks", mig="1g.6gb"), "--mig", "mig-profile"),
    "shares": (answers("gke", replicas=1), "--replicas", "range"),
    "nodes": (answers("gke", nodes=-1), "--nodes", "range"),
    "account": (answers("eks", identity={**IDENTITY, "account": "1"}), "--account", "format"),
    "group": (answers("aks", identity={**IDENTITY, "resourceGroup": "ml."}), "--resource-group", "format"),
    "name": (answers("aks", names={"aks": "a/b"}), "--name", "format"),
    "owner": (answers("aks", owner="a b"), "--owner", "format"),
    "cloud": (answers("gcp", names={"gcp": "x"}), "--provider", "choice"),
    "variable": (answers("gke", identity={"project": "${P}", "location": "a"}), "--project", "env-missing"),
    "nothing yet but the profile": (Answers(mig="9g.5gb"), "--mig", "mig-profile"),
}


@pytest.mark.parametrize(("given", "flag", "code"), REFUSED.values(), ids=REFUSED)
def test_answer_when_wrong_then_told_at_its_flag(given: Answers, flag: str, code: str) -> None:
    assert (flag, code) in {(found.where.source, found.code) for found in check_answers(given, {})}


def test_answers_when_there_are_none_yet_then_nothing_stands_against_them() -> None:
    assert check_answers(Answers(), {}) == ()
    for provider in CLOUDS:
        assert check_answers(Answers((provider,)), {}) == ()
    assert check_answers(Answers(("aks",), mig="1g.10gb", count=2), {}) == ()


def test_variable_when_given_then_stays_one() -> None:
    given = answers("gke", identity={"project": "${P}", "location": "us-central1"})
    assert check_answers(given, {"P": "ml-prod"}) == ()
    assert "project: ${P}\n" in render_starter(given)


def test_flags_when_named_then_are_those_of_the_fields() -> None:
    assert [flag_of(page.path.rpartition(".")[2]) for page in identity_fields("aks")] == [
        "--subscription",
        "--resource-group",
    ]
    assert identity_fields("gcp") == ()


NAMES = st.text(min_size=1, max_size=12) | st.from_regex(r"[a-z][a-z0-9-]{0,30}[a-z0-9]", fullmatch=True)


@settings(max_examples=60)
@given(
    providers=st.lists(st.sampled_from(CLOUDS), min_size=1, unique=True),
    name=NAMES,
    owner=st.just("") | NAMES,
    text=NAMES,
    gpu=st.sampled_from(["T4", "a100-80gb", "H100-NVL", "nvidia-l4", "B200", "x"]),
    nodes=st.integers(0, 5),
)
def test_starter_when_nothing_stands_against_the_answers_then_the_text_validates(  # noqa: PLR0913, PLR0917 - one per answer
    providers: list[str], name: str, owner: str, text: str, gpu: str, nodes: int
) -> None:
    identity = {**IDENTITY, "project": text} if "gke" in providers else IDENTITY
    names = dict.fromkeys(providers, name)
    given = answers(*providers, names=names, identity=identity, owner=owner, gpu=gpu, nodes=nodes)
    if check_answers(given, {}) == ():
        spec = load(render_starter(given)).spec
        assert [cluster.name for cluster in spec.clusters.values()] == [name] * len(providers)
        assert spec.metadata.name == (owner or name)
