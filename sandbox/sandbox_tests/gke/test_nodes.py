"""Nodes of the emulated GKE: their labels, and what GKE's own plugin makes of their GPUs. One transport is enough."""

from __future__ import annotations

import json
import ssl
import urllib.request
from typing import TYPE_CHECKING

import pytest

from gpukube_sandbox import daemon
from gpukube_sandbox.gke.accelerators import ACCELERATORS
from gpukube_sandbox.kube.nodes.gkeplugin import PARTITIONS, advertise_gke
from gpukube_sandbox.kube.nodes.hardware import find_model, fits
from gpukube_sandbox.kube.nodes.pluginconfig import Crash
from gpukube_sandbox.kube.nodes.shapes import GpuShape
from sandbox_tests.gke.clients import NAME, ZONE, Gke, add_cluster, gpu_pool, mig_pool, pool_of, shared, t4_pool
from sandbox_tests.sandboxes import signed
from sandbox_tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpukube_sandbox.daemon import SandboxInfo
    from sandbox_tests.gke.clients import Json

A100 = "nvidia-tesla-a100"
OFF = {"gpu_driver_version": "INSTALLATION_DISABLED"}
OPT_OUT = {"gke-no-default-nvidia-gpu-device-plugin": "true"}


@pytest.fixture(scope="module")
def one_client(running_sandbox: SandboxInfo) -> Iterator[Gke]:
    client = Gke(running_sandbox, "grpc")
    yield client
    client.close()


@pytest.fixture
def gke(sandbox: SandboxInfo, one_client: Gke) -> Gke:
    add_cluster(sandbox)
    return one_client


def _labels(gke: Gke, pool: str) -> dict[str, str]:
    labels: dict[str, str] = gke.nodes(pool)[0]["metadata"]["labels"]  # type: ignore[index] # JSON
    return labels


COUNTS: dict[str, tuple[Json, int]] = {
    "one A100 whole": (gpu_pool("p", "a2-highgpu-1g", A100, 1), 1),
    "one A100 in seven": (mig_pool("p"), 7),
    "eight A100 in seven": (gpu_pool("p", "a2-highgpu-8g", A100, 8, gpu_partition_size="1g.5gb"), 56),
    "sixteen A100 in seven, three clients each": (
        gpu_pool(
            "p", "a2-megagpu-16g", A100, 16, gpu_partition_size="1g.5gb", gpu_sharing_config=shared("TIME_SHARING", 3)
        ),
        336,
    ),
    "four A100-80 in three, five clients each": (
        gpu_pool(
            "p",
            "a2-ultragpu-4g",
            "nvidia-a100-80gb",
            4,
            gpu_partition_size="2g.20gb",
            gpu_sharing_config=shared("MPS", 5),
        ),
        60,
    ),
    "a T4 for four": (t4_pool("p", gpu_sharing_config=shared("TIME_SHARING", 4)), 4),
    "an L4 for eight by MPS": (
        gpu_pool("p", "g2-standard-12", "nvidia-l4", 1, gpu_sharing_config=shared("MPS", 8)),
        8,
    ),
    "on Ubuntu": (t4_pool("p", image_type="UBUNTU_CONTAINERD"), 1),
    "a large machine": (gpu_pool("p", "a3-highgpu-8g", "nvidia-h100-80gb", 8), 8),
    "P4": (gpu_pool("p", "n1-standard-8", "nvidia-tesla-p4", 2), 2),
    "P100": (gpu_pool("p", "n1-highmem-8", "nvidia-tesla-p100", 1), 1),
}


@pytest.mark.parametrize("case", COUNTS.values(), ids=COUNTS.keys())
def test_devices_when_the_pool_is_up_then_gpus_times_partitions_times_clients(gke: Gke, case: tuple[Json, int]) -> None:
    pool, devices = case
    gke.create(pool)
    gke.devices("p", devices)


def test_devices_when_nobody_installs_the_driver_then_none(gke: Gke) -> None:
    gke.create(t4_pool("p", gpu_driver_installation_config=OFF))
    gke.devices("p", None)
    assert "cloud.google.com/gke-gpu-driver-version" not in _labels(gke, "p")


