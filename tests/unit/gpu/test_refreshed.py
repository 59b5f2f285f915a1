"""Live data over the embedded table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpukube.gpu.machines import catalog_date, machines
from gpukube.gpu.models import parse_model
from gpukube.gpu.refreshed import Entry, Offer, Stock, lay_over
from gpukube.gpu.refusal import CatalogError
from gpukube.gpu.selection import near_machines, resolve_machine

P4D = "p4d.24xlarge"


def stock(
    *offers: Offer, provider: str = "eks", region: str = "us-east-1", fetched: str = "2026-12-01T08:00:00Z"
) -> Stock:
    return Stock(provider, region, fetched, offers)


def entry(entries: tuple[Entry, ...], name: str) -> Entry:
    (found,) = [e for e in entries if e.machine.name == name]
    return found


def test_catalog_when_nothing_was_refreshed_then_the_embedded_one_with_its_date() -> None:
    entries = lay_over(())
    assert sorted(map(id, (e.machine for e in entries))) == sorted(map(id, machines()))
    assert {(e.source, e.as_of, e.regions, e.missing) for e in entries} == {("embedded", catalog_date(), (), ())}


def test_machine_when_refreshed_then_price_shape_and_day_are_live() -> None:
    offer = Offer(P4D, "A100", 8, 97, 1200, "amd64", price_usd_h=20.5, spot_usd_h=9, price_date="2026-12-01")
    found = entry(lay_over([stock(offer)]), P4D)
    machine = found.machine
    assert (found.source, found.as_of, found.regions) == ("refreshed", "2026-12-01", ("us-east-1",))
    assert (machine.price_usd_h, machine.spot_usd_h, machine.price_region, machine.price_date) == (
        20.5, 9, "us-east-1", "2026-12-01",
    )  # fmt: skip
    assert (machine.vcpus, machine.memory_gib, machine.mig_capable, machine.gpus) == (97, 1200, True, 8)


def test_machine_when_the_refresh_has_no_price_then_the_embedded_one_with_its_own_region_and_day() -> None:
    machine = entry(lay_over([stock(Offer(P4D), region="eu-west-1")]), P4D).machine
    assert (machine.price_region, machine.price_date) == ("us-east-1", "2026-07-20")
    assert machine.vcpus == 96


def test_machine_when_refreshed_in_two_regions_then_the_one_of_the_embedded_price_unless_another_is_named() -> None:
    stocks = [
        stock(Offer(P4D, price_usd_h=20)),
        stock(Offer(P4D, price_usd_h=30), region="eu-west-1", fetched="2026-12-05T00:00:00Z"),
        stock(region="ap-south-1"),
    ]
    found = entry(lay_over(stocks), P4D)
    assert (found.machine.price_usd_h, found.machine.price_region) == (20, "us-east-1")
    assert (found.regions, found.missing) == (("eu-west-1", "us-east-1"), ("ap-south-1",))
    named = entry(lay_over(stocks, "eu-west-1"), P4D)
    assert (named.machine.price_usd_h, named.machine.price_region, named.as_of) == (30, "eu-west-1", "2026-12-05")


def test_machine_when_its_own_region_was_not_read_then_the_newest_that_has_it() -> None:
    stocks = [
        stock(Offer(P4D, price_usd_h=30), region="eu-west-1"),
        stock(Offer(P4D, price_usd_h=31), region="eu-north-1", fetched="2026-12-05T00:00:00Z"),
        stock(region="ap-south-1", fetched="2026-12-09T00:00:00Z"),
    ]
    assert entry(lay_over(stocks), P4D).machine.price_region == "eu-north-1"


@pytest.mark.parametrize(
    ("provider", "name", "said", "status"),
    [
        ("eks", P4D, "legacy", "legacy"),
        ("eks", "g5.xlarge", "current", "current"),
        ("eks", "g5.xlarge", "", "legacy"),
        ("gke", "a2-highgpu-1g", "retired", "retired"),
        ("aks", "Standard_NC6s_v3", "current", "retired"),  # its vendor announced the end
        ("gke", "g4-standard-6", "current", "preview"),
    ],
)
def test_status_when_the_api_says_one_then_believed_unless_announced_otherwise(
    provider: str, name: str, said: str, status: str
) -> None:
    offer = replace(Offer(name), status=said)  # type: ignore[arg-type]  # the words of the table
    assert entry(lay_over([stock(offer, provider=provider)]), name).machine.status == status


def test_type_when_not_embedded_then_taken_in_by_its_gpu_with_mig_unconfirmed() -> None:
    offers = [
        Offer("p9.48xlarge", "H200", 8, 200, 2000, "arm64", price_usd_h=80),
        Offer("g9f.large", "L4", 0.25),
        Offer("x9.large", "Z1000", 1),
        Offer("y9.large", "", None),
        Offer("Standard_NCnew"),
    ]
    entries = lay_over([stock(*offers)])
    whole, share = entry(entries, "p9.48xlarge").machine, entry(entries, "g9f.large").machine
    assert (whole.model, whole.gpus, whole.arch, whole.mig_capable) == (parse_model("H200"), 8, "arm64", None)
    assert (whole.price_usd_h, whole.price_region, whole.status) == (80, "us-east-1", "current")
    assert "not in the embedded table" in whole.notes
    assert (share.gpu_memory_gib, share.mig_capable, share.devices) == (6, False, 1)
    assert len(entries) == len(machines()) + 2


def test_attached_gpus_when_refreshed_then_matched_by_model_and_number() -> None:
    offers = [
        Offer("n1-*", "nvidia-tesla-t4", 2, accelerator="nvidia-tesla-t4", price_usd_h=0.6, price_date="2026-12-01"),
        Offer("n1-*", "nvidia-unheard", 1),
    ]
    entries = [e for e in lay_over([stock(*offers, provider="gke", region="us-central1")]) if e.machine.name == "n1-*"]
    refreshed = [e for e in entries if e.source == "refreshed"]
    assert [(str(e.machine.model), e.machine.gpus, e.machine.price_usd_h) for e in refreshed] == [("T4-16GB", 2, 0.6)]
    assert len(entries) == len([m for m in machines("gke") if m.name == "n1-*"])


def test_resolve_when_given_machines_then_chooses_among_them_only() -> None:
    entries = lay_over([stock(Offer("p9.24xlarge", "A100-40GB", 8, price_usd_h=1))])
    among = [e.machine for e in entries if e.machine.provider == "eks"]
    assert resolve_machine("eks", parse_model("A100-40GB"), 8, among).machine.name == "p9.24xlarge"
    assert resolve_machine("eks", parse_model("A100-40GB"), 8).machine.name == P4D
    with pytest.raises(CatalogError, match="no instance type"):
        resolve_machine("eks", parse_model("A100-40GB"), 8, [m for m in among if m.model.chip != "A100"])


@pytest.mark.parametrize(
    ("provider", "model", "count", "names"),
    [
        ("eks", "A100-80GB", 4, ["g6e.12xlarge", "p4de.24xlarge"]),
        ("gke", "A100-40GB", 5, ["a2-highgpu-4g", "a2-highgpu-2g", "a2-highgpu-8g", "a2-highgpu-1g", "a2-megagpu-16g"]),
        ("aks", "L4", 1, ["Standard_NV36ads_A10_v5"]),
        ("mars", "L4", 1, []),
    ],
)
def test_near_machines_when_none_fits_then_other_numbers_or_the_most_alike(
    provider: str, model: str, count: float, names: list[str]
) -> None:
    assert [m.name for m in near_machines(parse_model(model), count, machines(provider))] == names
