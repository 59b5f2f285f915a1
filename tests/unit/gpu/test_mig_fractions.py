"""One fraction under the names it has on other models."""

from __future__ import annotations

from fractions import Fraction

import pytest

from gpukube.gpu.mig import find_profile, profiles
from gpukube.gpu.mig_fractions import fraction_of, same_fraction, same_fractions
from gpukube.gpu.models import model_named, parse_model
from gpukube.gpu.refusal import CatalogError
from tests.unit.gpu.geometry import GPUS, SEVEN_NAMES

COLUMNS = range(6)


@pytest.mark.parametrize("column", COLUMNS)
def test_same_fractions_when_on_seven_slices_then_the_column_of_the_guide(column: int) -> None:
    names = {model: row.split()[column] for model, row in SEVEN_NAMES.items()}
    for model, name in names.items():
        found = same_fractions(model_named(model), name)
        assert {key: value for key, value in found.items() if key in SEVEN_NAMES} == names


CASES = [
    ("A100-40GB", "1g.5gb", "A30-24GB", None),
    ("A100-40GB", "1g.5gb+me", "H100-80GB", "1g.10gb+me"),
    ("A100-40GB", "1g.10gb", "A100-80GB", "1g.20gb"),
    ("A100-80GB", "1g.10gb", "A100-40GB", "1g.5gb"),
    ("A30-24GB", "1g.6gb", "RTXPRO6000-96GB", "1g.24gb"),
    ("A30-24GB", "2g.12gb", "RTXPRO4500-32GB", "1g.16gb"),
    ("A30-24GB", "2g.12gb+me", "RTXPRO6000-96GB", None),
    ("RTXPRO6000-96GB", "1g.24gb-me", "RTXPRO5000-48GB", None),
    ("RTXPRO6000-96GB", "2g.48gb-me", "RTXPRO5000-48GB", "1g.24gb-me"),
    ("RTXPRO6000-96GB", "4g.96gb+gfx", "RTXPRO5000-48GB", "2g.48gb+gfx"),
    ("A100-40GB", "7g.40gb", "A30-24GB", "4g.24gb"),
    ("A100-40GB", "7g.40gb", "T4-16GB", None),
]


@pytest.mark.parametrize(("model", "profile", "other", "name"), CASES)
def test_same_fraction_when_the_other_model_has_it_then_its_name_there(
    model: str, profile: str, other: str, name: str | None
) -> None:
    found = same_fraction(model_named(model), profile, model_named(other))
    assert (found.name if found else None) == name


def test_fractions_when_taken_then_shares_of_compute_and_of_memory() -> None:
    shares = {p.name: fraction_of(p) for p in profiles(model_named("A100-40GB"))}
    assert shares["1g.5gb"] == (Fraction(1, 7), Fraction(1, 8))
    assert shares["1g.10gb"] == (Fraction(1, 7), Fraction(1, 4))
    assert shares["3g.20gb"] == (Fraction(3, 7), Fraction(1, 2))
    assert shares["7g.40gb"] == (Fraction(1), Fraction(1))
    assert fraction_of(find_profile(model_named("RTXPRO6000-96GB"), "1g.24gb")) == (Fraction(1, 4), Fraction(1, 4))


@pytest.mark.parametrize("model", GPUS)
def test_same_fraction_when_there_and_back_then_the_same_profile(model: str) -> None:
    here = model_named(model)
    for profile in profiles(here):
        for other, name in same_fractions(here, profile.name).items():
            back = same_fraction(model_named(other), name, here)
            assert back == profile


def test_same_fractions_when_the_profile_or_mig_is_unknown_then_refused() -> None:
    with pytest.raises(CatalogError):
        same_fractions(model_named("A100-40GB"), "1g.6gb")
    with pytest.raises(CatalogError):
        same_fractions(parse_model("T4"), "1g.5gb")