def test_devices_when_the_plugin_is_opted_out_then_none_and_no_pod_of_it(gke: Gke) -> None:
    gke.create(t4_pool("p", labels=OPT_OUT))
    gke.create(t4_pool("q"))
    gke.devices("q", 1)
    gke.devices("p", None)
    plugins = {node: name for node, name in _pods(gke) if "device-plugin" in name}
    assert _name(gke, "p") not in plugins
    assert plugins[_name(gke, "q")].startswith("nvidia-gpu-device-plugin-small-cos-")


def test_devices_when_the_opt_out_comes_later_then_they_vanish(gke: Gke) -> None:
    gke.create(t4_pool("p"))
    gke.devices("p", 1)
    gke.update("p", labels={"labels": OPT_OUT})
    gke.devices("p", 0)


def test_devices_when_the_plugin_does_not_know_the_size_then_none(gke: Gke) -> None:
    gke.create(gpu_pool("p", "a2-highgpu-1g", A100, 1, gpu_partition_size="4g.20gb"))
    gke.devices("p", None)


def test_plugin_when_there_are_no_gpus_then_six_daemonsets_want_nothing(gke: Gke) -> None:
    every = {str(one["metadata"]["name"]): one for one in _get(gke, "daemonsets", "apis/apps/v1")}  # type: ignore[index]
    found = {name: one for name, one in every.items() if "device-plugin" in name}
    sizes = {
        f"nvidia-gpu-device-plugin-{size}-{system}"
        for size in ("small", "medium", "large")
        for system in ("cos", "ubuntu")
    }
    assert set(found) == sizes
    assert {one["status"].get("desiredNumberScheduled", 0) for one in found.values()} == {0}  # type: ignore[attr-defined]


def _pods(gke: Gke) -> list[tuple[str, str]]:
    """List the nodes and names of the pods of kube-system."""
    return [(str(pod["spec"].get("nodeName")), str(pod["metadata"]["name"])) for pod in _get(gke, "pods")]  # type: ignore[attr-defined, index]  # JSON


def _get(gke: Gke, kind: str, group: str = "api/v1") -> list[Json]:
    cluster = gke.sdk.get_cluster(name=f"projects/demo-proj/locations/{ZONE}/clusters/{NAME}")
    context = ssl.create_default_context(cafile=gke.info.ca_path)
    url = f"https://{cluster.endpoint}/{group}/namespaces/kube-system/{kind}"
    request = urllib.request.Request(url, headers=signed(gke.info))
    with urllib.request.urlopen(request, context=context) as response:  # noqa: S310 - as above
        items: list[Json] = json.load(response)["items"]
    return items


def _name(gke: Gke, pool: str) -> str:
    return str(gke.nodes(pool)[0]["metadata"]["name"])  # type: ignore[index] # JSON


def test_labels_when_gpus_are_cut_and_shared_then_as_documented(gke: Gke) -> None:
    pool = gpu_pool(
        "p",
        "a2-highgpu-1g",
        A100,
        1,
        gpu_partition_size="2g.10gb",
        gpu_sharing_config=shared("TIME_SHARING", 3),
        gpu_driver_installation_config={"gpu_driver_version": "LATEST"},
        labels={"team": "ml"},
        spot=True,
    )
    gke.create(pool)
    labels = _labels(gke, "p")
    prefix = "cloud.google.com/"
    wanted = {
        "team": "ml",
        f"{prefix}gke-nodepool": "p",
        f"{prefix}gke-accelerator": A100,
        f"{prefix}gke-gpu-partition-size": "2g.10gb",
        f"{prefix}gke-gpu-sharing-strategy": "time-sharing",
        f"{prefix}gke-max-shared-clients-per-gpu": "3",
        f"{prefix}gke-gpu-driver-version": "latest",
        f"{prefix}gke-spot": "true",
        f"{prefix}gke-provisioning": "spot",
        f"{prefix}machine-family": "a2",
        f"{prefix}gke-os-distribution": "cos",
        "node.kubernetes.io/instance-type": "a2-highgpu-1g",
        "topology.kubernetes.io/zone": ZONE,
        "topology.kubernetes.io/region": "us-central1",
    }
    assert {key: labels.get(key) for key in wanted} == wanted


