"""The shape of estimated durations in plans."""

from __future__ import annotations

from typing import TypedDict


class DurationTerm(TypedDict):
    """One part of a duration."""

    name: str
    """What takes it."""
    leastSeconds: float
    """When nothing waits."""
    mostSeconds: float
    """When it takes as long as it may without failing."""
    source: str
    """Public source, or that it is an estimate."""


class Duration(TypedDict):
    """How long something would take: an estimate, and no promise."""

    leastSeconds: float
    """The sum of the parts, when nothing waits."""
    mostSeconds: float
    """The sum of the parts, when each takes as long as it may."""
    longest: str
    """The part that most of it goes to."""
    terms: list[DurationTerm]
    """The parts, one after the other; of a cluster those of the pools that its end waits for."""
