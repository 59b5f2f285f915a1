"""GPUs on N1 machines: which goes on which, and what is said of the rest."""

from __future__ import annotations

import re

import pytest

from gpukube.gpu.attached import ATTACHED, MOST_VCPUS, find_host, usual_host
from gpukube.gpu.catalog import CatalogError, machines, parse_model, require_machine, resolve_machine

T4 = parse_model("T4")
PARTS = [machine for machine in machines("gke") if machine.name == ATTACHED]


def test_require_machine_when_a_gpu_is_attached_then_host_and_gpu_are_one_machine() -> None:
    machine = require_machine("gke", "n1-standard-8", (T4, 2))

    assert (machine.name, machine.model, machine.devices) == ("n1-standard-8", T4, 2)
    assert (machine.vcpus, machine.memory_gib, machine.accelerator) == (8, 30, "nvidia-tesla-t4")
    assert machine.mig_capable is False


@pytest.mark.parametrize(
    ("name", "vcpus", "memory"),
    [
        ("n1-standard-1", 1, 3.75),
        ("n1-highmem-4", 4, 26),
        ("n1-highcpu-16", 16, 14.4),
        ("n1-custom-6-20480", 6, 20),
        ("custom-6-20480", 6, 20),
    ],
)
def test_find_host_when_a_name_of_n1_then_its_shape(name: str, vcpus: int, memory: float) -> None:
    host = find_host(name)

    assert host is not None
    assert (host.vcpus, host.memory_gib) == (vcpus, memory)


@pytest.mark.parametrize("name", ["n1-standard-7", "n1-highmem-1", "n2-standard-8"])
def test_find_host_when_no_n1_machine_then_none(name: str) -> None:
    assert find_host(name) is None


def test_require_machine_when_the_cloud_attaches_no_gpus_then_a_name_of_n1_is_unknown() -> None:
    with pytest.raises(CatalogError, match="not a GPU instance type of aks"):
        require_machine("aks", "n1-standard-8")


@pytest.mark.parametrize(
    ("name", "gpu", "message", "fix"),
    [
        ("n1-standard-8", None, "has no GPU of its own", "gpu: {model: T4, count: 1}"),
        ("n1-standard-8", ("T4", 3), "cannot have 3 x T4-16GB", "write count 1, 2 or 4"),
        ("n1-standard-64", ("T4", 1), "has 64 vCPUs, too many for 1 x T4-16GB", "at most 48 vCPUs"),
        ("n1-standard-16", ("V100-16GB", 1), "has 16 vCPUs", "at most 12 vCPUs"),
        ("n1-standard-8", ("L4", 1), "L4-24GB cannot be attached", "P100-16GB, P4-8GB, T4-16GB or V100-16GB"),
    ],
)
def test_require_machine_when_the_gpu_does_not_go_there_then_says_what_does(
    name: str, gpu: tuple[str, int] | None, message: str, fix: str
) -> None:
    with pytest.raises(CatalogError, match=re.escape(message)) as caught:
        require_machine("gke", name, (parse_model(gpu[0]), gpu[1]) if gpu else None)

    assert caught.value.code == "instance-type"
    assert fix in caught.value.fix


@pytest.mark.parametrize("part", PARTS, ids=lambda part: f"{part.model}-{part.devices}")
def test_limit_when_compared_with_the_catalog_then_the_same(part: object) -> None:
    machine = next(found for found in PARTS if found is part)

    assert f"at most {MOST_VCPUS[machine.model.name][machine.devices]} vCPUs" in machine.notes


@pytest.mark.parametrize("part", PARTS, ids=lambda part: f"{part.model}-{part.devices}")
def test_usual_host_when_only_the_gpu_is_asked_for_then_it_takes_it(part: object) -> None:
    machine = next(found for found in PARTS if found is part)
    host = usual_host(machine.gpus)

    assert find_host(host.name) == host
    assert host.vcpus <= MOST_VCPUS[machine.model.name][machine.devices]


def test_resolve_machine_when_the_gpu_is_attached_then_a_whole_machine() -> None:
    machine = resolve_machine("gke", T4, 2).machine

    assert (machine.name, machine.devices, machine.accelerator) == ("n1-standard-8", 2, "nvidia-tesla-t4")
