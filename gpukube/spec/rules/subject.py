"""The input of every rule of the spec: a pool and its context, with methods that create findings.

Out of scope: rules.
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
    """A pool that is being checked.

    Attributes:
        pool: The pool.
        at: Positions of its fields.
        clusters: Key -> provider, None if the cluster itself is invalid.
        unknown: Paths of invalid fields that were removed from the pool (see salvage).
        own: Positions of the pool's own fields, without the defaults.
    """

    pool: Pool
    at: Positions
    clusters: Mapping[str, ProviderName | None]
    unknown: frozenset[Path]
    own: Positions

    def knows(self, *paths: str) -> bool:
        """Return whether fields are valid, so that rules may rely on them."""
        return not self.unknown or not any(is_unknown(tuple(path.split(".")), self.unknown) for path in paths)

    def finding(self, code: str, path: str | Path, message: str, fix: str, why: str = "") -> Finding:
        """Return a diagnostic at the value of a path; its message starts with the full path."""
        return Finding(code, self.at.at(path), f"{self.at.path(path)} {message}", fix=fix, why=why)

    def key_finding(self, code: str, path: Path, message: str, fix: str, why: str = "") -> Finding:
        """Return a diagnostic at the key of a path."""
        return Finding(code, self.at.key_at(path), f"{self.at.path(path)} {message}", fix=fix, why=why)

    def seen(self, path: Path, value: str) -> str:
        """Quote a value as written: a variable may contain a secret."""
        return quoted(self.at.origin.spellings.get(self.at.mark_at(path), value))
