"""What is looked for, and where: machines of each cloud, durations, places that answer for each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpukube.capacity.criteria import (
    MOST_MACHINES,
    Criteria,
    Place,
    distinct,
    machines_for,
    parse_duration,
    places_of_clusters,
    places_of_pools,
    places_of_regions,
)
from gpukube.core.cloud_catalog import Account, Inquiry
from gpukube.core.values import Settings
from gpukube.engine.offline import load
from gpukube.engine.plan.prepare import prepare
from gpukube.errors import SpecError
from gpukube.gpu.models import parse_model
from gpukube.gpu.refusal import CatalogError
from tests.cli.harness import EXAMPLES

H100 = parse_model("H100-80GB")
SETTINGS = Settings()


@pytest.mark.parametrize(("text", "seconds"), [("12h", 43_200), ("7d", 604_800), ("2w", 1_209_600), (" 1d ", 86_400)])
def test_duration_when_written_then_seconds(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "7", "d", "0d", "-1d", "7 days", "1.5d", "99999d"])
def test_duration_when_it_is_none_then_refused(text: str) -> None:
    with pytest.raises(SpecError, match="is not a duration"):
        parse_duration(text)


def test_machines_when_a_cloud_has_several_then_the_pools_own_first_and_never_a_special_variant() -> None:
    assert [m.name for m in machines_for("gke", H100, 8)] == ["a3-highgpu-8g", "a3-megagpu-8g"]
    assert [m.name for m in machines_for("eks", H100, 8)] == ["p5.48xlarge"]
    small = machines_for("eks", parse_model("A10G-24GB"), 1)
    assert small[0].name == "g5.xlarge"
    assert len(small) == MOST_MACHINES
    assert [m.price_usd_h for m in small] == sorted(m.price_usd_h or 0 for m in small)


def test_machines_when_gpus_are_attached_then_a_real_machine_alone() -> None:
    assert [m.name for m in machines_for("gke", parse_model("T4-16GB"), 1)] == ["n1-standard-4"]


def test_regions_when_one_cloud_lacks_the_machine_then_left_out_with_its_reason() -> None:
    inquiries = [Inquiry(name, name, Account(), SETTINGS) for name in ("eks", "aks")]
    places, missing = places_of_regions(inquiries, Criteria(parse_model("A10G-24GB"), 1, 1))
    assert [place.where for place in places] == ["eks/eks"]
    assert len(missing) == 1
    assert missing[0].startswith("aks has no instance type with 1 x A10G-24GB")


def test_regions_when_no_cloud_has_the_machine_then_refused() -> None:
    with pytest.raises(CatalogError, match="has no instance type"):
        places_of_regions([Inquiry("eks", "us-east-1", Account(), SETTINGS)], Criteria(H100, 5, 1))


def test_pools_when_they_name_instance_types_then_these_together() -> None:
    prepared = prepare(load([str(EXAMPLES / "eks-spot-types.yaml")]))
    (place,) = places_of_pools([pool.target for pools in prepared.desired.values() for pool in pools], SETTINGS)
    assert ([m.name for m in place.machines], place.mixed) == (["g6.2xlarge", "g6.4xlarge", "gr6.4xlarge"], True)
    assert (place.where, place.inquiry.region) == ("serve-eks", "us-east-1")


def test_places_when_clusters_share_account_and_region_then_one_answers_for_both() -> None:
    prepared = prepare(load([str(EXAMPLES / "three-clouds.yaml")]))
    clusters = list(prepared.clusters.values())
    eks = next(cluster for cluster in clusters if cluster.provider == "eks")
    second = replace(eks, key="second", name="second")
    other = replace(eks, key="other", identity={**eks.identity, "account": "999988887777"})
    places, _ = places_of_clusters([eks, second, other], SETTINGS, Criteria(H100, 8, 1))
    assert [place.where for place in distinct(places)] == [eks.key, "other"]


def test_places_when_a_region_is_not_known_then_each_is_asked() -> None:
    one = Place(Inquiry("eks", "", Account(), SETTINGS), machines_for("eks", H100, 8))
    prepared = prepare(load([str(EXAMPLES / "three-clouds.yaml")]))
    aks = next(cluster for cluster in prepared.clusters.values() if cluster.provider == "aks")
    places = [replace(one, cluster=aks), replace(one, cluster=replace(aks, key="second"))]
    assert len(distinct(places)) == 2
