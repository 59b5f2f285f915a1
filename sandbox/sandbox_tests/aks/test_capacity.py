"""What Azure tells about capacity: Spot scores, restrictions, capacity reservations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpukube_sandbox import daemon
from gpukube_sandbox.aks.throttle import LIMITS
from sandbox_tests.aks.arm import GROUP, NAME, SUBSCRIPTION, T4
from sandbox_tests.waiting import wait_for

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo
    from sandbox_tests.aks.arm import Arm, Json

COMPUTE = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute"
SCORES = f"{COMPUTE}/locations/westeurope/placementScores/spot/generate"
A100, H100 = "Standard_NC24ads_A100_v4", "Standard_ND96isr_H100_v5"
GROUPS = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.Compute/capacityReservationGroups"
RESERVED = f"{GROUPS}/gpus"
BLOCKS = "2025-04-01"
Cell = tuple[str, str, str | None]


def ask(arm: Arm, *, api: str = "2025-06-05", **sent: Any) -> tuple[int, Any]:  # noqa: ANN401 - JSON
    body = {"desiredLocations": ["eastus"], "desiredSizes": [{"sku": A100}], "desiredCount": 2, **sent}
    answer = arm.http.post(SCORES, params={"api-version": api}, json=body)
    return answer.status_code, answer.json()


def scores(arm: Arm, **sent: Any) -> dict[Cell, str]:  # noqa: ANN401 - JSON
    status, body = ask(arm, **sent)
    assert status == 200, body
    return {(one["sku"], one["region"], one["availabilityZone"]): one["score"] for one in body["placementScores"]}


@pytest.mark.parametrize(("free", "score"), [(6, "High"), (5, "Medium"), (2, "Medium"), (1, "Low"), (0, "Low")])
def test_scores_when_the_stock_shrinks_then_they_fall(arm: Arm, free: int, score: str) -> None:
    daemon.set_stock(arm.info, "aks", free, type=A100, zone="eastus", kind="spot")
    assert scores(arm) == {(A100, "eastus", None): score}


def test_scores_when_asked_for_zones_then_one_for_each_that_has_the_size(arm: Arm) -> None:
    daemon.set_stock(arm.info, "aks", 0, type=A100, zone="eastus-2", kind="spot")
    daemon.set_stock(arm.info, "aks", 0, type=A100, kind="on-demand")
    sizes = [{"sku": A100}, {"sku": H100}]
    found = scores(arm, availabilityZones=True, desiredLocations=["eastus", "westus2"], desiredSizes=sizes)
    assert [found[A100, "eastus", zone] for zone in "123"] == ["High", "Low", "High"]
    assert found[A100, "westus2", "2"] == "High"
    assert [cell for cell in found if cell[0] == H100] == [(H100, "eastus", "1"), (H100, "westus2", "1")]


def test_scores_when_there_is_none_then_its_reason(arm: Arm) -> None:
    sizes = [{"sku": "Standard_A1_v2"}, {"sku": "Standard_NX1"}]
    assert scores(arm, desiredSizes=sizes) == {
        ("Standard_A1_v2", "eastus", None): "Restricted SKU",
        ("Standard_NX1", "eastus", None): "Data Not Found",
    }
    barred = [{"size": A100, "zones": ["1"]}]
    daemon.declare(arm.info, "aks", subscription=SUBSCRIPTION, location="eastus", restrictions=barred)
    found = scores(arm, availabilityZones=True)
    assert [found[A100, "eastus", zone] for zone in "12"] == ["Restricted SKU", "High"]
    assert scores(arm)[A100, "eastus", None] == "High"


def test_scores_when_the_spot_quota_is_small_then_told_beside_the_score(arm: Arm) -> None:
    daemon.declare(arm.info, "aks", subscription=SUBSCRIPTION, location="eastus", quotas={"lowPriorityCores": 47})
    _, body = ask(arm)
    assert body["desiredSizes"] == [{"sku": A100}]
    assert body["placementScores"][0] == {
        "sku": A100, "region": "eastus", "availabilityZone": None, "score": "High", "isQuotaAvailable": False,
    }  # fmt: skip
    assert ask(arm, desiredCount=1)[1]["placementScores"][0]["isQuotaAvailable"] is True


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        ({"desiredLocations": ["eastus"] * 9}, "desiredLocations has 9 entries. It must have 1 to 8."),
        ({"desiredLocations": []}, "desiredLocations has 0"),
        ({"desiredSizes": [{"sku": A100}] * 6}, "desiredSizes has 6 entries. It must have 1 to 5."),
        ({"desiredSizes": None}, "desiredSizes has 0"),
        ({"desiredCount": 0}, "desiredCount is 0"),
        ({"desiredCount": "2"}, "desiredCount is 2"),
    ],
)
def test_scores_when_asked_wrongly_then_refused(arm: Arm, sent: dict[str, Any], text: str) -> None:
    status, body = ask(arm, **sent)
    assert (status, body["error"]["code"]) == (400, "InvalidParameter")
    assert text in body["error"]["message"]


def test_scores_when_the_version_is_unknown_then_refused(arm: Arm) -> None:
    assert ask(arm, api="2024-03-01")[1]["error"]["code"] == "NoRegisteredProviderFound"


def test_scores_when_asked_too_often_then_429(arm: Arm) -> None:
    daemon.configure(arm.info, limits={"spot-scores": [1, 0.001]})
    assert ask(arm)[0] == 200
    status, body = ask(arm)
    assert (status, body["code"]) == (429, "Throttled")
    assert LIMITS["spot-scores"].burst > 1


@pytest.mark.parametrize("below", ["", "/generate"])
def test_mix_scores_when_the_preview_is_not_there_then_404(arm: Arm, below: str) -> None:
    path = f"{COMPUTE}/locations/eastus/skuMixPlacementScores/recommendations{below}"
    answer = arm.http.post(path, params={"api-version": "2026-09-05-preview"}, json={})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "InvalidResourceType")


def restrict(sandbox: SandboxInfo, **entry: object) -> list[str]:
    restrictions = [{"size": T4["vmSize"], **entry}]
    return daemon.declare(sandbox, "aks", subscription=SUBSCRIPTION, location="eastus", restrictions=restrictions)


def sku(arm: Arm, name: object) -> Any:  # noqa: ANN401 - JSON
    query = {"api-version": "2021-07-01", "$filter": "location eq 'eastus'"}
    answer = arm.http.get(f"{COMPUTE}/skus", params=query)
    return next(one for one in answer.json()["value"] if one["name"] == name)


def test_restriction_when_of_the_location_then_listed_and_no_pool(sandbox: SandboxInfo, arm: Arm) -> None:
    assert sku(arm, T4["vmSize"])["restrictions"] == []
    assert restrict(sandbox, reason="QuotaId") == ["restriction of Standard_NC4as_T4_v3"]
    assert sku(arm, T4["vmSize"])["restrictions"] == [
        {
            "type": "Location",
            "values": ["eastus"],
            "restrictionInfo": {"locations": ["eastus"], "zones": []},
            "reasonCode": "QuotaId",
        }
    ]
    body = arm.put("gpu", T4).json()
    assert body["code"] == "BadRequest"
    assert "is not allowed in your subscription in location 'eastus'" in body["message"]


def test_restriction_when_of_zones_then_only_they_are_barred(sandbox: SandboxInfo, arm: Arm) -> None:
    restrict(sandbox, zones=["2", "3"])
    (found,) = sku(arm, T4["vmSize"])["restrictions"]
    assert (found["type"], found["restrictionInfo"]["zones"]) == ("Zone", ["2", "3"])
    assert found["reasonCode"] == "NotAvailableForSubscription"
    assert arm.put("gpu", {**T4, "availabilityZones": ["1", "3"]}).json()["code"] == "AvailabilityZoneNotSupported"
    assert arm.create("gpu", {**T4, "availabilityZones": ["1"]})["provisioningState"] == "Succeeded"


@pytest.mark.parametrize("entry", [{"size": "Standard_NX1"}, {"reason": "Sold"}, {"region": "x"}])
def test_restriction_when_wrong_then_refused(sandbox: SandboxInfo, entry: Json) -> None:
    with pytest.raises(daemon.SandboxError, match="there is no"):
        restrict(sandbox, **entry)


def test_skus_when_listed_then_what_can_be_reserved(arm: Arm) -> None:
    kinds = {
        name: {one["name"]: one["value"] for one in sku(arm, name)["capabilities"]}["SupportedCapacityReservationTypes"]
        for name in (A100, H100)
    }
    assert kinds == {A100: "Targeted", H100: "Block"}


def declare(sandbox: SandboxInfo, *reservations: Json, **group: object) -> list[str]:
    groups = [{"id": RESERVED, "reservations": list(reservations), **group}]
    return daemon.declare(sandbox, "aks", capacityReservationGroups=groups)


def t4(**fields: object) -> Json:
    return {"name": "t4", "size": T4["vmSize"], "count": 2, "zone": "1", **fields}


def get(arm: Arm, path: str, api: str = BLOCKS, **query: str) -> tuple[int, Any]:
    answer = arm.http.get(path, params={"api-version": api, **query})
    return answer.status_code, answer.json()


def usage(arm: Arm) -> tuple[int, int]:
    """Reserved and allocated machines of the group's only reservation."""
    _, group = get(arm, RESERVED, **{"$expand": "instanceView"})
    (one,) = group["properties"]["instanceView"]["capacityReservations"]
    info = one["utilizationInfo"]
    return info["currentCapacity"], len(info["virtualMachinesAllocated"])


