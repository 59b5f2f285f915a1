"""How few GPUs give the wanted instances."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpukube.gpu.mig import fits
from gpukube.gpu.mig_solver import MOST_INSTANCES, Packing, cut_alike, pack
from gpukube.gpu.models import model_named, parse_model
from gpukube.gpu.refusal import CatalogError
from tests.unit.gpu.geometry import GPUS, best_cover, holds

A100 = model_named("A100-40GB")
FOURS = ("3g.20gb", "1g.5gb", "1g.5gb", "1g.5gb", "1g.5gb")
ONE = ("1g.5gb",)
CASES: dict[str, tuple[str, dict[str, int], tuple[tuple[tuple[str, ...], int], ...]]] = {
    "9 x 1g and 2 x 3g": ("A100-40GB", {"1g.5gb": 9, "3g.20gb": 2}, ((FOURS, 2), (ONE, 1))),
    "nothing": ("A100-40GB", {}, ()),
    "none of it": ("A100-40GB", {"1g.5gb": 0}, ()),
    "one": ("A100-40GB", {"7g.40gb": 1}, ((("7g.40gb",), 1),)),
    "one more than fits": ("A100-40GB", {"1g.5gb": 8}, ((ONE * 7, 1), (ONE, 1))),
    "3g and 4g share a GPU": ("A100-40GB", {"3g.20gb": 3, "4g.20gb": 3}, ((("4g.20gb", "3g.20gb"), 3),)),
    "one +me each": ("A100-40GB", {"1g.5gb+me": 3}, ((("1g.5gb+me",), 3),)),
    "quarters": ("A30-24GB", {"1g.6gb": 6, "2g.12gb": 1}, ((("2g.12gb", "1g.6gb", "1g.6gb"), 1), (("1g.6gb",) * 4, 1))),
    "engines bind": (
        "RTXPRO6000-96GB",
        {"1g.24gb+me.all": 2, "1g.24gb": 4},
        ((("1g.24gb",) * 4, 1), (("1g.24gb+me.all",), 2)),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_pack_when_instances_are_wanted_then_these_gpus(case: str) -> None:
    model, wanted, layouts = CASES[case]
    packing = pack(model_named(model), wanted)
    assert packing == Packing(model, layouts)
    assert packing.gpus == sum(count for _, count in layouts) == best_cover(model, wanted)


def produced(packing: Packing) -> dict[str, int]:
    made: Counter[str] = Counter()
    for layout, count in packing.layouts:
        made.update({name: each * count for name, each in Counter(layout).items()})
    return dict(made)


@st.composite
def demands(draw: st.DrawFn, *, most: int, kinds: int) -> tuple[str, dict[str, int]]:
    model = draw(st.sampled_from(sorted(GPUS)))
    names = draw(st.lists(st.sampled_from([k.name for k in GPUS[model]]), min_size=1, max_size=kinds, unique=True))
    return model, {name: draw(st.integers(0, most)) for name in names}


@settings(max_examples=80)
@given(demands(most=4, kinds=3))
def test_pack_when_the_demand_is_small_then_as_few_as_brute_force_finds(case: tuple[str, dict[str, int]]) -> None:
    model, wanted = case
    assert pack(model_named(model), wanted).gpus == best_cover(model, wanted)


@settings(max_examples=40)
@given(demands(most=300, kinds=7))
def test_pack_when_the_demand_is_large_then_exactly_that_on_gpus_that_hold_it(
    case: tuple[str, dict[str, int]],
) -> None:
    model, wanted = case
    packing = pack(model_named(model), wanted)
    assert produced(packing) == {name: count for name, count in wanted.items() if count}
    assert all(holds(model, tuple(sorted(layout))) for layout, _ in packing.layouts)
    assert all(count > 0 for _, count in packing.layouts)
    fewer = {name: count - 1 for name, count in wanted.items() if count}
    assert pack(model_named(model), fewer).gpus <= packing.gpus
    twice = {name: 2 * count for name, count in wanted.items()}
    assert pack(model_named(model), twice).gpus <= 2 * packing.gpus


def test_pack_when_asked_in_another_order_then_the_same() -> None:
    wanted = {"1g.5gb": 11, "2g.10gb": 5, "3g.20gb": 3}
    assert pack(A100, wanted) == pack(A100, dict(reversed(wanted.items())))


def test_pack_when_a_million_is_wanted_then_exactly_that() -> None:
    wanted = {"1g.5gb": MOST_INSTANCES, "1g.10gb": 333_333, "2g.10gb": 77_777, "3g.20gb": 10_001, "4g.20gb": 123}
    assert produced(pack(A100, wanted)) == wanted


def test_pack_when_gpus_are_given_then_refused_only_beyond_them() -> None:
    wanted = {"3g.20gb": 5, "1g.5gb": 0}
    assert pack(A100, wanted, gpus=3).gpus == 3
    with pytest.raises(CatalogError, match=r"^5 x 3g.20gb need 3 x A100-40GB, and there are 2$") as caught:
        pack(A100, wanted, gpus=2)
    assert caught.value.code == "mig-layout"
    assert caught.value.fix == "use fewer or smaller instances, or 3 GPUs"
    with pytest.raises(CatalogError, match=r"^5 x 3g.20gb and 1 x 7g.40gb need 4 x"):
        pack(A100, {"3g.20gb": 5, "7g.40gb": 1}, gpus=0)


@pytest.mark.parametrize(
    ("model", "wanted", "code", "said"),
    [
        ("T4", {"1g.5gb": 1}, "mig-capable", "does not support MIG"),
        ("A100-40GB", {"1g.6gb": 1}, "mig-profile", "is not a MIG profile of A100-40GB"),
        ("A100-40GB", {"1g.5gb": -1}, "mig-layout", "-1 x 1g.5gb is out of range"),
        ("A100-40GB", {"1g.5gb": MOST_INSTANCES + 1}, "mig-layout", "1000001 x 1g.5gb is out of range"),
    ],
)
def test_pack_when_it_cannot_be_asked_for_then_says_why(
    model: str, wanted: dict[str, int], code: str, said: str
) -> None:
    for ask in (pack, cut_alike):
        with pytest.raises(CatalogError, match=said) as caught:
            ask(parse_model(model), wanted)
        assert caught.value.code == code
        assert caught.value.fix


ALIKE: dict[str, tuple[str, dict[str, int], tuple[str, ...], int]] = {
    "filled up": ("A100-40GB", {"1g.5gb": 9, "3g.20gb": 2}, FOURS, 3),
    "one profile": ("A100-40GB", {"2g.10gb": 7}, ("2g.10gb",) * 3, 3),
    "the larger ones where as many are needed": ("A100-40GB", {"1g.5gb": 1, "2g.10gb": 1}, ("2g.10gb",) * 3 + ONE, 1),
    "three kinds": ("A100-40GB", {"3g.20gb": 8, "2g.10gb": 16}, ("3g.20gb", "2g.10gb", "2g.10gb"), 8),
}


@pytest.mark.parametrize("case", ALIKE)
def test_cut_alike_when_all_gpus_have_one_layout_then_the_fewest(case: str) -> None:
    model, wanted, layout, gpus = ALIKE[case]
    packing = cut_alike(model_named(model), wanted)
    assert packing == Packing(model, ((layout, gpus),))
    assert gpus >= best_cover(model, wanted)


def test_cut_alike_when_nothing_is_wanted_then_no_gpu() -> None:
    assert cut_alike(A100, {"1g.5gb": 0}) == Packing("A100-40GB", ())


def test_cut_alike_when_no_gpu_holds_some_of_each_then_says_so() -> None:
    with pytest.raises(CatalogError, match=r"^one A100-40GB cannot hold 7g.40gb and 1g.5gb$") as caught:
        cut_alike(A100, {"1g.5gb": 1, "7g.40gb": 1})
    assert (caught.value.code, caught.value.fix) == ("mig-layout", "use a separate pool for each of them")
    assert "each profile" in caught.value.why


@settings(max_examples=50)
@given(demands(most=40, kinds=3))
def test_cut_alike_when_it_answers_then_enough_and_one_gpu_fewer_is_not(case: tuple[str, dict[str, int]]) -> None:
    model, wanted = case
    try:
        packing = cut_alike(model_named(model), wanted)
    except CatalogError:
        assert not fits(model_named(model), [name for name, count in wanted.items() if count])
        return
    made = produced(packing)
    assert all(made.get(name, 0) >= count for name, count in wanted.items())
    for layout, count in packing.layouts:
        short = {name: each * (count - 1) for name, each in Counter(layout).items()}
        assert any(short.get(name, 0) < asked for name, asked in wanted.items())


def test_packing_when_made_then_a_key_of_a_dict_and_closed() -> None:
    packing = pack(A100, {"1g.5gb": 1})
    assert {packing: 1}[Packing("A100-40GB", ((ONE, 1),))] == 1
    assert not hasattr(packing, "__dict__")
