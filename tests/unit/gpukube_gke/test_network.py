"""GPUDirect for pods: networks per machine, and the installer of its NCCL plugin."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpukube_gke.facts.network import DRANET, RDMA, RDMA_A4X, TCPX, TCPXO, fabric_of
from tests.unit.cluster.fabrics import on_gke

FAMILIES = {
    "a3-highgpu-8g": (4, TCPX),
    "a3-megagpu-8g": (8, TCPXO),
    "a3-ultragpu-8g": (8, RDMA),
    "a4-highgpu-8g": (8, RDMA),
    "a4x-highgpu-4g": (4, RDMA_A4X),
}


@pytest.mark.parametrize("machine", FAMILIES)
def test_fabric_when_the_family_has_a_network_then_its_interfaces_and_installer(machine: str) -> None:
    count, installer = FAMILIES[machine]
    fabric = fabric_of(on_gke(machine).target)
    assert fabric is not None
    assert (fabric.count, fabric.parts) == (count, ((installer,),))
    assert fabric.covers("networking.gke.io.networks/gpu-nic-0")
    assert not fabric.covers("networking.gke.io.networks/gpu-nic-0.IP")  # addresses, not interfaces
    assert "networking.gke.io/interfaces" in fabric.setup


def test_fabric_when_the_pool_uses_the_network_profile_then_dra_allocates_the_interfaces() -> None:
    target = replace(on_gke().target, native={"networkConfig": {"acceleratorNetworkProfile": "auto"}})
    fabric = fabric_of(target)
    assert fabric is not None
    assert fabric.parts == ((TCPXO,), (DRANET,))
    assert "ResourceClaimTemplate" in fabric.setup


def test_fabric_when_the_family_has_no_network_then_none() -> None:
    assert fabric_of(on_gke("g2-standard-4").target) is None
