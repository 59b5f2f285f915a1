"""Which machines Compute Engine says are available: parsed, classed, and asked with as few calls as possible."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest
import requests

from gpukube.core.capacity_sources import CapacityQuery, SourceLine
from gpukube.core.cloud_catalog import Account, Inquiry
from gpukube.core.values import Settings
from gpukube.gpu.machines import find_machine, machines
from gpukube_gke.facts.capacity import (
    advice_body,
    calendar_body,
    is_sold,
    read_calendar,
    read_history,
    read_reservations,
    read_scores,
    scored_way,
)
from gpukube_gke.live.capacity import read_capacity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.core.capacity_sources import Offers, Way
    from gpukube.gpu.machine import Machine

REGION, ZONE = "us-central1", "us-central1-a"
DAY_S = 86_400


def machine(name: str) -> Machine:
    found = find_machine("gke", name)
    assert found is not None
    return found


H100, L4 = machine("a3-highgpu-8g"), machine("g2-standard-8")
(T4,) = (one for one in machines("gke") if one.name == "n1-*" and str(one.model) == "T4-16GB" and one.devices == 2)
QUERY = CapacityQuery(Inquiry("gke", REGION, Account(), Settings()), (H100,), 2)


def listed(kind: str, *names: str, zones: str = "ab") -> dict[str, Any]:
    here = {f"zones/{REGION}-{zone}": {kind: [{"name": name} for name in names]} for zone in zones}
    return {"items": {**here, "zones/us-east1-b": {kind: [{"name": name} for name in names]}}}


def reservation(**changed: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    counts = {"count": "4", "inUseCount": "1", "instanceProperties": {"machineType": H100.name}, **changed}
    top: dict[str, Any] = {
        key: counts.pop(key) for key in ("status", "specificReservationRequired", "deleteAtTime") if key in counts
    }
    return {
        "name": "ours",
        "status": "READY",
        "specificReservationRequired": True,
        "specificReservation": counts,
        **top,
    }


def reserved(item: dict[str, Any], wanted: Machine = H100, nodes: int = 2) -> list[Way]:
    page = {"items": {f"zones/{ZONE}": {"reservations": [item]}, "zones/us-east1-b": {"reservations": [item]}}}
    return list(read_reservations([page], REGION, wanted, nodes))


@pytest.mark.parametrize(
    ("changed", "known", "free", "words"),
    [
        ({}, "free", 3, "3 of 4 free"),
        ({"inUseCount": "3"}, "none", 1, "1 of 4 free"),
        ({"assuredCount": "2"}, "none", 1, "1 of 2 free"),
        ({"status": "CREATING"}, "not told", 0, "creating"),
    ],
)
def test_reservation_when_read_then_free_only_if_ready_and_large_enough(
    changed: dict[str, Any], known: str, free: int, words: str
) -> None:
    (way,) = reserved(reservation(**changed))
    assert (way.kind, way.zone, way.known, way.free, way.words) == ("reservation", ZONE, known, free, words)
    assert (way.form, way.id, way.usd) == ("reservation", "ours", 0.0)
    assert bool(way.why) == (known == "not told")


@pytest.mark.parametrize(
    ("changed", "note", "end"),
    [
        ({}, "", ""),
        ({"specificReservationRequired": False}, "any matching machine of the project may take it", ""),
        ({"deleteAtTime": "2026-12-08T00:00:00Z"}, "Google may end its machines with it", "2026-12-08T00:00:00Z"),
    ],
)
def test_reservation_when_it_has_a_catch_then_said(changed: dict[str, Any], note: str, end: str) -> None:
    (way,) = reserved(reservation(**changed))
    assert (way.note, way.end) == (note, end)


def test_reservation_when_for_another_machine_or_other_gpus_then_no_way() -> None:
    assert reserved(reservation(), L4) == []
    host = replace(T4, name="n1-standard-8")
    gpus = {"acceleratorType": T4.accelerator, "acceleratorCount": 2}
    fitting = {"machineType": "n1-standard-8", "guestAccelerators": [gpus]}
    assert len(reserved(reservation(instanceProperties=fitting), host)) == 1
    other = {**fitting, "guestAccelerators": [{**gpus, "acceleratorCount": 1}]}
    assert reserved(reservation(instanceProperties=other), host) == []


@pytest.mark.parametrize(
    ("scores", "known", "words"),
    [
        ({"obtainability": 0.82, "estimatedUptime": "600s"}, "likely", "0.82, ~10 min"),
        ({"obtainability": 0.7, "estimatedUptime": "3600s"}, "likely", "0.7, ~1 h"),
        ({"obtainability": 0.69}, "possible", "0.69"),
        ({"obtainability": 0.4}, "possible", "0.4"),
        ({"obtainability": 0.3, "estimatedUptime": "60s"}, "unlikely", "0.3, ~1 min"),
        ({"obtainability": 0}, "unlikely", "0"),
        ({}, "not told", ""),
    ],
)
def test_score_when_read_then_a_class_beside_googles_own_words(scores: dict[str, Any], known: str, words: str) -> None:
    read = read_scores({"recommendations": [{"scores": scores}]})
    way = scored_way(H100.name, ZONE, "SPOT", read, 30.0)
    assert (way.kind, way.known, way.words, way.usd) == ("spot", known, words, 30.0)
    assert bool(way.why) == (known == "not told")
    flex = scored_way(H100.name, ZONE, "FLEX_START", read, None)
    assert (flex.kind, flex.known, flex.words, flex.form) == ("flex-start", known, words, "flexStart")


def test_advice_when_gpus_are_attached_then_asked_with_their_usual_machine() -> None:
    (selection,) = advice_body(T4, ZONE, 2, "SPOT")["instanceFlexibilityPolicy"]["instanceSelections"].values()  # type: ignore[index]  # JSON
    assert selection == {
        "machineTypes": ["n1-standard-8"],
        "guestAccelerators": [{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 2}],
    }


def record(start: str, units: str, nanos: int = 0, currency: str = "USD") -> dict[str, Any]:
    money = {"currencyCode": currency, "units": units, "nanos": nanos}
    return {"interval": {"startTime": start, "endTime": "x"}, "listPrice": money}


@pytest.mark.parametrize(
    ("records", "usd"),
    [
        ([record("2026-11-01", "30", 250_000_000), record("2026-01-01", "40")], 30.25),
        ([record("2026-11-01", "30", currency="EUR")], None),
        ([record("2026-11-01", "0")], None),
        ([], None),
    ],
)
def test_history_when_read_then_the_newest_price_in_dollars(records: list[dict[str, Any]], usd: float | None) -> None:
    assert read_history({"priceHistory": records}) == usd


def calendar(**found: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"recommendations": [{"recommendationsPerSpec": {"gpukube": found}}]}


WHEN = {"startTime": "2026-12-01T00:00:00Z", "endTime": "2026-12-08T00:00:00Z"}


def test_calendar_when_a_zone_is_recommended_then_offered_with_the_command_that_buys_it() -> None:
    others = {
        "zones/us-central1-b": {"status": "NO_CAPACITY", "details": "There is none."},
        "zones/us-central1-c": {"status": "CONDITIONS_NOT_MET", "details": "Too short."},
        "zones/us-central1-f": {"status": "NOT_SUPPORTED", "details": "Never."},
    }
    answer = calendar(location=f"zones/{ZONE}", recommendationId="r-1", otherLocations=others, **WHEN)
    first, *rest = read_calendar(answer, H100.name, 2, "ml-prod")
    assert (first.kind, first.known, first.zone, first.id) == ("block", "offered", ZONE, "r-1")
    assert (first.start, first.end, first.form) == (WHEN["startTime"], WHEN["endTime"], "reservation")
    assert first.buy == (
        "gcloud compute future-reservations create a3-highgpu-8g-2026-12-01 --project ml-prod --zone us-central1-a "
        "--machine-type a3-highgpu-8g --total-count 2 --start-time 2026-12-01T00:00:00Z "
        "--end-time 2026-12-08T00:00:00Z --reservation-mode CALENDAR --reservation-name a3-highgpu-8g-2026-12-01 "
        "--deployment-type DENSE --require-specific-reservation --auto-delete-auto-created-reservations "
        "--planning-status SUBMITTED"
    )
    assert [(way.zone, way.known, way.words, way.why) for way in rest] == [
        ("us-central1-b", "none", "There is none", ""),
        ("us-central1-c", "not told", "", "Too short"),
    ]


def test_calendar_when_no_zone_is_recommended_then_none() -> None:
    (way,) = read_calendar(calendar(otherLocations={}), H100.name, 2, "ml-prod")
    assert (way.known, way.zone, way.words) == ("none", "", "no recommendation")


def test_calendar_when_asked_then_for_exactly_this_long_and_at_least_a_day() -> None:
    body = calendar_body(H100, 2, 3600, ("from", "to"), {"us-central1-b"})
    assert body == {
        "futureResourcesSpecs": {
            "gpukube": {
                "targetResources": {"specificSkuResources": {"machineType": H100.name, "instanceCount": "2"}},
                "timeRangeSpec": {
                    "startTimeNotEarlierThan": "from",
                    "startTimeNotLaterThan": "to",
                    "minDuration": "86400s",
                    "maxDuration": "86400s",
                },
                "locationPolicy": {"locations": {"zones/us-central1-b": {"preference": "DENY"}}},
            }
        }
    }


@pytest.mark.parametrize(
    ("name", "sold"),
    [
        ("g2-standard-8", {"on-demand", "spot", "flexStart", "reservation"}),
        ("a3-highgpu-1g", {"spot", "flexStart"}),
        ("a4-highgpu-8g", {"spot", "flexStart", "reservation"}),
        ("a4x-highgpu-4g", {"reservation"}),
        ("a3-edgegpu-8g", {"on-demand", "spot", "reservation"}),
    ],
)
def test_machine_when_google_does_not_sell_it_in_every_way_then_known(name: str, sold: set[str]) -> None:
    assert {way for way in ("on-demand", "spot", "flexStart", "reservation") if is_sold(name, way)} == sold


@dataclass
class FakeSession:
    """Answers by the last part of the address; a number is the status of an error."""

    answers: dict[str, Any]
    sent: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def get(self, url: str, *, params: Mapping[str, str], timeout: float) -> requests.Response:
        assert timeout
        return self._answer(url, dict(params))

    def post(self, url: str, *, data: str, headers: Mapping[str, str], timeout: float) -> requests.Response:
        assert timeout
        assert headers == {"Content-Type": "application/json"}
        return self._answer(url, json.loads(data))

    def of(self, name: str) -> list[dict[str, Any]]:
        return [body for asked, body in self.sent if asked == name]

    def _answer(self, url: str, body: dict[str, Any]) -> requests.Response:
        name, response = url.rpartition("/")[2], requests.Response()
        self.sent.append((name, body))
        answer = self.answers.get(name, {})
        response.status_code = answer if isinstance(answer, int) else 200
        error = {"error": {"code": answer, "status": "PERMISSION_DENIED", "message": "no"}}
        response._content = json.dumps(error if isinstance(answer, int) else answer).encode()
        response.request = requests.Request("GET", url).prepare()
        return response


def answer(query: CapacityQuery = QUERY, **answers: Any) -> tuple[Offers, FakeSession]:  # noqa: ANN401 - answers of any method
    names = [one.name for one in query.machines]
    session = FakeSession({"machineTypes": listed("machineTypes", *names), **answers})
    return read_capacity(session, "ml-prod", query, "https://compute.test"), session


def of_kind(offers: Offers, kind: str) -> list[Way]:
    return [way for way in offers.ways if way.kind == kind]


def line(offers: Offers, source: str) -> SourceLine:
    (found,) = [one for one in offers.sources if one.source.endswith(source)]
    return found


SCORE = {"recommendations": [{"scores": {"obtainability": 0.82, "estimatedUptime": "600s"}}]}


def test_capacity_when_all_answer_then_each_kind_has_its_ways() -> None:
    offers, session = answer(
        replace(QUERY, seconds=5 * DAY_S),
        reservations={"items": {f"zones/{ZONE}": {"reservations": [reservation()]}}},
        capacity=SCORE,
        capacityHistory={"priceHistory": [record("2026-11-01", "30")]},
        calendarMode=calendar(location=f"zones/{ZONE}", **WHEN),
    )
    assert [(way.id, way.free) for way in of_kind(offers, "reservation")] == [("ours", 3)]
    assert [(way.zone, way.known) for way in of_kind(offers, "block")] == [(ZONE, "offered")]
    assert [(way.zone, way.known, way.usd) for way in of_kind(offers, "spot")] == [
        ("us-central1-a", "likely", 30.0),
        ("us-central1-b", "likely", 30.0),
    ]
    assert [(way.zone, way.words, way.usd) for way in of_kind(offers, "flex-start")] == [
        ("us-central1-a", "0.82, ~10 min", None),
        ("us-central1-b", "0.82, ~10 min", None),
    ]
    assert [(way.known, way.why) for way in of_kind(offers, "on-demand")] == [
        ("not told", "Google does not publish stock of on-demand machines")
    ] * 2
    assert {one.state for one in offers.sources} == {"ok"}
    assert [body["filter"] for body in session.of("machineTypes")] == ['name eq "a3-highgpu-8g"']
    assert len(session.of("capacity")) == 4  # a zone each, Spot and flex-start
    assert len(session.of("capacityHistory")) == 1  # the price is the region's
    (body,) = session.of("calendarMode")
    assert body["futureResourcesSpecs"]["gpukube"]["timeRangeSpec"]["minDuration"] == "432000s"


def test_capacity_when_zones_are_named_then_no_other_zone_is_asked_for_or_shown() -> None:
    offers, session = answer(replace(QUERY, zones=(ZONE,), seconds=DAY_S), capacity=SCORE)
    assert {way.zone for way in offers.ways} == {ZONE, ""}
    assert [body["distributionPolicy"]["zones"] for body in session.of("capacity")] == [[{"zone": f"zones/{ZONE}"}]] * 2
    (body,) = session.of("calendarMode")
    denied = body["futureResourcesSpecs"]["gpukube"]["locationPolicy"]["locations"]
    assert denied == {"zones/us-central1-b": {"preference": "DENY"}}


def test_capacity_when_no_zone_sells_it_then_nothing_more_is_asked() -> None:
    offers, session = answer(machineTypes=listed("machineTypes", "g2-standard-8"))
    assert (offers.ways, offers.notes) == ((), ("a3-highgpu-8g is not sold in us-central1",))
    assert [name for name, _ in session.sent] == ["machineTypes"]


def test_capacity_when_gpus_are_attached_then_zones_of_the_gpu_and_no_history() -> None:
    offers, session = answer(
        replace(QUERY, machines=(T4,)), acceleratorTypes=listed("acceleratorTypes", "nvidia-tesla-t4"), capacity=SCORE
    )
    assert session.of("machineTypes") == []
    assert [body["filter"] for body in session.of("acceleratorTypes")] == ['name eq "nvidia-tesla-t4"']
    assert [(way.machine, way.known, way.usd) for way in of_kind(offers, "spot")] == [("n1-*", "likely", None)] * 2
    assert session.of("capacityHistory") == []
    assert of_kind(offers, "block") == []


@pytest.mark.parametrize(
    ("seconds", "why"),
    [(None, "calendar mode is for a time: add --for 7d"), (91 * DAY_S, "calendar mode is for at most 90 days")],
)
def test_capacity_when_calendar_mode_has_no_answer_then_not_asked(seconds: int | None, why: str) -> None:
    offers, session = answer(replace(QUERY, seconds=seconds))
    assert session.of("calendarMode") == []
    assert [(way.known, way.why) for way in of_kind(offers, "block")] == [("not asked", why)]
    assert line(offers, "calendarMode") == SourceLine("Compute Engine advice.calendarMode", "not asked", text=why)


def test_capacity_when_longer_than_flex_start_runs_then_not_asked() -> None:
    offers, session = answer(replace(QUERY, seconds=8 * DAY_S), capacity=SCORE)
    assert {(way.known, way.why) for way in of_kind(offers, "flex-start")} == {
        ("not asked", "flex-start nodes run at most 7 days")
    }
    assert {
        body["instanceProperties"]["scheduling"]["provisioningModel"] for body in session.of("capacity")
    } == {"SPOT"}  # fmt: skip


def test_capacity_when_a_machine_is_sold_in_one_way_then_no_other_is_asked_for() -> None:
    offers, _ = answer(replace(QUERY, machines=(machine("a4x-highgpu-4g"),)))
    assert {way.kind for way in offers.ways} == {"block", "on-demand"}
    assert {(way.known, way.words) for way in of_kind(offers, "on-demand")} == {("none", "not available on demand")}


@pytest.mark.parametrize("status", [403, 404])
def test_capacity_when_advice_is_refused_then_asked_once_and_a_line(status: int) -> None:
    offers, session = answer(
        replace(QUERY, seconds=DAY_S), capacity=status, capacityHistory=status, calendarMode=status
    )
    assert len(session.of("capacity")) == 2  # once for Spot, once for flex-start
    for source in ("capacity SPOT", "capacity FLEX_START", "capacityHistory", "calendarMode"):
        assert line(offers, source).state == "failed"
    assert {(way.known, way.why) for way in of_kind(offers, "spot")} == {("not told", "scores could not be read")}
    assert [(way.known, way.why) for way in of_kind(offers, "block")] == [
        ("not told", "recommendations could not be read")
    ]


def test_capacity_when_everything_is_refused_then_lines_and_places_that_are_not_told() -> None:
    offers, _ = answer(
        replace(QUERY, seconds=DAY_S), machineTypes=403, reservations=403, calendarMode=403, capacity=403
    )
    assert {(way.kind, way.machine, way.zone, way.known) for way in offers.ways} == {
        (kind, H100.name, "", "not told") for kind in ("reservation", "block", "spot", "flex-start", "on-demand")
    }
    assert all(one.code for one in offers.sources if one.state == "failed")


def test_capacity_when_the_project_does_not_exist_then_that_is_said_and_not_that_a_cluster_is_missing() -> None:
    offers, _ = answer(QUERY, machineTypes=404, reservations=404)
    failed = {source.text for source in offers.sources if source.state == "failed"}
    assert failed == {"there is no project ml-prod; check --project, or clusters.*.project"}
