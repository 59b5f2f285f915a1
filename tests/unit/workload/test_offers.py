"""What pools offer to pods: room, labels and devices of nodes that do not exist yet, by what the clouds document."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpukube.core.prices import UNPRICED
from gpukube.gpu.catalog import machines, require_machine
from gpukube.provider import load_provider
from gpukube.workload.offers import make_offers
from gpukube_sandbox.kube.nodes.registration import node_object
from gpukube_sandbox.kube.nodes.shapes import NodeShape
from tests.builders import make_target
from tests.unit.workload.specs import offers

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube.core.node_facts import Room
    from gpukube.core.values import Target
    from gpukube.workload.offers import PoolOffer

MIB = 1024**2
GIB = 1024**3

ROOMS: dict[str, tuple[str, str, int | None, int, int, int]] = {
    # Cloud, machine, maxPodsPerNode -> millicores, MiB, pods; by hand from the pages that facts/nodes.py names.
    "eks, 4 cores, addresses for 29 pods": ("eks", "g4dn.xlarge", None, 4000 - 80 - 250, 15155 - 574 - 100 - 256, 20),
    "eks, pods that the spec writes": ("eks", "g4dn.xlarge", 110, 3670, 15155 - 1465 - 100 - 256, 101),
    "eks, more addresses than a group allows": ("eks", "p4d.24xlarge", None, 95440, 1091174 - 8362 - 356, 241),
    "aks, network not known": ("aks", "Standard_NC4as_T4_v3", None, 4000 - 140 - 600, 26521 - 5050 - 100 - 1152, 18),
    "aks, pods that the spec writes": ("aks", "Standard_NC4as_T4_v3", 60, 3260, 26521 - 1250 - 100 - 1152, 48),
    "aks, large": ("aks", "Standard_ND96asr_v4", None, 96000 - 1060 - 600, 852480 - 5050 - 100 - 1152, 18),
    "gke, 4 cores": ("gke", "g2-standard-4", None, 4000 - 80 - 600, 15872 - 2662 - 100 - 768, 96),
    "gke, large": ("gke", "a2-highgpu-8g", None, 96000 - 310 - 600, 674560 - 20849 - 100 - 768, 96),
}


def target_of(cloud: str, machine: str, pods: int | None = None) -> Target:
    return replace(make_target(), machine=require_machine(cloud, machine), max_pods=pods)


@pytest.mark.parametrize("case", ROOMS)
def test_room_when_the_cloud_reserves_then_what_is_left(case: str) -> None:
    cloud, machine, most, cpu, memory, pods = ROOMS[case]
    room = load_provider(cloud).nodes.room(target_of(cloud, machine, most))
    assert room is not None
    assert (room.cpu, room.pods) == (cpu, pods)
    assert room.memory / MIB == pytest.approx(memory, abs=2)


@pytest.mark.parametrize("cloud", ["aks", "eks", "gke"])
def test_room_when_compared_with_emulated_nodes_then_never_more(cloud: str) -> None:
    """The sandbox reserves by words of its own; what fits by the documents must fit there."""
    for machine in machines(cloud):
        if machine.vcpus is None or machine.memory_gib is None or machine.status == "retired":
            continue
        room = load_provider(cloud).nodes.room(target_of(cloud, machine.name)) if "*" not in machine.name else None
        shape = NodeShape(name="a", machine=machine.name, cpu=machine.vcpus, memory_gib=machine.memory_gib)
        free = node_object(shape, "v1.34.2", "")["status"]["allocatable"]
        assert room is None or _fits(room, free), machine.name


def _fits(room: Room, free: dict[str, str]) -> bool:
    return room.cpu <= int(free["cpu"][:-1]) and room.memory <= int(free["memory"][:-2]) * 1024


def test_room_when_the_machine_is_not_known_then_none() -> None:
    assert load_provider("gke").nodes.room(target_of("gke", "a4x-highgpu-4g-nolssd")) is None


LABELS: dict[str, dict[str, str]] = {
    "train-eks/spot": {
        "eks.amazonaws.com/nodegroup": "spot",
        "eks.amazonaws.com/capacityType": "SPOT",
        "k8s.amazonaws.com/accelerator": "nvidia-tesla-t4",
        "topology.kubernetes.io/region": "us-east-1",
    },
    "train-eks/whole": {"eks.amazonaws.com/nodegroup": "whole", "eks.amazonaws.com/capacityType": "ON_DEMAND"},
    "train-aks/spot": {
        "kubernetes.azure.com/agentpool": "spot",
        "agentpool": "spot",
        "kubernetes.azure.com/accelerator": "nvidia",
        "kubernetes.azure.com/scalesetpriority": "spot",
        "node.kubernetes.io/instance-type": "Standard_NC4as_T4_v3",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
    },
    "train-aks/whole": {"kubernetes.azure.com/priority": "regular"},
    "train-gke/spot": {
        "cloud.google.com/gke-nodepool": "spot",
        "cloud.google.com/gke-accelerator": "nvidia-tesla-t4",
        "cloud.google.com/gke-spot": "true",
        "cloud.google.com/gke-provisioning": "spot",
        "cloud.google.com/machine-family": "n1",
        "topology.kubernetes.io/region": "us-central1",
    },
    "train-gke/single": {"cloud.google.com/gke-gpu-partition-size": "1g.5gb"},
    "train-gke/sliced": {
        "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
        "cloud.google.com/gke-max-shared-clients-per-gpu": "4",
        "cloud.google.com/gke-provisioning": "standard",
    },
    "train-gke/mps": {"cloud.google.com/gke-gpu-sharing-strategy": "mps"},
}

SELECTORS: dict[str, dict[str, str]] = {
    "train-eks/spot": {"eks.amazonaws.com/nodegroup": "spot"},
    "train-aks/single": {"kubernetes.azure.com/agentpool": "single"},
    "train-gke/whole": {"cloud.google.com/gke-nodepool": "whole"},
    "train-gke/single": {
        "cloud.google.com/gke-nodepool": "single",
        "cloud.google.com/gke-gpu-partition-size": "1g.5gb",
    },
    "train-gke/sliced": {
        "cloud.google.com/gke-nodepool": "sliced",
        "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
        "cloud.google.com/gke-max-shared-clients-per-gpu": "4",
    },
}

EXPECTED: dict[str, tuple[dict[str, int], dict[str, int]]] = {
    # Devices of a node that is up, and those that the autoscaler expects of an empty pool.
    "train-aks/whole": ({"nvidia.com/gpu": 8}, {"nvidia.com/gpu": 8}),
    "train-aks/single": ({"nvidia.com/gpu": 56}, {"nvidia.com/gpu": 8}),
    "train-gke/single": ({"nvidia.com/gpu": 56}, {"nvidia.com/gpu": 56}),
    "train-aks/mixed": ({"nvidia.com/mig-1g.5gb": 56}, {"nvidia.com/gpu": 8}),
    "train-eks/renamed": ({"nvidia.com/gpu.shared": 4}, {"nvidia.com/gpu": 1, "nvidia.com/gpu.shared": 4}),
    "train-eks/whole": ({"nvidia.com/gpu": 8}, {"nvidia.com/gpu": 8}),
}

SINGLE = {"train-gke/sliced", "train-eks/mps"}
"""Pools whose plugin refuses requests for two shares; GKE's MPS does on nodes with several GPUs only."""
DISCOVERED = {"train-eks/whole", "train-aks/mixed", "train-eks/mps", "train-aks/sliced"}


