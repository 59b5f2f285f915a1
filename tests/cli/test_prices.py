"""Prices as `plan`, `plan diff` and `workload fit` show them, and that no trouble with them fails a command."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator

from gpukube.catalog.cache import write_cache
from gpukube.catalog.place import cache_file
from gpukube.engine.documents.schema import document_schema
from gpukube.gpu.refreshed import Offer, Stock
from gpukube_sandbox import daemon
from tests.builders import SUBSCRIPTION

if TYPE_CHECKING:
    from pathlib import Path

    from gpukube_sandbox.daemon import SandboxInfo
    from tests.cli.harness import Gpukube

SPEC = f"""\
apiVersion: gpukube.io/v1alpha1
kind: GPUNodePools
metadata: {{name: ml}}
clusters:
  train-aks: {{provider: aks, subscription: {SUBSCRIPTION}, resourceGroup: ml, name: train}}
pools:
  - {{name: fixed, clusters: [train-aks], gpu: {{model: T4, count: 1}}, nodes: {{count: 2}}}}
  - {{name: spot, clusters: [train-aks], gpu: {{model: T4, count: 1}}, nodes: {{autoscaling: {{min: 0, max: 2}}}},
     capacity: {{type: spot}}}}
"""
POD = (
    "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{resources: {limits: {nvidia.com/gpu: 1}}}]}}"
)
LOOK = ("--skip-cluster", "-o", "json")


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    file = tmp_path / "pools.yaml"
    file.write_text(SPEC)
    return file


def test_plan_when_prices_are_asked_for_then_those_of_now_and_spot_too(gpukube: Gpukube, spec: Path) -> None:
    shown = gpukube("pool", "plan", "-f", spec, *LOOK)
    document = shown.json()
    Draft202012Validator(document_schema("plan")).validate(document)
    fixed, spot = (pool["price"] for pool in document["clusters"][0]["pools"])
    assert (fixed["source"], fixed["usdPerHour"]["after"]) == ("embedded", {"min": 1.052, "max": 1.052})
    assert (spot["spot"], spot["usdPerHour"]["after"]) == (True, None)
    assert document["summary"]["price"]["unknown"] == {"before": 0, "after": 1}

    document = gpukube("pool", "plan", "-f", spec, "--live-prices", *LOOK).json()
    Draft202012Validator(document_schema("plan")).validate(document)
    fixed, spot = (pool["price"] for pool in document["clusters"][0]["pools"])
    assert (fixed["source"], spot["source"], spot["place"]) == ("live", "live", "eastus")
    assert spot["usdPerHour"]["after"]["min"] == 0 < spot["usdPerHour"]["after"]["max"]
    total = document["summary"]["price"]
    assert total["unknown"] == {"before": 0, "after": 0}
    assert total["notes"] == ["the sandbox's prices are invented"]


def test_diff_when_prices_cannot_be_read_then_the_same_exit_code_and_a_note(
    gpukube: Gpukube, spec: Path, sandbox: SandboxInfo
) -> None:
    daemon.add_fault(sandbox, "status", service="arm", path="/api/retail/prices", status=403, times=0)
    shown = gpukube("pool", "plan", "diff", "-f", spec, "--live-prices", "--skip-cluster")
    assert shown.code == 2
    assert "note: aks/eastus: prices could not be read: " in shown.out
    assert "  + create   fixed\n             price   0 -> 1.05 USD/h, 0.53 per GPU (eastus, " in shown.out


def test_plan_when_the_catalog_was_refreshed_then_its_price_with_its_day(gpukube: Gpukube, spec: Path) -> None:
    offer = Offer("Standard_NC4as_T4_v3", price_usd_h=0.75, spot_usd_h=0.25, price_date="2026-12-01")
    write_cache(cache_file(os.environ, sandbox=True), [Stock("aks", "eastus", "2026-12-01T00:00:00Z", (offer,))])
    shown = gpukube("pool", "plan", "-f", spec, "--skip-cluster").out
    assert "price   0 -> 1.50 USD/h, 0.75 per GPU (eastus, 2026-12-01)" in shown
    assert "price   0 -> 0 to 0.50 USD/h, 0.25 per GPU (spot, eastus, 2026-12-01)" in shown
    assert "\nprice: 0 now, 1.50 to 2.00 USD/h after; without disks, network, control planes, taxes and " in shown


def test_fit_when_prices_are_asked_for_then_those_of_now_or_why_not(
    gpukube: Gpukube, spec: Path, tmp_path: Path
) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text(POD)
    document = gpukube("workload", "fit", pod, "-f", spec, "--live-prices", "-o", "json").json()
    Draft202012Validator(document_schema("fit")).validate(document)
    assert document["prices"][0]["rough"]  # the spec does not tell where an AKS cluster is
    assert document["price"]["notes"][0].startswith("train-aks: its region is unknown until the cluster is read")
