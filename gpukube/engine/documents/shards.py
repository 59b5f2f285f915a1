"""Runs of a part of a fleet -> what their documents say of it."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpukube.engine.documents.parts import Document
    from gpukube.engine.documents.shapes.parts import MergedPart, ShardPart
    from gpukube.engine.plan.prepare import Prepared
    from gpukube.spec.loading.load import LoadedSpec


def shard_part(prepared: Prepared, specs: Sequence[LoadedSpec], exit_code: int) -> ShardPart:
    """Describe the shard that a run took.

    Args:
        prepared: With a shard among its filters.
        specs: As loaded.
        exit_code: Of the command.

    Raises:
        ValueError: The run took no shard.
    """
    shard = prepared.filters.shard
    if shard is None:
        raise ValueError("no shard")
    return {
        "index": shard.index,
        "total": shard.total,
        "spec": spec_digest(specs),
        "clusters": dict(prepared.places),
        "of": prepared.of,
        "exitCode": exit_code,
    }


def spec_digest(specs: Sequence[LoadedSpec]) -> str:
    """Return the digest of specs as loaded; names of files, comments and the layout do not count.

    The order of keys does: clusters are planned and shown in it.
    """
    total = sha256()
    for spec in specs:
        root = spec.positions.root
        # Defaults are merged under every pool already; a saved plan keeps the spec without them.
        data = {key: value for key, value in root.items() if key != "defaults"} if isinstance(root, dict) else root
        total.update(json.dumps(data).encode())
    return f"sha256:{total.hexdigest()}"


def part_line(document: Document) -> str:
    """Tell in one line of which part of a fleet a document is; "" of a whole one."""
    if "shard" in document:
        shard = cast("ShardPart", document["shard"])
        count = len(shard["clusters"]) or "none"
        return f"shard {shard['index']}/{shard['total']}: {count} of {shard['of']} clusters"
    merged = cast("MergedPart | None", document.get("merged"))
    return missing_line(merged["missing"], merged["total"]) if merged and merged["missing"] else ""


def missing_line(missing: Sequence[int], total: int) -> str:
    """Return which shards are missing: "partial: 3 of 16 shards missing: 4, 9, 11"."""
    return f"partial: {len(missing)} of {total} shards missing: {', '.join(map(str, missing))}"
