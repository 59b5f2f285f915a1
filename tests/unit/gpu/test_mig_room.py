"""What still fits, what order does, and why something does not go on."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpukube.gpu.mig import Placement, find_profile, fits, maximal_mixes, pci_ids, place_layout, profiles
from gpukube.gpu.mig_room import can_block, explain_misfit, largest_fit, room_left, stranded_profiles
from gpukube.gpu.models import MODELS, model_named
from gpukube.gpu.refusal import CatalogError
from tests.unit.gpu.geometry import GPUS, MIXES_OF_SEVEN, holds, most

A100 = model_named("A100-40GB")
RTX = model_named("RTXPRO6000-96GB")


def at(*placed: tuple[str, int]) -> list[Placement]:
    return [Placement(find_profile(A100, name), start) for name, start in placed]


@pytest.mark.parametrize("model", GPUS)
def test_profiles_when_compared_with_the_guide_then_the_same_places_and_counts(model: str) -> None:
    known = {p.name: p for p in profiles(model_named(model))}
    assert known.keys() == {kind.name for kind in GPUS[model]}
    for kind in GPUS[model]:
        profile = known[kind.name]
        assert (profile.starts, profile.size) == (kind.starts, kind.size)
        assert profile.max_instances == most(model, kind.name)


@pytest.mark.parametrize("model", GPUS)
def test_fits_when_every_small_layout_is_tried_then_as_brute_force_says(model: str) -> None:
    names = [kind.name for kind in GPUS[model]]
    for size in range(1, 4):
        for layout in combinations_with_replacement(names, size):
            assert fits(model_named(model), layout) is holds(model, tuple(sorted(layout))), layout


@pytest.mark.parametrize("model", [model for model, kinds in GPUS.items() if len(kinds[0].starts) == 7])
def test_mixes_when_compared_with_the_published_ones_then_the_same(model: str) -> None:
    letters = dict(zip([kind.name for kind in GPUS[model]], "1d2347", strict=False))
    found = {"".join(sorted(letters[name] for name in mix)) for mix in maximal_mixes(model_named(model))}
    assert found == MIXES_OF_SEVEN


ROOM: dict[str, tuple[list[Placement], str, str]] = {
    "an empty GPU": ([], "7 1 4 3 2 1 1", ""),
    "3g in front": (at(("3g.20gb", 0)), "3 1 2 1 1 0 0", "4g.20gb"),
    "3g behind": (at(("3g.20gb", 4)), "4 1 2 2 1 1 0", ""),
    "4g": (at(("4g.20gb", 0)), "3 1 2 1 1 0 0", ""),
    "both 3g": (at(("3g.20gb", 0), ("3g.20gb", 4)), "0 0 0 0 0 0 0", ""),
    "7g": (at(("7g.40gb", 0)), "0 0 0 0 0 0 0", ""),
    "small ones spread out": (at(("1g.5gb", 0), ("1g.5gb", 4)), "5 1 2 1 0 0 0", "3g.20gb 4g.20gb"),
    "the media engines are taken": (at(("1g.5gb+me", 6)), "6 0 3 3 1 1 0", ""),
    "2g in the middle": (at(("2g.10gb", 2)), "5 1 3 2 1 0 0", "4g.20gb"),
}
ORDER = ["1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"]


@pytest.mark.parametrize("case", ROOM)
def test_room_when_instances_are_there_then_how_many_more_and_what_only_their_places_keep_out(case: str) -> None:
    live, counts, stranded = ROOM[case]
    assert room_left(A100, live) == {n: int(c) for n, c in zip(ORDER, counts.split(), strict=True) if c != "0"}
    assert stranded_profiles(A100, live) == tuple(stranded.split())


@st.composite
def live_gpus(draw: st.DrawFn) -> tuple[str, list[tuple[str, int]]]:
    model = draw(st.sampled_from(sorted(GPUS)))
    placed: list[tuple[str, int]] = []
    taken: set[int] = set()
    for kind in draw(st.lists(st.sampled_from(GPUS[model]), max_size=4)):
        free = [s for s in kind.starts if not taken & set(range(s, s + kind.size))]
        held = tuple(sorted([*(name for name, _ in placed), kind.name]))
        if free and holds(model, held):
            start = draw(st.sampled_from(free))
            placed.append((kind.name, start))
            taken |= set(range(start, start + kind.size))
    return model, placed


@given(live_gpus())
def test_room_when_any_instances_are_there_then_as_trying_every_free_place_says(
    case: tuple[str, list[tuple[str, int]]],
) -> None:
    name, placed = case
    model = model_named(name)
    live = [Placement(find_profile(model, profile), start) for profile, start in placed]
    room = room_left(model, live)
    taken = {unit for placement in live for unit in placement.units}
    held = [profile for profile, _ in placed]
    for kind in GPUS[name]:
        free = [s for s in kind.starts if not taken & set(range(s, s + kind.size))]
        allowed = holds(name, tuple(sorted([*held, kind.name]))) or not _engines_full(name, [*held, kind.name])
        assert (kind.name in room) is (bool(free) and allowed)
    assert set(stranded_profiles(model, live)) == {
        kind.name for kind in GPUS[name] if holds(name, tuple(sorted([*held, kind.name]))) and kind.name not in room
    }


def _engines_full(model: str, names: list[str]) -> bool:
    kinds = [next(kind for kind in GPUS[model] if kind.name == name) for name in names]
    whole = max(GPUS[model], key=lambda kind: kind.size).engines
    over = any(whole) and any(sum(kind.engines[i] for kind in kinds) > whole[i] for i in range(4))
    return over or sum(kind.special for kind in kinds) > 1


@pytest.mark.parametrize(
    ("order", "blocked"),
    [
        ((), False),
        (("3g.20gb", "4g.20gb"), True),
        (("4g.20gb", "3g.20gb"), False),
        (("1g.5gb", "4g.20gb"), True),
        (("3g.20gb", "3g.20gb"), False),
        (("1g.5gb",) * 7, False),
        (("3g.20gb", "2g.10gb", "2g.10gb"), True),
        (("7g.40gb", "1g.5gb"), True),
    ],
)
def test_can_block_when_instances_are_made_in_an_order_then_tells_whether_one_may_find_no_place(
    order: tuple[str, ...],
    blocked: bool,  # noqa: FBT001 - a table column
) -> None:
    assert can_block(A100, order) is blocked


def test_can_block_when_any_order_is_safe_then_largest_first_is() -> None:
    for mix in (mix for mix in maximal_mixes(A100) if len(mix) < 5):
        placed = place_layout(A100, mix)
        assert placed is not None
        safe = any(not can_block(A100, order) for order in set(permutations(mix)))
        assert can_block(A100, [placement.profile.name for placement in placed]) is not safe


PLACES = (
    "no placement fits all: of 8 units of memory, 4g.20gb starts at 0 and needs 4; "
    "2g.10gb starts at 0, 2, 4 and needs 2"
)
MISFITS = {
    "it fits": (A100, ["3g.20gb", "4g.20gb"], ""),
    "nothing": (A100, [], ""),
    "too often": (A100, ["4g.20gb", "4g.20gb"], "1 x 4g.20gb is the maximum on one A100-40GB"),
    "eight": (A100, ["1g.5gb"] * 8, "7 x 1g.5gb is the maximum on one A100-40GB"),
    "two media extensions": (
        RTX,
        ["1g.24gb+me", "1g.24gb+me.all"],
        "only one instance of a GPU can have the media engines (+me)",
    ),
    "too much memory": (
        A100,
        ["3g.20gb", "3g.20gb", "1g.5gb"],
        "together they need 9 units of memory, but one A100-40GB has 8",
    ),
    "too many engines": (
        RTX,
        ["1g.24gb+me.all", "1g.24gb"],
        "together they need 5 NVDEC of 4, 5 NVENC of 4, 5 JPEG of 4",
    ),
    "it fits just so": (A100, ["2g.10gb", "2g.10gb", "2g.10gb", "1g.10gb"], ""),
    "places overlap": (
        A100,
        ["4g.20gb", "2g.10gb", "2g.10gb"],
        PLACES,
    ),
}


@pytest.mark.parametrize("case", MISFITS)
def test_explain_misfit_when_a_layout_is_judged_then_the_first_reason(case: str) -> None:
    model, layout, said = MISFITS[case]
    assert explain_misfit(model, layout) == said


@pytest.mark.parametrize(
    ("layout", "kept"),
    [
        (["1g.5gb", "3g.20gb", "3g.20gb"], ("3g.20gb", "3g.20gb")),
        (["1g.5gb", "7g.40gb"], ("7g.40gb",)),
        (["4g.20gb", "2g.10gb", "2g.10gb", "1g.5gb"], ("4g.20gb", "2g.10gb", "1g.5gb")),
        (["1g.5gb", "2g.10gb"], ("2g.10gb", "1g.5gb")),
        ([], ()),
    ],
)
def test_largest_fit_when_a_layout_is_too_much_then_the_large_ones_stay(
    layout: list[str], kept: tuple[str, ...]
) -> None:
    assert largest_fit(A100, layout) == kept


@given(st.data())
def test_explain_misfit_when_given_anything_then_says_something_exactly_when_it_does_not_fit(
    data: st.DataObject,
) -> None:
    name = data.draw(st.sampled_from(sorted(GPUS)))
    layout = data.draw(st.lists(st.sampled_from([kind.name for kind in GPUS[name]]), max_size=6))
    model = model_named(name)
    assert (explain_misfit(model, layout) == "") is holds(name, tuple(sorted(layout)))
    kept = largest_fit(model, layout)
    assert holds(name, tuple(sorted(kept)))
    assert not Counter(kept) - Counter(layout)
    assert (Counter(kept) == Counter(layout)) is holds(name, tuple(sorted(layout)))


@pytest.mark.parametrize("ask", [explain_misfit, largest_fit, can_block])
def test_questions_when_a_profile_is_unknown_then_refused(ask: object) -> None:
    with pytest.raises(CatalogError):
        ask(A100, ["9g.90gb"])  # type: ignore[operator]  # one of three functions of one shape


def test_pci_ids_when_known_then_four_hex_digits_and_nobodys_else() -> None:
    seen: Counter[str] = Counter()
    for name in GPUS:
        seen.update(pci_ids(model_named(name)))
    assert max(seen.values()) == 1
    assert all(len(device) == 4 and int(device, 16) for device in seen)
    assert pci_ids(A100) == ("20B0", "20B1", "20F1", "20F6")
    assert [model.name for model in MODELS if model.name not in GPUS and pci_ids(model)] == []


@pytest.mark.parametrize("value", [find_profile(A100, "1g.5gb"), *at(("3g.20gb", 4))], ids=["profile", "placement"])
def test_values_when_made_then_keys_of_a_dict_and_closed(value: object) -> None:
    assert {value: 1}[value] == 1
    assert not hasattr(value, "__dict__")