IN_GROUP = {**T4, "availabilityZones": ["1"], "capacityReservationGroupID": RESERVED}


def test_group_when_a_pool_uses_it_then_its_machines_are_allocated(sandbox: SandboxInfo, arm: Arm) -> None:
    assert declare(sandbox, t4(usedByOthers=1)) == ["capacityReservationGroups/gpus"]
    assert usage(arm) == (2, 1)
    daemon.set_stock(sandbox, "aks", 0, type=str(T4["vmSize"]), kind="on-demand")
    arm.create("gpu", IN_GROUP)  # a reserved machine does not need stock
    assert usage(arm) == (2, 2)
    _, group = get(arm, RESERVED)
    assert "instanceView" not in group["properties"]
    assert (group["location"], group["zones"], group["properties"]["reservationType"]) == ("eastus", ["1"], "Targeted")
    (machine,) = group["properties"]["virtualMachinesAssociated"]
    assert machine["id"].endswith("-vmss/virtualMachines/0")
    arm.sdk.agent_pools.begin_delete(GROUP, NAME, "gpu").result()
    assert usage(arm) == (2, 1)


def test_group_when_full_then_more_machines_come_from_the_stock(sandbox: SandboxInfo, arm: Arm) -> None:
    declare(sandbox, t4())
    daemon.set_stock(sandbox, "aks", 1, type=str(T4["vmSize"]), kind="on-demand")
    arm.create("gpu", {**IN_GROUP, "count": 3})
    assert usage(arm) == (2, 3)
    (entry,) = daemon.list_stock(sandbox)
    assert entry["taken"] == 1


