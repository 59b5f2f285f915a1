"""The laws that merging defaults keeps, whatever they and the pool hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import assume, given, settings

from gpukube.spec.loading.merge import merge_defaults
from gpukube.spec.model import PoolSettings
from gpukube.spec.reference.fields import keys_of
from gpukube.spec.source.positions import Origin, PositionedDict
from tests.strategies import Node, pool_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NOWHERE = Origin(["-"])
KNOWN = keys_of(PoolSettings)
CHOICES: dict[tuple[str, ...], tuple[str, ...]] = {
    (): ("gpu", "instanceType"),
    ("nodes",): ("count", "autoscaling"),
    ("sharing",): ("mig", "timeSlicing", "mps"),
    ("sharing", "mig"): ("profile", "layout"),
    ("capacity", "reserved", "eks"): ("capacityBlock", "capacityReservation"),
    ("capacity", "reserved", "gke"): ("reservation", "flexStart", "queued"),
}
"""Where a mapping holds a choice: the ways to choose from."""
WHOLE = {("nodes",), ("sharing",)}
"""Where an empty mapping is a choice too."""

PARTS = pool_parts()
laws = settings(max_examples=40)


def positioned(data: Node) -> PositionedDict:
    """Return plain data as if it had been read; where from does not matter here."""
    found = PositionedDict(NOWHERE, 0)
    for key, value in data.items():
        found.put(key, positioned(value) if isinstance(value, dict) else value, 0, 0)
    return found


def merge(*parts: Node) -> Node:
    """Merge from the lowest to the highest, the highest two first."""
    *below, found = [positioned(part) for part in parts]
    for part in reversed(below):
        found = merge_defaults(part, found, KNOWN)
    return found


def at(part: object, path: Sequence[str]) -> Node:
    for step in path:
        part = part.get(step) if isinstance(part, dict) else None
    return part if isinstance(part, dict) else {}


def returns(low: Node, middle: Node, high: Node) -> bool:
    """Return whether the highest takes up a way that the lowest chose and the one between them left for another."""
    for path, ways in CHOICES.items():
        first, second, third = ({way for way in ways if way in at(part, path)} for part in (low, middle, high))
        left = second or (path in WHOLE and path[0] in middle)
        if left and first & third - second:
            return True
    types = {part.get("capacity", {}).get("type") for part in (low, middle, high)} - {None}
    return len(types) > 1 or is_interrupted(low, middle, high)


def is_interrupted(low: Node, middle: Node, high: Node) -> bool:
    """Return whether anywhere the one between writes something else than a mapping: one type name for all clouds."""
    shared = low.keys() & middle.keys() & high.keys()
    triples = [(low[key], middle[key], high[key]) for key in shared]
    return any(
        not isinstance(between, dict) or is_interrupted(below, between, above)
        for below, between, above in triples
        if isinstance(below, dict) and isinstance(above, dict)
    )


def leaves(node: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(node, dict) and node:
        for key, value in node.items():
            yield from leaves(value, (*path, key))
    else:
        yield path, node


@laws
@given(PARTS, PARTS)
def test_field_when_the_pool_writes_it_then_defaults_do_not_change_it(below: Node, pool: Node) -> None:
    merged = dict(leaves(merge(below, pool)))
    for path, value in leaves(pool):
        if value != {}:
            assert merged[path] == value


@laws
@given(PARTS, PARTS)
def test_field_when_merged_then_somebody_wrote_it(below: Node, pool: Node) -> None:
    written = list(leaves(below)) + list(leaves(pool))
    assert [leaf for leaf in leaves(merge(below, pool)) if leaf not in written and leaf[1] != {}] == []


@laws
@given(PARTS, PARTS)
def test_defaults_when_what_they_give_is_written_out_then_they_add_nothing(below: Node, pool: Node) -> None:
    once = merge(below, pool)
    assert merge(below, once) == once


@laws
@given(PARTS, PARTS, PARTS)
def test_defaults_when_merged_in_another_order_then_the_pool_is_the_same(low: Node, middle: Node, high: Node) -> None:
    assume(not returns(low, middle, high))
    assert merge(merge(low, middle), high) == merge(low, middle, high)
