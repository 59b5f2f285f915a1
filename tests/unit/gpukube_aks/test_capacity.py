"""Which machines Azure says are available: parsed, classed, and asked with as few calls as possible."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from gpukube.core.capacity_sources import CapacityQuery, SourceLine
from gpukube.core.cloud_catalog import Account, Inquiry
from gpukube.core.values import Settings
from gpukube.gpu.machines import require_machine
from gpukube_aks.facts.capacity import is_group, read_groups, read_reservations, read_sold, spot_way
from gpukube_aks.live.capacity import read_capacity

if TYPE_CHECKING:
    from azure.core.rest import HttpRequest

    from gpukube.core.capacity_sources import Offers, Way

SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"
COMPUTE = "/providers/Microsoft.Compute"
GROUP = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/ml{COMPUTE}/capacityReservationGroups/gpus"
A100, H100 = "Standard_NC24ads_A100_v4", "Standard_ND96isr_H100_v5"
TODAY = "2026-06-20"
QUERY = CapacityQuery(Inquiry("aks", "eastus", Account(), Settings()), (require_machine("aks", A100),), 2)


def sku(name: str = A100, **changed: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    kinds = [{"name": "SupportedCapacityReservationTypes", "value": "Block" if name == H100 else "Targeted"}]
    place = [{"location": "eastus", "zones": ["2", "1", "3"]}]
    found = {"name": name, "resourceType": "virtualMachines", "locationInfo": place, "capabilities": kinds}
    return {**found, "restrictions": [], **changed}


def restriction(kind: str, *zones: str) -> dict[str, Any]:
    info = {"locations": ["eastus"], "zones": list(zones)}
    return {"type": kind, "values": ["eastus"], "restrictionInfo": info, "reasonCode": "QuotaId"}


@pytest.mark.parametrize(
    ("changed", "zones", "note"),
    [
        ({}, ("1", "2", "3"), ""),
        ({"locationInfo": [{"location": "eastus"}]}, ("",), ""),
        ({"restrictions": [restriction("Location")]}, (),
         f"{A100} is not available to the subscription in eastus (QuotaId)"),
        ({"restrictions": [restriction("Zone", "1", "3")]}, ("2",),
         f"{A100} is not available to the subscription in zones 1, 3 of eastus"),
    ],
)  # fmt: skip
def test_size_when_listed_then_where_the_subscription_may_use_it(
    changed: dict[str, Any], zones: tuple[str, ...], note: str
) -> None:
    disks = {"name": A100, "resourceType": "disks"}
    found = read_sold([disks, sku("Standard_D2s_v5"), sku(A100.upper(), **changed)], [A100], "eastus")
    assert (found[A100].zones, found[A100].note, found[A100].is_block) == (zones, note, False)
    assert found.keys() == {A100}


def test_size_when_reserved_in_blocks_then_known() -> None:
    assert read_sold([sku(H100)], [H100], "eastus")[H100].is_block


@pytest.mark.parametrize(
    ("score", "known"),
    [
        ("High", "likely"),
        ("medium", "possible"),
        ("LOW", "unlikely"),
        ("Restricted SKU", "none"),
        ("RestrictedSku", "none"),
        ("Data Not Found", "not told"),
        ("Anything new", "not told"),
    ],
)
def test_spot_when_scored_then_a_class_beside_azures_own_word(score: str, known: str) -> None:
    way = spot_way(A100, "1", (score, True))
    assert (way.known, way.words, way.note) == (known, score, "")
    assert bool(way.why) == (known == "not told")


def test_spot_when_the_quota_is_too_small_then_said() -> None:
    assert spot_way(A100, "1", ("High", False)).note == "Azure reports that the quota is too small"


@pytest.mark.parametrize(
    ("identity", "valid"),
    [
        (GROUP, True),
        (GROUP.replace("resourceGroups", "resourcegroups"), True),
        (f"@evil.test{GROUP}", False),
        (f"{GROUP}/../../x", False),
        (f"{GROUP}?x=1", False),
        ("", False),
    ],
)
def test_group_when_its_id_could_change_the_address_then_not_asked(identity: str, *, valid: bool) -> None:
    assert is_group(identity) is valid
    assert read_groups([{"id": identity, "location": "East US"}], "eastus") == ([identity] if valid else [])


def test_group_when_in_another_region_then_not_asked() -> None:
    assert read_groups([{"id": GROUP, "location": "westeurope"}], "eastus") == []


def group(kind: str = "Targeted", allocated: int = 1, capacity: int = 4) -> dict[str, Any]:
    use = {"currentCapacity": capacity, "virtualMachinesAllocated": [{"id": str(at)} for at in range(allocated)]}
    views = [{"name": "A100", "utilizationInfo": use}]
    return {
        "id": GROUP,
        "location": "eastus",
        "properties": {"reservationType": kind, "instanceView": {"capacityReservations": views}},
    }


def inside(**properties: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"name": "a100", "sku": {"name": A100, "capacity": 4}, "zones": ["1"], "properties": properties}


def reserved(given: dict[str, Any], **properties: Any) -> Way:  # noqa: ANN401 - JSON
    other = {"name": "t4", "sku": {"name": "Standard_NC4as_T4_v3", "capacity": 9}}
    (way,) = read_reservations(given, [other, inside(**properties)], [A100], 2, TODAY)
    return way


@pytest.mark.parametrize(
    ("allocated", "known", "free", "words", "note"),
    [
        (1, "free", 3, "3 of 4 free", ""),
        (3, "none", 1, "1 of 4 free", "a full group does not refuse: Azure takes further machines on demand"),
        (6, "none", 0, "0 of 4 free", "a full group does not refuse: Azure takes further machines on demand"),
    ],
)
def test_reservation_when_read_then_free_if_large_enough(
    allocated: int, known: str, free: int, words: str, note: str
) -> None:
    way = reserved(group(allocated=allocated))
    assert (way.kind, way.zone, way.known, way.free, way.words, way.note) == (
        "reservation", "1", known, free, words, note,
    )  # fmt: skip
    assert (way.form, way.id, way.usd) == ("capacityReservationGroup", GROUP, 0.0)


@pytest.mark.parametrize(
    ("start", "known", "why", "shown"),
    [("2026-06-27", "not told", "it starts on 2026-06-27", "2026-06-27"), (TODAY, "free", "", "")],
)
def test_block_when_purchased_then_it_has_a_start_and_an_end(start: str, known: str, why: str, shown: str) -> None:
    way = reserved(group("Block"), scheduleProfile={"start": start, "end": "2026-07-04"})
    assert (way.kind, way.known, way.why) == ("block", known, why)
    assert (way.start, way.end, way.note) == (shown, "2026-07-04", "")


def test_reservation_when_its_use_is_not_told_then_not_known() -> None:
    assert reserved(group("Open")).why == "Azure does not report how many machines of an open reservation are used"
    without = {**group(), "properties": {"reservationType": "Targeted"}}
    assert (reserved(without).known, reserved(without).why) == ("not told", "its use could not be read")


class FakeResponse:
    """As much of an answer as is read."""

    def __init__(self, body: object, status: int = 200) -> None:
        self.status_code = status
        self.reason = "because"
        self.headers: dict[str, str] = {}
        self._body = body

    def json(self) -> object:
        return self._body

    def text(self) -> str:
        return json.dumps(self._body)


@dataclass
class FakeArm:
    """Answers by the last part of the path; a number is the status of an error."""

    answers: dict[str, Any]
    asked: list[tuple[str, str]] = field(default_factory=list)
    sent: list[Any] = field(default_factory=list)

    def send_request(self, request: HttpRequest) -> FakeResponse:
        name = urlsplit(request.url).path.rpartition("/")[2]
        self.asked.append((request.method, request.url))
        if request.method == "POST":
            assert isinstance(request.content, str | bytes)
            self.sent.append(json.loads(request.content))
        answer = self.answers.get(name, {})
        if isinstance(answer, int):
            return FakeResponse({"error": {"code": "AuthorizationFailed", "message": "no"}}, answer)
        return FakeResponse(answer)

    def of(self, name: str) -> list[str]:
        return [url for _, url in self.asked if urlsplit(url).path.endswith(f"/{name}")]


def scores(*cells: tuple[str, str, str]) -> dict[str, Any]:
    return {
        "placementScores": [
            {"sku": size, "region": "eastus", "availabilityZone": zone or None, "score": score}
            for size, zone, score in cells
        ]
    }  # fmt: skip


def answer(query: CapacityQuery = QUERY, **answers: Any) -> tuple[Offers, FakeArm]:  # noqa: ANN401 - answers of any path
    arm = FakeArm({"skus": {"value": [sku(one.name) for one in query.machines]}, **answers})
    return read_capacity(arm, SUBSCRIPTION, query, "https://arm.test"), arm  # type: ignore[arg-type]  # as much of an answer as is read


def of_kind(offers: Offers, kind: str) -> list[Way]:
    return [way for way in offers.ways if way.kind == kind]


def line(offers: Offers, source: str) -> SourceLine:
    (found,) = [one for one in offers.sources if one.source.endswith(source)]
    return found


GROUPS: dict[str, Any] = {
    "capacityReservationGroups": {"value": [group()]},
    "gpus": group(),
    "capacityReservations": {"value": [inside()]},
}


def test_capacity_when_all_answer_then_each_kind_has_its_ways() -> None:
    cells = [(A100.lower(), zone, score) for zone, score in zip("123", ("High", "Medium", "Low"), strict=True)]
    offers, arm = answer(**GROUPS, generate=scores(*cells))
    assert [(way.id, way.free) for way in of_kind(offers, "reservation")] == [(GROUP, 3)]
    assert [(way.zone, way.known) for way in of_kind(offers, "spot")] == [
        ("1", "likely"), ("2", "possible"), ("3", "unlikely"),
    ]  # fmt: skip
    assert [(way.zone, way.known, way.why) for way in of_kind(offers, "on-demand")] == [
        (zone, "not told", "Azure does not publish stock of on-demand machines") for zone in "123"
    ]
    assert of_kind(offers, "block") == []
    assert line(offers, "skuMixPlacementScores").state == "not asked"
    assert {one.state for one in offers.sources} == {"ok", "not asked"}
    assert arm.sent == [
        {"desiredLocations": ["eastus"], "desiredSizes": [{"sku": A100}], "desiredCount": 2, "availabilityZones": True}
    ]
    assert [urlsplit(url).query for url in arm.of("generate")] == ["api-version=2025-06-05"]
    assert [urlsplit(url).query for url in arm.of("gpus")] == ["api-version=2025-04-01&$expand=instanceView"]


def test_capacity_when_zones_are_named_then_no_other_zone_is_shown() -> None:
    offers, _ = answer(replace(QUERY, zones=("2",)), **GROUPS, generate=scores((A100, "1", "High"), (A100, "2", "Low")))
    assert {(way.kind, way.zone) for way in offers.ways} == {("spot", "2"), ("on-demand", "2")}
    assert [way.known for way in of_kind(offers, "spot")] == ["unlikely"]


def test_capacity_when_the_region_has_no_zones_then_scored_as_a_whole() -> None:
    regional = {"value": [sku(locationInfo=[{"location": "eastus"}])]}
    offers, arm = answer(skus=regional, generate=scores((A100, "", "High")))
    assert [(way.zone, way.known) for way in of_kind(offers, "spot")] == [("", "likely")]
    assert [sent["availabilityZones"] for sent in arm.sent] == [False]


def test_capacity_when_blocks_are_the_only_reservations_then_their_offers_are_not_told() -> None:
    offers, _ = answer(replace(QUERY, machines=(require_machine("aks", H100),)))
    assert [(way.known, way.why) for way in of_kind(offers, "block")] == [
        ("not told", "Azure lists no Block reservations for sale")
    ]


@pytest.mark.parametrize(
    ("listing", "notes"),
    [
        ([], (f"{A100} is not sold in eastus",)),
        ([sku(restrictions=[restriction("Location")])],
         (f"{A100} is not available to the subscription in eastus (QuotaId)",)),
    ],
)  # fmt: skip
def test_capacity_when_the_subscription_cannot_use_it_then_nothing_more_is_asked(
    listing: list[dict[str, Any]], notes: tuple[str, ...]
) -> None:
    offers, arm = answer(skus={"value": listing})
    assert (offers.ways, offers.notes) == ((), notes)
    assert len(arm.asked) == 1


def test_capacity_when_everything_is_refused_then_lines_and_places_that_are_not_told() -> None:
    offers, arm = answer(skus=403, capacityReservationGroups=403, generate=403)
    assert {(way.kind, way.machine, way.zone, way.known) for way in offers.ways} == {
        (kind, A100, "", "not told") for kind in ("reservation", "spot", "on-demand")
    }
    assert [one.state for one in offers.sources].count("failed") == 3
    assert {one.code for one in offers.sources if one.state == "failed"} == {"permission"}
    assert len(arm.of("generate")) == 1
