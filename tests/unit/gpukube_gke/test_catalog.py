"""What Compute Engine and the Billing Catalog say, read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import requests

from gpukube.core.cloud_catalog import Account, Inquiry
from gpukube.core.values import Settings
from gpukube.errors import AccessError, CloudError, SpecError
from gpukube.gpu.machines import require_machine
from gpukube.gpu.models import parse_model
from gpukube.gpu.refreshed import Offer
from gpukube_gke.facts.listings import bundled_ssds, read_accelerators, read_machines, scoped
from gpukube_gke.facts.prices import price_machine, price_offers, read_skus
from gpukube_gke.live.market import fetch, read_offers

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

REGION = "us-central1"
INQUIRY = Inquiry("gke", REGION, Account(project="ml-prod"), Settings())
A100 = "nvidia-tesla-a100"


def machine(name: str, accelerator: str = A100, count: int = 1, **more: object) -> dict[str, object]:
    gpus = [{"guestAcceleratorType": accelerator, "guestAcceleratorCount": count}] if accelerator else []
    return {"name": name, "guestCpus": 12, "memoryMb": 87040, "accelerators": gpus, **more}


def page(kind: str, **scopes: list[dict[str, object]]) -> dict[str, object]:
    return {"items": {f"zones/{zone.replace('_', '-')}": {kind: found} for zone, found in scopes.items()}}


@pytest.mark.parametrize(
    ("scope", "is_in"),
    [
        ("zones/us-central1-a", True),
        ("zones/us-central1-ai1a", True),
        ("zones/us-central10-a", False),
        ("zones/us-central2-a", False),
        ("regions/us-central1", False),
        ("global", False),
    ],
)
def test_scope_when_a_zone_of_the_region_then_read(scope: str, is_in: bool) -> None:  # noqa: FBT001 - a table
    found = list(scoped([{"items": {scope: {"machineTypes": [{}]}}}], REGION, "machineTypes"))
    assert found == ([(scope.removeprefix("zones/"), {})] if is_in else [])


def test_machines_when_in_several_zones_and_pages_then_each_once_and_others_left_out() -> None:
    pages: list[Mapping[str, object]] = [
        page(
            "machineTypes",
            us_central1_a=[machine("a2-highgpu-1g"), machine("e2-medium", "")],
            us_east1_b=[machine("x")],
        ),
        page("machineTypes", us_central1_b=[machine("a2-highgpu-1g"), machine("ct5lp-hightpu-1t", "ct5lp")]),
        {"items": {"zones/us-central1-f": {"warning": {"code": "NO_RESULTS_ON_PAGE"}}}},
        {},
    ]
    (offer,) = read_machines(pages, REGION)
    assert offer == Offer("a2-highgpu-1g", A100, 1, 12, 85, "amd64", A100)


@pytest.mark.parametrize(
    ("more", "arch", "status"),
    [
        ({}, "amd64", ""),
        ({"architecture": "ARM64"}, "arm64", ""),
        ({"deprecated": {"state": "DEPRECATED"}}, "amd64", "legacy"),
        ({"deprecated": {"state": "OBSOLETE"}}, "amd64", "retired"),
        ({"deprecated": {"state": "ACTIVE"}}, "amd64", ""),
    ],
)
def test_machine_when_it_says_more_then_read(more: dict[str, object], arch: str, status: str) -> None:
    (offer,) = read_machines([page("machineTypes", us_central1_a=[machine("a2-highgpu-1g") | more])], REGION)
    assert (offer.arch, offer.status) == (arch, status)


def test_accelerators_when_attached_then_each_number_that_fits_and_built_in_ones_left_out() -> None:
    found = [{"name": "nvidia-tesla-t4", "maximumCardsPerInstance": 2}, {"name": A100, "maximumCardsPerInstance": 16}]
    offers = read_accelerators([page("acceleratorTypes", us_central1_a=found)], REGION)
    assert [(o.name, o.model, o.gpus) for o in offers] == [("n1-*", "T4-16GB", 1), ("n1-*", "T4-16GB", 2)]


def sku(text: str, usd: float, usage: str = "OnDemand", regions: tuple[str, ...] = (REGION,)) -> dict[str, object]:
    units, nanos = divmod(round(usd * 1e9), 10**9)
    rate = {"unitPrice": {"units": str(units), "nanos": nanos}}
    return {
        "description": text,
        "category": {"usageType": usage},
        "serviceRegions": list(regions),
        "pricingInfo": [{"pricingExpression": {"tieredRates": [rate]}}],
    }


SKUS = [
    sku("Commitment v1: Nvidia Tesla A100 GPU running in Americas for 1 Year", 9),
    sku("Reserved Nvidia Tesla A100 GPU in Americas", 9),
    sku("A2 Custom Instance Core running in Americas", 9),
    sku("Nvidia Tesla A100 GPU running in Netherlands", 9, regions=("europe-west4",)),
    sku("Nvidia Tesla A100 GPU running in Americas", 3),
    sku("Nvidia Tesla A100 GPU running in Americas", 99),
    sku("Nvidia Tesla A100 80GB GPU running in Americas", 4),
    sku("Nvidia Tesla A100 GPU attached to Spot Preemptible VMs running in Americas", 1, "Preemptible"),
    sku("A2 Instance Core running in Americas", 0.03),
    sku("A2 Instance Ram running in Americas", 0.004),
    sku("Spot Preemptible A2 Instance Core running in Americas", 0.01, "Preemptible"),
    sku("Spot Preemptible A2 Instance Ram running in Americas", 0.001, "Preemptible"),
    sku("SSD backed Local Storage", 0.08),
    sku("SSD backed Local Storage attached to Spot Preemptible VMs", 0.02),
    sku("Nvidia Tesla T4 GPU running in Americas", 0.35),
    sku("Nvidia L4 GPU running in Americas", 0.5),
    sku("RTX 6000 96GB running in Americas", 4),
    sku("G4 Instance Core running in Americas", 0.05),
    sku("G4 Instance Ram running in Americas", 0.006),
    sku("Nvidia H100 80GB GPU running in Americas", 0),
]


def priced(offer: Offer, ssds: int = 0) -> tuple[float | None, float | None]:
    (done,) = price_offers([offer], {offer.name: ssds}, read_skus(SKUS, REGION))
    return done.price_usd_h, done.spot_usd_h


@pytest.mark.parametrize(
    ("offer", "ssds", "usd", "spot"),
    [
        (Offer("a2-highgpu-1g", A100, 1, 12, 85, "amd64", A100), 0, 3 + 0.36 + 0.34, 1 + 0.12 + 0.085),
        (Offer("a2-highgpu-2g", A100, 2, 24, 170, "amd64", A100), 0, 6 + 0.72 + 0.68, 2 + 0.24 + 0.17),
        (
            Offer("a2-ultragpu-1g", "", 1, 12, 170, "amd64", "nvidia-a100-80gb"),
            1,
            4 + 0.36 + 0.68 + 375 * 0.08 / 730,
            None,
        ),
        (Offer("n1-*", "T4", 4, accelerator="nvidia-tesla-t4"), 0, 1.4, None),
        # a part without a SKU, a family whose SKUs are not certain, a share, a shape that is not known
        (Offer("g2-standard-4", "L4", 1, 4, 16, "amd64", "nvidia-l4"), 0, None, None),
        (Offer("a3-megagpu-8g", "", 8, 208, 1872, "amd64", "nvidia-h100-mega-80gb"), 0, None, None),
        (Offer("a3-highgpu-8g", "", 8, 208, 1872, "amd64", "nvidia-h100-80gb"), 16, None, None),
        (Offer("g4-standard-48", "", 1, 48, 180, "amd64", "nvidia-rtx-pro-6000"), 0, 4 + 2.4 + 1.08, None),
        (Offer("g4-standard-6", "", 1, 6, 22, "amd64", "nvidia-rtx-pro-6000"), 0, None, None),
        (Offer("a2-highgpu-1g", A100, 1, None, 85, "amd64", A100), 0, None, None),
        (Offer("a2-highgpu-1g", A100, None, 12, 85, "amd64", A100), 0, None, None),
    ],
)
def test_price_when_all_parts_have_one_then_their_sum(
    offer: Offer, ssds: int, usd: float | None, spot: float | None
) -> None:
    assert priced(offer, ssds) == (
        pytest.approx(usd, abs=1e-4) if usd else None, pytest.approx(spot, abs=1e-4) if spot else None
    )  # fmt: skip


N1 = [
    sku("N1 Predefined Instance Core running in Americas", 0.03),
    sku("N1 Predefined Instance Ram running in Americas", 0.004),
    sku("Spot Preemptible N1 Predefined Instance Core running in Americas", 0.01, "Preemptible"),
]


@pytest.mark.parametrize(
    ("name", "gpu", "usd", "spot"),
    [
        ("a2-highgpu-1g", None, 3 + 0.36 + 0.34, 1 + 0.12 + 0.085),
        ("a2-ultragpu-1g", None, 4 + 0.36 + 0.68 + 375 * 0.08 / 730, None),
        ("n1-standard-8", "T4", 0.35 + 0.24 + 0.12, None),
        ("n1-custom-8-32768", "T4", None, None),
        ("a4-highgpu-8g", None, None, None),
    ],
)
def test_machine_when_priced_then_all_its_parts_are_in_it(
    name: str, gpu: str | None, usd: float | None, spot: float | None
) -> None:
    machine, prices = require_machine("gke", name, (parse_model(gpu), 1) if gpu else None), read_skus(SKUS + N1, REGION)
    found = [price_machine(machine, prices, spot=spot) for spot in (False, True)]
    assert found == [None if expected is None else pytest.approx(expected, abs=1e-4) for expected in (usd, spot)]


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"description": "Nvidia L4 GPU", "serviceRegions": [REGION]},
        {"description": "Nvidia L4 GPU", "category": {"usageType": "OnDemand"}, "serviceRegions": "us-central1"},
        {
            "description": "Nvidia L4 GPU",
            "category": {"usageType": "OnDemand"},
            "serviceRegions": [REGION],
            "pricingInfo": [1],
        },
        sku("Nvidia L4 GPU running in Americas", 1, "Commit1Yr"),
    ],
)
def test_sku_when_it_says_nothing_of_use_then_left_out(item: dict[str, object]) -> None:
    assert read_skus([item], REGION).units == {}


def test_ssds_when_bundled_then_counted() -> None:
    bundled = machine("a2-ultragpu-2g", bundledLocalSsds={"partitionCount": 2})
    assert bundled_ssds([page("machineTypes", us_central1_a=[bundled, machine("b")])], REGION) == {
        "a2-ultragpu-2g": 2, "b": 0,
    }  # fmt: skip


class FakeSession:
    """Answers by what is asked, page after page."""

    def __init__(self, **answers: list[object]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, Mapping[str, str]]] = []

    def get(self, url: str, *, params: Mapping[str, str], timeout: float) -> requests.Response:
        assert timeout
        self.asked.append((url, params))
        kind, at = url.rpartition("/")[2], int(params.get("pageToken", "0"))
        answer, response = self.answers[kind][at], requests.Response()
        if isinstance(answer, int):
            response.status_code = answer
            response._content = b'{"error": {"code": 403, "status": "PERMISSION_DENIED", "message": "no"}}'
            response.request = requests.Request("GET", url).prepare()
            return response
        assert isinstance(answer, dict)
        response.status_code = 200
        more = {"nextPageToken": str(at + 1)} if at + 1 < len(self.answers[kind]) else {}
        response.json = lambda **_: {**answer, **more}  # type: ignore[method-assign]  # the body without a socket
        return response


MACHINES: list[object] = [
    {},
    page("machineTypes", us_central1_a=[machine("a2-highgpu-1g"), machine("a4-highgpu-8g", "nvidia-b200", 8)]),
]
CARDS: list[object] = [
    page("acceleratorTypes", us_central1_a=[{"name": "nvidia-tesla-t4", "maximumCardsPerInstance": 1}])
]
BASES = ("https://compute.test", "https://billing.test")


def test_ask_when_answers_come_in_pages_then_all_are_read() -> None:
    session = FakeSession(machineTypes=MACHINES, acceleratorTypes=CARDS, skus=[{"skus": SKUS[:6]}, {"skus": SKUS[6:]}])
    found = read_offers(session, "ml-prod", INQUIRY, BASES)
    assert [(o.name, o.price_usd_h) for o in found.offers] == [
        ("a2-highgpu-1g", pytest.approx(3.7)), ("a4-highgpu-8g", None), ("n1-*", 0.35),
    ]  # fmt: skip
    assert (found.priced, found.notes) == (True, ("no live price, the embedded one is used: a4-highgpu-8g",))
    urls = [url for url, _ in session.asked]
    assert urls[0] == "https://compute.test/compute/v1/projects/ml-prod/aggregated/machineTypes"
    assert urls[-1] == "https://billing.test/v1/services/6F81-5844-456A/skus"


def test_ask_when_prices_are_refused_then_machines_and_a_note() -> None:
    found = read_offers(
        FakeSession(machineTypes=MACHINES, acceleratorTypes=CARDS, skus=[403]), "ml-prod", INQUIRY, BASES
    )
    assert (len(found.offers), found.priced) == (3, False)
    assert found.notes[0].startswith("prices could not be read and are unchanged: ")


def test_ask_when_machines_are_refused_then_no_answer_at_all() -> None:
    with pytest.raises(AccessError):
        read_offers(FakeSession(machineTypes=[403]), "ml-prod", INQUIRY, BASES)


def test_ask_when_a_list_does_not_end_then_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpukube_gke.live.market._MAX_PAGES", 1)
    with pytest.raises(CloudError, match="more than 1 pages"):
        read_offers(FakeSession(machineTypes=MACHINES, acceleratorTypes=CARDS), "ml-prod", INQUIRY, BASES)


@pytest.mark.parametrize("project", ["Not A Project", "../x", "ab"])
def test_fetch_when_the_project_is_none_then_refused(project: str) -> None:
    settings = Settings({"gke": "http://127.0.0.1:9"}, sandbox=True)
    with pytest.raises(SpecError, match="is not a project id"):
        fetch(Inquiry("gke", REGION, Account(project=project), settings))


def test_fetch_when_nobody_is_logged_in_then_an_error_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "missing.json"))
    with pytest.raises(AccessError) as refused:
        fetch(INQUIRY)
    assert refused.value.diagnostics[0].code == "no-credentials"


def test_fetch_when_only_the_grpc_port_is_known_then_said() -> None:
    settings = Settings({"gke-grpc": "127.0.0.1:9"}, sandbox=True)
    with pytest.raises(CloudError, match="only the gRPC port"):
        fetch(Inquiry("gke", REGION, Account(), settings))


def test_machine_when_numbers_are_none_then_unknown() -> None:
    odd = machine("a2-highgpu-1g") | {"guestCpus": "many", "memoryMb": True}
    (offer,) = read_machines([page("machineTypes", us_central1_a=[odd])], REGION)
    assert (offer.vcpus, offer.memory_gib) == (None, None)


def test_price_when_it_is_no_number_then_none() -> None:
    item = sku("Nvidia L4 GPU running in Americas", 1)
    item["pricingInfo"] = [{"pricingExpression": {"tieredRates": [{"unitPrice": {"units": "much"}}]}}]
    assert read_skus([item], REGION).units == {}
