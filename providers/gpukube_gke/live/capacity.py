"""Reads from Compute Engine which machines are available: reservations, its advice on Spot, flex-start, calendar mode.

In scope: the calls, one region in one run. Out of scope: bodies and parsing responses (`facts.capacity`), quotas, and
prices on demand. Nothing is bought.

All calls are plain REST with an access token, as in `live.market`; GKE's SDK has none of them.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import google.auth
from google.api_core.exceptions import from_http_response

from gpukube.core.capacity_sources import Offers, Reading, Way
from gpukube.core.jsontree import tree
from gpukube.errors import AccessError, CloudError, GpukubeError, NoCluster
from gpukube_gke.facts.capacity import (
    FLEX,
    LONGEST_BLOCK_S,
    SPOT,
    advice_body,
    calendar_body,
    can_be_calendar,
    flex_way,
    has_history,
    history_body,
    is_attached,
    is_sold,
    list_filter,
    read_calendar,
    read_history,
    read_reservations,
    read_scores,
    read_zones,
    scored_way,
)
from gpukube_gke.facts.endpoint import choose_endpoint
from gpukube_gke.live.access import SCOPE, shared_identity
from gpukube_gke.live.failures import explained
from gpukube_gke.live.market import (
    COMPUTE_URL,
    EMULATED_PROJECT,
    Session,
    all_pages,
    emulated_session,
    real_session,
    require_project,
)
from gpukube_gke.pool.purchase import LONGEST_RUN_S

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    import requests

    from gpukube.core.capacity_sources import CapacityQuery
    from gpukube.gpu.machine import Machine

_TYPES: Final = "Compute Engine machineTypes.aggregatedList"
_GPUS: Final = "Compute Engine acceleratorTypes.aggregatedList"
_RESERVATIONS: Final = "Compute Engine reservations.aggregatedList"
_SCORES: Final = "Compute Engine advice.capacity {}"
_HISTORY: Final = "Compute Engine advice.capacityHistory"
_CALENDAR: Final = "Compute Engine advice.calendarMode"
_UNREAD: Final = "{} could not be read"
_NO_STOCK: Final = "Google does not publish stock of on-demand machines"
_JSON: Final = {"Content-Type": "application/json"}
_PAGE: Final = "500"
_AT_ONCE: Final = 8
_NOT_FOUND: Final = 404
_SOON: Final = timedelta(hours=1)
"""Earliest start of a reservation in calendar mode: not in the past, even if this machine's clock is slow."""
_AHEAD: Final = timedelta(days=90)
"""How far ahead a reservation in calendar mode is looked for."""
_Key = TypeVar("_Key", bound="Hashable")
_Sold = list[tuple["Machine", str]]
"""Machines with each zone that sells them."""


class AdviceSession(Session, Protocol):
    """The part of an HTTP session that gpukube uses; it sends the token with each request."""

    def post(self, url: str, *, data: str, headers: Mapping[str, str], timeout: float) -> requests.Response:
        """POST."""


def fetch_capacity(query: CapacityQuery) -> Offers:
    """Read what Compute Engine reports, with the cluster's project and identity if there is one.

    Raises:
        SpecError: No project is named.
        AccessError: No credentials, or they must not be sent to the endpoint of the settings.
    """
    inquiry = query.inquiry
    endpoint = choose_endpoint(inquiry.settings, inquiry.where)
    project = query.cluster.identity["project"] if query.cluster else inquiry.account.project
    if endpoint.is_emulated:
        with emulated_session(inquiry, endpoint) as session:
            return read_capacity(session, require_project(project or EMULATED_PROJECT), query, endpoint.url)
    with _real_session(query) as (session, usual):
        return read_capacity(session, require_project(project or usual), query, COMPUTE_URL)


@contextmanager
def _real_session(query: CapacityQuery) -> Iterator[tuple[requests.Session, str]]:
    """Open an authorized session; yield it with the project of the credentials."""
    with explained(query.inquiry.where):
        if query.cluster is not None:
            credentials, usual = shared_identity(query.cluster.identity.get("impersonate", "")).credentials(), None
        else:
            credentials, usual = google.auth.default(scopes=[SCOPE])
    with real_session(credentials) as session:
        yield session, usual or ""


