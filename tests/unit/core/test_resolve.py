"""Fields of the spec that are handed on to the providers: each arrives, and what is not written means nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.core.resolve import resolve_targets
from gpukube.core.values import Capacity, Reservation, Upgrade
from tests.unit.spec.samples import FULL, load_text, spec_of

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube.core.values import Target

POOL = "  - {name: a, clusters: [train-gke, train-eks], gpu: {model: A100-40GB, count: 8}, nodes: {count: 1}, EXTRA}\n"


def targets_of(folder: Path, extra: str) -> dict[str, Target]:
    text = spec_of(POOL.replace("EXTRA", extra))
    return {target.cluster.provider: target for target in resolve_targets(load_text(folder, text))[0]}


RESERVED: dict[str, tuple[str, Reservation]] = {
    "reservation": ("gke: {reservation: a100}", Reservation("reservation", "a100")),
    "flex-start": ("gke: {flexStart: {maxRunDuration: 7d}}", Reservation("flexStart", max_run_s=604_800)),
    "queued": ("gke: {queued: {maxRunDuration: 90m}}", Reservation("queued", max_run_s=5_400)),
    "flex-start with queued provisioning": (
        "gke: {flexStart: {}, queued: {maxRunDuration: 90m}}",
        Reservation("flexStartQueued", max_run_s=5_400),
    ),
    "queued without limit": ("gke: {queued: {}}", Reservation("queued")),
    "seconds": ("gke: {queued: {maxRunDuration: 30s}}", Reservation("queued", max_run_s=30)),
    "hours": ("gke: {queued: {maxRunDuration: 2h}}", Reservation("queued", max_run_s=7_200)),
}


@pytest.mark.parametrize(("written", "expected"), RESERVED.values(), ids=RESERVED)
def test_capacity_when_reserved_then_each_cloud_gets_its_own_form(
    tmp_path: Path, written: str, expected: Reservation
) -> None:
    eks = "eks: {capacityBlock: cr-0123456789abcdef0}"
    targets = targets_of(tmp_path, f"capacity: {{type: reserved, reserved: {{{eks}, {written}}}}}")
    assert targets["gke"].capacity == Capacity("reserved", reservation=expected)
    assert targets["eks"].capacity == Capacity(
        "reserved", reservation=Reservation("capacityBlock", "cr-0123456789abcdef0")
    )


@pytest.mark.parametrize("group", ["capacityReservationGroups", "capacityreservationgroups"])
def test_capacity_when_of_azure_then_any_case_of_the_id_will_do(tmp_path: Path, group: str) -> None:
    home = "/subscriptions/11111111-2222-3333-4444-555555555555/resourcegroups/ml/providers/Microsoft.Compute"
    pool = POOL.replace("train-gke, train-eks", "train-aks").replace(
        "EXTRA", f"capacity: {{type: reserved, reserved: {{aks: {{capacityReservationGroup: {home}/{group}/a}}}}}}"
    )
    (target,) = resolve_targets(load_text(tmp_path, spec_of(pool)))[0]
    assert target.capacity.reservation == Reservation("capacityReservationGroup", f"{home}/{group}/a")


def test_settings_when_written_then_they_arrive(tmp_path: Path) -> None:
    by_pool = {target.pool: target for target in resolve_targets(load_text(tmp_path, FULL))[0]}
    shared = by_pool["t4shared"]
    assert shared.upgrade == Upgrade("33%", "0")
    assert (shared.kubernetes_version, shared.max_pods, shared.driver_version) == ("1.34", 60, "latest")
    assert (shared.chart_version, shared.chart_values) == ("0.20.0", {"compatWithCPUManager": True})
    assert by_pool["set"].sharing.mig is not None
    assert by_pool["set"].sharing.mig.layout == ("3g.20gb", "2g.10gb", "1g.5gb")


def test_settings_when_not_written_then_the_cloud_decides(tmp_path: Path) -> None:
    plain = targets_of(tmp_path, "labels: {a: b}")["gke"]
    assert (plain.capacity, plain.upgrade) == (Capacity("on-demand"), Upgrade())
    assert (plain.kubernetes_version, plain.max_pods, plain.driver_version, plain.chart_version) == ("", None, "", "")
