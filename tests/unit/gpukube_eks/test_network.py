"""EFA for pods: counts per machine, and what the autoscaler of an empty pool needs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpukube.core.hugepages import hugepages_of
from gpukube_eks.facts.network import AWS_DRANET, EFA_PLUGIN, fabric_of
from gpukube_eks.pool.fields import RESOURCE_TAG
from tests.unit.cluster.fabrics import EFA, on_eks

COUNTS = {
    "p4d.24xlarge": 4,
    "p5.48xlarge": 32,
    "p5en.48xlarge": 16,
    "p6-b200.48xlarge": 8,
    "p6-b300.48xlarge": 16,
    "g5.48xlarge": 1,
}


@pytest.mark.parametrize("machine", COUNTS)
def test_fabric_when_the_pool_has_efa_then_one_device_per_interface(machine: str) -> None:
    fabric = fabric_of(on_eks(machine).target)
    assert fabric is not None
    assert (fabric.resource, fabric.count, fabric.names) == (EFA, COUNTS[machine], {EFA: COUNTS[machine]})
    assert fabric.parts == ((EFA_PLUGIN, AWS_DRANET),)
    assert f'"{RESOURCE_TAG}{EFA}": "{COUNTS[machine]}"' in fabric.from_zero  # the tag that the autoscaler reads


def test_fabric_when_the_machine_has_no_efa_then_none() -> None:
    assert fabric_of(on_eks("g5.xlarge").target) is None


def test_hugepages_when_the_image_reserves_them_then_the_amount_of_its_efa_software() -> None:
    pool = on_eks(hugepages={"2Mi": 5128})
    fabric = fabric_of(pool.target)
    assert fabric is not None
    assert fabric.hugepages == hugepages_of(pool.target)


def test_hugepages_when_the_image_is_the_users_own_then_none_are_expected() -> None:
    pool = on_eks()
    fabric = fabric_of(replace(pool.target, native={"imageId": "ami-0123456789abcdef0"}))
    assert fabric is not None
    assert fabric.hugepages == {}
    assert "hugepages" not in fabric.from_zero
