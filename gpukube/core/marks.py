"""The second copy of a pool's ownership marks, in the tags of its cloud.

Labels carry the marks, because all three clouds change them in place. But `az aks nodepool update --labels` and
`gcloud container node-pools update --node-labels` replace the whole map, marks included. So tags say the same again,
together with the place they were written for, which is cluster and cloud name: tags that were copied to another pool
prove nothing there. One more tag holds the names of the tags that gpukube wrote, so that those that leave the spec
can be removed, and those of others stay.

Pure. In scope: keys, values, and how they are read. Out of scope: what a plan makes of a copy (`plan`), calls.
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
"""Names of the tags, behind the prefix of the cloud; so many of a resource's tags are gpukube's own."""

_HASHED: Final = "sha256-"
_HASH_DIGITS: Final = 40
_LIST: Final = re.compile(r"h(\d\d)-([a-z2-7]*)")
"""A list of names that did not fit: the width of one hash, then the hashes."""
_WIDEST: Final = 26
_NARROWEST: Final = 5
"""Characters of 5 bits for one name. With fewer a tag of somebody else could be taken for ours."""


@dataclass(frozen=True, slots=True)
class CopyForm:
    """How a cloud's tags hold the copy.

    Attributes:
        prefix: Of the keys, "gpukube.io/".
        longest: Most characters of a value.
        value: What a value may be, besides its length.
        ignores_case: Whether keys are compared without case.
    """

    prefix: str
    longest: int
    value: re.Pattern[str]
    ignores_case: bool = False

    @property
    def record_key(self) -> str:
        """Key of the tag that holds the names of the spec's tags."""
        return self._key("tags")

    def is_own(self, key: str) -> bool:
        """Whether a tag is one of gpukube's own, which a spec cannot have."""
        return self._fold(key) in {self._key(name) for name in COPY_TAGS}

    def encode(self, value: str) -> str:
        """Return the value of a tag; one that the cloud refuses is replaced by a hash, in lower case."""
        if self._fits(value) and not value.startswith(_HASHED):
            return value
        return f"{_HASHED}{sha256(value.encode()).hexdigest()[:_HASH_DIGITS]}"

    def copy_of(self, owner: str, pool: str, *, protected: bool) -> MarksCopy:
        """Give marks as a copy of this form holds them."""
        return MarksCopy(self.encode(owner), self.encode(pool), protected)

    def tags(self, marks: MarksCopy, place: str, names: Iterable[str] = ()) -> dict[str, str]:
        """Make the tags of the copy.

        Args:
            marks: As `copy_of` gives them.
            place: Cluster and cloud name of the pool, with all that tells them from others of the same name.
            names: Of the tags that the spec declares.
        """
        found = {"owner": marks.owner, "pool": marks.pool, "place": self.encode(place)}
        if marks.protected:
            found["protect"] = "true"
        if record := self.record(names):
            found["tags"] = record
        return {self._key(name): value for name, value in sorted(found.items())}

    def read(self, tags: Mapping[str, str], place: str) -> MarksCopy | None:
        """Read the copy that was written for the pool at this place; None where there is none."""
        found = self._own(tags)
        if not place or found.get("place") != self.encode(place) or not found.get("owner") or not found.get("pool"):
            return None
        return MarksCopy(found["owner"], found["pool"], found.get("protect") == "true")

    def is_copied(self, tags: Mapping[str, str], place: str) -> bool:
        """Whether the copy in these tags was written for another pool than the one at this place."""
        found = self._own(tags)
        return bool(place and found.get("owner") and found.get("place")) and found["place"] != self.encode(place)

    def is_another(self, tags: Mapping[str, str], live: MarksCopy) -> bool:
        """Whether tags that are to be written name another owner than the live copy."""
        return self._own(tags).get("owner", live.owner) != live.owner

    def outdated(self, tags: Mapping[str, str], desired: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
        """Compare the live copy with the one that should be there.

        Returns:
            Tags to write, and keys of live tags to remove.
        """
        live = {self._fold(key): key for key in tags if self.is_own(key)}
        given = {key: value for key, value in desired.items() if tags.get(live.get(key, key)) != value}
        return given, tuple(sorted(key for folded, key in live.items() if folded not in desired))

    def written(self, tags: Mapping[str, str], place: str) -> frozenset[str]:
        """List the tags that gpukube wrote to this very pool, its own aside."""
        record = self._own(tags).get("tags", "")
        if not record or self.read(tags, place) is None:
            return frozenset()
        return frozenset(key for key in tags if not self.is_own(key) and self._is_recorded(key, record))

    def record(self, names: Iterable[str]) -> str:
        """Write down names: as they are, or as hashes where they do not fit; "" where not even those do."""
        folded = sorted({self._fold(name) for name in names})
        text = " ".join(folded)
        if self._fits(text) and not any(" " in name for name in folded) and not _LIST.fullmatch(text):
            return text
        width = min(_WIDEST, (self.longest - len("h00-")) // len(folded))
        if width < _NARROWEST:
            return ""
        return f"h{width:02d}-" + "".join(sorted(_short_hash(name, width) for name in folded))

    def _own(self, tags: Mapping[str, str]) -> dict[str, str]:
        """The live copy by the names of its tags."""
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
    """Whether a live pool is the declared one by its second copy alone: its labels lost the marks.

    Labels lead: a label with another owner, or another pool, wins over the copy.
    """
    target, ours, copy = desired.target, desired.copy, observed.copy
    if ours is None or copy is None or (observed.owner, observed.pool) == (target.owner, target.pool):
        return False
    is_free = observed.owner in ("", target.owner) and observed.pool in ("", target.pool)
    return is_free and (copy.owner, copy.pool) == (ours.owner, ours.pool)


def doubt_of(observed: Observed, *, required: bool, desired: Desired | None = None) -> str:
    """Explain why the tags of a live pool with marks do not prove that gpukube made it; "" where nothing is against it.

    Args:
        observed: The pool.
        required: Whether one without a copy is in doubt too. What a killed run left of a pool has none.
        desired: The declared pool whose marks it has, under the name of the live one; None where none is declared.
    """
    copy, ours = observed.copy, desired.copy if desired else None
    if observed.copied:
        return f"the tags of {observed.name} were written for another pool"
    if not observed.fields or (desired and ours is None):
        return ""
    if copy is None:
        return f"{observed.name} has no copy of the labels in its tags" if required else ""
    # Where a copy cannot change, an adopted pool keeps that of its first owner.
    if desired and ours and not desired.copy_is_fixed and (copy.owner, copy.pool) != (ours.owner, ours.pool):
        return f'the tags of {observed.name} name the owner "{copy.owner}" (pool {copy.pool})'
    return ""


def released_labels(observed: Observed) -> dict[str, str]:
    """Return the labels of a live pool without the marks, and with the one by which its spec still finds it."""
    kept = {key: value for key, value in observed.labels.items() if key not in MARKS}
    return {**kept, RELEASED_LABEL: observed.pool} if observed.owner and observed.pool else kept


def recorded_tags(desired: Desired, observed: Observed, changes: Sequence[Change]) -> list[str]:
    """List the tags of the spec that a live pool has once these changes are made: those count as written by gpukube."""
    changed = {change.field for change in changes}
    return [
        key
        for key, value in desired.target.tags.items()
        if tag(key) in changed or observed.fields.get(tag(key)) == value
    ]


def names_another(desired: Desired, observed: Observed) -> bool:
    """Whether the copy of a live pool says that it is another pool than the declared one, of whatever owner."""
    copy, ours = observed.copy, desired.copy
    return copy is not None and (ours is None or (copy.owner, copy.pool) != (ours.owner, ours.pool))


def _short_hash(name: str, width: int) -> str:
    return base64.b32encode(sha256(name.encode()).digest()).decode().lower()[:width]
