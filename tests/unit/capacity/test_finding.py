"""Calling the clouds: what fails is a line, what is not read is named, and the best way comes first."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from gpukube.capacity import finding
from gpukube.capacity.criteria import Criteria, Place, machines_for
from gpukube.capacity.documents import capacity_document
from gpukube.capacity.finding import NO_CLUSTER, Line, search_clouds
from gpukube.capacity.ways import LIVE, known_ways
from gpukube.core.capacity_sources import CapacityQuery, Offers, SourceLine, Way
from gpukube.core.cloud_catalog import Account, Inquiry
from gpukube.core.prices import EMBEDDED
from gpukube.core.quotas import QuotaReading
from gpukube.core.values import ClusterFacts, ClusterRef, Settings
from gpukube.engine.run.calls import Calls
from gpukube.engine.run.clock import SystemClock
from gpukube.errors import AccessError, CloudError
from gpukube.gpu.models import parse_model
from gpukube_eks.provider import EksExtras

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpukube.core.quotas import CloudQuota
    from gpukube.errors import GpukubeError
    from tests.unit.capacity.conftest import Install

H100 = parse_model("H100-80GB")
CRITERIA = Criteria(H100, 8, 2, 7 * 86_400)
P5 = machines_for("eks", H100, 8)
HERE = Place(Inquiry("eks", "us-east-1", Account(), Settings()), P5)
TRAIN = ClusterRef("train", "eks", "train", {"account": "111122223333", "region": "us-east-1"})
THERE = Place(Inquiry("eks", "us-east-1", Account(), Settings()), P5, zones=("us-east-1a",), cluster=TRAIN)
SPOT = Way(kind="spot", machine="p5.48xlarge", zone="us-east-1a", usd=20.0, price_source="market")
ON_DEMAND = Way(kind="on-demand", machine="p5.48xlarge", zone="us-east-1a", why="no API")


@dataclass
class FakeCloud:
    """A cluster that identifies itself, with its quotas."""

    limit: float = 1000
    error: GpukubeError | None = None
    read: list[str] = field(default_factory=list)

    def identify(self) -> ClusterFacts:
        if self.error:
            raise self.error
        return ClusterFacts("us-east-1", "1.34", ready=True, status="ACTIVE")

    def quotas(self, asked: Sequence[CloudQuota]) -> Mapping[CloudQuota, QuotaReading]:
        self.read += [quota.name for quota in asked]
        return {quota: QuotaReading(self.limit, 100) for quota in asked}


@pytest.fixture
def clouds(answers: Install, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Let EKS answer so; no price is read."""
    monkeypatch.setattr(finding, "read_prices", lambda book, *_: book)
    return answers


def line(cloud: FakeCloud | None = None) -> Line:
    clock = SystemClock()
    sessions: Any = {"train": SimpleNamespace(cloud=cloud)} if cloud else {}
    return Line(Settings(), clock, Calls(clock, clock.now() + 60, "again"), sessions)


def test_offline_when_nothing_is_called_then_the_catalogs_prices_and_the_reason() -> None:
    search = known_ways([HERE], EMBEDDED)
    assert [(one.way.kind, one.way.known, one.way.why) for one in search.ways] == [
        ("on-demand", "not asked", LIVE),
        ("spot", "not asked", LIVE),
    ]
    assert search.ways[0].usd_per_gpu == pytest.approx((P5[0].price_usd_h or 0) / 8)
    assert search.ways[1].price.usd is None
    assert search.sources == ()


def test_finding_when_ways_differ_then_by_class_then_by_price_then_by_name(
    clouds: Install,
) -> None:
    def way(known: Any, usd: float | None, zone: str = "a") -> Way:  # noqa: ANN401 - a class
        return Way(kind="spot", machine="p5.48xlarge", zone=zone, known=known, free=3, usd=usd)

    ways = [
        way("not asked", 1), way("not told", 1), way("none", 1), way("unlikely", 1), way("possible", 1),
        way("likely", 9), way("likely", 3), way("likely", 3, "A"), way("offered", 50), way("free", 99),
    ]  # fmt: skip
    clouds(lambda _: Offers(tuple(ways), ()))
    found = search_clouds([HERE], CRITERIA, line(), EMBEDDED).ways
    assert [(one.way.known, one.way.usd, one.way.zone) for one in found] == [
        ("free", 99, "a"), ("offered", 50, "a"), ("likely", 3, "A"), ("likely", 3, "a"), ("likely", 9, "a"),
        ("possible", 1, "a"), ("unlikely", 1, "a"), ("none", 1, "a"), ("not told", 1, "a"), ("not asked", 1, "a"),
    ]  # fmt: skip


