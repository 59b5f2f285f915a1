"""Which packages announce themselves to gpukube by an entry point, and the objects that they announce.

In scope: that search. Out of scope: errors for people about what is missing or does not load
(gpukube.installed), which need the numbers of rules, and those are a provider's own.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoints, distributions
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import Distribution

ENTRY_POINT_GROUP = "gpukube.providers"


@cache
def installed_points(group: str = ENTRY_POINT_GROUP) -> EntryPoints:
    """Look once: each look opens a file of every package of the environment.

    `importlib.metadata.entry_points` parses all of these files, which takes four times as long.
    """
    announcing: dict[str, Distribution] = {}
    for package in distributions():
        if group in (package.read_text("entry_points.txt") or ""):
            announcing.setdefault(package.name, package)  # the first on the path is the one that is imported
    points = [point for package in announcing.values() for point in package.entry_points]
    return EntryPoints(points).select(group=group)


@cache
def provider_names() -> tuple[str, ...]:
    """List the installed providers by name without loading any."""
    return tuple(sorted({point.name for point in installed_points()}))


@cache
def make_provider(name: str) -> Any:  # noqa: ANN401 - gpukube.provider knows its type
    """Load an installed provider; whatever its package raises passes."""
    point, *_ = installed_points().select(name=name)
    return point.load()()
