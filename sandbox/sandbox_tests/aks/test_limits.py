"""Sizes, counts and lengths that AKS refuses, and the OS disk it chooses, asked of the rules themselves."""

from __future__ import annotations

import pytest

from gpukube_sandbox.aks.answers import ArmError
from gpukube_sandbox.aks.pools import with_defaults
from gpukube_sandbox.aks.rules import ClusterFacts, check_name_for, check_pool
from sandbox_tests.aks.arm import T4, Json

FACTS = ClusterFacts("11111111-2222-3333-4444-555555555555", "eastus", "1.34.2")
TOO_SMALL = (
    "The virtual machine size Standard_NC4as_T4_v3 has a cache size of 188978561024 bytes, but the OS disk requires "
    "1073741824000 bytes. Use a VM size with larger cache or disable ephemeral OS."
)
DISK, TAGS = "agentPoolProfile.osDiskSizeGB", "agentPoolProfile.tags"


def tagged(tags: dict[str, str]) -> Json:
    return {**T4, "tags": tags}


REFUSED: dict[str, tuple[Json, str, str, str]] = {
    "a disk above the API's maximum": ({**T4, "osDiskSizeGB": 2049}, "InvalidParameter", "larger than 2048GB", DISK),
    "an ephemeral disk beyond the machine's": (
        {**T4, "osDiskSizeGB": 1000, "osDiskType": "Ephemeral"}, "VMCacheSizeTooSmall", TOO_SMALL, "",
    ),
    "an ephemeral disk without any": (
        {"count": 1, "vmSize": "Standard_D4s_v5", "osDiskType": "Ephemeral"}, "VMCacheSizeTooSmall", "of 0 bytes", "",
    ),
    "51 tags": (tagged({f"k{at}": "" for at in range(51)}), "BadRequest", "has 51 tags", TAGS),
    "a tag name of 513": (tagged({"k" * 513: ""}), "BadRequest", "at most 512", TAGS),
    "a tag value of 257": (tagged({"k": "v" * 257}), "BadRequest", "values 256", TAGS),
}  # fmt: skip


@pytest.mark.parametrize("creating", [True, False])
@pytest.mark.parametrize("case", REFUSED)
def test_pool_when_a_limit_is_passed_then_refused(case: str, *, creating: bool) -> None:
    sent, code, text, target = REFUSED[case]
    with pytest.raises(ArmError) as caught:
        check_pool(with_defaults(sent, FACTS), FACTS, creating=creating)
    body = caught.value.body()
    assert (caught.value.status, body["code"], body.get("target", "")) == (400, code, target)
    assert text in str(body["message"])


LEAST = {
    "a disk of 2048": {**T4, "osDiskSizeGB": 2048},
    "an ephemeral disk that just fits": {**T4, "osDiskSizeGB": 176, "osDiskType": "Ephemeral"},
    "50 tags": tagged({f"k{at}": "v" * 256 for at in range(50)}),
    "a long tag name": tagged({"k" * 512: ""}),
}


@pytest.mark.parametrize("case", LEAST)
def test_pool_when_at_the_limit_then_accepted(case: str) -> None:
    pool = with_defaults(LEAST[case], FACTS)
    check_pool(pool, FACTS, creating=True)
    assert LEAST[case].items() <= pool.items()


CHOSEN: dict[str, tuple[Json, str]] = {
    "a temporary disk with room": ({"count": 1, "vmSize": "Standard_ND96asr_v4"}, "Ephemeral"),
    "none": ({"count": 1, "vmSize": "Standard_D4s_v5"}, "Managed"),
    "one that is too small": ({**T4, "osDiskSizeGB": 256}, "Managed"),
    "one that is not larger": ({**T4, "osDiskSizeGB": 176}, "Managed"),
    "one that is not known": ({"count": 1, "vmSize": "Standard_NC8ads_A10_v4"}, "Managed"),
    "one, and Managed asked for": ({**T4, "osDiskType": "Managed"}, "Managed"),
}


@pytest.mark.parametrize("case", CHOSEN)
def test_pool_when_no_disk_type_is_sent_then_the_one_the_machine_has_room_for(case: str) -> None:
    sent, wanted = CHOSEN[case]
    assert with_defaults(sent, FACTS)["osDiskType"] == wanted


def test_name_when_of_windows_and_of_seven_characters_then_refused() -> None:
    check_name_for("winpool", {"osType": "Linux"})
    check_name_for("winpol", {"osType": "Windows"})
    with pytest.raises(ArmError) as caught:
        check_name_for("winpool", {"osType": "Windows"})
    assert caught.value.body()["code"] == "WindowsAgentPoolNameTooLong"
    assert caught.value.body()["message"] == "Windows agent pool name can not be longer than 6 characters."