def test_group_when_the_stock_limits_it_then_less_capacity(sandbox: SandboxInfo, arm: Arm) -> None:
    declare(sandbox, t4())
    daemon.set_stock(sandbox, "aks", 1, type=str(T4["vmSize"]), kind="reserved")
    assert usage(arm) == (1, 0)
    daemon.set_stock(sandbox, "aks", 0, type=str(T4["vmSize"]), kind="on-demand")
    assert arm.put("gpu", {**IN_GROUP, "count": 2}).status_code == 201
    wait_for(lambda: arm.get("gpu")["provisioningState"] == "Failed")
    assert usage(arm) == (1, 1)


def test_group_when_a_full_block_then_no_other_machines(sandbox: SandboxInfo, arm: Arm) -> None:
    declare(sandbox, t4(count=1), type="Block")
    assert arm.put("gpu", {**IN_GROUP, "count": 2}).status_code == 201
    wait_for(lambda: arm.get("gpu")["provisioningState"] == "Failed")
    assert usage(arm) == (1, 1)


def test_reservations_when_read_then_size_zone_and_schedule(sandbox: SandboxInfo, arm: Arm) -> None:
    block = {"name": "block", "size": H100, "count": 4, "zone": "1", "start": "2026-06-27", "end": "2026-07-04"}
    declare(sandbox, block, type="Block", location="westeurope")
    path = f"{RESERVED}/capacityReservations"
    status, listed = get(arm, path)
    assert status == 200
    (one,) = listed["value"]
    assert (one["sku"], one["zones"], one["location"]) == ({"name": H100, "capacity": 4}, ["1"], "westeurope")
    assert one["properties"]["scheduleProfile"] == {"start": "2026-06-27", "end": "2026-07-04"}
    assert get(arm, f"{path}/block")[1] == one
    _, view = get(arm, f"{path}/block", **{"$expand": "instanceView"})
    used = view["properties"]["instanceView"]["utilizationInfo"]
    assert used == {"currentCapacity": 4, "virtualMachinesAllocated": []}
    _, old = get(arm, f"{path}/block", api="2024-11-01")
    assert "scheduleProfile" not in old["properties"]
    assert "reservationType" not in get(arm, RESERVED, api="2024-11-01")[1]["properties"]


