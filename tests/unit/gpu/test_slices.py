"""The smallest device that holds enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.gpu.mig import profiles
from gpukube.gpu.refreshed import Offer, Stock, lay_over
from gpukube.gpu.slices import Cuts, Slice, find_slices

if TYPE_CHECKING:
    from gpukube.gpu.machines import Machine

ENTRIES = lay_over(())


def everything(machine: Machine) -> Cuts:
    names = tuple(p.name for p in profiles(machine.model)) if machine.mig_capable else ()
    return Cuts(names, mixed=machine.provider == "eks")


def found(at_least: float) -> tuple[Slice, ...]:
    return find_slices(ENTRIES, at_least, everything)


@pytest.mark.parametrize("at_least", [1, 5, 10, 20, 24, 40, 80, 96, 141, 180, 300])
def test_slices_when_searched_then_all_are_large_enough_smallest_first_and_deployable(at_least: float) -> None:
    slices = found(at_least)
    sizes = [s.memory_gb for s in slices]
    assert sizes == sorted(sizes)
    assert all(size >= at_least for size in sizes)
    assert not [s for s in slices if s.entry.machine.status in ("retired", "preview")]


def test_slices_when_20_gb_are_asked_then_the_first_are_slices_of_exactly_that() -> None:
    slices = [s for s in found(20) if s.memory_gb == 20]
    assert {(s.profile, str(s.entry.machine.model)) for s in slices} == {
        ("1g.20gb", "A100-80GB"),
        ("1g.20gb", "H100-80GB"),
        ("2g.20gb", "A100-80GB"),
        ("2g.20gb", "H100-80GB"),
        ("3g.20gb", "A100-40GB"),
        ("4g.20gb", "A100-40GB"),
    }
    prices = [s.price_usd_h for s in slices if s.price_usd_h is not None]
    assert prices == sorted(prices)


def test_slice_when_mig_then_counts_price_and_resources_are_of_the_whole_node() -> None:
    (one,) = [s for s in found(5) if s.entry.machine.provider == "eks" and s.profile == "1g.5gb"]
    machine = one.entry.machine
    assert (machine.name, one.per_node, one.kind) == ("p4d.24xlarge", 56, "mig")
    assert machine.price_usd_h is not None
    assert one.price_usd_h == pytest.approx(machine.price_usd_h / 56)
    assert (one.single, one.mixed, one.confidence) == ("nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "confirmed")


def test_slice_when_the_cloud_cannot_show_it_by_name_then_no_mixed_resource() -> None:
    assert {s.mixed for s in found(5) if s.entry.machine.provider == "gke" and s.profile} == {""}


def test_slices_when_a_share_of_a_gpu_is_large_enough_then_it_counts_as_one_device() -> None:
    shares = [s for s in found(3) if s.kind == "share" and s.entry.machine.provider == "eks"]
    assert [(s.entry.machine.name, s.memory_gb, s.per_node) for s in shares][:2] == [
        ("g6f.large", 3, 1), ("g6f.2xlarge", 6, 1),
    ]  # fmt: skip


def test_slices_when_a_model_is_on_many_machines_then_the_cheapest_per_device_that_is_ordinary_and_current() -> None:
    (whole,) = [
        s for s in found(80)
        if s.kind == "gpu" and s.entry.machine.provider == "gke" and str(s.entry.machine.model) == "A100-80GB"
    ]  # fmt: skip
    prices = [
        m.price_usd_h / m.devices
        for m in (e.machine for e in ENTRIES)
        if m.provider == "gke" and str(m.model) == "A100-80GB" and m.price_usd_h and "nolssd" not in m.name
    ]
    assert whole.price_usd_h == pytest.approx(min(prices))


def test_slices_when_the_account_cannot_have_the_machine_then_passed_over() -> None:
    offer = Offer("Standard_NC24ads_A100_v4", restricted="NotAvailableForSubscription")
    entries = lay_over([Stock("aks", "eastus", "2026-12-01T00:00:00Z", (offer,))])
    assert "Standard_NC24ads_A100_v4" not in {s.entry.machine.name for s in find_slices(entries, 1, everything)}


def test_slices_when_more_is_asked_than_any_gpu_has_then_none() -> None:
    assert found(1000) == ()
