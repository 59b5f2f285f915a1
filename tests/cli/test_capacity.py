"""`gpukube capacity find --live` against the emulated clouds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cli.harness import EXAMPLES

if TYPE_CHECKING:
    from tests.cli.harness import Gpukube

FIND = ("capacity", "find", "--live")


def test_find_when_a_pool_of_three_types_then_spot_by_zone_with_prices_and_quotas(gpukube: Gpukube) -> None:
    document = gpukube(*FIND, "-f", EXAMPLES / "eks-spot-types.yaml", "--pool", "l4spot", "-o", "json").json()
    assert document["live"]
    spot = [way for way in document["ways"] if way["kind"] == "spot"]
    assert {way["instanceType"] for way in spot} == {"g6.2xlarge", "g6.4xlarge", "gr6.4xlarge"}
    assert len({way["zone"] for way in spot}) > 1
    for way in spot:
        assert way["price"]["usdPerHour"]
        assert way["price"]["source"] == "EC2 DescribeSpotPriceHistory"
        (quota,) = way["quotas"]
        assert (quota["title"], quota["unit"]) == ("All G and VT Spot Instance Requests", "vCPUs")
        assert quota["needed"] == 10 * (8 if way["instanceType"] == "g6.2xlarge" else 16)
    on_demand = [way for way in document["ways"] if way["kind"] == "on-demand"]
    assert {way["known"] for way in on_demand} == {"not told"}
    sources = {source["source"]: source["state"] for source in document["sources"]}
    assert sources["EC2 DescribeInstanceTypeOfferings"] == "ok"
    assert sources["EC2 GetCapacityManagerSupportabilityScores"] == "not asked"


def test_find_when_no_cluster_is_named_then_every_cloud_answers_with_its_own_credentials(gpukube: Gpukube) -> None:
    document = gpukube(*FIND, "--gpu", "T4-16GB", "--count", "1", "-o", "json").json()
    assert {way["provider"] for way in document["ways"]} == {"aks", "eks", "gke"}
    assert {way["quotaNotAsked"] for way in document["ways"]} == {"name a cluster of the account: --cluster"}


def test_find_when_a_cluster_does_not_exist_then_a_line_and_exit_0(gpukube: Gpukube) -> None:
    words = ("--gpu", "T4-16GB", "--cluster", "eks:111122223333/us-east-1/nowhere")
    found = gpukube(*FIND, *words, "-o", "json")
    assert found.code == 0
    document = found.json()
    assert {way["known"] for way in document["ways"]} == {"not told"}
    (source,) = document["sources"]
    assert (source["state"], source["source"]) == ("failed", "the cluster")
    shown = gpukube(*FIND, *words)
    assert "failed: the cluster (" in shown.out
    assert "not told" in shown.out
