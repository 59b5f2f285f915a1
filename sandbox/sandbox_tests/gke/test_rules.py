"""What GKE refuses, over both transports: code and text of each rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from gpukube_sandbox import daemon
from sandbox_tests.gke.clients import CLUSTER, NAME, PROJECT, ZONE, Gke, gpu_pool, mig_pool, pool_of, shared, t4_pool
from sandbox_tests.sandboxes import signed

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpukube_sandbox.daemon import SandboxInfo
    from sandbox_tests.gke.clients import Json

POOL = f"{CLUSTER}/nodePools/p"
A100, L4, RTX = "nvidia-tesla-a100", "nvidia-l4", "nvidia-rtx-pro-6000"
GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}
OTHER_TAINT = {"key": "nvidia.com/gpu", "value": "other", "effect": "NO_SCHEDULE"}
NAMED = (
    'Invalid value for field "node_pool.name": "{}". Must be a match of regex '
    "'(?:[a-z](?:[-a-z0-9]{{0,38}}[a-z0-9])?)' (only lowercase alphanumerics and '-' allowed, must start with a letter "
    "and end with an alphanumeric, and must be no longer than 40 characters)."
)

INVALID: dict[str, tuple[Json, str]] = {
    "name of 41": (t4_pool("p" * 41), NAMED.format("p" * 41)),
    "name that ends in a dash": (t4_pool("p-"), NAMED.format("p-")),
    "too many nodes": (t4_pool("p", 1001), "Node_pool.initial_node_count must be between 0 and 1000."),
    "zone of another region": (
        t4_pool("p") | {"locations": ["us-east1-b"]},
        "Location 'us-east1-b' is not a zone in region 'us-central1' of the cluster.",
    ),
    "zone twice": (
        t4_pool("p") | {"locations": ["us-central1-a", "us-central1-a"]},
        "Node_pool.locations holds a zone twice.",
    ),
    "taint without effect": (
        t4_pool("p", taints=[{"key": "a", "value": "b"}]),
        "Node taint must have a key and an effect.",
    ),
    "no auto-upgrade on a channel": (
        t4_pool("p") | {"management": {"auto_repair": True}},
        "Auto_upgrade must be true when release_channel REGULAR is set.",
    ),
    "version that is none": (t4_pool("p") | {"version": "new"}, "Version 'new' is invalid."),
    "minor version beyond the control plane": (
        t4_pool("p") | {"version": "1.35"},
        (
            'Node version "1.35.5-gke.1080000" must not have a greater minor version than master version '
            '"1.34.1-gke.1829001".'
        ),
    ),
    "too many pods": (
        t4_pool("p") | {"max_pods_constraint": {"max_pods_per_node": 257}},
        "Max_pods_per_node must be between 8 and 256.",
    ),
    "patch beyond the control plane": (
        t4_pool("p") | {"version": "1.34.2-gke.1"},
        'Node version "1.34.2-gke.1" is unsupported.',
    ),
    "image": (
        t4_pool("p", image_type="WINDOWS_LTSC_CONTAINERD"),
        "Image type 'WINDOWS_LTSC_CONTAINERD' is not supported.",
    ),
    "disk type": (t4_pool("p", disk_type="floppy"), "Disk type 'floppy' is not supported."),
    "two disks": (
        t4_pool("p", disk_size_gb=50, boot_disk={"size_gb": 60}),
        "Node_config.boot_disk does not match disk_type and disk_size_gb.",
    ),
    "spot and preemptible": (t4_pool("p", spot=True, preemptible=True), "Spot and preemptible are mutually exclusive."),
    "fast socket alone": (t4_pool("p", fast_socket={"enabled": True}), "Fast socket requires gVNIC to be enabled."),
    "machine type": (
        gpu_pool("p", "a9-highgpu-1g", A100, 1),
        "Machine type with name 'a9-highgpu-1g' does not exist in zone.",
    ),
    "accelerators left out": (
        pool_of("p", "a2-highgpu-2g"),
        "Machine type a2-highgpu-2g requires accelerators: 2 x nvidia-tesla-a100.",
    ),
    "count of another machine": (
        gpu_pool("p", "a2-highgpu-2g", A100, 1),
        "Machine type a2-highgpu-2g has 2 x nvidia-tesla-a100; 1 x nvidia-tesla-a100 was requested.",
    ),
    "GPU of another machine": (
        gpu_pool("p", "g2-standard-24", "nvidia-tesla-t4", 2),
        "Machine type g2-standard-24 has 2 x nvidia-l4; 2 x nvidia-tesla-t4 was requested.",
    ),
    "unknown GPU": (gpu_pool("p", "n1-standard-4", "tesla", 1), "Accelerator type 'tesla' is not supported."),
    "T4 on n2": (
        gpu_pool("p", "n2-standard-4", "nvidia-tesla-t4", 1),
        "[nvidia-tesla-t4, n2-standard-4] features are not compatible for creating instance.",
    ),
    "L4 on n1": (
        gpu_pool("p", "n1-standard-4", L4, 1),
        "[nvidia-l4, n1-standard-4] features are not compatible for creating instance.",
    ),
    "three T4": (
        gpu_pool("p", "n1-standard-4", "nvidia-tesla-t4", 3),
        "Accelerator count 3 is not supported for nvidia-tesla-t4; supported are [1, 2, 4].",
    ),
    "two accelerators": (
        pool_of("p", "n1-standard-4", config={"accelerators": [{"accelerator_type": "nvidia-tesla-t4"}] * 2}),
        "At most one accelerator configuration is supported.",
    ),
    "partition of another GPU": (
        gpu_pool("p", "a2-highgpu-1g", A100, 1, gpu_partition_size="1g.10gb"),
        "GPU partition size '1g.10gb' is not supported for accelerator nvidia-tesla-a100.",
    ),
    "partition of an L4": (
        gpu_pool("p", "g2-standard-4", L4, 1, gpu_partition_size="1g.5gb"),
        "GPU partition size '1g.5gb' is not supported for accelerator nvidia-l4.",
    ),
    "one client": (
        t4_pool("p", gpu_sharing_config=shared("TIME_SHARING", 1)),
        "Max shared clients per GPU is 1; it must be between 2 and 48.",
    ),
    "49 clients": (
        t4_pool("p", gpu_sharing_config=shared("MPS", 49)),
        "Max shared clients per GPU is 49; it must be between 2 and 48.",
    ),
    "clients without a strategy": (
        t4_pool("p", gpu_sharing_config={"max_shared_clients_per_gpu": 2}),
        "GPU sharing strategy must be specified.",
    ),
    "latest driver on Ubuntu": (
        t4_pool(
            "p",
            image_type="UBUNTU_CONTAINERD",
            gpu_driver_installation_config={"gpu_driver_version": "LATEST"},
        ),
        "GPU driver version LATEST is only available for Container-Optimized OS.",
    ),
    "a part of a GPU on Ubuntu": (
        gpu_pool("p", "g4-standard-12", RTX, 1, image_type="UBUNTU_CONTAINERD"),
        "Machine type g4-standard-12 is only available with Container-Optimized OS.",
    ),
    "a part of a GPU shared": (
        gpu_pool("p", "g4-standard-12", RTX, 1, gpu_sharing_config=shared("TIME_SHARING", 2)),
        "GPU sharing is not supported with machine type g4-standard-12.",
    ),
    "a part of a GPU cut": (
        gpu_pool("p", "g4-standard-12", RTX, 1, gpu_partition_size="1g.24gb"),
        "GPU partition size '1g.24gb' is not supported for accelerator nvidia-rtx-pro-6000.",
    ),
}


@pytest.mark.turns(3)
@pytest.mark.parametrize("case", INVALID.values(), ids=INVALID.keys())
def test_create_when_a_rule_is_broken_then_400_with_its_text(gke: Gke, case: tuple[Json, str]) -> None:
    pool, message = case
    assert gke.refused(lambda: gke.begin(pool)) == ("INVALID_ARGUMENT", message)
    assert gke.names() == ["default-pool"]


OLD = {
    "G4": ("1.33.9-gke.1", gpu_pool("p", "g4-standard-48", RTX, 1), f"Accelerator type {RTX} requires GKE version "),
    "MPS": ("1.27.6-gke.1", t4_pool("p", gpu_sharing_config=shared("MPS", 2)), "NVIDIA MPS requires GKE version "),
}


@pytest.mark.parametrize("case", OLD.values(), ids=OLD.keys())
def test_create_when_the_version_is_too_old_then_400(
    sandbox: SandboxInfo, any_client: Gke, case: tuple[str, Json, str]
) -> None:
    version, pool, start = case
    daemon.add_gke_cluster(sandbox, PROJECT, ZONE, NAME, kubernetes_version=version)
    code, text = any_client.refused(lambda: any_client.begin(pool))
    assert code == "INVALID_ARGUMENT"
    assert text.startswith(start)


def test_create_when_it_exists_then_409(gke: Gke) -> None:
    gke.begin(t4_pool("p"))
    assert gke.refused(lambda: gke.begin(t4_pool("p"))) == ("ALREADY_EXISTS", f"Already exists: {POOL}.")


def test_create_when_autopilot_then_400(with_cluster: Callable[..., Gke]) -> None:
    gke = with_cluster(autopilot=True)
    answer = gke.refused(lambda: gke.begin(t4_pool("p")))
    assert answer == ("INVALID_ARGUMENT", "Autopilot clusters do not support mutating node pools.")


def test_create_when_no_channel_then_auto_upgrade_may_be_off(with_cluster: Callable[..., Gke]) -> None:
    gke = with_cluster(releaseChannel="")
    assert not gke.create(t4_pool("p") | {"management": {}}).management.auto_upgrade


def test_create_when_the_zone_has_no_such_gpu_then_400(with_cluster: Callable[..., Gke]) -> None:
    gke = with_cluster(acceleratorZones={"nvidia-tesla-t4": ["us-central1-b"]})
    text = 'Accelerator type "nvidia-tesla-t4" does not exist in zone us-central1-a.'
    assert gke.refused(lambda: gke.begin(t4_pool("p"))) == ("INVALID_ARGUMENT", text)
    gke.create(t4_pool("q") | {"locations": ["us-central1-b"]})


def test_create_when_over_the_quota_then_403_and_spot_has_one_of_its_own(with_cluster: Callable[..., Gke]) -> None:
    gke = with_cluster(gpuQuota={"NVIDIA_A100_GPUS": 3, "PREEMPTIBLE_NVIDIA_A100_GPUS": 0})
    gke.create(mig_pool("first", 2))
    code, text = gke.refused(lambda: gke.begin(mig_pool("p", 2)))
    assert code == "PERMISSION_DENIED"
    assert text == (
        "Insufficient regional quota to satisfy request: resource \"NVIDIA_A100_GPUS\": request requires '2.0' and is "
        "short '1.0'. project has a quota of '3.0' with '1.0' available. View and manage quotas at "
        f"https://console.cloud.google.com/iam-admin/quotas?usage=USED&project={PROJECT}."
    )
    spot = gpu_pool("s", "a2-highgpu-1g", A100, 1, spot=True)
    assert "PREEMPTIBLE_NVIDIA_A100_GPUS" in gke.refused(lambda: gke.begin(spot))[1]
    size = {"name": f"{CLUSTER}/nodePools/first", "node_count": 4}
    assert gke.refused(lambda: gke.sdk.set_node_pool_size(request=size))[0] == "PERMISSION_DENIED"


_SAME = {"accelerator_type": A100, "accelerator_count": 1, "gpu_partition_size": "1g.5gb"}
UPDATES: dict[str, tuple[Json, str]] = {
    "nothing": ({}, "At least one of ["),
    "two groups": (
        {"labels": {"labels": {"a": "b"}}, "taints": {}},
        "Only one group of attributes can be updated at a time; the request holds labels, taints.",
    ),
    "accelerator count": (
        {"accelerators": [_SAME | {"accelerator_count": 2}]},
        "Accelerator count: 2 should not be updated.",
    ),
    "accelerator type": ({"accelerators": [_SAME | {"accelerator_type": L4}]}, f"Accelerator type: {L4} should not "),
    "partition": ({"accelerators": [_SAME | {"gpu_partition_size": "2g.10gb"}]}, "Accelerator GPU partition size: "),
    "clients": (
        {"accelerators": [_SAME | {"gpu_sharing_config": shared("TIME_SHARING", 50)}]},
        "Max shared clients per GPU is 50",
    ),
    "machine with other GPUs": ({"machine_type": "a2-highgpu-2g"}, "Machine type a2-highgpu-2g has 2 x "),
    "zone elsewhere": ({"locations": ["us-east1-b"]}, "Location 'us-east1-b' is not a zone in region"),
    "reserved label": (
        {"labels": {"labels": {"kubernetes.io/x": "y"}}},
        "Applying kubernetes label is not allowed: kubernetes.io/x.",
    ),
    "taint twice": ({"taints": {"taints": [GPU_TAINT, OTHER_TAINT]}}, "Found more than one taint with key "),
    "image": ({"image_type": "windows"}, "Image type 'WINDOWS' is not supported."),
    "disk": ({"disk_type": "floppy"}, "Disk type 'floppy' is not supported."),
}


@pytest.mark.parametrize("case", UPDATES.values(), ids=UPDATES.keys())
def test_update_when_a_rule_is_broken_then_400_and_nothing_changes(gke: Gke, case: tuple[Json, str]) -> None:
    fields, start = case
    before = gke.create(mig_pool("p", 0))
    code, text = gke.refused(lambda: gke.update("p", **fields))
    assert code == "INVALID_ARGUMENT"
    assert text.startswith(start)
    assert gke.pool("p") == before


def test_update_when_the_pool_has_no_gpu_then_none_can_be_added(gke: Gke) -> None:
    gke.create(pool_of("p", "n1-standard-4", 0))
    accelerator = {"accelerator_type": "nvidia-tesla-t4", "accelerator_count": 1}
    answer = gke.refused(lambda: gke.update("p", accelerators=[accelerator]))
    assert answer == ("INVALID_ARGUMENT", "Accelerator count: 1 should not be updated.")


def test_size_when_negative_then_400(gke: Gke) -> None:
    gke.create(t4_pool("p", 0))
    code, text = gke.refused(lambda: gke.sdk.set_node_pool_size(request={"name": POOL, "node_count": -1}))
    assert (code, text.startswith("Node count must be between 0 and 1000")) == ("INVALID_ARGUMENT", True)


@pytest.mark.parametrize("header", ["", "Bearer ya29.real", "Basic {secret}"])
def test_token_when_it_is_not_the_dummy_then_401(gke: Gke, header: str) -> None:
    header = header.format(secret=gke.info.secret)
    start = "Request had invalid" if header else "Request is missing required"
    if gke.transport == "rest":
        sent = {"Authorization": header} if header else {}
        answer = httpx.get(f"{gke.info.gke_url}/v1/{CLUSTER}", headers=sent, trust_env=False, timeout=60)
        error = answer.json()["error"]
        assert (answer.status_code, error["status"]) == (401, "UNAUTHENTICATED")
        assert error["message"].startswith(f"{start} authentication credential")
        return
    metadata = [("authorization", header)]
    code, text = gke.refused(lambda: gke.sdk.get_cluster(name=CLUSTER, metadata=metadata))
    assert (code, text.startswith(f"{start} authentication credential")) == ("UNAUTHENTICATED", True)


JSON_MISTAKES = {
    "no JSON": (b"{", "Invalid JSON payload received. "),
    "no object": (b"[]", "Invalid JSON payload received. Root element must be a message."),
    "unknown field": (b'{"nodePool": {"colour": 1}}', "Invalid JSON payload received. "),
    "Kubernetes' spelling of an effect": (
        b'{"nodePool": {"config": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}}',
        "Invalid value at 'node_pool.config.taints[0].effect' (",
    ),
    "a duration in days": (b'{"nodePool": {"config": {"maxRunDuration": "7d"}}}', "Invalid JSON payload received. "),
}


@pytest.mark.parametrize("case", JSON_MISTAKES.values(), ids=JSON_MISTAKES.keys())
def test_rest_when_the_body_does_not_fit_then_400(sandbox: SandboxInfo, case: tuple[bytes, str]) -> None:
    daemon.add_gke_cluster(sandbox, PROJECT, ZONE, NAME)
    body, start = case
    answer = httpx.post(
        f"{sandbox.gke_url}/v1/{CLUSTER}/nodePools", content=body, headers=signed(sandbox), trust_env=False, timeout=60
    )
    error = answer.json()["error"]
    assert (answer.status_code, error["status"], error["errors"][0]["reason"]) == (
        400,
        "INVALID_ARGUMENT",
        "badRequest",
    )
    assert error["message"].startswith(start)


def test_rest_when_the_path_is_none_then_404(sandbox: SandboxInfo) -> None:
    answer = httpx.get(f"{sandbox.gke_url}/v1/nonsense", headers=signed(sandbox), trust_env=False, timeout=60)
    assert (answer.status_code, answer.json()["error"]["status"]) == (404, "NOT_FOUND")


def test_call_when_the_sandbox_lacks_it_then_refused(gke: Gke) -> None:
    assert gke.refused(lambda: gke.sdk.get_json_web_keys(request={"parent": CLUSTER}))[0] == "UNIMPLEMENTED"
    code, text = gke.refused(lambda: gke.sdk.rollback_node_pool_upgrade(name=POOL))
    assert code == "UNIMPLEMENTED"
    if gke.transport == "rest":
        assert text == f"The gpukube sandbox does not emulate POST /v1/{POOL}:rollback."
