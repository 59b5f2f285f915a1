"""The config file of the MIG manager."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpukube.gpu.mig import find_profile, pci_ids, profiles
from gpukube.gpu.mig_parted import cut_name, layout_entry, standard_entries
from gpukube.gpu.models import MODELS, model_named
from gpukube.gpu.sharing import MigCut
from tests.unit.gpu.geometry import GPUS, holds

NAMES = [
    (MigCut("1g.5gb", "single"), "all-1g.5gb"),
    (MigCut("1g.24gb+me.all", "mixed"), "all-1g.24gb.me.all"),
    (MigCut("1g.24gb-me", "mixed"), "all-1g.24gb-me"),
    (MigCut("", "mixed", ("2g.10gb", "3g.20gb", "2g.10gb")), "mix-1x3g.20gb_2x2g.10gb"),
    (MigCut("", "single", ("1g.5gb",) * 6), "mix-6x1g.5gb"),
    (MigCut("", "mixed", ("1g.5gb+me", "1g.5gb")), "mix-1x1g.5gb.me_1x1g.5gb"),
]


@pytest.mark.parametrize(("cut", "name"), NAMES, ids=[name for _, name in NAMES])
def test_cut_name_when_a_cut_is_given_then_a_label_value_that_says_it(cut: MigCut, name: str) -> None:
    assert cut_name(cut) == name
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,61}[A-Za-z0-9]", name)


def test_cut_name_when_the_order_differs_then_the_same() -> None:
    assert cut_name(MigCut("", "mixed", ("1g.5gb", "2g.10gb"))) == cut_name(MigCut("", "mixed", ("2g.10gb", "1g.5gb")))


@given(st.data())
def test_cut_name_when_two_layouts_differ_then_their_names_do_and_both_are_label_values(data: st.DataObject) -> None:
    names = [kind.name for kind in GPUS[data.draw(st.sampled_from(sorted(GPUS)))]]
    layouts = st.lists(st.sampled_from(names), min_size=1, max_size=7).map(tuple)
    one, two = data.draw(layouts), data.draw(layouts)
    called = [cut_name(MigCut("", "mixed", layout)) for layout in (one, two)]
    assert (called[0] == called[1]) is (Counter(one) == Counter(two))
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9]", name) for name in called)


@pytest.mark.parametrize("model", GPUS)
def test_cut_name_when_a_layout_is_as_varied_as_can_be_then_short_enough_for_a_label(model: str) -> None:
    names = sorted(kind.name for kind in GPUS[model])
    varied = [kinds for size in (3, 4) for kinds in combinations(names, size) if holds(model, kinds)]
    assert max((len(cut_name(MigCut("", "mixed", kinds))) for kinds in varied), default=0) <= 63
    assert not any(holds(model, kinds) for kinds in combinations(names, 5))


def test_layout_entry_when_written_then_counts_on_all_gpus() -> None:
    entry = {"devices": "all", "mig-enabled": True, "mig-devices": {"3g.20gb": 1, "2g.10gb": 2}}
    for layout in (("2g.10gb", "3g.20gb", "2g.10gb"), ("3g.20gb", "2g.10gb", "2g.10gb")):
        [made] = layout_entry(layout)
        assert made == entry
        assert str(made) == str(entry)  # in this order, so that the same layout is the same text


def test_standard_entries_when_a_name_means_two_cuts_then_the_boards_tell_them_apart() -> None:
    assert standard_entries()["all-1g.10gb"] == [
        {
            "device-filter": [f"0x{d}10DE" for d in ["20B2", "20B5", "20F3", "20F5", "2330", "2331", "2322", "2324"]],
            "devices": "all",
            "mig-enabled": True,
            "mig-devices": {"1g.10gb": 7},
        },
        {
            "device-filter": [f"0x{d}10DE" for d in ["20B0", "20B1", "20F1", "20F6"]],
            "devices": "all",
            "mig-enabled": True,
            "mig-devices": {"1g.10gb": 4},
        },
    ]
    assert standard_entries()["all-1g.5gb.me"] == [
        {"devices": "all", "mig-enabled": True, "mig-devices": {"1g.5gb+me": 1}}
    ]
    assert standard_entries()["all-disabled"] == [{"devices": "all", "mig-enabled": False}]
    assert standard_entries()["all-enabled"] == [{"devices": "all", "mig-enabled": True, "mig-devices": {}}]


@pytest.mark.parametrize("model", [model for model in MODELS if pci_ids(model)], ids=str)
def test_standard_entries_when_applied_to_any_board_then_each_profile_as_often_as_it_fits(model: object) -> None:
    known = model_named(str(model))
    made = standard_entries()
    for profile in profiles(known):
        lines = made[f"all-{profile.name.replace('+', '.')}"]
        board = f"0x{pci_ids(known)[0]}10DE"
        [line] = [line for line in lines if board in line.get("device-filter", [board])]  # type: ignore[operator]  # data
        assert line["mig-devices"] == {profile.name: find_profile(known, profile.name).max_instances}


def test_standard_entries_when_boards_are_unknown_then_only_a_name_that_means_one_cut() -> None:
    made = standard_entries()
    assert made["all-1g.16gb"] == [{"devices": "all", "mig-enabled": True, "mig-devices": {"1g.16gb": 2}}]
    [quarter] = made["all-1g.24gb"]
    assert quarter["mig-devices"] == {"1g.24gb": 4}
    assert "0x2BB510DE" in str(quarter["device-filter"])