def read_capacity(session: AdviceSession, project: str, query: CapacityQuery, base: str) -> Offers:
    """Read over an authorized session; a source that fails is a line.

    Args:
        session: Sends the token with each request.
        project: Project to read for.
        query: What to read.
        base: URL of Compute Engine.
    """
    return _Sources(session, project, query, base).offers()


class _Sources:
    """The sources of one result."""

    def __init__(self, session: AdviceSession, project: str, query: CapacityQuery, base: str) -> None:
        self._session = session
        self._project = project
        self._query = query
        self._root = f"{base}/compute/v1/projects/{project}"
        self._timeout = query.inquiry.settings.request_timeout_s
        self._reading = Reading()
        self._sellers: dict[Machine, tuple[str, ...]] = {}
        """Machine -> the zones of the region that sell it, also those that the query does not name."""

    def offers(self) -> Offers:
        """Read all of them."""
        query = self._query
        sold = [(machine, zone) for machine, zones in self._zones() for zone in zones]
        missing = [machine.name for machine in query.machines if machine not in [one for one, _ in sold]]
        place = ", ".join(query.zones) or query.inquiry.region
        notes = tuple(f"{name} is not sold in {place}" for name in missing)
        ways = [
            *self._reservations(sold),
            *self._calendar(sold),
            *self._scored(sold, SPOT),
            *self._scored(sold, FLEX),
            *(_on_demand(machine, zone) for machine, zone in sold),
        ]
        return Offers(tuple(ways), tuple(self._reading.lines), notes)

    def _zones(self) -> Iterator[tuple[Machine, Sequence[str]]]:
        """Yield each machine with the zones that sell it; with "" for the region if that cannot be read."""
        for attached, source, path in (
            (False, _TYPES, "aggregated/machineTypes"),
            (True, _GPUS, "aggregated/acceleratorTypes"),
        ):
            machines = [machine for machine in self._query.machines if is_attached(machine) is attached]
            if not machines:
                continue
            names = {machine: machine.accelerator if attached else machine.name for machine in machines}
            pages = self._reading.read(source, partial(self._pages, path, list_filter(names.values())))
            kind = path.rpartition("/")[2]
            found = None if pages is None else read_zones(pages, self._query.inquiry.region, kind)
            for machine, name in names.items():
                zones = (self._query.zones or ("",)) if found is None else found.get(name, ())
                self._sellers[machine] = zones
                yield machine, list(filter(self._query.covers, zones))

    def _reservations(self, sold: _Sold) -> Iterator[Way]:
        machines = _machines(sold)
        if not machines:
            return
        pages = self._reading.read(_RESERVATIONS, partial(self._pages, "aggregated/reservations"))
        for machine in machines:
            if pages is None:
                yield Way(kind="reservation", machine=machine.name, why=_UNREAD.format("reservations"))
                continue
            found = read_reservations(pages, self._query.inquiry.region, machine, self._query.nodes)
            yield from (way for way in found if self._query.covers(way.zone))

    def _calendar(self, sold: _Sold) -> Iterator[Way]:
        query, seconds = self._query, self._query.seconds
        machines = [machine for machine in _machines(sold) if can_be_calendar(machine.name)]
        if not machines:
            return
        if not seconds or seconds > LONGEST_BLOCK_S:
            why = "calendar mode is for at most 90 days" if seconds else "calendar mode is for a time: add --for 7d"
            self._reading.skip(_CALENDAR, why)
            yield from (Way(kind="block", machine=machine.name, known="not asked", why=why) for machine in machines)
            return
        first = datetime.now(UTC).replace(microsecond=0) + _SOON
        span = first.isoformat(), (first + _AHEAD).isoformat()
        bodies = {}
        for machine in machines:
            denied = {zone for zone in self._sellers[machine] if not query.covers(zone)}
            bodies[machine] = calendar_body(machine, query.nodes, seconds, span, denied)
        found = self._advice(_CALENDAR, "advice/calendarMode", bodies)
        for machine in machines:
            if machine in found:
                yield from read_calendar(found[machine], machine.name, query.nodes, self._project, query.zones)
            else:
                yield Way(kind="block", machine=machine.name, why=_UNREAD.format("recommendations"))

    def _scored(self, sold: _Sold, model: str) -> Iterator[Way]:
        query, option = self._query, "spot" if model == SPOT else "flexStart"
        source, places = _SCORES.format(model), [(one, zone) for one, zone in sold if is_sold(one.name, option)]
        if not places:
            return
        if model == FLEX and query.seconds and query.seconds > LONGEST_RUN_S:
            why = "flex-start nodes run at most 7 days"
            self._reading.skip(source, why)
            yield from (flex_way(machine.name, zone, why) for machine, zone in places)
            return
        prices = self._prices(places) if model == SPOT else {}
        bodies = {(machine, zone): advice_body(machine, zone, query.nodes, model) for machine, zone in places if zone}
        found = self._advice(source, "advice/capacity", bodies) if bodies else {}
        for machine, zone in places:
            answer = found.get((machine, zone))
            scores = None if answer is None else read_scores(answer)
            way = scored_way(machine.name, zone, model, scores, prices.get(machine))
            yield way if answer is not None else replace(way, why=_UNREAD.format("scores"))

    def _prices(self, places: _Sold) -> Mapping[Machine, float]:
        """Read Spot prices, which are the same in all zones of a region."""
        bodies = {machine: history_body(machine, zone) for machine, zone in places if zone and has_history(machine)}
        found = self._advice(_HISTORY, "advice/capacityHistory", bodies) if bodies else {}
        read = {machine: read_history(answer) for machine, answer in found.items()}
        return {machine: usd for machine, usd in read.items() if usd is not None}

    def _advice(
        self, source: str, method: str, bodies: Mapping[_Key, Mapping[str, object]]
    ) -> dict[_Key, Mapping[str, object]]:
        """Request advice on each body; a refusal of the first for lack of a permission or method is not repeated.

        Returns:
            The responses that could be read.
        """
        found: dict[_Key, Mapping[str, object]] = {}
        failures: list[GpukubeError] = []

        def request_one(key: _Key) -> bool:
            try:
                found[key] = self._post(method, bodies[key])
            except GpukubeError as error:
                failures.append(error)
                return not isinstance(error, AccessError | _NoMethod)
            return True

        def all_of_them() -> None:
            first, *others = bodies
            if request_one(first):
                with ThreadPoolExecutor(_AT_ONCE) as threads:
                    list(threads.map(request_one, others))
            if failures:
                raise failures[0]

        self._reading.read(source, all_of_them)
        return found

    def _post(self, method: str, body: Mapping[str, object]) -> Mapping[str, object]:
        inquiry = self._query.inquiry
        with explained(inquiry.where):
            url = f"{self._root}/regions/{inquiry.region}/{method}"
            response = self._session.post(url, data=json.dumps(body), headers=_JSON, timeout=self._timeout)
            if response.status_code == _NOT_FOUND:
                raise _NoMethod(f"Compute Engine has no {method} here", where=inquiry.where)
            if not response.ok:
                raise from_http_response(response)  # type: ignore[no-untyped-call]  # google-api-core has no types there
            return tree(response.json())

    def _pages(self, path: str, only: str = "") -> list[Mapping[str, object]]:
        params = {"maxResults": _PAGE, "returnPartialSuccess": "true", **({"filter": only} if only else {})}
        where = self._query.inquiry.where
        try:
            with explained(where):
                return list(all_pages(self._session, f"{self._root}/{path}", params, self._timeout))
        except NoCluster as error:  # what is missing of GKE's API is a cluster; of Compute Engine's lists, the project
            message, fix = f"there is no project {self._project}", "check --project, or clusters.*.project"
            raise CloudError(message, where=where, fix=fix, code="project") from error


class _NoMethod(CloudError):
    """The API does not have the method, in this version or for this project."""


def _machines(sold: _Sold) -> list[Machine]:
    """Return each machine once, in order."""
    return list(dict.fromkeys(machine for machine, _ in sold))


def _on_demand(machine: Machine, zone: str) -> Way:
    if is_sold(machine.name, "on-demand"):
        return Way(kind="on-demand", machine=machine.name, zone=zone, why=_NO_STOCK)
    return Way(kind="on-demand", machine=machine.name, zone=zone, known="none", words="not available on demand")