def test_labels_when_there_is_no_gpu_then_none_of_gpus(gke: Gke) -> None:
    gke.create(pool_of("p", config={"preemptible": True}))
    labels = _labels(gke, "p")
    assert not [key for key in labels if "accelerator" in key or "gpu" in key]
    assert labels["cloud.google.com/gke-preemptible"] == "true"


def test_labels_when_a_partition_has_a_plus_then_a_dot(gke: Gke) -> None:
    gke.create(gpu_pool("p", "g4-standard-48", "nvidia-rtx-pro-6000", 1, gpu_partition_size="1g.24gb+gfx"))
    assert _labels(gke, "p")["cloud.google.com/gke-gpu-partition-size"] == "1g.24gb.gfx"
    gke.devices("p", 4)


def test_names_when_they_are_long_then_cut_to_32_and_all_different(gke: Gke) -> None:
    name = "a-pool-with-a-name-of-forty-characters-x"
    gke.create(t4_pool(name, 3))
    names = {str(node["metadata"]["name"]) for node in gke.nodes(name)}  # type: ignore[index] # JSON
    assert len(names) == 3
    assert all(len(one) <= 63 and one.startswith("gke-train-a-pool") for one in names)


def test_foreign_plugin_when_it_is_there_then_both_run_on_the_node(sandbox: SandboxInfo, one_client: Gke) -> None:
    add_cluster(sandbox, foreignPlugin=True)
    one_client.create(t4_pool("p"))
    one_client.devices("p", 1)
    node = _name(one_client, "p")
    wait_for(
        lambda: len([name for on, name in _pods(one_client) if on == node and "device-plugin" in name]) == 2,
        lambda: _pods(one_client),
    )


def test_deny_when_rbac_refuses_then_the_cluster_does(gke: Gke) -> None:
    daemon.deny(gke.info, NAME, ("list", "pods"))
    with pytest.raises(OSError, match="403"):
        _get(gke, "pods")


def test_partitions_when_the_api_takes_them_then_the_hardware_fits_and_the_plugin_counts_alike() -> None:
    unknown = set()
    for kind in ACCELERATORS.values():
        model = find_model(kind.model)
        for size, count in kind.partitions.items():
            assert fits(model, (size,) * count), (kind.model, size)
            shape = GpuShape(kind.model, 2, (size,) * count, partition=size)
            if size in PARTITIONS:
                assert advertise_gke(shape).resources == {"nvidia.com/gpu": 2 * count}, (kind.model, size)
            else:
                unknown.add(size)
    assert unknown == {"4g.20gb", "4g.40gb"}


@pytest.mark.parametrize(
    ("shape", "limited"),
    [
        (GpuShape("T4-16GB", 1, sharing="time-sharing", clients=4), True),
        (GpuShape("T4-16GB", 1, sharing="mps", clients=4), False),
        (GpuShape("T4-16GB", 2, sharing="mps", clients=4), True),
        (GpuShape("T4-16GB", 2), False),
    ],
)
def test_plugin_when_shared_then_one_device_a_container(shape: GpuShape, *, limited: bool) -> None:
    assert bool(advertise_gke(shape).limited) == limited


def test_plugin_when_not_all_gpus_are_cut_then_it_does_not_start() -> None:
    shape = GpuShape("A100-40GB", 2, (("1g.5gb",) * 7, None), partition="1g.5gb")
    with pytest.raises(Crash, match="GPU 1 has 0 of 7"):
        advertise_gke(shape)
    with pytest.raises(Crash, match=r"4g\.20gb is not a valid"):
        advertise_gke(GpuShape("A100-40GB", 1, ("4g.20gb",), partition="4g.20gb"))
