"""Refreshing the catalog: the real SDKs against the sandbox over real sockets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.catalog.seam import catalog_of
from gpukube.core.cloud_catalog import Account, Findings, Inquiry
from gpukube.core.values import Settings
from gpukube.endpoint import UNKNOWN_SECRET
from gpukube.errors import AccessError, CloudError, GpukubeError
from gpukube.gpu.machines import find_machine
from gpukube.gpu.models import parse_model
from gpukube.gpu.refreshed import Stock, lay_over
from gpukube_sandbox import daemon
from tests.builders import SUBSCRIPTION
from tests.wire.test_credentials import SECRET, ear, real_credentials

if TYPE_CHECKING:
    from gpukube.gpu.refreshed import Offer
    from gpukube_sandbox.daemon import SandboxInfo
    from tests.wire.test_credentials import Ear

__all__ = ["ear", "real_credentials"]  # fixtures that are used here too

HOME = {"aks": "eastus", "eks": "us-east-1", "gke": "us-central1"}
FAR = {"aks": "westeurope", "eks": "eu-west-1", "gke": "europe-west4"}
SERVICE = {"aks": "arm", "eks": "aws", "gke": "gke"}
PRICES = {"aks": "/api/retail/prices", "eks": "GetProducts", "gke": "/v1/services/"}
TYPES = {"aks": "Microsoft.Compute/skus", "eks": "DescribeInstanceTypes", "gke": "aggregated/machineTypes"}


@pytest.fixture
def sandbox(running_sandbox: SandboxInfo) -> SandboxInfo:
    """Return the test an empty sandbox: no cluster is needed to ask what there is."""
    daemon.reset(running_sandbox)
    return running_sandbox


def fetch(sandbox: SandboxInfo, cloud: str, region: str = "") -> Findings:
    endpoints = {"aks": sandbox.arm_url, "eks": sandbox.aws_url, "gke": sandbox.gke_url}
    settings = Settings(endpoints, sandbox=True, secret=sandbox.secret, request_timeout_s=60)
    account = Account(subscription=SUBSCRIPTION, project="ml-prod")
    found = catalog_of(cloud)
    assert found is not None
    return found.fetch(Inquiry(cloud, region or HOME[cloud], account, settings))


def by_name(found: Findings) -> dict[tuple[str, str, float], Offer]:
    return {offer.key: offer for offer in found.offers}


@pytest.mark.parametrize("cloud", HOME)
def test_types_when_fetched_then_shapes_agree_with_the_embedded_table(cloud: str, sandbox: SandboxInfo) -> None:
    found = fetch(sandbox, cloud)
    known = [(o, m) for o in found.offers if (m := find_machine(cloud, o.name))]
    assert len(known) > 25
    for offer, machine in known:
        assert parse_model(offer.model) == machine.model
        assert machine.is_fractional or offer.gpus == machine.gpus
        assert (offer.vcpus, offer.memory_gib, offer.arch) == (machine.vcpus, machine.memory_gib, machine.arch)
    assert not [o for o in found.offers if not o.model]


@pytest.mark.parametrize("cloud", HOME)
def test_prices_when_fetched_then_most_types_have_one_and_spot_is_cheaper(cloud: str, sandbox: SandboxInfo) -> None:
    found = fetch(sandbox, cloud)
    assert found.priced
    with_price = [o for o in found.offers if o.price_usd_h is not None]
    assert len(with_price) / len(found.offers) > 0.8
    spot = [o for o in with_price if o.spot_usd_h is not None]
    assert spot
    assert all(o.spot_usd_h < o.price_usd_h for o in spot if o.spot_usd_h and o.price_usd_h)


@pytest.mark.parametrize("cloud", HOME)
def test_region_when_another_then_its_own_prices(cloud: str, sandbox: SandboxInfo) -> None:
    near, far = by_name(fetch(sandbox, cloud)), by_name(fetch(sandbox, cloud, FAR[cloud]))
    both = [key for key in near.keys() & far.keys() if near[key].price_usd_h and far[key].price_usd_h]
    assert len(both) > 20
    assert all((far[key].price_usd_h or 0) > (near[key].price_usd_h or 0) for key in both)


def test_gke_when_a_region_lacks_gpus_then_their_machines_are_not_in_it(sandbox: SandboxInfo) -> None:
    near, far = fetch(sandbox, "gke"), fetch(sandbox, "gke", FAR["gke"])
    assert {o.name for o in near.offers} - {o.name for o in far.offers} >= {"a4-highgpu-8g", "a3-ultragpu-8g"}
    entries = lay_over([Stock("gke", FAR["gke"], "2026-12-01T00:00:00Z", far.offers)], FAR["gke"])
    assert FAR["gke"] in next(e for e in entries if e.machine.name == "a4-highgpu-8g").missing


@pytest.mark.parametrize("cloud", HOME)
def test_fetch_when_throttled_once_then_tried_again(cloud: str, sandbox: SandboxInfo) -> None:
    daemon.add_fault(sandbox, "status", service=SERVICE[cloud], status=503, path="^(?!/token)")
    assert fetch(sandbox, cloud).priced


@pytest.mark.parametrize("cloud", HOME)
def test_fetch_when_prices_are_denied_then_types_without_and_a_note(cloud: str, sandbox: SandboxInfo) -> None:
    if cloud == "eks":  # its operations are no part of the path
        daemon.add_fault(sandbox, "status", service="aws", status=403, code="AccessDeniedException", nth=3, times=1)
    else:
        daemon.add_fault(sandbox, "status", service=SERVICE[cloud], path=PRICES[cloud], status=403, times=0)
    found = fetch(sandbox, cloud)
    assert not found.priced
    assert len(found.offers) > 25
    assert found.notes[0].startswith("prices could not be read and are unchanged: ")


@pytest.mark.parametrize("cloud", HOME)
def test_fetch_when_types_are_denied_then_an_error_of_ours(cloud: str, sandbox: SandboxInfo) -> None:
    codes = {"aks": "AuthorizationFailed", "eks": "UnauthorizedOperation", "gke": ""}
    daemon.add_fault(
        sandbox, "status", service=SERVICE[cloud], status=403, code=codes[cloud], path="^(?!/token)", times=0
    )
    with pytest.raises(AccessError):
        fetch(sandbox, cloud)


@pytest.mark.parametrize("cloud", HOME)
@pytest.mark.parametrize("body", [{}, {"value": 3, "items": [], "Items": {}}], ids=["empty", "other shapes"])
def test_fetch_when_answers_are_of_another_shape_then_nothing_and_no_traceback(
    cloud: str, body: dict[str, object], sandbox: SandboxInfo
) -> None:
    daemon.add_fault(sandbox, "status", service=SERVICE[cloud], status=200, path="^(?!/token)", body=body, times=0)
    try:
        found = fetch(sandbox, cloud)
    except CloudError:
        return
    assert found.offers == ()


@pytest.mark.parametrize("cloud", HOME)
def test_fetch_when_nobody_answers_then_an_error_of_ours(cloud: str) -> None:
    endpoints = dict.fromkeys(HOME, "http://127.0.0.1:9")
    found = catalog_of(cloud)
    assert found is not None
    settings = Settings(endpoints, sandbox=True, request_timeout_s=60)
    with pytest.raises(GpukubeError) as refused:
        found.fetch(Inquiry(cloud, HOME[cloud], Account(subscription=SUBSCRIPTION), settings))
    assert refused.value.diagnostics[0].code == "unreachable"


@pytest.mark.parametrize("cloud", HOME)
def test_fetch_when_real_credentials_are_around_then_none_of_them_goes_to_loopback(
    cloud: str, ear: Ear, real_credentials: None
) -> None:
    found = catalog_of(cloud)
    assert found is not None
    for settings in (Settings({cloud: ear.url}, sandbox=True), Settings({cloud: ear.url})):
        with pytest.raises(GpukubeError):
            found.fetch(Inquiry(cloud, HOME[cloud], Account(subscription=SUBSCRIPTION), settings))
    everything = "\n".join(ear.heard).lower().replace(f"bearer {UNKNOWN_SECRET}", "")
    assert ear.heard
    assert SECRET.lower() not in everything
    assert "bearer" not in everything


@pytest.mark.parametrize("cloud", HOME)
@pytest.mark.parametrize("endpoint", ["", "https://management.azure.com", "http://10.0.0.1:80"])
def test_fetch_when_in_sandbox_mode_and_the_endpoint_is_elsewhere_then_refused(cloud: str, endpoint: str) -> None:
    found = catalog_of(cloud)
    assert found is not None
    settings = Settings({cloud: endpoint} if endpoint else {}, sandbox=True)
    with pytest.raises(AccessError) as refused:
        found.fetch(Inquiry(cloud, HOME[cloud], Account(subscription=SUBSCRIPTION), settings))
    assert refused.value.diagnostics[0].code == "sandbox-endpoint"


def test_azure_prices_when_read_then_page_after_page(sandbox: SandboxInfo) -> None:
    fetch(sandbox, "aks")
    paths = [str(request["path"]) for request in daemon.requests_since(sandbox)]
    assert paths.count("/api/retail/prices") > 1
    assert paths.count(f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/skus") == 1
