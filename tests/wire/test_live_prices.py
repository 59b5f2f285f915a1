"""`--live-prices`: the real SDKs ask the sandbox's price APIs over real sockets."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from gpukube.catalog.live_prices import PoolToPrice, read_prices
from gpukube.core.prices import EMBEDDED, PriceBook, Side, Usd
from gpukube.core.values import Settings
from gpukube.engine.run.clock import SystemClock
from gpukube.gpu.machines import require_machine
from gpukube.gpu.models import parse_model
from gpukube_sandbox import daemon
from gpukube_sandbox.aks import market as azure
from gpukube_sandbox.aks.sizes import SIZES
from gpukube_sandbox.eks import prices as aws
from gpukube_sandbox.eks.instances import TYPES
from tests.builders import CLUSTER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpukube.gpu.machines import Machine
    from gpukube_sandbox.daemon import SandboxInfo

NEAR = {"aks": "eastus", "eks": "us-east-1", "gke": "us-central1"}
FAR = {"aks": "westeurope", "eks": "eu-west-1", "gke": "europe-west4"}
NAMES = {"aks": "Standard_NC4as_T4_v3", "eks": "g6.xlarge", "gke": "a2-highgpu-1g"}
SERVICE = {"aks": "arm", "eks": "aws", "gke": "gke"}


@pytest.fixture
def sandbox(running_sandbox: SandboxInfo) -> SandboxInfo:
    daemon.reset(running_sandbox)
    return running_sandbox


def settings(sandbox: SandboxInfo) -> Settings:
    endpoints = {"aks": sandbox.arm_url, "eks": sandbox.aws_url, "gke": sandbox.gke_url}
    return Settings(endpoints, sandbox=True, secret=sandbox.secret, request_timeout_s=60)


def wanted(machine: Machine, capacity: str, region: str) -> PoolToPrice:
    cluster = replace(CLUSTER, provider=machine.provider)
    return PoolToPrice(cluster, region, Side(machine, machine.name, capacity, (), 1, 1))


def asked(sandbox: SandboxInfo, items: Iterable[PoolToPrice]) -> PriceBook:
    return read_prices(EMBEDDED, items, settings(sandbox), SystemClock())


def price(book: PriceBook, item: PoolToPrice) -> Usd:
    found = item.side.node(book, item.region)
    assert (found.source, found.rough, found.usd is not None) == ("live", False, True), book.notes
    assert found.usd
    return found.usd


def bounds(usd: Usd) -> tuple[float, float]:
    return usd.least, usd.most


@pytest.mark.parametrize("cloud", NEAR)
def test_prices_when_asked_then_those_that_the_cloud_has_for_the_region(cloud: str, sandbox: SandboxInfo) -> None:
    machine = require_machine(cloud, NAMES[cloud])
    items = [wanted(machine, how, regions[cloud]) for regions in (NEAR, FAR) for how in ("on-demand", "spot")]
    book = asked(sandbox, items)
    near, near_spot, far, far_spot = (price(book, item) for item in items)
    assert near.most < far.least
    assert near_spot.most < near.least
    assert far_spot.most < far.least
    expected = {
        "aks": lambda: azure.price_of(SIZES[NAMES["aks"].lower()], "eastus"),
        "eks": lambda: aws.price_of(TYPES[NAMES["eks"]], "us-east-1"),
        "gke": lambda: 2.9 + 12 * 0.03 + 85 * 0.004,  # its tables have prices of parts
    }
    assert bounds(near) == pytest.approx((expected[cloud](), expected[cloud]()))
    assert book.notes == ("the sandbox's prices are invented",)


def test_spot_when_on_aws_then_one_price_per_zone_and_those_of_the_pool_count(sandbox: SandboxInfo) -> None:
    item = wanted(require_machine("eks", "g6.xlarge"), "spot", "us-east-1")
    book = asked(sandbox, [item])
    usd = aws.price_of(TYPES["g6.xlarge"], "us-east-1")
    assert bounds(price(book, item)) == pytest.approx((usd * 0.4, usd * 0.5))
    here = replace(item, side=replace(item.side, zones=("us-east-1b",)))
    assert bounds(price(book, here)) == pytest.approx((usd * 0.45, usd * 0.45))


def test_price_when_gpus_are_attached_then_the_machine_is_in_it(sandbox: SandboxInfo) -> None:
    machine = require_machine("gke", "n1-standard-8", (parse_model("T4"), 2))
    item = wanted(machine, "on-demand", "us-central1")
    assert price(asked(sandbox, [item]), item).most == pytest.approx(2 * 0.35 + 8 * 0.03 + 30 * 0.004)
    custom = require_machine("gke", "n1-custom-8-32768", (parse_model("T4"), 2))
    book = asked(sandbox, [wanted(custom, "on-demand", "us-central1")])
    assert book.notes[0].startswith(
        "gke/us-central1: no current price of n1-custom-8-32768; showing the catalog's price"
    )


def test_calls_when_of_few_machines_then_for_these_alone(sandbox: SandboxInfo) -> None:
    mark = max((int(str(request["index"])) for request in daemon.requests_since(sandbox)), default=0)
    aks, eks = (require_machine(cloud, NAMES[cloud]) for cloud in ("aks", "eks"))
    both = [wanted(aks, how, "eastus") for how in ("on-demand", "spot")]
    asked(sandbox, [*both, wanted(eks, "spot", "us-east-1")])
    requests = [json.dumps(request) for request in daemon.requests_since(sandbox, mark)]
    assert len(requests) == 2, requests
    assert sum("armSkuName" in request for request in requests) == 1


@pytest.mark.parametrize("cloud", NEAR)
def test_prices_when_they_may_not_be_read_then_a_note_and_the_catalogs(cloud: str, sandbox: SandboxInfo) -> None:
    code: dict[str, Any] = {"code": "AccessDeniedException"} if cloud == "eks" else {}
    daemon.add_fault(sandbox, "status", service=SERVICE[cloud], status=403, path="^(?!/token)", times=0, **code)
    item = wanted(require_machine(cloud, NAMES[cloud]), "on-demand", NEAR[cloud])
    book = asked(sandbox, [item])
    assert book.notes[0].startswith(f"{cloud}/{NEAR[cloud]}: prices could not be read: ")
    assert item.side.node(book, item.region).source == "embedded"


@pytest.mark.parametrize("cloud", NEAR)
def test_prices_when_the_sandbox_is_not_there_then_no_real_host_is_asked(cloud: str) -> None:
    item = wanted(require_machine(cloud, NAMES[cloud]), "on-demand", NEAR[cloud])
    for endpoints in ({}, {cloud: "https://example.com"}):
        book = read_prices(EMBEDDED, [item], Settings(endpoints, sandbox=True), SystemClock())
        assert not book.live
        assert "prices could not be read" in book.notes[0]