def test_groups_when_listed_then_those_of_the_subscription_or_the_group(sandbox: SandboxInfo, arm: Arm) -> None:
    declare(sandbox, t4())
    other = RESERVED.replace(f"/{GROUP}/", "/other/")
    daemon.declare(sandbox, "aks", capacityReservationGroups=[{"id": other}])
    everywhere, here = get(arm, f"{COMPUTE}/capacityReservationGroups"), get(arm, GROUPS)
    assert [one["id"] for one in everywhere[1]["value"]] == [RESERVED, other]
    assert [one["id"] for one in here[1]["value"]] == [RESERVED]


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        (f"{GROUPS}/none", {}, 404),
        (f"{RESERVED}/capacityReservations/none", {}, 404),
        (RESERVED, {"$expand": "everything"}, 400),
        (f"{RESERVED}/tags", {}, 501),
    ],
)
def test_group_when_asked_wrongly_then_refused(
    sandbox: SandboxInfo, arm: Arm, path: str, query: dict[str, str], status: int
) -> None:
    declare(sandbox, t4())
    assert get(arm, path, **query)[0] == status


@pytest.mark.parametrize(
    ("fields", "group", "text"),
    [
        ({"size": "Standard_NX1"}, {}, "there is no size Standard_NX1"),
        ({"count": 3}, {"type": "Block"}, "a block has 1, 2, 4"),
        ({}, {"type": "Closed"}, "there is no type Closed"),
        ({}, {"location": "moon"}, "there is no location moon"),
        ({}, {"id": "/subscriptions/x"}, "is not the id of a capacity reservation group"),
    ],
)
def test_group_when_declared_wrongly_then_refused(sandbox: SandboxInfo, fields: Json, group: Json, text: str) -> None:
    with pytest.raises(daemon.SandboxError, match=text):
        declare(sandbox, t4(**fields), **group)


def test_group_when_declared_for_a_pool_then_with_plenty_of_its_machines(sandbox: SandboxInfo, arm: Arm) -> None:
    request = {"body": {"properties": {**IN_GROUP, "availabilityZones": ["1", "2"]}}}
    place = {"subscription": SUBSCRIPTION, "resourceGroup": GROUP, "cluster": NAME}
    assert daemon.declare(sandbox, "aks", **place, request=request) == ["capacityReservationGroups/gpus"]
    _, listed = get(arm, f"{RESERVED}/capacityReservations")
    assert [(one["sku"], one["zones"]) for one in listed["value"]] == [
        ({"name": T4["vmSize"], "capacity": 1000}, [zone]) for zone in ("1", "2")
    ]


@pytest.mark.parametrize(
    ("path", "permission"),
    [
        (RESERVED, "Microsoft.Compute/capacityReservationGroups/read"),
        (
            f"{RESERVED}/capacityReservations",
            "Microsoft.Compute/capacityReservationGroups/capacityReservations/read",
        ),
    ],
)
def test_group_when_denied_then_403_over_its_scope(sandbox: SandboxInfo, arm: Arm, path: str, permission: str) -> None:
    declare(sandbox, t4())
    daemon.deny_permissions(sandbox, permission)
    status, body = get(arm, path)
    assert (status, body["error"]["code"]) == (403, "AuthorizationFailed")
    assert f"'{permission}' over scope '{path}'" in body["error"]["message"]


def test_scores_when_denied_then_403(sandbox: SandboxInfo, arm: Arm) -> None:
    permission = "Microsoft.Compute/locations/placementScores/generate/action"
    daemon.deny_permissions(sandbox, permission)
    status, body = ask(arm)
    assert (status, permission in body["error"]["message"]) == (403, True)
