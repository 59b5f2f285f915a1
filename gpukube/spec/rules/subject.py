"""A pool under judgement: what every rule of the spec is given, and how it says what it finds.

In scope: no rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpukube.errors import Finding
from gpukube.spec.source.positions import is_unknown
from gpukube.spec.wording import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpukube.spec.model import Pool, ProviderName
    from gpukube.spec.source.positions import Path, Positions


class Subject(NamedTuple):
    """A pool under judgment.

    Attributes:
        pool: Which.
        at: Positions of its fields.
        clusters: Key -> provider, None when the cluster itself is wrong.
        unknown: Paths of what is wrong by itself and left out of the pool (see salvage).
        own: Positions of what the pool says without the defaults.
    """

    pool: Pool
    at: Positions
    clusters: Mapping[str, ProviderName | None]
    unknown: frozenset[Path]
    own: Positions

    def knows(self, *paths: str) -> bool:
        """Whether fields are as the user wrote them, so that something follows from them."""
        return not self.unknown or not any(is_unknown(tuple(path.split(".")), self.unknown) for path in paths)

    def finding(self, code: str, path: str | Path, message: str, fix: str, why: str = "") -> Finding:
        """Make a diagnostic at the value of a path, whose message begins with the whole path."""
        return Finding(code, self.at.at(path), f"{self.at.path(path)} {message}", fix=fix, why=why)

    def key_finding(self, code: str, path: Path, message: str, fix: str, why: str = "") -> Finding:
        """Make a diagnostic at the key of a path."""
        return Finding(code, self.at.key_at(path), f"{self.at.path(path)} {message}", fix=fix, why=why)

    def seen(self, path: Path, value: str) -> str:
        """Quote a value as it was written: a variable may hold a secret."""
        return quoted(self.at.origin.spellings.get(self.at.mark_at(path), value))
