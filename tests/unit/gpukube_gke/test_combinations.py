"""Native fields that do not go together: each row of the table has a pool that it refuses and one that it lets pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.core.values import Capacity, Nodes
from gpukube_gke.combinations import check_combinations
from tests.unit.gpukube_gke.targets import PROVIDER, gke_target

if TYPE_CHECKING:
    from gpukube.core.values import Target

FROM_ZERO = Nodes(0, 0, 4, autoscaled=True)
NONE = {"reservationAffinity": {"consumeReservationType": "NO_RESERVATION"}}
QUEUED = {"queuedProvisioning": {"enabled": True}, "config": NONE}
FLEX = {"config": {"flexStart": True, **NONE}, "management": {"autoRepair": False}}
COMPACT = {"placementPolicy": {"type": "COMPACT"}}


def driver(version: str) -> dict[str, object]:
    return {"config": {"accelerators": [{"gpuDriverInstallationConfig": {"gpuDriverVersion": version}}]}}


GOOD = {
    "latest driver on COS": gke_target(native=driver("LATEST"), image="COS_CONTAINERD"),
    "default driver on Ubuntu": gke_target(native=driver("DEFAULT"), image="UBUNTU_CONTAINERD"),
    "fast socket with gVNIC": gke_target(
        native={"config": {"fastSocket": {"enabled": True}, "gvnic": {"enabled": True}}}
    ),
    "queued from zero": gke_target(nodes=FROM_ZERO, native=QUEUED),
    "not queued": gke_target(native={"queuedProvisioning": {"enabled": False}}),
    "flex-start": gke_target(nodes=FROM_ZERO, native=FLEX),
    "no flex-start": gke_target(native={"config": {"flexStart": False}}),
    "compact in one zone": gke_target(zones=("us-central1-a",), native=COMPACT),
    "no surge, one unavailable": gke_target(native={"upgradeSettings": {"maxSurge": 0, "maxUnavailable": 1}}),
    "policy of an autoscaled pool": gke_target(nodes=FROM_ZERO, native={"autoscaling": {"locationPolicy": "ANY"}}),
}


@pytest.mark.parametrize("target", GOOD.values(), ids=GOOD.keys())
def test_fields_when_they_go_together_pass(target: Target) -> None:
    assert PROVIDER.check(target) == []


BAD = {
    "driver without owner": (gke_target(driver_owner="none", native=driver("DEFAULT")), "write owner: auto"),
    "driver without plugin": (gke_target(plugin_owner="none", native=driver("LATEST")), "write owner: auto"),
    "latest driver on Ubuntu": (gke_target(image="UBUNTU_CONTAINERD", native=driver("LATEST")), "write DEFAULT"),
    "fast socket alone": (gke_target(native={"config": {"fastSocket": {"enabled": True}}}), "config.gvnic.enabled"),
    "queued Spot": (gke_target(nodes=FROM_ZERO, capacity=Capacity("spot"), native=QUEUED), "drop capacity.type"),
    "queued, reservations open": (
        gke_target(nodes=FROM_ZERO, native={"queuedProvisioning": {"enabled": True}}),
        "NO_RESERVATION",
    ),
    "queued, fixed": (gke_target(native=QUEUED), "min: 0"),
    "queued from one": (gke_target(nodes=Nodes(1, 1, 2, autoscaled=True), native=QUEUED), "min: 0"),
    "flex-start Spot": (gke_target(nodes=FROM_ZERO, capacity=Capacity("spot"), native=FLEX), "drop capacity.type"),
    "flex-start, fixed": (gke_target(native=FLEX), "write nodes.autoscaling"),
    "flex-start with repair": (
        gke_target(nodes=FROM_ZERO, native={"config": {"flexStart": True, **NONE}}),
        "management.autoRepair: false",
    ),
    "compact in two zones": (
        gke_target(zones=("us-central1-a", "us-central1-b"), nodes=Nodes(2, 2, 2, autoscaled=False), native=COMPACT),
        "write one zone",
    ),
    "compact and blue-green": (
        gke_target(native={**COMPACT, "upgradeSettings": {"strategy": "BLUE_GREEN"}}),
        "strategy: SURGE",
    ),
    "no surge, none unavailable": (gke_target(native={"upgradeSettings": {"maxSurge": 0}}), "maxUnavailable: 1"),
    "policy of a fixed pool": (gke_target(native={"autoscaling": {"locationPolicy": "ANY"}}), "take it away"),
}


@pytest.mark.parametrize(("target", "fix"), BAD.values(), ids=BAD.keys())
def test_fields_when_they_clash_are_told_with_the_way_out(target: Target, fix: str) -> None:
    (found,) = check_combinations(target)

    assert (found.code, found.severity) == ("gke-native-conflict", "error")
    assert fix in found.fix
