"""Quotas of Azure in the emulated ARM: what is read of them is what pools are held to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from azure.core.exceptions import HttpResponseError

from gpukube_sandbox import daemon
from sandbox_tests.aks.arm import SUBSCRIPTION, T4

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo
    from sandbox_tests.aks.arm import Arm, Json

T4_FAMILY = "Standard NCASv3_T4 Family"
USAGES = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/locations/eastus/usages"


def allow(sandbox: SandboxInfo, **quotas: int) -> list[str]:
    named = {T4_FAMILY if name == "t4" else name: value for name, value in quotas.items()}
    return daemon.declare(sandbox, "aks", subscription=SUBSCRIPTION, location="eastus", quotas=named)


def usage(arm: Arm, name: str) -> tuple[int, int]:
    answer = arm.http.get(USAGES, params={"api-version": "2024-07-01"})
    assert answer.status_code == 200
    (found,) = (item for item in answer.json()["value"] if item["name"]["value"] == name)
    return found["currentValue"], found["limit"]


def test_usage_when_pools_run_then_their_vcpus_and_the_limit(sandbox: SandboxInfo, arm: Arm) -> None:
    assert (usage(arm, T4_FAMILY), usage(arm, "cores")) == ((0, 100000), (4, 100000))  # the system pool's
    assert allow(sandbox, t4=8, cores=12) == [f"quota {T4_FAMILY} of 8", "quota cores of 12"]
    arm.create("gpu", {**T4, "count": 2})
    assert (usage(arm, T4_FAMILY), usage(arm, "cores"), usage(arm, "lowPriorityCores")[0]) == ((8, 8), (12, 12), 0)


def test_put_when_the_family_is_short_then_refused_at_once(sandbox: SandboxInfo, arm: Arm) -> None:
    allow(sandbox, t4=8)
    arm.create("gpu", {**T4, "count": 2})
    with pytest.raises(HttpResponseError, match=r"requested 4, remaining 0 for family Standard NCASv3_T4 Family"):
        arm.create("more", T4)
    with pytest.raises(HttpResponseError, match="ErrCode_InsufficientVCPUQuota"):
        arm.create("gpu", {**T4, "count": 3})
    assert usage(arm, T4_FAMILY) == (8, 8)


def test_upgrade_when_its_surge_does_not_fit_then_refused(sandbox: SandboxInfo, arm: Arm) -> None:
    old = {**T4, "orchestratorVersion": "1.33.5", "osSKU": "Ubuntu2404"}
    arm.create("gpu", old)
    allow(sandbox, t4=7)
    with pytest.raises(HttpResponseError, match="Surge nodes would also consume"):
        arm.create("gpu", {**old, "orchestratorVersion": "1.34.2"})
    allow(sandbox, t4=8)
    arm.create("gpu", {**old, "orchestratorVersion": "1.34.2"})


@pytest.mark.parametrize(
    ("name", "more", "text"),
    [
        ("cores", {}, "exceeding approved Total Regional Cores quota"),
        ("lowPriorityCores", {"scaleSetPriority": "Spot"}, "exceeding approved LowPriorityCores quota"),
    ],
)
def test_put_when_another_quota_is_short_then_it_fails_late(
    sandbox: SandboxInfo, arm: Arm, name: str, more: Json, text: str
) -> None:
    allow(sandbox, **{name: 7})
    with pytest.raises(HttpResponseError, match=text):
        arm.create("gpu", {**T4, "count": 2, **more})
    assert (arm.get("gpu")["provisioningState"], usage(arm, name)[1]) == ("Failed", 7)
