"""The second copy of a pool's ownership marks, in the tags of its cloud.

The marks are labels, because all three clouds update labels in place. But `az aks nodepool update --labels` and
`gcloud container node-pools update --node-labels` replace the whole map, marks included. So tags repeat them, together
with their place (cluster and cloud name): tags copied to another pool prove nothing there. One more tag lists the tags
that gpukube wrote, so that gpukube removes those that leave the spec and keeps others.

Pure. In scope: keys, values, and parsing. Out of scope: consequences of a copy for a plan (`plan`), calls.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from gpukube.core.fields import tag
from gpukube.core.values import MARKS, RELEASED_LABEL, MarksCopy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpukube.core.values import Change, Desired, Observed

COPY_TAGS: Final = ("owner", "pool", "protect", "place", "tags")
"""Names of the tags, without the cloud's prefix; gpukube uses this many of a resource's tags."""

_HASHED: Final = "sha256-"
_HASH_DIGITS: Final = 40
_LIST: Final = re.compile(r"h(\d\d)-([a-z2-7]*)")
"""A list of names that was too long: the width of one hash, then the hashes."""
_WIDEST: Final = 26
_NARROWEST: Final = 5
"""Minimum number of 5-bit characters per name; with fewer, another tool's tag could match by chance."""


@dataclass(frozen=True, slots=True)
class CopyForm:
    """How a cloud's tags store the copy.

    Attributes:
        prefix: Prefix of the keys, "gpukube.io/".
        longest: Maximum length of a value.
        value: Pattern of valid values, apart from the length.
        ignores_case: Whether keys are case-insensitive.
    """

    prefix: str
    longest: int
    value: re.Pattern[str]
    ignores_case: bool = False

    @property
    def record_key(self) -> str:
        """Key of the tag that lists the names of the spec's tags."""
        return self._key("tags")

    def is_own(self, key: str) -> bool:
        """Return whether a tag is gpukube's own, which a spec must not contain."""
        return self._fold(key) in {self._key(name) for name in COPY_TAGS}

    def encode(self, value: str) -> str:
        """Return the value of a tag; a value that the cloud rejects is replaced by a lower-case hash."""
        if self._fits(value) and not value.startswith(_HASHED):
            return value
        return f"{_HASHED}{sha256(value.encode()).hexdigest()[:_HASH_DIGITS]}"

    def copy_of(self, owner: str, pool: str, *, protected: bool) -> MarksCopy:
        """Return the marks as a copy of this form stores them."""
        return MarksCopy(self.encode(owner), self.encode(pool), protected)

    def tags(self, marks: MarksCopy, place: str, names: Iterable[str] = ()) -> dict[str, str]:
        """Return the tags of the copy.

        Args:
            marks: Result of `copy_of`.
            place: Cluster and cloud name of the pool, qualified to be globally unique.
            names: Names of the tags that the spec declares.
        """
        found = {"owner": marks.owner, "pool": marks.pool, "place": self.encode(place)}
        if marks.protected:
            found["protect"] = "true"
        if record := self.record(names):
            found["tags"] = record
        return {self._key(name): value for name, value in sorted(found.items())}

    def read(self, tags: Mapping[str, str], place: str) -> MarksCopy | None:
        """Return the copy written for the pool at this place; None if there is none."""
        found = self._own(tags)
        if not place or found.get("place") != self.encode(place) or not found.get("owner") or not found.get("pool"):
            return None
        return MarksCopy(found["owner"], found["pool"], found.get("protect") == "true")

    def is_copied(self, tags: Mapping[str, str], place: str) -> bool:
        """Return whether the copy in these tags was written for a pool other than the one at this place."""
        found = self._own(tags)
        return bool(place and found.get("owner") and found.get("place")) and found["place"] != self.encode(place)

    def is_another(self, tags: Mapping[str, str], live: MarksCopy) -> bool:
        """Return whether new tags name a different owner than the live copy."""
        return self._own(tags).get("owner", live.owner) != live.owner

    def outdated(self, tags: Mapping[str, str], desired: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
        """Compare the live copy with the desired one.

        Returns:
            Tags to write, and keys of live tags to remove.
        """
        live = {self._fold(key): key for key in tags if self.is_own(key)}
        outdated = {key: value for key, value in desired.items() if tags.get(live.get(key, key)) != value}
        return outdated, tuple(sorted(key for folded, key in live.items() if folded not in desired))

    def written(self, tags: Mapping[str, str], place: str) -> frozenset[str]:
        """Return the tags that gpukube wrote to this pool, except the copy."""
        record = self._own(tags).get("tags", "")
        if not record or self.read(tags, place) is None:
            return frozenset()
        return frozenset(key for key in tags if not self.is_own(key) and self._is_recorded(key, record))

    def record(self, names: Iterable[str]) -> str:
        """Return the value that lists the names, as hashes if they are too long; "" if even the hashes are too long."""
        folded = sorted({self._fold(name) for name in names})
        text = " ".join(folded)
        if self._fits(text) and not any(" " in name for name in folded) and not _LIST.fullmatch(text):
            return text
        width = min(_WIDEST, (self.longest - len("h00-")) // len(folded))
        if width < _NARROWEST:
            return ""
        return f"h{width:02d}-" + "".join(sorted(_short_hash(name, width) for name in folded))

    def _own(self, tags: Mapping[str, str]) -> dict[str, str]:
        """Return the live copy by tag name, without the prefix."""
        folded = {self._fold(key): value for key, value in tags.items()}
        return {name: folded[self._key(name)] for name in COPY_TAGS if self._key(name) in folded}

    def _key(self, name: str) -> str:
        return f"{self.prefix}{name}"

    def _fold(self, key: str) -> str:
        return key.casefold() if self.ignores_case else key

    def _fits(self, value: str) -> bool:
        return len(value) <= self.longest and self.value.fullmatch(value) is not None

    def _is_recorded(self, key: str, record: str) -> bool:
        name = self._fold(key)
        if not (found := _LIST.fullmatch(record)):
            return name in record.split(" ")
        width, hashes = int(found[1]), found[2]
        parts = {hashes[start : start + width] for start in range(0, len(hashes), width)} if width else set()
        return _short_hash(name, width) in parts


def has_lost_marks(desired: Desired, observed: Observed) -> bool:
    """Return whether only the second copy identifies a live pool as the declared one: its labels lost the marks.

    Labels take precedence: a label with another owner or pool overrides the copy.
    """
    target, expected, copy = desired.target, desired.copy, observed.copy
    if expected is None or copy is None or (observed.owner, observed.pool) == (target.owner, target.pool):
        return False
    is_free = observed.owner in ("", target.owner) and observed.pool in ("", target.pool)
    return is_free and (copy.owner, copy.pool) == (expected.owner, expected.pool)


def doubt_of(observed: Observed, *, required: bool, desired: Desired | None = None) -> str:
    """Return why the tags of a live pool with marks do not prove that gpukube created it; "" if nothing contradicts it.

    Args:
        observed: The pool.
        required: Whether a pool without a copy is doubtful too. A partial pool from a killed run has none.
        desired: The declared pool with its marks, under the name of the live one; None if none is declared.
    """
    copy, expected = observed.copy, desired.copy if desired else None
    if observed.copied:
        return f"the tags of {observed.name} were written for another pool"
    if not observed.fields or (desired and expected is None):
        return ""
    if copy is None:
        return f"{observed.name} has no copy of the labels in its tags" if required else ""
    # If a cloud cannot change the copy, an adopted pool keeps its first owner's.
    if (
        desired
        and expected
        and not desired.copy_is_fixed
        and (copy.owner, copy.pool) != (expected.owner, expected.pool)
    ):
        return f'the tags of {observed.name} name the owner "{copy.owner}" (pool {copy.pool})'
    return ""


def released_labels(observed: Observed) -> dict[str, str]:
    """Return the labels of a live pool without the marks, plus the label by which its spec still finds it."""
    kept = {key: value for key, value in observed.labels.items() if key not in MARKS}
    return {**kept, RELEASED_LABEL: observed.pool} if observed.owner and observed.pool else kept


def recorded_tags(desired: Desired, observed: Observed, changes: Sequence[Change]) -> list[str]:
    """Return the spec's tags on a live pool after these changes; they count as written by gpukube."""
    changed = {change.field for change in changes}
    return [
        key
        for key, value in desired.target.tags.items()
        if tag(key) in changed or observed.fields.get(tag(key)) == value
    ]


def names_another(desired: Desired, observed: Observed) -> bool:
    """Return whether the copy of a live pool names a pool other than the declared one, of any owner."""
    copy, expected = observed.copy, desired.copy
    return copy is not None and (expected is None or (copy.owner, copy.pool) != (expected.owner, expected.pool))


def _short_hash(name: str, width: int) -> str:
    return base64.b32encode(sha256(name.encode()).digest()).decode().lower()[:width]
