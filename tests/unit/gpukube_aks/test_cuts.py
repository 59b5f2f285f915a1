"""AKS's five cuts against the MIG tables: the same names, the plain profiles, the numbers of the AKS guide."""

from __future__ import annotations

import pytest

from gpukube.gpu.catalog import machines, parse_model
from gpukube.gpu.mig import find_profile, profiles
from gpukube_aks.facts.partitions import CUTS, can_cut, cut_value, profile_name
from tests.builders import make_target

# docs: aks/gpu-multi-instance; Azure/AgentBaker e2e for the NC A100 sizes
TOTALS = {
    "Standard_ND96asr_v4": 56,
    "Standard_ND96amsr_A100_v4": 56,
    "Standard_NC24ads_A100_v4": 7,
    "Standard_NC48ads_A100_v4": 14,
    "Standard_NC96ads_A100_v4": 28,
    "Standard_NC40ads_H100_v5": 7,
    "Standard_NC80adis_H100_v5": 14,
    "Standard_ND96isr_H100_v5": 56,
    "Standard_ND96isr_H200_v5": 56,
}
INSTANCES = {"MIG1g": 7, "MIG2g": 3, "MIG3g": 2, "MIG4g": 1, "MIG7g": 1}


@pytest.mark.parametrize("model", CUTS)
@pytest.mark.parametrize("value", INSTANCES)
def test_cut_when_looked_up_is_the_plain_profile_of_its_width(model: str, value: str) -> None:
    profile = find_profile(parse_model(model), CUTS[model][value])

    assert not profile.attribute
    assert (profile.slice_width, profile.memory_slices) != (1, 2)
    assert (f"MIG{profile.slice_width}g", profile.max_instances) == (value, INSTANCES[value])


@pytest.mark.parametrize("model", CUTS)
def test_cuts_when_compared_with_the_mig_tables_miss_no_plain_profile(model: str) -> None:
    plain = {
        p.name for p in profiles(parse_model(model)) if not p.attribute and (p.slice_width, p.memory_slices) != (1, 2)
    }

    assert set(CUTS[model].values()) == plain


@pytest.mark.parametrize("size", TOTALS)
def test_smallest_cut_when_multiplied_gives_the_documented_total(size: str) -> None:
    machine = make_target(size).machine
    profile = find_profile(machine.model, CUTS[machine.model.name]["MIG1g"])

    assert can_cut(machine)
    assert machine.devices * profile.max_instances == TOTALS[size]


def test_can_cut_when_asked_of_every_size_is_true_for_a100_h100_and_h200_only() -> None:
    cut = {machine.name for machine in machines("aks") if can_cut(machine)}

    assert cut == TOTALS.keys() | {"Standard_ND96is_H100_v5"}


def test_names_when_translated_there_and_back_are_the_same() -> None:
    assert cut_value("A100-40GB", "1g.5gb") == "MIG1g"
    assert profile_name("A100-40GB", "MIG1g") == "1g.5gb"
    assert cut_value("A100-40GB", "1g.10gb") is None
    assert profile_name("T4-16GB", "MIG1g") is None
