"""What every cloud's package contributes: whoever writes one is held to this."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpukube.catalog.seam import catalog_of, catalogs, cuts_of
from gpukube.core.jsontree import decimal
from gpukube.gpu.machines import Machine, machines
from gpukube.gpu.mig import profiles

if TYPE_CHECKING:
    from gpukube.core.cloud_catalog import CloudCatalog

ROOT = Path(__file__).parents[3]
CLOUDS = sorted({m.provider for m in machines()})


def contribution(name: str) -> CloudCatalog:
    found = catalog_of(name)
    assert found is not None
    return found


def test_catalogs_when_listed_then_one_for_each_cloud_of_the_table_and_none_for_others() -> None:
    assert sorted(catalogs()) == CLOUDS
    assert catalog_of("mars") is None


@pytest.mark.parametrize("name", CLOUDS)
def test_regions_when_named_then_a_form_tells_the_clouds_apart(name: str) -> None:
    own = contribution(name)
    assert own.has_region(own.home)
    assert own.has_region(own.region_example)
    assert all(own.has_region(m.price_region) for m in machines(name) if m.price_region)
    others = [contribution(other).home for other in CLOUDS if other != name]
    assert not [region for region in (*others, "", "us east", "../etc", "us-east-1a") if own.has_region(region)]


@pytest.mark.parametrize("region", ["us-gov-west-1", "cn-north-1", "ap-southeast-2", "eu-west-3"])
def test_region_when_of_aws_then_known_by_its_form(region: str) -> None:
    assert [name for name in CLOUDS if contribution(name).has_region(region)] == ["eks"]


@pytest.mark.parametrize("region", ["westeurope", "eastus2", "southcentralus"])
def test_region_when_of_azure_then_known_by_its_form(region: str) -> None:
    assert [name for name in CLOUDS if contribution(name).has_region(region)] == ["aks"]


@pytest.mark.parametrize("region", ["europe-west4", "northamerica-northeast1", "asia-southeast1"])
def test_region_when_of_google_then_known_by_its_form(region: str) -> None:
    assert [name for name in CLOUDS if contribution(name).has_region(region)] == ["gke"]


@pytest.mark.parametrize("machine", machines(), ids=lambda m: f"{m.name}-{m.model}-{m.gpus:g}")
def test_machine_when_its_cloud_speaks_of_it_then_profiles_are_the_gpus_and_facts_have_sources(
    machine: Machine,
) -> None:
    own = contribution(machine.provider)
    known = {p.name for p in profiles(machine.model)}
    cuts = own.profiles(machine)
    assert set(cuts) <= known
    assert not cuts or machine.mig_capable
    facts = own.facts(machine)
    assert facts
    for fact in facts:
        assert fact.source
        assert fact.text
        assert not fact.text.endswith(".")


def test_cuts_when_the_cloud_shows_no_names_then_only_single() -> None:
    mixed = {name: cuts_of(next(m for m in machines(name) if m.mig_capable)).mixed for name in CLOUDS}
    assert mixed == {"aks": True, "eks": True, "gke": False}


@pytest.mark.parametrize("name", CLOUDS)
def test_package_when_only_facts_are_asked_then_no_sdk_is_loaded(name: str) -> None:
    code = (
        f"import sys; from gpukube.catalog.seam import catalog_of; catalog_of({name!r}); "
        "loaded = {name.partition('.')[0] for name in sys.modules}; "
        "print(sorted(loaded & {'boto3', 'botocore', 'azure', 'google', 'grpc', 'requests'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'providers'}"},
    )  # fmt: skip
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (1, 1), (1.5, 1.5), ("1.5", 1.5), (" 2 ", 2), (0, 0), (True, None), (None, None), ("x", None), ([], None),
        (float("inf"), None), (float("nan"), None), ("1e999", None), (10**400, None),
    ],
)  # fmt: skip
def test_number_when_read_from_an_answer_then_finite_or_none(value: object, number: float | None) -> None:
    assert decimal(value) == number
