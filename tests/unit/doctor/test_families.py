"""The doctor on families of a fixed size, and on the reservations that pools name."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from gpukube.cluster.state.snapshot import Snapshot
from gpukube.core.reservations import LiveReservation
from gpukube.doctor.check import examine
from gpukube.doctor.checks import families, reservations
from gpukube.engine.change.family_record import Outcome, Record, Win
from tests.unit.doctor.live_pools import LABELS, eks_pool, evidence_of
from tests.unit.doctor.patients import GPU_NODE

if TYPE_CHECKING:
    from gpukube.cluster.kube.views import NodeView
    from gpukube.core.faults import Fault
    from gpukube.core.values import Observed
    from gpukube.doctor.evidence import Evidence

CHECKS = (*families.CHECKS, *reservations.CHECKS)
OWNER = LABELS["gpukube.io/owner"]
FIXED = {"minSize": 2, "maxSize": 2, "desiredSize": 2}
EMPTY = {"minSize": 0, "maxSize": 1, "desiredSize": 0}
SCALED = {"minSize": 0, "maxSize": 4, "desiredSize": 2}
NOW = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
BLOCK = LiveReservation("cr-1", 2, 2, end="2026-12-04T11:30:00Z", at_end="EC2 ends its machines")
AT = datetime(2026, 11, 28, 23, 10, tzinfo=UTC).timestamp()


def member(name: str, sizes: dict[str, int], family: str = "t4", status: str = "ACTIVE") -> Observed:
    labels = {**LABELS, "gpukube.io/pool": name} | ({"gpukube.io/family": family} if family else {})
    return eks_pool(nodegroupName=name, labels=labels, scalingConfig=sizes, status=status)


def nodes(*pools: str) -> Snapshot:
    """Make two nodes of each pool."""
    made: list[NodeView] = []
    for pool in pools:
        marks = {**GPU_NODE.labels, "eks.amazonaws.com/nodegroup": pool}
        made += [replace(GPU_NODE, name=f"{pool}-{at}", labels=marks) for at in range(2)]
    return Snapshot(nodes=tuple(made))


def family(first: dict[str, int], second: dict[str, int], *holders: str) -> Evidence:
    pools = member("t4", first), member("t4any", second)
    return evidence_of("eks", *pools, seen=nodes(*holders))


def reserved(found: LiveReservation, pool: str = "t4", now: datetime | None = NOW) -> Evidence:
    return evidence_of("eks", member("t4", FIXED, ""), seen=nodes("t4"), reserved={pool: found}, now=now)


def found_in(evidence: Evidence) -> dict[str, Fault]:
    return {one.check.id: one.finding for one in examine(evidence, CHECKS).found}


HEALTHY = {
    "the first pool has the nodes": evidence_of("eks", member("t4", FIXED), seen=nodes("t4")),
    "no pool has nodes yet": family(FIXED, EMPTY),
    "an autoscaled family": family(SCALED, SCALED, "t4any"),
    "an autoscaled family on both": family(SCALED, SCALED, "t4", "t4any"),
    "a pool that is being deleted": evidence_of(
        "eks", member("t4", FIXED), member("t4any", EMPTY, status="DELETING"), seen=nodes("t4")
    ),
    "pools of no family": evidence_of("eks", member("t4", EMPTY, ""), member("t4any", FIXED, ""), seen=nodes("t4any")),
    "a reservation with an open end": reserved(LiveReservation("cr-1", 2, 2)),
    "a block that ends in eight days": reserved(replace(BLOCK, end="2026-12-09T12:00:01Z")),
    "an end that cannot be read": reserved(replace(BLOCK, end="soon")),
    "an end, and no clock": reserved(BLOCK, now=None),
    "the same end on a pool that has none": reserved(BLOCK, pool="other"),
}


@pytest.mark.parametrize("case", HEALTHY)
def test_checks_when_all_is_well_then_nothing_is_found(case: str) -> None:
    assert found_in(HEALTHY[case]) == {}


def test_family_when_an_alternative_has_the_nodes_then_a_hint_with_the_command() -> None:
    evidence = evidence_of("eks", member("t4any", FIXED), seen=nodes("t4any"))
    (found,) = found_in(evidence).values()
    assert (found.code, found.severity) == ("family-lower-rank", "hint")
    assert str(found.where.source) == "pool train-eks/t4"
    assert found.seen == "its alternative t4any has the nodes (2)"
    assert found.fix.endswith(": gpukube pool apply -f SPEC --pool t4 --rebalance")


def test_family_when_the_lease_tells_more_then_since_when_and_why() -> None:
    record = Record(None, Win("train-eks", "t4any", AT), (Outcome("train-eks", "t4", "stock", "no p5", AT - 600),))
    evidence = evidence_of("eks", member("t4any", FIXED), seen=nodes("t4any"), records={(OWNER, "t4"): record})
    found = found_in(evidence)["family-lower-rank"]
    assert found.seen.endswith("has the nodes (2) since 2026-11-28 23:10 UTC")
    assert found.evidence == ("train-eks/t4: no machines (2026-11-28 23:00 UTC)",)

    elsewhere = replace(record, won=Win("train-gke", "t4any", AT))
    found = found_in(replace(evidence, records={(OWNER, "t4"): elsewhere}))["family-lower-rank"]
    assert found.seen.endswith("has the nodes (2)")


@pytest.mark.parametrize(("size", "seen"), [(EMPTY, "it has no nodes, and"), (FIXED, "no nodes, but still requests 2")])
def test_family_when_an_attempt_left_a_pool_then_it_is_named_with_its_deletion(size: dict[str, int], seen: str) -> None:
    (found,) = found_in(family(FIXED, size, "t4")).values()
    assert (found.code, found.severity) == ("family-leftover", "warning")
    assert str(found.where.source) == "pool train-eks/t4any"
    assert seen in found.seen
    assert found.fix.endswith(": gpukube pool delete t4any -f SPEC")


def test_family_when_two_pools_have_nodes_then_both_are_named() -> None:
    (found,) = found_in(family(FIXED, FIXED, "t4", "t4any")).values()
    assert (found.code, found.severity) == ("family-twice", "warning")
    assert found.seen == "t4 has 2 nodes, t4any has 2 nodes"


@pytest.mark.parametrize(
    ("end", "seen"),
    [
        ("2026-12-04T11:30:00Z", "its reservation cr-1 ends in 2 days, at 2026-12-04 11:30 UTC"),
        ("2026-12-08T04:00:00-08:00", "its reservation cr-1 ends in 7 days, at 2026-12-08 12:00 UTC"),
        ("2026-12-02T23:59:59Z", "its reservation cr-1 ends in 35 hours, at 2026-12-02 23:59 UTC"),
        ("2026-12-08", "its reservation cr-1 ends in 6 days, at 2026-12-08 00:00 UTC"),
        ("2026-12-01T11:30:00Z", "its reservation cr-1 has ended, at 2026-12-01 11:30 UTC"),
    ],
)
def test_reservation_when_it_ends_within_a_week_then_when_and_what_happens(end: str, seen: str) -> None:
    (found,) = found_in(reserved(replace(BLOCK, end=end))).values()
    assert (found.code, found.severity, found.seen) == ("reservation-ends", "warning", seen)
    assert found.why == "at the end EC2 ends its machines"


def test_reservation_when_more_machines_use_it_then_one_warning_for_all_its_pools() -> None:
    found = LiveReservation("gpus", 4, 6)
    pools = member("t4", FIXED, ""), member("other", FIXED, "")
    evidence = evidence_of("eks", *pools, seen=nodes("t4", "other"), reserved={"t4": found, "other": found})
    (warning,) = (one.finding for one in examine(evidence, CHECKS).found)
    assert (warning.code, warning.severity) == ("reservation-overdrawn", "warning")
    assert warning.seen == "6 machines use it, and it holds 4"
    assert warning.evidence == ("pool train-eks/t4", "pool train-eks/other")
