"""Instance types by name, and those that are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpukube.gpu.catalog import (
    CatalogError,
    Machine,
    catalog_date,
    find_machine,
    machines,
    parse_model,
    refuse_reason,
    require_machine,
    resolve_machine,
    warn_reason,
)
from gpukube.gpu.machines import learn


def test_find_machine_when_known_then_gives_the_row() -> None:
    assert find_machine("aks", "Standard_ND96asr_v4") == Machine(
        provider="aks",
        name="Standard_ND96asr_v4",
        model=parse_model("A100-40GB"),
        gpus=8,
        gpu_memory_gib=40,
        vcpus=96,
        memory_gib=900,
        arch="amd64",
        mig_capable=True,
        accelerator="",
        local_ssd_gib=6000,
        price_usd_h=27.197,
        spot_usd_h=None,
        price_region="eastus",
        status="current",
        price_date="2026-06-18",
    )


@pytest.mark.parametrize(
    ("provider", "name"),
    [("eks", "Standard_ND96asr_v4"), ("aks", "standard_nd96asr_v4"), ("gke", "n1-*"), ("aks", "Standard_D4s_v5")],
)
def test_find_machine_when_not_exactly_one_row_has_the_name_then_none(provider: str, name: str) -> None:
    assert find_machine(provider, name) is None


def test_machines_when_asked_for_a_provider_then_only_its_own() -> None:
    assert {m.provider for m in machines("gke")} == {"gke"}
    assert machines("nowhere") == ()


def test_require_machine_when_only_the_case_differs_then_the_fix_is_the_canonical_spelling() -> None:
    with pytest.raises(CatalogError, match="not the spelling of eks") as caught:
        require_machine("eks", "P4d.24XLARGE")
    assert (caught.value.code, caught.value.fix) == ("instance-type", "did you mean p4d.24xlarge?")


def test_require_machine_when_a_size_of_azure_is_in_another_case_then_is_that_size() -> None:
    assert require_machine("aks", "STANDARD_nd96ASR_v4").name == "Standard_ND96asr_v4"


def test_require_machine_when_unknown_then_names_the_nearest_and_the_date() -> None:
    with pytest.raises(CatalogError, match=catalog_date()) as caught:
        require_machine("aks", "Standard_NC24ads_A100_v5")
    assert caught.value.fix.startswith("did you mean Standard_NC24ads_A100_v4? Similar: ")


@pytest.mark.parametrize("name", ["p6e-gb300.36xlarge", "p6e-gb200.72xlarge"])
def test_require_machine_when_the_cloud_names_it_without_its_gpus_then_no_source(name: str) -> None:
    with pytest.raises(CatalogError, match=f'"{name}" is not in the catalog of {catalog_date()}: no source') as caught:
        require_machine("eks", name)
    assert caught.value.code == "instance-type"
    assert "gpukube catalog refresh --provider eks" in caught.value.fix


def test_require_machine_when_known_then_gives_it() -> None:
    assert require_machine("eks", "p4d.24xlarge").gpus == 8


def test_require_machine_when_retired_with_a_successor_then_the_fix_names_it() -> None:
    with pytest.raises(CatalogError) as caught:
        require_machine("aks", "standard_nc128DS_xl_RTXPRO6000BSE_v6")
    assert caught.value.code == "instance-type-refused"
    assert caught.value.fix == "write Standard_NC144ds_xl_RTXPRO6000BSE_v6"
    assert caught.value.why == "preview size that no longer deploys"


def test_require_machine_when_refused_without_a_successor_then_the_fix_is_to_name_a_model() -> None:
    with pytest.raises(CatalogError) as caught:
        require_machine("eks", "g4ad.xlarge")
    assert caught.value.fix == "remove instanceType and write gpu.model and gpu.count"


REFUSED = [
    ("eks", "g4ad.xlarge", "AMD"),
    ("eks", "p2.xlarge", "old EC2"),
    ("eks", "g2.2xlarge", "old EC2"),
    ("eks", "g3.4xlarge", "old EC2"),
    ("eks", "g3s.xlarge", "old EC2"),
    ("aks", "Standard_ND96isr_MI300X_v5", "AMD"),
    ("aks", "Standard_ND96is_MI300X_v5", "AMD"),
    ("aks", "Standard_NV24ads_V710_v5", "AMD"),
    ("aks", "Standard_NV16as_v4", "AMD"),
    ("aks", "standard_nv4as_v4", "AMD"),
    ("aks", "Standard_NG32ads_V620_v1", "AMD"),
    ("aks", "Standard_NP20s", "FPGA"),
    ("aks", "Standard_NC6", "retired"),
    ("aks", "Standard_NC24r", "retired"),
    ("aks", "Standard_NC12s_v2", "retired"),
    ("aks", "Standard_NC24rs_v2", "retired"),
    ("aks", "Standard_ND6s", "retired"),
    ("aks", "Standard_ND24rs", "retired"),
    ("aks", "Standard_NV12", "retired"),
    ("aks", "Standard_NV12s_v2", "retired"),
    ("aks", "Standard_NV24s_v3", "M60"),
    ("aks", "Standard_NC6s_v3", "retired on 2025-09-30"),
    ("aks", "Standard_NC24rs_v3", "retired on 2025-09-30"),
]


@pytest.mark.parametrize(("provider", "name", "word"), REFUSED)
def test_refuse_reason_when_the_type_cannot_work_then_says_why(provider: str, name: str, word: str) -> None:
    assert word in (refuse_reason(provider, name) or "")


def test_refuse_reason_when_cataloged_and_not_retired_then_none() -> None:
    assert [m.name for m in machines() if m.status != "retired" and refuse_reason(m.provider, m.name)] == []


@pytest.mark.parametrize("name", ["Standard_NC6", "Standard_NP20s"])
def test_refuse_reason_when_another_cloud_then_none(name: str) -> None:
    assert refuse_reason("eks", name) is None


@pytest.mark.parametrize(
    ("provider", "name", "words"),
    [
        ("aks", "Standard_ND96asr_v4", None),
        ("aks", "Standard_ND40rs_v2", "Standard_ND40rs_v2 is of an older generation"),
        ("eks", "g5.xlarge", "(previous generation at EC2 since 2026-08)"),
        ("gke", "g4-standard-6", "g4-standard-6 is in preview ("),
        ("aks", "Standard_NC16ads_A10_v4", "no page of the cloud lists it as current"),
    ],
)
def test_warn_reason_when_the_status_is_not_current_then_says_so(provider: str, name: str, words: str | None) -> None:
    reason = warn_reason(require_machine(provider, name))
    assert reason is None if words is None else words in (reason or "")


@pytest.mark.parametrize(
    ("provider", "name", "devices"),
    [
        ("eks", "g6f.large", 1),
        ("aks", "Standard_NV6ads_A10_v5", 1),
        ("eks", "g4dn.xlarge", 1),
        ("gke", "a2-megagpu-16g", 16),
    ],
)
def test_devices_when_the_node_holds_a_share_then_one(provider: str, name: str, devices: int) -> None:
    assert require_machine(provider, name).devices == devices


@pytest.mark.parametrize(("count", "expected"), [(1 / 6, True), (0.1667, True), (0.17, False), (1, False)])
def test_has_gpus_when_a_share_is_written_exactly_then_rounding_is_forgiven(
    count: float,
    expected: bool,  # noqa: FBT001 - a table column
) -> None:
    assert require_machine("aks", "Standard_NV6ads_A10_v5").has_gpus(count) is expected


@pytest.mark.parametrize("machine", [m for m in machines() if m.status == "retired"], ids=lambda m: m.name)
def test_require_machine_when_retired_then_refused_under_its_exact_name(machine: Machine) -> None:
    with pytest.raises(CatalogError) as caught:
        require_machine(machine.provider, machine.name)
    assert (caught.value.code, caught.value.why) == ("instance-type-refused", machine.notes)


def test_learn_when_types_are_new_then_found_by_name_alone_until_others_are_learnt() -> None:
    base = find_machine("eks", "g6.xlarge")
    assert base is not None
    new, same = replace(base, name="g9.xlarge", price_usd_h=0.01), replace(base, price_usd_h=0.01)
    try:
        learn([new, same])
        assert find_machine("eks", "g9.xlarge") == new
        assert require_machine("eks", "g9.xlarge") == new
        assert find_machine("aks", "g9.xlarge") is None
        assert find_machine("eks", "g6.xlarge") == base, "the embedded table stays as it is"
        assert new not in machines("eks")
        assert resolve_machine("eks", parse_model("L4"), 1).machine == base
    finally:
        learn([])
    assert find_machine("eks", "g9.xlarge") is None
