"""The shape of what documents of a part of a fleet have besides: which part it is, and of what it was put together."""

from __future__ import annotations

from typing import TypedDict


class ShardPart(TypedDict):
    """Which part of a fleet a document is of."""

    index: int
    """Of the shard, from 1."""
    total: int
    """How many shards there are."""
    spec: str
    """Digest of the whole spec, with defaults, variables and --set."""
    clusters: dict[str, int]
    """Clusters of this shard by key -> their places among those of all shards, from 1; empty when none is in it."""
    of: int
    """How many clusters all shards have together."""
    exitCode: int
    """Of the command."""


class MergedPart(TypedDict):
    """Of which shards a document was put together."""

    total: int
    """How many shards there are."""
    missing: list[int]
    """Shards whose documents are missing, from 1; empty when the document is whole."""
    spec: str
    """Digest of the whole spec, as in the documents of the shards."""
    exitCode: int
    """Of the command that merged: 1 when shards are missing, else what one command without shards would have had."""
