"""Parts of a fleet: every cluster in exactly one, and few that move when there is one part more."""

from __future__ import annotations

import re
from collections import Counter
from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpukube.core.shards import MOST, Shard, _weight, parse_shard
from gpukube.errors import SpecError

FLEET = [
    address
    for n in range(100)
    for address in (
        f"eks:1111222233{n % 10:02}/us-east-1/train-{n}",
        f"aks:11111111-2222-3333-4444-555555555555/ml-{n % 7}/train-{n}",
        f"gke:ml-prod-{n % 5}/us-central1/train-{n}",
    )
]
IDENTITIES = st.sampled_from(FLEET) | st.text(min_size=1, max_size=80)
TOTALS = st.integers(1, 64)


def shard_of(identity: str, total: int) -> int:
    """Find the shard of a cluster, from 1, by the definition: the heaviest one."""
    return max(range(1, total + 1), key=lambda index: _weight(identity, index))


@given(identity=IDENTITIES, total=TOTALS)
def test_shard_when_any_cluster_then_exactly_one_takes_it(identity: str, total: int) -> None:
    takers = [index for index in range(1, total + 1) if Shard(index, total).takes(identity)]
    assert takers == [shard_of(identity, total)]


@given(identity=IDENTITIES, total=TOTALS)
def test_shard_when_there_is_one_more_then_a_cluster_stays_or_goes_to_the_new_one(identity: str, total: int) -> None:
    assert shard_of(identity, total + 1) in (shard_of(identity, total), total + 1)


@settings(max_examples=25)
@given(total=TOTALS)
def test_shards_when_one_more_then_about_its_part_of_a_fleet_moves(total: int) -> None:
    moved = sum(shard_of(one, total) != shard_of(one, total + 1) for one in FLEET)
    share = 1 / (total + 1)
    # Five standard deviations of as many throws of a die; the fleet is always the same, so this is no game of luck.
    assert abs(moved - len(FLEET) * share) <= 5 * sqrt(len(FLEET) * share * (1 - share))


def test_shards_when_300_clusters_in_16_then_each_in_one_and_17_moves_a_seventeenth() -> None:
    parts = {index: [one for one in FLEET if Shard(index, 16).takes(one)] for index in range(1, 17)}
    assert sorted(one for part in parts.values() for one in part) == sorted(FLEET)
    assert len(FLEET) == 300
    sizes = Counter({index: len(part) for index, part in parts.items()})
    assert (min(sizes.values()), max(sizes.values())) == (SMALLEST, LARGEST)
    moved = [one for one in FLEET if shard_of(one, 16) != shard_of(one, 17)]
    assert (len(moved), {shard_of(one, 17) for one in moved}) == (MOVED, {17})


SMALLEST, LARGEST, MOVED = 11, 32, 25
"""Of these 300 names: 300/16 is 19, 300/17 is 18. Written down: a cluster whose shard changes with a release of gpukube
is in two shards, or in none, while some runners have the old one."""


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("0/3", "counted from 1"),
        ("4/3", "there is no shard 4 of 3"),
        ("1/0", "at least one"),
        ("0/0", "at least one"),
        (f"1/{MOST + 1}", f"at most {MOST}"),
        *(
            (text, "is not a shard")
            for text in ("", "x", "3", "3/", "/3", "01/3", "1/03", "+1/3", "-1/3", "1/3/", "1 /3")
        ),
        *((text, "is not a shard") for text in ("1/3\n", "¹/3", "1/٣", "1.0/3", "1e0/3", "1/99999999999")),
    ],
)
def test_parse_shard_when_it_is_none_then_it_says_what_to_write(text: str, seen: str) -> None:
    with pytest.raises(SpecError, match=re.escape(seen)) as caught:
        parse_shard(text)
    (found,) = caught.value.diagnostics
    assert (found.code, bool(found.fix)) == ("shard", True)


@given(total=st.integers(1, MOST), data=st.data())
def test_parse_shard_when_written_then_read_the_same(total: int, data: st.DataObject) -> None:
    shard = Shard(data.draw(st.integers(1, total)), total)
    assert parse_shard(str(shard)) == shard
