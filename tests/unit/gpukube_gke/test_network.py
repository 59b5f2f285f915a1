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


PROFILE = {"networkConfig": {"acceleratorNetworkProfile": "auto"}}


@pytest.mark.parametrize("machine", FAMILIES)
def test_fabric_when_the_spec_names_its_networks_then_their_number_and_the_installer(machine: str) -> None:
    count, installer = FAMILIES[machine]
    networks = [{"network": f"net-{number}", "subnetwork": f"sub-{number}"} for number in range(count)]
    fabric = fabric_of(
        replace(on_gke(machine).target, native={"networkConfig": {"additionalNodeNetworkConfigs": networks}})
    )
    assert fabric is not None
    assert (fabric.count, fabric.parts) == (count, ((installer,),))
    assert fabric.covers("networking.gke.io.networks/gpu-nic-0")
    assert not fabric.covers("networking.gke.io.networks/gpu-nic-0.IP")  # addresses, not interfaces
    assert "networking.gke.io/interfaces" in fabric.setup


@pytest.mark.parametrize(("machine", "native"), [("a4-highgpu-8g", {}), ("a3-ultragpu-8g", PROFILE)])
def test_fabric_when_gke_makes_the_networks_then_dra_allocates_the_interfaces(
    machine: str, native: dict[str, object]
) -> None:
    fabric = fabric_of(replace(on_gke(machine).target, native=native))
    assert fabric is not None
    assert fabric.parts == ((RDMA,), (DRANET,))
    assert "ResourceClaimTemplate" in fabric.setup


def test_fabric_when_the_family_has_no_network_then_none() -> None:
    assert fabric_of(on_gke("g2-standard-4").target) is None
