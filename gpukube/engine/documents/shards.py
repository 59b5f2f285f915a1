"""The shard information in documents of a run that covers part of a fleet."""

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
    """Return the shard that a run covered.

    Args:
        prepared: Specs with a shard among the filters.
        specs: Specs as loaded.
        exit_code: Exit code of the command.

    Raises:
        ValueError: The run has no shard.
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
    """Return the digest of specs as loaded; file names, comments and layout do not matter.

    The order of keys does: it determines the order of clusters.
    """
    total = sha256()
    for spec in specs:
        root = spec.positions.root
        # Defaults are already merged into every pool; a saved plan stores the spec without them.
        data = {key: value for key, value in root.items() if key != "defaults"} if isinstance(root, dict) else root
        total.update(json.dumps(data).encode())
    return f"sha256:{total.hexdigest()}"


def part_line(document: Document) -> str:
    """Return one line that names the part of a fleet in a document; "" if it is complete."""
    if "shard" in document:
        shard = cast("ShardPart", document["shard"])
        count = len(shard["clusters"]) or "none"
        return f"shard {shard['index']}/{shard['total']}: {count} of {shard['of']} clusters"
    merged = cast("MergedPart | None", document.get("merged"))
    return missing_line(merged["missing"], merged["total"]) if merged and merged["missing"] else ""


def missing_line(missing: Sequence[int], total: int) -> str:
    """Return the missing shards: "partial: 3 of 16 shards missing: 4, 9, 11"."""
    return f"partial: {len(missing)} of {total} shards missing: {', '.join(map(str, missing))}"
