"""Compute Engine's advice on capacity: scores from the stock, the past, and future reservations."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
import requests

from gpukube_sandbox import daemon

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo

ADVICE = "/compute/v1/projects/ml-prod/regions/us-central1/advice"
ZONES = [f"us-central1-{letter}" for letter in "abcf"]
A100 = "a2-highgpu-8g"
H200 = "a3-ultragpu-8g"


def ask(sandbox: SandboxInfo, method: str, body: dict[str, Any], base: str = ADVICE) -> tuple[int, Any]:
    with requests.Session() as session:
        session.trust_env = False
        headers = {"Authorization": f"Bearer {sandbox.secret}"}
        answer = session.post(f"{sandbox.gke_url}{base}/{method}", json=body, headers=headers, timeout=60)
        return answer.status_code, answer.json()


def wanted(size: int = 4, machine: str = A100, model: str = "SPOT", **policy: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {
        "size": size,
        "instanceProperties": {"scheduling": {"provisioningModel": model}},
        "instanceFlexibilityPolicy": {"instanceSelections": {"one": {"machineTypes": [machine]}}},
        "distributionPolicy": policy,
    }


def recommended(sandbox: SandboxInfo, body: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    status, answer = ask(sandbox, "capacity", body)
    assert status == 200, answer
    (found,) = answer["recommendations"]
    return found


def in_zone(letter: str) -> list[dict[str, str]]:
    return [{"zone": f"zones/us-central1-{letter}"}]


@pytest.mark.parametrize(
    ("free", "obtainability", "uptime"), [(12, 0.9, "3600s"), (4, 0.5, "600s"), (2, 0.15, "60s"), (0, 0.0, "60s")]
)
def test_capacity_when_the_stock_shrinks_then_the_score_too(
    sandbox: SandboxInfo, free: int, obtainability: float, uptime: str
) -> None:
    daemon.set_stock(sandbox, "gke", free, type=A100, zone="us-central1-a", kind="spot")
    found = recommended(sandbox, wanted(zones=in_zone("a")))
    assert found["scores"] == {"obtainability": obtainability, "estimatedUptime": uptime}
    assert found["shards"] == [
        {"zone": "us-central1-a", "machineType": A100, "instanceCount": 4, "provisioningModel": "SPOT"}
    ]


def test_capacity_when_nothing_limits_the_stock_then_high(sandbox: SandboxInfo) -> None:
    assert recommended(sandbox, wanted())["scores"]["obtainability"] == 0.9


def test_capacity_when_flex_then_from_its_own_stock_and_without_uptime(sandbox: SandboxInfo) -> None:
    daemon.set_stock(sandbox, "gke", 0, type=A100, kind="flex")
    assert recommended(sandbox, wanted(model="FLEX_START"))["scores"] == {"obtainability": 0.0}
    assert recommended(sandbox, wanted())["scores"]["obtainability"] == 0.9


def test_capacity_when_spread_then_by_the_shape(sandbox: SandboxInfo) -> None:
    for zone, free in zip(ZONES, (3, 2, 0, 0), strict=True):
        daemon.set_stock(sandbox, "gke", free, type=A100, zone=zone)
    anywhere = recommended(sandbox, wanted(targetShape="ANY"))
    assert anywhere["scores"]["obtainability"] == 0.5
    assert [(one["zone"], one["instanceCount"]) for one in anywhere["shards"]] == [(ZONES[0], 3), (ZONES[1], 1)]
    assert recommended(sandbox, wanted(targetShape="ANY_SINGLE_ZONE"))["scores"]["obtainability"] == 0.22
    balanced = recommended(sandbox, wanted(targetShape="BALANCED"))
    assert balanced["scores"]["obtainability"] == 0.0
    assert [one["instanceCount"] for one in balanced["shards"]] == [1, 1, 1, 1]


N1 = {
    "machineTypes": ["n1-standard-8"],
    "guestAccelerators": [{"acceleratorType": "nvidia-tesla-p100", "acceleratorCount": 1}],
}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"size": 0}, "resource.size"),
        ({"instanceProperties": {"scheduling": {"provisioningModel": "STANDARD"}}}, "SPOT or FLEX_START"),
        ({"instanceProperties": {}}, "SPOT or FLEX_START"),
        ({"distributionPolicy": {"targetShape": "EVEN"}}, "targetShape"),
        ({"distributionPolicy": {"zones": [{"zone": "zones/us-east1-b"}]}}, "a zone of us-central1"),
        ({"instanceFlexibilityPolicy": {}}, "0 selections"),
        ({"instanceFlexibilityPolicy": {"instanceSelections": {"a": N1, "b": N1}}}, "2 selections"),
        ({"instanceFlexibilityPolicy": {"instanceSelections": {"a": {"machineTypes": ["a9-x"]}}}}, "no such machine"),
        ({"instanceFlexibilityPolicy": {"instanceSelections": {"a": {"machineTypes": [A100] * 6}}}}, "1 to 5"),
        (
            {"instanceFlexibilityPolicy": {"instanceSelections": {"a": {"machineTypes": ["a4-highgpu-8g"]}}}}
            | {"distributionPolicy": {"zones": in_zone("a")}},
            "does not exist in zones us-central1-a",
        ),
    ],
)
def test_capacity_when_asked_wrongly_then_refused(sandbox: SandboxInfo, change: dict[str, Any], text: str) -> None:
    status, body = ask(sandbox, "capacity", wanted() | change)
    assert (status, body["error"]["errors"][0]["reason"]) == (400, "invalid")
    assert text in body["error"]["message"]


def test_capacity_when_an_n1_has_gpus_then_where_the_gpu_is(sandbox: SandboxInfo) -> None:
    body = wanted() | {"instanceFlexibilityPolicy": {"instanceSelections": {"one": N1}}}
    assert ask(sandbox, "capacity", body)[0] == 200
    assert ask(sandbox, "capacity", body, ADVICE.replace("us-central1", "europe-west4"))[0] == 400
    assert ask(sandbox, "capacity", body, ADVICE.replace("us-central1", "moon-1"))[0] == 400


def past(machine: str = A100, *types: str) -> dict[str, Any]:
    return {
        "types": list(types or ("PREEMPTION", "PRICE")),
        "instanceProperties": {"machineType": machine, "scheduling": {"provisioningModel": "SPOT"}},
        "locationPolicy": {"location": "zones/us-central1-b"},
    }


def test_history_when_asked_then_the_price_of_the_whole_machine_and_daily_rates(sandbox: SandboxInfo) -> None:
    status, found = ask(sandbox, "capacityHistory", past())
    assert (status, found["machineType"]) == (200, A100)
    assert found["location"].endswith("/projects/ml-prod/zones/us-central1-b")
    assert len(found["preemptionHistory"]) == 30
    before, price = found["priceHistory"]
    assert before["interval"]["endTime"] == price["interval"]["startTime"] < price["interval"]["endTime"]
    usd = int(price["listPrice"]["units"]) + price["listPrice"]["nanos"] / 1e9
    assert usd == pytest.approx(0.3 * (8 * 2.9 + 96 * 0.03 + 680 * 0.004))
    assert price["listPrice"]["currencyCode"] == "USD"


def test_history_when_spot_is_gone_then_yesterday_had_many_preemptions(sandbox: SandboxInfo) -> None:
    daemon.set_stock(sandbox, "gke", 0, type=A100, kind="spot")
    _, found = ask(sandbox, "capacityHistory", past(A100, "PREEMPTION"))
    assert [record["preemptionRate"] for record in found["preemptionHistory"][-2:]] == [0.05, 0.6]
    assert "priceHistory" not in found


def test_history_when_a_part_has_no_price_then_without_prices(sandbox: SandboxInfo) -> None:
    status, found = ask(sandbox, "capacityHistory", past(H200, "PRICE"))
    assert (status, "priceHistory" in found) == (200, False)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"types": []}, "types"),
        ({"types": ["PRICES"]}, "types"),
        ({"instanceProperties": {"machineType": A100, "scheduling": {"provisioningModel": "FLEX_START"}}}, "SPOT"),
        (past("custom-8-16384"), "Custom"),
        (past("a4x-highgpu-4g") | {"locationPolicy": {"location": "zones/us-central1-a"}}, "does not exist in zone"),
        ({"locationPolicy": {}}, "zone"),
    ],
)
def test_history_when_asked_wrongly_then_refused(sandbox: SandboxInfo, change: dict[str, Any], text: str) -> None:
    status, body = ask(sandbox, "capacityHistory", past() | change)
    assert status == 400
    assert text in body["error"]["message"]


def later(machine: str = H200, count: int = 2, days: int = 7, policy: dict[str, str] | None = None) -> dict[str, Any]:
    duration = f"{days * 86400}s"
    spec = {
        "targetResources": {"specificSkuResources": {"machineType": machine, "instanceCount": str(count)}},
        "timeRangeSpec": {"minDuration": duration, "maxDuration": duration},
        "locationPolicy": {"locations": {zone: {"preference": kind} for zone, kind in (policy or {}).items()}},
        "deploymentType": "DENSE",
    }
    return {"futureResourcesSpecs": {"spec": spec}}


def advised(sandbox: SandboxInfo, body: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    status, answer = ask(sandbox, "calendarMode", body)
    assert status == 200, answer
    return answer["recommendations"][0]["recommendationsPerSpec"]["spec"]


def test_calendar_when_there_is_room_then_a_zone_and_a_time(sandbox: SandboxInfo) -> None:
    found = advised(sandbox, later())
    assert (found["location"], found["recommendationType"]) == ("zones/us-central1-b", "FUTURE_RESERVATION")
    start, end = (datetime.fromisoformat(found[key]) for key in ("startTime", "endTime"))
    assert (end - start).days == 7
    assert {one["status"] for one in found["otherLocations"].values()} == {"NOT_SUPPORTED"}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (later(days=91), "CONDITIONS_NOT_MET"),
        (later(A100), "NOT_SUPPORTED"),
        (later(count=3), "NO_CAPACITY"),
    ],
)
def test_calendar_when_there_is_none_then_no_location(sandbox: SandboxInfo, body: dict[str, Any], status: str) -> None:
    daemon.set_stock(sandbox, "gke", 2, type=H200, kind="reserved")
    assert advised(sandbox, later(count=2))["location"] == "zones/us-central1-b"
    found = advised(sandbox, body)
    assert not found.keys() & {"location", "startTime", "endTime"}
    assert found["otherLocations"]["zones/us-central1-b"]["status"] == status


def test_calendar_when_zones_are_given_then_denied_ones_are_left_out(sandbox: SandboxInfo) -> None:
    body = later("a3-highgpu-8g", policy={"zones/us-central1-a": "DENY", "zones/us-central1-b": "ALLOW"})
    found = advised(sandbox, body)
    assert found["location"] == "zones/us-central1-b"
    assert found["otherLocations"] == {
        "zones/us-central1-c": {"status": "RECOMMENDED", "details": ""},
        "zones/us-central1-f": {"status": "RECOMMENDED", "details": ""},
    }


@pytest.mark.parametrize(
    "times",
    [
        {"minDuration": "7d"},
        {"minDuration": "172800s", "maxDuration": "86400s"},
        {"startTimeNotEarlierThan": "tomorrow"},
        {"startTimeNotEarlierThan": "2027-02-02T00:00:00Z", "startTimeNotLaterThan": "2027-02-01T00:00:00Z"},
    ],
)
def test_calendar_when_the_times_are_wrong_then_refused(sandbox: SandboxInfo, times: dict[str, str]) -> None:
    body = later()
    body["futureResourcesSpecs"]["spec"]["timeRangeSpec"] = times
    status, answer = ask(sandbox, "calendarMode", body)
    assert (status, "timeRangeSpec" in answer["error"]["message"]) == (400, True)
    two = {"futureResourcesSpecs": {**body["futureResourcesSpecs"], "more": {}}}
    assert ask(sandbox, "calendarMode", two)[0] == 400


@pytest.mark.parametrize("method", ["capacity", "capacityHistory", "calendarMode"])
def test_advice_when_denied_or_unknown_then_refused(sandbox: SandboxInfo, method: str) -> None:
    daemon.deny_permissions(sandbox, f"compute.advice.{method}")
    status, body = ask(sandbox, method, {})
    assert (status, body["error"]["status"]) == (403, "PERMISSION_DENIED")
    assert f"'compute.advice.{method}'" in body["error"]["message"]
    assert ask(sandbox, "capacities", {})[0] == 501