def test_finding_when_a_cluster_is_named_then_its_quotas_by_kind(
    clouds: Install,
) -> None:
    block = Way(kind="block", machine="p5.48xlarge", known="free", free=2, form="capacityBlock", id="cr-1", usd=0.0)
    queries = clouds(lambda _: Offers((SPOT, ON_DEMAND, block), ()))
    cloud = FakeCloud(limit=300)
    found = {one.way.kind: one for one in search_clouds([THERE], CRITERIA, line(cloud), EMBEDDED).ways}
    assert (queries[0].nodes, queries[0].seconds, queries[0].zones, queries[0].cluster) == (
        2, 604_800, ("us-east-1a",), TRAIN,
    )  # fmt: skip
    assert sorted(cloud.read) == ["L-417A185B", "L-C4BD4855"]
    (use,) = found["on-demand"].quotas
    assert (use.needed, use.reading.used, use.reading.limit, use.is_short) == (384, 100, 300, True)
    assert found["spot"].quotas[0].quota.name == "L-C4BD4855"
    assert found["block"].quotas == ()
    assert {one.no_quota for one in found.values()} == {""}


def test_finding_when_no_cluster_is_named_then_quotas_are_not_asked(
    clouds: Install,
) -> None:
    clouds(lambda _: Offers((SPOT,), ()))
    (found,) = search_clouds([HERE], CRITERIA, line(), EMBEDDED).ways
    assert (found.quotas, found.no_quota) == ((), NO_CLUSTER)


def test_finding_when_a_cluster_cannot_be_read_then_its_ways_are_not_told_and_the_others_are(
    clouds: Install,
) -> None:
    queries = clouds(lambda _: Offers((SPOT,), ()))
    cloud = FakeCloud(error=AccessError("no AWS credentials were found", code="no-credentials"))
    search = search_clouds([THERE, HERE], CRITERIA, line(cloud), EMBEDDED)
    assert [query.cluster for query in queries] == [None]
    lost = [one for one in search.ways if one.place.cluster]
    assert {(one.way.kind, one.way.zone, one.way.known, one.way.why) for one in lost} == {
        ("on-demand", "us-east-1a", "not told", "the cluster could not be read"),
        ("spot", "us-east-1a", "not told", "the cluster could not be read"),
    }
    (source,) = search.sources
    assert (source.line.state, source.line.code, source.places) == ("failed", "no-credentials", ("train",))


def test_finding_when_a_cloud_raises_then_a_line_and_ways_that_are_not_told(
    clouds: Install,
) -> None:
    def refuse(_: CapacityQuery) -> Offers:
        raise CloudError("the AWS API cannot be reached", code="unreachable")

    clouds(refuse)
    search = search_clouds([HERE], CRITERIA, line(), EMBEDDED)
    assert {one.way.known for one in search.ways} == {"not told"}
    assert [(source.line.code, source.places) for source in search.sources] == [("unreachable", ("eks/us-east-1",))]


def test_finding_when_two_regions_refuse_alike_then_one_line_names_both(
    clouds: Install,
) -> None:
    def refused(query: CapacityQuery) -> Offers:
        return Offers((), (SourceLine("EC2 Call", "failed", "forbidden", f"request {query.inquiry.region}"),))

    clouds(refused)
    search = search_clouds([HERE, HERE.at("eu-west-1")], CRITERIA, line(), EMBEDDED)
    (source,) = search.sources
    assert (source.line.text, source.places) == ("request us-east-1", ("eks/us-east-1", "eks/eu-west-1"))


def test_finding_when_a_provider_has_none_then_not_asked(clouds: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    clouds(lambda _: pytest.fail("called"))
    monkeypatch.setattr(EksExtras, "capacity", None)
    search = search_clouds([HERE], CRITERIA, line(), EMBEDDED)
    assert {(one.way.known, one.way.why) for one in search.ways} == {
        ("not asked", "gpukube reads no capacity of Amazon EKS")
    }


def test_document_when_a_way_is_a_pool_then_its_capacity_else_the_command_that_buys(
    clouds: Install,
) -> None:
    machine = "p5.48xlarge"
    ways = (
        SPOT,
        Way(kind="reservation", machine=machine, known="free", free=2, usd=0.0, form="capacityReservation", id="cr-1"),
        Way(kind="block", machine=machine, known="offered", usd=31.0, form="capacityBlock", id="cbo-1", buy="aws buy"),
        Way(kind="reservation", machine=machine, why="could not be read"),
    )
    clouds(lambda _: Offers(ways, (), ("a note",)))
    document = capacity_document(search_clouds([HERE], CRITERIA, line(), EMBEDDED), CRITERIA, live=True)
    assert [(way["known"], way["free"], way["capacity"], way["buy"]) for way in document["ways"]] == [
        ("free", 2, {"type": "reserved", "reserved": {"eks": {"capacityReservation": "cr-1"}}}, ""),
        ("offered", None, None, "aws buy"),
        ("not told", None, {"type": "spot"}, ""),
        ("not told", None, None, ""),
    ]
    assert [way["price"]["usdPerGpuHour"] for way in document["ways"]] == [0, 3.875, 2.5, None]
    assert document["notes"] == ["a note"]
