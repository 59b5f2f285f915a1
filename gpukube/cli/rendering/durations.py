"""Estimated durations for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpukube.engine.documents.shapes.durations import Duration


def duration_words(duration: Duration) -> str:
    """Say about how long something takes, the least and the most, and what most of it goes to."""
    least, most = duration["leastSeconds"], duration["mostSeconds"]
    between = f"{_minutes(least)} to {_minutes(most)} min"
    return f"about {_minutes((least + most) / 2)} min ({between}); most of it: {duration['longest']}"


def _minutes(seconds: float) -> int:
    return max(1, round(seconds / 60))
