"""The record of a family: what it keeps, how it is written, and names of Leases."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpukube.engine.change.family_record import (
    Outcome,
    OutcomeKind,
    Record,
    Trial,
    Win,
    fresh,
    lease_name,
    read_record,
    record_text,
)


def outcome(member: str = "a", at: float = 1.0, *, kind: OutcomeKind = "stock", says: str = "none left") -> Outcome:
    return Outcome("train", member, kind, says, at)


def test_trial_when_it_goes_on_then_it_keeps_its_beginning_and_another_has_its_own() -> None:
    record = Record().begin("train", "a", 1.0).begin("train", "a", 9.0)
    assert record.trial == Trial("train", "a", 1.0)
    assert record.begin("train", "b", 9.0).trial == Trial("train", "b", 9.0)
    assert record.begin("other", "a", 9.0).trial == Trial("other", "a", 9.0)


def test_trial_when_it_ends_then_its_outcome_replaces_the_members_last_one() -> None:
    record = Record().end(outcome("a", 1.0)).begin("train", "b", 2.0).end(outcome("b", 3.0))
    again = record.begin("train", "a", 4.0).end(outcome("a", 5.0, kind="quota"))
    assert again.trial is None
    assert again.outcomes == (outcome("b", 3.0), outcome("a", 5.0, kind="quota"))


def test_trial_when_another_member_is_skipped_then_it_goes_on() -> None:
    record = Record().begin("train", "a", 1.0).end(outcome("b", 2.0, kind="price"))
    assert record.trial == Trial("train", "a", 1.0)


def test_win_when_recorded_then_no_trial_is_left_nor_what_the_member_ended_with_before() -> None:
    record = Record().end(outcome("a")).end(outcome("b")).begin("train", "a", 2.0).win("train", "a", 3.0)
    assert record == Record(won=Win("train", "a", 3.0), outcomes=(outcome("b"),))


def test_outcomes_when_many_members_have_come_and_gone_then_the_latest_64_are_kept() -> None:
    record = Record()
    for number in range(100):
        record = record.end(outcome(f"m{number}", float(number)))
    assert [found.member for found in record.outcomes] == [f"m{number}" for number in range(36, 100)]


@pytest.mark.parametrize("age", [0.0, 179.0, -20.0])
def test_outcome_when_young_or_written_by_a_clock_that_is_ahead_then_it_counts(age: float) -> None:
    assert fresh(outcome(at=1e6 - age), 180.0, 1e6)


@pytest.mark.parametrize("age", [180.0, 1e6, -1e6])
def test_outcome_when_older_than_its_time_or_far_in_the_future_then_it_does_not_count(age: float) -> None:
    assert not fresh(outcome(at=1e6 - age), 180.0, 1e6)


RECORDS = st.builds(
    Record,
    st.none() | st.builds(Trial, st.text(), st.text(), st.floats(allow_nan=False, allow_infinity=False)),
    st.none() | st.builds(Win, st.text(), st.text(), st.integers(0, 2**40).map(float)),
    st.lists(
        st.builds(outcome, st.text(), st.integers(0, 2**40).map(float), says=st.text(max_size=400)), max_size=5
    ).map(tuple),
)


@given(RECORDS)
def test_record_when_written_then_read_alike(record: Record) -> None:
    assert read_record(record_text(record)) == record


def test_record_when_a_cloud_said_a_lot_then_400_characters_are_kept() -> None:
    (kept,) = read_record(record_text(Record(outcomes=(outcome(says="x" * 500),)))).outcomes
    assert kept.says == "x" * 400


GOOD = record_text(Record(Trial("train", "a", 1.0), Win("train", "b", 2.0), (outcome(),)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        "null",
        '"text"',
        "{}",
        "[" * 100_000,
        GOOD.replace('"a"', "3"),
        GOOD.replace('"stock"', '"bored"'),
        GOOD.replace('"stock"', "[]"),
        GOOD.replace("1.0", "NaN"),
        GOOD.replace("2.0", "1e999"),
        GOOD.replace("2.0", "true"),
        GOOD.replace("2.0", "9" * 500),
        GOOD.replace('"train"', "null"),
        GOOD.replace('[{"cluster"', '["x",{"cluster"'),
    ],
)
def test_record_when_it_is_not_ours_then_empty(text: str) -> None:
    assert text != GOOD
    assert read_record(text) == Record()


def test_name_when_the_family_is_a_label_of_dns_then_it_is_readable() -> None:
    assert re.fullmatch(r"gpukube-[0-9a-f]{10}-h100", lease_name("team-vision", "h100"))
    assert lease_name("team-vision", "h100") != lease_name("team-audio", "h100")


@given(st.text(max_size=80), st.text(max_size=80))
def test_name_when_made_of_anything_then_a_label_of_dns(owner: str, family: str) -> None:
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{,61}[a-z0-9])?", lease_name(owner, family))


@pytest.mark.parametrize(
    ("one", "other"), [("h_100", "h.100"), ("x" * 60, "x" * 61), ("-a", "a-"), ("A", "a"), ("a\n", "a")]
)
def test_name_when_families_differ_then_it_differs(one: str, other: str) -> None:
    assert lease_name("o", one) != lease_name("o", other)
