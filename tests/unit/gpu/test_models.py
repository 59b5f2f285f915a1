"""Names of GPU models."""

from __future__ import annotations

import pytest

from gpukube.gpu.catalog import CatalogError, parse_model
from gpukube.gpu.models import MODELS

ALIASES = {
    "T4": "T4-16GB",
    "T4G": "T4G-16GB",
    "L4": "L4-24GB",
    "L40S": "L40S-48GB",
    "A10": "A10-24GB",
    "A10G": "A10G-24GB",
    "K80": "K80-12GB",
    "P4": "P4-8GB",
    "P100": "P100-16GB",
    "H200": "H200-141GB",
    "B200": "B200-180GB",
    "B300": "B300-269GB",
    "GB200": "GB200-186GB",
    "GB300": "GB300-278GB",
    "B200-192GB": "B200-180GB",
    "GB200-192GB": "GB200-186GB",
    "B300-288GB": "B300-269GB",
    "GB300-288GB": "GB300-278GB",
    "H100-NVL": "H100-94GB",
    "RTX-PRO-6000": "RTXPRO6000-96GB",
    "RTX PRO Server 6000": "RTXPRO6000-96GB",
    "RTX PRO 4500": "RTXPRO4500-32GB",
    "nvidia-tesla-k80": "K80-12GB",
    "nvidia-tesla-p4": "P4-8GB",
    "nvidia-tesla-p100": "P100-16GB",
    "nvidia-tesla-v100": "V100-16GB",
    "nvidia-tesla-t4": "T4-16GB",
    "nvidia-tesla-a100": "A100-40GB",
    "nvidia-a100-80gb": "A100-80GB",
    "nvidia-l4": "L4-24GB",
    "nvidia-h100-80gb": "H100-80GB",
    "nvidia-h100-mega-80gb": "H100-80GB",
    "nvidia-h200-141gb": "H200-141GB",
    "nvidia-b200": "B200-180GB",
    "nvidia-gb200": "GB200-186GB",
    "nvidia-gb300": "GB300-278GB",
    "nvidia-rtx-pro-6000": "RTXPRO6000-96GB",
    "a100-40gb": "A100-40GB",
    "A100 40GB": "A100-40GB",
    "rtx-pro-6000-96gb": "RTXPRO6000-96GB",
}


@pytest.mark.parametrize(("text", "name"), ALIASES.items())
def test_parse_model_when_given_an_alias_then_gives_the_one_model(text: str, name: str) -> None:
    assert parse_model(text).name == name


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_parse_model_when_given_the_canonical_name_then_gives_itself(model: object) -> None:
    assert parse_model(str(model)) == model


def test_parse_model_when_tables_list_an_alias_then_a_case_covers_it() -> None:
    assert {alias for model in MODELS for alias in model.aliases} <= ALIASES.keys()


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("a100", "write A100-40GB or A100-80GB"),
        ("V100", "write V100-16GB or V100-32GB"),
        ("H100", "write H100-80GB or H100-94GB"),
    ],
)
def test_parse_model_when_the_bare_chip_has_two_sizes_then_names_them(text: str, fix: str) -> None:
    with pytest.raises(CatalogError) as caught:
        parse_model(text)
    assert caught.value.message == f'"{text}" matches 2 GPU models with different memory'
    assert (caught.value.code, caught.value.fix) == ("gpu-model", fix)


@pytest.mark.parametrize(
    ("text", "first"), [("A100-48GB", "A100-40GB"), ("L40", "L40S-48GB"), ("H20-141GB", "H200-141GB")]
)
def test_parse_model_when_unknown_then_names_the_nearest_first(text: str, first: str) -> None:
    with pytest.raises(CatalogError, match="is not a GPU model in the catalog") as caught:
        parse_model(text)
    assert caught.value.fix.startswith(f"did you mean {first}, ")
    assert "A30-24GB" not in caught.value.fix
