"""InfiniBand and NVMe disks of sizes."""

from __future__ import annotations

import pytest

from gpukube.gpu.machines import machines
from gpukube_aks.facts.fabric import has_infiniband, infiniband_nics, nvme_disks

NAMES = [machine.name for machine in machines("aks") if machine.status != "retired"]


@pytest.mark.parametrize("name", NAMES)
def test_infiniband_when_the_name_has_an_r_then_its_number_of_interfaces_is_known(name: str) -> None:
    assert has_infiniband(name) == (infiniband_nics(name) > 0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Standard_ND96isr_H100_v5", True),
        ("standard_nd96asr_v4", True),
        ("Standard_NC24rs_v3", True),
        ("Standard_ND96is_H100_v5", False),
        ("Standard_NC40ads_H100_v5", False),
        ("Standard_NC144ds_xl_RTXPRO6000BSE_v6", False),
        ("Standard_D4s_v5", False),
    ],
)
def test_infiniband_when_asked_by_name_then_the_letter_decides(name: str, expected: bool) -> None:  # noqa: FBT001 - a table
    assert has_infiniband(name) is expected


@pytest.mark.parametrize("name", [name for name in NAMES if nvme_disks(name)])
def test_disks_when_summed_then_at_most_the_size_of_the_catalog(name: str) -> None:
    machine = next(machine for machine in machines("aks") if machine.name == name)
    count, size_gb = nvme_disks(name) or (0, 0)
    assert count * size_gb * 1e9 / 2**30 == pytest.approx(machine.local_ssd_gib, rel=0.01)
