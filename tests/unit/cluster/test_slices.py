"""Reading ResourceSlices, and which of them count."""

from __future__ import annotations

from gpukube.cluster.kube.slices import SliceView, device_pools, slice_view
from gpukube.cluster.state.published import held_devices, published
from tests.unit.cluster.claiming import gpu, mig, slice_of

SLICE = {
    "metadata": {"name": "node-1-gpu.nvidia.com-x7k2p"},
    "spec": {
        "driver": "gpu.nvidia.com",
        "nodeName": "node-1",
        "pool": {"name": "node-1", "generation": 3, "resourceSliceCount": 2},
        "devices": [
            {
                "name": "gpu-0",
                "attributes": {
                    "type": {"string": "gpu"},
                    "cudaComputeCapability": {"version": "9.0.0"},
                    "resource.kubernetes.io/numaNode": {"int": 1},
                    "healthy": {"bool": False},
                },
                "capacity": {"memory": {"value": "81559Mi"}},
                "taints": [{"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoExecute"}],
            },
            {"name": "gpu-1", "taints": [{"key": "gpu.nvidia.com/unmonitored", "effect": "None"}]},
        ],
    },
}


def test_names_without_a_domain_belong_to_the_driver() -> None:
    found = slice_view(SLICE)

    assert (found.driver, found.node, found.pool, found.generation, found.expected) == (
        "gpu.nvidia.com", "node-1", "node-1", 3, 2,
    )  # fmt: skip
    assert found.devices[0].attributes == {
        "gpu.nvidia.com/type": "gpu",
        "gpu.nvidia.com/cudaComputeCapability": "9.0.0",
        "resource.kubernetes.io/numaNode": 1,
        "gpu.nvidia.com/healthy": False,
    }
    assert found.devices[0].capacity == {"gpu.nvidia.com/memory": "81559Mi"}


def test_only_the_effects_that_keep_claims_away_count() -> None:
    first, second = slice_view(SLICE).devices

    assert first.kept_off
    assert not second.kept_off


def test_only_slices_of_the_highest_generation_count() -> None:
    old = [SliceView(f"old-{index}", "gpu.nvidia.com", "node-1", "node-1", 1, 2) for index in range(2)]
    new = slice_view(SLICE)
    other = SliceView("nic", "dra.net", "node-1", "node-1", 9, 1)

    (pool,) = device_pools([*old, new, other], "gpu.nvidia.com")

    assert (pool.generation, pool.found, pool.expected, pool.complete) == (3, 1, 2, False)
    assert pool.devices == new.devices


def test_a_pool_with_all_its_slices_is_complete() -> None:
    slices = [SliceView(f"s-{index}", "gpu.nvidia.com", "node-1", "node-1", 1, 2) for index in range(2)]

    (pool,) = device_pools(slices, "gpu.nvidia.com")

    assert pool.complete


def result(device: str, pool: str = "node-1", driver: str = "gpu.nvidia.com", **more: object) -> dict[str, object]:
    return {"request": "gpu", "driver": driver, "pool": pool, "device": device, **more}


def test_devices_that_claims_hold_count_once_and_not_if_they_are_only_observed() -> None:
    slices = [slice_of([gpu(0), gpu(1), mig(2, "1g.5gb", 0)]), slice_of([gpu(0)], "node-2")]
    results = [
        [result("gpu-0"), result("gpu-0", shareID="a"), result("gpu-2-mig-0")],
        [result("gpu-0", shareID="b"), result("gpu-0", "node-2", adminAccess=True)],
        [result("gpu-1", driver="dra.net"), result("gpu-7")],
    ]
    claims = [{"status": {"allocation": {"devices": {"results": found}}}} for found in results]

    assert held_devices(published(slices), [*claims, {"status": {}}]) == {
        "node-1": {"gpu.nvidia.com": 1, "mig.nvidia.com/1g.5gb": 1}
    }
