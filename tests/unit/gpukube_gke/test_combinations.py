"""Native fields that do not go together: each row of the table has a pool that it refuses and one that it lets pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.core.values import Capacity, Nodes
from gpukube.gpu.catalog import machines
from gpukube_gke.facts.local_ssd import explain_local_ssd
from gpukube_gke.rules.combinations import check_combinations
from tests.unit.gpukube_gke.edits import CACHE, STREAMED, merged, nested
from tests.unit.gpukube_gke.targets import PROVIDER, gke_target, reserved

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.values import Target

A, B = "us-central1-a", "us-central1-b"
FROM_ZERO = Nodes(0, 0, 4, autoscaled=True)
FLEX = {"nodes": FROM_ZERO, "capacity": reserved("flexStart")}
QUEUED = {"nodes": FROM_ZERO, "capacity": reserved("queued")}
OURS = {"zones": (A,), "capacity": reserved("reservation", "ours")}
SCOPE = "https://www.googleapis.com/auth/"
AFFINITY = "config.reservationAffinity.consumeReservationType"
GREEN = nested("upgradeSettings.strategy", "BLUE_GREEN")
WAIT = "upgradeSettings.blueGreenSettings.autoscaledRolloutPolicy.waitForDrainDuration"
BATCHES = "upgradeSettings.blueGreenSettings.standardRolloutPolicy"
EPHEMERAL = "config.ephemeralStorageLocalSsdConfig.localSsdCount"
BLOCK = "config.localNvmeSsdBlockConfig.localSsdCount"
SECURE = nested("config.shieldedInstanceConfig.enableSecureBoot", value=True)


def fixed(count: int) -> Nodes:
    return Nodes(count, count, count, autoscaled=False)


def pool(native: Mapping[str, object], machine: str = "a2-highgpu-1g", /, **more: object) -> Target:
    return gke_target(machine, native=native, **more)


GOOD = {
    "fast socket with gVNIC": pool({"config": {"fastSocket": {"enabled": True}, "gvnic": {"enabled": True}}}),
    "no fast socket": pool(nested("config.fastSocket.enabled", value=False)),
    "no repair of flex-start nodes": pool(nested("management.autoRepair", value=False), **FLEX),
    "repair of others": pool(nested("management.autoRepair", value=True)),
    "upgrades": pool(nested("management.autoUpgrade", value=True)),
    "no reservation for Spot": pool(nested(AFFINITY, "NO_RESERVATION"), capacity=Capacity("spot")),
    "any reservation": pool(nested(AFFINITY, "ANY_RESERVATION")),
    "a run that ends": pool(nested("config.maxRunDuration", "3600s")),
    "policy of an autoscaled pool": pool(nested("autoscaling.locationPolicy", "ANY"), nodes=FROM_ZERO),
    "delay of an autoscaled pool": pool(nested("config.consolidationDelay", "600s"), nodes=FROM_ZERO),
    "an image cache": pool(merged(STREAMED, nested("config.secondaryBootDisks", [CACHE]))),
    "batches of one node": pool(merged(GREEN, nested(f"{BATCHES}.batchNodeCount", 1))),
    "drained before the scale-down": pool(merged(GREEN, nested(WAIT, "60s")), nodes=FROM_ZERO),
    "blue and green": pool(nested("upgradeSettings.strategy", "BLUE_GREEN")),
    "short-lived flex-start": pool(nested("upgradeSettings.strategy", "SHORT_LIVED"), **FLEX),
    "a range of its own": pool({"networkConfig": {"createPodRange": True, "podIpv4CidrBlock": "/21"}}),
    "a range of no size": pool(nested("networkConfig.podIpv4CidrBlock", "")),
    "best effort": pool({"bestEffortProvisioning": {"enabled": True, "minProvisionNodes": 1}}),
    "scope of everything": pool(nested("config.oauthScopes", [f"{SCOPE}cloud-platform"])),
    "scope of the storage": pool(nested("config.oauthScopes", [f"{SCOPE}devstorage.read_only"])),
    "RDMA of B200": pool(nested("config.gpuDirectConfig.gpuDirectStrategy", "RDMA"), "a4-highgpu-8g", **OURS),
    "secure boot with GKE's driver": pool(SECURE),
    "disks that may be chosen": pool(nested(EPHEMERAL, 3)),
    "disks of the type": pool(nested(EPHEMERAL, 16), "a3-highgpu-8g"),
    "all disks of the type": pool(nested(EPHEMERAL, 0), "a3-highgpu-8g"),
    "no disks beside disks": pool(merged(nested(EPHEMERAL, 1), nested(BLOCK, 0))),
    "disks of machines that are not listed": pool(nested(BLOCK, 7), "g4-standard-96"),
}


@pytest.mark.parametrize("target", GOOD.values(), ids=GOOD.keys())
def test_fields_when_they_go_together_pass(target: Target) -> None:
    assert [found.render() for found in PROVIDER.check(target) if found.severity != "hint"] == []


BAD = {
    "fast socket alone": (pool(nested("config.fastSocket.enabled", value=True)), "config.gvnic.enabled: true"),
    "repair of flex-start nodes": (pool(nested("management.autoRepair", value=True), **FLEX), "remove it"),
    "reservation beside the form": (pool(nested(AFFINITY, "NO_RESERVATION"), **OURS), "remove it"),
    "reservation beside flex-start": (pool(nested(AFFINITY, "NO_RESERVATION"), **FLEX), "remove it"),
    "a reservation by hand": (pool(nested(AFFINITY, "SPECIFIC_RESERVATION")), "{gke: {reservation: NAME}}"),
    "a reservation for Spot by hand": (
        pool(nested(AFFINITY, "SPECIFIC_RESERVATION"), capacity=Capacity("spot")), "{gke: {reservation: NAME}}",
    ),
    "any reservation for Spot": (
        pool(nested(AFFINITY, "ANY_RESERVATION"), capacity=Capacity("spot")), "write NO_RESERVATION",
    ),
    "a run besides that of flex-start": (
        pool(nested("config.maxRunDuration", "3600s"), **FLEX), "write maxRunDuration under capacity.reserved.gke",
    ),
    "scopes without the storage": (
        pool(nested("config.oauthScopes", [f"{SCOPE}logging.write"])), "add the scope devstorage.read_only",
    ),
    "no scopes": (pool(nested("config.oauthScopes", [])), "add the scope devstorage.read_only"),
    "batches twice": (
        pool(merged(GREEN, nested(f"{BATCHES}.batchPercentage", 0.5), nested(f"{BATCHES}.batchNodeCount", 1))),
        "keep one of them",
    ),
    "scale-down of a fixed size": (pool(merged(GREEN, nested(WAIT, "60s"))), "write standardRolloutPolicy instead"),
    "an image cache without streaming": (
        pool(nested("config.secondaryBootDisks", [CACHE])), "add config.gcfsConfig.enabled: true",
    ),
    "disks twice": (pool(merged(nested(EPHEMERAL, 1), nested(BLOCK, 1))), "keep one of them"),
    "four disks of sixteen": (pool(nested(EPHEMERAL, 4), "a3-highgpu-8g"), "write 16"),
    "nine disks of eight": (pool(nested(BLOCK, 9)), "write 1 to 8"),
    "a disk of none": (pool(nested(EPHEMERAL, 1), "a3-ultragpu-8g-nolssd", **FLEX), "remove it"),
}  # fmt: skip


@pytest.mark.parametrize(("target", "fix"), BAD.values(), ids=BAD.keys())
def test_fields_when_they_clash_are_told_with_the_way_out(target: Target, fix: str) -> None:
    (found,) = check_combinations(target)

    assert (found.code, found.severity) == ("gke-native-conflict", "error")
    assert fix in found.fix


DOUBTFUL = {
    "batches of no blue-green": pool(nested(f"{BATCHES}.batchNodeCount", 1)),
    "surge of flex-start": pool(nested("upgradeSettings.strategy", "SURGE"), **FLEX),
    "blue-green of queued": pool(nested("upgradeSettings.strategy", "BLUE_GREEN"), **QUEUED),
    "short-lived, on demand": pool(nested("upgradeSettings.strategy", "SHORT_LIVED")),
    "policy of a fixed pool": pool(nested("autoscaling.locationPolicy", "ANY")),
    "delay of a fixed pool": pool(nested("config.consolidationDelay", "600s")),
    "a range of nothing": pool(nested("networkConfig.podIpv4CidrBlock", "/21")),
    "some of no best effort": pool(nested("bestEffortProvisioning.minProvisionNodes", 1)),
    "no upgrades": pool(nested("management.autoUpgrade", value=False)),
    "RDMA of A100": pool(nested("config.gpuDirectConfig.gpuDirectStrategy", "RDMA")),
    "secure boot with a driver of one's own": pool(SECURE, driver_owner="none"),
}


@pytest.mark.parametrize("target", DOUBTFUL.values(), ids=DOUBTFUL.keys())
def test_fields_when_it_is_not_sure_that_they_clash_are_warned_of(target: Target) -> None:
    (found,) = check_combinations(target)

    assert (found.code, found.severity) == ("gke-native-conflict", "warning")


def test_scopes_when_gke_installs_no_driver_are_nobodys_business() -> None:
    assert list(check_combinations(pool(nested("config.oauthScopes", []), driver_owner="none"))) == []


FIXED_DISKS = {
    "a2-ultragpu-1g": 1, "a2-ultragpu-2g": 2, "a2-ultragpu-4g": 4, "a2-ultragpu-8g": 8,
    "a3-highgpu-1g": 2, "a3-highgpu-2g": 4, "a3-highgpu-4g": 8, "a3-highgpu-8g": 16,
    "a3-edgegpu-8g": 16, "a3-megagpu-8g": 16, "a3-ultragpu-8g": 32, "a4-highgpu-8g": 32,
    "a4x-highgpu-4g": 4, "a4x-maxgpu-4g-metal": 4,
    "g2-standard-4": 1, "g2-standard-8": 1, "g2-standard-12": 1, "g2-standard-16": 1, "g2-standard-32": 1,
    "g2-standard-24": 2, "g2-standard-48": 4, "g2-standard-96": 8,
}  # fmt: skip
"""Machine -> local disks that it has or can have (GKE cluster autoscaler, machinetypes)."""


@pytest.mark.parametrize(("machine", "count"), FIXED_DISKS.items())
def test_local_disks_when_the_type_fixes_them_are_that_many_or_none(machine: str, count: int) -> None:
    assert [explain_local_ssd(machine, number) for number in (0, count)] == ["", ""]
    assert {explain_local_ssd(machine, number) for number in (count - 1 or 9, count + 1)} == {f"write {count}"}


def test_local_disks_when_they_may_be_chosen_are_one_to_eight() -> None:
    machines = ("a2-highgpu-1g", "a2-highgpu-8g", "a2-megagpu-16g")

    assert {explain_local_ssd(machine, number) for machine in machines for number in range(9)} == {""}
    assert {explain_local_ssd(machine, 9) for machine in machines} == {"write 1 to 8"}


def test_local_disks_when_compared_with_the_catalog_are_listed_for_every_machine_that_brings_them() -> None:
    bringing = {machine.name for machine in machines("gke") if machine.local_ssd_gib and "nolssd" not in machine.name}

    assert bringing - FIXED_DISKS.keys() == set()
