"""The real `az` against the sandbox, over https, without a login."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from gpukube.sandbox import daemon
from gpukube.sandbox.environment import env
from tests.sandbox.aks.arm import GROUP, NAME, Json

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sandbox.aks.arm import Arm

pytestmark = pytest.mark.clients("az")


@pytest.fixture
def az(arm: Arm) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Call `az aks nodepool ...` on the cluster."""
    environment = {**os.environ, **env(arm.info)}

    def call(verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        whole = ["az", "aks", "nodepool", verb, "-g", GROUP, "--cluster-name", NAME, "-o", "json", *arguments]
        return subprocess.run(whole, capture_output=True, text=True, check=False, env=environment, timeout=120)

    return call


def sent_bodies(arm: Arm) -> list[Json]:
    """Give the properties of every PUT, oldest first."""
    bodies = [entry["body"] for entry in daemon.requests_since(arm.info) if entry["method"] == "PUT"]
    return [dict(body["properties"]) for body in bodies if isinstance(body, dict)]


def test_nodepool_when_added_shown_listed_and_deleted_then_az_is_content(
    arm: Arm, az: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    size = ["--node-vm-size", "Standard_ND96asr_v4", "--node-count", "1", "--gpu-instance-profile", "MIG1g"]
    added = az("add", "-n", "mig", *size)
    assert (added.returncode, added.stderr) == (0, "")
    assert sent_bodies(arm) == [
        {
            "vmSize": "Standard_ND96asr_v4",
            "osType": "Linux",
            "enableNodePublicIP": False,
            "count": 1,
            "enableAutoScaling": False,
            "scaleSetPriority": "Regular",
            "nodeTaints": [],
            "upgradeSettings": {"undrainableNodeBehavior": "Schedule"},
            "type": "VirtualMachineScaleSets",
            "enableEncryptionAtHost": False,
            "enableUltraSSD": False,
            "enableFIPS": False,
            "mode": "User",
            "scaleDownMode": "Delete",
            "gpuInstanceProfile": "MIG1g",
        }
    ]
    shown = json.loads(az("show", "-n", "mig").stdout)
    assert (shown["provisioningState"], shown["gpuInstanceProfile"], shown["count"]) == ("Succeeded", "MIG1g", 1)
    assert [pool["name"] for pool in json.loads(az("list").stdout)] == ["nodepool1", "mig"]
    assert az("delete", "-n", "mig").returncode == 0
    assert [pool["name"] for pool in json.loads(az("list").stdout)] == ["nodepool1"]


def test_nodepool_when_the_service_refuses_then_az_prints_code_and_message(
    arm: Arm, az: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    daemon.add_fault(arm.info, "operation", code="SkuNotAvailable")
    failed = az("add", "-n", "gpu1", "--node-vm-size", "Standard_NC4as_T4_v3", "--node-count", "1")
    assert failed.returncode != 0
    assert "(SkuNotAvailable)" in failed.stderr
    refused = az("add", "-n", "gpu2", "--node-vm-size", "Standard_NC4as_T4_v3", "--gpu-instance-profile", "MIG1g")
    assert "is not supported by VM size 'Standard_NC4as_T4_v3'" in refused.stderr


def test_nodepool_when_updated_and_scaled_then_the_pool_follows(
    arm: Arm, az: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    arm.create("gpu1", {"count": 1, "vmSize": "Standard_NC4as_T4_v3"})
    assert az("update", "-n", "gpu1", "--labels", "team=vision").returncode == 0
    assert az("scale", "-n", "gpu1", "-c", "2").returncode == 0
    pool = arm.get("gpu1")
    assert (pool["nodeLabels"], pool["count"]) == ({"team": "vision"}, 2)
