"""Splits a fleet into shards: which clusters run I of N handles. Pure.

In scope: parsing `--shard 3/16`, and the shard of a cluster. Out of scope: a cluster's identity
(`gpukube.spec.address`), merging the results (`gpukube.engine.merging`).

A cluster is in the shard with the highest weight (rendezvous hashing: Thaler and Ravishankar, "Using name-based
mappings to increase hit rates", IEEE/ACM Transactions on Networking 6(1), 1998). It needs no state, and an additional
shard moves only the clusters that it receives: 1 in N+1 on average, whereas a hash modulo N would move nearly all.
SHA-256, because Python's `hash` of strings differs between processes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from gpukube.errors import SpecError, Where

MOST: Final = 1000
"""Maximum number of shards; CI systems allow fewer: 256 jobs of a GitHub matrix, 200 of GitLab's parallel."""
_FORM: Final = re.compile(r"(0|[1-9][0-9]{0,8})/(0|[1-9][0-9]{0,8})")


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several parts of a fleet.

    Attributes:
        index: Index from 1.
        total: Number of shards.
    """

    index: int
    total: int

    def __str__(self) -> str:
        """Return it as on the command line."""
        return f"{self.index}/{self.total}"

    def takes(self, identity: str) -> bool:
        """Return whether a cluster is in this shard.

        Args:
            identity: The cluster's normalized address: the same for every key and spelling of a cluster.
        """
        own = _weight(identity, self.index)
        # Stops at the first higher weight: about ln(N) weights for most clusters, not N.
        return all(_weight(identity, other) <= own for other in range(1, self.total + 1))


def _weight(identity: str, index: int) -> bytes:
    # Without the total: another shard must not change the weights of the others.
    return sha256(f"{identity}|{index}".encode()).digest()


def parse_shard(text: str) -> Shard:
    """Parse "3/16".

    Raises:
        SpecError: It is not I/N with 1 <= I <= N.
    """
    form = _FORM.fullmatch(text)
    if form is None:
        raise _wrong(f'"{text}" is not a shard', "write I/N without leading zeros: --shard 3/16 is the third of 16")
    index, total = map(int, form.groups())
    if not total:
        raise _wrong(f'"{text}": there must be at least one shard', "write the number of shards after the slash: 1/16")
    if total > MOST:
        raise _wrong(f'"{text}" is one of {total} shards; at most {MOST} are possible', f"use {MOST} or fewer")
    if not index:
        fix = f"write 1/{total} to {total}/{total}; add 1 to an index that is counted from 0, as JOB_COMPLETION_INDEX"
        raise _wrong(f'"{text}": shards are counted from 1', fix)
    if index > total:
        raise _wrong(f'"{text}": there is no shard {index} of {total}', f"write 1/{total} to {total}/{total}")
    return Shard(index, total)


def _wrong(message: str, fix: str) -> SpecError:
    return SpecError(message, where=Where("--shard"), fix=fix, code="shard")
