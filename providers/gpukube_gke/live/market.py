"""The live half of GKE's part in the catalog: machines from Compute Engine, prices from the Cloud Billing Catalog.

In scope: the calls. Out of scope: parsing responses (`facts.listings`, `facts.prices`).

Both APIs are plain REST with an access token; GKE's SDK includes neither. Prices are optional: without them the
machines are still returned, with a note.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

import google.auth
import requests
from google.api_core.exceptions import from_http_response
from google.auth.transport.requests import AuthorizedSession
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from gpukube.core.cloud_catalog import Findings, LivePrice, LivePrices
from gpukube.core.jsontree import tree, trees
from gpukube.errors import CloudError, GpukubeError, SpecError, Where
from gpukube_gke.facts.endpoint import choose_endpoint
from gpukube_gke.facts.listings import TYPE_FILTER, bundled_ssds, read_accelerators, read_machines
from gpukube_gke.facts.prices import COMPUTE_ENGINE, UnitPrices, price_machine, price_offers, read_skus
from gpukube_gke.live.access import SCOPE, named
from gpukube_gke.live.failures import explained

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from google.auth.credentials import Credentials

    from gpukube.core.cloud_catalog import Inquiry, PriceInquiry
    from gpukube_gke.facts.endpoint import Endpoint

COMPUTE_URL: Final = "https://compute.googleapis.com"
_BILLING_URL: Final = "https://cloudbilling.googleapis.com"
_PROJECT: Final = re.compile(r"([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]|\d+")
EMULATED_PROJECT: Final = "gpukube-sandbox"
_PAGE: Final = "500"
_PRICE_PAGE: Final = "5000"
_MAX_PAGES: Final = 500
_RETRIES: Final = 5


class Session(Protocol):
    """The part of an HTTP session that gpukube uses."""

    def get(self, url: str, *, params: Mapping[str, str], timeout: float) -> requests.Response:
        """GET."""


def fetch(inquiry: Inquiry) -> Findings:
    """Read Google Cloud's GPU machines and prices with the application default credentials.

    Raises:
        SpecError: Neither the inquiry nor the credentials name a project.
        AccessError: No credentials, or no permission to list machine types.
        CloudError: Listing machine types failed for another reason.
    """
    endpoint = choose_endpoint(inquiry.settings, inquiry.where)
    if endpoint.is_emulated:
        return _fetch_emulated(inquiry, endpoint)
    with explained(inquiry.where):
        credentials, usual = google.auth.default(scopes=[SCOPE])
    project = require_project(inquiry.account.project or usual or "")
    with real_session(credentials) as session:
        return read_offers(session, project, inquiry, (COMPUTE_URL, _BILLING_URL))


def _fetch_emulated(inquiry: Inquiry, endpoint: Endpoint) -> Findings:
    """Read an emulated cloud's GPU machines and prices."""
    project = require_project(inquiry.account.project or EMULATED_PROJECT)
    with emulated_session(inquiry, endpoint) as session:
        return read_offers(session, project, inquiry, (endpoint.url, endpoint.url))


@contextmanager
def real_session(credentials: Credentials) -> Iterator[requests.Session]:
    """Open a session that sends a token of these credentials, and repeats calls after transient failures."""
    with named(AuthorizedSession(credentials)) as session:  # type: ignore[no-untyped-call]  # google-auth has no types
        _repeat_failures(session)
        yield session


@contextmanager
def emulated_session(inquiry: Inquiry, endpoint: Endpoint) -> Iterator[requests.Session]:
    """Open a session of an emulated cloud with its secret; it ignores the environment's proxies."""
    if not endpoint.url:
        fix = "set GPUKUBE_GKE_ENDPOINT to its http:// address"
        raise CloudError("only the gRPC port of the emulated cloud is known", where=inquiry.where, fix=fix)
    with named(requests.Session()) as session:
        session.trust_env = False
        session.headers["Authorization"] = f"Bearer {endpoint.secret}"
        _repeat_failures(session)
        yield session


def fetch_prices(requested: PriceInquiry) -> LivePrices:
    """Read prices of some machines from the Cloud Billing Catalog.

    Raises:
        AccessError: No credentials.
        CloudError: Signing in failed for another reason.
    """
    inquiry = requested.inquiry
    endpoint = choose_endpoint(inquiry.settings, inquiry.where)
    if endpoint.is_emulated:
        with emulated_session(inquiry, endpoint) as session:
            return read_prices(session, requested, endpoint.url)
    with explained(inquiry.where):
        credentials, _ = google.auth.default(scopes=[SCOPE])
    with real_session(credentials) as session:
        return read_prices(session, requested, _BILLING_URL)


