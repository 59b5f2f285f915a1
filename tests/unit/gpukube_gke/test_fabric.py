"""The GPUs' network of machine types."""

from __future__ import annotations

import pytest

from gpukube_gke.facts.fabric import Fabric, fabric_of


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        ("a3-highgpu-8g", Fabric("GPUDirect-TCPX", 4)),
        ("a3-megagpu-8g", Fabric("GPUDirect-TCPXO", 8)),
        ("a3-ultragpu-8g", Fabric("GPUDirect-RDMA", 8)),
        ("a3-ultragpu-8g-nolssd", Fabric("GPUDirect-RDMA", 8)),
        ("a4-highgpu-8g", Fabric("GPUDirect-RDMA", 8)),
        ("a4x-highgpu-4g", Fabric("GPUDirect-RDMA", 4)),
        ("a4x-maxgpu-4g-metal", Fabric("GPUDirect-RDMA", 8)),
        ("a3-highgpu-4g", None),
        ("a2-ultragpu-8g", None),
        ("g4-standard-384", None),
        ("n1-standard-8", None),
    ],
)
def test_fabric_when_the_family_has_one_then_its_kind_and_interfaces(machine: str, expected: Fabric | None) -> None:
    assert fabric_of(machine) == expected
