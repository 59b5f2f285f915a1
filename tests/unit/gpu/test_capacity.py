"""Predicted devices per node and per pool."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpukube.gpu.capacity import node_capacity, pool_capacity, shared_name, unshared_resources
from gpukube.gpu.catalog import CatalogError, Machine, machines, require_machine
from gpukube.gpu.mig import profiles
from gpukube.gpu.models import model_named
from gpukube.gpu.sharing import MigCut, MigStrategy, Sharing, Slicing
from tests.unit.gpu.geometry import GPUS, holds, most

A100X8 = require_machine("aks", "Standard_ND96asr_v4")
STRATEGIES: tuple[MigStrategy, ...] = ("single", "mixed")
MACHINES = list({(m.provider, m.model, m.gpus): m for m in machines()}.values())
"""One of each cloud, GPU and number of GPUs."""
A30X4 = replace(A100X8, name="four-a30", model=model_named("A30-24GB"), gpus=4)


def mixed(profile: str) -> Sharing:
    return Sharing(MigCut(profile, "mixed"))


def sliced(replicas: int, *, rename: bool = False, mode: Literal["time-slicing", "mps"] = "time-slicing") -> Slicing:
    return Slicing(mode, replicas, rename=rename)


SINGLE = MigCut("1g.5gb", "single")

CASES: list[tuple[str, Machine, Sharing, dict[str, int]]] = [
    ("whole", A100X8, Sharing(), {"nvidia.com/gpu": 8}),
    ("single", A100X8, Sharing(SINGLE), {"nvidia.com/gpu": 56}),
    ("mixed 1g", A100X8, mixed("1g.5gb"), {"nvidia.com/mig-1g.5gb": 56}),
    ("mixed 2g", A100X8, mixed("2g.10gb"), {"nvidia.com/mig-2g.10gb": 24}),
    ("mixed 3g", A100X8, mixed("3g.20gb"), {"nvidia.com/mig-3g.20gb": 16}),
    ("mixed 4g", A100X8, mixed("4g.20gb"), {"nvidia.com/mig-4g.20gb": 8}),
    ("mixed 7g", A100X8, mixed("7g.40gb"), {"nvidia.com/mig-7g.40gb": 8}),
    ("mixed 1g+me", A100X8, mixed("1g.5gb+me"), {"nvidia.com/mig-1g.5gb.me": 8}),
    ("single, sliced", A100X8, Sharing(SINGLE, sliced(2)), {"nvidia.com/gpu": 112}),
    ("single, sliced, renamed", A100X8, Sharing(SINGLE, sliced(2, rename=True)), {"nvidia.com/gpu.shared": 112}),
    (
        "mixed, sliced, renamed",
        A100X8,
        Sharing(MigCut("1g.5gb", "mixed"), sliced(2, rename=True)),
        {"nvidia.com/mig-1g.5gb.shared": 112},
    ),
    (
        "H100 double memory, single",
        require_machine("eks", "p5.48xlarge"),
        Sharing(MigCut("1g.20gb", "single")),
        {"nvidia.com/gpu": 32},
    ),
    ("A30", A30X4, mixed("1g.6gb"), {"nvidia.com/mig-1g.6gb": 16}),
    ("8 x T4, sliced 10", require_machine("eks", "g4dn.metal"), Sharing(None, sliced(10)), {"nvidia.com/gpu": 80}),
    (
        "mps",
        require_machine("aks", "Standard_NC4as_T4_v3"),
        Sharing(None, sliced(4, mode="mps")),
        {"nvidia.com/gpu": 4},
    ),
    ("NC24ads 2g", require_machine("aks", "Standard_NC24ads_A100_v4"), mixed("2g.20gb"), {"nvidia.com/mig-2g.20gb": 3}),
    ("NC48ads 2g", require_machine("aks", "Standard_NC48ads_A100_v4"), mixed("2g.20gb"), {"nvidia.com/mig-2g.20gb": 6}),
    ("a share shows as one", require_machine("eks", "g6f.large"), Sharing(), {"nvidia.com/gpu": 1}),
    (
        "a sliced share",
        require_machine("aks", "Standard_NV6ads_A10_v5"),
        Sharing(None, sliced(3)),
        {"nvidia.com/gpu": 3},
    ),
]


@pytest.mark.parametrize(("machine", "sharing", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_node_capacity_when_cut_and_shared_then_gpus_x_instances_x_replicas(
    machine: Machine, sharing: Sharing, expected: dict[str, int]
) -> None:
    assert node_capacity(machine, sharing) == expected


def test_node_capacity_when_the_profile_is_unknown_then_raises() -> None:
    with pytest.raises(CatalogError):
        node_capacity(A100X8, mixed("1g.6gb"))


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(1, 1, (56, 56)), (0, 3, (0, 168)), (2, 5, (112, 280)), (0, 0, (0, 0))]
)
def test_pool_capacity_when_nodes_vary_then_fewest_and_most(low: int, high: int, expected: tuple[int, int]) -> None:
    assert pool_capacity({"nvidia.com/gpu": 56}, low, high) == {"nvidia.com/gpu": expected}


@st.composite
def nodes(draw: st.DrawFn) -> tuple[Machine, Sharing]:
    machine = draw(st.sampled_from(machines()))
    known = profiles(machine.model) if machine.mig_capable else ()
    cuts = [MigCut(p.name, s) for p in known for s in STRATEGIES]
    cut = draw(st.sampled_from([None, *cuts]))
    slicing = draw(
        st.none() | st.builds(Slicing, st.just("time-slicing"), st.integers(2, 48), st.none(), st.booleans())
    )
    return machine, Sharing(cut, slicing)


@given(nodes())
def test_node_capacity_when_anything_legal_then_one_resource_and_a_multiple_of_the_devices(
    node: tuple[Machine, Sharing],
) -> None:
    machine, sharing = node
    [(name, devices)] = node_capacity(machine, sharing).items()
    replicas = sharing.slicing.replicas if sharing.slicing else 1
    assert devices % (machine.devices * replicas) == 0
    assert devices >= machine.devices * replicas
    assert devices <= machine.devices * 7 * replicas
    assert [name] == [shared_name(each, sharing) for each in unshared_resources(sharing)]
    assert name.endswith(".shared") == bool(sharing.slicing and sharing.slicing.rename)
    assert name.startswith("nvidia.com/mig-") == bool(sharing.mig and sharing.mig.strategy == "mixed")


LAYOUTS: list[tuple[str, Machine, Sharing, dict[str, int]]] = [
    (
        "all-balanced",
        A100X8,
        Sharing(MigCut("", "mixed", ("1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb"))),
        {"nvidia.com/mig-1g.5gb": 16, "nvidia.com/mig-2g.10gb": 8, "nvidia.com/mig-3g.20gb": 8},
    ),
    (
        "sliced and renamed",
        A100X8,
        Sharing(MigCut("", "mixed", ("3g.20gb", "1g.5gb+me")), sliced(2, rename=True)),
        {"nvidia.com/mig-1g.5gb.me.shared": 16, "nvidia.com/mig-3g.20gb.shared": 16},
    ),
    ("of one profile, single", A100X8, Sharing(MigCut("", "single", ("2g.10gb",) * 2)), {"nvidia.com/gpu": 16}),
    # GKE cluster autoscaler, PhysicalToAllocatable: GPUs x partitions x clients
    (
        "GKE, 4 x 2g.20gb x 5",
        require_machine("gke", "a2-ultragpu-4g"),
        Sharing(MigCut("2g.20gb", "single"), sliced(5)),
        {"nvidia.com/gpu": 60},
    ),
    (
        "GKE, 16 x 1g.5gb x 3, mps",
        require_machine("gke", "a2-megagpu-16g"),
        Sharing(SINGLE, sliced(3, mode="mps")),
        {"nvidia.com/gpu": 336},
    ),
]


@pytest.mark.parametrize(("machine", "sharing", "expected"), [c[1:] for c in LAYOUTS], ids=[c[0] for c in LAYOUTS])
def test_node_capacity_when_laid_out_then_each_profile_under_its_name(
    machine: Machine, sharing: Sharing, expected: dict[str, int]
) -> None:
    assert node_capacity(machine, sharing) == expected
    assert sorted(expected) == [shared_name(name, sharing) for name in unshared_resources(sharing)]


MODES: tuple[Literal["time-slicing", "mps"], ...] = ("time-slicing", "mps")
SLICINGS = [
    None,
    *(Slicing(mode, replicas, rename=rename) for mode in MODES for replicas in (2, 7) for rename in (False, True)),
]


def enumerate_devices(machine: Machine, sharing: Sharing) -> dict[str, int]:
    """Go through a node GPU by GPU, instance by instance, replica by replica, and name each device."""
    shown: Counter[str] = Counter()
    for _gpu in range(max(1, int(machine.gpus))):
        instances: list[str] = ["gpu"]
        if sharing.mig:
            name = sharing.mig.profile
            instances = list(sharing.mig.layout) or [name] * most(machine.model.name, name)
        for instance in instances:
            alike = sharing.mig is None or sharing.mig.strategy == "single"
            name = "gpu" if alike else f"mig-{instance.replace('+', '.')}"
            for _replica in range(sharing.slicing.replicas if sharing.slicing else 1):
                suffix = ".shared" if sharing.slicing and sharing.slicing.rename else ""
                shown[f"nvidia.com/{name}{suffix}"] += 1
    return dict(shown)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: f"{m.provider}-{m.model}-{m.gpus:g}")
def test_node_capacity_when_every_sharing_of_every_gpu_is_tried_then_as_counting_devices_says(
    machine: Machine,
) -> None:
    kinds = GPUS.get(machine.model.name, ()) if not machine.is_fractional else ()
    cuts = [MigCut(kind.name, strategy) for kind in kinds for strategy in STRATEGIES]
    pairs = [tuple(sorted({kinds[0].name, kind.name})) for kind in kinds[1:]]
    mixes = [MigCut("", "mixed", pair) for pair in pairs if holds(machine.model.name, pair)]
    for cut in [None, *cuts, *mixes]:
        for slicing in SLICINGS:
            sharing = Sharing(cut, slicing)
            assert node_capacity(machine, sharing) == enumerate_devices(machine, sharing), sharing
