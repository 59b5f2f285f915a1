"""`gpukube capacity find --live` against the emulated clouds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpukube_sandbox import daemon
from tests.cli.harness import EXAMPLES

if TYPE_CHECKING:
    from gpukube_sandbox.daemon import SandboxInfo
    from tests.cli.harness import Gpukube

ACCOUNT = "111122223333"
P5 = ("--gpu", "H100-80GB", "--count", "8", "--nodes", "2", "--cluster", f"eks:{ACCOUNT}/us-east-1/train")
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


def test_find_when_one_zone_has_no_spot_machines_then_its_score_puts_it_last(
    gpukube: Gpukube, sandbox: SandboxInfo
) -> None:
    daemon.set_stock(sandbox, "eks", 0, zone="us-east-1b", kind="spot")
    document = gpukube(*FIND, "-f", EXAMPLES / "eks-spot-types.yaml", "--pool", "l4spot", "-o", "json").json()
    spot = {way["zone"]: way for way in document["ways"] if way["kind"] == "spot"}
    assert (spot["us-east-1a"]["known"], spot["us-east-1b"]["known"]) == ("likely", "unlikely")
    assert all(way["words"].endswith("/10 (3 types)") for way in spot.values())
    assert document["ways"][0]["known"] == "likely"
    known = [way["known"] for way in document["ways"]]
    assert known.index("unlikely") > len(known) - known[::-1].index("likely") - 1


def test_find_when_aws_has_reservations_and_sells_blocks_then_both_with_price_and_command(
    gpukube: Gpukube, sandbox: SandboxInfo
) -> None:
    daemon.add_eks_cluster(sandbox, ACCOUNT, "us-east-1", "train")
    place = {"account": ACCOUNT, "region": "us-east-1"}
    free = {"id": "cr-0123456789abcdef0", "type": "p5.48xlarge", "zone": "us-east-1a", "count": 4}
    few = {"id": "cr-0123456789abcdef1", "type": "p5.48xlarge", "zone": "us-east-1a", "count": 1}
    daemon.declare(sandbox, "eks", **place, reservations=[free, few])
    found = gpukube(*FIND, *P5, "--for", "15d", "-o", "json").json()["ways"]
    assert (found[0]["kind"], found[0]["known"], found[0]["free"], found[0]["words"]) == (
        "reservation", "free", 4, "4 of 4 free",
    )  # fmt: skip
    assert found[0]["capacity"] == {
        "type": "reserved", "reserved": {"eks": {"capacityReservation": "cr-0123456789abcdef0"}},
    }  # fmt: skip
    assert found[0]["price"]["usdPerHour"] == 0
    (other,) = [way for way in found if way["id"] == "cr-0123456789abcdef1"]
    assert (other["known"], other["words"]) == ("none", "1 of 1 free")
    blocks = [way for way in found if way["kind"] == "block"]
    assert {way["known"] for way in blocks} == {"offered"}
    assert blocks[0]["price"]["usdPerGpuHour"]
    assert blocks[0]["buy"].startswith(
        "aws ec2 purchase-capacity-block --region us-east-1 --capacity-block-offering-id"
    )
    assert " for 504 hours" in " ".join(way["words"] for way in blocks)


def test_find_when_it_may_not_ask_then_a_line_with_the_permission_and_exit_0(
    gpukube: Gpukube, sandbox: SandboxInfo
) -> None:
    daemon.add_eks_cluster(sandbox, ACCOUNT, "us-east-1", "train")
    daemon.deny_permissions(sandbox, "ec2:DescribeCapacityReservations")
    found = gpukube(*FIND, *P5, "-o", "json")
    assert found.code == 0
    document = found.json()
    (source,) = [one for one in document["sources"] if one["state"] == "failed"]
    assert (source["source"], source["code"]) == ("EC2 DescribeCapacityReservations", "permission")
    assert "allow ec2:DescribeCapacityReservations" in source["text"]
    (way,) = [way for way in document["ways"] if way["kind"] == "reservation"]
    assert (way["known"], way["why"]) == ("not told", "reservations could not be read")


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
