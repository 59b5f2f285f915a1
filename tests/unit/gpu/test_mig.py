"""MIG profiles, counts and placements."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import combinations_with_replacement, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpukube.gpu.mig import (
    find_profile,
    fits,
    instances_per_gpu,
    is_mig_model,
    maximal_mixes,
    place_layout,
    profiles,
    resource_name,
)
from gpukube.gpu.models import MODELS, GpuModel, model_named, parse_model
from gpukube.gpu.refusal import CatalogError
from tests.unit.gpu.geometry import SEVEN_NAMES

MIG_MODELS = [model for model in MODELS if is_mig_model(model)]
SEVEN_SLICE = [model for model in MIG_MODELS if profiles(model)[-1].slice_width == 7]
A100 = model_named("A100-40GB")
RTX = model_named("RTXPRO6000-96GB")


def plain(model: GpuModel) -> list[str]:
    return [p.name for p in profiles(model) if not p.attribute]


@cache
def mixes(model: GpuModel) -> tuple[Counter[str], ...]:
    return tuple(Counter(mix) for mix in maximal_mixes(model))


@pytest.mark.parametrize("model", SEVEN_SLICE, ids=str)
def test_instances_when_a_seven_slice_gpu_then_7_4_3_2_1_1(model: GpuModel) -> None:
    names = SEVEN_NAMES[model.name].split()
    assert [instances_per_gpu(model, name) for name in names] == [7, 4, 3, 2, 1, 1]
    assert sorted(plain(model)) == sorted(names)
    widths = [find_profile(model, name).slice_width for name in names]
    assert widths == [1, 1, 2, 3, 4, 7]
    assert [find_profile(model, name).memory_slices for name in names[:2]] == [1, 2]


@pytest.mark.parametrize(
    ("model", "name", "count"),
    [
        ("A30-24GB", "1g.6gb", 4),
        ("A30-24GB", "2g.12gb", 2),
        ("A30-24GB", "4g.24gb", 1),
        ("A30-24GB", "2g.12gb+me", 1),
        ("RTXPRO6000-96GB", "1g.24gb", 4),
        ("RTXPRO6000-96GB", "1g.24gb-me", 4),
        ("RTXPRO6000-96GB", "1g.24gb+me.all", 1),
        ("RTXPRO6000-96GB", "2g.48gb", 2),
        ("RTXPRO6000-96GB", "4g.96gb", 1),
        ("RTXPRO4500-32GB", "1g.16gb", 2),
        ("A100-40GB", "1g.5gb+me", 1),
    ],
)
def test_instances_when_another_grid_or_an_attribute_then_as_nvidia_lists(model: str, name: str, count: int) -> None:
    assert instances_per_gpu(model_named(model), name) == count


@pytest.mark.parametrize(
    ("name", "media", "attribute"),
    [
        ("1g.24gb", False, ""),
        ("1g.24gb+me", True, "+me"),
        ("1g.24gb+me.all", True, "+me.all"),
        ("1g.24gb-me", False, "-me"),
        ("1g.24gb+gfx", False, "+gfx"),
    ],
)
def test_profile_when_it_has_an_attribute_then_is_told_apart(
    name: str,
    media: bool,  # noqa: FBT001 - a table column
    attribute: str,
) -> None:
    profile = find_profile(RTX, name)
    assert (profile.is_media_extension, profile.attribute) == (media, attribute)


@pytest.mark.parametrize(
    ("profile", "name"),
    [
        ("1g.5gb", "nvidia.com/mig-1g.5gb"),
        ("1g.5gb+me", "nvidia.com/mig-1g.5gb.me"),
        ("1g.24gb+gfx", "nvidia.com/mig-1g.24gb.gfx"),
        ("1g.24gb+me.all", "nvidia.com/mig-1g.24gb.me.all"),
        ("1g.24gb-me", "nvidia.com/mig-1g.24gb-me"),
    ],
)
def test_resource_name_when_the_profile_has_an_attribute_then_plus_becomes_a_dot(profile: str, name: str) -> None:
    assert resource_name(profile) == name


def test_resource_name_when_derived_for_all_then_no_two_profiles_of_a_gpu_share_it_and_63_is_enough() -> None:
    for model in MIG_MODELS:
        names = [resource_name(p) for p in profiles(model)]
        assert len(set(names)) == len(names)
        assert max(map(len, names)) + len(".shared") <= 63


@pytest.mark.parametrize("name", ["T4", "T4G", "V100-16GB", "P100", "P4", "K80", "A10", "A10G", "L4", "L40S"])
def test_find_profile_when_the_chip_has_no_mig_then_says_which_have(name: str) -> None:
    with pytest.raises(CatalogError, match="does not support MIG") as caught:
        find_profile(parse_model(name), "1g.5gb")
    assert caught.value.code == "mig-capable"
    assert "the chip has no MIG" in caught.value.why
    assert "A100-40GB" in caught.value.fix
    assert "A30-24GB" not in caught.value.fix


UNKNOWN = [
    ("A100-80GB", "1g.5gb", "did you mean 1g.10gb?", "a profile of A100-40GB"),
    ("A100-40GB", "2g.20gb", "did you mean 2g.10gb?", "A100-80GB"),
    ("A100-80GB", "1g.20gb+me", "did you mean 1g.10gb+me?", ""),
    ("H200-141GB", "MIG1g", "did you mean 1g.18gb?", ""),
    ("GB200-186GB", "1g.24gb", "did you mean 1g.23gb?", "H100-94GB"),
    ("A100-40GB", "3g.10gb", "did you mean 3g.20gb?", ""),
    ("A100-40GB", "7g.80gb", "did you mean 7g.40gb?", "a profile of A100-80GB, H100-80GB"),
    ("A100-40GB", "1G.5GB", "did you mean 1g.5gb?", ""),
    ("A100-40GB", "mig-1g.5gb", "did you mean 1g.5gb?", ""),
    ("A100-40GB", "nvidia.com/mig-1g.5gb", "did you mean 1g.5gb?", ""),
    ("A100-40GB", "1g.5gb.me", "did you mean 1g.5gb+me?", ""),
    ("A100-40GB", "MIG3g", "did you mean 3g.20gb?", ""),
    ("A100-40GB", "1c.3g.20gb", "did you mean 3g.20gb?", "whole GPU instances only"),
    ("H100-94GB", "3g.40gb", "did you mean 3g.47gb?", "A100-80GB"),
]


@pytest.mark.parametrize(("model", "text", "fix", "why"), UNKNOWN)
def test_find_profile_when_unknown_then_the_same_width_comes_first_and_all_are_named(
    model: str, text: str, fix: str, why: str
) -> None:
    with pytest.raises(CatalogError, match="is not a MIG profile of") as caught:
        find_profile(model_named(model), text)
    assert caught.value.code == "mig-profile"
    assert caught.value.fix.startswith(fix)
    assert all(p.name in caught.value.fix for p in profiles(model_named(model)))
    assert why in caught.value.why if why else caught.value.why == ""


MIXES = [
    ("4g+3g", ["4g.20gb", "3g.20gb"], True),
    ("all-balanced", ["1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb"], True),
    ("3g+2x2g", ["2g.10gb", "2g.10gb", "3g.20gb"], True),
    ("3x2g+1g", ["2g.10gb"] * 3 + ["1g.5gb"], True),
    ("double+6x1g", ["1g.10gb"] + ["1g.5gb"] * 6, True),
    ("me+6x1g", ["1g.5gb+me"] + ["1g.5gb"] * 6, True),
    ("nothing", [], True),
    ("3g+3g+1g", ["3g.20gb", "3g.20gb", "1g.5gb"], False),
    ("4g+4g", ["4g.20gb", "4g.20gb"], False),
    ("7g+1g", ["7g.40gb", "1g.5gb"], False),
    ("4g+3g+1g", ["4g.20gb", "3g.20gb", "1g.5gb"], False),
    ("8x1g", ["1g.5gb"] * 8, False),
    ("two media extensions", ["1g.5gb+me"] * 2, False),
]


@pytest.mark.parametrize(("layout", "expected"), [case[1:] for case in MIXES], ids=[case[0] for case in MIXES])
def test_fits_when_a_known_mix_then_as_the_mig_guide_says(layout: list[str], expected: bool) -> None:  # noqa: FBT001 - a table column
    assert fits(A100, layout) is expected


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (["1g.24gb+me.all", "1g.24gb-me", "2g.48gb-me"], True),
        (["1g.24gb+me.all", "1g.24gb"], False),
        (["1g.24gb+me", "1g.24gb+me.all"], False),
        (["2g.48gb", "1g.24gb+gfx", "1g.24gb+me"], True),
    ],
)
def test_fits_when_media_engines_run_out_then_false(layout: list[str], expected: bool) -> None:  # noqa: FBT001 - a table column
    assert fits(RTX, layout) is expected


def test_fits_when_a_profile_is_unknown_then_raises() -> None:
    with pytest.raises(CatalogError):
        fits(A100, ["1g.5gb", "9g.90gb"])


@pytest.mark.parametrize("model", MIG_MODELS, ids=str)
def test_fits_when_every_small_multiset_is_tried_then_exactly_those_within_a_maximal_mix(model: GpuModel) -> None:
    names = plain(model)
    most = max(len(mix) for mix in maximal_mixes(model))
    feasible = 0
    for size in range(1, most + 2):
        for layout in combinations_with_replacement(names, size):
            wanted = Counter(layout)
            expected = any(wanted <= mix for mix in mixes(model))
            assert fits(model, layout) is expected, layout
            feasible += expected
    assert feasible == {7: 77, 4: 9, 2: 3}[profiles(model)[-1].slice_width]


@pytest.mark.parametrize("model", SEVEN_SLICE, ids=str)
def test_maximal_mixes_when_a_seven_slice_gpu_then_28_within_seven_compute_slices(model: GpuModel) -> None:
    assert len(maximal_mixes(model)) == 28
    for mix in maximal_mixes(model):
        assert sum(find_profile(model, name).slice_width for name in mix) <= 7


def test_maximal_mixes_when_no_mig_then_none() -> None:
    uncut = [model for model in MODELS if not is_mig_model(model)]
    assert parse_model("T4") in uncut
    assert [model for model in uncut if maximal_mixes(model) or profiles(model)] == []


@st.composite
def layouts(draw: st.DrawFn) -> tuple[GpuModel, list[str]]:
    model = draw(st.sampled_from(MIG_MODELS))
    names = st.sampled_from([p.name for p in profiles(model)])
    return model, draw(st.lists(names, max_size=5))


@given(layouts())
def test_place_when_a_layout_is_given_then_ranges_are_disjoint_or_no_ranges_exist(
    case: tuple[GpuModel, list[str]],
) -> None:
    model, layout = case
    placed = place_layout(model, layout)
    wanted = [find_profile(model, name) for name in layout]
    if placed is None:
        ranges_exist = any(
            sum(p.size for p in wanted)
            == len({u for p, s in zip(wanted, at, strict=True) for u in range(s, s + p.size)})
            for at in product(*(p.starts for p in wanted))
        )
        media = sum(p.is_media_extension for p in wanted)
        whole = max(profiles(model), key=lambda p: p.size).engines
        used = [sum(column) for column in zip(*(p.engines for p in wanted), strict=False)]
        assert not ranges_exist or media > 1 or any(u > w for u, w in zip(used, whole, strict=False))
        return
    units = [unit for p in placed for unit in range(p.start, p.start + p.profile.size)]
    assert len(units) == len(set(units))
    assert sorted(p.profile.name for p in placed) == sorted(layout)
    assert all(p.start in p.profile.starts for p in placed)
    assert [p.profile.size for p in placed] == sorted((p.size for p in wanted), reverse=True)


@given(layouts())
def test_fits_when_reordered_or_reduced_then_stays_true(case: tuple[GpuModel, list[str]]) -> None:
    model, layout = case
    if fits(model, layout):
        assert fits(model, layout[::-1])
        assert all(fits(model, layout[:i] + layout[i + 1 :]) for i in range(len(layout)))
