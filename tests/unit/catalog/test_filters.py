"""The filters of the list."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.catalog.filters import Filters, choose_entries
from gpukube.gpu.models import MODELS, find_models, parse_model
from gpukube.gpu.refreshed import Offer, Stock, lay_over
from gpukube.gpu.refusal import CatalogError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube.gpu.machines import Machine

ENTRIES = lay_over(())
ALL = [entry.machine for entry in ENTRIES]

CASES: dict[str, tuple[Filters, Callable[[Machine], bool]]] = {
    "none": (Filters(), lambda _: True),
    "cloud": (Filters(providers=("aks",)), lambda m: m.provider == "aks"),
    "two clouds": (Filters(providers=("aks", "gke")), lambda m: m.provider != "eks"),
    "model": (Filters(models=(parse_model("L4"),)), lambda m: str(m.model) == "L4-24GB"),
    "memory": (Filters(gpu_memory_gib=80), lambda m: m.gpu_memory_gib >= 80),
    "memory of a share": (Filters(gpu_memory_gib=12), lambda m: m.gpu_memory_gib >= 12),
    "mig": (Filters(mig=True), lambda m: m.mig_capable is True),
    "no mig": (Filters(mig=False), lambda m: m.mig_capable is not True),
    "arch": (Filters(arch="arm64"), lambda m: m.arch == "arm64"),
    "price": (Filters(max_price=1.006), lambda m: m.price_usd_h is not None and m.price_usd_h <= 1.006),
    "all at once": (
        Filters(
            ("eks",), (parse_model("A100-80GB"), parse_model("H100-80GB")), 80, mig=True, arch="amd64", max_price=30
        ),
        lambda m: m.name in {"p4de.24xlarge", "p5.4xlarge"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_list_when_filtered_then_exactly_what_fits_and_is_not_retired(name: str) -> None:
    filters, fits = CASES[name]
    shown = choose_entries(ENTRIES, filters)
    fitting = [m for m in ALL if fits(m)]
    assert {id(e.machine) for e in shown.entries} == {id(m) for m in fitting if m.status != "retired"}
    assert shown.left_out.get("retired", 0) == sum(m.status == "retired" for m in fitting)


def test_list_when_statuses_are_asked_for_then_only_those_and_nothing_counts_as_left_out() -> None:
    shown = choose_entries(ENTRIES, Filters(statuses=("retired", "preview")))
    assert {e.machine.status for e in shown.entries} == {"retired", "preview"}
    assert shown.left_out == {}


def test_list_when_a_region_was_refreshed_then_types_it_does_not_offer_are_left_out_and_counted() -> None:
    stocks = [Stock("eks", "eu-west-1", "2026-12-01T00:00:00Z", (Offer("g6.xlarge", "L4", 1),))]
    shown = choose_entries(lay_over(stocks, "eu-west-1"), Filters(region="eu-west-1", providers=("eks",)))
    assert [e.machine.name for e in shown.entries] == ["g6.xlarge"]
    eks = [m for m in ALL if m.provider == "eks" and m.status != "retired"]
    assert shown.left_out == {"not offered in eu-west-1": len(eks) - 1}


def test_list_when_ordered_then_by_cloud_gpu_number_and_price_with_unknown_prices_last() -> None:
    machines = [e.machine for e in choose_entries(ENTRIES, Filters()).entries]
    keys = [
        (m.provider, MODELS.index(m.model), m.gpus, m.price_usd_h is None, m.price_usd_h or 0, m.name) for m in machines
    ]
    assert keys == sorted(keys)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a100", ["A100-40GB", "A100-80GB"]),
        ("A100-80GB", ["A100-80GB"]),
        ("H100-NVL", ["H100-94GB"]),
        ("rtx pro 6000", ["RTXPRO6000-96GB"]),
        ("nvidia-l4", ["L4-24GB"]),
    ],
)
def test_models_when_a_chip_has_sizes_then_all_of_them(text: str, names: list[str]) -> None:
    assert [str(model) for model in find_models(text)] == names


@pytest.mark.parametrize(
    ("text", "said"), [("Z9", "is not a GPU model"), ("A30-24GB", "no cloud in the catalog sells")]
)
def test_models_when_nobody_has_it_then_refused(text: str, said: str) -> None:
    with pytest.raises(CatalogError, match=said) as refused:
        find_models(text)
    assert refused.value.code == "gpu-model"
