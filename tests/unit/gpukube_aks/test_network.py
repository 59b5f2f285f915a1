"""InfiniBand for pods: counts per size, by the names of Azure's guide."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpukube_aks.facts.network import fabric_of
from tests.builders import make_target
from tests.unit.cluster.fabrics import on_aks

COUNTS = {"Standard_ND96asr_v4": 8, "Standard_ND96isr_H100_v5": 8, "Standard_ND96isr_H200_v5": 8}


@pytest.mark.parametrize("size", COUNTS)
def test_fabric_when_the_pool_has_infiniband_then_one_device_per_interface(size: str) -> None:
    fabric = fabric_of(on_aks(size).target)
    assert fabric is not None
    assert (fabric.resource, fabric.count) == ("rdma/*", COUNTS[size])
    assert fabric.names == {"rdma/ib": COUNTS[size], "rdma/shared_ib": 63}
    assert [fabric.covers(name) for name in ("rdma/ib", "rdma/any", "vpc.amazonaws.com/efa")] == [True, True, False]


def test_fabric_when_the_size_has_no_infiniband_then_none() -> None:
    assert fabric_of(replace(make_target("Standard_NC4as_T4_v3"), high_speed=True)) is None
