"""The choice of an instance type."""

from __future__ import annotations

from collections import Counter

import pytest

from gpukube.gpu.attached import ATTACHED, usual_host
from gpukube.gpu.catalog import CatalogError, machines, parse_model, resolve_machine
from gpukube.gpu.selection import (
    keep_deployable,
    keep_released,
    prefer_cheapest,
    prefer_newest,
    prefer_ordinary,
    variant_reason,
)

CHOICES = [
    # The case the rules were written for
    ("eks", "A100-40GB", 8, "p4d.24xlarge"),
    ("aks", "A100-40GB", 8, "Standard_ND96asr_v4"),
    ("gke", "A100-40GB", 8, "a2-highgpu-8g"),
    # the cheapest
    ("aks", "T4", 1, "Standard_NC4as_T4_v3"),
    ("eks", "L4", 1, "g6.xlarge"),
    ("gke", "H100-80GB", 8, "a3-highgpu-8g"),
    # an unknown price comes last
    ("eks", "H200", 8, "p5en.48xlarge"),
    # variants only when there is nothing ordinary
    ("aks", "H100-80GB", 8, "Standard_ND96isr_H100_v5"),
    ("aks", "H100-94GB", 1, "Standard_NC40ads_H100_v5"),
    ("aks", "GB300", 4, "Standard_ND128isr_GB300_v6"),
    ("gke", "H200", 8, "a3-ultragpu-8g"),
    ("eks", "T4G", 2, "g5g.16xlarge"),
    ("eks", "T4", 8, "g4dn.metal"),
    ("gke", "GB300", 4, "a4x-maxgpu-4g-metal"),
    # current before unknown, though the unknown one is cheaper
    ("aks", "A10", 1, "Standard_NV36ads_A10_v5"),
    # shares are compared with a tolerance
    ("aks", "A10", 1 / 6, "Standard_NV6ads_A10_v5"),
    ("eks", "L4", 0.125, "g6f.large"),
    # equal price: by name
    ("aks", "RTX-PRO-6000", 1, "Standard_NC144ds_xl_RTXPRO6000BSE_v6"),
    # legacy when there is nothing else
    ("aks", "V100-32GB", 8, "Standard_ND40rs_v2"),
]


@pytest.mark.parametrize(("provider", "model", "count", "name"), CHOICES)
def test_resolve_when_machines_exist_then_the_rules_choose(provider: str, model: str, count: float, name: str) -> None:
    assert resolve_machine(provider, parse_model(model), count).machine.name == name


def test_resolve_when_others_exist_then_each_is_rejected_with_a_reason() -> None:
    rejected = {m.name: why for m, why in resolve_machine("gke", parse_model("H100-80GB"), 8).rejected}
    assert rejected == {
        "a3-edgegpu-8g": "is for edge zones",
        "a3-edgegpu-8g-nolssd": "comes without local SSDs",
        "a3-megagpu-8g": "costs 92.9376 USD/h, a3-highgpu-8g 88.49",
    }


def test_resolve_when_retired_types_match_then_they_are_rejected_as_such() -> None:
    resolution = resolve_machine("aks", parse_model("RTX-PRO-6000"), 1)
    reasons = {m.name: why for m, why in resolution.rejected}
    assert reasons["Standard_NC128ds_xl_RTXPRO6000BSE_v6"] == "is retired"
    assert "comes first by name" in reasons["Standard_NC144lds_xl_RTXPRO6000BSE_v6"]


@pytest.mark.parametrize("provider", ["aks", "eks", "gke"])
def test_resolve_when_tried_for_every_row_then_kept_and_rejected_are_all_rows_of_that_kind(provider: str) -> None:
    for model, count in {(m.model, m.gpus) for m in machines(provider) if m.status in {"current", "legacy", "unknown"}}:
        resolution = resolve_machine(provider, model, count)
        names = Counter(m.name for m in (resolution.machine, *(m for m, _ in resolution.rejected)))
        rows = [m for m in machines(provider) if m.model == model and m.gpus == count]
        assert names == Counter(usual_host(count).name if m.name == ATTACHED else m.name for m in rows)
        assert all(why for _, why in resolution.rejected)


NONE_FITS = [
    ("aks", "A100-40GB", 4, "", "write count 8"),
    ("aks", "T4", 2, "", "write count 1 or 4"),
    (
        "aks",
        "A10G",
        1,
        "the catalog has no aks type with A10G-24GB",
        "nearest machine is Standard_NV36ads_A10_v5: write model A10-24GB, count 1",
    ),
    ("aks", "L4", 1, "the catalog has no aks type with L4-24GB", "write model A10-24GB, count 1"),
    ("aks", "B200", 8, "the catalog has no aks type with B200-180GB", "write model H200-141GB, count 8"),
    ("eks", "H100-94GB", 2, "the catalog has no eks type with H100-94GB", "write model RTXPRO6000-96GB, count 2"),
    ("eks", "GB300", 4, "eks names p6e-gb300.36xlarge, which is not in the catalog: no source", "p6e-gb200.36xlarge"),
    ("aks", "V100-16GB", 1, "Standard_NC6s_v3 is retired", "write model T4-16GB, count 1"),
    (
        "gke",
        "RTX-PRO-6000",
        0.25,
        "g4-standard-12 is in preview",
        "write instanceType: g4-standard-12 to use the preview",
    ),
    ("nimbus", "T4", 1, "", "choose a provider: aks, eks or gke"),
]


@pytest.mark.parametrize(("provider", "model", "count", "why", "fix"), NONE_FITS)
def test_resolve_when_nothing_fits_then_says_what_there_is(
    provider: str, model: str, count: float, why: str, fix: str
) -> None:
    with pytest.raises(CatalogError, match=r"has no instance type with .* in the catalog of 2026-11-21") as caught:
        resolve_machine(provider, parse_model(model), count)
    assert caught.value.code == "no-machine"
    assert why in caught.value.why
    assert fix in caught.value.fix


@pytest.mark.parametrize("rule", [keep_deployable, keep_released, prefer_ordinary, prefer_newest, prefer_cheapest])
def test_filter_when_run_then_every_machine_is_kept_or_rejected_once(rule: object) -> None:
    assert callable(rule)
    for provider in ("aks", "eks", "gke"):
        kept, rejected = rule(machines(provider))
        assert sorted(m.name for m in [*kept, *(m for m, _ in rejected)]) == sorted(m.name for m in machines(provider))
    assert rule([]) == ([], [])


@pytest.mark.parametrize(
    ("name", "is_variant"),
    [
        ("a3-ultragpu-8g-nolssd", True),
        ("a3-edgegpu-8g", True),
        ("Standard_NCC40ads_H100_v5", True),
        ("Standard_ND96is_H100_v5", True),
        ("Standard_ND128isrG5_GB300_v6", True),
        ("g4dn.metal", True),
        ("a4x-maxgpu-4g-metal", True),
        ("Standard_ND96isr_H100_v5", False),
        ("Standard_NC40ads_H100_v5", False),
        ("g5.xlarge", False),
    ],
)
def test_variant_reason_when_the_name_is_special_then_says_what_it_is(name: str, is_variant: bool) -> None:  # noqa: FBT001 - a table column
    machine = next(m for m in machines() if m.name == name)
    assert bool(variant_reason(machine)) is is_variant