@pytest.fixture(scope="module")
def all_offers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PoolOffer]:
    names = ("whole", "single", "mixed", "sliced", "renamed", "mps", "spot", "reserved", "nobody")
    return offers(tmp_path_factory.mktemp("offers"), *names)


@pytest.mark.parametrize("pool", LABELS)
def test_labels_when_nodes_are_made_then_the_clouds_own_too(all_offers: dict[str, PoolOffer], pool: str) -> None:
    offer = all_offers[pool]
    assert LABELS[pool].items() <= offer.real.labels.items()
    assert offer.expected.labels == offer.real.labels
    assert offer.real.labels["gpukube.io/pool"] == pool.partition("/")[2]


@pytest.mark.parametrize("pool", SELECTORS)
def test_selector_when_chosen_then_this_pool_alone(all_offers: dict[str, PoolOffer], pool: str) -> None:
    assert all_offers[pool].selector == SELECTORS[pool]


@pytest.mark.parametrize("pool", EXPECTED)
def test_devices_when_the_pool_is_empty_then_as_its_autoscaler_counts(
    all_offers: dict[str, PoolOffer], pool: str
) -> None:
    offer = all_offers[pool]
    assert (offer.real.devices, offer.expected.devices) == EXPECTED[pool]


def test_single_when_the_plugin_refuses_two_shares_then_known(all_offers: dict[str, PoolOffer]) -> None:
    assert {name for name, offer in all_offers.items() if offer.single} == SINGLE


def test_discovered_when_the_chart_serves_the_pool_then_its_labels_may_come(all_offers: dict[str, PoolOffer]) -> None:
    found = {name for name, offer in all_offers.items() if offer.discovered}
    assert found >= DISCOVERED
    assert not found & {"train-gke/whole", "train-aks/nobody"}


def test_price_when_spot_or_reserved_then_not_the_list_price(all_offers: dict[str, PoolOffer], tmp_path: Path) -> None:
    pool = "{name: a2, clusters: [train-gke], gpu: {model: A100-40GB, count: 8}, "
    pool += "nodes: {count: 1}, capacity: {type: spot}}"
    spot, whole = offers(tmp_path, pool)["train-gke/a2"].price, all_offers["train-gke/whole"].price
    assert (spot.spot, spot.place, whole.spot, whole.place) == (True, "us-central1", False, "us-central1")
    assert spot.usd
    assert whole.usd
    assert spot.usd.most < whole.usd.most
    assert all_offers["train-eks/spot"].price.usd is None
    assert all_offers["train-gke/reserved"].price.usd is None


def test_price_when_the_region_is_not_known_then_rough(all_offers: dict[str, PoolOffer]) -> None:
    assert all_offers["train-aks/whole"].price.rough
    assert not all_offers["train-eks/whole"].price.rough


def test_offers_when_several_clouds_then_in_their_order(tmp_path: Path) -> None:
    found = offers(tmp_path, "sliced")
    assert [*found] == ["train-eks/sliced", "train-aks/sliced", "train-gke/sliced"]
    again = make_offers((offer.desired for offer in found.values()), load_provider)
    assert tuple(replace(offer, price=UNPRICED) for offer in found.values()) == again
    assert all(offer.tolerates_resources for offer in again)