def read_prices(session: Session, requested: PriceInquiry, base: str) -> LivePrices:
    """Read prices over an authorized session; a failure becomes a note.

    The list has no filter: reading stops when all parts of the machines are found.

    Args:
        session: Sends the token with each request.
        requested: Machines whose prices to read.
        base: URL of the Cloud Billing Catalog.
    """
    inquiry = requested.inquiry
    asked = [*((machine, False) for machine in requested.on_demand), *((machine, True) for machine in requested.spot)]
    known, notes = UnitPrices(), []
    try:
        with explained(inquiry.where):
            for page in _sku_pages(session, base, inquiry):
                # the first of several SKUs of one part counts, as in read_skus
                known = UnitPrices(read_skus(trees(page, "skus"), inquiry.region).units | known.units)
                if all(price_machine(machine, known, spot=spot) is not None for machine, spot in asked):
                    break
    except GpukubeError as error:
        notes.append(f"prices could not be read: {error}")
    found = [(machine, spot, price_machine(machine, known, spot=spot)) for machine, spot in asked]
    prices = tuple(LivePrice(machine.name, usd, spot) for machine, spot, usd in found if usd is not None)
    return LivePrices(prices, tuple(notes))


def _sku_pages(session: Session, base: str, inquiry: Inquiry) -> Iterator[Mapping[str, object]]:
    url = f"{base}/v1/services/{COMPUTE_ENGINE}/skus"
    params = {"pageSize": _PRICE_PAGE, "currencyCode": "USD"}
    return all_pages(session, url, params, inquiry.settings.request_timeout_s)


def read_offers(session: Session, project: str, inquiry: Inquiry, bases: tuple[str, str]) -> Findings:
    """Read GPU machines and prices over an authorized session.

    Args:
        session: Sends the token with each request.
        project: Project whose Compute Engine is queried.
        inquiry: The query.
        bases: URLs of Compute Engine and of the Cloud Billing Catalog.
    """
    compute, billing = bases
    aggregated = f"{compute}/compute/v1/projects/{project}/aggregated"
    usual, timeout = {"maxResults": _PAGE, "returnPartialSuccess": "true"}, inquiry.settings.request_timeout_s
    with explained(inquiry.where):
        pages = list(all_pages(session, f"{aggregated}/machineTypes", {**usual, "filter": TYPE_FILTER}, timeout))
        parts = list(all_pages(session, f"{aggregated}/acceleratorTypes", usual, timeout))
    offers = (*read_machines(pages, inquiry.region), *read_accelerators(parts, inquiry.region))
    try:
        with explained(inquiry.where):
            skus = _sku_pages(session, billing, inquiry)
            prices = read_skus((item for page in skus for item in trees(page, "skus")), inquiry.region)
    except GpukubeError as error:
        note = f"prices could not be read and are unchanged: {error}"
        return Findings(offers, priced=False, notes=(note,))
    found = price_offers(offers, bundled_ssds(pages, inquiry.region), prices)
    names = sorted({offer.name for offer in found if offer.price_usd_h is None})
    return Findings(
        found, priced=True, notes=(f"no live price, the embedded one is used: {', '.join(names)}",) if names else ()
    )


def all_pages(
    session: Session, url: str, params: Mapping[str, str], timeout_s: float
) -> Iterator[Mapping[str, object]]:
    """Yield all pages; fail if a list does not end."""
    token = ""
    for _ in range(_MAX_PAGES):
        requested = {**params, **({"pageToken": token} if token else {})}
        response = session.get(url, params=requested, timeout=timeout_s)
        if not response.ok:
            raise from_http_response(response)  # type: ignore[no-untyped-call]  # google-api-core has no types there
        page = tree(response.json())
        yield page
        token = str(page.get("nextPageToken") or "")
        if not token:
            return
    raise CloudError(f"Google's response has more than {_MAX_PAGES} pages", code="bad-answer")


def _repeat_failures(session: requests.Session) -> None:
    """Make a session retry transient failures: throttling, and gateway errors of Google's front end."""
    retry = Retry(_RETRIES, backoff_factor=0.5, status_forcelist=(429, 500, 502, 503, 504), raise_on_status=False)
    for scheme in ("https://", "http://"):
        session.mount(scheme, HTTPAdapter(max_retries=retry))


def require_project(project: str) -> str:
    """Return the project if it is named.

    Raises:
        SpecError: It is not, or has another form.
    """
    if project and _PROJECT.fullmatch(project):
        return project
    raise SpecError(
        f'"{project}" is not a project id' if project else "no Google Cloud project is given",
        where=Where("--project"),
        fix="add --project ID, or set GOOGLE_CLOUD_PROJECT (gcloud config get project)",
        code="project",
    )
