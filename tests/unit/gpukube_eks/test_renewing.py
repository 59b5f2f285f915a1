"""Upgrades of node groups: what they do to nodes and pods, what is declared, what cannot be read or upgraded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpukube.core.fields import KUBERNETES_VERSION
from gpukube.core.upgrades import NodeMarks, NodeOffer
from gpukube.core.values import ClusterFacts, Settings
from gpukube.endpoint import Endpoint
from gpukube_eks.live.client import EksCloud
from gpukube_eks.pool.observe import observe_group
from gpukube_eks.pool.renewing import RELEASE, EksUpgrades, release_parameter
from tests.unit.gpukube_eks.fakes import FakeAws, refusal
from tests.unit.gpukube_eks.samples import CLUSTER, desired_of, eks_target
from tests.unit.gpukube_eks.test_observe import ZONES, live

if TYPE_CHECKING:
    from gpukube.core.values import Observed

FACTS = ClusterFacts("us-east-1", "1.34", ready=True, status="ACTIVE")
UPGRADES = EksUpgrades()


def group(**changes: object) -> Observed:
    given = {"version": "1.33", "releaseVersion": "1.33.5-20260601", "amiType": "AL2023_x86_64_NVIDIA", **changes}
    return observe_group(*live(**given), ZONES)


@pytest.mark.parametrize(
    ("config", "extra", "words"),
    [
        ({"updateStrategy": "MINIMAL", "maxUnavailable": 1}, 0, "stops 1 at a time"),
        ({"updateStrategy": "DEFAULT", "maxUnavailable": 1}, 4, "adds up to 4 nodes first"),
        ({"updateStrategy": "DEFAULT", "maxUnavailable": 9}, 9, "then drains 9 at a time"),
        ({"updateStrategy": "MINIMAL", "maxUnavailablePercentage": 50}, 0, "stops 5 at a time"),
    ],
)
def test_terms_when_told_then_by_the_strategy_of_the_group(config: object, extra: int, words: str) -> None:
    sizes = {"minSize": 10, "maxSize": 10, "desiredSize": 10}
    terms = UPGRADES.terms(group(updateConfig=config, scalingConfig=sizes), FACTS)
    assert (terms.extra_nodes, terms.overdue, terms.drain_minutes) == (extra, "fails", 15)
    assert words in terms.nodes


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"amiType": "CUSTOM"}, "a custom AMI"),
        ({"capacityType": "CAPACITY_BLOCK"}, "a Capacity Block in use"),
        ({}, ""),
    ],
)
def test_group_when_eks_would_refuse_then_the_obstacle_is_told(changes: dict[str, object], words: str) -> None:
    obstacle = UPGRADES.terms(group(**changes), FACTS).obstacle
    assert words in obstacle
    assert bool(obstacle) == bool(words)


def test_offer_when_declared_then_what_the_spec_names_and_what_is_newer_stays() -> None:
    offer = NodeOffer("1.34", "1.34.2-20260714")
    upgraded = UPGRADES.upgraded(desired_of(eks_target("g4dn.xlarge")), group(), offer)
    assert (upgraded.fields[KUBERNETES_VERSION], upgraded.fields[RELEASE]) == ("1.34", "1.34.2-20260714")

    pinned = desired_of(eks_target("g4dn.xlarge", native={"releaseVersion": "1.33.5-20260601"}))
    assert UPGRADES.upgraded(pinned, group(), NodeOffer("", "1.33.5-20260801")).fields == pinned.fields
    newer = UPGRADES.upgraded(desired_of(eks_target("g4dn.xlarge")), group(), NodeOffer("", "1.33.5-20260501"))
    assert RELEASE not in newer.fields


def test_nodes_when_known_by_their_group_then_by_the_release_or_the_minor_version() -> None:
    assert UPGRADES.marks(group()) == NodeMarks("v1.33.5")
    assert (
        UPGRADES.marks(group(amiType="BOTTLEROCKET_x86_64_NVIDIA", releaseVersion="1.57.0-ab12cd34")).kubelet
        == "v1.33."
    )
    assert UPGRADES.marks(group(amiType="CUSTOM")) == NodeMarks()


@pytest.mark.parametrize(
    ("code", "image", "unknown"),
    [
        ("", "1.34.2-20260714", ""),
        ("AccessDeniedException", None, "no permission to read the newest AMI release"),
        ("ParameterNotFound", None, ""),
    ],
)
def test_newest_when_read_once_then_unknown_without_the_permission(code: str, image: str | None, unknown: str) -> None:
    aws = FakeAws()
    if code:
        aws.raises["get_parameter"] = refusal(code)
    cloud = EksCloud(CLUSTER, Settings(), Endpoint(), aws)
    first, second = cloud.newest(group(), ""), cloud.newest(group(), "")
    assert (first.kubernetes, first.image, first.unknown) == ("1.34", image, unknown)
    assert first == second
    assert aws.calls.count("get_parameter") == 1


def test_parameter_when_the_image_is_no_gpu_image_then_none() -> None:
    assert release_parameter(group(amiType="AL2_x86_64"), "1.34") == ""
    arm = release_parameter(group(amiType="AL2023_ARM_64_NVIDIA"), "1.34")
    assert arm == "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/arm64/nvidia/recommended/release_version"
